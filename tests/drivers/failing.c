/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands on a dma-buf whose wait list fails, on drivers under the layer.  Each test makes its calls twice, each
 * time in a process of its own: with buffers of the driver, and with imports of a fake dma-buf.  The
 * second process has to survive what the first does, and the calls have to return the same.
 *
 * Where Intel's CPU runtime runs a command behind a failed one, and calls that a success (in order, behind a
 * marker), a dma-buf's command may fail instead.
 */
#include <CL/cl.h>
#include <CL/cl_ext.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fake_dmabuf.h"
#include "harness.h"

enum {
	SIZE = 4096,
	EVENTS = 8,
	PLAIN_SECONDS =
		10, /* what a plain test does takes milliseconds; Oclgrind's clFlush never returns */
};

static const cl_int failure = -5;

/* What the calls of a test returned. */
struct outcome {
	bool is_whole;	     /* the process came to its end */
	bool is_skipped;     /* the driver lacks what the test needs */
	cl_int finish[2];    /* of each queue */
	cl_int wait[EVENTS]; /* clWaitForEvents() of each command */
	atomic_int told;     /* 2: a callback had a failure, 1: CL_COMPLETE */
	unsigned char byte;
};

static struct failing {
	struct outcome *out;
	cl_platform_id platform;
	cl_device_id device;
	cl_context context;
	cl_command_queue queue[2];
	cl_kernel kernel;
	cl_mem mem;
	int fd; /* of an import, or -1 */
	cl_event gate;
	cl_event done[EVENTS];
	cl_uint count;
} failing;

#define CALL(call) EXPECT_EQ(call, CL_SUCCESS)

static _Noreturn void failing_lacks(void)
{
	failing.out->is_skipped = true;
	_exit(0);
}

static cl_mem failing_create(bool import)
{
	const cl_import_properties_arm list[] = { CL_IMPORT_TYPE_ARM, CL_IMPORT_TYPE_DMA_BUF_ARM,
						  CL_IMPORT_DMA_BUF_DATA_CONSISTENCY_WITH_HOST_ARM,
						  CL_TRUE, 0 };
	__typeof__(&clImportMemoryARM) create =
		(__typeof__(create))clGetExtensionFunctionAddressForPlatform(failing.platform,
									     "clImportMemoryARM");
	static unsigned char zeros[SIZE];
	cl_int err = 1;
	cl_mem mem;

	if (!import) {
		failing.fd = -1;
		mem = clCreateBuffer(failing.context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
				     SIZE, zeros, &err);
	} else {
		EXPECT(create);
		failing.fd = fake_dmabuf_create("failing", SIZE);
		mem = create(failing.context, CL_MEM_READ_WRITE, list, &failing.fd, SIZE, &err);
		if (err == CL_INVALID_PROPERTY)
			failing_lacks();
	}
	EXPECT_EQ(err, CL_SUCCESS);
	return mem;
}

static void failing_open(bool import, cl_command_queue_properties properties)
{
	const char *text = "kernel void add(global uchar *a) { a[get_global_id(0)]++; }";
	cl_program program;
	cl_int err;

	CALL(clGetPlatformIDs(1, &failing.platform, NULL));
	CALL(clGetDeviceIDs(failing.platform, CL_DEVICE_TYPE_ALL, 1, &failing.device, NULL));
	failing.context = clCreateContext(NULL, 1, &failing.device, NULL, NULL, &err);
	CALL(err);
	for (int i = 0; i < 2; i++) {
		failing.queue[i] =
			clCreateCommandQueue(failing.context, failing.device, properties, &err);
		if (err)
			failing_lacks();
	}
	program = clCreateProgramWithSource(failing.context, 1, &text, NULL, &err);
	CALL(err);
	CALL(clBuildProgram(program, 0, NULL, NULL, NULL, NULL));
	failing.kernel = clCreateKernel(program, "add", &err);
	CALL(err);
	failing.mem = failing_create(import);
	CALL(clSetKernelArg(failing.kernel, 0, sizeof(cl_mem), &failing.mem));
	failing.gate = clCreateUserEvent(failing.context, &err);
	CALL(err);
}

/* The event of the next command, kept for failing_close(). */
static cl_event *failing_next(void)
{
	EXPECT(failing.count < EVENTS);
	return &failing.done[failing.count++];
}

static cl_event failing_kernel(int queue, cl_uint num_wait, const cl_event *wait)
{
	const size_t items = SIZE;
	cl_event *done = failing_next();

	CALL(clEnqueueNDRangeKernel(failing.queue[queue], failing.kernel, 1, NULL, &items, NULL,
				    num_wait, wait, done));
	return *done;
}

