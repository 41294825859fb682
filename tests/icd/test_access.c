/* SPDX-License-Identifier: Apache-2.0 */
/* DMA_BUF_IOCTL_SYNC around kernels: when. */
#include "access.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

#define OUT_OF_ORDER CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE

static const cl_command_queue_properties kinds_of_queue[] = { 0, OUT_OF_ORDER };

/* A queue of each kind, the buffer "a", and a kernel on it. */
struct run {
	cl_command_queue queue;
	struct buffer a;
	cl_kernel kernel;
};

static struct run run_open(cl_command_queue_properties properties)
{
	struct run r = { .queue = queue_create(properties | CL_QUEUE_PROFILING_ENABLE) };

	r.a = buffer_open("a", NULL);
	r.kernel = kernel_increment(r.a.mem);
	return r;
}

static void run_close(struct run *r)
{
	cl.clReleaseKernel(r->kernel);
	buffer_close(&r->a);
	cl.clReleaseCommandQueue(r->queue);
}

static struct run open_with(cl_command_queue_properties properties)
{
	fixture_reset();
	fixture_open();
	return run_open(properties);
}

static void close_all(struct run *r)
{
	run_close(r);
	fixture_close();
}

TEST(finish, "START before the kernel, END after it, and clFinish returns after END.")
{
	for (int i = 0; i < 2; i++) {
		struct run r = open_with(kinds_of_queue[i]);

		fake_dmabuf_delay(10);
		r.a.seen[0] = 41;
		EXPECT_EQ(enqueue(r.queue, r.kernel, 0, NULL, NULL), CL_SUCCESS);
		EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
		expect_bracket("a", "increment");
		expect_count("sync START a rw", 1);
		expect_count("sync END a rw", 1);
		EXPECT_EQ(r.a.seen[0], 42);
		close_all(&r);
	}
}

TEST(finish_late_callbacks, "The same where the driver's event callbacks come late.")
{
	for (int i = 0; i < 2; i++) {
		struct run r = open_with(kinds_of_queue[i]);

		stub_set(STUB_CALLBACK_DELAY, 20);
		EXPECT_EQ(enqueue(r.queue, r.kernel, 0, NULL, NULL), CL_SUCCESS);
		EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
		expect_bracket("a", "increment");
		close_all(&r);
	}
}

TEST(wait_for_event, "When the event is complete, END has been done.")
{
	for (int i = 0; i < 2; i++) {
		struct run r = open_with(kinds_of_queue[i]);
		cl_event done;

		stub_set(STUB_CALLBACK_DELAY, 10);
		fake_dmabuf_delay(10);
		EXPECT_EQ(enqueue(r.queue, r.kernel, 0, NULL, &done), CL_SUCCESS);
		EXPECT_EQ(cl.clWaitForEvents(1, &done), CL_SUCCESS);
		expect_bracket("a", "increment");
		EXPECT_EQ(event_status(done), CL_COMPLETE);
		cl.clReleaseEvent(done);
		close_all(&r);
	}
}

static bool is_over(void *event)
{
	return event_status(*(cl_event *)event) <= CL_COMPLETE;
}

TEST(poll_event, "A program that polls the event's status sees COMPLETE only after END.")
{
	for (int i = 0; i < 2; i++) {
		struct run r = open_with(kinds_of_queue[i]);
		cl_event done;

		fake_dmabuf_delay(10);
		EXPECT_EQ(enqueue(r.queue, r.kernel, 0, NULL, &done), CL_SUCCESS);
		EXPECT_EQ(cl.clFlush(r.queue), CL_SUCCESS);
		EXPECT(settles(is_over, &done));
		expect_bracket("a", "increment");
		cl.clReleaseEvent(done);
		close_all(&r);
	}
}

TEST(lazy_driver, "clFlush is enough where the driver starts nothing before.")
{
	for (int i = 0; i < 2; i++) {
		struct run r = open_with(kinds_of_queue[i]);
		cl_event done;

		stub_set(STUB_LAZY, 1);
		EXPECT_EQ(enqueue(r.queue, r.kernel, 0, NULL, &done), CL_SUCCESS);
		EXPECT_EQ(cl.clFlush(r.queue), CL_SUCCESS);
		EXPECT(settles(is_over, &done));
		expect_bracket("a", "increment");
		EXPECT_EQ(enqueue(r.queue, r.kernel, 0, NULL, NULL), CL_SUCCESS);
		EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
		expect_count("sync END a", 2);
		cl.clReleaseEvent(done);
		close_all(&r);
	}
}

