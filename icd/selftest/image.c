/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The self-test behind struct image_rule.  A plain image comes first: rows of a thousand pixels without a gap, at a
 * page.  If it passes, each access, size of a pixel, alignment, pitch and extent is tried, one property at a time.
 *
 * Two images are made over the same memory.  In one run, a kernel copies the host's pixel to a second pixel by image
 * a, and that pixel, read by image b, to a third.  A driver with copies around each kernel loses one of them; a driver
 * that ignores where a sub-buffer begins, or the pitch, works on other bytes.
 */
#include <errno.h>
#include <unistd.h>

#include "icd/driver_info.h"
#include "icd/layer.h"
#include "icd/objects/memobj_watch.h"
#include "icd/selftest/session.h"

#define PIXELS 3
#define ROUNDS 3   /* the first use is special in drivers with lazy copies */
#define WIDTH 1024 /* zink takes rows of whole 256 pixels (Mesa 26.2) */
#define HEIGHT 3
#define PIXEL 4 /* bytes: RGBA, which every device has */

/* Bytes, the loosest first; a page is the strictest. */
static const unsigned int alignments[] = { 1, 2, 4, 16, 64, 256, 1024 };

/* Pixels of a side of a square.  The largest is as large as the largest buffer that is tried. */
static const unsigned int sides[] = { 16384, 8192, 4096, 2048, 1024, 256, 64, 16 };

#define LARGEST_PIXEL 16 /* bytes */