static cl_event failing_marker(int queue, cl_uint num_wait, const cl_event *wait)
{
	cl_event *done = failing_next();

	CALL(clEnqueueMarkerWithWaitList(failing.queue[queue], num_wait, wait, done));
	return *done;
}

static void failing_flush(void)
{
	CALL(clFlush(failing.queue[0]));
	CALL(clFlush(failing.queue[1]));
}

static void failing_fail(void)
{
	failing_flush();
	CALL(clSetUserEventStatus(failing.gate, failure));
}

static void CL_CALLBACK failing_note(cl_event event, cl_int status, void *told)
{
	(void)event;
	atomic_store((atomic_int *)told, status < 0 ? 2 : 1);
}

/* The callback comes at its time: the suite has a deadline. */
static void failing_await_callback(void)
{
	const struct timespec ms = { 0, 1000000 };

	while (!atomic_load(&failing.out->told))
		nanosleep(&ms, NULL); /* time: between two looks */
}

/* What the kernels made of the first byte. */
static unsigned char failing_byte(void)
{
	unsigned char byte = 0xff;

	if (failing.fd >= 0)
		EXPECT_EQ(pread(failing.fd, &byte, 1, 0), 1);
	else if (clEnqueueReadBuffer(failing.queue[0], failing.mem, CL_TRUE, 0, 1, &byte, 0, NULL,
				     NULL))
		test_skip("the driver's queue ends with a failed command");
	return byte;
}

/* Waits for everything, and keeps what the calls return. */
static void failing_close(void)
{
	struct outcome *out = failing.out;

	for (int i = 0; i < 2; i++)
		out->finish[i] = clFinish(failing.queue[i]);
	for (cl_uint i = 0; i < failing.count; i++) {
		out->wait[i] = clWaitForEvents(1, &failing.done[i]);
		CALL(clReleaseEvent(failing.done[i]));
	}
	out->byte = failing_byte();
	CALL(clReleaseEvent(failing.gate));
	CALL(clReleaseMemObject(failing.mem));
	for (int i = 0; i < 2; i++)
		CALL(clReleaseCommandQueue(failing.queue[i]));
	CALL(clReleaseKernel(failing.kernel));
	CALL(clReleaseContext(failing.context));
}

static void shape_kernel(void)
{
	failing_kernel(0, 1, &failing.gate);
	failing_fail();
}

static void shape_run(void)
{
	failing_kernel(0, 0, NULL);
	failing_flush();
}

static void shape_failed_before(void)
{
	CALL(clSetUserEventStatus(failing.gate, failure));
	failing_kernel(0, 1, &failing.gate);
	failing_flush();
}

static void shape_kernel_behind_marker(void)
{
	cl_event marker = failing_marker(0, 1, &failing.gate);

	failing_kernel(0, 1, &marker);
	failing_fail();
}

static void shape_kernels_in_a_row(void)
{
	failing_kernel(0, 1, &failing.gate);
	failing_kernel(0, 0, NULL);
	failing_kernel(0, 0, NULL);
	failing_fail();
}

static void shape_kernel_behind_kernel(void)
{
	cl_event first = failing_kernel(0, 1, &failing.gate);

	failing_kernel(0, 1, &first);
	failing_fail();
}

static void shape_marker_behind_kernel(void)
{
	cl_event first = failing_kernel(0, 1, &failing.gate);

	first = failing_marker(0, 1, &first);
	failing_marker(0, 1, &first);
	failing_fail();
}

static void shape_kernel_on_another_queue(void)
{
	cl_event first = failing_kernel(0, 1, &failing.gate);

	failing_kernel(1, 1, &first);
	failing_marker(1, 0, NULL);
	failing_fail();
}

static void shape_kernels_of_two_queues(void)
{
	failing_kernel(0, 1, &failing.gate);
	failing_kernel(1, 1, &failing.gate);
	failing_fail();
}

/* One event of two fails. */
static void shape_kernel_behind_two_events(void)
{
	cl_int err;
	cl_event events[] = { failing.gate, clCreateUserEvent(failing.context, &err) };

	CALL(err);
	failing_kernel(0, 2, events);
	CALL(clSetUserEventStatus(events[1], CL_COMPLETE));
	failing_fail();
	CALL(clReleaseEvent(events[1]));
}

/* Both events fail. */
static void shape_kernel_behind_two_failures(void)
{
	cl_int err;
	cl_event events[] = { failing.gate, clCreateUserEvent(failing.context, &err) };

	CALL(err);
	failing_kernel(0, 2, events);
	failing_fail();
	CALL(clSetUserEventStatus(events[1], failure));
	CALL(clReleaseEvent(events[1]));
}

static void shape_kernel_with_callback(void)
{
	cl_event done = failing_kernel(0, 1, &failing.gate);

	CALL(clSetEventCallback(done, CL_COMPLETE, failing_note, &failing.out->told));
	failing_fail();
	failing_await_callback();
}

