/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The method opaque_fd: a discrete device with support for opaque descriptors, over fakes of Vulkan
 * and CUDA.
 */
#include "opaque_fixture.h"

#include <CL/climport.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
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
	opaque_close();
}

TEST(refreshed, "A device that caches sees the host's writes before each kernel.")
{
	unsigned char *p;
	cl_mem mem;

	open_caching();
	p = pages_map(1);
	mem = fixture_import_host(0, p, PAGE);
	for (int i = 0; i < 5; i++) {
		p[0] = 20 * i;
		fixture_increment(mem);
		EXPECT_EQ(p[0], 20 * i + 1);
	}
	cl.clReleaseMemObject(mem);
	opaque_close();
}

/*
 * A user event holds a kernel back, by the kernel's own wait list or by a marker before the kernel.
 * Meanwhile a kernel on a second queue reads the memory, so the device has cached the memory again.
 * A refresh at the enqueue would be too early.
 */
static void expect_late_write_is_seen(bool by_marker)
{
	cl_command_queue other;
	cl_kernel kernel;
	unsigned char *p;
	cl_event gate;
	cl_int err;
	cl_mem mem;

	open_caching();
	other = fixture_create_queue(0);
	p = pages_map(1);
	mem = fixture_import_host(0, p, PAGE);
	fixture_increment(mem);
	kernel = fixture_create_increment(mem);
	gate = cl.clCreateUserEvent(fix.context, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	if (by_marker)
		EXPECT_EQ(cl.clEnqueueMarkerWithWaitList(fix.queue, 1, &gate, NULL), CL_SUCCESS);
	EXPECT_EQ(fixture_enqueue(fix.queue, kernel, !by_marker, by_marker ? NULL : &gate, NULL),
		  CL_SUCCESS);
	EXPECT_EQ(fixture_enqueue(other, kernel, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(other), CL_SUCCESS);
	p[0] = 99;
	EXPECT_EQ(cl.clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(fix.queue), CL_SUCCESS);
	EXPECT_EQ(p[0], 100);
	cl.clReleaseCommandQueue(other);
	cl.clReleaseEvent(gate);
	cl.clReleaseKernel(kernel);
	cl.clReleaseMemObject(mem);
	opaque_close();
}

TEST(refreshed_late,
     "If a kernel waits for a user event, a device that caches sees the host's writes before the "
     "event.")
{
	expect_late_write_is_seen(false);
}

TEST(refreshed_behind,
     "If a user event holds back the command before a kernel, a device that caches sees the host's "
     "writes before the event.")
{
	expect_late_write_is_seen(true);
}

TEST(refreshed_at_once,
     "Without wait list and user events, a refresh makes no marker and no event.")
{
	unsigned long markers, events;
	unsigned char *p;
	cl_event gate;
	cl_int err;
	cl_mem mem;

	open_caching();
	p = pages_map(1);
	mem = fixture_import_host(0, p, PAGE);
	markers = stub_calls("clEnqueueMarkerWithWaitList");
	events = stub_calls("clCreateUserEvent");
	fixture_increment(mem);
	EXPECT_EQ(stub_calls("clEnqueueMarkerWithWaitList"), markers);
	EXPECT_EQ(stub_calls("clCreateUserEvent"), events);
	gate = cl.clCreateUserEvent(fix.context, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	fixture_increment(mem);
	EXPECT(stub_calls("clEnqueueMarkerWithWaitList") > markers);
	EXPECT_EQ(cl.clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
	markers = stub_calls("clEnqueueMarkerWithWaitList");
	fixture_increment(mem);
	EXPECT_EQ(stub_calls("clEnqueueMarkerWithWaitList"), markers);
	cl.clReleaseEvent(gate);
	cl.clReleaseMemObject(mem);
	opaque_close();
}

TEST(refreshed_once, "One refresh serves all imports among a kernel's arguments.")
{
	unsigned long before;
	cl_mem mem[3];
	cl_kernel kernel;
	unsigned char *p;

	open_caching();
	p = pages_map(3);
	kernel = fixture_create_kernel("vector_add");
	for (cl_uint i = 0; i < 3; i++) {
		mem[i] = fixture_import_host(0, p + i * PAGE, PAGE);
		EXPECT_EQ(cl.clSetKernelArg(kernel, i, sizeof(cl_mem), &mem[i]), CL_SUCCESS);
	}
	EXPECT_EQ(fixture_enqueue(fix.queue, kernel, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(fix.queue), CL_SUCCESS);
	before = stub_calls("clCreateBufferWithProperties");
	EXPECT_EQ(fixture_enqueue(fix.queue, kernel, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(fix.queue), CL_SUCCESS);
	EXPECT_EQ(stub_calls("clCreateBufferWithProperties") - before, 1);
	for (int i = 0; i < 3; i++)
		cl.clReleaseMemObject(mem[i]);
	cl.clReleaseKernel(kernel);
	opaque_close();
}

TEST(allocated, "Memory of climport_alloc() needs no refresh, and no import by Vulkan.")
{
	struct fake_vulkan *vk = opaque_reset();
	unsigned int imports;
	unsigned long before;
	void *address;
	cl_mem mem;

	fixture_open();
	cl.clReleaseMemObject(fixture_import_host(0, pages_map(1), PAGE)); /* runs the self-test */
	imports = vk->imports;
	EXPECT_EQ(climport_alloc(CLIMPORT_HOST, 3000, 0, uuid, &address), 0);
	mem = fixture_import_host(0, address, 3000);
	EXPECT_EQ(vk->imports, imports);
	before = stub_calls("clCreateBufferWithProperties");
	*(unsigned char *)address = 5;
	fixture_increment(mem);
	EXPECT_EQ(*(unsigned char *)address, 6);
	EXPECT_EQ(stub_calls("clCreateBufferWithProperties"), before);
	cl.clReleaseMemObject(mem);
	climport_free(address);
	opaque_close();
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
	opaque_close();
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
	opaque_close();
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
	opaque_close();
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
	opaque_close();
}

TEST(context_retained, "A context that is retained and released once works as before.")
{
	unsigned char *p;
	void *address;
	cl_mem mem;

	open_caching();
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
	opaque_close();
}

/*
 * Fails the driver's next buffer from a descriptor.  A kernel is enqueued all the same if the buffer
 * for the refresh was made after the kernel before.
 */
static cl_int enqueue_without_buffers(cl_kernel kernel)
{
	cl_int err;

	stub_fail("clCreateBufferWithProperties", 1, CL_OUT_OF_RESOURCES);
	err = fixture_enqueue(fix.queue, kernel, 0, NULL, NULL);
	stub_fail(NULL, 0, 0);
	EXPECT_EQ(cl.clFinish(fix.queue), CL_SUCCESS);
	return err;
}

static cl_context context_of_queue(void)
{
	cl_context context;

	EXPECT_EQ(cl.clGetCommandQueueInfo(fix.queue, CL_QUEUE_CONTEXT, sizeof(context), &context,
					   NULL),
		  CL_SUCCESS);
	return context;
}

static void release_and_retain(void)
{
	EXPECT_EQ(cl.clReleaseContext(fix.context), CL_SUCCESS);
	EXPECT_EQ(cl.clRetainContext(context_of_queue()), CL_SUCCESS);
}

static void retain_and_release(void)
{
	EXPECT_EQ(cl.clRetainContext(fix.context), CL_SUCCESS);
	EXPECT_EQ(cl.clReleaseContext(fix.context), CL_SUCCESS);
}

/* What an application may do with references to a context that has an import and a queue. */
static const struct context_use {
	const char *name;
	void (*use)(void);
} context_uses[] = { { "retained", retain_and_release }, { "from_queue", release_and_retain } };

TEST_EACH(refreshed_ahead, struct context_use, context_uses,
	  "A refresh has its buffer made after the kernel before, also once the application has "
	  "released a context and retains the context.")
{
	cl_kernel kernel;
	cl_mem mem;

	open_caching();
	mem = fixture_import_host(0, pages_map(1), PAGE);
	kernel = fixture_create_increment(mem);
	fixture_increment(mem);
	EXPECT_EQ(enqueue_without_buffers(kernel), CL_SUCCESS);
	row->use();
	fixture_increment(mem);
	EXPECT_EQ(enqueue_without_buffers(kernel), CL_SUCCESS);
	cl.clReleaseKernel(kernel);
	cl.clReleaseMemObject(mem);
	opaque_close();
}

TEST(refreshed_released,
     "In a context that the application has released, refreshes leave no buffer in the driver.")
{
	cl_kernel kernel;
	unsigned char *p;
	cl_mem mem;
	long live;

	open_caching();
	p = pages_map(1);
	mem = fixture_import_host(0, p, PAGE);
	kernel = fixture_create_increment(mem);
	fixture_increment(mem);
	EXPECT_EQ(cl.clReleaseContext(fix.context), CL_SUCCESS);
	live = 1; /* the import */
	EXPECT(process_settles(are_objects, &live));
	p[0] = 30;
	EXPECT_EQ(fixture_enqueue(fix.queue, kernel, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(fix.queue), CL_SUCCESS);
	EXPECT_EQ(p[0], 31);
	EXPECT(process_settles(are_objects, &live));
	cl.clReleaseKernel(kernel);
	cl.clReleaseMemObject(mem);
	live = 0;
	EXPECT(process_settles(are_objects, &live));
	EXPECT_EQ(cl.clRetainContext(context_of_queue()), CL_SUCCESS); /* the fixture's */
	opaque_close();
}

static void *release_and_retain_often(void *unused)
{
	(void)unused;
	for (int i = 0; i < 300; i++)
		release_and_retain();
	return NULL;
}

TEST(refreshed_meanwhile,
     "While a thread releases and retains the context, each kernel is refreshed, and no buffer is "
     "left.")
{
	pthread_t thread;
	cl_kernel kernel;
	unsigned char *p;
	cl_mem mem;
	long live;

	open_caching();
	p = pages_map(1);
	mem = fixture_import_host(0, p, PAGE);
	kernel = fixture_create_increment(mem);
	EXPECT_EQ(pthread_create(&thread, NULL, release_and_retain_often, NULL), 0);
	for (int i = 0; i < 200; i++) {
		p[0] = (unsigned char)i;
		EXPECT_EQ(fixture_enqueue(fix.queue, kernel, 0, NULL, NULL), CL_SUCCESS);
		EXPECT_EQ(cl.clFinish(fix.queue), CL_SUCCESS);
		EXPECT_EQ(p[0], (unsigned char)(i + 1));
	}
	EXPECT_EQ(pthread_join(thread, NULL), 0);
	cl.clReleaseKernel(kernel);
	cl.clReleaseMemObject(mem);
	EXPECT_EQ(cl.clReleaseContext(fix.context), CL_SUCCESS);
	live = 0;
	EXPECT(process_settles(are_objects, &live));
	EXPECT_EQ(cl.clRetainContext(context_of_queue()), CL_SUCCESS); /* the fixture's */
	opaque_close();
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
	opaque_close();
}

/* The version of the extension, and the STARTs of four kernels: 1.1.0 leaves SYNC to the program. */
static const struct dma_buf_version {
	const char *name, *version;
	int starts;
} dma_buf_versions[] = { { "1_0_0", "1.0.0", 4 }, { "1_1_0", "1.1.0", 0 } };

TEST_EACH(mapped_dma_buf, struct dma_buf_version, dma_buf_versions,
	  "A dma-buf is imported by its CPU mapping and refreshed, whether the runtime or the "
	  "application keeps the data consistent.")
{
	struct fake_vulkan *vk = opaque_reset();
	unsigned char *seen;
	cl_mem mem;
	int fd;

	vk->gpu[0].no_dmabuf = true;
	stub_set(STUB_OPAQUE_CACHED, 1);
	setenv("CLIMPORT_VERSION", row->version, 1);
	fixture_open();
	fd = fake_dmabuf_create("frame", PAGE);
	seen = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	EXPECT(seen != MAP_FAILED);
	mem = fixture_import_dmabuf(fd, PAGE);
	close(fd);
	stub_trace_clear();
	for (int i = 0; i < 4; i++) {
		seen[0] = 30 * i;
		fixture_increment(mem);
		EXPECT_EQ(seen[0], 30 * i + 1);
	}
	EXPECT_EQ(stub_trace_count("sync START"), row->starts);
	cl.clReleaseMemObject(mem);
	munmap(seen, PAGE);
	unsetenv("CLIMPORT_VERSION");
	opaque_close();
}

/* The STARTs of three kernels that a user event holds back.  The host writes before each. */
static int mapped_dma_buf_starts(void)
{
	struct fake_vulkan *vk = opaque_reset();
	unsigned char *seen;
	cl_kernel kernel;
	cl_event gate;
	cl_mem mem;
	int fd;

	vk->gpu[0].no_dmabuf = true;
	stub_set(STUB_OPAQUE_CACHED, 1);
	fixture_open();
	fd = fake_dmabuf_create("frame", PAGE);
	seen = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	EXPECT(seen != MAP_FAILED);
	mem = fixture_import_dmabuf(fd, PAGE);
	close(fd);
	kernel = fixture_create_increment(mem);
	fixture_increment(mem);
	stub_trace_clear();
	gate = cl.clCreateUserEvent(fix.context, NULL);
	EXPECT_EQ(cl.clEnqueueMarkerWithWaitList(fix.queue, 1, &gate, NULL), CL_SUCCESS);
	for (int i = 1; i <= 3; i++) {
		seen[0] = 30 * i;
		EXPECT_EQ(fixture_enqueue(fix.queue, kernel, 0, NULL, NULL), CL_SUCCESS);
	}
	EXPECT_EQ(cl.clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(fix.queue), CL_SUCCESS);
	EXPECT_EQ(seen[0], 93);
	cl.clReleaseEvent(gate);
	cl.clReleaseKernel(kernel);
	cl.clReleaseMemObject(mem);
	munmap(seen, PAGE);
	opaque_close();
	return stub_trace_count("sync START");
}

TEST(mapped_dma_buf_row, "Kernels in a row on a mapped dma-buf share a refresh, which comes after "
			 "the host's last write "
			 "before the last kernel.")
{
	int starts = 0;

	for (int i = 0; i < 100 && starts != 1; i++)
		starts = mapped_dma_buf_starts();
	EXPECT_EQ(starts, 1);
}