static void CL_CALLBACK trace_event(cl_event event, cl_int status, void *user_data)
{
	(void)event;
	(void)user_data;
	stub_trace("callback %d", status);
}

static bool has_callback(void *arg)
{
	(void)arg;
	return stub_trace_find("callback", 0) >= 0;
}

TEST(event_callback, "The application's callback on its event is called after END.")
{
	for (int i = 0; i < 2; i++) {
		struct run r = open_with(kinds_of_queue[i]);
		cl_event go = user_event(), done;

		EXPECT_EQ(enqueue(r.queue, r.kernel, 1, &go, &done), CL_SUCCESS);
		EXPECT_EQ(cl.clSetEventCallback(done, CL_COMPLETE, trace_event, NULL), CL_SUCCESS);
		complete(go, CL_COMPLETE);
		EXPECT(settles(has_callback, NULL));
		expect_order("sync END a", "callback 0");
		cl.clReleaseEvent(done);
		cl.clReleaseEvent(go);
		close_all(&r);
	}
}

TEST(wait_list, "START waits for the wait list, also for a user event that is completed later.")
{
	for (int i = 0; i < 2; i++) {
		struct run r = open_with(kinds_of_queue[i]);
		cl_event go = user_event(), done;

		EXPECT_EQ(enqueue(r.queue, r.kernel, 1, &go, &done), CL_SUCCESS);
		EXPECT_EQ(cl.clFlush(r.queue), CL_SUCCESS);
		let_others_run();
		expect_no_sync("a");
		EXPECT(event_status(done) > CL_COMPLETE);
		r.a.seen[0] = 7;
		complete(go, CL_COMPLETE);
		EXPECT_EQ(cl.clWaitForEvents(1, &done), CL_SUCCESS);
		expect_order("completed by the application", "sync START a");
		expect_bracket("a", "increment");
		EXPECT_EQ(r.a.seen[0], 8);
		cl.clReleaseEvent(go);
		cl.clReleaseEvent(done);
		close_all(&r);
	}
}

