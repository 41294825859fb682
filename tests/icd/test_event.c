/* SPDX-License-Identifier: Apache-2.0 */
/* The event of a bracketed command looks like the command's own event. */
#include "access.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

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

TEST(event_info, "The event has the kernel's command type, queue and context, and one reference.")
{
	struct run r = run_open(0);
	cl_command_queue queue = NULL;
	cl_context context = NULL;
	cl_event done;

	EXPECT_EQ(fixture_enqueue(r.queue, r.kernel, 0, NULL, &done), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
	expect_uint(done, CL_EVENT_COMMAND_TYPE, CL_COMMAND_NDRANGE_KERNEL);
	EXPECT_EQ(cl.clGetEventInfo(done, CL_EVENT_COMMAND_QUEUE, sizeof(queue), &queue, NULL),
		  CL_SUCCESS);
	EXPECT(queue == r.queue);
	EXPECT_EQ(cl.clGetEventInfo(done, CL_EVENT_CONTEXT, sizeof(context), &context, NULL),
		  CL_SUCCESS);
	EXPECT(context == fix.context);
	EXPECT_EQ(cl.clRetainEvent(done), CL_SUCCESS);
	EXPECT_EQ(cl.clReleaseEvent(done), CL_SUCCESS);
	expect_uint(done, CL_EVENT_COMMAND_TYPE, CL_COMMAND_NDRANGE_KERNEL);
	EXPECT_EQ(cl.clReleaseEvent(done), CL_SUCCESS);
	EXPECT(process_settles(is_dead, done));
	run_close(&r);
}

TEST_EACH(references, struct queue_kind, queue_kinds,
	  "The event's reference count is the application's own.")
{
	struct run r = run_open(row->properties);
	cl_event go = user_event_create(), done;

	EXPECT_EQ(fixture_enqueue(r.queue, r.kernel, 1, &go, &done), CL_SUCCESS);
	expect_uint(done, CL_EVENT_REFERENCE_COUNT, 1);
	EXPECT_EQ(cl.clRetainEvent(done), CL_SUCCESS);
	expect_uint(done, CL_EVENT_REFERENCE_COUNT, 2);
	EXPECT_EQ(cl.clReleaseEvent(done), CL_SUCCESS);
	fixture_complete_event(go, CL_COMPLETE);
	EXPECT_EQ(cl.clWaitForEvents(1, &done), CL_SUCCESS);
	expect_uint(done, CL_EVENT_REFERENCE_COUNT, 1);
	cl.clReleaseEvent(done);
	cl.clReleaseEvent(go);
	run_close(&r);
}

TEST(retain_refused, "A reference to an event that the driver refuses does not count.")
{
	struct run r = run_open(0);
	cl_event event;

	EXPECT_EQ(fixture_enqueue(r.queue, r.kernel, 0, NULL, &event), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
	stub_fail("clRetainEvent", 1, CL_OUT_OF_RESOURCES);
	EXPECT_EQ(cl.clRetainEvent(event), CL_OUT_OF_RESOURCES);
	expect_uint(event, CL_EVENT_REFERENCE_COUNT, 1);
	EXPECT_EQ(cl.clReleaseEvent(event), CL_SUCCESS);
	run_close(&r);
}

static atomic_int native_begun, native_may_end;

static void CL_CALLBACK event_run_native(void *args)
{
	const struct timespec tick = { 0, 100000 };

	(void)args;
	atomic_store(&native_begun, 1);
	while (!atomic_load(&native_may_end))
		nanosleep(&tick, NULL); /* time: between two looks at the flag */
	stub_trace("kernel native end");
}

static bool has_begun(void *unused)
{
	(void)unused;
	return atomic_load(&native_begun);
}

/* Enqueues a native kernel on the buffer; the kernel runs until native_may_end is set. */
static cl_event enqueue_native(struct run *r, cl_event go)
{
	void *args = NULL;
	const void *location = &args;
	cl_event done;

	atomic_store(&native_begun, 0);
	atomic_store(&native_may_end, 0);
	EXPECT_EQ(cl.clEnqueueNativeKernel(r->queue, event_run_native, &args, sizeof(args), 1,
					   &r->a.mem, &location, 1, &go, &done),
		  CL_SUCCESS);
	return done;
}

static struct {
	pthread_mutex_t lock;
	cl_event event[4]; /* by status */
	int calls[4];
	cl_int seen[4];		    /* the event's status in the callback */
	cl_command_type command[4]; /* the event's command type in the callback */
} told = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void CL_CALLBACK told_add(cl_event event, cl_int status, void *type)
{
	cl_int seen = fixture_event_status(event);
	cl_command_type command = 0;

	cl.clGetEventInfo(event, CL_EVENT_COMMAND_TYPE, sizeof(command), &command, NULL);
	pthread_mutex_lock(&told.lock);
	told.event[(intptr_t)type] = event;
	told.calls[(intptr_t)type] += status == (intptr_t)type || status < 0;
	told.seen[(intptr_t)type] = seen;
	told.command[(intptr_t)type] = command;
	pthread_mutex_unlock(&told.lock);
}

static int told_count_calls(cl_int type)
{
	int calls;

	pthread_mutex_lock(&told.lock);
	calls = told.calls[type];
	pthread_mutex_unlock(&told.lock);
	return calls;
}

static void register_all(cl_event event)
{
	memset(told.calls, 0, sizeof(told.calls));
	for (intptr_t type = CL_COMPLETE; type <= CL_SUBMITTED; type++)
		EXPECT_EQ(cl.clSetEventCallback(event, (cl_int)type, told_add, (void *)type),
			  CL_SUCCESS);
}

static bool is_told(void *type)
{
	return told_count_calls((cl_int)(intptr_t)type);
}

static bool is_complete(void *event)
{
	return fixture_event_status(event) == CL_COMPLETE;
}

TEST_EACH(status, struct queue_kind, queue_kinds,
	  "The event's status is the command's, stays CL_RUNNING until END, and is CL_COMPLETE "
	  "only after END.")
{
	struct run r = run_open(row->properties);
	cl_event go = user_event_create(), done = enqueue_native(&r, go);

	EXPECT_EQ(fixture_event_status(done), CL_QUEUED);
	fixture_complete_event(go, CL_COMPLETE);
	EXPECT_EQ(cl.clFlush(r.queue), CL_SUCCESS);
	EXPECT(process_settles(has_begun, NULL));
	EXPECT_EQ(fixture_event_status(done), CL_RUNNING);
	fake_dmabuf_delay(30);
	atomic_store(&native_may_end, 1);
	while (!stub_trace_count("sync END a"))
		EXPECT(fixture_event_status(done) == CL_RUNNING || stub_trace_count("sync END a"));
	EXPECT(process_settles(is_complete, done));
	cl.clReleaseEvent(done);
	cl.clReleaseEvent(go);
	run_close(&r);
}

TEST_EACH(callbacks, struct queue_kind, queue_kinds,
	  "Each callback on the event is called once, with the application's event, when its "
	  "status is reached.")
{
	struct run r = run_open(row->properties);
	cl_event go = user_event_create(), done = enqueue_native(&r, go);

	register_all(done);
	fixture_complete_event(go, CL_COMPLETE);
	EXPECT_EQ(cl.clFlush(r.queue), CL_SUCCESS);
	EXPECT(process_settles(is_told, (void *)CL_SUBMITTED));
	EXPECT(process_settles(is_told, (void *)CL_RUNNING));
	EXPECT_EQ(told_count_calls(CL_COMPLETE), 0);
	atomic_store(&native_may_end, 1);
	EXPECT(process_settles(is_told, (void *)CL_COMPLETE));
	EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
	for (int type = CL_COMPLETE; type <= CL_SUBMITTED; type++) {
		EXPECT(told.event[type] == done);
		EXPECT_EQ(told_count_calls(type), 1);
	}
	EXPECT_EQ(told.seen[CL_COMPLETE], CL_COMPLETE);
	EXPECT(told.seen[CL_RUNNING] >= CL_RUNNING);
	cl.clReleaseEvent(done);
	cl.clReleaseEvent(go);
	run_close(&r);
}

TEST(callback_of_released,
     "If the application has released the event, a callback can still query the event's type.")
{
	struct run r = run_open(0);
	cl_event go = user_event_create(), done = enqueue_native(&r, go);

	register_all(done);
	cl.clReleaseEvent(done);
	atomic_store(&native_may_end, 1);
	fixture_complete_event(go, CL_COMPLETE);
	EXPECT(process_settles(is_told, (void *)CL_COMPLETE));
	EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
	EXPECT_EQ(told.seen[CL_COMPLETE], CL_COMPLETE);
	EXPECT_EQ(told.command[CL_COMPLETE], CL_COMMAND_NATIVE_KERNEL);
	cl.clReleaseEvent(go);
	run_close(&r);
}

TEST_EACH(callbacks_of_failure, struct queue_kind, queue_kinds,
	  "The callbacks of a failed kernel come after the kernel's event has failed.")
{
	struct run r = run_open(row->properties);
	cl_event go = user_event_create(), done;

	fake_dmabuf_delay(20);
	stub_set(STUB_KERNEL_FAIL, -5);
	EXPECT_EQ(fixture_enqueue(r.queue, r.kernel, 1, &go, &done), CL_SUCCESS);
	memset(told.calls, 0, sizeof(told.calls));
	EXPECT_EQ(cl.clSetEventCallback(done, CL_COMPLETE, told_add, (void *)CL_COMPLETE),
		  CL_SUCCESS);
	fixture_complete_event(go, CL_COMPLETE);
	EXPECT(process_settles(is_told, (void *)CL_COMPLETE));
	EXPECT(told.seen[CL_COMPLETE] < 0);
	EXPECT_EQ(told_count_calls(CL_COMPLETE), 1);
	cl.clReleaseEvent(go);
	cl.clReleaseEvent(done);
	run_close(&r);
}

TEST_EACH(callbacks_late, struct queue_kind, queue_kinds,
	  "If the driver calls back late for a command that fails, each callback on the event is "
	  "called once, with a failure, and nothing of the event is left.")
{
	struct run r = run_open(row->properties);
	cl_event go = user_event_create(), done;

	stub_set(STUB_CALLBACK_DELAY, 400);
	EXPECT_EQ(fixture_enqueue(r.queue, r.kernel, 1, &go, &done), CL_SUCCESS);
	register_all(done);
	EXPECT_EQ(cl.clSetUserEventStatus(go, -9999), CL_SUCCESS);
	EXPECT_EQ(cl.clReleaseEvent(done), CL_SUCCESS);
	cl.clFinish(r.queue);
	EXPECT(process_settles(is_dead, done));
	cl.clReleaseEvent(go);
	run_close(&r); /* nothing is left that could call once more */
	for (int type = CL_COMPLETE; type <= CL_SUBMITTED; type++) {
		EXPECT_EQ(told_count_calls(type), 1);
		EXPECT(told.seen[type] < 0);
		EXPECT_EQ(told.command[type], CL_COMMAND_NDRANGE_KERNEL);
	}
}

TEST(wrong_callback, "A NULL callback, or a callback for an unknown status, is the driver's error.")
{
	struct run r = run_open(0);
	cl_event done;

	EXPECT_EQ(fixture_enqueue(r.queue, r.kernel, 0, NULL, &done), CL_SUCCESS);
	EXPECT_EQ(cl.clSetEventCallback(done, CL_COMPLETE, NULL, NULL), CL_INVALID_VALUE);
	EXPECT_EQ(cl.clSetEventCallback(done, 17, told_add, NULL), CL_INVALID_VALUE);
	EXPECT_EQ(cl.clWaitForEvents(1, &done), CL_SUCCESS);
	cl.clReleaseEvent(done);
	run_close(&r);
}

static cl_ulong event_clock(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t); /* time: the stub's profiling clock, for an order */
	return (cl_ulong)t.tv_sec * 1000000000 + (cl_ulong)t.tv_nsec;
}

static bool has_profile(void *event)
{
	cl_ulong time;

	return !cl.clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof(time), &time,
					   NULL);
}

