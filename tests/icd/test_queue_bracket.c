/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels in a row share one DMA_BUF_IOCTL_SYNC START and END, which nobody can see.
 *
 * Where this machine is slow a row may idle in the middle, and be ended there: what is counted
 * exactly is tried again.
 */
#include "access.h"

#include <errno.h>
#include <pthread.h>
#include <unistd.h>

#define ROW 20

static void enqueue_row(struct run *r, int count)
{
	for (int i = 0; i < count; i++)
		EXPECT_EQ(fixture_enqueue(r->queue, r->kernel, 0, NULL, NULL), CL_SUCCESS);
}

/* What is enqueued meanwhile is in the queue before START can begin. */
static cl_event hold_back(struct run *r)
{
	cl_event go = user_event_create();

	EXPECT_EQ(cl.clEnqueueMarkerWithWaitList(r->queue, 1, &go, NULL), CL_SUCCESS);
	return go;
}

static void let_go(cl_event go)
{
	user_event_complete(go, CL_COMPLETE);
	cl.clReleaseEvent(go);
}

/* Every kernel of the trace is between a START and an END of "a". */
static void expect_all_inside(int kernels)
{
	int depth = 0, found = 0;

	for (int i = 0; stub_trace_find("", i) == i; i++) {
		depth += stub_trace_find("sync START a", i) == i;
		depth -= stub_trace_find("sync END a", i) == i;
		if (stub_trace_find("kernel increment", i) != i)
			continue;
		if (!depth)
			stub_trace_print();
		EXPECT(depth);
		found += stub_trace_find("kernel increment end", i) == i;
	}
	EXPECT_EQ(depth, 0);
	EXPECT_EQ(found, kernels);
}

typedef cl_int(CL_API_CALL *enqueue_count_fn)(cl_command_queue queue, cl_kernel kernel,
					      cl_uint dims, const size_t *offset,
					      const size_t *count, const size_t *local, cl_uint num,
					      const cl_event *list, cl_event *event);

static enqueue_count_fn count_function(void)
{
	enqueue_count_fn function = (enqueue_count_fn)cl.clGetExtensionFunctionAddressForPlatform(
		fix.platform, "clEnqueueNDCountKernelINTEL");

	EXPECT(function);
	return function;
}

TEST(in_order,
     "Kernels that are enqueued before START have one, and one END after the last of them.")
{
	int starts = 0;

	for (int i = 0; i < 100 && starts != 1; i++) {
		struct run r = run_open(0);
		cl_event go = hold_back(&r);

		r.a.seen[0] = 1;
		enqueue_row(&r, ROW);
		let_go(go);
		EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
		starts = stub_trace_count("sync START a");
		expect_all_inside(ROW);
		EXPECT_EQ(r.a.seen[0], ROW + 1);
		run_close(&r);
	}
	EXPECT_EQ(starts, 1);
}

TEST(counted, "A kernel of clEnqueueNDCountKernelINTEL joins the row.")
{
	int starts = 0;

	for (int i = 0; i < 100 && starts != 1; i++) {
		struct run r = run_open(0);
		enqueue_count_fn enqueue_count = count_function();
		const size_t one = 1;
		cl_event go = hold_back(&r);

		enqueue_row(&r, 2);
		EXPECT_EQ(enqueue_count(r.queue, r.kernel, 1, NULL, &one, NULL, 0, NULL, NULL),
			  CL_SUCCESS);
		enqueue_row(&r, 2);
		let_go(go);
		EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
		starts = stub_trace_count("sync START a");
		expect_all_inside(5);
		run_close(&r);
	}
	EXPECT_EQ(starts, 1);
}

TEST(out_of_order, "Kernels of an out-of-order queue have a START and an END each.")
{
	struct run r = run_open(OUT_OF_ORDER);

	enqueue_row(&r, ROW);
	EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
	expect_count("sync START a", ROW);
	expect_count("sync END a", ROW);
	run_close(&r);
}

TEST(null_queue, "A kernel without a queue is refused by the driver, and leaves nothing.")
{
	struct run r = run_open(0);

	for (int i = 0; i < ROW; i++)
		EXPECT_EQ(fixture_enqueue(NULL, r.kernel, 0, NULL, NULL), CL_INVALID_COMMAND_QUEUE);
	enqueue_row(&r, ROW);
	EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
	expect_all_inside(ROW);
	run_close(&r);
}

