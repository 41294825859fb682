/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffers with CL_MEM_USE_HOST_PTR in place, as with `climport run --host-ptr`: what a program that
 * never heard of the extension does with them.
 */
#include <stdlib.h>
#include <sys/mman.h>

#include "gpu.h"

static unsigned char *host_ptr_map_pages(size_t count)
{
	void *p = mmap(NULL, count * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		       0);

	EXPECT(p != MAP_FAILED);
	return p;
}

static void host_ptr_open(void)
{
	if (!gpu.is_opaque)
		test_skip("this driver's own buffers with host pointers work in place");
	setenv("CLIMPORT_HOST_PTR", "1", 1);
	gpu_session_open(&ours);
}

static void host_ptr_close(void)
{
	gpu_session_close(&ours);
	unsetenv("CLIMPORT_HOST_PTR");
}

static cl_mem host_ptr_buffer(cl_mem_flags flags, void *memory, size_t size)
{
	cl_int err = 1;
	cl_mem mem = clCreateBuffer(ours.context, flags | CL_MEM_USE_HOST_PTR, size, memory, &err);

	EXPECT_EQ(err, CL_SUCCESS);
	return mem;
}

static unsigned char *host_ptr_map(cl_mem mem, cl_map_flags flags, size_t offset, size_t size)
{
	cl_int err = 1;
	void *p = clEnqueueMapBuffer(ours.queue, mem, CL_TRUE, flags, offset, size, 0, NULL, NULL,
				     &err);

	EXPECT_EQ(err, CL_SUCCESS);
	return p;
}

static void host_ptr_unmap(cl_mem mem, void *p)
{
	EXPECT_EQ(clEnqueueUnmapMemObject(ours.queue, mem, p, 0, NULL, NULL), CL_SUCCESS);
}

/* A kernel increments @count bytes, and the host sees the bytes without a map. */
static bool host_ptr_is_in_place(cl_mem mem, const unsigned char *p, size_t count)
{
	const unsigned char first = p[0], last = p[count - 1];

	gpu_increment(&ours, ours.queue, mem, count, AT_ONCE, NULL);
	EXPECT_EQ(clFinish(ours.queue), CL_SUCCESS);
	return p[0] == (unsigned char)(first + 1) && p[count - 1] == (unsigned char)(last + 1);
}

TEST(host_ptr_in_place, "Kernels work in place on a buffer with a host pointer, and a map gives "
			"the host pointer: data "
			"goes both ways, 100 times.")
{
	const size_t size = 16 * PAGE;
	unsigned char *p;
	cl_mem mem;

	host_ptr_open();
	p = host_ptr_map_pages(16);
	mem = host_ptr_buffer(CL_MEM_READ_WRITE, p, size);
	EXPECT(host_ptr_is_in_place(mem, p, size));
	for (int i = 0; i < 100; i++) {
		unsigned char *mapped = host_ptr_map(mem, CL_MAP_WRITE, PAGE, PAGE);

		EXPECT_EQ((size_t)mapped, (size_t)(p + PAGE));
		memset(mapped, i, PAGE);
		host_ptr_unmap(mem, mapped);
		gpu_increment(&ours, ours.queue, mem, size, AT_ONCE, NULL);
		mapped = host_ptr_map(mem, CL_MAP_READ, PAGE, PAGE);
		EXPECT_EQ(mapped[0], i + 1);
		EXPECT_EQ(mapped[PAGE - 1], i + 1);
		host_ptr_unmap(mem, mapped);
	}
	EXPECT_EQ(clFinish(ours.queue), CL_SUCCESS);
	clReleaseMemObject(mem);
	munmap(p, size);
	host_ptr_close();
}

