/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The self-test of 2D images over host memory.  A kernel uses two images over shared memory.  A
 * driver with copies around each kernel loses the data of an image.  The kernel is always compiled.
 *
 * The test uses three pixels: the host's pixel, and two of the kernel.  The kernel copies the
 * host's pixel to the kernel's first pixel through image a, and through image b reads the first
 * pixel back, for the second.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "icd/image_format.h"
#include "icd/layer.h"
#include "icd/selftest/job.h"
#include "icd/selftest/selftest.h"
#include "util/log.h"

#define ROUNDS 3 /* the first use is special in drivers with lazy copies */
#define PIXELS 3

static const char source[] =
	"const sampler_t s = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_NONE | CLK_FILTER_NEAREST;\n"
	"__kernel void climport_selftest_image(__write_only image2d_t a, __read_only image2d_t b,\n"
	"	int x0, int y0, int x1, int y1, int x2, int y2, uint value)\n"
	"{\n"
	"	WRITE(a, (int2)(x1, y1), READ(b, s, (int2)(x0, y0)));\n"
	"	barrier(CLK_GLOBAL_MEM_FENCE);\n"
	"	WRITE(a, (int2)(x2, y2), READ(b, s, (int2)(x1, y1)));\n"
	"}\n"
	"__kernel void climport_selftest_images(__write_only image2d_t a, __write_only image2d_t "
	"b,\n"
	"	int x0, int y0, int x1, int y1, int x2, int y2, uint value)\n"
	"{\n"
	"	WRITE(a, (int2)(x1, y1), VALUE);\n"
	"	WRITE(b, (int2)(x2, y2), VALUE);\n"
	"}\n";

struct image_job {
	struct job job;
	struct selftest_image image;
	cl_uint num_devices;
	cl_device_id devices[];
};

/* Objects of a test; NULL for a missing object. */
struct image_test {
	const struct selftest_image *image;
	struct import_region *region;
	size_t pixel; /* bytes */
	cl_int at[PIXELS][2];
	cl_context context;
	cl_command_queue queue;
	cl_program program;
	cl_kernel kernel;
	cl_mem a, b;
};

static bool image_is_write_only(const struct image_test *t)
{
	return t->image->flags & CL_MEM_WRITE_ONLY;
}

static const char *image_build_options(const cl_image_format *format)
{
	switch (format->image_channel_data_type) {
	case CL_SIGNED_INT8:
	case CL_SIGNED_INT16:
	case CL_SIGNED_INT32:
		return "-DREAD=read_imagei -DWRITE=write_imagei -DVALUE=(int4)(value)";
	case CL_UNSIGNED_INT8:
	case CL_UNSIGNED_INT16:
	case CL_UNSIGNED_INT32:
		return "-DREAD=read_imageui -DWRITE=write_imageui -DVALUE=(uint4)(value)";
	default:
		return "-DREAD=read_imagef -DWRITE=write_imagef -DVALUE=(float4)(value/255.0f)";
	}
}

/* Kernels write neither sRGB nor depths.  The formats here have an equal layout. */
static cl_image_format image_writable_format(cl_image_format format)
{
	switch (format.image_channel_order) {
	case CL_sRGBA:
		format.image_channel_order = CL_RGBA;
		break;
	case CL_sBGRA:
		format.image_channel_order = CL_BGRA;
		break;
	case CL_DEPTH:
		format.image_channel_order = CL_R;
		break;
	}
	return format;
}

static void CL_CALLBACK image_unused(cl_mem mem, void *region)
{
	(void)mem;
	import_put(region);
}

static cl_mem image_over(struct image_test *t, cl_mem_flags flags, cl_int *err)
{
	const cl_image_format format = image_writable_format(t->image->format);
	const cl_image_desc desc = {
		.image_type = CL_MEM_OBJECT_IMAGE2D,
		.image_width = t->image->width,
		.image_height = t->image->height,
		.image_row_pitch = t->image->pitch,
	};
	cl_mem image = created_or_null(next.clCreateImage(t->context, flags | CL_MEM_USE_HOST_PTR,
							  &format, &desc, t->region->addr, err),
				       err);

	if (*err)
		return NULL;
	import_hold(t->region);
	*err = next.clSetMemObjectDestructorCallback(image, image_unused, t->region);
	if (!*err)
		return image;
	import_put(t->region);
	next.clReleaseMemObject(image);
	return NULL;
}

static cl_int image_build(struct image_test *t, const struct image_job *j)
{
	const char *const name = image_is_write_only(t) ? "climport_selftest_images"
							: "climport_selftest_image";
	const char *text = source;
	cl_int err;

	t->program = created_or_null(
		next.clCreateProgramWithSource(t->context, 1, &text, NULL, &err), &err);
	if (!err)
		err = next.clBuildProgram(t->program, j->num_devices, j->devices,
					  image_build_options(&t->image->format), NULL, NULL);
	if (!err)
		t->kernel = created_or_null(next.clCreateKernel(t->program, name, &err), &err);
	return err;
}

static cl_int image_begin(struct image_test *t, const struct image_job *j)
{
	cl_mem_flags a = t->image->flags, b = a;
	cl_int err;

	if (a & CL_MEM_READ_ONLY)
		a = (a & ~(cl_mem_flags)CL_MEM_READ_ONLY) | CL_MEM_READ_WRITE;
	t->context = created_or_null(
		next.clCreateContext(NULL, j->num_devices, j->devices, NULL, NULL, &err), &err);
	if (!err)
		err = image_build(t, j);
	if (!err)
		t->a = image_over(t, a, &err);
	if (!err)
		t->b = image_over(t, b, &err);
	return err;
}

