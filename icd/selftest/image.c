/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The self-test of images over host memory.  A kernel uses two images over shared memory.  A driver
 * with copies around each kernel loses the data of an image.  A driver that ignores where a
 * sub-buffer begins, or the pitch, works on other bytes.
 *
 * The test uses three pixels: the host's pixel, and two of the kernel.  The kernel copies the
 * host's pixel to the kernel's first pixel through image a, and through image b reads the first
 * pixel back, for the second.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "icd/image_format.h"
#include "icd/selftest/image_session.h"

#define ROUNDS 3 /* the first use is special in drivers with lazy copies */

struct image_test {
	struct image_session session;
	size_t pixel; /* bytes */
	cl_int at[IMAGE_PIXELS][2];
};

static volatile unsigned char *image_pixel(const struct image_test *t, int i)
{
	return (unsigned char *)t->session.region->addr + t->session.image->origin +
	       (size_t)t->at[i][1] * t->session.image->pitch + (size_t)t->at[i][0] * t->pixel;
}

static void image_fill_pixel(const struct image_test *t, int i, unsigned char value)
{
	volatile unsigned char *p = image_pixel(t, i);

	for (size_t byte = 0; byte < t->pixel; byte++)
		p[byte] = value;
}

static bool image_is_filled(const struct image_test *t, int i, unsigned char value)
{
	const volatile unsigned char *p = image_pixel(t, i);

	for (size_t byte = 0; byte < t->pixel; byte++)
		if (p[byte] != value)
			return false;
	return true;
}

static bool image_has_equal_pixels(const struct image_test *t, int i, int j)
{
	const volatile unsigned char *p = image_pixel(t, i), *q = image_pixel(t, j);

	for (size_t byte = 0; byte < t->pixel; byte++)
		if (p[byte] != q[byte])
			return false;
	return true;
}

/* All bytes of a pixel are equal, so a pixel is a plain number in every format. */
static cl_int image_round(struct image_test *t, unsigned char seed)
{
	cl_int err;

	image_fill_pixel(t, 0, seed);
	image_fill_pixel(t, 1, seed + 1);
	image_fill_pixel(t, 2, seed + 2);
	err = image_session_launch(&t->session, t->at, seed + 3);
	if (err)
		return err;
	if (image_session_is_write_only(&t->session))
		return image_has_equal_pixels(t, 1, 2) && !image_is_filled(t, 1, seed + 1) &&
		       !image_is_filled(t, 2, seed + 2);
	return image_is_filled(t, 1, seed) && image_is_filled(t, 2, seed);
}

static cl_int image_rounds(struct image_test *t, cl_device_id device)
{
	cl_int result = session_use_device(&t->session.base, device);

	if (!result)
		result = 1;
	for (int round = 0; round < ROUNDS && result == 1; round++)
		result = image_round(t, 0x11 + 0x30 * round);
	return result;
}

/* Three different pixels, from the first to the last. */
static void image_choose_pixels(struct image_test *t)
{
	const struct selftest_image *image = t->session.image;
	const cl_int right = (cl_int)image->width - 1, bottom = (cl_int)image->height - 1;
	const cl_int at[IMAGE_PIXELS][2] = { { 0, 0 },
					     { right / 2, bottom / 2 },
					     { right, bottom } };

	memcpy(t->at, at, sizeof(at));
}

static cl_int image_run_on(const cl_device_id *devices, cl_uint num_devices,
			   const struct selftest_image *image, struct import_region *region)
{
	struct image_test t = {
		.session = { .image = image, .region = region },
		.pixel = image_format_element(&image->format),
	};
	cl_int result;

	image_choose_pixels(&t);
	result = image_session_begin(&t.session, devices, num_devices);
	if (!result)
		result = 1;
	for (cl_uint i = 0; i < num_devices && result == 1; i++)
		result = image_rounds(&t, devices[i]);
	image_session_end(&t.session);
	return result;
}

/* Up to the image's end; if the memory begins at a page, whole pages: some drivers take no other. */
static size_t image_memory_size(const struct selftest_image *image)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE),
		     size = image->origin + image->pitch * image->height;

	return image->offset ? size : (size + page - 1) & ~(page - 1);
}

/* The memory, and the pixels of image_choose_pixels(). */
static struct import_sample_want image_want(const struct selftest_image *image)
{
	const size_t pixel = image_format_element(&image->format),
		     size = image->pitch * image->height;
	const struct import_sample_want want = {
		.kind = image->kind,
		.offset = image->offset,
		.size = image_memory_size(image),
		.is_sparse = image->is_sparse,
		.at = { image->origin,
			image->origin + (image->height - 1) / 2 * image->pitch +
				(image->width - 1) / 2 * pixel,
			image->origin + size - image->pitch + (image->width - 1) * pixel },
	};

	return want;
}

static enum tested image_run(const cl_device_id *devices, cl_uint num_devices,
			     const struct selftest_image *image)
{
	const struct import_sample_want want = image_want(image);
	struct import_region *region;
	enum tested found;
	int ret = -ENOMEM;

	if (!image->ops && image->kind == IMPORT_UNWRITABLE)
		return NO_SAMPLE; /* the host cannot fill pixels */
	if (want.is_sparse || want.size <= import_memory_available() / 2)
		ret = image->ops ? image->ops->sample(&want, &region)
				 : import_sample_kind(&want, &region);
	if (ret)
		return ret == -EOPNOTSUPP ? NO_SAMPLE : UNTESTED;
	found = session_judge(image_run_on(devices, num_devices, image, region));
	import_put(region);
	return found;
}

/* Room for three pixels. */
static void image_widen(struct selftest_image *image)
{
	const size_t pixel = image_format_element(&image->format);

	if (image->width < IMAGE_PIXELS)
		image->width = IMAGE_PIXELS;
	if (image->pitch < image->width * pixel)
		image->pitch = image->width * pixel;
}

enum tested selftest_image(const cl_device_id *devices, cl_uint num_devices,
			   const struct selftest_image *image)
{
	struct selftest_image wide = *image;

	if (!image_format_element(&image->format))
		return BROKEN; /* an unknown format */
	image_widen(&wide);
	return image_run(devices, num_devices, &wide);
}
