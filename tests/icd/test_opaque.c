/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The method opaque_fd: a discrete device with support for opaque descriptors, over fakes of RM
 * and CUDA.
 */
#include "opaque_fixture.h"

#include <CL/climport.h>
#include <string.h>
#include <unistd.h>

/* The stub's queue drops a command's references a moment after clFinish(). */
static bool are_objects(void *count)
{
	return stub_live(STUB_MEM) == *(long *)count;
}

TEST(host_pages, "Kernels work in place on any pages of the host.")
{
	unsigned char *p;
	cl_mem mem;

	opaque_reset();
	fixture_open();
	EXPECT(fixture_device_reports(fix.device[0], "cl_arm_import_memory_host"));
	EXPECT(fixture_device_reports(fix.device[0], "cl_arm_import_memory_dma_buf"));
	EXPECT(!strcmp(opaque_read_method(CL_IMPORT_TYPE_HOST_ARM), "opaque_fd"));
	EXPECT(!strcmp(opaque_read_method(CL_IMPORT_TYPE_DMA_BUF_ARM), "opaque_fd"));
	p = pages_map(3);
	mem = fixture_import_host(0, p, 3 * PAGE);
	p[0] = 7;
	fixture_increment(mem);
	EXPECT_EQ(p[0], 8);
	cl.clReleaseMemObject(mem);
	fixture_close();
}

TEST(allocated, "Memory of climport_alloc() is not pinned by RM.")
{
	unsigned int pins;
	void *address;
	cl_mem mem;

	opaque_reset();
	fixture_open();
	cl.clReleaseMemObject(fixture_import_host(0, pages_map(1), PAGE)); /* runs the self-test */
	pins = fake_rm.pins_made;
	EXPECT_EQ(climport_alloc(CLIMPORT_HOST, 3000, 0, uuid, &address), 0);
	mem = fixture_import_host(0, address, 3000);
	EXPECT_EQ(fake_rm.pins_made, pins);
	*(unsigned char *)address = 5;
	fixture_increment(mem);
	EXPECT_EQ(*(unsigned char *)address, 6);
	cl.clReleaseMemObject(mem);
	climport_free(address);
	fixture_close();
}

TEST(one_root,
     "Imports of parts of an allocation share one hidden buffer, until the allocation is freed.")
{
	unsigned long before;
	unsigned char *p;
	void *address;
	cl_mem a, b;
	long live;

	opaque_reset();
	fixture_open();
	cl.clReleaseMemObject(fixture_import_host(0, pages_map(1), PAGE)); /* runs the self-test */
	EXPECT_EQ(climport_alloc(CLIMPORT_HOST, 16 * PAGE, 0, uuid, &address), 0);
	live = stub_live(STUB_MEM);
	before = stub_calls("clCreateBufferWithProperties");
	p = address;
	a = fixture_import_host(0, p, PAGE);
	b = fixture_import_host(0, p + PAGE, 2 * PAGE);
	EXPECT_EQ(stub_calls("clCreateBufferWithProperties") - before, 1);
	p[0] = 1;
	p[PAGE] = 2;
	fixture_increment(a);
	fixture_increment(b);
	EXPECT(p[0] == 2 && p[PAGE] == 3);
	cl.clReleaseMemObject(a);
	cl.clReleaseMemObject(b);
	cl.clReleaseMemObject(fixture_import_host(0, p + 3 * PAGE, PAGE));
	EXPECT_EQ(stub_calls("clCreateBufferWithProperties") - before, 1);
	live++;
	EXPECT(process_settles(are_objects, &live));
	climport_free(address);
	live--;
	EXPECT(process_settles(are_objects, &live));
	fixture_close();
}

TEST(root_released,
     "In a context that the application has released, an import of an allocation leaves no hidden "
     "buffer.")
{
	cl_command_queue queue;
	cl_context context;
	void *address;
	cl_mem mem;
	long live;

	opaque_reset();
	fixture_open();
	EXPECT_EQ(climport_alloc(CLIMPORT_HOST, 2 * PAGE, 0, uuid, &address), 0);
	context = cl.clCreateContext(NULL, 1, fix.device, NULL, NULL, NULL);
	queue = cl.clCreateCommandQueue(context, fix.device[0], 0, NULL);
	cl.clReleaseContext(context);
	mem = fix.import(context, 0, NULL, (char *)address + PAGE, PAGE, NULL);
	EXPECT(mem);
	cl.clReleaseMemObject(mem);
	live = 0;
	EXPECT(process_settles(are_objects, &live));
	cl.clReleaseCommandQueue(queue);
	climport_free(address);
	fixture_close();
}