static void image_end(struct image_test *t)
{
	if (t->b)
		next.clReleaseMemObject(t->b);
	if (t->a)
		next.clReleaseMemObject(t->a);
	if (t->kernel)
		next.clReleaseKernel(t->kernel);
	if (t->program)
		next.clReleaseProgram(t->program);
	if (t->queue)
		next.clReleaseCommandQueue(t->queue);
	if (t->context)
		next.clReleaseContext(t->context);
}

static cl_int image_launch(struct image_test *t, cl_uint value)
{
	const size_t one = 1;
	cl_int err = next.clSetKernelArg(t->kernel, 0, sizeof(t->a), &t->a);

	if (!err)
		err = next.clSetKernelArg(t->kernel, 1, sizeof(t->b), &t->b);
	for (cl_uint i = 0; i < 2 * PIXELS && !err; i++)
		err = next.clSetKernelArg(t->kernel, 2 + i, sizeof(cl_int), &t->at[i / 2][i % 2]);
	if (!err)
		err = next.clSetKernelArg(t->kernel, 2 + 2 * PIXELS, sizeof(value), &value);
	if (!err)
		err = next.clEnqueueNDRangeKernel(t->queue, t->kernel, 1, NULL, &one, &one, 0, NULL,
						  NULL);
	return err ? err : next.clFinish(t->queue);
}

static volatile unsigned char *image_pixel(const struct image_test *t, int i)
{
	return (unsigned char *)t->region->addr + (size_t)t->at[i][1] * t->image->pitch +
	       (size_t)t->at[i][0] * t->pixel;
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
	err = image_launch(t, seed + 3);
	if (err)
		return err;
	if (image_is_write_only(t))
		return image_has_equal_pixels(t, 1, 2) && !image_is_filled(t, 1, seed + 1) &&
		       !image_is_filled(t, 2, seed + 2);
	return image_is_filled(t, 1, seed) && image_is_filled(t, 2, seed);
}

static cl_int image_rounds(struct image_test *t, cl_device_id device)
{
	cl_int result;

	if (t->queue)
		next.clReleaseCommandQueue(t->queue);
	t->queue =
		created_or_null(next.clCreateCommandQueue(t->context, device, 0, &result), &result);
	if (!result)
		result = 1;
	for (int round = 0; round < ROUNDS && result == 1; round++)
		result = image_round(t, 0x11 + 0x30 * round);
	return result;
}

/* Three different pixels, from the first to the last. */
static void image_choose_pixels(struct image_test *t)
{
	const cl_int right = (cl_int)t->image->width - 1, bottom = (cl_int)t->image->height - 1;
	const cl_int at[PIXELS][2] = { { 0, 0 }, { right / 2, bottom / 2 }, { right, bottom } };

	memcpy(t->at, at, sizeof(at));
}

static cl_int image_run_on(struct image_job *j, struct import_region *region)
{
	struct image_test t = {
		.image = &j->image,
		.region = region,
		.pixel = image_format_element(&j->image.format),
	};
	cl_int result;

	image_choose_pixels(&t);
	result = image_begin(&t, j);
	if (!result)
		result = 1;
	for (cl_uint i = 0; i < j->num_devices && result == 1; i++)
		result = image_rounds(&t, j->devices[i]);
	image_end(&t);
	return result;
}

static enum tested image_judge(cl_int result)
{
	if (result == 1)
		return PASSED;
	if (!result)
		return FAILED;
	return selftest_is_transient(result) ? UNTESTED : BROKEN;
}

static void image_run(struct job *job)
{
	struct image_job *j = (struct image_job *)job;
	const size_t size = j->image.pitch * j->image.height;
	const struct import_sample_want want = {
		.kind = j->image.kind,
		.offset = j->image.offset,
		.size = size,
		.is_sparse = j->image.is_sparse,
		.at = { 0,
			(j->image.height - 1) / 2 * j->image.pitch +
				(j->image.width - 1) / 2 * image_format_element(&j->image.format),
			size - j->image.pitch +
				(j->image.width - 1) * image_format_element(&j->image.format) },
	};
	struct import_region *region;
	int ret = -ENOMEM;

	if (want.is_sparse || size <= import_memory_available() / 2)
		ret = import_sample_kind(&want, &region);
	job->found = ret == -EOPNOTSUPP ? NO_SAMPLE : UNTESTED;
	if (ret)
		return;
	job->found = image_judge(image_run_on(j, region));
	import_put(region);
}

/* Room for three pixels. */
static void image_widen(struct selftest_image *image)
{
	const size_t pixel = image_format_element(&image->format);

	if (image->width < PIXELS)
		image->width = PIXELS;
	if (image->pitch < image->width * pixel)
		image->pitch = image->width * pixel;
}

enum tested selftest_image(const cl_device_id *devices, cl_uint num_devices,
			   const struct selftest_image *image)
{
	const size_t bytes = num_devices * sizeof(devices[0]);
	struct image_job *j;

	if (!image_format_element(&image->format))
		return BROKEN; /* an unknown format */
	j = calloc(1, sizeof(*j) + bytes);
	if (!j)
		return UNTESTED;
	j->job.run = image_run;
	j->image = *image;
	image_widen(&j->image);
	j->num_devices = num_devices;
	memcpy(j->devices, devices, bytes);
	return job_test(&j->job, JOB_COMPILE_LIMIT_MS);
}
