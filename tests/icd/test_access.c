/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DMA_BUF_IOCTL_SYNC around kernels: the order of START, kernel, END and the application's events.
 */
#include "access.h"

#include <pthread.h>

TEST_EACH(finish, struct queue_kind, queue_kinds,
	  "START comes before the kernel, END after the kernel, and clFinish returns after END.")
{
	struct run r = run_open(row->properties);

	fake_dmabuf_delay(10);
	r.a.seen[0] = 41;
	EXPECT_EQ(fixture_enqueue(r.queue, r.kernel, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
	expect_bracket("a", "increment");
	expect_count("sync START a rw", 1);
	expect_count("sync END a rw", 1);
	EXPECT_EQ(r.a.seen[0], 42);
	run_close(&r);
}

TEST_EACH(finish_late_callbacks, struct queue_kind, queue_kinds,
	  "If the driver's event callbacks come late, clFinish still waits for END.")
{
	struct run r = run_open(row->properties);

	stub_set(STUB_CALLBACK_DELAY, 20);
	EXPECT_EQ(fixture_enqueue(r.queue, r.kernel, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
	expect_bracket("a", "increment");
	run_close(&r);
}

TEST_EACH(wait_for_event, struct queue_kind, queue_kinds,
	  "When the kernel's event is complete, END has been done.")
{
	struct run r = run_open(row->properties);
	cl_event done;

	stub_set(STUB_CALLBACK_DELAY, 10);
	fake_dmabuf_delay(10);
	EXPECT_EQ(fixture_enqueue(r.queue, r.kernel, 0, NULL, &done), CL_SUCCESS);
	EXPECT_EQ(cl.clWaitForEvents(1, &done), CL_SUCCESS);
	expect_bracket("a", "increment");
	EXPECT_EQ(fixture_event_status(done), CL_COMPLETE);
	cl.clReleaseEvent(done);
	run_close(&r);
}

static bool is_over(void *event)
{
	return fixture_event_status(*(cl_event *)event) <= CL_COMPLETE;
}

TEST_EACH(poll_event, struct queue_kind, queue_kinds,
	  "A program that polls the event's status sees COMPLETE only after END.")
{
	struct run r = run_open(row->properties);
	cl_event done;

	fake_dmabuf_delay(10);
	EXPECT_EQ(fixture_enqueue(r.queue, r.kernel, 0, NULL, &done), CL_SUCCESS);
	EXPECT_EQ(cl.clFlush(r.queue), CL_SUCCESS);
	EXPECT(process_settles(is_over, &done));
	expect_bracket("a", "increment");
	cl.clReleaseEvent(done);
	run_close(&r);
}

TEST_EACH(lazy_driver, struct queue_kind, queue_kinds,
	  "If the driver starts nothing before a flush, clFlush by the application is enough.")
{
	struct run r = run_open(row->properties);
	cl_event done;

	stub_set(STUB_LAZY, 1);
	EXPECT_EQ(fixture_enqueue(r.queue, r.kernel, 0, NULL, &done), CL_SUCCESS);
	EXPECT_EQ(cl.clFlush(r.queue), CL_SUCCESS);
	EXPECT(process_settles(is_over, &done));
	expect_bracket("a", "increment");
	EXPECT_EQ(fixture_enqueue(r.queue, r.kernel, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
	expect_count("sync END a", 2);
	cl.clReleaseEvent(done);
	run_close(&r);
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

TEST_EACH(event_callback, struct queue_kind, queue_kinds,
	  "The application's callback on the kernel's event is called after END.")
{
	struct run r = run_open(row->properties);
	cl_event go = user_event_create(), done;

	EXPECT_EQ(fixture_enqueue(r.queue, r.kernel, 1, &go, &done), CL_SUCCESS);
	EXPECT_EQ(cl.clSetEventCallback(done, CL_COMPLETE, trace_event, NULL), CL_SUCCESS);
	fixture_complete_event(go, CL_COMPLETE);
	EXPECT(process_settles(has_callback, NULL));
	expect_order("sync END a", "callback 0");
	cl.clReleaseEvent(done);
	cl.clReleaseEvent(go);
	run_close(&r);
}

TEST_EACH(wait_list, struct queue_kind, queue_kinds,
	  "START waits for the kernel's wait list, also for a user event that is completed later.")
{
	struct run r = run_open(row->properties);
	cl_event go = user_event_create(), done;

	EXPECT_EQ(fixture_enqueue(r.queue, r.kernel, 1, &go, &done), CL_SUCCESS);
	EXPECT_EQ(cl.clFlush(r.queue), CL_SUCCESS);
	let_others_run();
	expect_no_sync("a");
	EXPECT(fixture_event_status(done) > CL_COMPLETE);
	r.a.seen[0] = 7;
	fixture_complete_event(go, CL_COMPLETE);
	EXPECT_EQ(cl.clWaitForEvents(1, &done), CL_SUCCESS);
	expect_order("completed by the application", "sync START a");
	expect_bracket("a", "increment");
	EXPECT_EQ(r.a.seen[0], 8);
	cl.clReleaseEvent(go);
	cl.clReleaseEvent(done);
	run_close(&r);
}

TEST(behind_others, "In an in-order queue START waits for the commands before the kernel.")
{
	struct run r = run_open(0);
	cl_event go = user_event_create();

	EXPECT_EQ(cl.clEnqueueMarkerWithWaitList(r.queue, 1, &go, NULL), CL_SUCCESS);
	EXPECT_EQ(fixture_enqueue(r.queue, r.kernel, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clFlush(r.queue), CL_SUCCESS);
	let_others_run();
	expect_no_sync("a");
	fixture_complete_event(go, CL_COMPLETE);
	EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
	expect_order("completed by the application", "sync START a");
	expect_bracket("a", "increment");
	cl.clReleaseEvent(go);
	run_close(&r);
}

TEST(behind_barrier, "In an out-of-order queue START waits for a barrier before the kernel.")
{
	struct run r = run_open(OUT_OF_ORDER);
	cl_event go = user_event_create();

	EXPECT_EQ(cl.clEnqueueBarrierWithWaitList(r.queue, 1, &go, NULL), CL_SUCCESS);
	EXPECT_EQ(fixture_enqueue(r.queue, r.kernel, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clFlush(r.queue), CL_SUCCESS);
	let_others_run();
	expect_no_sync("a");
	fixture_complete_event(go, CL_COMPLETE);
	EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
	expect_order("completed by the application", "sync START a");
	cl.clReleaseEvent(go);
	run_close(&r);
}

TEST(overtakes, "In an out-of-order queue a waiting kernel does not hold back a later kernel.")
{
	struct run r = run_open(OUT_OF_ORDER);
	cl_event go = user_event_create(), done;
	cl_mem plain = cl.clCreateBuffer(fix.context, 0, SIZE, NULL, NULL);
	cl_kernel other = fixture_create_increment(plain);

	EXPECT_EQ(fixture_enqueue(r.queue, other, 1, &go, NULL), CL_SUCCESS);
	EXPECT_EQ(fixture_enqueue(r.queue, r.kernel, 0, NULL, &done), CL_SUCCESS);
	EXPECT_EQ(cl.clFlush(r.queue), CL_SUCCESS);
	EXPECT(process_settles(is_over, &done));
	expect_bracket("a", "increment");
	fixture_complete_event(go, CL_COMPLETE);
	EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
	cl.clReleaseKernel(other);
	cl.clReleaseMemObject(plain);
	cl.clReleaseEvent(go);
	cl.clReleaseEvent(done);
	run_close(&r);
}

TEST_EACH(barrier_after, struct queue_kind, queue_kinds,
	  "Commands after a later barrier or marker run after END.")
{
	struct run r = run_open(row->properties);
	cl_event done[2];

	fake_dmabuf_delay(10);
	EXPECT_EQ(fixture_enqueue(r.queue, r.kernel, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clEnqueueMarkerWithWaitList(r.queue, 0, NULL, &done[0]), CL_SUCCESS);
	EXPECT_EQ(cl.clWaitForEvents(1, &done[0]), CL_SUCCESS);
	expect_count("sync END a", 1);
	EXPECT_EQ(fixture_enqueue(r.queue, r.kernel, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clEnqueueBarrierWithWaitList(r.queue, 0, NULL, &done[1]), CL_SUCCESS);
	EXPECT_EQ(cl.clWaitForEvents(1, &done[1]), CL_SUCCESS);
	expect_count("sync END a", 2);
	cl.clReleaseEvent(done[0]);
	cl.clReleaseEvent(done[1]);
	run_close(&r);
}

TEST(event_in_wait_list,
     "A command that waits for the event of a kernel starts after the kernel's END.")
{
	struct run r = run_open(OUT_OF_ORDER);
	struct buffer b = buffer_open("b", NULL);
	cl_kernel second = fixture_create_increment(b.mem);
	cl_command_queue other = fixture_create_queue(0);
	cl_event first;

	fake_dmabuf_delay(10);
	EXPECT_EQ(fixture_enqueue(r.queue, r.kernel, 0, NULL, &first), CL_SUCCESS);
	EXPECT_EQ(fixture_enqueue(other, second, 1, &first, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clFlush(r.queue), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(other), CL_SUCCESS);
	expect_order("sync END a", "sync START b");
	cl.clReleaseEvent(first);
	cl.clReleaseCommandQueue(other);
	cl.clReleaseKernel(second);
	buffer_close(&b);
	run_close(&r);
}

static void *complete_later(void *event)
{
	let_others_run();
	fixture_complete_event(*(cl_event *)event, CL_COMPLETE);
	return NULL;
}

TEST_EACH(finish_before_user_event, struct queue_kind, queue_kinds,
	  "clFinish waits for a user event that another thread completes.")
{
	struct run r = run_open(row->properties);
	cl_event go = user_event_create();
	pthread_t thread;

	EXPECT_EQ(fixture_enqueue(r.queue, r.kernel, 1, &go, NULL), CL_SUCCESS);
	pthread_create(&thread, NULL, complete_later, &go);
	EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
	expect_bracket("a", "increment");
	expect_order("completed by", "sync START");
	pthread_join(thread, NULL);
	cl.clReleaseEvent(go);
	run_close(&r);
}

static void CL_CALLBACK complete_other(cl_event event, cl_int status, void *other)
{
	(void)event;
	(void)status;
	cl.clSetUserEventStatus(other, CL_COMPLETE);
}

TEST_EACH(completed_in_callback, struct queue_kind, queue_kinds,
	  "The application may complete the kernel's user event in a callback on the driver's "
	  "thread.")
{
	struct run r = run_open(row->properties);
	cl_event go = user_event_create(), marker;

	EXPECT_EQ(fixture_enqueue(r.queue, r.kernel, 1, &go, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clEnqueueMarkerWithWaitList(fix.queue, 0, NULL, &marker), CL_SUCCESS);
	EXPECT_EQ(cl.clSetEventCallback(marker, CL_COMPLETE, complete_other, go), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
	expect_bracket("a", "increment");
	cl.clReleaseEvent(go);
	cl.clReleaseEvent(marker);
	run_close(&r);
}

TEST(busy_buffer, "A buffer with unsignalled fences does not delay commands on other buffers.")
{
	struct run r = run_open(0);
	struct buffer b = buffer_open("b", NULL);
	cl_kernel second = fixture_create_increment(b.mem);

	fake_dmabuf_busy("a");
	EXPECT_EQ(fixture_enqueue(r.queue, r.kernel, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clFlush(r.queue), CL_SUCCESS);
	let_others_run();
	EXPECT_EQ(fixture_enqueue(fix.queue, second, 0, NULL, NULL), CL_SUCCESS);
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
	run_close(&r);
}

static bool has_end(void *arg)
{
	(void)arg;
	return stub_trace_count("sync END a") == 1;
}

TEST(queue_released,
     "If a queue is released before its kernel runs, the kernel's access is still ended.")
{
	struct run r = run_open(0);
	cl_event go = user_event_create();

	EXPECT_EQ(fixture_enqueue(r.queue, r.kernel, 1, &go, NULL), CL_SUCCESS);
	cl.clReleaseCommandQueue(r.queue);
	fixture_complete_event(go, CL_COMPLETE);
	EXPECT(process_settles(has_end, NULL));
	expect_bracket("a", "increment");
	cl.clReleaseEvent(go);
	r.queue = fixture_create_queue(0);
	run_close(&r);
}
