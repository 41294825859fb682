/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The layer makes 2D images on imports for drivers without cl_khr_image2d_from_buffer.  The layer
 * refuses an image exactly as a driver with the extension does: each row is tried on both.  Images of images are the
 * driver's alone.
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
	const char *name;
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
	{ "import", CL_SUCCESS, .parent = IMPORT },
	{ "sub_buffer", CL_SUCCESS, .parent = PART },
	{ "read_only_import", CL_SUCCESS, .import_flags = CL_MEM_READ_ONLY },
	{ "read_only", CL_SUCCESS, .import_flags = CL_MEM_READ_ONLY, .flags = CL_MEM_READ_ONLY },
	{ "write_only", CL_SUCCESS, .import_flags = CL_MEM_WRITE_ONLY, .flags = CL_MEM_WRITE_ONLY },
	{ "host_no_access", CL_SUCCESS, .flags = CL_MEM_READ_ONLY | CL_MEM_HOST_NO_ACCESS },
	{ "of_image", CL_SUCCESS, .parent = IMAGE_2D, .row_pitch = PITCH },
	{ "of_image_srgb", CL_SUCCESS, .parent = IMAGE_2D, .row_pitch = PITCH,
	  .format = { CL_sRGBA, CL_UNORM_INT8 } },

	{ "other_context", CL_INVALID_CONTEXT, .other_context = true },
	{ "sub_buffer_other_context", CL_INVALID_CONTEXT, .parent = PART, .other_context = true },
	{ "read_only_read_write", CL_INVALID_VALUE, .import_flags = CL_MEM_READ_ONLY,
	  .flags = CL_MEM_READ_WRITE },
	{ "read_only_write_only", CL_INVALID_VALUE, .import_flags = CL_MEM_READ_ONLY,
	  .flags = CL_MEM_WRITE_ONLY },
	{ "write_only_read_write", CL_INVALID_VALUE, .import_flags = CL_MEM_WRITE_ONLY,
	  .flags = CL_MEM_READ_WRITE },
	{ "write_only_read_only", CL_INVALID_VALUE, .import_flags = CL_MEM_WRITE_ONLY,
	  .flags = CL_MEM_READ_ONLY },
	{ "sub_buffer_read_only_read_write", CL_INVALID_VALUE, .parent = PART,
	  .import_flags = CL_MEM_READ_ONLY, .flags = CL_MEM_READ_WRITE },
	{ "two_accesses", CL_INVALID_VALUE, .flags = CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY },
	{ "host_write_only_read_only", CL_INVALID_VALUE, .import_flags = CL_MEM_HOST_WRITE_ONLY,
	  .flags = CL_MEM_HOST_READ_ONLY },
	{ "host_read_only_write_only", CL_INVALID_VALUE, .import_flags = CL_MEM_HOST_READ_ONLY,
	  .flags = CL_MEM_HOST_WRITE_ONLY },
	{ "host_no_access_read_only", CL_INVALID_VALUE, .import_flags = CL_MEM_HOST_NO_ACCESS,
	  .flags = CL_MEM_HOST_READ_ONLY },
	{ "host_no_access_write_only", CL_INVALID_VALUE, .import_flags = CL_MEM_HOST_NO_ACCESS,
	  .flags = CL_MEM_HOST_WRITE_ONLY },
	{ "alloc_host_ptr", CL_INVALID_VALUE, .flags = CL_MEM_ALLOC_HOST_PTR },
	{ "use_host_ptr", CL_INVALID_VALUE, .flags = CL_MEM_USE_HOST_PTR },
	{ "copy_host_ptr", CL_INVALID_VALUE, .flags = CL_MEM_COPY_HOST_PTR },
	{ "host_ptr", CL_INVALID_HOST_PTR, .host_ptr = true },
	{ "no_format", CL_INVALID_IMAGE_FORMAT_DESCRIPTOR, .no_format = true },
	{ "unsupported_format", CL_IMAGE_FORMAT_NOT_SUPPORTED,
	  .format = { CL_INTENSITY, CL_UNORM_INT8 } },
	{ "no_width", CL_INVALID_IMAGE_DESCRIPTOR, .no_width = true },
	{ "no_height", CL_INVALID_IMAGE_DESCRIPTOR, .no_height = true },
	{ "mips", CL_INVALID_IMAGE_DESCRIPTOR, .mips = 1 },
	{ "samples", CL_INVALID_IMAGE_DESCRIPTOR, .samples = 1 },
	{ "slice_pitch", CL_INVALID_IMAGE_DESCRIPTOR, .slice_pitch = PITCH * HEIGHT },
	{ "row_pitch_small", CL_INVALID_IMAGE_DESCRIPTOR, .row_pitch = WIDTH * 4 - 4 },
	{ "row_pitch_odd", CL_INVALID_IMAGE_DESCRIPTOR, .row_pitch = WIDTH * 4 + 2 },
	{ "beyond_import", CL_INVALID_IMAGE_DESCRIPTOR, .height = SIZE / (WIDTH * 4) + 1 },
	{ "beyond_sub_buffer", CL_INVALID_IMAGE_DESCRIPTOR, .parent = PART,
	  .height = 4096 / (WIDTH * 4) + 1 },
	{ "image_1d", CL_INVALID_IMAGE_DESCRIPTOR, .type = CL_MEM_OBJECT_IMAGE1D },
	{ "of_image_1d", CL_INVALID_IMAGE_DESCRIPTOR, .parent = IMAGE_1D },
	{ "of_image_width", CL_INVALID_IMAGE_DESCRIPTOR, .parent = IMAGE_2D, .row_pitch = PITCH,
	  .width = WIDTH - 1 },
	{ "of_image_height", CL_INVALID_IMAGE_DESCRIPTOR, .parent = IMAGE_2D, .row_pitch = PITCH,
	  .height = HEIGHT - 1 },
	{ "of_image_pitch", CL_INVALID_IMAGE_DESCRIPTOR, .parent = IMAGE_2D,
	  .row_pitch = PITCH + 4 },
	{ "of_image_type", CL_INVALID_IMAGE_FORMAT_DESCRIPTOR, .parent = IMAGE_2D,
	  .row_pitch = PITCH, .format = { CL_RGBA, CL_UNSIGNED_INT8 } },
	{ "of_image_order", CL_INVALID_IMAGE_FORMAT_DESCRIPTOR, .parent = IMAGE_2D,
	  .row_pitch = PITCH, .format = { CL_BGRA, CL_UNORM_INT8 } },
	{ "of_image_image_1d_buffer", CL_INVALID_IMAGE_DESCRIPTOR, .parent = IMAGE_2D,
	  .type = CL_MEM_OBJECT_IMAGE1D_BUFFER },
	{ "image_1d_buffer_flags", CL_INVALID_VALUE, .parent = PART,
	  .import_flags = CL_MEM_READ_ONLY, .flags = CL_MEM_READ_WRITE,
	  .type = CL_MEM_OBJECT_IMAGE1D_BUFFER },
	{ "image_1d_buffer_beyond", CL_INVALID_IMAGE_DESCRIPTOR, .parent = PART, .width = 4096,
	  .type = CL_MEM_OBJECT_IMAGE1D_BUFFER },

	{ "offset_4", CL_SUCCESS, .offset = 4 },
	{ "offset_2_r16", CL_SUCCESS, .offset = 2, .format = { CL_R, CL_UNORM_INT16 } },
	{ "offset_16_float", CL_SUCCESS, .offset = 16, .format = { CL_RGBA, CL_FLOAT } },
	{ "offset_2", CL_INVALID_IMAGE_FORMAT_DESCRIPTOR, .offset = 2 },
	{ "offset_8_float", CL_INVALID_IMAGE_FORMAT_DESCRIPTOR, .offset = 8,
	  .format = { CL_RGBA, CL_FLOAT } },
	{ "offset_1_sub_buffer", CL_INVALID_IMAGE_FORMAT_DESCRIPTOR, .offset = 1, .parent = PART },
	{ "offset_2_image_1d_buffer", CL_INVALID_IMAGE_FORMAT_DESCRIPTOR, .offset = 2,
	  .type = CL_MEM_OBJECT_IMAGE1D_BUFFER },
	{ "offset_2_sub_buffer_image_1d_buffer", CL_INVALID_IMAGE_FORMAT_DESCRIPTOR, .offset = 2,
	  .parent = PART, .type = CL_MEM_OBJECT_IMAGE1D_BUFFER },
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

