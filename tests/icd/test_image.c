/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The layer makes 2D images on imports for drivers without cl_khr_image2d_from_buffer.  The layer
 * refuses an image exactly as a driver with the extension does: each row is tried on both.
 */
#include "access.h"

#define RGBA8                          \
	{                              \
		CL_RGBA, CL_UNORM_INT8 \
	}
#define WIDTH 16
#define HEIGHT 8
#define PITCH 80

/* The parent of an image. */
enum parent { IMPORT, PART, IMAGE_2D, IMAGE_1D };

/* An image with a single mistake.  A field of value 0 means the usual value. */
struct row {
	cl_int wanted;
	enum parent parent;
	cl_mem_flags import_flags, flags;
	cl_image_format format;
	size_t width, height, row_pitch, slice_pitch;
	cl_uint mips, samples;
	cl_mem_object_type type;
	size_t offset; /* of the import in the first page */
	bool host_ptr, no_format, other_context, no_width, no_height;
};

static const struct row rows[] = {
	{ .wanted = CL_SUCCESS },
	{ .wanted = CL_SUCCESS, .parent = PART },
	{ .wanted = CL_SUCCESS, .import_flags = CL_MEM_READ_ONLY },
	{ .wanted = CL_SUCCESS, .import_flags = CL_MEM_READ_ONLY, .flags = CL_MEM_READ_ONLY },
	{ .wanted = CL_SUCCESS, .import_flags = CL_MEM_WRITE_ONLY, .flags = CL_MEM_WRITE_ONLY },
	{ .wanted = CL_SUCCESS, .flags = CL_MEM_READ_ONLY | CL_MEM_HOST_NO_ACCESS },
	{ .wanted = CL_SUCCESS, .parent = IMAGE_2D, .row_pitch = PITCH },
	{ .wanted = CL_SUCCESS,
	  .parent = IMAGE_2D,
	  .row_pitch = PITCH,
	  .format = { CL_sRGBA, CL_UNORM_INT8 } },

	{ .wanted = CL_INVALID_CONTEXT, .other_context = true },
	{ .wanted = CL_INVALID_CONTEXT, .parent = PART, .other_context = true },
	{ .wanted = CL_INVALID_VALUE,
	  .import_flags = CL_MEM_READ_ONLY,
	  .flags = CL_MEM_READ_WRITE },
	{ .wanted = CL_INVALID_VALUE,
	  .import_flags = CL_MEM_READ_ONLY,
	  .flags = CL_MEM_WRITE_ONLY },
	{ .wanted = CL_INVALID_VALUE,
	  .import_flags = CL_MEM_WRITE_ONLY,
	  .flags = CL_MEM_READ_WRITE },
	{ .wanted = CL_INVALID_VALUE,
	  .import_flags = CL_MEM_WRITE_ONLY,
	  .flags = CL_MEM_READ_ONLY },
	{ .wanted = CL_INVALID_VALUE,
	  .parent = PART,
	  .import_flags = CL_MEM_READ_ONLY,
	  .flags = CL_MEM_READ_WRITE },
	{ .wanted = CL_INVALID_VALUE, .flags = CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY },
	{ .wanted = CL_INVALID_VALUE,
	  .import_flags = CL_MEM_HOST_WRITE_ONLY,
	  .flags = CL_MEM_HOST_READ_ONLY },
	{ .wanted = CL_INVALID_VALUE,
	  .import_flags = CL_MEM_HOST_READ_ONLY,
	  .flags = CL_MEM_HOST_WRITE_ONLY },
	{ .wanted = CL_INVALID_VALUE,
	  .import_flags = CL_MEM_HOST_NO_ACCESS,
	  .flags = CL_MEM_HOST_READ_ONLY },
	{ .wanted = CL_INVALID_VALUE,
	  .import_flags = CL_MEM_HOST_NO_ACCESS,
	  .flags = CL_MEM_HOST_WRITE_ONLY },
	{ .wanted = CL_INVALID_VALUE, .flags = CL_MEM_ALLOC_HOST_PTR },
	{ .wanted = CL_INVALID_VALUE, .flags = CL_MEM_USE_HOST_PTR },
	{ .wanted = CL_INVALID_VALUE, .flags = CL_MEM_COPY_HOST_PTR },
	{ .wanted = CL_INVALID_HOST_PTR, .host_ptr = true },
	{ .wanted = CL_INVALID_IMAGE_FORMAT_DESCRIPTOR, .no_format = true },
	{ .wanted = CL_IMAGE_FORMAT_NOT_SUPPORTED, .format = { CL_INTENSITY, CL_UNORM_INT8 } },
	{ .wanted = CL_INVALID_IMAGE_DESCRIPTOR, .no_width = true },
	{ .wanted = CL_INVALID_IMAGE_DESCRIPTOR, .no_height = true },
	{ .wanted = CL_INVALID_IMAGE_DESCRIPTOR, .mips = 1 },
	{ .wanted = CL_INVALID_IMAGE_DESCRIPTOR, .samples = 1 },
	{ .wanted = CL_INVALID_IMAGE_DESCRIPTOR, .slice_pitch = PITCH * HEIGHT },
	{ .wanted = CL_INVALID_IMAGE_DESCRIPTOR, .row_pitch = WIDTH * 4 - 4 },
	{ .wanted = CL_INVALID_IMAGE_DESCRIPTOR, .row_pitch = WIDTH * 4 + 2 },
	{ .wanted = CL_INVALID_IMAGE_DESCRIPTOR, .height = SIZE / (WIDTH * 4) + 1 },
	{ .wanted = CL_INVALID_IMAGE_DESCRIPTOR, .parent = PART, .height = 4096 / (WIDTH * 4) + 1 },
	{ .wanted = CL_INVALID_IMAGE_DESCRIPTOR, .type = CL_MEM_OBJECT_IMAGE1D },
	{ .wanted = CL_INVALID_IMAGE_DESCRIPTOR, .parent = IMAGE_1D },
	{ .wanted = CL_INVALID_IMAGE_DESCRIPTOR,
	  .parent = IMAGE_2D,
	  .row_pitch = PITCH,
	  .width = WIDTH - 1 },
	{ .wanted = CL_INVALID_IMAGE_DESCRIPTOR,
	  .parent = IMAGE_2D,
	  .row_pitch = PITCH,
	  .height = HEIGHT - 1 },
	{ .wanted = CL_INVALID_IMAGE_DESCRIPTOR, .parent = IMAGE_2D, .row_pitch = PITCH + 4 },
	{ .wanted = CL_INVALID_IMAGE_FORMAT_DESCRIPTOR,
	  .parent = IMAGE_2D,
	  .row_pitch = PITCH,
	  .format = { CL_RGBA, CL_UNSIGNED_INT8 } },
	{ .wanted = CL_INVALID_IMAGE_FORMAT_DESCRIPTOR,
	  .parent = IMAGE_2D,
	  .row_pitch = PITCH,
	  .format = { CL_BGRA, CL_UNORM_INT8 } },
	{ .wanted = CL_INVALID_IMAGE_DESCRIPTOR,
	  .parent = IMAGE_2D,
	  .type = CL_MEM_OBJECT_IMAGE1D_BUFFER },
	{ .wanted = CL_INVALID_VALUE,
	  .parent = PART,
	  .import_flags = CL_MEM_READ_ONLY,
	  .flags = CL_MEM_READ_WRITE,
	  .type = CL_MEM_OBJECT_IMAGE1D_BUFFER },
	{ .wanted = CL_INVALID_IMAGE_DESCRIPTOR,
	  .parent = PART,
	  .width = 4096,
	  .type = CL_MEM_OBJECT_IMAGE1D_BUFFER },

	{ .wanted = CL_SUCCESS, .offset = 4 },
	{ .wanted = CL_SUCCESS, .offset = 2, .format = { CL_R, CL_UNORM_INT16 } },
	{ .wanted = CL_SUCCESS, .offset = 16, .format = { CL_RGBA, CL_FLOAT } },
	{ .wanted = CL_INVALID_IMAGE_FORMAT_DESCRIPTOR, .offset = 2 },
	{ .wanted = CL_INVALID_IMAGE_FORMAT_DESCRIPTOR,
	  .offset = 8,
	  .format = { CL_RGBA, CL_FLOAT } },
	{ .wanted = CL_INVALID_IMAGE_FORMAT_DESCRIPTOR, .offset = 1, .parent = PART },
	{ .wanted = CL_INVALID_IMAGE_FORMAT_DESCRIPTOR,
	  .offset = 2,
	  .type = CL_MEM_OBJECT_IMAGE1D_BUFFER },
	{ .wanted = CL_INVALID_IMAGE_FORMAT_DESCRIPTOR,
	  .offset = 2,
	  .parent = PART,
	  .type = CL_MEM_OBJECT_IMAGE1D_BUFFER },
};