TEST(host_ptr_commands, "Reads, writes, copies, fills and migrations of a buffer in place work, "
			"also to and from its own "
			"memory.")
{
	unsigned char *p, got[8] = { 0 };
	cl_mem mem, plain;

	host_ptr_open();
	p = host_ptr_map_pages(2);
	mem = host_ptr_buffer(CL_MEM_READ_WRITE, p + gpu.align, PAGE);
	plain = gpu_create_native(&ours, 64);
	p += gpu.align;
	EXPECT_EQ(clEnqueueWriteBuffer(ours.queue, mem, CL_TRUE, 0, 8, "abcdefgh", 0, NULL, NULL),
		  0);
	EXPECT(!memcmp(p, "abcdefgh", 8));
	EXPECT_EQ(clEnqueueMigrateMemObjects(ours.queue, 1, &mem, 0, 0, NULL, NULL), 0);
	EXPECT_EQ(clEnqueueMigrateMemObjects(ours.queue, 1, &mem, CL_MIGRATE_MEM_OBJECT_HOST, 0,
					     NULL, NULL),
		  0);
	EXPECT_EQ(clEnqueueCopyBuffer(ours.queue, mem, plain, 0, 0, 8, 0, NULL, NULL), 0);
	EXPECT_EQ(clEnqueueFillBuffer(ours.queue, mem, "wxyz", 4, 0, 8, 0, NULL, NULL), 0);
	EXPECT_EQ(clEnqueueCopyBuffer(ours.queue, plain, mem, 4, 16, 4, 0, NULL, NULL), 0);
	EXPECT_EQ(clEnqueueReadBuffer(ours.queue, mem, CL_TRUE, 0, PAGE, p, 0, NULL, NULL), 0);
	EXPECT(!memcmp(p, "wxyzwxyz", 8) && !memcmp(p + 16, "efgh", 4));
	EXPECT_EQ(clEnqueueWriteBuffer(ours.queue, mem, CL_TRUE, 0, PAGE, p, 0, NULL, NULL), 0);
	EXPECT_EQ(clEnqueueReadBuffer(ours.queue, mem, CL_TRUE, 14, 8, got, 0, NULL, NULL), 0);
	EXPECT(!memcmp(got + 2, "efgh", 4));
	clReleaseMemObject(plain);
	clReleaseMemObject(mem);
	munmap(p - gpu.align, 2 * PAGE);
	host_ptr_close();
}

TEST(host_ptr_parts, "A sub-buffer of a buffer in place is in place, and is mapped at its address.")
{
	unsigned char *p, *mapped;
	void *pointer = NULL;
	cl_mem mem, sub;

	host_ptr_open();
	p = host_ptr_map_pages(4);
	mem = host_ptr_buffer(CL_MEM_READ_WRITE, p + gpu.align, 2 * PAGE);
	sub = gpu_create_part(mem, gpu.align, PAGE);
	EXPECT(host_ptr_is_in_place(sub, p + 2 * gpu.align, PAGE));
	EXPECT_EQ(clGetMemObjectInfo(sub, CL_MEM_HOST_PTR, sizeof(pointer), &pointer, NULL), 0);
	EXPECT_EQ((size_t)pointer, (size_t)(p + 2 * gpu.align));
	mapped = host_ptr_map(sub, CL_MAP_READ | CL_MAP_WRITE, 3, 5);
	EXPECT_EQ((size_t)mapped, (size_t)(p + 2 * gpu.align + 3));
	host_ptr_unmap(sub, mapped);
	EXPECT_EQ(clFinish(ours.queue), CL_SUCCESS);
	clReleaseMemObject(mem);
	clReleaseMemObject(sub);
	munmap(p, 4 * PAGE);
	host_ptr_close();
}

static cl_kernel host_ptr_image_kernel(void)
{
	const char *source =
		"kernel void add(read_only image1d_buffer_t from,"
		" write_only image1d_buffer_t to)"
		"{ int i = get_global_id(0);"
		" write_imageui(to, i, read_imageui(from, i) + (uint4)(1, 2, 3, 4)); }";
	cl_int err = 1;
	cl_program program = clCreateProgramWithSource(ours.context, 1, &source, NULL, &err);
	cl_kernel kernel;

	EXPECT_EQ(err, CL_SUCCESS);
	EXPECT_EQ(clBuildProgram(program, 0, NULL, "", NULL, NULL), CL_SUCCESS);
	kernel = clCreateKernel(program, "add", &err);
	EXPECT_EQ(err, CL_SUCCESS);
	clReleaseProgram(program);
	return kernel;
}

