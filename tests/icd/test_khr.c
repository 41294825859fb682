/* SPDX-License-Identifier: Apache-2.0 */
/* The method khr: dma-bufs by cl_khr_external_memory, on good drivers and bad ones. */
#include "fixture.h"

#include <fcntl.h>
#include <linux/udmabuf.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

typedef cl_int(CL_API_CALL *edge_fn)(cl_command_queue, cl_uint, const cl_mem *, cl_uint,
				     const cl_event *, cl_event *);

/* A GPU that copies host memory, on a machine that makes dma-bufs for self-tests. */
static void khr_open(enum stub_khr form, long habits)
{
	fixture_reset();
	fake_dmabuf_set_udmabuf(FAKE_UDMABUF);
	stub_set(STUB_COPYING, 1);
	stub_set(STUB_GPU, 1);
	stub_set(STUB_NO_NATIVE_KERNEL, 1);
	stub_set(STUB_KHR_DMABUF, form);
	stub_set(STUB_KHR_HABITS, habits);
	fixture_open();
}

static void khr_map_bytes(int fd, unsigned char **bytes)
{
	*bytes = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	EXPECT(*bytes != MAP_FAILED);
}

/* The layer's commands around a kernel: each once, and in order. */
static void khr_expect_order(void)
{
	const int acquire = stub_trace_find("acquire", 0),
		  kernel = stub_trace_find("kernel increment begin", 0),
		  release = stub_trace_find("release", 0);

	EXPECT(acquire >= 0 && acquire < kernel && kernel < release);
	EXPECT_EQ(stub_trace_count("acquire"), 1);
	EXPECT_EQ(stub_trace_count("release"), 1);
	EXPECT_EQ(stub_trace_count("used without"), 0);
}

static const struct khr_driver {
	const char *name;
	enum stub_khr form;
	long habits;
	bool is_taken;
	const char *says;
} drivers[] = {
	{ "good", STUB_KHR_WORKS, 0, true, NULL },
	{ "unnamed", STUB_KHR_UNNAMED, 0, true, NULL },
	{ "not_zero", STUB_KHR_WORKS, STUB_KHR_NOT_ZERO, true, NULL },
	{ "closes", STUB_KHR_WORKS, STUB_KHR_CLOSES, true, NULL },
	{ "needs_acquire", STUB_KHR_WORKS, STUB_KHR_NEEDS_ACQUIRE, true, NULL },
	{ "name_alone", STUB_KHR_NAME, 0, false, "copies on this device" },
	{ "no_handle", STUB_KHR_NO_HANDLE, 0, false, "copies on this device" },
	{ "unrelated", STUB_KHR_WORKS, STUB_KHR_UNRELATED, false, "works on other memory" },
	{ "copies", STUB_KHR_WORKS, STUB_KHR_COPIES, false, "works on other memory" },
	{ "refuses", STUB_KHR_WORKS, STUB_KHR_REFUSES, false, "refuses a dma-buf" },
	{ "refuses_and_closes", STUB_KHR_WORKS, STUB_KHR_REFUSES | STUB_KHR_CLOSES, false,
	  "refuses a dma-buf" },
	{ "no_events", STUB_KHR_WORKS, STUB_KHR_NO_EVENT, false, "refuses a dma-buf" },
	{ "no_functions", STUB_KHR_WORKS, STUB_KHR_NO_FUNCTIONS, false, "copies on this device" },
};

TEST_EACH(driver, struct khr_driver, drivers,
	  "A device takes a dma-buf if kernels work on the memory itself; else the import is "
	  "refused.")
{
	unsigned char *bytes;
	cl_mem mem;
	int fd;

	khr_open(row->form, row->habits);
	fd = fake_dmabuf_create("a", PAGE);
	khr_map_bytes(fd, &bytes);
	if (row->is_taken) {
		mem = fixture_import_dmabuf(fd, PAGE);
		bytes[0] = 41;
		stub_trace_clear();
		fixture_increment(mem);
		EXPECT_EQ(bytes[0], 42);
		khr_expect_order();
		EXPECT(fixture_is_import(mem));
		EXPECT(fcntl(fd, F_GETFD) >= 0);
		cl.clReleaseMemObject(mem);
	} else {
		EXPECT_EQ(fixture_import_error(fix.context, 0, fixture_dma_buf, &fd, PAGE),
			  CL_INVALID_PROPERTY);
		if (!strstr(fix.notice, row->says))
			printf("# %s\n", fix.notice);
		EXPECT(strstr(fix.notice, row->says));
	}
	EXPECT(fcntl(fd, F_GETFD) >= 0); /* the application's descriptor */
	munmap(bytes, PAGE);
	close(fd);
	fixture_close();
}