/* An image of the usual size and pitch. */
static cl_mem usual_image(cl_mem_object_type type, cl_mem buffer)
{
	const cl_image_format format = RGBA8;
	const cl_image_desc desc = { .image_type = type,
				     .image_width = WIDTH,
				     .image_height = HEIGHT,
				     .image_row_pitch = type == CL_MEM_OBJECT_IMAGE2D ? PITCH : 0,
				     .mem_object = buffer };
	cl_int err;
	cl_mem made = cl.clCreateImage(fix.context, 0, &format, &desc, NULL, &err);

	EXPECT_EQ(err, CL_SUCCESS);
	return made;
}

static cl_mem row_create_parent(enum parent parent, cl_mem import)
{
	switch (parent) {
	case PART:
		return fixture_create_sub_buffer(import, 4096, 4096);
	case IMAGE_2D:
		return usual_image(CL_MEM_OBJECT_IMAGE2D, import);
	case IMAGE_1D:
		return usual_image(CL_MEM_OBJECT_IMAGE1D_BUFFER, import);
	case IMPORT:
		break;
	}
	EXPECT_EQ(cl.clRetainMemObject(import), CL_SUCCESS);
	return import;
}

static cl_mem row_create_image(const struct row *r, cl_context context, cl_mem parent, cl_int *err)
{
	static const cl_image_format usual = RGBA8;
	static unsigned char host[SIZE];
	const cl_image_desc desc = {
		.image_type = r->type ? r->type : CL_MEM_OBJECT_IMAGE2D,
		.image_width = r->width ? r->width : (r->no_width ? 0 : WIDTH),
		.image_height = r->height ? r->height : (r->no_height ? 0 : HEIGHT),
		.image_row_pitch = r->row_pitch,
		.image_slice_pitch = r->slice_pitch,
		.num_mip_levels = r->mips,
		.num_samples = r->samples,
		.mem_object = parent,
	};
	const cl_image_format *format = r->format.image_channel_order ? &r->format : &usual;

	return cl.clCreateImage(context, r->flags, r->no_format ? NULL : format, &desc,
				r->host_ptr ? host : NULL, err);
}

