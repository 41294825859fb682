/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images on imports by a driver that makes images from buffers.  The driver may have bad habits, by
 * which the picture is wrong and no call fails.
 */
#include "zero_copy.h"

#define WIDTH 4
#define HEIGHT 4
#define PITCH 64
#define ORIGIN 128 /* bytes: the stub's CL_DEVICE_MEM_BASE_ADDR_ALIGN */

static void made_open(enum stub_option habit, long value)
{
	fixture_reset();
	stub_set(STUB_IMAGE2D_FROM_BUFFER, 1);
	stub_set(STUB_IMAGE1D_OF_PART, 1);
	if (habit < STUB_NUM_OPTIONS)
		stub_set(habit, value);
	fixture_open();
}

static cl_mem made_request(cl_mem_object_type type, cl_mem parent, size_t pitch, cl_mem_flags flags,
			   void *pointer, cl_int *err)
{
	const cl_image_format format = { CL_RGBA, CL_UNSIGNED_INT8 };
	const cl_image_desc desc = {
		.image_type = type,
		.image_width = WIDTH,
		.image_height = type == CL_MEM_OBJECT_IMAGE2D ? HEIGHT : 0,
		.image_row_pitch = type == CL_MEM_OBJECT_IMAGE2D ? pitch : 0,
		.mem_object = parent,
	};

	return cl.clCreateImage(fix.context, flags, &format, &desc, pointer, err);
}

static cl_mem made_try(cl_mem_object_type type, cl_mem parent, size_t pitch, cl_int *err)
{
	return made_request(type, parent, pitch, 0, NULL, err);
}

static cl_mem made_create(cl_mem_object_type type, cl_mem parent)
{
	cl_int err;
	cl_mem image = made_try(type, parent, PITCH, &err);

	if (err)
		printf("# %s\n", fix.notice);
	EXPECT_EQ(err, CL_SUCCESS);
	return image;
}