/* Whether the driver has cl_khr_image2d_from_buffer. */
static const struct image_maker {
	const char *name;
	bool is_driver;
} image_makers[] = { { "by_driver", true }, { "by_layer", false } };

TEST_EACH_PAIR(checks, struct row, rows, struct image_maker, image_makers,
	       "An image on an import succeeds, or returns the specification's error.")
{
	const bool is_refused = row->parent >= IMAGE_2D && !row->type && !column->is_driver;
	const cl_int wanted = is_refused ? CL_INVALID_OPERATION : row->wanted;
	cl_mem import, parent, made;
	unsigned notices;
	cl_context other;
	cl_int err = 1;

	fixture_reset();
	stub_set(STUB_IMAGE2D_FROM_BUFFER, column->is_driver);
	fixture_open();
	import = fixture_import_host(row->import_flags, pages_map(3) + row->offset, SIZE);
	parent = row_create_parent(row->parent, import);
	other = cl.clCreateContext(NULL, fix.num_devices, fix.device, NULL, NULL, NULL);
	notices = fix.notices;
	made = row_create_image(row, row->other_context ? other : fix.context, parent, &err);
	if (err != wanted)
		printf("# %s\n", fix.notice);
	EXPECT_EQ(err, wanted);
	EXPECT_EQ(made != NULL, err == CL_SUCCESS);
	EXPECT_EQ(fix.notices - notices, err != CL_SUCCESS);
	if (made)
		EXPECT_EQ(cl.clReleaseMemObject(made), CL_SUCCESS);
	EXPECT_EQ(cl.clReleaseMemObject(parent), CL_SUCCESS);
	EXPECT_EQ(cl.clReleaseMemObject(import), CL_SUCCESS);
	EXPECT_EQ(cl.clReleaseContext(other), CL_SUCCESS);
	fixture_close();
}