static void expect_row(const struct row *r)
{
	cl_int err = 1;
	cl_mem import = fixture_import_host(r->import_flags, pages_map(3) + r->offset, SIZE);
	cl_mem parent = row_create_parent(r->parent, import), made;
	cl_context other = cl.clCreateContext(NULL, fix.num_devices, fix.device, NULL, NULL, NULL);
	unsigned notices = fix.notices;

	made = row_create_image(r, r->other_context ? other : fix.context, parent, &err);
	if (err != r->wanted)
		printf("# row %td: %s\n", r - rows, fix.notice);
	EXPECT_EQ(err, r->wanted);
	EXPECT_EQ(made != NULL, err == CL_SUCCESS);
	EXPECT_EQ(fix.notices - notices, err != CL_SUCCESS);
	if (made)
		EXPECT_EQ(cl.clReleaseMemObject(made), CL_SUCCESS);
	EXPECT_EQ(cl.clReleaseMemObject(parent), CL_SUCCESS);
	EXPECT_EQ(cl.clReleaseMemObject(import), CL_SUCCESS);
	EXPECT_EQ(cl.clReleaseContext(other), CL_SUCCESS);
}

static void expect_rows(bool native)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		fixture_reset();
		stub_set(STUB_IMAGE2D_FROM_BUFFER, native);
		fixture_open();
		expect_row(&rows[i]);
		fixture_close();
	}
}

TEST(driver_checks,
     "A driver that makes 2D images from buffers returns the specification's errors.")
{
	expect_rows(true);
}

TEST(layer_checks,
     "The layer returns the specification's errors for 2D images that the layer makes.")
{
	expect_rows(false);
}