/* The byte at the begin of the image's row, as a kernel reads the byte. */
static unsigned char made_read(cl_mem_object_type type, cl_mem image, cl_uint row)
{
	const cl_uint width = 1, height = HEIGHT;
	cl_mem out = cl.clCreateBuffer(fix.context, 0, 64, NULL, NULL);
	cl_kernel kernel = fixture_create_kernel(
		type == CL_MEM_OBJECT_IMAGE2D ? "image_to_buffer" : "image1d_to_buffer");
	unsigned char seen[4 * HEIGHT] = { 0 };

	cl.clSetKernelArg(kernel, 0, sizeof(image), &image);
	cl.clSetKernelArg(kernel, 1, sizeof(out), &out);
	cl.clSetKernelArg(kernel, 2, sizeof(width), &width);
	if (type == CL_MEM_OBJECT_IMAGE2D)
		cl.clSetKernelArg(kernel, 3, sizeof(height), &height);
	EXPECT_EQ(fixture_enqueue(fix.queue, kernel, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clEnqueueReadBuffer(fix.queue, out, CL_TRUE, 0, sizeof(seen), seen, 0, NULL,
					 NULL),
		  CL_SUCCESS);
	cl.clReleaseKernel(kernel);
	cl.clReleaseMemObject(out);
	return seen[4 * row];
}

static cl_mem made_query_parent(cl_mem image)
{
	cl_mem parent = NULL;

	EXPECT_EQ(cl.clGetMemObjectInfo(image, CL_MEM_ASSOCIATED_MEMOBJECT, sizeof(parent), &parent,
					NULL),
		  CL_SUCCESS);
	return parent;
}

static const struct image_type {
	const char *name;
	cl_mem_object_type type;
} types[] = { { "2d", CL_MEM_OBJECT_IMAGE2D }, { "1d", CL_MEM_OBJECT_IMAGE1D_BUFFER } };

static const struct driver {
	const char *name;
	long at_root;
} drivers[] = { { "good", 0 }, { "at_root", 1 } };

TEST_EACH_PAIR(
	of_part, struct image_type, types, struct driver, drivers,
	"An image on a sub-buffer shows the sub-buffer, also if the driver ignores where the "
	"sub-buffer begins.")
{
	unsigned char *memory;
	cl_mem mem, part, image;

	made_open(STUB_IMAGES_AT_ROOT, column->at_root);
	memory = pages_map(2);
	mem = fixture_import_host(0, memory, 2 * PAGE);
	part = fixture_create_sub_buffer(mem, ORIGIN, PAGE);
	image = made_create(row->type, part);
	EXPECT(made_query_parent(image) == part);
	cl.clReleaseMemObject(part);
	cl.clReleaseMemObject(mem);
	memory[0] = 1;
	memory[ORIGIN] = 42;
	EXPECT_EQ(made_read(row->type, image, 0), 42);
	memory[ORIGIN] = 43;
	EXPECT_EQ(made_read(row->type, image, 0), 43);
	EXPECT(fixture_is_import(image) ||
	       cl.clEnqueueFillImage(fix.queue, image, NULL, NULL, NULL, 0, NULL, NULL) ==
		       CL_INVALID_OPERATION);
	cl.clReleaseMemObject(image);
	fixture_close();
}

TEST_EACH(with_a_pointer, struct image_type, types,
	  "An image that the driver makes of an import takes no pointer, and no flags that the "
	  "import "
	  "excludes, also if the driver looks at neither.")
{
	unsigned char *memory;
	cl_mem mem;
	cl_int err;

	made_open(STUB_ANY_POINTER, 1);
	memory = pages_map(2);
	mem = fixture_import_host(CL_MEM_READ_ONLY, memory, PAGE);
	EXPECT(!made_request(row->type, mem, PITCH, CL_MEM_READ_ONLY, memory + PAGE, &err));
	EXPECT_EQ(err, CL_INVALID_HOST_PTR);
	EXPECT(!made_request(row->type, mem, PITCH, CL_MEM_READ_WRITE, NULL, &err));
	EXPECT_EQ(err, CL_INVALID_VALUE);
	cl.clReleaseMemObject(made_create(row->type, mem));
	cl.clReleaseMemObject(mem);
	fixture_close();
}

TEST_EACH(by_driver, struct image_type, types,
	  "If the driver's images show their sub-buffer, the driver makes the image of the "
	  "sub-buffer itself.")
{
	cl_mem mem, part, image;

	made_open(STUB_NUM_OPTIONS, 0);
	mem = fixture_import_host(0, pages_map(2), 2 * PAGE);
	part = fixture_create_sub_buffer(mem, ORIGIN, PAGE);
	cl.clReleaseMemObject(made_create(row->type, part)); /* tests images */
	image = made_create(row->type, part);
	EXPECT_EQ(stub_arg("clCreateImage", 6), (uintptr_t)part);
	cl.clReleaseMemObject(image);
	cl.clReleaseMemObject(part);
	cl.clReleaseMemObject(mem);
	fixture_close();
}

TEST_EACH(
	unaligned, struct image_type, types,
	"If the driver's images begin at aligned addresses alone, an image on an import at another "
	"address is refused.")
{
	unsigned char *memory;
	cl_mem mem, image;
	cl_int err;

	made_open(STUB_IMAGES_ALIGN, PAGE);
	memory = pages_map(3);
	mem = fixture_import_host(0, memory + 64, PAGE);
	EXPECT(!made_try(row->type, mem, PITCH, &err));
	EXPECT_EQ(err, CL_INVALID_OPERATION);
	EXPECT(strstr(fix.notice, "not proved to be zero copy"));
	cl.clReleaseMemObject(mem);
	mem = fixture_import_host(0, memory, PAGE);
	image = made_create(row->type, mem);
	memory[0] = 42;
	EXPECT_EQ(made_read(row->type, image, 0), 42);
	cl.clReleaseMemObject(image);
	cl.clReleaseMemObject(mem);
	fixture_close();
}

TEST(pitch_ignored, "If the driver ignores the row pitch of images, 2D images are refused.")
{
	cl_mem mem;
	cl_int err;

	made_open(STUB_IMAGES_PACKED, 1);
	mem = fixture_import_host(0, pages_map(1), PAGE);
	EXPECT(!made_try(CL_MEM_OBJECT_IMAGE2D, mem, PITCH, &err));
	EXPECT_EQ(err, CL_INVALID_OPERATION);
	cl.clReleaseMemObject(mem);
	fixture_close();
}

static const struct pitch {
	const char *name;
	size_t bytes;
} pitches[] = { { "half", 2 * WIDTH }, { "a_pixel_less", 4 * WIDTH - 4 } };

TEST_EACH(pitch_below_width, struct pitch, pitches,
	  "If the driver takes a row pitch below the width, the image is refused all the same.")
{
	cl_mem mem;
	cl_int err;

	made_open(STUB_ANY_PITCH, 1);
	mem = fixture_import_host(0, pages_map(1), PAGE);
	EXPECT(!made_try(CL_MEM_OBJECT_IMAGE2D, mem, row->bytes, &err));
	EXPECT_EQ(err, CL_INVALID_IMAGE_DESCRIPTOR);
	EXPECT(strstr(fix.notice, "row pitch"));
	cl.clReleaseMemObject(mem);
	fixture_close();
}

TEST_EACH(once, struct image_type, types,
	  "Images that the driver makes from sub-buffers are tested once in a process.")
{
	unsigned long kernels;
	cl_mem mem, part;

	made_open(STUB_NUM_OPTIONS, 0);
	mem = fixture_import_host(0, pages_map(2), 2 * PAGE);
	part = fixture_create_sub_buffer(mem, ORIGIN, PAGE);
	cl.clReleaseMemObject(made_create(row->type, part));
	kernels = stub_calls("clEnqueueNDRangeKernel");
	cl.clReleaseMemObject(made_create(row->type, part));
	EXPECT_EQ(stub_calls("clEnqueueNDRangeKernel"), kernels);
	cl.clReleaseMemObject(part);
	cl.clReleaseMemObject(mem);
	fixture_close();
}

static const struct fault {
	const char *name, *function;
	cl_int code, wanted;
} faults[] = {
	{ "program", "clCreateProgramWithSource", CL_OUT_OF_RESOURCES, CL_OUT_OF_RESOURCES },
	{ "sub_buffer", "clCreateSubBuffer", CL_OUT_OF_HOST_MEMORY, CL_OUT_OF_RESOURCES },
	{ "kernel", "clEnqueueNDRangeKernel", CL_OUT_OF_RESOURCES, CL_OUT_OF_RESOURCES },
	{ "query", "clGetMemObjectInfo", CL_OUT_OF_HOST_MEMORY, CL_OUT_OF_HOST_MEMORY },
	{ "buffer", "clCreateBuffer", CL_OUT_OF_RESOURCES, CL_OUT_OF_RESOURCES },
};

TEST_EACH(faults, struct fault, faults,
	  "If the test of images fails for lack of resources, the image fails, and the next image "
	  "is made.")
{
	cl_mem mem, part;
	cl_int err = 1;

	made_open(STUB_NUM_OPTIONS, 0);
	mem = fixture_import_host(0, pages_map(2), 2 * PAGE);
	part = fixture_create_sub_buffer(mem, ORIGIN, PAGE);
	stub_set(STUB_FAULT_STAYS, 1);
	stub_fail(row->function, 1, row->code);
	EXPECT(!made_try(CL_MEM_OBJECT_IMAGE2D, part, PITCH, &err));
	EXPECT(stub_failed());
	EXPECT_EQ(err, row->wanted);
	stub_fail(NULL, 0, CL_SUCCESS);
	cl.clReleaseMemObject(made_create(CL_MEM_OBJECT_IMAGE2D, part));
	cl.clReleaseMemObject(part);
	cl.clReleaseMemObject(mem);
	fixture_close();
}

TEST(faults_of_backing, "If no backing buffer is made for an image on a sub-buffer, the image "
			"fails and no wrong image "
			"is given.")
{
	cl_mem mem, part;
	cl_int err = 1;

	made_open(STUB_IMAGES_AT_ROOT, 1);
	mem = fixture_import_host(0, pages_map(2), 2 * PAGE);
	part = fixture_create_sub_buffer(mem, ORIGIN, PAGE);
	cl.clReleaseMemObject(made_create(CL_MEM_OBJECT_IMAGE2D, part));
	stub_fail("clCreateBuffer", 1, CL_MEM_OBJECT_ALLOCATION_FAILURE);
	EXPECT(!made_try(CL_MEM_OBJECT_IMAGE2D, part, PITCH, &err));
	EXPECT(stub_failed());
	EXPECT_EQ(err, CL_MEM_OBJECT_ALLOCATION_FAILURE);
	cl.clReleaseMemObject(part);
	cl.clReleaseMemObject(mem);
	fixture_close();
}
