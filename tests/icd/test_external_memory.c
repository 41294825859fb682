/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cl_khr_external_memory_dma_buf by the layer, on the stub, which lacks it: objects by properties, START at the acquire and
 * END at the release, and no bracket and no forbidden call between.
 */
#include "access.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#define DMA_BUF CL_EXTERNAL_MEMORY_HANDLE_DMA_BUF_KHR
#define DEVICES \
	0x2051 /* CL_MEM_DEVICE_HANDLE_LIST_KHR, which the headers of Debian 12 do not have */
#define LINEAR 0x2052 /* CL_DEVICE_EXTERNAL_MEMORY_IMPORT_ASSUME_LINEAR_IMAGES_HANDLE_TYPES_KHR */

typedef cl_int(CL_API_CALL *edge_fn)(cl_command_queue, cl_uint, const cl_mem *, cl_uint,
				     const cl_event *, cl_event *);

static struct external {
	int fd;
	unsigned char *seen; /* the host's mapping */
	cl_mem mem;
	edge_fn acquire, release;
	cl_command_queue queue;
} x;

static edge_fn door_find(const char *name)
{
	return (edge_fn)cl.clGetExtensionFunctionAddressForPlatform(fix.platform, name);
}

static cl_mem door_create(const cl_mem_properties *properties, cl_mem_flags flags, size_t size,
			  cl_int *err)
{
	return cl.clCreateBufferWithProperties(fix.context, properties, flags, size, NULL, err);
}

static void door_start(void)
{
	fixture_open();
	x = (struct external){ .fd = fake_dmabuf_create("a", SIZE) };
	x.seen = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, x.fd, 0);
	EXPECT(x.seen != MAP_FAILED);
	x.acquire = door_find("clEnqueueAcquireExternalMemObjectsKHR");
	x.release = door_find("clEnqueueReleaseExternalMemObjectsKHR");
	EXPECT(x.acquire && x.release);
}