static cl_mem host_ptr_image(cl_mem_flags flags, cl_mem mem)
{
	const cl_image_format format = { CL_RGBA, CL_UNSIGNED_INT8 };
	const cl_image_desc desc = { .image_type = CL_MEM_OBJECT_IMAGE1D_BUFFER,
				     .image_width = PAGE / 4,
				     .mem_object = mem };
	cl_int err = 1;
	cl_mem image = clCreateImage(ours.context, flags, &format, &desc, NULL, &err);

	EXPECT_EQ(err, CL_SUCCESS);
	return image;
}

TEST(host_ptr_images,
     "Kernels read and write 1D images of buffers in place, 100 times, and the program's "
     "memory has the pixels.")
{
	const size_t origin[3] = { 0 }, pixels[3] = { PAGE / 4, 1, 1 }, count = PAGE / 4;
	cl_mem from, to, images[2];
	size_t pitch = 0;
	unsigned char *p;
	cl_kernel kernel;

	host_ptr_open();
	p = host_ptr_map_pages(2);
	from = host_ptr_buffer(CL_MEM_READ_ONLY, p, PAGE);
	to = host_ptr_buffer(CL_MEM_READ_WRITE, p + PAGE, PAGE);
	images[0] = host_ptr_image(CL_MEM_READ_ONLY, from);
	images[1] = host_ptr_image(CL_MEM_WRITE_ONLY, to);
	kernel = host_ptr_image_kernel();
	for (cl_uint i = 0; i < 2; i++)
		EXPECT_EQ(clSetKernelArg(kernel, i, sizeof(cl_mem), &images[i]), CL_SUCCESS);
	for (int i = 0; i < 100; i++) {
		unsigned char *mapped;

		memset(p, i, PAGE);
		EXPECT_EQ(clEnqueueNDRangeKernel(ours.queue, kernel, 1, NULL, &count, NULL, 0, NULL,
						 NULL),
			  CL_SUCCESS);
		mapped = clEnqueueMapImage(ours.queue, images[1], CL_TRUE, CL_MAP_READ, origin,
					   pixels, &pitch, NULL, 0, NULL, NULL, NULL);
		EXPECT_EQ((size_t)mapped, (size_t)(p + PAGE));
		EXPECT(mapped[0] == i + 1 && mapped[PAGE - 1] == i + 4);
		EXPECT_EQ(clEnqueueUnmapMemObject(ours.queue, images[1], mapped, 0, NULL, NULL),
			  CL_SUCCESS);
	}
	EXPECT(host_ptr_is_in_place(to, p + PAGE, PAGE));
	clReleaseKernel(kernel);
	for (int i = 0; i < 2; i++)
		clReleaseMemObject(images[i]);
	clReleaseMemObject(from);
	clReleaseMemObject(to);
	munmap(p, 2 * PAGE);
	host_ptr_close();
}

TEST(host_ptr_flags, "Buffers that the host only writes, and that kernels only read, are in place.")
{
	unsigned char *p, *mapped, got;
	cl_mem mem;

	host_ptr_open();
	p = host_ptr_map_pages(1);
	mem = host_ptr_buffer(CL_MEM_HOST_WRITE_ONLY, p, PAGE);
	EXPECT(host_ptr_is_in_place(mem, p, PAGE));
	mapped = host_ptr_map(mem, CL_MAP_WRITE_INVALIDATE_REGION, 0, PAGE);
	EXPECT_EQ((size_t)mapped, (size_t)p);
	host_ptr_unmap(mem, mapped);
	EXPECT_EQ(clEnqueueReadBuffer(ours.queue, mem, CL_TRUE, 0, 1, &got, 0, NULL, NULL),
		  CL_INVALID_OPERATION);
	EXPECT_EQ(clFinish(ours.queue), CL_SUCCESS);
	clReleaseMemObject(mem);
	mem = host_ptr_buffer(CL_MEM_READ_ONLY, p, PAGE);
	mapped = host_ptr_map(mem, CL_MAP_WRITE, 0, PAGE);
	EXPECT_EQ((size_t)mapped, (size_t)p);
	mapped[5] = 7;
	host_ptr_unmap(mem, mapped);
	EXPECT_EQ(clEnqueueReadBuffer(ours.queue, mem, CL_TRUE, 5, 1, &got, 0, NULL, NULL),
		  CL_SUCCESS);
	EXPECT_EQ(got, 7);
	clReleaseMemObject(mem);
	munmap(p, PAGE);
	host_ptr_close();
}