static const struct format_row {
	const char *name;
	cl_int error; /* the driver's, or 0: its own */
	cl_image_format format;
	const char *says;
} formats[] = {
	{ "order",
	  0,
	  { CL_INTENSITY, CL_UNORM_INT8 },
	  "clCreateImage: the driver has no images of CL_INTENSITY/CL_UNORM_INT8 "
	  "(CL_IMAGE_FORMAT_NOT_SUPPORTED); it has CL_R, CL_RG, CL_RGBA, CL_BGRA, CL_sRGBA with "
	  "CL_UNORM_INT8" },
	{ "type",
	  0,
	  { CL_R, CL_SNORM_INT16 },
	  "clCreateImage: the driver has no images of CL_R/CL_SNORM_INT16 "
	  "(CL_IMAGE_FORMAT_NOT_SUPPORTED); it has none with CL_SNORM_INT16" },
	{ "other_error",
	  CL_INVALID_OPERATION,
	  { CL_INTENSITY, CL_FLOAT }, /* PoCL 3.1 */
	  "clCreateImage: the driver has no images of CL_INTENSITY/CL_FLOAT "
	  "(CL_INVALID_OPERATION); it has CL_RGBA, CL_R with CL_FLOAT" },
	{ "listed", CL_OUT_OF_RESOURCES, RGBA8,
	  "clCreateImage: the driver's clCreateImage failed with CL_OUT_OF_RESOURCES" },
};

TEST_EACH_PAIR(formats, struct format_row, formats, struct image_maker, image_makers,
	       "If the driver has no images of a format, the message names the format, and those "
	       "of the channel type that the driver has.")
{
	const struct row r = { .format = row->format };
	unsigned long asked;
	cl_mem mem;
	cl_int err = 1;

	fixture_reset();
	stub_set(STUB_IMAGE2D_FROM_BUFFER, column->is_driver);
	fixture_open();
	mem = fixture_import_host(0, pages_map(3), SIZE);
	cl.clReleaseMemObject(usual_image(CL_MEM_OBJECT_IMAGE2D, mem)); /* runs the self-test */
	asked = stub_calls("clGetSupportedImageFormats");
	if (row->error)
		stub_fail("clCreateImage", 1, row->error);
	EXPECT(!row_create_image(&r, fix.context, mem, &err));
	EXPECT_EQ(err, row->error ? row->error : CL_IMAGE_FORMAT_NOT_SUPPORTED);
	if (strcmp(fix.notice, row->says))
		printf("# %s\n", fix.notice);
	EXPECT(!strcmp(fix.notice, row->says));
	EXPECT_EQ(stub_calls("clGetSupportedImageFormats"), asked + 2);
	cl.clReleaseMemObject(mem);
	fixture_close();
}