/* By the size of a pixel.  Kernels write them on every device with images, or the driver refuses them. */
static const cl_image_format formats[LARGEST_PIXEL + 1] = {
	[1] = { CL_R, CL_UNSIGNED_INT8 },      [2] = { CL_R, CL_UNSIGNED_INT16 },
	[4] = { CL_RGBA, CL_UNSIGNED_INT8 },   [8] = { CL_RGBA, CL_UNSIGNED_INT16 },
	[16] = { CL_RGBA, CL_UNSIGNED_INT32 },
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const char image_source[] =
	"const sampler_t s = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_NONE | CLK_FILTER_NEAREST;\n"
	"__kernel void climport_selftest_image_1d(__write_only image1d_buffer_t a,\n"
	"	__read_only image1d_buffer_t b, int x0, int y0, int x1, int y1, int x2, int y2)\n"
	"{\n"
	"	write_imageui(a, x1, read_imageui(b, x0));\n"
	"	barrier(CLK_GLOBAL_MEM_FENCE);\n"
	"	write_imageui(a, x2, read_imageui(b, x1));\n"
	"}\n"
	"__kernel void climport_selftest_image(__write_only image2d_t a, __read_only image2d_t b,\n"
	"	int x0, int y0, int x1, int y1, int x2, int y2)\n"
	"{\n"
	"	write_imageui(a, (int2)(x1, y1), read_imageui(b, s, (int2)(x0, y0)));\n"
	"	barrier(CLK_GLOBAL_MEM_FENCE);\n"
	"	write_imageui(a, (int2)(x2, y2), read_imageui(b, s, (int2)(x1, y1)));\n"
	"}\n";

struct image_trial {
	cl_mem_flags flags;
	unsigned int pixel, offset, gap; /* bytes: the address from a page, and behind each row */
	unsigned int width, height;
};

struct image_test {
	const struct selftest_image *asked;
	struct session session;
	cl_kernel kernel;
	enum image_from from;
	bool is_2d;
	struct image_trial plain;
	size_t page, origin; /* bytes; the origin of images in their memory */
	bool has_copied;     /* some image */
};

/* Of a trial. */
struct image_pair {
	struct import_region *region;
	size_t pitch;
	size_t at[PIXELS]; /* bytes, in the region */
	cl_int coordinates[PIXELS][2];
	cl_mem images[2], roots[2]; /* the buffers below; NULL if the images have the memory */
};

/* All bytes of a pixel are equal, so a pixel is a plain number in every format. */
static void image_fill(const struct image_pair *p, size_t pixel, int i, unsigned char value)
{
	volatile unsigned char *bytes = (unsigned char *)p->region->addr + p->at[i];

	for (size_t byte = 0; byte < pixel; byte++)
		bytes[byte] = value;
}

static bool image_is_filled(const struct image_pair *p, size_t pixel, int i, unsigned char value)
{
	const volatile unsigned char *bytes = (unsigned char *)p->region->addr + p->at[i];

	for (size_t byte = 0; byte < pixel; byte++)
		if (bytes[byte] != value)
			return false;
	return true;
}

static cl_int image_enqueue_edge(struct image_test *t, const struct image_pair *p, bool begins)
{
	return t->asked->ops ? t->asked->ops->edge(t->session.queue, begins, p->roots) : CL_SUCCESS;
}

static cl_int image_set_args(const struct image_test *t, const struct image_pair *p)
{
	cl_int err = CL_SUCCESS;

	for (cl_uint i = 0; i < 2 && !err; i++)
		err = next.clSetKernelArg(t->kernel, i, sizeof(p->images[i]), &p->images[i]);
	for (cl_uint i = 0; i < 2 * PIXELS && !err; i++)
		err = next.clSetKernelArg(t->kernel, 2 + i, sizeof(cl_int),
					  &p->coordinates[i / 2][i % 2]);
	return err;
}

static cl_int image_launch(struct image_test *t, const struct image_pair *p)
{
	const size_t one = 1;
	cl_int err = image_enqueue_edge(t, p, true);

	if (!err)
		err = next.clEnqueueNDRangeKernel(t->session.queue, t->kernel, 1, NULL, &one, &one,
						  0, NULL, NULL);
	if (!err)
		err = image_enqueue_edge(t, p, false);
	return err ? err : next.clFinish(t->session.queue);
}

/* 1: zero copy, 0: not, or an error of OpenCL. */
static cl_int image_run_rounds(struct image_test *t, const struct image_pair *p, size_t pixel)
{
	cl_int err = image_set_args(t, p);

	if (err)
		return err;
	for (int round = 0; round < ROUNDS; round++) {
		const unsigned char seed = (unsigned char)(0x11 + 0x30 * round);

		for (int i = 0; i < PIXELS; i++)
			image_fill(p, pixel, i, seed + i);
		err = image_launch(t, p);
		if (err)
			return err;
		if (!image_is_filled(p, pixel, 1, seed) || !image_is_filled(p, pixel, 2, seed))
			return 0;
	}
	return 1;
}

/* A buffer over the memory; or, with a reference to it in @root, the part where the image begins. */
static cl_mem image_create_parent(struct image_test *t, struct import_region *region,
				  cl_mem_flags flags, cl_mem *root, cl_int *err)
{
	const cl_buffer_region part = { t->origin, region->size - t->origin };
	cl_mem sub;

	if (t->asked->ops)
		*root = t->asked->ops->create_buffer(t->session.context, flags, region, err);
	else
		*root = memobj_holding(
			created_or_null(next.clCreateBuffer(t->session.context,
							    flags | CL_MEM_USE_HOST_PTR,
							    region->size, region->addr, err),
					err),
			region, err);
	if (!*root)
		return NULL;
	if (t->origin) {
		sub = next.clCreateSubBuffer(*root, flags, CL_BUFFER_CREATE_TYPE_REGION, &part,
					     err);
		return created_or_null(sub, err);
	}
	next.clRetainMemObject(*root);
	return *root;
}

static cl_mem image_create_one(struct image_test *t, const struct image_trial *trial,
			       const struct image_pair *p, cl_mem_flags flags, cl_mem *root,
			       cl_int *err)
{
	cl_image_desc desc = {
		.image_type = t->is_2d ? CL_MEM_OBJECT_IMAGE2D : CL_MEM_OBJECT_IMAGE1D_BUFFER,
		.image_width = trial->width,
		.image_height = t->is_2d ? trial->height : 0,
		.image_row_pitch = t->is_2d ? p->pitch : 0,
	};
	const cl_image_format *format = &formats[trial->pixel];
	cl_mem image;

	if (t->from == IMAGE_OF_MEMORY) {
		image = next.clCreateImage(t->session.context, flags | CL_MEM_USE_HOST_PTR, format,
					   &desc, p->region->addr, err);
		return memobj_holding(created_or_null(image, err), p->region, err);
	}
	desc.mem_object = image_create_parent(t, p->region, flags, root, err);
	if (!desc.mem_object)
		return NULL;
	image = created_or_null(
		next.clCreateImage(t->session.context, flags, format, &desc, NULL, err), err);
	next.clReleaseMemObject(desc.mem_object);
	return image;
}

/* The kernel writes image a and reads image b; the other one of an image that is read, or written, alone does both. */
static cl_int image_create_pair(struct image_test *t, const struct image_trial *trial,
				struct image_pair *p)
{
	const cl_mem_flags alone = CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY,
			   both = (trial->flags & ~alone) | CL_MEM_READ_WRITE;
	const cl_mem_flags flags[2] = { trial->flags & CL_MEM_READ_ONLY ? both : trial->flags,
					trial->flags & CL_MEM_WRITE_ONLY ? both : trial->flags };
	cl_int err = CL_SUCCESS;

	for (int i = 0; i < 2 && !err; i++)
		p->images[i] = image_create_one(t, trial, p, flags[i], &p->roots[i], &err);
	return err;
}

static void image_release_pair(struct image_pair *p)
{
	for (int i = 0; i < 2; i++) {
		if (p->images[i])
			next.clReleaseMemObject(p->images[i]);
		if (p->roots[i])
			next.clReleaseMemObject(p->roots[i]);
	}
	import_put(p->region);
}

/* From the first pixel to the last. */
static void image_choose_pixels(const struct image_test *t, const struct image_trial *trial,
				struct image_pair *p)
{
	const size_t right = trial->width - 1, bottom = trial->height - 1;
	const size_t x[PIXELS] = { 0, right / 2, right }, y[PIXELS] = { 0, bottom / 2, bottom };

	p->pitch = (size_t)trial->width * trial->pixel + trial->gap;
	for (int i = 0; i < PIXELS; i++) {
		p->coordinates[i][0] = (cl_int)x[i];
		p->coordinates[i][1] = (cl_int)y[i];
		p->at[i] = t->origin + y[i] * p->pitch + x[i] * trial->pixel;
	}
}

/* Memory at a page is of whole pages: some drivers take no other. */
static int image_get_memory(const struct image_test *t, const struct image_trial *trial,
			    struct image_pair *p)
{
	const size_t size = t->origin + p->pitch * trial->height;
	const struct import_sample_want want = {
		.kind = IMPORT_ANONYMOUS,
		.offset = trial->offset,
		.size = trial->offset ? size : (size + t->page - 1) & ~(t->page - 1),
		.is_sparse = t->asked->own_address,
		.at = { p->at[0], p->at[1], p->at[2] },
	};

	if (!want.is_sparse && want.size > import_memory_available() / 2)
		return -ENOMEM;
	return t->asked->ops ? t->asked->ops->sample(&want, &p->region)
			     : import_sample_kind(&want, &p->region);
}

/* 1: zero copy, 0: not, or an error of OpenCL. */
static cl_int image_run(struct image_test *t, const struct image_trial *trial)
{
	struct image_pair p = { .region = NULL };
	cl_int result;
	int ret;

	image_choose_pixels(t, trial, &p);
	ret = image_get_memory(t, trial, &p);
	if (ret)
		return ret == -EOPNOTSUPP ? CL_INVALID_OPERATION : CL_OUT_OF_HOST_MEMORY;
	result = image_create_pair(t, trial, &p);
	if (!result)
		result = image_run_rounds(t, &p, trial->pixel);
	image_release_pair(&p);
	t->has_copied |= !result;
	return result;
}

static bool image_passes(struct image_test *t, const struct image_trial *trial)
{
	return image_run(t, trial) == 1;
}

static void image_try_accesses(struct image_test *t, struct image_rule *rule)
{
	for (unsigned int access = 0; access < HOST_RULE_ACCESSES; access++) {
		struct image_trial trial = t->plain;

		trial.flags = host_rule_flags(access);
		if (image_passes(t, &trial))
			rule->accesses |= 1u << access;
	}
}

static void image_try_pixels(struct image_test *t, struct image_rule *rule)
{
	for (unsigned int pixel = 1; pixel <= LARGEST_PIXEL; pixel *= 2) {
		struct image_trial trial = t->plain;

		trial.pixel = pixel;
		if (image_passes(t, &trial))
			rule->pixels |= pixel;
	}
}

/* The loosest alignment of the address or, @of_rows, of the pitch with a gap that passes; @strictest: none does. */
static unsigned int image_try_alignments(struct image_test *t, bool of_rows, unsigned int strictest)
{
	for (size_t i = 0; i < COUNT(alignments); i++) {
		struct image_trial trial = t->plain;

		if (!of_rows && alignments[i] < t->asked->align)
			continue;
		trial.pixel = alignments[i] < PIXEL ? alignments[i] : PIXEL;
		*(of_rows ? &trial.gap : &trial.offset) = alignments[i];
		if (image_passes(t, &trial))
			return alignments[i];
	}
	return strictest;
}

static void image_try_sizes(struct image_test *t, struct image_rule *rule)
{
	rule->width = t->plain.width;
	rule->height = t->plain.height;
	for (size_t i = 0; i < COUNT(sides); i++) {
		struct image_trial trial = t->plain;

		trial.width = t->is_2d ? sides[i] : sides[i] * sides[i];
		trial.height = t->is_2d ? sides[i] : 1;
		if (!image_passes(t, &trial))
			continue;
		rule->width = trial.width;
		rule->height = trial.height;
		return;
	}
}

/* 1: zero copy, 0: not, or an error of OpenCL. */
static cl_int image_try_all(struct image_test *t, struct image_rule *rule)
{
	const cl_int result = image_run(t, &t->plain);

	rule->found = result == 1 ? IMAGE_ZERO_COPY : !result ? IMAGE_COPIES : IMAGE_UNPROVED;
	if (result != 1)
		return result;
	image_try_accesses(t, rule);
	image_try_pixels(t, rule);
	rule->align = image_try_alignments(t, false, (unsigned int)t->page);
	rule->pitch = t->is_2d ? image_try_alignments(t, true, 0) : 0;
	image_try_sizes(t, rule);
	rule->is_all = t->asked->own_address && !t->has_copied;
	return result;
}

/* Likewise. */
static cl_int image_test_rule(struct image_test *t, struct image_rule *rule)
{
	cl_int result;

	t->kernel = created_or_null(next.clCreateKernel(t->session.program,
							t->is_2d ? "climport_selftest_image"
								 : "climport_selftest_image_1d",
							&result),
				    &result);
	if (!t->kernel)
		return result;
	result = image_try_all(t, rule);
	next.clReleaseKernel(t->kernel);
	return result;
}

/* clCreateImage came with OpenCL 1.2. */
static bool image_is_supported(cl_device_id device)
{
	cl_bool has = CL_FALSE;

	next.clGetDeviceInfo(device, CL_DEVICE_IMAGE_SUPPORT, sizeof(has), &has, NULL);
	return has && device_version(device) >= CL_MAKE_VERSION(1, 2, 0);
}

bool selftest_image(const struct selftest_image *asked, struct image_rule *rule)
{
	const enum image_from from = (enum image_from)(asked->number / 2);
	const bool is_2d = asked->number % 2,
		   is_of_part = from == IMAGE_OF_SUB_BUFFER || from == IMAGE_OF_PART_OF_DMABUF;
	struct image_test t = {
		.asked = asked,
		.from = from,
		.is_2d = is_2d,
		.plain = { CL_MEM_READ_WRITE, PIXEL, 0, 0, WIDTH, is_2d ? HEIGHT : 1 },
		.page = (size_t)sysconf(_SC_PAGESIZE),
		.origin = is_of_part ? device_base_align(asked->device) : 0,
	};
	cl_int result;

	*rule = (struct image_rule){ .found = IMAGE_UNPROVED };
	if (!image_is_supported(asked->device))
		return true;
	result = session_begin(&t.session, &asked->device, 1, true);
	if (!result)
		result = session_build_source(&t.session, image_source, "");
	if (!result)
		result = image_test_rule(&t, rule);
	session_end(&t.session);
	return !selftest_is_transient(result);
}