TEST(reordered, "A queue that is made out of order, or in order again, is from then on.")
{
	struct run r = run_open(0);

	EXPECT_EQ(fixture_enqueue(r.queue, r.kernel, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clSetCommandQueueProperty(r.queue, OUT_OF_ORDER, CL_TRUE, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
	stub_trace_clear();
	enqueue_row(&r, ROW);
	EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
	expect_count("sync START a", ROW);
	expect_count("sync END a", ROW);
	run_close(&r);
}

/* All kernels enqueued so far, three or more, are complete, and so are their brackets. */
static bool queue_bracket_has_ended(void *unused)
{
	int ends = stub_trace_count("sync END a");

	(void)unused;
	return stub_trace_count("kernel increment end") >= 3 && ends &&
	       stub_trace_count("sync START a") == ends;
}

/* Ways to observe that a kernel is complete; @plain is a buffer of the driver. */
static cl_mem plain;

static void queue_bracket_wait(cl_event event)
{
	EXPECT_EQ(cl.clWaitForEvents(1, &event), CL_SUCCESS);
	cl.clReleaseEvent(event);
}

static void by_finish(struct run *r)
{
	EXPECT_EQ(cl.clFinish(r->queue), CL_SUCCESS);
}

static void by_own_event(struct run *r)
{
	cl_event event;

	EXPECT_EQ(fixture_enqueue(r->queue, r->kernel, 0, NULL, &event), CL_SUCCESS);
	queue_bracket_wait(event);
}

static void by_task(struct run *r)
{
	cl_event event;

	EXPECT_EQ(cl.clEnqueueTask(r->queue, r->kernel, 0, NULL, &event), CL_SUCCESS);
	queue_bracket_wait(event);
}

static void by_other_kernel(struct run *r)
{
	cl_kernel kernel = fixture_create_increment(plain);
	cl_event event;

	EXPECT_EQ(fixture_enqueue(r->queue, kernel, 0, NULL, &event), CL_SUCCESS);
	queue_bracket_wait(event);
	cl.clReleaseKernel(kernel);
}

static void by_marker(struct run *r)
{
	cl_event event;

	EXPECT_EQ(cl.clEnqueueMarker(r->queue, &event), CL_SUCCESS);
	queue_bracket_wait(event);
}

static void by_marker_list(struct run *r)
{
	cl_event event;

	EXPECT_EQ(cl.clEnqueueMarkerWithWaitList(r->queue, 0, NULL, &event), CL_SUCCESS);
	queue_bracket_wait(event);
}

static void by_barrier(struct run *r)
{
	cl_event event;

	EXPECT_EQ(cl.clEnqueueBarrierWithWaitList(r->queue, 0, NULL, &event), CL_SUCCESS);
	queue_bracket_wait(event);
}

static void by_old_barrier(struct run *r)
{
	EXPECT_EQ(cl.clEnqueueBarrier(r->queue), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(r->queue), CL_SUCCESS);
}

static void by_wait_for_events(struct run *r)
{
	cl_event go = user_event_create();

	EXPECT_EQ(cl.clEnqueueWaitForEvents(r->queue, 1, &go), CL_SUCCESS);
	EXPECT(process_settles(queue_bracket_has_ended, NULL));
	user_event_complete(go, CL_COMPLETE);
	cl.clReleaseEvent(go);
}

static void by_migration(struct run *r)
{
	cl_event event;

	EXPECT_EQ(cl.clEnqueueMigrateMemObjects(r->queue, 1, &plain, 0, 0, NULL, &event),
		  CL_SUCCESS);
	queue_bracket_wait(event);
}

static void by_read(struct run *r)
{
	unsigned char byte;

	EXPECT_EQ(cl.clEnqueueReadBuffer(r->queue, plain, CL_TRUE, 0, 1, &byte, 0, NULL, NULL),
		  CL_SUCCESS);
}

static void by_write(struct run *r)
{
	unsigned char byte = 0;
	cl_event event;

	EXPECT_EQ(cl.clEnqueueWriteBuffer(r->queue, plain, CL_FALSE, 0, 1, &byte, 0, NULL, &event),
		  CL_SUCCESS);
	queue_bracket_wait(event);
}

static void by_read_rect(struct run *r)
{
	const size_t origin[3] = { 0 }, region[3] = { 1, 1, 1 };
	unsigned char byte;

	EXPECT_EQ(cl.clEnqueueReadBufferRect(r->queue, plain, CL_TRUE, origin, origin, region, 0, 0,
					     0, 0, &byte, 0, NULL, NULL),
		  CL_SUCCESS);
}

static void by_copy(struct run *r)
{
	cl_event event;

	EXPECT_EQ(cl.clEnqueueCopyBuffer(r->queue, plain, plain, 0, 64, 1, 0, NULL, &event),
		  CL_SUCCESS);
	queue_bracket_wait(event);
}

static void by_fill(struct run *r)
{
	const unsigned char byte = 1;
	cl_event event;

	EXPECT_EQ(cl.clEnqueueFillBuffer(r->queue, plain, &byte, 1, 0, 4, 0, NULL, &event),
		  CL_SUCCESS);
	queue_bracket_wait(event);
}

static void by_map(struct run *r)
{
	cl_event event;
	cl_int err;
	void *mapped = cl.clEnqueueMapBuffer(r->queue, plain, CL_TRUE, CL_MAP_READ, 0, 64, 0, NULL,
					     NULL, &err);

	EXPECT_EQ(err, CL_SUCCESS);
	EXPECT(queue_bracket_has_ended(NULL));
	EXPECT_EQ(cl.clEnqueueUnmapMemObject(r->queue, plain, mapped, 0, NULL, &event), CL_SUCCESS);
	queue_bracket_wait(event);
}

static void CL_CALLBACK trace_host_sees(void *unused)
{
	(void)unused;
	stub_trace("seen by the host: %d", queue_bracket_has_ended(NULL));
}

static void by_native_kernel(struct run *r)
{
	EXPECT_EQ(cl.clEnqueueNativeKernel(r->queue, trace_host_sees, NULL, 0, 0, NULL, NULL, 0,
					   NULL, NULL),
		  CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(r->queue), CL_SUCCESS);
	expect_count("seen by the host: 1", 1);
}

static void by_image(struct run *r)
{
	const size_t origin[3] = { 0 }, region[3] = { 1, 1, 1 };
	cl_mem made = fixture_create_image(CL_MEM_OBJECT_IMAGE2D, NULL, 4, 4, 0);
	cl_uint pixel;

	EXPECT_EQ(cl.clEnqueueReadImage(r->queue, made, CL_TRUE, origin, region, 0, 0, &pixel, 0,
					NULL, NULL),
		  CL_SUCCESS);
	cl.clReleaseMemObject(made);
}

static void by_other_queue(struct run *r)
{
	cl_kernel kernel = fixture_create_increment(plain);
	cl_event event;

	EXPECT_EQ(cl.clEnqueueMarkerWithWaitList(r->queue, 0, NULL, &event), CL_SUCCESS);
	EXPECT_EQ(cl.clFlush(r->queue), CL_SUCCESS);
	EXPECT_EQ(fixture_enqueue(fix.queue, kernel, 1, &event, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(fix.queue), CL_SUCCESS);
	cl.clReleaseEvent(event);
	cl.clReleaseKernel(kernel);
}

static void by_idling(struct run *r)
{
	(void)r;
	EXPECT(process_settles(queue_bracket_has_ended, NULL));
}

static void by_release(struct run *r)
{
	cl.clReleaseCommandQueue(r->queue);
	EXPECT(process_settles(queue_bracket_has_ended, NULL));
	r->queue = fixture_create_queue(0);
}

static void by_other_buffer(struct run *r)
{
	struct buffer b = buffer_open("b", NULL);
	cl_kernel kernel = fixture_create_increment(b.mem);

	stub_trace_clear(); /* which buffer_open() did as well */
	enqueue_row(r, ROW);
	EXPECT_EQ(fixture_enqueue(r->queue, kernel, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(r->queue), CL_SUCCESS);
	expect_order("sync END a", "sync END b");
	cl.clReleaseKernel(kernel);
	buffer_close(&b);
}

static void by_command_buffer(struct run *r)
{
	__typeof__(&clCreateCommandBufferKHR) create =
		(__typeof__(create))cl.clGetExtensionFunctionAddressForPlatform(
			fix.platform, "clCreateCommandBufferKHR");
	__typeof__(&clFinalizeCommandBufferKHR) finalize =
		(__typeof__(finalize))cl.clGetExtensionFunctionAddressForPlatform(
			fix.platform, "clFinalizeCommandBufferKHR");
	__typeof__(&clEnqueueCommandBufferKHR) run =
		(__typeof__(run))cl.clGetExtensionFunctionAddressForPlatform(
			fix.platform, "clEnqueueCommandBufferKHR");
	__typeof__(&clReleaseCommandBufferKHR) release =
		(__typeof__(release))cl.clGetExtensionFunctionAddressForPlatform(
			fix.platform, "clReleaseCommandBufferKHR");
	cl_command_buffer_khr buffer;
	cl_event event;
	cl_int err;

	EXPECT(create && finalize && run && release);
	buffer = create(1, &r->queue, NULL, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	EXPECT_EQ(finalize(buffer), CL_SUCCESS);
	EXPECT_EQ(run(0, NULL, buffer, 0, NULL, &event), CL_SUCCESS);
	queue_bracket_wait(event);
	release(buffer);
}

static void by_count_kernel(struct run *r)
{
	enqueue_count_fn enqueue_count = count_function();
	const size_t one = 1;
	cl_event event;

	EXPECT_EQ(enqueue_count(r->queue, r->kernel, 1, NULL, &one, &one, 0, NULL, &event),
		  CL_SUCCESS);
	queue_bracket_wait(event);
}

static void by_blocking_free(struct run *r)
{
	cl_int(CL_API_CALL * blocking_free)(cl_context, void *);

	(void)r;
	blocking_free = (__typeof__(blocking_free))cl.clGetExtensionFunctionAddressForPlatform(
		fix.platform, "clMemBlockingFreeINTEL");
	EXPECT(blocking_free);
	EXPECT_EQ(blocking_free(NULL, &plain), CL_INVALID_CONTEXT);
	EXPECT_EQ(blocking_free(fix.context, &plain), CL_SUCCESS);
}

TEST(observed, "END comes before each kind of call by which the application can see completion.")
{
	static const struct {
		const char *name;
		void (*observe)(struct run *r);
	} ways[] = {
		{ "clFinish", by_finish },
		{ "the event of a kernel in the row", by_own_event },
		{ "the event of clEnqueueTask", by_task },
		{ "the event of a kernel on another buffer", by_other_kernel },
		{ "clEnqueueMarker", by_marker },
		{ "clEnqueueMarkerWithWaitList", by_marker_list },
		{ "clEnqueueBarrierWithWaitList", by_barrier },
		{ "clEnqueueBarrier", by_old_barrier },
		{ "clEnqueueWaitForEvents", by_wait_for_events },
		{ "clEnqueueMigrateMemObjects", by_migration },
		{ "a blocking read", by_read },
		{ "the event of a write", by_write },
		{ "a blocking rectangular read", by_read_rect },
		{ "the event of a copy", by_copy },
		{ "the event of a fill", by_fill },
		{ "a blocking map", by_map },
		{ "clEnqueueNativeKernel", by_native_kernel },
		{ "a blocking read of an image", by_image },
		{ "another queue", by_other_queue },
		{ "doing nothing", by_idling },
		{ "clReleaseCommandQueue", by_release },
		{ "a kernel on other dma-bufs", by_other_buffer },
		{ "clEnqueueCommandBufferKHR", by_command_buffer },
		{ "the event of clEnqueueNDCountKernelINTEL", by_count_kernel },
		{ "clMemBlockingFreeINTEL", by_blocking_free },
	};

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		struct run r = run_open(0);

		printf("# by %s\n", ways[i].name);
		plain = cl.clCreateBuffer(fix.context, 0, SIZE, NULL, NULL);
		fake_dmabuf_delay(3);
		if (ways[i].observe != by_other_buffer)
			enqueue_row(&r, 3);
		ways[i].observe(&r);
		EXPECT(queue_bracket_has_ended(NULL));
		stub_trace_clear();
		enqueue_row(&r, 1);
		EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
		expect_bracket("a", "increment");
		cl.clReleaseMemObject(plain);
		run_close(&r);
	}
}

static int starts_with_others(void)
{
	struct run r = run_open(0);
	cl_kernel other;
	cl_event go;
	int starts;

	plain = cl.clCreateBuffer(fix.context, 0, SIZE, NULL, NULL);
	other = fixture_create_increment(plain);
	go = hold_back(&r);
	enqueue_row(&r, 2);
	EXPECT_EQ(fixture_enqueue(r.queue, other, 0, NULL, NULL), CL_SUCCESS);
	enqueue_row(&r, 2);
	let_go(go);
	EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
	starts = stub_trace_count("sync START a");
	EXPECT_EQ(stub_trace_count("sync END a"), starts);
	cl.clReleaseKernel(other);
	cl.clReleaseMemObject(plain);
	run_close(&r);
	return starts;
}

TEST(silent, "A kernel without an import and without an event does not end the row.")
{
	int starts = 0;

	for (int i = 0; i < 100 && starts != 1; i++)
		starts = starts_with_others();
	EXPECT_EQ(starts, 1);
}

static int starts_with_subset(void)
{
	struct run r = run_open(0);
	struct buffer b = buffer_open("b", NULL);
	cl_kernel both = fixture_create_kernel("vector_add");
	cl_event go;
	int starts;

	for (cl_uint i = 0; i < 3; i++)
		EXPECT_EQ(cl.clSetKernelArg(both, i, sizeof(cl_mem), i ? &b.mem : &r.a.mem),
			  CL_SUCCESS);
	go = hold_back(&r);
	EXPECT_EQ(fixture_enqueue(r.queue, both, 0, NULL, NULL), CL_SUCCESS);
	enqueue_row(&r, 2);
	let_go(go);
	EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
	starts = stub_trace_count("sync START a");
	EXPECT_EQ(stub_trace_count("sync END a"), starts);
	EXPECT_EQ(stub_trace_count("sync START b"), stub_trace_count("sync END b"));
	cl.clReleaseKernel(both);
	buffer_close(&b);
	run_close(&r);
	return starts;
}

TEST(subset, "A kernel that uses fewer of the dma-bufs joins the row.")
{
	int starts = 0;

	for (int i = 0; i < 100 && starts != 1; i++)
		starts = starts_with_subset();
	EXPECT_EQ(starts, 1);
}

TEST(host_writes, "What the host writes after clFinish is between an END and a START.")
{
	struct run r = run_open(0);

	enqueue_row(&r, 3);
	EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
	stub_trace("host writes");
	r.a.seen[0] = 100;
	enqueue_row(&r, 3);
	EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
	expect_order("sync END a", "host writes");
	EXPECT(stub_trace_find("sync START a", stub_trace_find("host writes", 0)) >= 0);
	EXPECT_EQ(r.a.seen[0], 103);
	expect_all_inside(6);
	run_close(&r);
}

static bool has_started(void *unused)
{
	(void)unused;
	return stub_trace_find("sync START a", 0) >= 0;
}

TEST(producer_writes, "A kernel that is enqueued after START has a START of its own: another "
		      "device may have written.")
{
	for (int i = 0; i < 20; i++) {
		struct run r = run_open(0);

		enqueue_row(&r, 1);
		EXPECT(process_settles(has_started, NULL));
		stub_trace("another device writes");
		enqueue_row(&r, 1);
		EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
		expect_count("sync START a", 2);
		EXPECT(stub_trace_find("sync START a",
				       stub_trace_find("another device writes", 0)) >= 0);
		expect_all_inside(2);
		run_close(&r);
	}
}

TEST(fences, "A kernel that is enqueued after START waits for the fences that came after it.")
{
	for (int i = 0; i < 5; i++) {
		struct run r = run_open(0);

		enqueue_row(&r, 1);
		EXPECT(process_settles(has_started, NULL));
		fake_dmabuf_busy("a");
		enqueue_row(&r, 1);
		EXPECT_EQ(cl.clFlush(r.queue), CL_SUCCESS);
		let_others_run();
		EXPECT(stub_trace_count("kernel increment begin") < 2);
		fake_dmabuf_busy(NULL);
		EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
		expect_all_inside(2);
		run_close(&r);
	}
}

TEST(refused_is_not_begun,
     "A kernel that the driver refuses has no START, however late that would be.")
{
	struct run r = run_open(0);
	cl_event go = user_event_create();

	EXPECT_EQ(cl.clEnqueueMarkerWithWaitList(r.queue, 1, &go, NULL), CL_SUCCESS);
	stub_fail("clEnqueueNDRangeKernel", 1, CL_OUT_OF_RESOURCES);
	EXPECT_EQ(fixture_enqueue(r.queue, r.kernel, 0, NULL, NULL), CL_OUT_OF_RESOURCES);
	user_event_complete(go, CL_COMPLETE);
	EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
	let_others_run();
	expect_no_sync("a");
	cl.clReleaseEvent(go);
	run_close(&r);
}

TEST(user_event_splits,
     "A kernel with a wait list has a START of its own, when the list is complete.")
{
	struct run r = run_open(0);
	cl_event go = user_event_create();

	enqueue_row(&r, 3);
	EXPECT_EQ(fixture_enqueue(r.queue, r.kernel, 1, &go, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clFlush(r.queue), CL_SUCCESS);
	EXPECT(process_settles(queue_bracket_has_ended, NULL));
	user_event_complete(go, CL_COMPLETE);
	EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
	expect_order("sync END a", "completed by the application");
	EXPECT(stub_trace_find("sync START a",
			       stub_trace_find("completed by the application", 0)) >= 0);
	expect_all_inside(4);
	cl.clReleaseEvent(go);
	run_close(&r);
}

TEST(held_back, "A row that a user event holds back begins when that is complete.")
{
	struct run r = run_open(0);
	cl_event go = user_event_create();

	EXPECT_EQ(cl.clEnqueueMarkerWithWaitList(r.queue, 1, &go, NULL), CL_SUCCESS);
	enqueue_row(&r, 100);
	EXPECT_EQ(cl.clFlush(r.queue), CL_SUCCESS);
	let_others_run();
	expect_no_sync("a");
	user_event_complete(go, CL_COMPLETE);
	EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
	expect_order("completed by the application", "sync START a");
	expect_all_inside(100);
	cl.clReleaseEvent(go);
	run_close(&r);
}

TEST(start_fails, "When START fails no kernel of the row runs, and the next row begins anew.")
{
	for (int i = 0; i < 2; i++) {
		struct run r = run_open(0);

		alarm(60);
		stub_set(STUB_NO_FAILURE_BEHIND, 1);
		if (i)
			fake_dmabuf_busy("a"); /* START comes when they are enqueued */
		fake_dmabuf_fail("START", EIO, 1000);
		enqueue_row(&r, ROW);
		fake_dmabuf_busy(NULL);
		EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
		expect_count("kernel increment", 0);
		fake_dmabuf_reset();
		enqueue_row(&r, ROW);
		EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
		expect_all_inside(ROW);
		alarm(0);
		run_close(&r);
	}
}

TEST(enqueue_fails, "A kernel of the row that the driver refuses leaves the others as they are.")
{
	for (unsigned long nth = 1; nth < 4; nth++) {
		struct run r = run_open(0);

		stub_fail("clEnqueueNDRangeKernel", nth, CL_OUT_OF_RESOURCES);
		for (unsigned long i = 1; i < 4; i++)
			EXPECT_EQ(fixture_enqueue(r.queue, r.kernel, 0, NULL, NULL),
				  i == nth ? CL_OUT_OF_RESOURCES : CL_SUCCESS);
		EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
		expect_all_inside(2);
		run_close(&r);
	}
}

TEST(lazy_driver, "A row that idles is ended where the driver starts nothing before a flush.")
{
	struct run r = run_open(0);

	stub_set(STUB_LAZY, 1);
	enqueue_row(&r, ROW);
	EXPECT_EQ(cl.clFlush(r.queue), CL_SUCCESS);
	EXPECT(process_settles(queue_bracket_has_ended, NULL));
	expect_all_inside(ROW);
	run_close(&r);
}

TEST(slow_driver, "A queue that idles ends its row also when the driver is slow to begin it.")
{
	struct run r = run_open(0);

	stub_set(STUB_ENQUEUE_DELAY, 20); /* the thread that idles looks meanwhile */
	enqueue_row(&r, 3);
	stub_set(STUB_ENQUEUE_DELAY, 0);
	EXPECT(process_settles(queue_bracket_has_ended, NULL));
	expect_all_inside(3);
	run_close(&r);
}

static bool queue_is_gone(void *queue)
{
	return !stub_is_live(queue, STUB_QUEUE);
}

static bool has_flushed(void *unused)
{
	(void)unused;
	return stub_calls("clFlush") > 0;
}

TEST(flush_blocks, "A driver that blocks in the flush of a queue that idles blocks no enqueue.")
{
	struct run r = run_open(0);

	alarm(60);
	stub_set(STUB_HANG_FLUSH, 1);
	enqueue_row(&r, 3);
	EXPECT(process_settles(has_flushed, NULL));
	enqueue_row(&r, 3);
	stub_set(STUB_HANG_FLUSH, 0);
	EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
	expect_all_inside(6);
	run_close(&r);
	alarm(0);
}

TEST(released_in_flush, "A queue that is released while a flush blocks goes when that is over.")
{
	struct run r = run_open(0);

	alarm(60);
	stub_set(STUB_HANG_FLUSH, 1);
	enqueue_row(&r, 3);
	EXPECT(process_settles(has_flushed, NULL));
	EXPECT(process_settles(queue_bracket_has_ended, NULL));
	EXPECT_EQ(cl.clReleaseCommandQueue(r.queue), CL_SUCCESS);
	EXPECT(stub_is_live(r.queue, STUB_QUEUE));
	stub_set(STUB_HANG_FLUSH, 0);
	EXPECT(process_settles(queue_is_gone, r.queue));
	r.queue = fixture_create_queue(0);
	run_close(&r);
	alarm(0);
}

/* A queue at the address that @freed had. */
static cl_command_queue queue_create_at(cl_command_queue freed,
					cl_command_queue_properties properties)
{
	cl_command_queue found, others[64];
	int count = 0;

	stub_set(STUB_ADDRESS_REUSE, 1);
	while ((found = fixture_create_queue(properties)) != freed && count < 64)
		others[count++] = found;
	stub_set(STUB_ADDRESS_REUSE, 0);
	EXPECT(found == freed); /* else the test tests nothing */
	while (count)
		cl.clReleaseCommandQueue(others[--count]);
	return found;
}

/* The queue of @properties, released while it is busy, and another one at its address. */
static struct run run_at_address(cl_command_queue_properties properties,
				 cl_command_queue_properties next)
{
	struct run r = run_open(properties);
	cl_event go = hold_back(&r);

	enqueue_row(&r, 3);
	EXPECT_EQ(cl.clReleaseCommandQueue(r.queue), CL_SUCCESS);
	let_go(go);
	EXPECT(process_settles(queue_is_gone, r.queue));
	r.queue = queue_create_at(r.queue, next);
	stub_trace_clear();
	return r;
}

TEST(address_out_of_order, "An out-of-order queue at the address of an in-order one has no rows.")
{
	struct run r = run_at_address(0, OUT_OF_ORDER);

	enqueue_row(&r, ROW);
	EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
	expect_count("sync START a", ROW);
	run_close(&r);
}

TEST(address_in_order, "An in-order queue at the address of an out-of-order one has rows.")
{
	int starts = 0;

	for (int i = 0; i < 100 && starts != 1; i++) {
		struct run r = run_at_address(OUT_OF_ORDER, 0);
		cl_event go = hold_back(&r);

		enqueue_row(&r, ROW);
		let_go(go);
		EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
		starts = stub_trace_count("sync START a");
		expect_all_inside(ROW);
		run_close(&r);
	}
	EXPECT_EQ(starts, 1);
}

TEST(released_import, "The last release of the import ends the row, and unmaps its memory.")
{
	struct run r = run_open(0);

	enqueue_row(&r, ROW);
	cl.clReleaseKernel(r.kernel);
	buffer_close(&r.a);
	EXPECT(process_settles(queue_bracket_has_ended, NULL));
	EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
	EXPECT(process_settles(fixture_is_unmapped, NULL));
	expect_all_inside(ROW);
	cl.clReleaseCommandQueue(r.queue);
	fixture_close();
}

TEST(unknown_function, "A program that has an enqueue function of its own gets no rows any more.")
{
	struct run r = run_open(0);

	enqueue_row(&r, 3);
	EXPECT(cl.clGetExtensionFunctionAddressForPlatform(fix.platform, "clEnqueueSomethingSTUB"));
	EXPECT(process_settles(queue_bracket_has_ended, NULL));
	stub_trace_clear();
	enqueue_row(&r, ROW);
	EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
	expect_count("sync START a", ROW);
	run_close(&r);
}

static void CL_CALLBACK notice_destruction(cl_mem mem, void *unused)
{
	(void)mem;
	(void)unused;
}

TEST(destructor_callback, "A program that has a memory object's end told gets no rows any more.")
{
	struct run r = run_open(0);
	cl_event go;

	plain = cl.clCreateBuffer(fix.context, 0, SIZE, NULL, NULL);
	enqueue_row(&r, 3);
	EXPECT_EQ(cl.clSetMemObjectDestructorCallback(plain, notice_destruction, NULL), CL_SUCCESS);
	EXPECT(process_settles(queue_bracket_has_ended, NULL));
	stub_trace_clear();
	go = hold_back(&r);
	enqueue_row(&r, ROW);
	let_go(go);
	EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
	expect_count("sync START a", ROW);
	cl.clReleaseMemObject(plain);
	run_close(&r);
}

/* Another thread is in the driver, and asks it for the call that is to end the row. */
static bool is_closing(void *calls)
{
	return stub_calls("clSetEventCallback") >= *(unsigned long *)calls;
}

TEST(finish_while_closing,
     "clFinish waits for the END of a row that idles and is just being ended.")
{
	struct run r = run_open(0);
	unsigned long calls = stub_calls("clSetEventCallback") + 2; /* one for START */

	stub_set(STUB_CALLBACK_DELAY, 100);
	stub_set(STUB_ENQUEUE_DELAY, 300);
	enqueue_row(&r, 1);
	EXPECT(process_settles(is_closing, &calls));
	EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
	expect_count("sync END a", 1);
	run_close(&r);
}

TEST(list_of_none, "A kernel whose wait list has no events is enqueued, whatever it shares.")
{
	cl_event none = NULL;

	for (int i = 0; i < 4; i++) {
		struct run r = run_open(kinds_of_queue[i & 1]);
		cl_event event = NULL;

		for (int kernel = 0; kernel < 2; kernel++) {
			EXPECT_EQ(cl.clEnqueueTask(r.queue, r.kernel, 0, &none,
						   i & 2 ? &event : NULL),
				  CL_SUCCESS);
			if (event)
				cl.clReleaseEvent(event);
		}
		EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
		expect_count("kernel increment end", 2);
		run_close(&r);
	}
}

struct work {
	struct run *r;
	bool finishes;
};

static void *enqueue_many(void *arg)
{
	struct work *work = arg;
	struct run mine = *work->r;

	mine.kernel = fixture_create_increment(mine.a.mem);
	for (int i = 0; i < 100; i++) {
		cl_event event = NULL;

		if (fixture_enqueue(mine.queue, mine.kernel, 0, NULL, i % 17 == 3 ? &event : NULL))
			return (void *)1;
		if (event && (cl.clWaitForEvents(1, &event) || cl.clReleaseEvent(event)))
			return (void *)1;
		if (work->finishes && i % 10 == 5 && cl.clFinish(mine.queue))
			return (void *)1;
	}
	cl.clReleaseKernel(mine.kernel);
	return NULL;
}

TEST(threads, "Four threads that enqueue on one queue have every kernel inside of a bracket.")
{
	for (int i = 0; i < 5; i++) {
		struct run r = run_open(0);
		pthread_t thread[4];
		struct work work[4];
		void *failed;

		for (int t = 0; t < 4; t++) {
			work[t] = (struct work){ &r, t & 1 };
			pthread_create(&thread[t], NULL, enqueue_many, &work[t]);
		}
		for (int t = 0; t < 4; t++) {
			pthread_join(thread[t], &failed);
			EXPECT(!failed);
		}
		EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
		expect_all_inside(400);
		run_close(&r);
	}
}
