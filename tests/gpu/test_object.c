/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers with a start inside a page, sub-buffers, images. */
#include <unistd.h>

#include "cuda.h"
#include "gpu.h"

static size_t object_query_size(cl_mem mem, cl_mem_info name)
{
	size_t value = 0;

	EXPECT_EQ(clGetMemObjectInfo(mem, name, sizeof(value), &value, NULL), CL_SUCCESS);
	return value;
}

static void looks_like_a_root(cl_mem mem, size_t size)
{
	size_t properties = 1;

	EXPECT_EQ(object_query_size(mem, CL_MEM_OFFSET), 0);
	EXPECT_EQ(object_query_size(mem, CL_MEM_ASSOCIATED_MEMOBJECT), 0);
	EXPECT_EQ(object_query_size(mem, CL_MEM_SIZE), size);
	EXPECT_EQ(object_query_size(mem, CL_MEM_FLAGS), CL_MEM_READ_WRITE);
	EXPECT_EQ(object_query_size(mem, CL_MEM_HOST_PTR), 0);
	EXPECT_EQ(object_query_size(mem, CL_MEM_REFERENCE_COUNT) & 0xffffffff, 1);
	EXPECT_EQ(clGetMemObjectInfo(mem, CL_MEM_PROPERTIES, 0, NULL, &properties), CL_SUCCESS);
	EXPECT_EQ(properties, 0);
}

/* Increments @mem, which is @size bytes from @origin of @h; nothing else changes. */
static void changes_only(const struct host *h, cl_mem mem, size_t origin, size_t size)
{
	unsigned char *before = malloc(h->size), *now = h->seen;

	random_fill(h->seen, h->size);
	memcpy(before, h->seen, h->size);
	gpu_increment(&ours, ours.queue, mem, size, AT_ONCE, NULL);
	EXPECT_EQ(clFinish(ours.queue), CL_SUCCESS);
	EXPECT(is_added(now, before, origin, 0));
	EXPECT(is_added(now + origin, before + origin, size, 1));
	EXPECT(is_added(now + origin + size, before + origin + size, h->size - origin - size, 0));
	free(before);
}

static const struct start {
	const char *name;
	size_t units; /* of the device's alignment */
} starts[] = {
	{ "1", 1 },
	{ "3", 3 },
	{ "7", 7 },
};

TEST_EACH(within_a_page, struct start, starts,
	  "An aligned address within a page gives a buffer that looks like any other.")
{
	const size_t start = row->units * gpu.align, size = 3000;
	struct host h;
	cl_mem mem;

	gpu_session_open(&ours);
	host_alloc(&h, HOST_MMAP, 4 * PAGE);
	mem = gpu_import_host(&ours, (char *)h.memory + start, size);
	looks_like_a_root(mem, size);
	changes_only(&h, mem, start, size);
	clReleaseMemObject(mem);
	host_free(&h);
	gpu_session_close(&ours);
}

/* Checks the queries and the memory of a sub-buffer of an import at @start. */
static void check_part(size_t start)
{
	const size_t origin = 2 * gpu.align, size = 1000;
	struct host h;
	cl_mem mem, sub;

	host_alloc(&h, HOST_MMAP, 4 * PAGE);
	mem = gpu_import_host(&ours, (char *)h.memory + start, 2 * PAGE);
	sub = gpu_create_part(mem, origin, size);
	EXPECT_EQ(object_query_size(sub, CL_MEM_OFFSET), origin);
	EXPECT_EQ(object_query_size(sub, CL_MEM_ASSOCIATED_MEMOBJECT), (size_t)mem);
	EXPECT_EQ(object_query_size(sub, CL_MEM_SIZE), size);
	EXPECT_EQ(object_query_size(sub, CL_MEM_FLAGS), CL_MEM_READ_WRITE);
	for (int round = 0; round < 20; round++)
		changes_only(&h, sub, start + origin, size);
	clReleaseMemObject(mem); /* the sub-buffer keeps the import */
	changes_only(&h, sub, start + origin, size);
	clReleaseMemObject(sub);
	host_free(&h);
}

TEST(sub_buffers, "Sub-buffers of imports work in place, and report the parent and the offset.")
{
	gpu_session_open(&ours);
	check_part(0);
	check_part(3 * gpu.align);
	gpu_session_close(&ours);
}

/* Expects an error for a sub-buffer as long as the import, and not at offset 0. */
static void goes_too_far(const struct host *h, size_t start, size_t size)
{
	const cl_buffer_region outside = { gpu.align, size };
	cl_mem mem = gpu_import_host(&ours, (char *)h->memory + start, size);
	cl_int err;

	EXPECT(!clCreateSubBuffer(mem, 0, CL_BUFFER_CREATE_TYPE_REGION, &outside, &err));
	EXPECT_EQ(err, CL_INVALID_VALUE);
	clReleaseMemObject(mem);
}

static const struct kind {
	const char *name;
	enum host_kind kind;
} kinds[] = {
	{ "mmap", HOST_MMAP },
	{ "climport", HOST_CLIMPORT },
};

/* NVIDIA's driver (580) checks neither the end nor the alignment of sub-buffers. */
TEST_EACH(sub_buffer_errors, struct kind, kinds,
	  "A sub-buffer beyond the end of the import is an error, even if memory follows.")
{
	struct host h;

	gpu_session_open(&ours);
	host_alloc(&h, row->kind, 4 * PAGE);
	goes_too_far(&h, 0, 2 * PAGE);
	goes_too_far(&h, gpu.align, PAGE);
	host_free(&h);
	gpu_import_good();
	gpu_session_close(&ours);
}

