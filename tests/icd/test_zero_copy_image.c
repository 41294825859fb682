/* SPDX-License-Identifier: Apache-2.0 */
/* Zero copy of images on imports. */
#include "zero_copy.h"

TEST(images_read_only,
     "If a driver copies images that are only read, such images on imports are refused.")
{
	cl_mem mem, image;
	cl_int err = 1;

	zero_copy_open(STUB_COPYING_IMAGES_READ_ONLY, 1);
	mem = fixture_import_host(CL_MEM_READ_WRITE, pages_map(1), PAGE);
	EXPECT(!fixture_try_image(CL_MEM_READ_ONLY, mem, &err));
	EXPECT_EQ(err, CL_INVALID_OPERATION);
	EXPECT(strstr(fix.notice, "CL_MEM_READ_ONLY"));
	image = fixture_try_image(CL_MEM_READ_WRITE, mem, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	cl.clReleaseMemObject(image);
	cl.clReleaseMemObject(mem);
	fixture_close();
}

/* Whether the layer makes an image of four columns on an import at @offset of a page. */
static bool makes_image_for(cl_mem_flags flags, size_t offset, size_t rows)
{
	const cl_image_format format = { CL_RGBA, CL_UNSIGNED_INT8 };
	const cl_image_desc desc = {
		.image_type = CL_MEM_OBJECT_IMAGE2D,
		.image_width = 4,
		.image_height = rows,
		.image_row_pitch = 64,
	};
	cl_image_desc with_parent = desc;
	cl_mem mem = fixture_import_host(CL_MEM_READ_WRITE, pages_map(2) + offset, PAGE), image;
	cl_int err;

	with_parent.mem_object = mem;
	image = cl.clCreateImage(fix.context, flags, &format, &with_parent, NULL, &err);
	EXPECT_EQ(err, image ? CL_SUCCESS : CL_INVALID_OPERATION);
	if (image)
		cl.clReleaseMemObject(image);
	cl.clReleaseMemObject(mem);
	return image;
}

static bool makes_image(size_t offset, size_t rows)
{
	return makes_image_for(0, offset, rows);
}

TEST(images_read_only_within, "If a driver copies images that are only read and begin within a "
			      "page, those alone are refused.")
{
	zero_copy_open(STUB_COPYING_IMAGES_READ_ONLY, PAGE);
	EXPECT(makes_image_for(CL_MEM_READ_ONLY, 0, 4));
	EXPECT(!makes_image_for(CL_MEM_READ_ONLY, 64, 4));
	EXPECT(makes_image_for(CL_MEM_READ_WRITE, 64, 4));
	fixture_close();
}

TEST(images_read_only_of_part,
     "Where such a driver makes images of sub-buffers, those that are only read are made of a "
     "buffer over the part, wherever the import begins.")
{
	const cl_buffer_region region = { PAGE, PAGE };
	cl_mem mem, part, image;
	unsigned long buffers;
	cl_int err = 1;

	fixture_reset();
	stub_set(STUB_COPYING_IMAGES_READ_ONLY, PAGE);
	stub_set(STUB_IMAGE2D_FROM_BUFFER, 1);
	stub_set(STUB_PART_AT_PAGE, 1);
	fixture_open();
	mem = fixture_import_host(CL_MEM_READ_WRITE, pages_map(2), 2 * PAGE);
	part = cl.clCreateSubBuffer(mem, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	for (int only_read = 0; only_read < 2; only_read++) {
		image = fixture_try_image(0, part, &err); /* the first makes the record */
		cl.clReleaseMemObject(image);
		buffers = stub_calls("clCreateBuffer");
		image = fixture_try_image(only_read ? CL_MEM_READ_ONLY : 0, part, &err);
		EXPECT_EQ(err, CL_SUCCESS);
		EXPECT_EQ(stub_calls("clCreateBuffer"), buffers + (unsigned int)only_read);
		cl.clReleaseMemObject(image);
	}
	cl.clReleaseMemObject(part);
	cl.clReleaseMemObject(mem);
	fixture_close();
}

TEST(high_images,
     "If a driver copies high images, images above the highest that was tried are refused.")
{
	zero_copy_open(STUB_COPYING_IMAGES_ABOVE, 24);
	EXPECT(makes_image(0, 16));
	EXPECT(!makes_image(0, 25));
	EXPECT(strstr(fix.notice, "4x25"));
	EXPECT(!makes_image(0, 17));
	EXPECT(makes_image(0, 1));
	fixture_close();
}

TEST(unaligned_images,
     "If a driver copies images that begin within a page, such images on imports are refused.")
{
	zero_copy_open(STUB_COPYING_IMAGES_ALIGN, PAGE);
	EXPECT(makes_image(0, 4));
	EXPECT(!makes_image(64, 4));
	fixture_close();
}

/* Rows of images, and how many whole pixels a driver wants in a row. */
static const struct rows {
	const char *name;
	long wanted;
	cl_image_format format;
	size_t width, pitch; /* pixels, bytes */
	bool is_made;
} rows[] = {
	{ "whole", 256, { CL_RGBA, CL_UNSIGNED_INT8 }, 16, 1024, true },
	{ "whole_large_pixels", 256, { CL_RGBA, CL_FLOAT }, 16, 4096, true },
	{ "large_pixels", 256, { CL_RGBA, CL_FLOAT }, 16, 1024, false },
	{ "small_pixels", 256, { CL_R, CL_UNSIGNED_INT8 }, 16, 64, false },
	{ "packed", 256, { CL_RGBA, CL_UNSIGNED_INT8 }, 16, 0, false },
	{ "packed_below_all_that_was_tried", 2048, { CL_RGBA, CL_UNSIGNED_INT8 }, 1024, 0, false },
	{ "packed_short", 1024, { CL_RGBA, CL_UNSIGNED_INT8 }, 16, 0, false },
};

TEST_EACH(
	rows, struct rows, rows,
	"If a driver copies images unless rows are of so many whole pixels, images with other rows "
	"are refused, whatever the size of a pixel.")
{
	cl_image_desc desc = {
		.image_type = CL_MEM_OBJECT_IMAGE2D,
		.image_width = row->width,
		.image_height = 2,
		.image_row_pitch = row->pitch,
	};
	cl_mem image;
	cl_int err;

	zero_copy_open(STUB_COPYING_IMAGES_ROWS, row->wanted);
	desc.mem_object = fixture_import_host(CL_MEM_READ_WRITE, pages_map(2), 2 * PAGE);
	image = cl.clCreateImage(fix.context, 0, &row->format, &desc, NULL, &err);
	EXPECT_EQ(err, row->is_made ? CL_SUCCESS : CL_INVALID_OPERATION);
	if (image)
		cl.clReleaseMemObject(image);
	cl.clReleaseMemObject(desc.mem_object);
	fixture_close();
}

TEST(rows_tight,
     "If a driver copies images whose rows have no gap behind, such images are refused.")
{
	const cl_image_format format = { CL_RGBA, CL_UNSIGNED_INT8 };
	cl_image_desc desc = {
		.image_type = CL_MEM_OBJECT_IMAGE2D,
		.image_width = 64,
		.image_height = 2,
	};
	cl_int err;

	zero_copy_open(STUB_COPYING_IMAGES_TIGHT, 1);
	desc.mem_object = fixture_import_host(CL_MEM_READ_WRITE, pages_map(2), 2 * PAGE);
	EXPECT(!cl.clCreateImage(fix.context, 0, &format, &desc, NULL, &err));
	EXPECT_EQ(err, CL_INVALID_OPERATION);
	desc.image_row_pitch = 256;
	EXPECT(!cl.clCreateImage(fix.context, 0, &format, &desc, NULL, &err));
	EXPECT_EQ(err, CL_INVALID_OPERATION);
	cl.clReleaseMemObject(desc.mem_object);
	fixture_close();
}

TEST(once_an_image, "Images are tested once in a process.")
{
	unsigned long kernels;

	zero_copy_open(STUB_NUM_OPTIONS, 0);
	EXPECT(makes_image(0, 16));
	kernels = stub_calls("clEnqueueNDRangeKernel");
	EXPECT(makes_image(0, 16));
	EXPECT_EQ(stub_calls("clEnqueueNDRangeKernel"), kernels);
	fixture_close();
}
