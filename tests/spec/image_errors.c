/* SPDX-License-Identifier: Apache-2.0 */
/* What OpenCL forbids of images made from buffers, and so of images made from imports. */
#include "kernels.h"
#include "object.h"

static cl_image_desc image_errors_desc_1d(cl_mem buffer)
{
	return (cl_image_desc){
		.image_type = CL_MEM_OBJECT_IMAGE1D_BUFFER,
		.image_width = BYTES / PIXEL,
		.buffer = buffer,
	};
}

static cl_mem image_errors_import(void)
{
	return spec_import_host(CL_MEM_READ_WRITE, spec_map_pages(1), spec.page);
}

static cl_int image_errors_try(cl_mem mem, size_t width, size_t height, size_t pitch)
{
	const cl_image_desc desc = {
		.image_type = CL_MEM_OBJECT_IMAGE2D,
		.image_width = width,
		.image_height = height,
		.image_row_pitch = pitch,
		.buffer = mem,
	};
	cl_int error = 1;

	released_later(clCreateImage(spec.context, CL_MEM_READ_WRITE, &rgba, &desc, NULL, &error));
	return error;
}

/* As of any buffer: the picture has to fit. */
TEST(image_larger_than_the_import, R6_55)
{
	cl_mem mem;

	need_shape(IMAGE);
	mem = spec_import_host(CL_MEM_READ_WRITE, spec_map_pages(1), spec.page);
	EXPECT_EQ(image_errors_try(mem, 64, spec.page / 256, 256), CL_SUCCESS);
	EXPECT(image_errors_try(mem, 64, spec.page / 256 + 1, 256) < 0);
}

TEST(image_with_rows_shorter_than_its_width, R6_55)
{
	cl_mem mem;

	need_shape(IMAGE);
	mem = spec_import_host(CL_MEM_READ_WRITE, spec_map_pages(1), spec.page);
	EXPECT_EQ(image_errors_try(mem, 64, 4, 128), CL_INVALID_IMAGE_DESCRIPTOR);
}

static cl_int image_pointer_error(const cl_image_desc *desc, cl_mem_flags flags, void *pointer)
{
	cl_int error = 1;
	cl_mem image = clCreateImage(spec.context, flags, &rgba, desc, pointer, &error);

	released_later(image);
	EXPECT(!image);
	return error;
}

/* OpenCL: an image of a buffer has the memory of the buffer, and takes no pointer. */
static void image_expect_no_pointer(const cl_image_desc *desc)
{
	unsigned char *memory = spec_map_pages(1);

	EXPECT_EQ(image_pointer_error(desc, CL_MEM_READ_WRITE, memory), CL_INVALID_HOST_PTR);
	EXPECT(image_pointer_error(desc, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, memory) < 0);
	EXPECT(image_pointer_error(desc, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, memory) < 0);
	EXPECT(image_pointer_error(desc, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, NULL) < 0);
}

TEST(image_with_a_host_pointer, R6_55)
{
	cl_image_desc desc = { .image_type = CL_MEM_OBJECT_IMAGE2D,
			       .image_width = SIDE,
			       .image_height = SIDE,
			       .image_row_pitch = object_row_pitch() };

	need_shape(IMAGE);
	desc.buffer = image_errors_import();
	image_expect_no_pointer(&desc);
}

TEST(image_1d_with_a_host_pointer, R6_55)
{
	cl_image_desc desc;

	need_shape(IMAGE_1D);
	desc = image_errors_desc_1d(image_errors_import());
	image_expect_no_pointer(&desc);
}

TEST(image_without_errcode_ret, R6_55)
{
	cl_image_desc desc;
	cl_mem image, without_format;

	need_shape(IMAGE_1D);
	desc = image_errors_desc_1d(image_errors_import());
	image = released_later(clCreateImage(spec.context, 0, &rgba, &desc, NULL, NULL));
	EXPECT(image != NULL);
	without_format = released_later(clCreateImage(spec.context, 0, NULL, &desc, NULL, NULL));
	EXPECT(!without_format);
}