TEST(descriptor_zero,
     "A dma-buf whose descriptor is 0 is imported, also by a driver that takes 0 for none.")
{
	const int before = dup(0);
	unsigned char *bytes;
	cl_mem mem;
	int fd, zero = 0;

	khr_open(STUB_KHR_WORKS, STUB_KHR_NOT_ZERO);
	fd = fake_dmabuf_create("a", PAGE);
	khr_map_bytes(fd, &bytes);
	dup2(fd, 0);
	mem = fixture_import_dmabuf(zero, PAGE);
	bytes[0] = 41;
	fixture_increment(mem);
	EXPECT_EQ(bytes[0], 42);
	cl.clReleaseMemObject(mem);
	munmap(bytes, PAGE);
	if (before >= 0)
		dup2(before, 0);
	else
		close(0);
	close(before);
	close(fd);
	fixture_close();
}

TEST(no_sample, "Without a dma-buf for the self-test no device is proved, and the message says so.")
{
	int fd;

	if (!access("/dev/dma_heap/system", R_OK))
		test_skip("this machine has a heap of dma-bufs");
	khr_open(STUB_KHR_WORKS, 0);
	fake_dmabuf_set_udmabuf(FAKE_UDMABUF_NONE);
	fd = fake_dmabuf_create("a", PAGE);
	EXPECT_EQ(fixture_import_error(fix.context, 0, fixture_dma_buf, &fd, PAGE),
		  CL_INVALID_PROPERTY);
	EXPECT(strstr(fix.notice, "/dev/udmabuf"));
	close(fd);
	fixture_close();
}

static const struct khr_room {
	const char *name;
	int left; /* descriptors at the first import */
} rooms[] = { { "0", 0 }, { "1", 1 }, { "2", 2 }, { "3", 3 }, { "4", 4 }, { "5", 5 }, { "6", 6 } };

TEST_EACH(few_descriptors, struct khr_room, rooms,
	  "If a process is short of descriptors at its first import, a later import works.")
{
	struct rlimit before;
	int fd, next;
	cl_mem mem;

	khr_open(STUB_KHR_WORKS, 0);
	fd = fake_dmabuf_create("a", PAGE);
	next = dup(fd);
	close(next);
	process_limit_descriptors((rlim_t)next + (rlim_t)row->left, &before);
	mem = fix.import(fix.context, 0, fixture_dma_buf, &fd, PAGE, NULL);
	setrlimit(RLIMIT_NOFILE, &before);
	if (mem)
		cl.clReleaseMemObject(mem);
	cl.clReleaseMemObject(fixture_import_dmabuf(fd, PAGE));
	close(fd);
	fixture_close();
}

TEST_EACH(proof_stays, struct khr_room, rooms,
	  "A device that was proved stays proved, whatever tests of other memory meet.")
{
	struct rlimit before;
	cl_mem mems[8] = { NULL };
	int fd, next;

	khr_open(STUB_KHR_WORKS, 0);
	fd = fake_dmabuf_create("a", PAGE);
	next = dup(fd);
	close(next);
	process_limit_descriptors((rlim_t)next + (rlim_t)row->left, &before);
	for (int i = 0; i < 8; i++)
		mems[i] = fix.import(fix.context, 0, fixture_dma_buf, &fd, PAGE, NULL);
	setrlimit(RLIMIT_NOFILE, &before);
	if (mems[0])
		cl.clReleaseMemObject(fixture_import_dmabuf(fd, PAGE));
	for (int i = 0; i < 8; i++)
		if (mems[i])
			cl.clReleaseMemObject(mems[i]);
	close(fd);
	fixture_close();
}

TEST(not_tested_by_queries, "A query of extension names compiles nothing.")
{
	unsigned long builds;

	khr_open(STUB_KHR_WORKS, 0);
	setenv("CLIMPORT_PROBE", "off", 1);
	builds = stub_calls("clBuildProgram");
	fixture_device_reports(fix.device[0], "cl_arm_import_memory");
	EXPECT_EQ(stub_calls("clBuildProgram"), builds);
	fixture_close();
}

TEST(reported,
     "A device that is proved reports dma-bufs, and host memory only if it takes host memory.")
{
	khr_open(STUB_KHR_WORKS, 0);
	EXPECT(fixture_device_reports(fix.device[0], "cl_arm_import_memory_dma_buf"));
	fixture_close();
}