TEST(flags_apart,
     "Imports of an allocation with different flags share a hidden buffer, and have their flags.")
{
	unsigned long before;
	void *address;
	cl_mem a, b;

	opaque_reset();
	fixture_open();
	EXPECT_EQ(climport_alloc(CLIMPORT_HOST, 2 * PAGE, 0, uuid, &address), 0);
	a = fixture_import_host(CL_MEM_READ_WRITE, address, PAGE);
	before = stub_calls("clCreateBufferWithProperties");
	b = fixture_import_host(CL_MEM_READ_ONLY, address, PAGE);
	EXPECT_EQ(opaque_query_size(a, CL_MEM_FLAGS), CL_MEM_READ_WRITE);
	EXPECT_EQ(opaque_query_size(b, CL_MEM_FLAGS), CL_MEM_READ_ONLY);
	EXPECT_EQ(stub_calls("clCreateBufferWithProperties"), before);
	cl.clReleaseMemObject(a);
	cl.clReleaseMemObject(b);
	climport_free(address);
	fixture_close();
}

TEST(many_roots,
     "The layer keeps 64 hidden buffers of allocations, and gives up the least recently used "
     "first.")
{
	enum { COUNT = 70, KEPT = 64 };
	void *address[COUNT];
	unsigned long before;
	long live;

	opaque_reset();
	fixture_open();
	cl.clReleaseMemObject(fixture_import_host(0, pages_map(1), PAGE));
	live = stub_live(STUB_MEM);
	for (int i = 0; i < COUNT; i++) {
		EXPECT_EQ(climport_alloc(CLIMPORT_HOST, 2 << 20, 0, uuid, &address[i]), 0);
		cl.clReleaseMemObject(fixture_import_host(0, address[i], PAGE));
	}
	EXPECT_EQ(stub_live(STUB_MEM), live + KEPT);
	before = stub_calls("clCreateBufferWithProperties");
	cl.clReleaseMemObject(fixture_import_host(0, address[COUNT - 1], PAGE));
	cl.clReleaseMemObject(fixture_import_host(0, address[COUNT - KEPT], PAGE));
	EXPECT_EQ(stub_calls("clCreateBufferWithProperties"), before);
	cl.clReleaseMemObject(fixture_import_host(0, address[0], PAGE));
	EXPECT_EQ(stub_calls("clCreateBufferWithProperties"), before + 1);
	for (int i = 0; i < COUNT; i++)
		climport_free(address[i]);
	EXPECT_EQ(stub_live(STUB_MEM), live);
	fixture_close();
}

TEST(context_retained, "A context that is retained and released once works as before.")
{
	unsigned char *p;
	void *address;
	cl_mem mem;

	opaque_reset();
	opaque_begin();
	p = pages_map(1);
	mem = fixture_import_host(0, p, PAGE);
	fixture_increment(mem);
	EXPECT_EQ(climport_alloc(CLIMPORT_HOST, PAGE, 0, uuid, &address), 0);
	cl.clReleaseMemObject(fixture_import_host(0, address, PAGE));
	EXPECT_EQ(cl.clRetainContext(fix.context), CL_SUCCESS);
	EXPECT_EQ(cl.clReleaseContext(fix.context), CL_SUCCESS);
	p[0] = 40;
	fixture_increment(mem);
	EXPECT_EQ(p[0], 41);
	cl.clReleaseMemObject(mem);
	mem = fixture_import_host(0, address, PAGE);
	fixture_increment(mem);
	cl.clReleaseMemObject(mem);
	climport_free(address);
	fixture_close();
}

TEST(device_memory, "Device memory is imported by a dma-buf that was exported from the memory.")
{
	struct climport_dmabuf d;
	unsigned char *memory;
	void *address;
	cl_mem mem;
	cl_int err;

	opaque_reset();
	fixture_open();
	EXPECT_EQ(climport_alloc(CLIMPORT_DEVICE, 8192, 0, uuid, &address), 0);
	EXPECT_EQ(climport_export_dmabuf(address, 8192, 0, &d, sizeof(d)), 0);
	mem = fixture_import_dmabuf(d.fd, 8192);
	close(d.fd);
	memory = fake_cuda_memory((uintptr_t)address);
	memory[0] = 30;
	fixture_increment(mem);
	EXPECT_EQ(memory[0], 31);
	cl.clReleaseMemObject(mem);
	climport_free(address);
	(void)err;
	fixture_close();
}