TEST(image_1d_longer_than_the_import, R6_55)
{
	cl_image_desc desc;
	cl_int error = 1;

	need_shape(IMAGE_1D);
	desc = image_errors_desc_1d(image_errors_import());
	desc.image_width = spec.page / PIXEL;
	released_later(clCreateImage(spec.context, 0, &rgba, &desc, NULL, &error));
	EXPECT_EQ(error, CL_SUCCESS);
	desc.image_width = spec.page / PIXEL + 1;
	released_later(clCreateImage(spec.context, 0, &rgba, &desc, NULL, &error));
	EXPECT(error < 0);
}

/* The picture ends before the end of a page, and the import too. */
TEST(image_larger_than_an_import_inside_of_a_page, R6_55)
{
	cl_mem mem;

	need_shape(IMAGE);
	mem = spec_import_host(CL_MEM_READ_WRITE, spec_map_pages(1), 1024);
	EXPECT_EQ(image_errors_try(mem, 64, 4, 256), CL_SUCCESS);
	EXPECT(image_errors_try(mem, 64, 5, 256) < 0);
	EXPECT(image_errors_try(mem, 64, 4, 512) < 0);
}

TEST(image_of_another_context, R6_55)
{
	cl_image_desc desc;
	cl_int error = 1;
	cl_context context;

	need_shape(IMAGE_1D);
	context = clCreateContext(NULL, 1, &spec.device, NULL, NULL, &error);
	EXPECT_EQ(error, CL_SUCCESS);
	spec_undo_later(spec_release_context, context);
	desc = image_errors_desc_1d(image_errors_import());
	released_later(clCreateImage(context, 0, &rgba, &desc, NULL, &error));
	EXPECT(error < 0);
}

static const struct image_errors_row {
	const char *name;
	cl_image_desc desc; /* of an image on a page */
} image_errors_rows[] = {
	{ "width_0", { .image_type = CL_MEM_OBJECT_IMAGE2D, .image_height = 4 } },
	{ "height_0", { .image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = 4 } },
	{ "rows_of_odd_length",
	  { .image_type = CL_MEM_OBJECT_IMAGE2D,
	    .image_width = 4,
	    .image_height = 4,
	    .image_row_pitch = 4 * PIXEL + 2 } },
	{ "samples",
	  { .image_type = CL_MEM_OBJECT_IMAGE2D,
	    .image_width = 4,
	    .image_height = 4,
	    .num_samples = 1 } },
	{ "mip_levels",
	  { .image_type = CL_MEM_OBJECT_IMAGE2D,
	    .image_width = 4,
	    .image_height = 4,
	    .num_mip_levels = 1 } },
	{ "1d_of_width_0", { .image_type = CL_MEM_OBJECT_IMAGE1D_BUFFER } },
};

TEST_EACH(no_image_with, struct image_errors_row, image_errors_rows, R6_55)
{
	cl_image_desc desc = row->desc;
	cl_int error = 1;

	need_shape(desc.image_type == CL_MEM_OBJECT_IMAGE2D ? IMAGE : IMAGE_1D);
	desc.buffer = image_errors_import();
	released_later(clCreateImage(spec.context, CL_MEM_READ_WRITE, &rgba, &desc, NULL, &error));
	EXPECT(error < 0);
}

TEST(no_image_without_a_format, R6_55)
{
	cl_image_desc desc;
	cl_int error = 1;

	need_shape(IMAGE_1D);
	desc = image_errors_desc_1d(image_errors_import());
	released_later(clCreateImage(spec.context, CL_MEM_READ_WRITE, NULL, &desc, NULL, &error));
	EXPECT_EQ(error, CL_INVALID_IMAGE_FORMAT_DESCRIPTOR);
}