TEST(flags, "The driver gets no flags of host pointers.")
{
	int fd;
	cl_int err = 1;
	cl_mem mem;

	khr_open(STUB_KHR_WORKS, 0);
	fd = fake_dmabuf_create("a", PAGE);
	mem = fix.import(fix.context, CL_MEM_READ_ONLY | CL_MEM_USE_HOST_PTR, fixture_dma_buf, &fd,
			 PAGE, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	EXPECT_EQ(stub_arg("clCreateBufferWithProperties", 2), CL_MEM_READ_ONLY);
	EXPECT_EQ(stub_arg("clCreateBufferWithProperties", 4), 0);
	cl.clReleaseMemObject(mem);
	close(fd);
	fixture_close();
}

TEST(descriptors, "A thousand imports leave no descriptor.")
{
	int fd, fds;

	khr_open(STUB_KHR_WORKS, 0);
	fd = fake_dmabuf_create("a", PAGE);
	cl.clReleaseMemObject(fixture_import_dmabuf(fd, PAGE));
	fds = process_count_descriptors();
	for (int i = 0; i < 1000; i++)
		cl.clReleaseMemObject(fixture_import_dmabuf(fd, PAGE));
	EXPECT(process_settles(process_descriptors_at_most, &fds));
	close(fd);
	fixture_close();
}

TEST(event, "The event of a kernel completes behind the release, and answers as the kernel's.")
{
	cl_command_type type = 0;
	cl_kernel kernel;
	cl_event go, event;
	cl_mem mem;
	int fd;

	khr_open(STUB_KHR_WORKS, 0);
	fd = fake_dmabuf_create("a", PAGE);
	mem = fixture_import_dmabuf(fd, PAGE);
	kernel = fixture_create_increment(mem);
	stub_trace_clear();
	go = cl.clCreateUserEvent(fix.context, NULL);
	EXPECT_EQ(fixture_enqueue(fix.queue, kernel, 1, &go, &event), CL_SUCCESS);
	EXPECT_EQ(stub_trace_count("acquire"), 0);
	EXPECT_EQ(cl.clGetEventInfo(event, CL_EVENT_COMMAND_TYPE, sizeof(type), &type, NULL),
		  CL_SUCCESS);
	EXPECT_EQ(type, CL_COMMAND_NDRANGE_KERNEL);
	EXPECT_EQ(cl.clSetUserEventStatus(go, CL_COMPLETE), CL_SUCCESS);
	EXPECT_EQ(cl.clWaitForEvents(1, &event), CL_SUCCESS);
	EXPECT_EQ(stub_trace_count("release"), 1);
	EXPECT_EQ(fixture_event_status(event), CL_COMPLETE);
	khr_expect_order();
	cl.clReleaseEvent(event);
	cl.clReleaseEvent(go);
	cl.clReleaseKernel(kernel);
	cl.clReleaseMemObject(mem);
	close(fd);
	fixture_close();
}

TEST(once_each, "A kernel with an import and a sub-buffer of the import acquires the import once.")
{
	cl_mem mem, part;
	cl_kernel kernel;
	const cl_uint size = 1;
	int fd;

	khr_open(STUB_KHR_WORKS, 0);
	fd = fake_dmabuf_create("a", PAGE);
	mem = fixture_import_dmabuf(fd, PAGE);
	part = fixture_create_sub_buffer(mem, 128, 128);
	kernel = fixture_create_kernel("copy");
	cl.clSetKernelArg(kernel, 0, sizeof(mem), &mem);
	cl.clSetKernelArg(kernel, 1, sizeof(part), &part);
	cl.clSetKernelArg(kernel, 2, sizeof(size), &size);
	stub_trace_clear();
	EXPECT_EQ(fixture_enqueue(fix.queue, kernel, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(fix.queue), CL_SUCCESS);
	EXPECT_EQ(stub_trace_count("acquire"), 1);
	EXPECT_EQ(stub_trace_count("release"), 1);
	EXPECT_EQ(stub_trace_count("used without"), 0);
	cl.clReleaseKernel(kernel);
	cl.clReleaseMemObject(part);
	cl.clReleaseMemObject(mem);
	close(fd);
	fixture_close();
}

/* Calls of the application: of the driver's functions, or of the layer's in their place. */
static edge_fn khr_function_of(const char *name)
{
	edge_fn function = (edge_fn)cl.clGetExtensionFunctionAddressForPlatform(fix.platform, name);

	EXPECT(function);
	return function;
}

TEST(application_acquires,
     "An application that acquires and releases an import itself does no harm.")
{
	edge_fn acquire, release;
	unsigned char *bytes;
	cl_event events[2];
	cl_mem mem;
	int fd;

	khr_open(STUB_KHR_WORKS, 0);
	fd = fake_dmabuf_create("a", PAGE);
	khr_map_bytes(fd, &bytes);
	acquire = khr_function_of("clEnqueueAcquireExternalMemObjectsKHR");
	release = khr_function_of("clEnqueueReleaseExternalMemObjectsKHR");
	mem = fixture_import_dmabuf(fd, PAGE);
	stub_trace_clear();
	EXPECT_EQ(acquire(fix.queue, 1, &mem, 0, NULL, &events[0]), CL_SUCCESS);
	bytes[0] = 1;
	fixture_increment(mem);
	EXPECT_EQ(release(fix.queue, 1, &mem, 1, &events[0], &events[1]), CL_SUCCESS);
	EXPECT_EQ(cl.clWaitForEvents(2, events), CL_SUCCESS);
	EXPECT_EQ(bytes[0], 2);
	khr_expect_order();
	EXPECT_EQ(stub_trace_count("acquired twice"), 0);
	EXPECT_EQ(stub_trace_count("released twice"), 0);
	cl.clReleaseEvent(events[0]);
	cl.clReleaseEvent(events[1]);
	cl.clReleaseMemObject(mem);
	munmap(bytes, PAGE);
	close(fd);
	fixture_close();
}

static bool khr_is_complete(void *event)
{
	return fixture_event_status(event) == CL_COMPLETE;
}

TEST(application_acquires_out_of_order,
     "On an out-of-order queue an application's acquire waits for no other command.")
{
	cl_mem mem, other;
	cl_event go, acquired = NULL;
	cl_command_queue queue;
	cl_kernel kernel;
	edge_fn acquire;
	int fd;

	khr_open(STUB_KHR_WORKS, 0);
	fd = fake_dmabuf_create("a", PAGE);
	acquire = khr_function_of("clEnqueueAcquireExternalMemObjectsKHR");
	mem = fixture_import_dmabuf(fd, PAGE);
	other = cl.clCreateBuffer(fix.context, 0, PAGE, NULL, NULL);
	kernel = fixture_create_increment(other);
	queue = fixture_create_queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
	go = cl.clCreateUserEvent(fix.context, NULL);
	EXPECT_EQ(fixture_enqueue(queue, kernel, 1, &go, NULL), CL_SUCCESS);
	EXPECT_EQ(acquire(queue, 1, &mem, 0, NULL, &acquired), CL_SUCCESS);
	EXPECT_EQ(cl.clFlush(queue), CL_SUCCESS);
	EXPECT(process_settles(khr_is_complete, acquired));
	EXPECT_EQ(cl.clSetUserEventStatus(go, CL_COMPLETE), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(queue), CL_SUCCESS);
	cl.clReleaseEvent(acquired);
	cl.clReleaseEvent(go);
	cl.clReleaseCommandQueue(queue);
	cl.clReleaseKernel(kernel);
	cl.clReleaseMemObject(other);
	cl.clReleaseMemObject(mem);
	close(fd);
	fixture_close();
}

TEST(application_others, "Objects that are no imports reach the driver's acquire as they are.")
{
	cl_mem_properties properties[] = { CL_EXTERNAL_MEMORY_HANDLE_DMA_BUF_KHR, 0, 0 };
	cl_mem both[2];
	edge_fn acquire;
	cl_int err;
	int fd;

	khr_open(STUB_KHR_WORKS, 0);
	fd = fake_dmabuf_create("a", PAGE);
	acquire = khr_function_of("clEnqueueAcquireExternalMemObjectsKHR");
	properties[1] = (cl_mem_properties)dup(fd);
	both[0] = cl.clCreateBufferWithProperties(fix.context, properties, 0, PAGE, NULL, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	both[1] = fixture_import_dmabuf(fd, PAGE);
	stub_trace_clear();
	EXPECT_EQ(acquire(fix.queue, 2, both, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(fix.queue), CL_SUCCESS);
	EXPECT_EQ(stub_trace_count("acquire"), 1);
	EXPECT_EQ(acquire(NULL, 1, both, 0, NULL, NULL), CL_INVALID_COMMAND_QUEUE);
	cl.clReleaseMemObject(both[1]);
	cl.clReleaseMemObject(both[0]);
	close(fd);
	fixture_close();
}

static const struct edge_fault {
	const char *name, *function;
	cl_int wanted; /* of the kernel's enqueue */
} edge_faults[] = {
	{ "acquire", "clEnqueueAcquireExternalMemObjectsKHR", CL_OUT_OF_RESOURCES },
	{ "kernel", "clEnqueueNDRangeKernel", CL_OUT_OF_RESOURCES },
	{ "release", "clEnqueueReleaseExternalMemObjectsKHR", CL_SUCCESS },
};

TEST_EACH(edge_faults, struct edge_fault, edge_faults,
	  "If the driver fails around a kernel, either no kernel runs or its event tells, and "
	  "nothing "
	  "is left acquired that can be released.")
{
	cl_kernel kernel;
	cl_event event = NULL;
	cl_mem mem;
	int fd;

	khr_open(STUB_KHR_WORKS, 0);
	fd = fake_dmabuf_create("a", PAGE);
	mem = fixture_import_dmabuf(fd, PAGE);
	kernel = fixture_create_increment(mem);
	stub_trace_clear();
	stub_fail(row->function, 1, CL_OUT_OF_RESOURCES);
	EXPECT_EQ(fixture_enqueue(fix.queue, kernel, 0, NULL, &event), row->wanted);
	EXPECT(stub_failed());
	EXPECT_EQ(event == NULL, row->wanted != CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(fix.queue), CL_SUCCESS);
	EXPECT_EQ(stub_trace_count("kernel increment begin"), row->wanted == CL_SUCCESS);
	if (row->wanted)
		EXPECT_EQ(stub_trace_count("acquire"), stub_trace_count("release"));
	if (event) {
		EXPECT_EQ(fixture_event_status(event), CL_COMPLETE);
		cl.clReleaseEvent(event);
	}
	cl.clReleaseKernel(kernel);
	cl.clReleaseMemObject(mem);
	close(fd);
	fixture_close();
}

TEST(kernel_fails, "If a kernel fails, so does the application's event, and the next kernel works.")
{
	unsigned char *bytes;
	cl_kernel kernel;
	cl_event event;
	cl_mem mem;
	int fd;

	khr_open(STUB_KHR_WORKS, 0);
	fd = fake_dmabuf_create("a", PAGE);
	khr_map_bytes(fd, &bytes);
	mem = fixture_import_dmabuf(fd, PAGE);
	kernel = fixture_create_increment(mem);
	stub_set(STUB_KERNEL_FAIL, -9999);
	EXPECT_EQ(fixture_enqueue(fix.queue, kernel, 0, NULL, &event), CL_SUCCESS);
	cl.clWaitForEvents(1, &event);
	EXPECT(fixture_event_status(event) < 0);
	stub_set(STUB_KERNEL_FAIL, 0);
	bytes[0] = 41;
	EXPECT_EQ(fixture_enqueue(fix.queue, kernel, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(fix.queue), CL_SUCCESS);
	EXPECT_EQ(bytes[0], 42);
	cl.clReleaseEvent(event);
	cl.clReleaseKernel(kernel);
	cl.clReleaseMemObject(mem);
	munmap(bytes, PAGE);
	close(fd);
	fixture_close();
}

TEST(released_before_use, "A kernel may run after the application has released the import.")
{
	unsigned char *bytes;
	cl_kernel kernel;
	cl_event go;
	cl_mem mem;
	int fd;

	khr_open(STUB_KHR_WORKS, 0);
	fd = fake_dmabuf_create("a", PAGE);
	khr_map_bytes(fd, &bytes);
	mem = fixture_import_dmabuf(fd, PAGE);
	close(fd);
	kernel = fixture_create_increment(mem);
	go = cl.clCreateUserEvent(fix.context, NULL);
	EXPECT_EQ(fixture_enqueue(fix.queue, kernel, 1, &go, NULL), CL_SUCCESS);
	cl.clReleaseKernel(kernel);
	cl.clReleaseMemObject(mem);
	EXPECT_EQ(cl.clSetUserEventStatus(go, CL_COMPLETE), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(fix.queue), CL_SUCCESS);
	EXPECT_EQ(bytes[0], 1);
	cl.clReleaseEvent(go);
	munmap(bytes, PAGE);
	fixture_close();
}

TEST(host_access, "In version 1.1.0 the host's commands on an import acquire and release, too.")
{
	unsigned char *bytes, seen = 0;
	cl_mem mem;
	int fd;

	fixture_reset();
	setenv("CLIMPORT_VERSION", "1.1.0", 1);
	fake_dmabuf_set_udmabuf(FAKE_UDMABUF);
	stub_set(STUB_COPYING, 1);
	stub_set(STUB_GPU, 1);
	stub_set(STUB_NO_NATIVE_KERNEL, 1);
	stub_set(STUB_KHR_DMABUF, STUB_KHR_WORKS);
	fixture_open();
	fd = fake_dmabuf_create("a", PAGE);
	khr_map_bytes(fd, &bytes);
	mem = fixture_import_dmabuf(fd, PAGE);
	bytes[7] = 77;
	stub_trace_clear();
	EXPECT_EQ(cl.clEnqueueReadBuffer(fix.queue, mem, CL_TRUE, 7, 1, &seen, 0, NULL, NULL),
		  CL_SUCCESS);
	EXPECT_EQ(seen, 77);
	EXPECT_EQ(stub_trace_count("acquire"), 1);
	EXPECT_EQ(stub_trace_count("release"), 1);
	cl.clReleaseMemObject(mem);
	munmap(bytes, PAGE);
	close(fd);
	fixture_close();
}

TEST(host_refused, "The message for refused host memory is about host memory.")
{
	khr_open(STUB_KHR_NAME, 0);
	EXPECT_EQ(fixture_import_error(fix.context, 0, NULL, pages_map(1), PAGE),
		  CL_INVALID_PROPERTY);
	EXPECT(strstr(fix.notice, "CL_MEM_USE_HOST_PTR copies on this device"));
	fixture_close();
}

TEST(dma_buf_by_host_ptr,
     "If a device is zero copy for host memory and has the extension by name alone, a dma-buf is "
     "imported by its mapping.")
{
	cl_mem mem;
	int fd;

	fixture_reset();
	stub_set(STUB_KHR_DMABUF, STUB_KHR_NAME);
	fixture_open();
	fd = fake_dmabuf_create("a", PAGE);
	mem = fixture_import_dmabuf(fd, PAGE);
	fixture_increment(mem);
	cl.clReleaseMemObject(mem);
	fixture_close();
	close(fd);
}

TEST(untested_above, "If a dma-buf of the driver cannot be tested now, what is proved by mapping "
		     "counts: buffers and images.")
{
	cl_int err = 1;
	cl_mem mem, image;

	fixture_reset();
	fake_dmabuf_set_udmabuf(FAKE_UDMABUF);
	stub_set(STUB_KHR_DMABUF, STUB_KHR_WORKS);
	stub_set(STUB_FAULT_STAYS, 1);
	stub_fail("clCreateBufferWithProperties", 1, CL_OUT_OF_HOST_MEMORY);
	fixture_open();
	mem = fixture_import_host(0, pages_map(1), PAGE);
	image = fixture_try_image(0, mem, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	cl.clReleaseMemObject(image);
	cl.clReleaseMemObject(mem);
	stub_fail(NULL, 0, 0);
	fixture_close();
}

/* Shared memory of a sealed memfd, of which udmabuf makes dma-bufs; the descriptor stays open. */
static unsigned char *khr_map_sealed(size_t pages, int *fd)
{
	void *memory;

	*fd = memfd_create("sealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	EXPECT(*fd >= 0 && !ftruncate(*fd, (off_t)pages * PAGE));
	EXPECT(!fcntl(*fd, F_ADD_SEALS, F_SEAL_SHRINK));
	memory = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
	EXPECT(memory != MAP_FAILED);
	return memory;
}

static const struct khr_range {
	const char *name;
	struct pages offset, size;
} ranges[] = {
	{ "whole", { 0, 0 }, { 2, 0 } },
	{ "odd_size", { 0, 0 }, { 0, 100 } },
	{ "part", { 0, 256 }, { 0, 1000 } },
};

TEST_EACH(
	host_memory, struct khr_range, ranges,
	"On a device that copies host pointers, host memory is imported as a dma-buf of its pages.")
{
	unsigned char *memory, *p;
	cl_mem mem;
	int fd;

	khr_open(STUB_KHR_WORKS, STUB_KHR_NEEDS_ACQUIRE);
	memory = khr_map_sealed(2, &fd);
	p = memory + pages_bytes(row->offset);
	mem = fixture_import_host(CL_MEM_READ_WRITE, p, pages_bytes(row->size));
	p[0] = 41;
	stub_trace_clear();
	fixture_increment(mem);
	EXPECT_EQ(p[0], 42);
	khr_expect_order();
	p[0] = 0;
	for (size_t i = 0; i < 2 * PAGE; i++)
		EXPECT_EQ(memory[i], 0);
	EXPECT(fixture_is_import(mem));
	EXPECT(fixture_device_reports(fix.device[0], "cl_arm_import_memory_host"));
	cl.clReleaseMemObject(mem);
	munmap(memory, 2 * PAGE);
	close(fd);
	fixture_close();
}

TEST(host_memory_unaligned, "Host memory that no sub-buffer of its pages can begin at is refused, "
			    "and the message names the "
			    "alignment.")
{
	unsigned char *memory;
	int fd;

	khr_open(STUB_KHR_WORKS, 0);
	memory = khr_map_sealed(1, &fd);
	EXPECT_EQ(fixture_import_error(fix.context, 0, NULL, memory + 1, 100),
		  CL_INVALID_OPERATION);
	EXPECT(strstr(fix.notice, "multiples of 128 bytes"));
	munmap(memory, PAGE);
	close(fd);
	fixture_close();
}

TEST(host_memory_of_no_exporter,
     "Host memory of which nobody makes a dma-buf is refused, and the device's other imports work.")
{
	unsigned char *memory;
	int fd;

	khr_open(STUB_KHR_WORKS, 0);
	EXPECT_EQ(fixture_import_error(fix.context, 0, NULL, pages_map(1), PAGE),
		  CL_INVALID_OPERATION);
	memory = khr_map_sealed(1, &fd);
	cl.clReleaseMemObject(fixture_import_host(0, memory, PAGE));
	munmap(memory, PAGE);
	close(fd);
	fixture_close();
}

static const struct khr_driver host_drivers[] = {
	{ "unrelated", STUB_KHR_WORKS, STUB_KHR_UNRELATED, false, "not zero copy" },
	{ "copies", STUB_KHR_WORKS, STUB_KHR_COPIES, false, "not zero copy" },
	{ "refuses", STUB_KHR_WORKS, STUB_KHR_REFUSES, false, "refuses pages" },
	{ "name_alone", STUB_KHR_NAME, 0, false, "copies on this device" },
};

TEST_EACH(host_memory_refused, struct khr_driver, host_drivers,
	  "A device on which kernels do not work on the pages themselves takes no host memory.")
{
	khr_open(row->form, row->habits);
	EXPECT_EQ(fixture_import_error(fix.context, 0, NULL, pages_map(1), PAGE),
		  CL_INVALID_PROPERTY);
	if (!strstr(fix.notice, row->says))
		printf("# %s\n", fix.notice);
	EXPECT(strstr(fix.notice, row->says));
	fixture_close();
}

TEST(host_memory_without_exporter,
     "Where nobody makes a dma-buf of pages, host memory is refused, and the message says so.")
{
	khr_open(STUB_KHR_WORKS, 0);
	fake_dmabuf_set_udmabuf(FAKE_UDMABUF_NONE);
	EXPECT_EQ(fixture_import_error(fix.context, 0, NULL, pages_map(1), PAGE),
		  CL_INVALID_PROPERTY);
	EXPECT(strstr(fix.notice, "/dev/gdmabuf"));
	fixture_close();
}

TEST(host_memory_faults,
     "Whichever call of the driver fails, an import of host memory is the memory or is not made.")
{
	unsigned long nth = 1;
	bool has_failed = true;

	for (; has_failed; nth++) {
		unsigned char *memory;
		cl_int err = 1;
		cl_mem mem;
		int fd;

		khr_open(STUB_KHR_WORKS, 0);
		memory = khr_map_sealed(1, &fd);
		cl.clReleaseMemObject(fixture_import_host(0, memory, PAGE)); /* tests the device */
		stub_fail(NULL, nth, CL_OUT_OF_RESOURCES);
		mem = fix.import(fix.context, 0, NULL, memory + 128, 100, &err);
		EXPECT_EQ(mem == NULL, err != CL_SUCCESS);
		has_failed = stub_failed();
		stub_fail(NULL, 0, 0);
		if (mem)
			fixture_increment(mem);
		EXPECT_EQ(memory[128], mem != NULL);
		if (mem)
			cl.clReleaseMemObject(mem);
		munmap(memory, PAGE);
		close(fd);
		fixture_close();
	}
	printf("# %lu calls that can fail\n", nth - 2);
	EXPECT(nth > 3);
}

static const struct khr_image {
	const char *name;
	enum stub_option habit;
	bool is_part, is_taken;
} images[] = {
	{ "of_import", STUB_NUM_OPTIONS, false, true },
	{ "of_part", STUB_NUM_OPTIONS, true, true },
	{ "of_part_at_root", STUB_IMAGES_AT_ROOT, true, false },
	{ "packed", STUB_IMAGES_PACKED, false, false },
};

TEST_EACH(
	images, struct khr_image, images,
	"An image on a dma-buf shows the dma-buf, or is refused, and is acquired with the dma-buf.")
{
	const cl_uint width = 1, height = 1;
	unsigned char *bytes, seen[4] = { 0 };
	cl_mem mem, parent, image, out;
	cl_kernel kernel;
	cl_int err;
	int fd;

	khr_open(STUB_KHR_WORKS, STUB_KHR_NEEDS_ACQUIRE);
	stub_set(STUB_IMAGE2D_FROM_BUFFER, 1);
	if (row->habit < STUB_NUM_OPTIONS)
		stub_set(row->habit, 1);
	fd = fake_dmabuf_create("a", PAGE);
	khr_map_bytes(fd, &bytes);
	mem = fixture_import_dmabuf(fd, PAGE);
	parent = row->is_part ? fixture_create_sub_buffer(mem, 256, 1024) : mem;
	image = fixture_try_image(0, parent, &err);
	EXPECT_EQ(err, row->is_taken ? CL_SUCCESS : CL_INVALID_OPERATION);
	if (image) {
		out = cl.clCreateBuffer(fix.context, 0, 64, NULL, NULL);
		kernel = fixture_create_kernel("image_to_buffer");
		cl.clSetKernelArg(kernel, 0, sizeof(image), &image);
		cl.clSetKernelArg(kernel, 1, sizeof(out), &out);
		cl.clSetKernelArg(kernel, 2, sizeof(width), &width);
		cl.clSetKernelArg(kernel, 3, sizeof(height), &height);
		bytes[row->is_part ? 256 : 0] = 42;
		stub_trace_clear();
		EXPECT_EQ(fixture_enqueue(fix.queue, kernel, 0, NULL, NULL), CL_SUCCESS);
		EXPECT_EQ(
			cl.clEnqueueReadBuffer(fix.queue, out, CL_TRUE, 0, 4, seen, 0, NULL, NULL),
			CL_SUCCESS);
		EXPECT_EQ(seen[0], 42);
		EXPECT_EQ(stub_trace_count("acquire"), 1);
		EXPECT_EQ(stub_trace_count("used without"), 0);
		cl.clReleaseKernel(kernel);
		cl.clReleaseMemObject(out);
		cl.clReleaseMemObject(image);
	}
	if (row->is_part)
		cl.clReleaseMemObject(parent);
	cl.clReleaseMemObject(mem);
	munmap(bytes, PAGE);
	close(fd);
	fixture_close();
}

TEST(every_fault, "Whichever call of the driver fails in a first import and a kernel, an import "
		  "that is made is the "
		  "memory, and nothing is left.")
{
	unsigned long nth = 1;
	bool has_failed = true;

	for (; has_failed; nth++) {
		unsigned char *bytes;
		cl_int err = 1;
		cl_mem mem;
		int fd;

		khr_open(STUB_KHR_WORKS, 0);
		fd = fake_dmabuf_create("a", PAGE);
		khr_map_bytes(fd, &bytes);
		stub_fail(NULL, nth, CL_OUT_OF_RESOURCES);
		mem = fix.import(fix.context, 0, fixture_dma_buf, &fd, PAGE, &err);
		EXPECT_EQ(mem == NULL, err != CL_SUCCESS);
		has_failed = stub_failed();
		stub_fail(NULL, 0, 0);
		if (mem)
			fixture_increment(mem);
		EXPECT_EQ(bytes[0], mem != NULL);
		if (mem)
			cl.clReleaseMemObject(mem);
		munmap(bytes, PAGE);
		close(fd);
		fixture_close();
	}
	printf("# %lu calls that can fail\n", nth - 2);
	EXPECT(nth > 20);
}

/* A dma-buf of the kernel's, of a memfd's page. */
static int khr_create_real(void)
{
	struct udmabuf_create create = { .flags = UDMABUF_FLAGS_CLOEXEC, .size = PAGE };
	int device = open("/dev/udmabuf", O_RDWR | O_CLOEXEC), fd;

	if (device < 0)
		return -1;
	fd = memfd_create("real", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	EXPECT(fd >= 0 && !ftruncate(fd, PAGE) && !fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK));
	create.memfd = (__u32)fd;
	fd = ioctl(device, UDMABUF_CREATE, &create);
	close((int)create.memfd);
	close(device);
	EXPECT(fd >= 0);
	return fd;
}

TEST(real, "A dma-buf of the kernel's is imported after a self-test on a dma-buf of the kernel's.")
{
	unsigned char *bytes;
	cl_mem mem;
	int fd;

	khr_open(STUB_KHR_WORKS, STUB_KHR_NEEDS_ACQUIRE);
	fake_dmabuf_set_udmabuf(FAKE_UDMABUF_REAL);
	fd = khr_create_real();
	if (fd < 0) {
		fixture_close();
		test_skip("the kernel has no /dev/udmabuf here: the test runs in the guest");
	}
	khr_map_bytes(fd, &bytes);
	mem = fixture_import_dmabuf(fd, PAGE);
	close(fd);
	bytes[0] = 41;
	fixture_increment(mem);
	EXPECT_EQ(bytes[0], 42);
	cl.clReleaseMemObject(mem);
	munmap(bytes, PAGE);
	fixture_close();
}

TEST(real_host_memory, "Host memory is imported as a dma-buf of the kernel's, of its pages.")
{
	unsigned char *memory;
	cl_mem mem;
	int fd;

	khr_open(STUB_KHR_WORKS, STUB_KHR_NEEDS_ACQUIRE);
	fake_dmabuf_set_udmabuf(FAKE_UDMABUF_REAL);
	if (access("/dev/udmabuf", R_OK | W_OK)) {
		fixture_close();
		test_skip("the kernel has no /dev/udmabuf here: the test runs in the guest");
	}
	memory = khr_map_sealed(2, &fd);
	mem = fixture_import_host(CL_MEM_READ_WRITE, memory + PAGE + 256, 1000);
	memory[PAGE + 256] = 41;
	fixture_increment(mem);
	EXPECT_EQ(memory[PAGE + 256], 42);
	cl.clReleaseMemObject(mem);
	munmap(memory, 2 * PAGE);
	close(fd);
	fixture_close();
}