TEST(behind_others, "In an in-order queue START waits for the commands before it.")
{
	struct run r = open_with(0);
	cl_event go = user_event();

	EXPECT_EQ(cl.clEnqueueMarkerWithWaitList(r.queue, 1, &go, NULL), CL_SUCCESS);
	EXPECT_EQ(enqueue(r.queue, r.kernel, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clFlush(r.queue), CL_SUCCESS);
	let_others_run();
	expect_no_sync("a");
	complete(go, CL_COMPLETE);
	EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
	expect_order("completed by the application", "sync START a");
	expect_bracket("a", "increment");
	cl.clReleaseEvent(go);
	close_all(&r);
}

TEST(behind_barrier, "In an out-of-order queue START waits for a barrier before it.")
{
	struct run r = open_with(OUT_OF_ORDER);
	cl_event go = user_event();

	EXPECT_EQ(cl.clEnqueueBarrierWithWaitList(r.queue, 1, &go, NULL), CL_SUCCESS);
	EXPECT_EQ(enqueue(r.queue, r.kernel, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clFlush(r.queue), CL_SUCCESS);
	let_others_run();
	expect_no_sync("a");
	complete(go, CL_COMPLETE);
	EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
	expect_order("completed by the application", "sync START a");
	cl.clReleaseEvent(go);
	close_all(&r);
}

TEST(barrier_after, "What comes after a later barrier or marker comes after END.")
{
	for (int i = 0; i < 2; i++) {
		struct run r = open_with(kinds_of_queue[i]);
		cl_event done[2];

		fake_dmabuf_delay(10);
		EXPECT_EQ(enqueue(r.queue, r.kernel, 0, NULL, NULL), CL_SUCCESS);
		EXPECT_EQ(cl.clEnqueueMarkerWithWaitList(r.queue, 0, NULL, &done[0]), CL_SUCCESS);
		EXPECT_EQ(cl.clWaitForEvents(1, &done[0]), CL_SUCCESS);
		expect_count("sync END a", 1);
		EXPECT_EQ(enqueue(r.queue, r.kernel, 0, NULL, NULL), CL_SUCCESS);
		EXPECT_EQ(cl.clEnqueueBarrierWithWaitList(r.queue, 0, NULL, &done[1]), CL_SUCCESS);
		EXPECT_EQ(cl.clWaitForEvents(1, &done[1]), CL_SUCCESS);
		expect_count("sync END a", 2);
		cl.clReleaseEvent(done[0]);
		cl.clReleaseEvent(done[1]);
		close_all(&r);
	}
}

TEST(event_in_wait_list, "A command that waits for the event starts after END of the first.")
{
	struct run r = open_with(OUT_OF_ORDER);
	struct buffer b = buffer_open("b", NULL);
	cl_kernel second = kernel_increment(b.mem);
	cl_command_queue other = queue_create(0);
	cl_event first;

	fake_dmabuf_delay(10);
	EXPECT_EQ(enqueue(r.queue, r.kernel, 0, NULL, &first), CL_SUCCESS);
	EXPECT_EQ(enqueue(other, second, 1, &first, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clFlush(r.queue), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(other), CL_SUCCESS);
	expect_order("sync END a", "sync START b");
	cl.clReleaseEvent(first);
	cl.clReleaseCommandQueue(other);
	cl.clReleaseKernel(second);
	buffer_close(&b);
	close_all(&r);
}

TEST(wait_list_fails, "When the wait list fails there is no START, no kernel, and the event fails.")
{
	for (int i = 0; i < 4; i++) {
		struct run r = open_with(kinds_of_queue[i & 1]);
		cl_event go = user_event(), done;

		stub_set(STUB_CALLBACK_COMPLETE, i & 2); /* PoCL 7 */
		EXPECT_EQ(enqueue(r.queue, r.kernel, 1, &go, &done), CL_SUCCESS);
		complete(go, -5);
		EXPECT_EQ(cl.clWaitForEvents(1, &done), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
		EXPECT(event_status(done) < 0);
		EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
		expect_no_sync("a");
		expect_count("kernel increment", 0);
		EXPECT_EQ(enqueue(r.queue, r.kernel, 0, NULL, NULL), CL_SUCCESS);
		EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
		expect_bracket("a", "increment");
		cl.clReleaseEvent(go);
		cl.clReleaseEvent(done);
		close_all(&r);
	}
}

TEST(no_callback_for_failures, "Where the driver does not call back for failed commands, the same.")
{
	for (int i = 0; i < 2; i++) {
		struct run r = open_with(kinds_of_queue[i]);
		cl_event go = user_event(), done;

		stub_set(STUB_NO_FAILURE_CALLBACK, 1); /* PoCL 3.1 */
		EXPECT_EQ(enqueue(r.queue, r.kernel, 1, &go, &done), CL_SUCCESS);
		complete(go, -5);
		EXPECT_EQ(cl.clWaitForEvents(1, &done), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
		EXPECT(event_status(done) < 0);
		EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
		expect_no_sync("a");
		expect_count("kernel increment", 0);
		cl.clReleaseEvent(go);
		cl.clReleaseEvent(done);
		close_all(&r);
	}
}

TEST(kernel_fails, "When the kernel fails there is an END, and the event fails.")
{
	for (int i = 0; i < 4; i++) {
		struct run r = open_with(kinds_of_queue[i & 1]);
		cl_event done;

		stub_set(STUB_CALLBACK_COMPLETE, i & 2);
		stub_set(STUB_KERNEL_FAIL, -5);
		EXPECT_EQ(enqueue(r.queue, r.kernel, 0, NULL, &done), CL_SUCCESS);
		EXPECT_EQ(cl.clWaitForEvents(1, &done), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
		EXPECT(event_status(done) < 0);
		expect_count("sync START a", 1);
		expect_count("sync END a", 1);
		cl.clReleaseEvent(done);
		close_all(&r);
	}
}

TEST(interrupted, "EINTR and EAGAIN are tried again.")
{
	static const char *const edges[] = { "START", "END" };

	for (int i = 0; i < 4; i++) {
		struct run r = open_with(0);

		fake_dmabuf_fail(edges[i & 1], i & 2 ? EAGAIN : EINTR, 3);
		EXPECT_EQ(enqueue(r.queue, r.kernel, 0, NULL, NULL), CL_SUCCESS);
		EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
		expect_count("failed", 3);
		expect_bracket("a", "increment");
		close_all(&r);
	}
}

TEST(start_fails, "When START fails the kernel does not run, and the event fails.")
{
	struct run r = open_with(0);
	cl_event done;

	fake_dmabuf_fail("START", EIO, 1);
	EXPECT_EQ(enqueue(r.queue, r.kernel, 0, NULL, &done), CL_SUCCESS);
	EXPECT_EQ(cl.clWaitForEvents(1, &done), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
	EXPECT(event_status(done) < 0);
	expect_count("kernel increment", 0);
	expect_no_sync("a");
	cl.clReleaseEvent(done);
	close_all(&r);
}

TEST(end_fails, "When END fails the event fails.")
{
	struct run r = open_with(0);
	cl_event done;

	fake_dmabuf_fail("END", EIO, 1);
	EXPECT_EQ(enqueue(r.queue, r.kernel, 0, NULL, &done), CL_SUCCESS);
	EXPECT_EQ(cl.clWaitForEvents(1, &done), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
	EXPECT(event_status(done) < 0);
	expect_count("kernel increment end", 1);
	cl.clReleaseEvent(done);
	fake_dmabuf_reset(); /* the bracket that was left open was the test's doing */
	close_all(&r);
}

TEST(enqueue_fails, "When the driver refuses the kernel nothing stays begun, and the event is untouched.")
{
	for (int i = 0; i < 4; i++) {
		struct run r = open_with(kinds_of_queue[i & 1]);
		cl_event done = (cl_event)(uintptr_t)0x5a5a;

		stub_set(STUB_FAULT_DELAY, i & 2 ? 20 : 0); /* begun when it fails, or not yet */
		stub_fail("clEnqueueNDRangeKernel", 1, CL_OUT_OF_RESOURCES);
		EXPECT_EQ(enqueue(r.queue, r.kernel, 0, NULL, &done), CL_OUT_OF_RESOURCES);
		EXPECT(done == (cl_event)(uintptr_t)0x5a5a);
		EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
		expect_count("kernel increment", 0);
		close_all(&r);
		EXPECT_EQ(stub_trace_count("sync START a"), stub_trace_count("sync END a"));
	}
}

static void *complete_later(void *event)
{
	let_others_run();
	complete(*(cl_event *)event, CL_COMPLETE);
	return NULL;
}

TEST(finish_before_user_event, "clFinish waits for a user event that another thread completes.")
{
	for (int i = 0; i < 2; i++) {
		struct run r = open_with(kinds_of_queue[i]);
		cl_event go = user_event();
		pthread_t thread;

		EXPECT_EQ(enqueue(r.queue, r.kernel, 1, &go, NULL), CL_SUCCESS);
		pthread_create(&thread, NULL, complete_later, &go);
		EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
		expect_bracket("a", "increment");
		expect_order("completed by", "sync START");
		pthread_join(thread, NULL);
		cl.clReleaseEvent(go);
		close_all(&r);
	}
}

static void CL_CALLBACK complete_other(cl_event event, cl_int status, void *other)
{
	(void)event;
	(void)status;
	cl.clSetUserEventStatus(other, CL_COMPLETE);
}

TEST(completed_in_callback, "The user event may be completed by a callback of the driver's thread.")
{
	for (int i = 0; i < 2; i++) {
		struct run r = open_with(kinds_of_queue[i]);
		cl_event go = user_event(), marker;

		EXPECT_EQ(enqueue(r.queue, r.kernel, 1, &go, NULL), CL_SUCCESS);
		EXPECT_EQ(cl.clEnqueueMarkerWithWaitList(fix.queue, 0, NULL, &marker), CL_SUCCESS);
		EXPECT_EQ(cl.clSetEventCallback(marker, CL_COMPLETE, complete_other, go), CL_SUCCESS);
		EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
		expect_bracket("a", "increment");
		cl.clReleaseEvent(go);
		cl.clReleaseEvent(marker);
		close_all(&r);
	}
}

TEST(busy_buffer, "A buffer whose fences are not signalled delays no other.")
{
	struct run r = open_with(0);
	struct buffer b = buffer_open("b", NULL);
	cl_kernel second = kernel_increment(b.mem);

	fake_dmabuf_busy("a");
	EXPECT_EQ(enqueue(r.queue, r.kernel, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clFlush(r.queue), CL_SUCCESS);
	let_others_run();
	EXPECT_EQ(enqueue(fix.queue, second, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(fix.queue), CL_SUCCESS);
	expect_bracket("b", "increment");
	expect_no_sync("a");
	fake_dmabuf_busy(NULL);
	EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
	expect_count("sync START a", 1);
	expect_count("sync END a", 1);
	expect_count("kernel increment end", 2);
	cl.clReleaseKernel(second);
	buffer_close(&b);
	close_all(&r);
}

static bool has_end(void *arg)
{
	(void)arg;
	return stub_trace_count("sync END a") == 1;
}

TEST(queue_released, "A queue that is released before the kernel ran still ends what was begun.")
{
	struct run r = open_with(0);
	cl_event go = user_event();

	EXPECT_EQ(enqueue(r.queue, r.kernel, 1, &go, NULL), CL_SUCCESS);
	cl.clReleaseCommandQueue(r.queue);
	complete(go, CL_COMPLETE);
	EXPECT(settles(has_end, NULL));
	expect_bracket("a", "increment");
	cl.clReleaseEvent(go);
	r.queue = queue_create(0);
	close_all(&r);
}

static void expect_uint(cl_event event, cl_event_info name, cl_uint value)
{
	cl_uint got = 0;

	EXPECT_EQ(cl.clGetEventInfo(event, name, sizeof(got), &got, NULL), CL_SUCCESS);
	EXPECT_EQ(got, value);
}

static bool is_dead(void *event)
{
	return !stub_is_live(event, STUB_EVENT);
}

TEST(event_info, "The event is the kernel's: command type, queue, context, and one reference.")
{
	struct run r = open_with(0);
	cl_command_queue queue = NULL;
	cl_context context = NULL;
	cl_event done;

	EXPECT_EQ(enqueue(r.queue, r.kernel, 0, NULL, &done), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
	expect_uint(done, CL_EVENT_COMMAND_TYPE, CL_COMMAND_NDRANGE_KERNEL);
	EXPECT_EQ(cl.clGetEventInfo(done, CL_EVENT_COMMAND_QUEUE, sizeof(queue), &queue, NULL), CL_SUCCESS);
	EXPECT(queue == r.queue);
	EXPECT_EQ(cl.clGetEventInfo(done, CL_EVENT_CONTEXT, sizeof(context), &context, NULL), CL_SUCCESS);
	EXPECT(context == fix.context);
	EXPECT_EQ(cl.clRetainEvent(done), CL_SUCCESS);
	EXPECT_EQ(cl.clReleaseEvent(done), CL_SUCCESS);
	expect_uint(done, CL_EVENT_COMMAND_TYPE, CL_COMMAND_NDRANGE_KERNEL);
	EXPECT_EQ(cl.clReleaseEvent(done), CL_SUCCESS);
	EXPECT(settles(is_dead, done));
	close_all(&r);
}

static cl_ulong now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t); /* the stub's profiling clock */
	return (cl_ulong)t.tv_sec * 1000000000 + (cl_ulong)t.tv_nsec;
}

static bool has_profile(void *event)
{
	cl_ulong time;

	return !cl.clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof(time), &time, NULL);
}

TEST(profiling, "Profiling tells the kernel's own times, once the event is complete and not before.")
{
	struct run r = open_with(0);
	cl_event go = user_event(), done;
	cl_ulong time[4];

	fake_dmabuf_delay(40);
	EXPECT_EQ(enqueue(r.queue, r.kernel, 1, &go, &done), CL_SUCCESS);
	EXPECT_EQ(cl.clFlush(r.queue), CL_SUCCESS);
	EXPECT_EQ(cl.clGetEventProfilingInfo(done, CL_PROFILING_COMMAND_END, sizeof(time[0]), time, NULL),
		  CL_PROFILING_INFO_NOT_AVAILABLE);
	complete(go, CL_COMPLETE);
	EXPECT(settles(has_profile, done));
	expect_count("sync END a", 1);
	EXPECT_EQ(cl.clWaitForEvents(1, &done), CL_SUCCESS);
	for (cl_uint i = 0; i < 4; i++) {
		EXPECT_EQ(cl.clGetEventProfilingInfo(done, CL_PROFILING_COMMAND_QUEUED + i,
						     sizeof(time[i]), &time[i], NULL), CL_SUCCESS);
		EXPECT(time[i] && (!i || time[i] >= time[i - 1]));
	}
	EXPECT(now() - time[3] > 30000000); /* END came after it */
	cl.clReleaseEvent(go);
	cl.clReleaseEvent(done);
	close_all(&r);
}
