/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The self-test behind struct image_rule: rounds (rounds.h) by images in place of buffers.  For each size of a pixel
 * the loosest unit is looked for, of which address and row pitch are odd multiples.  Each access and extent is tried
 * upon that, and an access that is copied there at a page, too.
 */
#include <errno.h>
#include <stdint.h>
#include <unistd.h>

#include "icd/driver_info.h"
#include "icd/layer.h"
#include "icd/objects/context.h"
#include "icd/objects/memobj_watch.h"
#include "icd/objects/method.h"
#include "icd/selftest/rounds.h"

#define WIDTH 1024 /* zink takes rows of whole 256 pixels (Mesa 26.2) */
#define HEIGHT 3
#define RGBA8 2 /* the number of the pixels of 4 bytes, which every device has */

/* Pixels, the loosest first: drivers want addresses and row pitches to be multiples of them. */
static const unsigned int units[] = { 1, 2, 4, 16, 64, 256 };

/*
 * Pixels of a side of a square.  The largest is as large as the largest buffer that is tried.  In this order a driver
 * that copies large images copies little for the test.
 */
static const unsigned int sides[] = { 16, 2048, 8192, 16384 };

/* By the number of the size of a pixel.  Kernels write them on every device with images, or the driver refuses them. */
static const cl_image_format formats[IMAGE_PIXELS] = {
	{ CL_R, CL_UNSIGNED_INT8 },	{ CL_R, CL_UNSIGNED_INT16 },
	{ CL_RGBA, CL_UNSIGNED_INT8 },	{ CL_RGBA, CL_UNSIGNED_INT16 },
	{ CL_RGBA, CL_UNSIGNED_INT32 },
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define KERNEL_1D "climport_selftest_image_1d"
#define KERNEL_2D "climport_selftest_image"

static const char image_source[] =
	"const sampler_t s = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_NONE | CLK_FILTER_NEAREST;\n"
	"__kernel void " KERNEL_1D "(__write_only image1d_buffer_t a,\n"
	"	__read_only image1d_buffer_t b, ulong4 at)\n"
	"{\n"
	"	write_imageui(a, (int)at.y, read_imageui(b, (int)at.x));\n"
	"	barrier(CLK_GLOBAL_MEM_FENCE);\n"
	"	write_imageui(a, (int)at.z, read_imageui(b, (int)at.y));\n"
	"}\n"
	"#define AT(n) (int2)((int)(n % at.w), (int)(n / at.w))\n"
	"__kernel void " KERNEL_2D "(__write_only image2d_t a, __read_only image2d_t b,\n"
	"	ulong4 at)\n"
	"{\n"
	"	write_imageui(a, AT(at.y), read_imageui(b, s, AT(at.x)));\n"
	"	barrier(CLK_GLOBAL_MEM_FENCE);\n"
	"	write_imageui(a, AT(at.z), read_imageui(b, s, AT(at.y)));\n"
	"}\n";

struct image_trial {
	cl_mem_flags flags;
	unsigned int pixel;	   /* the number of its size */
	unsigned int offset, unit; /* bytes: the address from a page, and of rows; 0: none */
	unsigned int width, height;
	bool is_tight; /* rows without a gap behind, of as many pixels as fill them */
};

struct image_test {
	struct context_import how;
	struct session session;
	enum image_from from;
	bool is_2d;
	size_t page, align, origin; /* bytes: of the buffer's address; of images in their memory */
	bool has_copied;	    /* some image */

	/* Of a trial, which has two images: */
	const struct image_trial *trial;
	struct rounds_shape shape;
	struct import_region *region;
	cl_mem roots[2]; /* the buffers below; NULL if the images have the memory */
};

static cl_int image_enqueue_edge(cl_command_queue queue, bool begins, void *arg)
{
	struct image_test *t = arg;
	const struct method_ops *ops = t->how.ops;

	if (!ops->enqueue_edge)
		return CL_SUCCESS;
	return ops->enqueue_edge(queue, begins, 2, t->roots, 0, NULL, NULL);
}

/* A buffer over the memory; or, with a reference to it in @root, the part where the image begins. */
static cl_mem image_create_parent(const struct image_test *t, cl_mem_flags flags, cl_mem *root,
				  cl_int *err)
{
	const cl_buffer_region part = { t->origin, t->region->size - t->origin };
	struct method_buffer buffer = { .backing = NULL };

	*err = t->how.ops->create(t->session.context, &t->how, flags, t->region, &buffer);
	*root = *err ? NULL : memobj_holding(buffer.handle, t->region, err);
	if (!*root)
		return NULL;
	if (!t->origin) {
		next.clRetainMemObject(*root);
		return *root;
	}
	return created_or_null(
		next.clCreateSubBuffer(*root, flags, CL_BUFFER_CREATE_TYPE_REGION, &part, err),
		err);
}

static cl_mem image_create_one(cl_context context, bool reader, void *arg, cl_int *err)
{
	struct image_test *t = arg;
	const bool is_of_memory = t->from == IMAGE_OF_MEMORY;
	const cl_mem_flags flags = rounds_flags(t->trial->flags, reader);
	cl_image_desc desc = {
		.image_type = t->is_2d ? CL_MEM_OBJECT_IMAGE2D : CL_MEM_OBJECT_IMAGE1D_BUFFER,
		.image_width = t->shape.width,
		.image_height = t->is_2d ? t->shape.height : 0,
		.image_row_pitch = t->is_2d ? t->shape.pitch : 0,
	};
	cl_mem image;

	if (!is_of_memory)
		desc.mem_object = image_create_parent(t, flags, &t->roots[reader], err);
	if (!is_of_memory && !desc.mem_object)
		return NULL;
	image = created_or_null(next.clCreateImage(context,
						   flags | (is_of_memory ? CL_MEM_USE_HOST_PTR : 0),
						   &formats[t->trial->pixel], &desc,
						   is_of_memory ? t->region->addr : NULL, err),
				err);
	if (is_of_memory)
		return memobj_holding(image, t->region, err);
	next.clReleaseMemObject(desc.mem_object);
	return image;
}

int selftest_sample_dmabuf(size_t size, struct import_region **region)
{
	int fd, ret = import_sample_dmabuf(size, &fd);
	const struct import_desc desc = { .type = IMPORT_DMABUF,
					  .memory = &fd,
					  .size = size,
					  .access = IMPORT_READ | IMPORT_WRITE };

	if (ret)
		return ret;
	ret = import_get(&desc, region);
	close(fd);
	return ret;
}

/* Whole pages: some drivers take no other. */
static int image_get_memory(struct image_test *t)
{
	const size_t size = (t->origin + t->shape.pitch * t->shape.height + t->page - 1) & -t->page;
	struct import_sample_want want = {
		.kind = IMPORT_ANONYMOUS,
		.offset = t->trial->offset,
		.size = size,
		.is_sparse = t->how.device->facts.rule.own_address,
	};

	if (t->from >= IMAGE_OF_DMABUF)
		return selftest_sample_dmabuf(size, &t->region);
	if (!want.is_sparse && size > import_memory_available() / 2)
		return -ENOMEM;
	rounds_places(&t->shape, want.at);
	for (int i = 0; i < ROUNDS_PLACES; i++)
		want.at[i] += t->origin;
	return import_sample_kind(&want, &t->region);
}

static cl_int image_run_rounds(struct image_test *t)
{
	const struct rounds rounds = {
		.bytes = (unsigned char *)t->region->addr + t->origin,
		.shape = t->shape,
		.create = image_create_one,
		.edge = image_enqueue_edge,
		.count = ROUNDS_DEFAULT,
		.arg = t,
	};
	const cl_int result = rounds_run(&t->session, &rounds);

	for (int i = 0; i < 2; i++) {
		if (t->roots[i])
			next.clReleaseMemObject(t->roots[i]);
		t->roots[i] = NULL;
	}
	return result;
}

/* 1: zero copy, 0: not, or an error of OpenCL. */
static cl_int image_run(struct image_test *t, const struct image_trial *trial)
{
	const size_t row = (size_t)trial->width << trial->pixel, unit = trial->unit,
		     gap = trial->is_tight ? unit - 1 : unit,
		     pitch = unit ? (row + gap) / unit * unit : row;
	cl_int result;
	int ret;

	t->trial = trial;
	t->shape = (struct rounds_shape){ (size_t)1 << trial->pixel,
					  trial->is_tight ? pitch >> trial->pixel : trial->width,
					  trial->height, pitch };
	ret = image_get_memory(t);
	if (ret)
		return ret == -EOPNOTSUPP ? CL_INVALID_OPERATION : CL_OUT_OF_HOST_MEMORY;
	result = image_run_rounds(t);
	import_put(t->region);
	t->has_copied |= !result;
	return result;
}

/* A driver may copy for the sake of a gap behind each row, or of none. */
static bool image_rows_pass(struct image_test *t, const struct image_trial *trial)
{
	struct image_trial tight = *trial;

	tight.is_tight = trial->unit;
	return image_run(t, trial) == 1 && (!trial->unit || image_run(t, &tight) == 1);
}

/* Pixels of 1 << @number bytes, at first not at a page.  False: none is proved, and @trial is the strictest. */
static bool image_try_pixel(struct image_test *t, unsigned int number, struct image_rule *rule,
			    struct image_trial *trial)
{
	const size_t tries = t->align < t->page ? 2 * COUNT(units) : COUNT(units);

	for (size_t i = 0; i < tries; i++) {
		const size_t unit = (size_t)units[i % COUNT(units)] << number,
			     align = i < COUNT(units) ? t->align : t->page;

		*trial = (struct image_trial){
			.flags = CL_MEM_READ_WRITE,
			.pixel = number,
			.offset = (unsigned int)((align > unit ? align : unit) % t->page),
			.unit = t->is_2d ? (unsigned int)unit : 0,
			.width = WIDTH,
			.height = t->is_2d ? HEIGHT : 1,
		};
		if (image_rows_pass(t, trial)) {
			rule->unit[number] = (unsigned int)unit;
			if (align > rule->align)
				rule->align = (unsigned int)align;
			return true;
		}
	}
	return false;
}

static void image_try_accesses(struct image_test *t, struct image_trial trial,
			       struct image_rule *rule)
{
	for (unsigned int access = 0; access < HOST_RULE_ACCESSES; access++) {
		struct image_trial at_page = trial;
		bool passes;

		trial.flags = at_page.flags = host_rule_flags(access);
		at_page.offset = 0;
		passes = image_run(t, &trial) == 1;
		if (!passes && trial.offset && !image_is_of_part(t->from) &&
		    image_run(t, &at_page) == 1) {
			rule->page_accesses |= 1u << access;
			passes = true;
		}
		if (passes)
			rule->accesses |= 1u << access;
	}
}

static void image_try_sizes(struct image_test *t, struct image_trial trial, struct image_rule *rule)
{
	for (size_t i = 0; i < COUNT(sides); i++) {
		trial.width = t->is_2d ? sides[i] : sides[i] * sides[i];
		trial.height = t->is_2d ? sides[i] : 1;
		if (image_run(t, &trial) != 1)
			return;
		rule->width = trial.width;
		rule->height = trial.height;
	}
}

/* 1: zero copy, 0: not, or an error of OpenCL. */
static cl_int image_try_all(struct image_test *t, struct image_rule *rule)
{
	struct image_trial rgba8, other;

	if (!image_try_pixel(t, RGBA8, rule, &rgba8))
		return t->has_copied ? 0 : image_run(t, &rgba8);
	for (unsigned int number = 0; number < IMAGE_PIXELS; number++)
		if (number != RGBA8)
			image_try_pixel(t, number, rule, &other);
	image_try_accesses(t, rgba8, rule);
	image_try_sizes(t, rgba8, rule);
	rule->is_all = t->how.device->facts.rule.own_address && !t->has_copied;
	return 1;
}

/* clCreateImage came with OpenCL 1.2. */
static bool image_is_supported(cl_device_id device)
{
	cl_bool has = CL_FALSE;

	next.clGetDeviceInfo(device, CL_DEVICE_IMAGE_SUPPORT, sizeof(has), &has, NULL);
	return has && device_version(device) >= CL_MAKE_VERSION(1, 2, 0);
}

bool selftest_image(const struct device *device, const struct method_ops *ops, unsigned int number,
		    struct image_rule *rule)
{
	const enum image_from from = (enum image_from)(number / 2);
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct image_test t = {
		.how = { .ops = ops,
			 .device = device,
			 .align = device->facts.rule.align,
			 .base_align = device->base_align },
		.from = from,
		.is_2d = number % 2,
		.page = page,
		.align = from < IMAGE_OF_DMABUF ? device->facts.rule.align : page,
		.origin = image_is_of_part(from) ? device->base_align : 0,
	};
	cl_int result;

	*rule = (struct image_rule){ .align = 1 };
	if (!image_is_supported(device->id))
		return true;
	result = session_begin_queue(&t.session, &device->id, 1);
	if (!result)
		result = session_build(&t.session, image_source, t.is_2d ? KERNEL_2D : KERNEL_1D);
	if (!result)
		result = image_try_all(&t, rule);
	if (result == 1 || !result)
		rule->found = result ? IMAGE_ZERO_COPY : IMAGE_COPIES;
	session_end(&t.session);
	return !selftest_is_transient(result);
}