static const cl_image_format rgba = { CL_RGBA, CL_UNSIGNED_INT32 };

static cl_mem object_create_image_1d(cl_mem buffer, cl_int *err)
{
	const cl_image_desc desc = {
		.image_type = CL_MEM_OBJECT_IMAGE1D_BUFFER,
		.image_width = 64,
		.mem_object = buffer,
	};

	return clCreateImage(ours.context, CL_MEM_READ_ONLY, &rgba, &desc, NULL, err);
}

static cl_mem object_create_image_2d(cl_mem buffer, cl_int *err)
{
	const cl_image_desc desc = {
		.image_type = CL_MEM_OBJECT_IMAGE2D,
		.image_width = 16,
		.image_height = 4,
		.mem_object = buffer,
	};

	return clCreateImage(ours.context, CL_MEM_READ_ONLY, &rgba, &desc, NULL, err);
}

TEST(images, "Images on imports are refused, with the reason.")
{
	struct host h;
	cl_mem mem;
	cl_int err;

	if (!gpu.is_opaque)
		test_skip("imports on this device can have images");
	gpu_session_open(&ours);
	host_alloc(&h, HOST_MMAP, PAGE);
	mem = gpu_import_host(&ours, h.memory, PAGE);
	EXPECT(!object_create_image_1d(mem, &err));
	EXPECT_EQ(err, CL_INVALID_OPERATION);
	EXPECT(gpu_notice_has("images on imported memory"));
	EXPECT(!object_create_image_2d(mem, &err));
	EXPECT_EQ(err, CL_INVALID_OPERATION);
	changes_only(&h, mem, 0, PAGE);
	clReleaseMemObject(mem);
	host_free(&h);
	gpu_session_close(&ours);
}

/* A buffer of the driver's own extension, of which the layer knows nothing. */
static cl_mem raw_import(const struct vmm *vmm)
{
	int fd = -1;
	cl_mem_properties properties[] = { CL_EXTERNAL_MEMORY_HANDLE_OPAQUE_FD_KHR, 0, 0 };
	cl_mem mem;
	cl_int err;

	EXPECT_EQ(cuda.share(&fd, vmm->handle, 1, 0), 0);
	properties[1] = (cl_mem_properties)fd; /* the driver's from now on */
	mem = clCreateBufferWithProperties(ours.context, properties, CL_MEM_READ_WRITE, vmm->size,
					   NULL, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	return mem;
}

static cl_kernel object_create_image_kernel(cl_program *program)
{
	const char *source =
		"kernel void image1d_to_buffer(read_only image1d_buffer_t from, global uchar *to,\n"
		"	uint w)\n"
		"{ for (uint x = 0; x < w; x++)\n"
		"	vstore4(convert_uchar4(read_imageui(from, (int)x)), x, to); }\n";
	cl_kernel kernel;
	cl_int err;

	*program = clCreateProgramWithSource(ours.context, 1, &source, NULL, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	EXPECT_EQ(clBuildProgram(*program, 1, &gpu.device, "", NULL, NULL), CL_SUCCESS);
	kernel = clCreateKernel(*program, "image1d_to_buffer", &err);
	EXPECT_EQ(err, CL_SUCCESS);
	return kernel;
}

/* The error of a kernel that reads an image on @buffer. */
static cl_int object_run_image_kernel(cl_mem buffer)
{
	const cl_uint width = 64;
	const size_t one = 1;
	cl_mem image, to = gpu_create_native(&ours, 4 * width);
	cl_program program;
	cl_kernel kernel = object_create_image_kernel(&program);
	cl_int err;

	image = object_create_image_1d(buffer, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	EXPECT_EQ(clSetKernelArg(kernel, 0, sizeof(image), &image), CL_SUCCESS);
	EXPECT_EQ(clSetKernelArg(kernel, 1, sizeof(to), &to), CL_SUCCESS);
	EXPECT_EQ(clSetKernelArg(kernel, 2, sizeof(width), &width), CL_SUCCESS);
	err = clEnqueueNDRangeKernel(ours.queue, kernel, 1, NULL, &one, NULL, 0, NULL, NULL);
	if (!err)
		err = clFinish(ours.queue);
	clReleaseKernel(kernel);
	clReleaseProgram(program);
	clReleaseMemObject(image);
	clReleaseMemObject(to);
	return err;
}

/* A failure means that the driver can run such kernels; then the layer should allow images. */
TEST(images_of_the_driver,
     "NVIDIA's driver makes images on opaque imports, but runs no kernel that uses the images.")
{
	struct vmm vmm;
	cl_mem raw, buffer;
	cl_int err;

	if (!gpu.is_nvidia)
		test_skip("this is not NVIDIA's driver");
	cuda_need();
	gpu_session_open(&ours);
	buffer = gpu_create_native(&ours, PAGE);
	EXPECT_EQ(object_run_image_kernel(buffer), CL_SUCCESS);
	clReleaseMemObject(buffer);
	vmm_create(&vmm, LOCATION_HOST_NUMA, 1);
	raw = raw_import(&vmm);
	err = object_run_image_kernel(raw);
	printf("# a kernel that reads an image on a raw opaque import: error %d\n", err);
	EXPECT_EQ(err, CL_INVALID_KERNEL_ARGS);
	/* Leaves the context open, because the context may be unusable. */
}