static _Atomic cl_ulong event_ended; /* when the last END ended, by event_clock() */

static void event_note_end(const char *edge, const char *name)
{
	(void)name;
	if (!strcmp(edge, "END"))
		atomic_store(&event_ended, event_clock());
}

TEST(profiling,
     "Profiling gives the kernel's own times after the event is complete, and no times before.")
{
	struct run r = run_open(0);
	cl_event go = user_event_create(), done;
	cl_ulong time[4];

	fake_dmabuf_observe(event_note_end);
	EXPECT_EQ(fixture_enqueue(r.queue, r.kernel, 1, &go, &done), CL_SUCCESS);
	EXPECT_EQ(cl.clFlush(r.queue), CL_SUCCESS);
	EXPECT_EQ(cl.clGetEventProfilingInfo(done, CL_PROFILING_COMMAND_END, sizeof(time[0]), time,
					     NULL),
		  CL_PROFILING_INFO_NOT_AVAILABLE);
	fixture_complete_event(go, CL_COMPLETE);
	EXPECT(process_settles(has_profile, done));
	expect_count("sync END a", 1);
	EXPECT_EQ(cl.clWaitForEvents(1, &done), CL_SUCCESS);
	for (cl_uint i = 0; i < 4; i++) {
		EXPECT_EQ(cl.clGetEventProfilingInfo(done, CL_PROFILING_COMMAND_QUEUED + i,
						     sizeof(time[i]), &time[i], NULL),
			  CL_SUCCESS);
		EXPECT(time[i] && (!i || time[i] >= time[i - 1]));
	}
	EXPECT(time[3] < atomic_load(&event_ended)); /* END came after the kernel's end */
	cl.clReleaseEvent(go);
	cl.clReleaseEvent(done);
	run_close(&r);
}