TEST(view, "An image made from an image shows the pixels of the first image.")
{
	const struct row r = { .wanted = CL_SUCCESS,
			       .parent = IMAGE_2D,
			       .format = { CL_sRGBA, CL_UNORM_INT8 } };
	unsigned char *memory;
	cl_mem mem, first, second, out;
	cl_kernel kernel;
	const cl_uint width = 1, height = 2;
	unsigned char seen[8];
	cl_int err;

	fixture_reset();
	fixture_open();
	memory = pages_map(2);
	mem = fixture_import_host(0, memory, SIZE);
	first = usual_image(CL_MEM_OBJECT_IMAGE2D, mem);
	second = row_create_image(&r, fix.context, first, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	out = cl.clCreateBuffer(fix.context, 0, 64, NULL, NULL);
	kernel = fixture_create_kernel("image_to_buffer");
	cl.clSetKernelArg(kernel, 0, sizeof(second), &second);
	cl.clSetKernelArg(kernel, 1, sizeof(out), &out);
	cl.clSetKernelArg(kernel, 2, sizeof(width), &width);
	cl.clSetKernelArg(kernel, 3, sizeof(height), &height);
	memory[PITCH] = 42; /* the first pixel of the second row */
	EXPECT_EQ(fixture_enqueue(fix.queue, kernel, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clEnqueueReadBuffer(fix.queue, out, CL_TRUE, 0, 8, seen, 0, NULL, NULL),
		  CL_SUCCESS);
	EXPECT_EQ(seen[4], 42);
	cl.clReleaseKernel(kernel);
	cl.clReleaseMemObject(out);
	cl.clReleaseMemObject(second);
	cl.clReleaseMemObject(first);
	cl.clReleaseMemObject(mem);
	fixture_close();
}

TEST(too_large, "The layer refuses an image that exceeds its import, without asking the driver.")
{
	static const struct row large[] = {
		{ .height = (size_t)1 << 20, .row_pitch = SIZE },
		{ .width = (size_t)1 << 20, .height = (size_t)1 << 20 },
		{ .width = SIZE_MAX / 4 + 2, .height = 1 },
		{ .height = 2, .row_pitch = (size_t)1 << 62 },
		{ .row_pitch = WIDTH * 4 + 1 },
	};
	unsigned long before;
	cl_mem import, part, usual;
	cl_int err = 1;

	fixture_reset();
	fixture_open();
	import = fixture_import_host(0, pages_map(2), SIZE);
	usual = usual_image(CL_MEM_OBJECT_IMAGE2D, import); /* runs the self-test for images */
	part = row_create_parent(PART, import);
	before = stub_calls("clCreateImage");
	for (size_t i = 0; i < sizeof(large) / sizeof(large[0]); i++) {
		EXPECT(!row_create_image(&large[i], fix.context, i & 1 ? part : import, &err));
		EXPECT_EQ(err, CL_INVALID_IMAGE_DESCRIPTOR);
	}
	EXPECT_EQ(stub_calls("clCreateImage"), before);
	cl.clReleaseMemObject(part);
	cl.clReleaseMemObject(usual);
	cl.clReleaseMemObject(import);
	fixture_close();
}

TEST(failed_query, "If a query of the image's parent fails, the image fails with the same error.")
{
	static const struct row of_import = { .wanted = CL_SUCCESS, .parent = IMPORT };
	static const struct row of_part = { .parent = PART, .type = CL_MEM_OBJECT_IMAGE1D_BUFFER };

	for (unsigned long nth = 1; nth <= 8; nth++) {
		const struct row *r = nth & 1 ? &of_import : &of_part;
		cl_mem mem, parent;
		cl_int err = 1;

		fixture_reset();
		fixture_open();
		mem = fixture_import_host(0, pages_map(2), SIZE);
		parent = row_create_parent(r->parent, mem);
		stub_fail("clGetMemObjectInfo", (nth + 1) / 2, CL_OUT_OF_RESOURCES);
		EXPECT(!row_create_image(r, fix.context, parent, &err));
		EXPECT(stub_failed());
		EXPECT_EQ(err, CL_OUT_OF_RESOURCES);
		EXPECT(strstr(fix.notice, "clGetMemObjectInfo"));
		cl.clReleaseMemObject(parent);
		cl.clReleaseMemObject(mem);
		fixture_close();
	}
}
