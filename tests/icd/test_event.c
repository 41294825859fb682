/* SPDX-License-Identifier: Apache-2.0 */
/* The event of a command that is bracketed looks like the command's own. */
#include "access.h"

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

TEST(event_info, "The event is the kernel's: command type, queue, context, and one reference.")
{
	struct run r = run_open(0);
	cl_command_queue queue = NULL;
	cl_context context = NULL;
	cl_event done;

	EXPECT_EQ(enqueue(r.queue, r.kernel, 0, NULL, &done), CL_SUCCESS);
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
	EXPECT(settles(is_dead, done));
	run_close(&r);
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

	return !cl.clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof(time), &time,
					   NULL);
}

TEST(profiling,
     "Profiling tells the kernel's own times, once the event is complete and not before.")
{
	struct run r = run_open(0);
	cl_event go = user_event(), done;
	cl_ulong time[4];

	fake_dmabuf_delay(40);
	EXPECT_EQ(enqueue(r.queue, r.kernel, 1, &go, &done), CL_SUCCESS);
	EXPECT_EQ(cl.clFlush(r.queue), CL_SUCCESS);
	EXPECT_EQ(cl.clGetEventProfilingInfo(done, CL_PROFILING_COMMAND_END, sizeof(time[0]), time,
					     NULL),
		  CL_PROFILING_INFO_NOT_AVAILABLE);
	complete(go, CL_COMPLETE);
	EXPECT(settles(has_profile, done));
	expect_count("sync END a", 1);
	EXPECT_EQ(cl.clWaitForEvents(1, &done), CL_SUCCESS);
	for (cl_uint i = 0; i < 4; i++) {
		EXPECT_EQ(cl.clGetEventProfilingInfo(done, CL_PROFILING_COMMAND_QUEUED + i,
						     sizeof(time[i]), &time[i], NULL),
			  CL_SUCCESS);
		EXPECT(time[i] && (!i || time[i] >= time[i - 1]));
	}
	EXPECT(now() - time[3] > 30000000); /* END came after it */
	cl.clReleaseEvent(go);
	cl.clReleaseEvent(done);
	run_close(&r);
}