TEST(formats_not_asked, "The driver is not asked for its formats where the image is made.")
{
	cl_mem mem;

	fixture_reset();
	fixture_open();
	mem = fixture_import_host(0, pages_map(3), SIZE);
	cl.clReleaseMemObject(usual_image(CL_MEM_OBJECT_IMAGE2D, mem));
	EXPECT_EQ(stub_calls("clGetSupportedImageFormats"), 0);
	cl.clReleaseMemObject(mem);
	fixture_close();
}

TEST(view, "An image made from an image shows the pixels of the first image.")
{
	const struct row r = { .wanted = CL_SUCCESS,
			       .parent = IMAGE_2D,
			       .row_pitch = PITCH,
			       .format = { CL_sRGBA, CL_UNORM_INT8 } };
	unsigned char *memory;
	cl_mem mem, first, second, out;
	cl_kernel kernel;
	const cl_uint width = 1, height = 2;
	unsigned char seen[8];
	cl_int err;

	fixture_reset();
	stub_set(STUB_IMAGE2D_FROM_BUFFER, 1);
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

static const struct row too_large[] = {
	{ "height", .height = (size_t)1 << 20, .row_pitch = SIZE },
	{ "area_of_part", .parent = PART, .width = (size_t)1 << 20, .height = (size_t)1 << 20 },
	{ "width_overflows", .width = SIZE_MAX / 4 + 2, .height = 1 },
	{ "pitch_overflows_part", .parent = PART, .height = 2, .row_pitch = SIZE_MAX / 4 + 1 },
	{ "pitch_is_odd", .row_pitch = WIDTH * 4 + 1 },
};

TEST_EACH(too_large, struct row, too_large,
	  "The layer refuses an image that exceeds its import, without asking the driver.")
{
	unsigned long before;
	cl_mem import, parent, usual;
	cl_int err = 1;

	fixture_reset();
	fixture_open();
	import = fixture_import_host(0, pages_map(2), SIZE);
	usual = usual_image(CL_MEM_OBJECT_IMAGE2D, import); /* runs the self-test for images */
	parent = row_create_parent(row->parent, import);
	before = stub_calls("clCreateImage");
	EXPECT(!row_create_image(row, fix.context, parent, &err));
	EXPECT_EQ(err, CL_INVALID_IMAGE_DESCRIPTOR);
	EXPECT_EQ(stub_calls("clCreateImage"), before);
	cl.clReleaseMemObject(parent);
	cl.clReleaseMemObject(usual);
	cl.clReleaseMemObject(import);
	fixture_close();
}

static const struct row queried[] = {
	{ "of_import", .parent = IMPORT },
	{ "of_part", .parent = PART, .type = CL_MEM_OBJECT_IMAGE1D_BUFFER },
};

TEST_EACH(failed_query, struct row, queried,
	  "If a query of the image's parent fails, the image fails with the same error.")
{
	for (unsigned long nth = 1; nth <= 3; nth++) {
		cl_mem mem, parent;
		cl_int err = 1;

		fixture_reset();
		fixture_open();
		mem = fixture_import_host(0, pages_map(2), SIZE);
		parent = row_create_parent(row->parent, mem);
		stub_fail("clGetMemObjectInfo", nth, CL_OUT_OF_RESOURCES);
		EXPECT(!row_create_image(row, fix.context, parent, &err));
		EXPECT(stub_failed());
		EXPECT_EQ(err, CL_OUT_OF_RESOURCES);
		EXPECT(strstr(fix.notice, "clGetMemObjectInfo"));
		cl.clReleaseMemObject(parent);
		cl.clReleaseMemObject(mem);
		fixture_close();
	}
}

TEST(unknown_format,
     "An image on an import has a format whose size of a pixel the specification says.")
{
	const struct row r = { .format = { 0x10ff, CL_FLOAT } };
	cl_mem mem;
	cl_int err;

	fixture_reset();
	fixture_open();
	mem = fixture_import_host(0, pages_map(3), SIZE);
	EXPECT(!row_create_image(&r, fix.context, mem, &err));
	EXPECT_EQ(err, CL_IMAGE_FORMAT_NOT_SUPPORTED);
	EXPECT(strstr(fix.notice, "channel order 0x10ff/CL_FLOAT"));
	cl.clReleaseMemObject(mem);
	fixture_close();
}