/* @khr: what the driver itself has, enum stub_khr. */
static void door_open_beside(int khr, cl_command_queue_properties properties)
{
	const cl_mem_properties list[] = { DMA_BUF, 0, 0 };
	cl_mem_properties own[3];
	cl_int err;

	fixture_reset();
	stub_set(STUB_KHR_DMABUF, khr);
	door_start();
	memcpy(own, list, sizeof(own));
	own[1] = (cl_mem_properties)x.fd;
	x.mem = door_create(own, CL_MEM_READ_WRITE, SIZE, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	x.queue = fixture_create_queue(properties);
	stub_trace_clear();
}

static void door_open(cl_command_queue_properties properties)
{
	door_open_beside(STUB_KHR_NONE, properties);
}

static void door_release(void)
{
	if (x.mem)
		EXPECT_EQ(cl.clReleaseMemObject(x.mem), CL_SUCCESS);
	if (x.queue)
		cl.clReleaseCommandQueue(x.queue);
	munmap(x.seen, SIZE);
	close(x.fd);
}

static void door_close(void)
{
	door_release();
	fixture_close();
}

TEST_EACH(pair, struct queue_kind, queue_kinds,
	  "START comes with the acquire and END with the release; two kernels between have no "
	  "bracket.")
{
	cl_kernel kernel;
	cl_event at[4];

	door_open(row->properties);
	kernel = fixture_create_increment(x.mem);
	x.seen[0] = 40;
	EXPECT_EQ(x.acquire(x.queue, 1, &x.mem, 0, NULL, &at[0]), CL_SUCCESS);
	EXPECT_EQ(fixture_enqueue(x.queue, kernel, 1, &at[0], &at[1]), CL_SUCCESS);
	EXPECT_EQ(fixture_enqueue(x.queue, kernel, 1, &at[1], &at[2]), CL_SUCCESS);
	EXPECT_EQ(x.release(x.queue, 1, &x.mem, 1, &at[2], &at[3]), CL_SUCCESS);
	EXPECT_EQ(cl.clWaitForEvents(1, &at[3]), CL_SUCCESS);
	expect_count("sync START a rw", 1);
	expect_count("sync END a rw", 1);
	expect_order("sync START a", "kernel increment");
	expect_order("kernel increment", "sync END a");
	EXPECT_EQ(x.seen[0], 42);
	for (int i = 0; i < 4; i++)
		cl.clReleaseEvent(at[i]);
	cl.clReleaseKernel(kernel);
	door_close();
}

TEST(finish, "Without events: clFinish returns behind END.")
{
	cl_kernel kernel;

	door_open(0);
	kernel = fixture_create_increment(x.mem);
	fake_dmabuf_delay(10);
	EXPECT_EQ(x.acquire(x.queue, 1, &x.mem, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(fixture_enqueue(x.queue, kernel, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(x.release(x.queue, 1, &x.mem, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(x.queue), CL_SUCCESS);
	expect_bracket("a", "increment");
	cl.clReleaseKernel(kernel);
	door_close();
}

/* Without lists and events, in order: the driver's calls, but for questions. */
static unsigned long ring_calls(cl_kernel kernel, bool is_acquired)
{
	const unsigned long before = stub_calls(NULL) - stub_calls("clGetCommandQueueInfo");

	if (is_acquired)
		EXPECT_EQ(x.acquire(x.queue, 1, &x.mem, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(fixture_enqueue(x.queue, kernel, 0, NULL, NULL), CL_SUCCESS);
	if (is_acquired)
		EXPECT_EQ(x.release(x.queue, 1, &x.mem, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(x.queue), CL_SUCCESS);
	return stub_calls(NULL) - stub_calls("clGetCommandQueueInfo") - before;
}

TEST(ring,
     "A kernel between an acquire and a release costs the driver's calls of one on Arm's import.")
{
	unsigned long acquired, own;
	cl_kernel kernels[2];
	cl_mem arm;

	door_open(0);
	arm = fixture_import_dmabuf(x.fd, SIZE);
	kernels[0] = fixture_create_increment(arm);
	kernels[1] = fixture_create_increment(x.mem);
	for (int i = 0; i < 100; i++) { /* the queue may idle, and end what is open */
		own = ring_calls(kernels[0], false);
		stub_trace_clear();
		acquired = ring_calls(kernels[1], true);
		expect_bracket("a", "increment");
		if (acquired == own)
			break;
	}
	EXPECT_EQ(acquired, own);
	cl.clReleaseKernel(kernels[0]);
	cl.clReleaseKernel(kernels[1]);
	cl.clReleaseMemObject(arm);
	door_close();
}

TEST(window, "Any number of kernels between an acquire and a release have one START and one END.")
{
	cl_kernel kernel;
	cl_event done;

	door_open(0);
	kernel = fixture_create_increment(x.mem);
	fake_dmabuf_delay(3);
	EXPECT_EQ(x.acquire(x.queue, 1, &x.mem, 0, NULL, NULL), CL_SUCCESS);
	for (int i = 0; i < 40; i++)
		EXPECT_EQ(fixture_enqueue(x.queue, kernel, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(x.release(x.queue, 1, &x.mem, 0, NULL, &done), CL_SUCCESS);
	EXPECT_EQ(cl.clWaitForEvents(1, &done), CL_SUCCESS);
	EXPECT_EQ(x.seen[0], 40);
	expect_count("kernel increment end", 40);
	expect_count("sync START a rw", 1);
	expect_count("sync END a rw", 1);
	expect_order("sync START a", "kernel increment");
	EXPECT(stub_trace_find("kernel increment", stub_trace_find("sync END a", 0)) < 0);
	cl.clReleaseEvent(done);
	cl.clReleaseKernel(kernel);
	door_close();
}

static cl_int behind_by_kernel(cl_kernel kernel, cl_event *done)
{
	return fixture_enqueue(x.queue, kernel, 0, NULL, done);
}

static cl_int behind_by_two_kernels(cl_kernel kernel, cl_event *done)
{
	return fixture_enqueue(x.queue, kernel, 0, NULL, NULL) ||
	       fixture_enqueue(x.queue, kernel, 0, NULL, done);
}

static cl_int behind_by_marker(cl_kernel kernel, cl_event *done)
{
	(void)kernel;
	return cl.clEnqueueMarkerWithWaitList(x.queue, 0, NULL, done);
}

static cl_int behind_by_read(cl_kernel kernel, cl_event *done)
{
	static unsigned char byte;

	(void)kernel;
	return cl.clEnqueueReadBuffer(x.queue, x.mem, CL_FALSE, 0, 1, &byte, 0, NULL, done);
}

static cl_int behind_by_nothing(cl_kernel kernel, cl_event *done)
{
	(void)kernel;
	return x.acquire(x.queue, 0, NULL, 0, NULL, done);
}

static cl_int behind_by_release(cl_kernel kernel, cl_event *done)
{
	(void)kernel;
	return x.release(x.queue, 1, &x.mem, 0, NULL, done);
}

static cl_int behind_by_kernel_and_release(cl_kernel kernel, cl_event *done)
{
	return fixture_enqueue(x.queue, kernel, 0, NULL, NULL) ||
	       x.release(x.queue, 1, &x.mem, 0, NULL, done);
}

static cl_int behind_by_other_acquire(cl_kernel kernel, cl_event *done)
{
	const cl_mem_properties list[] = { DMA_BUF, (cl_mem_properties)x.fd, 0 };
	cl_int err;
	cl_mem other = door_create(list, 0, SIZE, &err);

	(void)kernel;
	err = err || x.acquire(x.queue, 1, &other, 0, NULL, NULL) ||
	      x.release(x.queue, 1, &other, 0, NULL, done);
	cl.clReleaseMemObject(other);
	return err;
}

static const struct behind {
	const char *name;
	cl_int (*enqueue)(cl_kernel kernel, cl_event *done);
} behinds[] = {
	{ "kernel", behind_by_kernel },
	{ "two_kernels", behind_by_two_kernels },
	{ "marker", behind_by_marker },
	{ "read", behind_by_read },
	{ "nothing", behind_by_nothing },
	{ "release", behind_by_release },
	{ "kernel_and_release", behind_by_kernel_and_release },
	{ "other_acquire", behind_by_other_acquire },
};

TEST_EACH(behind, struct behind, behinds,
	  "What comes behind an acquire in its queue waits for START, which waits for a fence.")
{
	cl_kernel kernel;
	cl_event done;

	door_open(0);
	kernel = fixture_create_increment(x.mem);
	fake_dmabuf_busy("a");
	EXPECT_EQ(x.acquire(x.queue, 1, &x.mem, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(row->enqueue(kernel, &done), CL_SUCCESS);
	EXPECT_EQ(cl.clFlush(x.queue), CL_SUCCESS);
	let_others_run();
	EXPECT(fixture_event_status(done) > CL_COMPLETE);
	expect_no_sync("a");
	fake_dmabuf_busy(NULL);
	EXPECT_EQ(cl.clWaitForEvents(1, &done), CL_SUCCESS);
	EXPECT(stub_trace_count("sync START a") > 0);
	EXPECT_EQ(x.release(x.queue, 1, &x.mem, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(x.queue), CL_SUCCESS);
	cl.clReleaseEvent(done);
	cl.clReleaseKernel(kernel);
	door_close();
}

TEST(late, "START waits for the acquire's wait list: the producer may not be done.")
{
	cl_event go, done;

	door_open(0);
	go = user_event_create();
	EXPECT_EQ(x.acquire(x.queue, 1, &x.mem, 1, &go, &done), CL_SUCCESS);
	EXPECT_EQ(cl.clFlush(x.queue), CL_SUCCESS);
	let_others_run();
	expect_no_sync("a");
	fixture_complete_event(go, CL_COMPLETE);
	EXPECT_EQ(cl.clWaitForEvents(1, &done), CL_SUCCESS);
	expect_count("sync START a rw", 1);
	EXPECT_EQ(x.release(x.queue, 1, &x.mem, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(x.queue), CL_SUCCESS);
	cl.clReleaseEvent(go);
	cl.clReleaseEvent(done);
	door_close();
}

TEST(host, "While an object is acquired the host reads, writes, maps, copies and fills it, without "
	   "a SYNC of their own.")
{
	unsigned char bytes[16] = { 7 }, byte = 3, *map;
	cl_int err;

	door_open(0);
	EXPECT_EQ(x.acquire(x.queue, 1, &x.mem, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clEnqueueWriteBuffer(x.queue, x.mem, CL_TRUE, 0, 16, bytes, 0, NULL, NULL),
		  CL_SUCCESS);
	EXPECT_EQ(x.seen[0], 7);
	EXPECT_EQ(cl.clEnqueueFillBuffer(x.queue, x.mem, &byte, 1, 0, 16, 0, NULL, NULL),
		  CL_SUCCESS);
	EXPECT_EQ(cl.clEnqueueCopyBuffer(x.queue, x.mem, x.mem, 0, 32, 16, 0, NULL, NULL),
		  CL_SUCCESS);
	EXPECT_EQ(cl.clEnqueueReadBuffer(x.queue, x.mem, CL_TRUE, 32, 16, bytes, 0, NULL, NULL),
		  CL_SUCCESS);
	EXPECT_EQ(bytes[15], 3);
	map = cl.clEnqueueMapBuffer(x.queue, x.mem, CL_TRUE, CL_MAP_WRITE, 0, 16, 0, NULL, NULL,
				    &err);
	EXPECT_EQ(err, CL_SUCCESS);
	map[0] = 9;
	EXPECT_EQ(cl.clEnqueueUnmapMemObject(x.queue, x.mem, map, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(x.release(x.queue, 1, &x.mem, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(x.queue), CL_SUCCESS);
	EXPECT_EQ(x.seen[0], 9);
	expect_count("sync START a rw", 1);
	expect_count("sync END a rw", 1);
	door_close();
}

TEST(host_read_only,
     "What would write to a read-only dma-buf is refused: the mapping would end the program.")
{
	unsigned char byte = 1;
	cl_mem_properties list[] = { DMA_BUF, 0, 0 };
	cl_mem_flags flags;
	cl_int err;
	int fd;

	door_open(0);
	cl.clReleaseMemObject(x.mem);
	fd = fake_dmabuf_reopen(x.fd, O_RDONLY);
	list[1] = (cl_mem_properties)fd;
	x.mem = door_create(list, CL_MEM_READ_WRITE, SIZE, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	EXPECT_EQ(cl.clGetMemObjectInfo(x.mem, CL_MEM_FLAGS, sizeof(flags), &flags, NULL),
		  CL_SUCCESS);
	EXPECT_EQ(flags, CL_MEM_READ_ONLY);
	EXPECT_EQ(cl.clEnqueueWriteBuffer(x.queue, x.mem, CL_TRUE, 0, 1, &byte, 0, NULL, NULL),
		  CL_INVALID_OPERATION);
	EXPECT_EQ(cl.clEnqueueReadBuffer(x.queue, x.mem, CL_TRUE, 0, 1, &byte, 0, NULL, NULL),
		  CL_SUCCESS);
	close(fd);
	door_close();
}

static const struct edge_kind {
	const char *name;
	bool is_release;
	cl_command_type type;
} edge_kinds[] = { { "acquire", false, CL_COMMAND_ACQUIRE_EXTERNAL_MEM_OBJECTS_KHR },
		   { "release", true, CL_COMMAND_RELEASE_EXTERNAL_MEM_OBJECTS_KHR } };

TEST_EACH(event, struct edge_kind, edge_kinds,
	  "The event has the command's type, its queue, times in order, and one reference.")
{
	cl_ulong times[4];
	cl_command_type type = 0;
	cl_command_queue queue = NULL;
	cl_uint references = 0;
	cl_event done;
	edge_fn edge;

	door_open(CL_QUEUE_PROFILING_ENABLE);
	edge = row->is_release ? x.release : x.acquire;
	if (row->is_release)
		EXPECT_EQ(x.acquire(x.queue, 1, &x.mem, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(edge(x.queue, 1, &x.mem, 0, NULL, &done), CL_SUCCESS);
	EXPECT_EQ(cl.clWaitForEvents(1, &done), CL_SUCCESS);
	cl.clGetEventInfo(done, CL_EVENT_COMMAND_TYPE, sizeof(type), &type, NULL);
	EXPECT_EQ(type, row->type);
	cl.clGetEventInfo(done, CL_EVENT_COMMAND_QUEUE, sizeof(queue), &queue, NULL);
	EXPECT(queue == x.queue);
	cl.clGetEventInfo(done, CL_EVENT_REFERENCE_COUNT, sizeof(references), &references, NULL);
	EXPECT_EQ(references, 1);
	for (cl_profiling_info i = 0; i < 4; i++) {
		EXPECT_EQ(cl.clGetEventProfilingInfo(done, CL_PROFILING_COMMAND_QUEUED + i,
						     sizeof(times[0]), &times[i], NULL),
			  CL_SUCCESS);
		EXPECT(!i || times[i] >= times[i - 1]);
	}
	cl.clReleaseEvent(done);
	if (!row->is_release)
		EXPECT_EQ(x.release(x.queue, 1, &x.mem, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(x.queue), CL_SUCCESS);
	door_close();
}

TEST_EACH(nothing, struct edge_kind, edge_kinds,
	  "Without objects the command waits for its list, or for none, and completes its event.")
{
	cl_event go, done, at_once;
	edge_fn edge;

	door_open(OUT_OF_ORDER);
	edge = row->is_release ? x.release : x.acquire;
	go = user_event_create();
	EXPECT_EQ(edge(x.queue, 0, NULL, 1, &go, &done), CL_SUCCESS);
	EXPECT_EQ(edge(x.queue, 0, NULL, 0, NULL, &at_once), CL_SUCCESS);
	EXPECT_EQ(cl.clWaitForEvents(1, &at_once), CL_SUCCESS);
	cl.clReleaseEvent(at_once);
	EXPECT(fixture_event_status(done) > CL_COMPLETE);
	fixture_complete_event(go, CL_COMPLETE);
	EXPECT_EQ(cl.clWaitForEvents(1, &done), CL_SUCCESS);
	cl.clReleaseEvent(go);
	cl.clReleaseEvent(done);
	door_close();
}

static const struct own_functions {
	const char *name;
	int khr;
} own_functions[] = { { "no_functions", STUB_KHR_NONE },
		      { "functions_of_other_devices", STUB_KHR_ELSEWHERE } };

TEST_EACH_PAIR(
	bad, struct edge_kind, edge_kinds, struct own_functions, own_functions,
	"Each wrong argument has its error, and nothing is enqueued, also where the driver has "
	"the functions for devices that are not this one.")
{
	cl_context context;
	cl_command_queue stranger;
	cl_mem plain, arm;
	cl_event failed;
	cl_int err;
	edge_fn edge;

	door_open_beside(column->khr, 0);
	edge = row->is_release ? x.release : x.acquire;
	plain = cl.clCreateBuffer(fix.context, 0, SIZE, NULL, &err);
	arm = fixture_import_dmabuf(x.fd, SIZE);
	context = cl.clCreateContext(NULL, 1, fix.device, NULL, NULL, &err);
	stranger = cl.clCreateCommandQueue(context, fix.device[0], 0, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	failed = user_event_create();
	fixture_complete_event(failed, -1);
	EXPECT_EQ(edge(x.queue, 1, NULL, 0, NULL, NULL), CL_INVALID_VALUE);
	EXPECT_EQ(edge(x.queue, 0, &x.mem, 0, NULL, NULL), CL_INVALID_VALUE);
	EXPECT_EQ(edge(x.queue, 1, &plain, 0, NULL, NULL), CL_INVALID_MEM_OBJECT);
	EXPECT_EQ(edge(NULL, 1, &x.mem, 0, NULL, NULL), CL_INVALID_COMMAND_QUEUE);
	EXPECT_EQ(edge(stranger, 1, &x.mem, 0, NULL, NULL), CL_INVALID_COMMAND_QUEUE);
	EXPECT_EQ(edge(stranger, 1, &arm, 0, NULL, NULL), CL_INVALID_COMMAND_QUEUE);
	EXPECT_EQ(edge(x.queue, 1, &x.mem, 1, NULL, NULL), CL_INVALID_EVENT_WAIT_LIST);
	EXPECT_EQ(edge(x.queue, 1, &x.mem, 0, &failed, NULL), CL_INVALID_EVENT_WAIT_LIST);
	EXPECT_EQ(edge(x.queue, 1, &x.mem, 1, &failed, NULL),
		  CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
	EXPECT_EQ(cl.clFinish(x.queue), CL_SUCCESS);
	expect_no_sync("a");
	cl.clReleaseEvent(failed);
	cl.clReleaseCommandQueue(stranger);
	cl.clReleaseContext(context);
	cl.clReleaseMemObject(plain);
	cl.clReleaseMemObject(arm);
	door_close();
}

TEST(start_fails, "If START fails, the acquire's event fails, and so do commands that wait for it.")
{
	cl_kernel kernel;
	cl_event at[2];

	door_open(0);
	kernel = fixture_create_increment(x.mem);
	fake_dmabuf_fail("START", EIO, 1);
	EXPECT_EQ(x.acquire(x.queue, 1, &x.mem, 0, NULL, &at[0]), CL_SUCCESS);
	EXPECT_EQ(fixture_enqueue(x.queue, kernel, 1, &at[0], &at[1]), CL_SUCCESS);
	EXPECT_EQ(cl.clWaitForEvents(1, &at[1]), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
	EXPECT(fixture_event_status(at[0]) < 0);
	EXPECT_EQ(x.seen[0], 0);
	cl.clReleaseEvent(at[0]);
	cl.clReleaseEvent(at[1]);
	cl.clReleaseKernel(kernel);
	door_close();
}

/* Whether the kernel joined the acquire's bracket: the queue may idle before, and then what does not wait runs. */
static bool joined_start_fails(void)
{
	cl_kernel kernel;
	cl_event at[2];
	bool has_run;

	door_open(0);
	kernel = fixture_create_increment(x.mem);
	fake_dmabuf_fail("START", EIO, 1);
	EXPECT_EQ(x.acquire(x.queue, 1, &x.mem, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(fixture_enqueue(x.queue, kernel, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(x.release(x.queue, 1, &x.mem, 0, NULL, &at[0]), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(x.queue), CL_SUCCESS);
	has_run = x.seen[0];
	EXPECT_EQ(fixture_event_status(at[0]) < 0, !has_run);
	EXPECT_EQ(x.release(x.queue, 1, &x.mem, 0, NULL, &at[1]), CL_SUCCESS);
	EXPECT_EQ(cl.clWaitForEvents(1, &at[1]), CL_SUCCESS);
	expect_no_sync("a");
	cl.clReleaseEvent(at[0]);
	cl.clReleaseEvent(at[1]);
	cl.clReleaseKernel(kernel);
	door_close();
	return !has_run;
}

TEST(joined_start_fails,
     "If START fails, a kernel right behind the acquire does not run, and the release fails.")
{
	bool has_joined = false;

	for (int i = 0; i < 100 && !has_joined; i++)
		has_joined = joined_start_fails();
	EXPECT(has_joined);
}

static const struct unbegun {
	const char *name;
	bool acquires, waits_in_vain;
} unbegun[] = { { "failed_start", true, false },
		{ "failed_wait_list", true, true },
		{ "no_acquire", false, false } };

TEST_EACH(unbegun, struct unbegun, unbegun,
	  "A release of what was not acquired sends no END, and completes; the next pair is whole.")
{
	cl_event go, at[2] = { NULL, NULL };

	door_open(OUT_OF_ORDER);
	go = user_event_create();
	if (!row->waits_in_vain)
		fake_dmabuf_fail("START", EIO, 1);
	if (row->acquires)
		EXPECT_EQ(x.acquire(x.queue, 1, &x.mem, row->waits_in_vain,
				    row->waits_in_vain ? &go : NULL, &at[0]),
			  CL_SUCCESS);
	fixture_complete_event(go, row->waits_in_vain ? -7 : CL_COMPLETE);
	if (at[0])
		EXPECT_EQ(cl.clWaitForEvents(1, &at[0]),
			  CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
	fake_dmabuf_fail("START", EIO, 0);
	EXPECT_EQ(x.release(x.queue, 1, &x.mem, 0, NULL, &at[1]), CL_SUCCESS);
	EXPECT_EQ(cl.clWaitForEvents(1, &at[1]), CL_SUCCESS);
	expect_count("sync END a rw", 0);
	EXPECT_EQ(x.acquire(x.queue, 1, &x.mem, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(x.queue), CL_SUCCESS);
	EXPECT_EQ(x.release(x.queue, 1, &x.mem, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(x.queue), CL_SUCCESS);
	expect_count("sync END a rw", 1);
	cl.clReleaseEvent(go);
	for (int i = 0; i < 2; i++)
		if (at[i])
			cl.clReleaseEvent(at[i]);
	door_close();
}

TEST(end_fails, "If END fails, the release's event fails, and a second release ends access.")
{
	cl_event at[2];

	door_open(0);
	EXPECT_EQ(x.acquire(x.queue, 1, &x.mem, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(x.queue), CL_SUCCESS);
	fake_dmabuf_fail("END", ENOMEM, 1);
	EXPECT_EQ(x.release(x.queue, 1, &x.mem, 0, NULL, &at[0]), CL_SUCCESS);
	EXPECT(cl.clWaitForEvents(1, &at[0]) != CL_SUCCESS);
	expect_count("sync END a rw", 0);
	EXPECT_EQ(x.release(x.queue, 1, &x.mem, 0, NULL, &at[1]), CL_SUCCESS);
	EXPECT_EQ(cl.clWaitForEvents(1, &at[1]), CL_SUCCESS);
	expect_count("sync END a rw", 1);
	cl.clReleaseEvent(at[0]);
	cl.clReleaseEvent(at[1]);
	door_close();
}

TEST_EACH(release_list_fails, struct queue_kind, queue_kinds,
	  "If the wait list of a release fails, the release ends nothing, and a second one does.")
{
	cl_event go, at[2];

	door_open(row->properties);
	go = user_event_create();
	EXPECT_EQ(x.acquire(x.queue, 1, &x.mem, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(x.queue), CL_SUCCESS);
	EXPECT_EQ(x.release(x.queue, 1, &x.mem, 1, &go, &at[0]), CL_SUCCESS);
	fixture_complete_event(go, -7);
	EXPECT_EQ(cl.clWaitForEvents(1, &at[0]), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
	expect_count("sync END a rw", 0);
	EXPECT_EQ(x.release(x.queue, 1, &x.mem, 0, NULL, &at[1]), CL_SUCCESS);
	EXPECT_EQ(cl.clWaitForEvents(1, &at[1]), CL_SUCCESS);
	expect_count("sync END a rw", 1);
	cl.clReleaseEvent(go);
	cl.clReleaseEvent(at[0]);
	cl.clReleaseEvent(at[1]);
	door_close();
}

TEST(release_refused,
     "If the driver refuses what a release needs, the context's callback is told so.")
{
	door_open(0);
	EXPECT_EQ(x.acquire(x.queue, 1, &x.mem, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(x.queue), CL_SUCCESS);
	stub_fail("clSetEventCallback", 1, CL_OUT_OF_RESOURCES);
	EXPECT_EQ(x.release(x.queue, 1, &x.mem, 0, NULL, NULL), CL_OUT_OF_RESOURCES);
	EXPECT(strstr(fix.notice, "the memory objects are not released: CL_OUT_OF_RESOURCES"));
	EXPECT_EQ(x.release(x.queue, 1, &x.mem, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(x.queue), CL_SUCCESS);
	expect_count("sync END a rw", 1);
	door_close();
}

static bool door_has_no_events(void *unused)
{
	(void)unused;
	return !stub_live(STUB_EVENT);
}

/* Alone, or as the end of the bracket of its acquire and a kernel. */
static const struct unmarked {
	const char *name;
	bool joins;
} unmarked[] = { { "alone", false }, { "joined", true } };

TEST_EACH(release_unmarked, struct unmarked, unmarked,
	  "A release that the driver refuses ends nothing, and a second one does.")
{
	cl_kernel kernel;

	door_open(0);
	kernel = fixture_create_increment(x.mem);
	EXPECT_EQ(x.acquire(x.queue, 1, &x.mem, 0, NULL, NULL), CL_SUCCESS);
	if (row->joins)
		EXPECT_EQ(fixture_enqueue(x.queue, kernel, 0, NULL, NULL), CL_SUCCESS);
	else
		EXPECT_EQ(cl.clFinish(x.queue), CL_SUCCESS);
	stub_fail("clEnqueueMarkerWithWaitList", row->joins ? 1 : 2, CL_OUT_OF_RESOURCES);
	EXPECT_EQ(x.release(x.queue, 1, &x.mem, 0, NULL, NULL), CL_OUT_OF_RESOURCES);
	EXPECT(process_settles(door_has_no_events, NULL));
	expect_count("sync END a rw", 0);
	EXPECT_EQ(x.release(x.queue, 1, &x.mem, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(x.queue), CL_SUCCESS);
	expect_count("sync START a rw", 1);
	expect_count("sync END a rw", 1);
	cl.clReleaseKernel(kernel);
	door_close();
}

TEST(kernel_fails, "A kernel that fails between acquire and release leaves the object released.")
{
	cl_kernel kernel;
	cl_event done;

	door_open(0);
	kernel = fixture_create_increment(x.mem);
	stub_set(STUB_KERNEL_FAIL, CL_OUT_OF_RESOURCES);
	EXPECT_EQ(x.acquire(x.queue, 1, &x.mem, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(fixture_enqueue(x.queue, kernel, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(x.release(x.queue, 1, &x.mem, 0, NULL, &done), CL_SUCCESS);
	EXPECT_EQ(cl.clWaitForEvents(1, &done), CL_SUCCESS);
	expect_count("sync START a rw", 1);
	expect_count("sync END a rw", 1);
	cl.clReleaseEvent(done);
	cl.clReleaseKernel(kernel);
	door_close();
}

TEST(late_callback, "A driver may call back long after the commands between acquire and release.")
{
	cl_kernel kernel;
	cl_event done;

	door_open(0);
	kernel = fixture_create_increment(x.mem);
	stub_set(STUB_CALLBACK_DELAY, 500);
	EXPECT_EQ(x.acquire(x.queue, 1, &x.mem, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(fixture_enqueue(x.queue, kernel, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(x.release(x.queue, 1, &x.mem, 0, NULL, &done), CL_SUCCESS);
	EXPECT_EQ(cl.clWaitForEvents(1, &done), CL_SUCCESS);
	expect_count("sync END a rw", 1);
	cl.clReleaseEvent(done);
	cl.clReleaseKernel(kernel);
	EXPECT(process_settles(door_has_no_events, NULL));
	door_close();
}

#define COMMAND_MAX 64 /* dma-bufs of a command: docs/limits.md */

TEST(many_parts, "Any number of objects of one dma-buf are acquired and released at once.")
{
	cl_mem mems[COMMAND_MAX + 1];
	cl_int err;

	door_open(0);
	mems[0] = x.mem;
	for (size_t i = 1; i <= COMMAND_MAX; i++) {
		const cl_buffer_region part = { i * 128 % SIZE, 128 };

		mems[i] = cl.clCreateSubBuffer(x.mem, 0, CL_BUFFER_CREATE_TYPE_REGION, &part, &err);
		EXPECT_EQ(err, CL_SUCCESS);
	}
	EXPECT_EQ(x.acquire(x.queue, COMMAND_MAX + 1, mems, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(x.release(x.queue, COMMAND_MAX + 1, mems, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(x.queue), CL_SUCCESS);
	expect_count("sync START a rw", 1);
	expect_count("sync END a rw", 1);
	for (size_t i = 1; i <= COMMAND_MAX; i++)
		cl.clReleaseMemObject(mems[i]);
	door_close();
}

TEST(unbegun_part,
     "Of two objects, of which one was acquired, a release ends that one's access alone.")
{
	cl_mem_properties list[] = { DMA_BUF, 0, 0 };
	cl_mem mems[2];
	cl_int err;
	int fd;

	door_open(0);
	fd = fake_dmabuf_create("b", SIZE);
	list[1] = (cl_mem_properties)fd;
	mems[0] = door_create(list, 0, SIZE, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	mems[1] = x.mem;
	EXPECT_EQ(x.acquire(x.queue, 1, &x.mem, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(x.release(x.queue, 2, mems, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(x.queue), CL_SUCCESS);
	expect_count("sync END a rw", 1);
	expect_count("sync END b", 0);
	cl.clReleaseMemObject(mems[0]);
	close(fd);
	door_close();
}

TEST(released_one_by_one, "Two objects that were acquired at once: a release behind a kernel ends "
			  "the access of its own.")
{
	cl_mem_properties list[] = { DMA_BUF, 0, 0 };
	cl_kernel kernel;
	cl_mem mems[2];
	cl_int err;
	int fd;

	door_open(0);
	fd = fake_dmabuf_create("b", SIZE);
	list[1] = (cl_mem_properties)fd;
	mems[0] = x.mem;
	mems[1] = door_create(list, 0, SIZE, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	kernel = fixture_create_increment(x.mem);
	stub_trace_clear();
	EXPECT_EQ(x.acquire(x.queue, 2, mems, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(fixture_enqueue(x.queue, kernel, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(x.release(x.queue, 1, &mems[0], 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(x.queue), CL_SUCCESS);
	expect_bracket("a", "increment");
	expect_count("sync END b", 0);
	EXPECT_EQ(x.release(x.queue, 1, &mems[1], 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(x.queue), CL_SUCCESS);
	expect_count("sync END b", 1);
	cl.clReleaseKernel(kernel);
	cl.clReleaseMemObject(mems[1]);
	close(fd);
	door_close();
}

TEST(names,
     "The device and the platform report the extensions, the types of handles, and linear images.")
{
	cl_external_memory_handle_type_khr type = 0;
	size_t size = 0;

	door_open(0);
	EXPECT(fixture_device_reports(fix.device[0], "cl_khr_external_memory_dma_buf"));
	EXPECT_EQ(cl.clGetDeviceInfo(fix.device[0],
				     CL_DEVICE_EXTERNAL_MEMORY_IMPORT_HANDLE_TYPES_KHR,
				     sizeof(type), &type, &size),
		  CL_SUCCESS);
	EXPECT_EQ(type, DMA_BUF);
	EXPECT_EQ(size, sizeof(type));
	type = 0;
	EXPECT_EQ(cl.clGetDeviceInfo(fix.device[0], LINEAR, sizeof(type), &type, NULL), CL_SUCCESS);
	EXPECT_EQ(type, DMA_BUF);
	type = 0;
	EXPECT_EQ(cl.clGetPlatformInfo(fix.platform,
				       CL_PLATFORM_EXTERNAL_MEMORY_IMPORT_HANDLE_TYPES_KHR,
				       sizeof(type), &type, NULL),
		  CL_SUCCESS);
	EXPECT_EQ(type, DMA_BUF);
	door_close();
}

TEST(queries,
     "CL_MEM_PROPERTIES has the application's list; flags and pointers show no host memory.")
{
	cl_mem_properties list[] = { DMA_BUF, 0, DEVICES, 0, 0, 0 }, answer[6] = { 0 };
	void *pointer = &list;
	size_t size = 0;
	cl_mem mem;
	cl_int err;

	door_open(0);
	list[1] = (cl_mem_properties)x.fd;
	list[3] = (cl_mem_properties)(uintptr_t)fix.device[0];
	mem = door_create(list, 0, SIZE, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	EXPECT_EQ(cl.clGetMemObjectInfo(mem, CL_MEM_PROPERTIES, sizeof(answer), answer, &size),
		  CL_SUCCESS);
	EXPECT_EQ(size, sizeof(list));
	EXPECT(!memcmp(list, answer, sizeof(list)));
	EXPECT_EQ(cl.clGetMemObjectInfo(mem, CL_MEM_PROPERTIES, 1, answer, NULL), CL_INVALID_VALUE);
	EXPECT_EQ(cl.clGetMemObjectInfo(mem, CL_MEM_HOST_PTR, sizeof(pointer), &pointer, NULL),
		  CL_SUCCESS);
	EXPECT(!pointer);
	cl.clReleaseMemObject(mem);
	door_close();
}

static const struct bad_create {
	const char *name;
	cl_mem_properties properties
		[8]; /* a descriptor of 77 is the dma-buf's, a device of 88 the context's */
	cl_mem_flags flags;
	size_t size;
	bool host_ptr;
	cl_int err;
} bad_creates[] = {
	{ "size_0", { DMA_BUF, 77 }, 0, 0, false, CL_INVALID_BUFFER_SIZE },
	{ "size_too_large", { DMA_BUF, 77 }, 0, SIZE + 1, false, CL_INVALID_BUFFER_SIZE },
	{ "size_negative", { DMA_BUF, 77 }, 0, (size_t)-1, false, CL_INVALID_BUFFER_SIZE },
	{ "closed", { DMA_BUF, 1023 }, 0, SIZE, false, CL_INVALID_PROPERTY },
	{ "upper_bits", { DMA_BUF, 1ull << 32 }, 0, SIZE, false, CL_INVALID_PROPERTY },
	{ "negative", { DMA_BUF, (cl_mem_properties)-1 }, 0, SIZE, false, CL_INVALID_PROPERTY },
	{ "twice", { DMA_BUF, 77, DMA_BUF, 77 }, 0, SIZE, false, CL_INVALID_PROPERTY },
	{ "two_handles", { DMA_BUF, 77, 0x2060, 77 }, 0, SIZE, false, CL_INVALID_PROPERTY },
	{ "unknown", { DMA_BUF, 77, 0x7ead, 1 }, 0, SIZE, false, CL_INVALID_PROPERTY },
	{ "no_device", { DMA_BUF, 77, DEVICES, 0 }, 0, SIZE, false, CL_INVALID_PROPERTY },
	{ "strange_device",
	  { DMA_BUF, 77, DEVICES, 88, 99, 0 },
	  0,
	  SIZE,
	  false,
	  CL_INVALID_DEVICE },
	{ "use_host_ptr", { DMA_BUF, 77 }, CL_MEM_USE_HOST_PTR, SIZE, true, CL_INVALID_VALUE },
	{ "alloc_host_ptr", { DMA_BUF, 77 }, CL_MEM_ALLOC_HOST_PTR, SIZE, false, CL_INVALID_VALUE },
	{ "copy_host_ptr", { DMA_BUF, 77 }, CL_MEM_COPY_HOST_PTR, SIZE, true, CL_INVALID_VALUE },
	{ "host_ptr", { DMA_BUF, 77 }, 0, SIZE, true, CL_INVALID_HOST_PTR },
	{ "flags",
	  { DMA_BUF, 77 },
	  CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY,
	  SIZE,
	  false,
	  CL_INVALID_VALUE },
};

TEST_EACH(create, struct bad_create, bad_creates,
	  "Each wrong argument has its error; the context's callback gets a sentence.")
{
	cl_mem_properties list[8];
	cl_int err = CL_SUCCESS;
	unsigned int notices;

	door_open(0);
	for (int i = 0; i < 8; i++) {
		list[i] = row->properties[i];
		if (list[i] == 77)
			list[i] = (cl_mem_properties)x.fd;
		if (list[i] == 88)
			list[i] = (cl_mem_properties)(uintptr_t)fix.device[0];
	}
	notices = fix.notices;
	EXPECT(!cl.clCreateBufferWithProperties(fix.context, list, row->flags, row->size,
						row->host_ptr ? x.seen : NULL, &err));
	EXPECT_EQ(err, row->err);
	EXPECT_EQ(fix.notices, notices + 1);
	EXPECT(strstr(fix.notice, "clCreateBufferWithProperties"));
	door_close();
}

TEST(listed, "A queue of a device that the object's list lacks is an invalid one.")
{
	cl_mem_properties list[] = { DMA_BUF, 0, DEVICES, 0, 0, 0 };
	cl_command_queue other;
	cl_int err;

	fixture_reset();
	stub_set(STUB_DEVICES, 2);
	door_start();
	list[1] = (cl_mem_properties)x.fd;
	list[3] = (cl_mem_properties)(uintptr_t)fix.device[1];
	x.mem = door_create(list, 0, SIZE, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	other = cl.clCreateCommandQueue(fix.context, fix.device[1], 0, &err);
	EXPECT_EQ(x.acquire(fix.queue, 1, &x.mem, 0, NULL, NULL), CL_INVALID_COMMAND_QUEUE);
	EXPECT_EQ(x.acquire(other, 1, &x.mem, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(x.release(other, 1, &x.mem, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(other), CL_SUCCESS);
	cl.clReleaseCommandQueue(other);
	door_close();
}

static const struct apart {
	const char *name;
	enum stub_option option; /* of the second device alone: ... */
	long value;
	cl_int err; /* ... a list of the first */
} aparts[] = {
	/* Its commands cannot wait, so it takes no dma-bufs, and it works on the host's own memory. */
	{ "shares", STUB_FINISH_EARLY, 3, CL_SUCCESS },
	/* The driver may keep a copy for it. */
	{ "copies", STUB_COPYING, 2, CL_INVALID_DEVICE },
};

TEST_EACH(apart, struct apart, aparts,
	  "A context with a device that takes no dma-bufs: an object for the others alone, if the "
	  "driver keeps no copy for that device.")
{
	const cl_buffer_region part = { 4096, 4096 };
	cl_mem_properties list[] = { DMA_BUF, 0, 0, 0, 0, 0 };
	cl_command_queue other;
	cl_kernel kernel;
	cl_mem sub;
	cl_int err;

	fixture_reset();
	stub_set(STUB_DEVICES, 2);
	stub_set(row->option, row->value);
	door_start();
	list[1] = (cl_mem_properties)x.fd;
	EXPECT(!door_create(list, 0, SIZE, &err));
	EXPECT_EQ(err, CL_INVALID_DEVICE);
	list[2] = DEVICES;
	list[3] = (cl_mem_properties)(uintptr_t)fix.device[1];
	EXPECT(!door_create(list, 0, SIZE, &err));
	EXPECT_EQ(err, CL_INVALID_DEVICE);
	list[3] = (cl_mem_properties)(uintptr_t)fix.device[0];
	x.mem = door_create(list, 0, SIZE, &err);
	EXPECT_EQ(err, row->err);
	if (x.mem) {
		other = cl.clCreateCommandQueue(fix.context, fix.device[1], 0, &err);
		sub = cl.clCreateSubBuffer(x.mem, 0, CL_BUFFER_CREATE_TYPE_REGION, &part, &err);
		EXPECT_EQ(err, CL_SUCCESS);
		kernel = fixture_create_increment(sub);
		EXPECT_EQ(x.acquire(other, 1, &sub, 0, NULL, NULL), CL_INVALID_COMMAND_QUEUE);
		EXPECT_EQ(x.acquire(fix.queue, 1, &sub, 0, NULL, NULL), CL_SUCCESS);
		EXPECT_EQ(fixture_enqueue(fix.queue, kernel, 0, NULL, NULL), CL_SUCCESS);
		EXPECT_EQ(x.release(other, 1, &sub, 0, NULL, NULL), CL_INVALID_COMMAND_QUEUE);
		EXPECT_EQ(x.release(fix.queue, 1, &sub, 0, NULL, NULL), CL_SUCCESS);
		EXPECT_EQ(cl.clFinish(fix.queue), CL_SUCCESS);
		EXPECT_EQ(x.seen[4096], 1);
		cl.clReleaseKernel(kernel);
		cl.clReleaseMemObject(sub);
		cl.clReleaseCommandQueue(other);
	}
	door_release();
	fixture_release(); /* the self-test gives up what waits on the second device */
}

TEST(descriptor, "The descriptor stays the program's: it is open after the object has gone.")
{
	int ends;

	door_open(0);
	cl.clReleaseMemObject(x.mem);
	x.mem = NULL;
	ends = fcntl(x.fd, F_GETFD);
	EXPECT(ends >= 0);
	door_close();
}

TEST(sub_buffer, "A sub-buffer is acquired as its parent is, and needs no bracket.")
{
	const cl_buffer_region part = { 4096, 4096 };
	cl_kernel kernel;
	cl_mem sub;
	cl_int err;

	door_open(0);
	sub = cl.clCreateSubBuffer(x.mem, 0, CL_BUFFER_CREATE_TYPE_REGION, &part, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	kernel = fixture_create_increment(sub);
	EXPECT_EQ(x.acquire(x.queue, 1, &sub, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(fixture_enqueue(x.queue, kernel, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(x.release(x.queue, 1, &sub, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(x.queue), CL_SUCCESS);
	expect_bracket("a", "increment");
	EXPECT_EQ(x.seen[4096], 1);
	cl.clReleaseKernel(kernel);
	cl.clReleaseMemObject(sub);
	door_close();
}

TEST(both, "One dma-buf by both doors: a kernel on Arm's import has its bracket, also while the "
	   "other object is acquired.")
{
	cl_kernel kernel;
	cl_mem arm;

	door_open(0);
	arm = fixture_import_dmabuf(x.fd, SIZE);
	kernel = fixture_create_increment(arm);
	EXPECT_EQ(x.acquire(x.queue, 1, &x.mem, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(fixture_enqueue(x.queue, kernel, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(x.release(x.queue, 1, &x.mem, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(x.queue), CL_SUCCESS);
	EXPECT_EQ(x.seen[0], 1);
	expect_count("sync START a", 2);
	expect_count("sync END a", 2);
	EXPECT_EQ(cl.clEnqueueReadBuffer(x.queue, arm, CL_TRUE, 0, 1, &x.seen[1], 0, NULL, NULL),
		  CL_INVALID_OPERATION);
	cl.clReleaseKernel(kernel);
	cl.clReleaseMemObject(arm);
	door_close();
}

TEST_EACH(arm, struct edge_kind, edge_kinds,
	  "An import of clImportMemoryARM, whose commands have their own brackets, is in the list "
	  "for "
	  "nothing.")
{
	cl_mem arm;

	door_open(0);
	arm = fixture_import_dmabuf(x.fd, SIZE);
	stub_trace_clear();
	EXPECT_EQ((row->is_release ? x.release : x.acquire)(x.queue, 1, &arm, 0, NULL, NULL),
		  CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(x.queue), CL_SUCCESS);
	expect_no_sync("a");
	cl.clReleaseMemObject(arm);
	door_close();
}

TEST(many, "Several objects, one of them twice, are acquired by one command.")
{
	cl_mem_properties list[] = { DMA_BUF, 0, 0 };
	int fd;
	cl_mem mems[3];
	cl_int err;

	door_open(0);
	fd = fake_dmabuf_create("b", SIZE);
	list[1] = (cl_mem_properties)fd;
	mems[0] = mems[2] = x.mem;
	mems[1] = door_create(list, 0, SIZE, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	EXPECT_EQ(x.acquire(x.queue, 3, mems, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(x.release(x.queue, 3, mems, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(x.queue), CL_SUCCESS);
	expect_count("sync START a", 1);
	expect_count("sync START b", 1);
	expect_count("sync END a", 1);
	expect_count("sync END b", 1);
	cl.clReleaseMemObject(mems[1]);
	close(fd);
	door_close();
}

static cl_mem door_create_image(cl_mem_object_type type, size_t pitch, cl_mem of, cl_int *err)
{
	const cl_mem_properties list[] = { DMA_BUF, (cl_mem_properties)x.fd, 0 };
	const cl_image_format format = { CL_RGBA, CL_UNSIGNED_INT8 };
	const cl_image_desc desc = { .image_type = type,
				     .image_width = 4,
				     .image_height = 4,
				     .image_row_pitch = pitch,
				     .mem_object = of };

	return cl.clCreateImageWithProperties(fix.context, list, CL_MEM_READ_WRITE, &format, &desc,
					      NULL, err);
}

TEST(image, "An image has the descriptor's row pitch, the dma-buf's pixels, and no parent.")
{
	static const size_t origin[3] = { 0, 1, 0 }, region[3] = { 1, 1, 1 };
	unsigned char pixel[4] = { 0 };
	cl_mem image, parent = (cl_mem)&x;
	size_t pitch = 0;
	cl_int err;

	door_open(0);
	image = door_create_image(CL_MEM_OBJECT_IMAGE2D, 64, NULL, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	memset(x.seen + 64, 5, 4);
	cl.clGetImageInfo(image, CL_IMAGE_ROW_PITCH, sizeof(pitch), &pitch, NULL);
	EXPECT_EQ(pitch, 64);
	EXPECT_EQ(cl.clGetMemObjectInfo(image, CL_MEM_ASSOCIATED_MEMOBJECT, sizeof(parent), &parent,
					NULL),
		  CL_SUCCESS);
	EXPECT(!parent);
	parent = (cl_mem)&x;
	EXPECT_EQ(cl.clGetImageInfo(image, CL_IMAGE_BUFFER, sizeof(parent), &parent, NULL),
		  CL_SUCCESS);
	EXPECT(!parent);
	EXPECT_EQ(x.acquire(x.queue, 1, &image, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clEnqueueReadImage(x.queue, image, CL_TRUE, origin, region, 0, 0, pixel, 0,
					NULL, NULL),
		  CL_SUCCESS);
	EXPECT_EQ(pixel[3], 5);
	EXPECT_EQ(x.release(x.queue, 1, &image, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(x.queue), CL_SUCCESS);
	expect_count("sync START a rw", 1);
	expect_count("sync END a rw", 1);
	EXPECT_EQ(cl.clReleaseMemObject(image), CL_SUCCESS);
	door_close();
}

#define THREADS 4
#define ROUNDS 24
#define KINDS 4

/* What the threads use: the buffer, a part of it, an image, and an import by Arm's door, all of one dma-buf. */
static cl_mem door_mems[KINDS];
static atomic_int door_wrong; /* EXPECT works only in the thread of the tests */

struct door_thread {
	pthread_t thread;
	int number;
	cl_command_queue queue;
	cl_kernel kernel;
	cl_mem own[2]; /* parts of the buffer and of Arm's import: kernels share no bytes */
};

static cl_int door_run(const struct door_thread *t, int kind, cl_uint num_wait,
		       const cl_event *wait, cl_event *done)
{
	cl_int err = cl.clSetKernelArg(t->kernel, 0, sizeof(cl_mem), &t->own[kind == 3]);

	return err ? err : fixture_enqueue(t->queue, t->kernel, num_wait, wait, done);
}

static cl_int door_use(const struct door_thread *t, int kind, const cl_event *wait, cl_event *done)
{
	static const size_t origin[3] = { 0, 1, 0 }, region[3] = { 1, 1, 1 };
	static _Thread_local unsigned char pixel[4];

	if (kind == 2)
		return cl.clEnqueueReadImage(t->queue, door_mems[kind], CL_FALSE, origin, region, 0,
					     0, pixel, 1, wait, done);
	return door_run(t, kind, 1, wait, done);
}

/* Without lists and events.  A kernel's, on an in-order queue, may be one bracket. */
static void door_plain_round(const struct door_thread *t, int kind)
{
	const cl_mem mem = door_mems[kind];
	cl_int err = x.acquire(t->queue, 1, &mem, 0, NULL, NULL);

	err |= door_run(t, kind, 0, NULL, NULL);
	err |= x.release(t->queue, 1, &mem, 0, NULL, NULL);
	if (err)
		atomic_fetch_add(&door_wrong, 1);
}

/* Each third round waits for a user event, which fails in each sixth. */
static void door_round(const struct door_thread *t, int round)
{
	const int kind = (round + t->number) % KINDS;
	const cl_mem mem = door_mems[kind];
	const bool waits = round % 3 == 0, fails = round % 6 == 0;
	cl_event at[3], go;
	cl_int err, status = 1;

	go = cl.clCreateUserEvent(fix.context, &err);
	err |= x.acquire(t->queue, 1, &mem, waits, waits ? &go : NULL, &at[0]);
	err |= door_use(t, kind, &at[0], &at[1]);
	err |= x.release(t->queue, 1, &mem, 1, &at[1], &at[2]);
	cl.clSetUserEventStatus(go, fails ? -7 : CL_COMPLETE);
	err |= cl.clFinish(t->queue);
	cl.clGetEventInfo(at[2], CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status, NULL);
	if (err || (fails ? status >= 0 : status != CL_COMPLETE)) {
		atomic_fetch_add(&door_wrong, 1);
		printf("# round %d of thread %d: error %d, status %d\n", round, t->number, err,
		       status);
	}
	cl.clReleaseEvent(go);
	for (int i = 0; i < 3; i++)
		cl.clReleaseEvent(at[i]);
}

static void *door_thread_main(void *arg)
{
	const struct door_thread *t = arg;

	for (int round = 0; round < ROUNDS; round++) {
		door_round(t, round);
		for (int kind = 0; kind < KINDS; kind++)
			door_plain_round(t, kind);
	}
	cl.clFinish(t->queue);
	return NULL;
}

TEST(threads,
     "Threads use a dma-buf by both doors, and some of their events fail: each START has its "
     "END.")
{
	const cl_buffer_region part = { 4096, 4096 };
	struct door_thread threads[THREADS];
	cl_int err;

	door_open(0);
	door_mems[0] = x.mem;
	door_mems[1] = cl.clCreateSubBuffer(x.mem, 0, CL_BUFFER_CREATE_TYPE_REGION, &part, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	door_mems[2] = door_create_image(CL_MEM_OBJECT_IMAGE2D, 64, NULL, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	door_mems[3] = fixture_import_dmabuf(x.fd, SIZE);
	stub_trace_clear();
	for (int i = 0; i < THREADS; i++) {
		threads[i].number = i;
		threads[i].queue = fixture_create_queue(i & 1 ? OUT_OF_ORDER : 0);
		threads[i].kernel = fixture_create_kernel("increment");
		for (int k = 0; k < 2; k++) {
			const cl_buffer_region own = { 4096 + 128 * (size_t)(2 * i + k), 128 };

			threads[i].own[k] = cl.clCreateSubBuffer(
				door_mems[3 * k], 0, CL_BUFFER_CREATE_TYPE_REGION, &own, &err);
			EXPECT_EQ(err, CL_SUCCESS);
		}
		EXPECT(!pthread_create(&threads[i].thread, NULL, door_thread_main, &threads[i]));
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i].thread, NULL);
		cl.clReleaseKernel(threads[i].kernel);
		cl.clReleaseMemObject(threads[i].own[0]);
		cl.clReleaseMemObject(threads[i].own[1]);
		cl.clReleaseCommandQueue(threads[i].queue);
	}
	EXPECT_EQ(door_wrong, 0);
	EXPECT(stub_trace_count("sync START a") > 0);
	EXPECT_EQ(stub_trace_count("sync START a"), stub_trace_count("sync END a"));
	for (int i = 1; i < KINDS; i++)
		cl.clReleaseMemObject(door_mems[i]);
	door_close();
}

#define UNTOUCHED ((cl_event)(uintptr_t)0x5a5a)

static bool door_edge(edge_fn edge, cl_event *event)
{
	cl_int err;

	if (!event)
		return !edge(x.queue, 1, &x.mem, 0, NULL, NULL);
	*event = UNTOUCHED;
	err = edge(x.queue, 1, &x.mem, 0, NULL, event);
	EXPECT_EQ(*event == UNTOUCHED, err != CL_SUCCESS);
	if (err)
		*event = NULL;
	return !err;
}

/* A pair whose @nth call of the driver fails; a program repeats a release that failed.  Whether one did. */
static bool door_attempt(unsigned long nth, cl_kernel kernel, bool wants_events)
{
	const cl_mem_properties list[] = { DMA_BUF, (cl_mem_properties)x.fd, 0 };
	cl_event at[2] = { NULL, NULL };
	bool happened, is_acquired = false, is_whole = false;
	cl_int err = 1;

	stub_fail(NULL, nth, CL_OUT_OF_RESOURCES);
	x.mem = door_create(list, 0, SIZE, &err);
	if (!err)
		is_acquired = door_edge(x.acquire, wants_events ? &at[0] : NULL);
	if (is_acquired)
		is_whole = !cl.clSetKernelArg(kernel, 0, sizeof(x.mem), &x.mem) &&
			   !fixture_enqueue(x.queue, kernel, 0, NULL, NULL);
	if (is_acquired && !door_edge(x.release, wants_events ? &at[1] : NULL)) {
		is_whole = false;
		EXPECT_EQ(x.release(x.queue, 1, &x.mem, 0, NULL, NULL), CL_SUCCESS);
	}
	happened = stub_failed();
	stub_fail(NULL, 0, CL_SUCCESS);
	EXPECT(is_whole || happened);
	EXPECT_EQ(cl.clFinish(x.queue), CL_SUCCESS);
	for (int i = 0; i < 2; i++)
		if (at[i])
			cl.clReleaseEvent(at[i]);
	if (!err)
		cl.clReleaseMemObject(x.mem);
	x.mem = NULL;
	return happened;
}

static bool door_is_ended(void *arg)
{
	(void)arg;
	return !fake_dmabuf_open_brackets();
}

TEST_EACH_PAIR(
	every_call, struct queue_kind, queue_kinds, struct event_kind, event_kinds,
	"Each driver call of a pair fails once: an error, and nothing is left, neither a START.")
{
	unsigned long nth = 1;
	cl_kernel kernel;
	long alive;

	door_open(row->properties);
	cl.clReleaseMemObject(x.mem);
	kernel = fixture_create_kernel("increment");
	alive = stub_live_all();
	door_attempt(0, kernel, column->wanted);
	EXPECT(stub_live_settles(alive));
	while (door_attempt(nth, kernel, column->wanted)) {
		EXPECT(stub_live_settles(alive));
		EXPECT(process_settles(door_is_ended, NULL));
		EXPECT(++nth < 200);
	}
	EXPECT(nth > 8);
	cl.clReleaseKernel(kernel);
	door_close();
}

static const struct bad_image {
	const char *name;
	cl_mem_object_type type;
	size_t pitch;
	bool of_buffer;
	cl_int err;
} bad_images[] = {
	{ "one_dimension", CL_MEM_OBJECT_IMAGE1D, 0, false, CL_INVALID_IMAGE_DESCRIPTOR },
	{ "pixels_of_a_buffer", CL_MEM_OBJECT_IMAGE1D_BUFFER, 0, false,
	  CL_INVALID_IMAGE_DESCRIPTOR },
	{ "of_buffer", CL_MEM_OBJECT_IMAGE2D, 0, true, CL_INVALID_IMAGE_DESCRIPTOR },
	{ "too_large", CL_MEM_OBJECT_IMAGE2D, SIZE, false, CL_INVALID_IMAGE_SIZE },
	{ "overflow", CL_MEM_OBJECT_IMAGE2D, (size_t)-4, false, CL_INVALID_IMAGE_SIZE },
};

TEST_EACH(image_refused, struct bad_image, bad_images,
	  "What is no 2D image within the dma-buf is refused.")
{
	cl_int err = CL_SUCCESS;

	door_open(0);
	EXPECT(!door_create_image(row->type, row->pitch, row->of_buffer ? x.mem : NULL, &err));
	EXPECT_EQ(err, row->err);
	EXPECT(strstr(fix.notice, "clCreateImageWithProperties"));
	door_close();
}

TEST(not_ours, "Properties without a dma-buf, and none, go to the driver as they are.")
{
	const cl_mem_properties opaque[] = { 0x2060, 5, 0 };
	cl_int err = 1;
	cl_mem mem;

	door_open(0);
	EXPECT(!door_create(opaque, 0, SIZE, &err));
	EXPECT_EQ(err, CL_INVALID_PROPERTY);
	mem = door_create(NULL, 0, SIZE, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	EXPECT(!fixture_is_import(mem));
	cl.clReleaseMemObject(mem);
	door_close();
}

TEST(devices_alone, "A list of devices without a dma-buf is refused with a sentence.")
{
	cl_mem_properties list[] = { DEVICES, 0, 0, 0 };
	cl_int err = CL_SUCCESS;

	door_open(0);
	list[1] = (cl_mem_properties)(uintptr_t)fix.device[0];
	EXPECT(!door_create(list, 0, SIZE, &err));
	EXPECT_EQ(err, CL_INVALID_PROPERTY);
	EXPECT(strstr(fix.notice, "without memory to import"));
	door_close();
}

TEST(refused,
     "A device that takes no dma-bufs reports no names, and a dma-buf is refused with a sentence.")
{
	cl_mem_properties list[] = { DMA_BUF, 0, 0 };
	cl_int err = CL_SUCCESS;

	fixture_reset();
	stub_set(STUB_COPYING, 1);
	fixture_open();
	x = (struct external){ .fd = fake_dmabuf_create("a", SIZE) };
	list[1] = (cl_mem_properties)x.fd;
	EXPECT(!fixture_device_reports(fix.device[0], "cl_khr_external_memory"));
	EXPECT(!door_create(list, 0, SIZE, &err));
	EXPECT_EQ(err, CL_INVALID_DEVICE);
	EXPECT_EQ(fix.notices, 1);
	close(x.fd);
	fixture_close();
}

TEST(driver_has_it,
     "A driver that imports dma-bufs itself gets the program's arguments and its own two commands.")
{
	cl_mem_properties list[] = { DMA_BUF, 0, 0 };
	cl_int err = CL_SUCCESS;
	cl_mem mem;

	fixture_reset();
	fake_dmabuf_set_udmabuf(FAKE_UDMABUF);
	stub_set(STUB_KHR_DMABUF, STUB_KHR_WORKS);
	door_start();
	list[1] = (cl_mem_properties)dup(x.fd);
	stub_trace_clear();
	mem = door_create(list, 0, SIZE, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	EXPECT(!fixture_is_import(mem));
	EXPECT_EQ(x.acquire(fix.queue, 1, &mem, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(x.release(fix.queue, 1, &mem, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(fix.queue), CL_SUCCESS);
	expect_acquires(1);
	expect_no_sync("a");
	cl.clReleaseMemObject(mem);
	door_close();
}

TEST(driver_lies, "A driver that says it imports dma-bufs, and shows other memory, gets no names "
		  "of the layer's.")
{
	fixture_reset();
	fake_dmabuf_set_udmabuf(FAKE_UDMABUF);
	stub_set(STUB_KHR_DMABUF, STUB_KHR_UNNAMED);
	stub_set(STUB_KHR_HABITS, STUB_KHR_COPIES);
	fixture_open();
	EXPECT(fixture_device_reports(fix.device[0], "cl_arm_import_memory_dma_buf"));
	EXPECT(!fixture_device_reports(fix.device[0], "cl_khr_external_memory_dma_buf"));
	fixture_close();
}

TEST(sub_device, "A list may name the context's own sub-device, and no other device.")
{
	const cl_device_partition_property halves[] = { CL_DEVICE_PARTITION_EQUALLY, 1, 0 };
	cl_mem_properties list[] = { DMA_BUF, 0, DEVICES, 0, 0, 0 };
	cl_context context;
	cl_device_id parts[2];
	cl_mem mem;
	cl_int err;

	door_open(0);
	EXPECT_EQ(cl.clCreateSubDevices(fix.device[0], halves, 2, parts, NULL), CL_SUCCESS);
	context = cl.clCreateContext(NULL, 1, parts, NULL, NULL, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	list[1] = (cl_mem_properties)x.fd;
	list[3] = (cl_mem_properties)(uintptr_t)parts[0];
	mem = cl.clCreateBufferWithProperties(context, list, 0, SIZE, NULL, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	cl.clReleaseMemObject(mem);
	list[3] = (cl_mem_properties)(uintptr_t)fix.device[0];
	EXPECT(!cl.clCreateBufferWithProperties(context, list, 0, SIZE, NULL, &err));
	EXPECT_EQ(err, CL_INVALID_DEVICE);
	cl.clReleaseContext(context);
	cl.clReleaseDevice(parts[0]);
	cl.clReleaseDevice(parts[1]);
	door_close();
}

static const struct function_kind {
	const char *name;
	int khr;
	cl_int err; /* the stub refuses such calls, as NVIDIA does */
} function_kinds[] = { { "of_other_types", STUB_KHR_NO_HANDLE, CL_SUCCESS },
		       { "of_dma_bufs", STUB_KHR_WORKS, CL_INVALID_VALUE } };

TEST_EACH(nothing_of_driver, struct function_kind, function_kinds,
	  "A driver's function gets a call without objects only if the driver imports dma-bufs "
	  "itself.")
{
	cl_event done = NULL;

	fixture_reset();
	fake_dmabuf_set_udmabuf(FAKE_UDMABUF);
	stub_set(STUB_KHR_DMABUF, row->khr);
	door_start();
	EXPECT_EQ(x.acquire(fix.queue, 0, NULL, 0, NULL, &done), row->err);
	if (done) {
		EXPECT_EQ(cl.clWaitForEvents(1, &done), CL_SUCCESS);
		cl.clReleaseEvent(done);
	}
	door_close();
}