/* A kernel that nothing fails, behind one that failed. */
static void shape_kernel_then_another(void)
{
	failing_kernel(0, 1, &failing.gate);
	failing_fail();
	clWaitForEvents(1, &failing.done[0]);
	failing_kernel(0, 0, NULL);
}

static const struct shape {
	const char *name;
	void (*enqueue)(void);
} shapes[] = {
#define SHAPE(name)                 \
	{                           \
#name, shape_##name \
	}
	SHAPE(kernel),
	SHAPE(failed_before),
	SHAPE(kernel_behind_marker),
	SHAPE(kernels_in_a_row),
	SHAPE(kernel_behind_kernel),
	SHAPE(marker_behind_kernel),
	SHAPE(kernel_on_another_queue),
	SHAPE(kernels_of_two_queues),
	SHAPE(kernel_behind_two_events),
	SHAPE(kernel_behind_two_failures),
	SHAPE(kernel_with_callback),
	SHAPE(kernel_then_another),
};

static const struct order {
	const char *name;
	cl_command_queue_properties properties;
} orders[] = {
	{ "in_order", 0 },
	{ "out_of_order", CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE },
};

struct part {
	const struct shape *shape;
	const struct order *order;
	bool import;
	const char *broken; /* the SYNC that fails, or NULL */
	struct outcome *out;
};

static void failing_part(const void *arg)
{
	const struct part *part = arg;

	if (!part->import)
		unsetenv("OPENCL_LAYERS");
	failing.out = part->out;
	failing_open(part->import, part->order->properties);
	if (!part->import)
		alarm(PLAIN_SECONDS); /* time: a limit on a hang of the driver */
	if (part->broken)
		fake_dmabuf_fail(part->broken, EIO, 1);
	part->shape->enqueue();
	failing_close();
	part->out->is_whole = true;
}

/* Returns how the process ended, as waitpid(2) says. */
static int failing_run(const struct part *part)
{
	pid_t child = test_start_child(failing_part, part);
	int status = -1;

	EXPECT_EQ(waitpid(child, &status, 0), child);
	return status;
}

static struct outcome *failing_outcomes(void)
{
	void *out = mmap(NULL, 2 * sizeof(struct outcome), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	EXPECT(out != MAP_FAILED);
	return out;
}

TEST_EACH_PAIR(
	fails, struct shape, shapes, struct order, orders,
	"A command on a dma-buf whose wait list fails ends as one on the driver's own buffer.")
{
	struct outcome *out = failing_outcomes();
	const struct part plain = { row, column, false, NULL, &out[0] };
	const struct part import = { row, column, true, NULL, &out[1] };
	int status = failing_run(&plain);

	if (out[0].is_skipped)
		test_skip("the driver has no such queue or command");
	if (!out[0].is_whole)
		test_skip("the driver ends so with its own buffers: status %#x", status);
	EXPECT_EQ(failing_run(&import), 0);
	if (out[1].is_skipped)
		test_skip("the device takes no dma-bufs");
	for (int i = 0; i < 2; i++)
		EXPECT_EQ(out[1].finish[i], out[0].finish[i]);
	for (int i = 0; i < EVENTS; i++)
		if (out[1].wait[i] != CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST)
			EXPECT_EQ(out[1].wait[i], out[0].wait[i]);
	EXPECT_EQ(out[1].told, out[0].told);
	EXPECT(out[1].byte <= out[0].byte);
}

static const struct broken {
	const char *name, *edge;
	void (*enqueue)(void);
} broken[] = {
	{ "start", "START", shape_run },
	{ "end", "END", shape_run },
};

/*
 * A bracket can fail its commands only as a program can, by a user event: on a queue where that kills the driver
 * (Intel's CPU runtime, out of order), a failed SYNC does, too.
 */
TEST_EACH_PAIR(sync_fails, struct broken, broken, struct order, orders,
	       "A command on a dma-buf whose SYNC fails has an event with an error.")
{
	struct outcome *out = failing_outcomes();
	const struct shape shape = { row->name, row->enqueue };
	const struct part plain = { &shapes[0], column, false, NULL, &out[0] };
	const struct part import = { &shape, column, true, row->edge, &out[1] };
	int status = failing_run(&plain);

	if (out[0].is_skipped)
		test_skip("the driver has no such queue");
	if (!out[0].is_whole)
		test_skip("a failed user event ends the driver: status %#x", status);
	EXPECT_EQ(failing_run(&import), 0);
	if (out[1].is_skipped)
		test_skip("the device takes no dma-bufs");
	EXPECT(out[1].is_whole);
	EXPECT(out[1].wait[0]);
}