TEST(host_ptr_drivers_own, "A buffer that does not qualify is the driver's, and works by maps.")
{
	unsigned char *p, *mapped;
	cl_mem mem;

	host_ptr_open();
	p = host_ptr_map_pages(1);
	p[1] = 3;
	mem = host_ptr_buffer(CL_MEM_READ_WRITE, p + 1, 100);
	gpu_increment(&ours, ours.queue, mem, 100, AT_ONCE, NULL);
	mapped = host_ptr_map(mem, CL_MAP_READ, 0, 100);
	EXPECT_EQ(mapped[0], 4);
	host_ptr_unmap(mem, mapped);
	EXPECT_EQ(clFinish(ours.queue), CL_SUCCESS);
	clReleaseMemObject(mem);
	munmap(p, PAGE);
	host_ptr_close();
}

TEST(host_ptr_again, "A thousand buffers, one after the other, on the same pages.")
{
	unsigned char *p;

	host_ptr_open();
	p = host_ptr_map_pages(4);
	for (int i = 0; i < 1000; i++) {
		cl_mem mem = host_ptr_buffer(CL_MEM_READ_WRITE, p, 4 * PAGE);

		p[0] = (unsigned char)i;
		gpu_increment(&ours, ours.queue, mem, 4 * PAGE, AT_ONCE, NULL);
		EXPECT_EQ(clFinish(ours.queue), CL_SUCCESS);
		EXPECT_EQ(p[0], (unsigned char)(i + 1));
		clReleaseMemObject(mem);
	}
	munmap(p, 4 * PAGE);
	host_ptr_close();
}

static cl_kernel host_ptr_kernel(cl_program *program)
{
	const char *text = "kernel void count(global uint *sum, global uint *last)\n"
			   "{ atomic_inc(sum); atomic_max(last, (uint)get_global_id(0)); }\n";
	cl_kernel kernel;
	cl_int err = 1;

	*program = clCreateProgramWithSource(ours.context, 1, &text, NULL, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	err = clBuildProgram(*program, 1, &gpu.device, "", NULL, NULL);
	if (err && !gpu.is_nvidia)
		test_skip("this driver compiles no such kernel");
	EXPECT_EQ(err, CL_SUCCESS);
	kernel = clCreateKernel(*program, "count", &err);
	EXPECT_EQ(err, CL_SUCCESS);
	return kernel;
}

TEST(host_ptr_atomics, "Atomic functions of a kernel's work-items work on memory in place.")
{
	const size_t items = 1 << 16;
	cl_program program;
	cl_kernel kernel;
	uint32_t *p;
	cl_mem mem, last;

	host_ptr_open();
	kernel = host_ptr_kernel(&program);
	p = (uint32_t *)host_ptr_map_pages(2);
	mem = host_ptr_buffer(CL_MEM_READ_WRITE, p, PAGE);
	last = host_ptr_buffer(CL_MEM_READ_WRITE, p + PAGE / 4, PAGE);
	EXPECT_EQ(clSetKernelArg(kernel, 0, sizeof(cl_mem), &mem), CL_SUCCESS);
	EXPECT_EQ(clSetKernelArg(kernel, 1, sizeof(cl_mem), &last), CL_SUCCESS);
	for (uint32_t i = 1; i <= 4; i++) {
		EXPECT_EQ(clEnqueueNDRangeKernel(ours.queue, kernel, 1, NULL, &items, NULL, 0, NULL,
						 NULL),
			  CL_SUCCESS);
		EXPECT_EQ(clFinish(ours.queue), CL_SUCCESS);
		EXPECT_EQ(p[0], i * items);
		EXPECT_EQ(p[PAGE / 4], items - 1);
	}
	clReleaseKernel(kernel);
	clReleaseProgram(program);
	clReleaseMemObject(mem);
	clReleaseMemObject(last);
	munmap(p, 2 * PAGE);
	host_ptr_close();
}
