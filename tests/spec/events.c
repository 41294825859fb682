/* SPDX-License-Identifier: Apache-2.0 */
/* The events of commands that use imports. */
#include "dma_buf.h"
#include "kernels.h"
#include "object.h"
#include "queues.h"

static const struct event_type {
	const char *name;
	enum memory_type type;
} event_types[] = {
	{ "host_memory", HOST_MEMORY },
	{ "a_dma_buf", DMA_BUF_MEMORY },
};

/* Enqueues a kernel that adds 10 to the object's bytes, on spec.queue. */
static cl_event events_of_kernel(const struct object *o, cl_event gate)
{
	cl_event done = NULL;

	object_fill(o, 1);
	kernels_add_after(o->mem, BYTES, 10, gate, &done);
	EXPECT(done != NULL);
	EXPECT_EQ(clFlush(spec.queue), CL_SUCCESS);
	return done;
}

static cl_int event_status(cl_event event)
{
	cl_int status = 1;

	EXPECT_EQ(clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status,
				 NULL),
		  CL_SUCCESS);
	return status;
}

TEST_EACH(event_queries_of, struct event_type, event_types, R6_55)
{
	struct object o;
	cl_event done;

	object_make(&o, BUFFER, row->type, CL_MEM_READ_WRITE);
	done = events_of_kernel(&o, NULL);
	QUERY(clGetEventInfo, done, CL_EVENT_COMMAND_TYPE, cl_command_type,
	      CL_COMMAND_NDRANGE_KERNEL);
	QUERY(clGetEventInfo, done, CL_EVENT_COMMAND_QUEUE, cl_command_queue, spec.queue);
	QUERY(clGetEventInfo, done, CL_EVENT_CONTEXT, cl_context, spec.context);
	EXPECT_EQ(clWaitForEvents(1, &done), CL_SUCCESS);
	EXPECT_EQ(event_status(done), CL_COMPLETE);
	EXPECT(object_is(&o, 11));
	EXPECT_EQ(clReleaseEvent(done), CL_SUCCESS);
}

/* The next kernel waits for the event of the first, which waits for the gate. */
TEST_EACH(event_as_a_wait_list_of, struct event_type, event_types, R6_55)
{
	cl_event gate, first, second = NULL;
	struct object o;

	object_make(&o, BUFFER, row->type, CL_MEM_READ_WRITE);
	gate = queues_create_gate();
	first = events_of_kernel(&o, gate);
	kernels_add_after(o.mem, BYTES, 20, first, &second);
	EXPECT_EQ(clFlush(spec.queue), CL_SUCCESS);
	EXPECT(event_status(first) > CL_COMPLETE);
	EXPECT(event_status(second) > CL_COMPLETE);
	EXPECT(object_is(&o, 1));
	queues_open_gate(gate);
	EXPECT_EQ(clWaitForEvents(1, &second), CL_SUCCESS);
	EXPECT_EQ(event_status(first), CL_COMPLETE);
	EXPECT(object_is(&o, 31));
	EXPECT_EQ(clReleaseEvent(first), CL_SUCCESS);
	EXPECT_EQ(clReleaseEvent(second), CL_SUCCESS);
}

/* A wait list that fails: the kernel does not run, and its event fails too. */
TEST_EACH(failed_wait_list_of, struct event_type, event_types, R6_55)
{
	cl_event gate, done;
	struct object o;

	object_make(&o, BUFFER, row->type, CL_MEM_READ_WRITE);
	gate = queues_create_gate();
	done = events_of_kernel(&o, gate);
	EXPECT_EQ(clSetUserEventStatus(gate, -1), CL_SUCCESS);
	EXPECT_EQ(clWaitForEvents(1, &done), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
	EXPECT(event_status(done) < 0);
	EXPECT(object_is(&o, 1));
	EXPECT_EQ(clReleaseEvent(done), CL_SUCCESS);
}

static void CL_CALLBACK events_note_complete(cl_event event, cl_int status, void *seen)
{
	(void)event;
	atomic_store((atomic_int *)seen, status == CL_COMPLETE ? 2 : 1);
}

/* The callback comes after the kernel, and sees the bytes of the kernel in the memory. */
TEST_EACH(event_callback_of, struct event_type, event_types, R6_55)
{
	static atomic_int seen;
	struct object o;
	cl_event gate, done;

	object_make(&o, BUFFER, row->type, CL_MEM_READ_WRITE);
	gate = queues_create_gate();
	done = events_of_kernel(&o, gate);
	atomic_store(&seen, 0);
	EXPECT_EQ(clSetEventCallback(done, CL_COMPLETE, events_note_complete, &seen), CL_SUCCESS);
	EXPECT_EQ(atomic_load(&seen), 0);
	queues_open_gate(gate);
	while (!atomic_load(&seen))
		queues_rest();
	EXPECT_EQ(atomic_load(&seen), 2);
	EXPECT(object_is(&o, 11));
	EXPECT_EQ(clReleaseEvent(done), CL_SUCCESS);
}

TEST_EACH(event_times_of, struct event_type, event_types, R6_55)
{
	cl_ulong queued = 0, submitted = 0, start = 0, end = 0;
	cl_command_queue own = spec.queue;
	struct object o;
	cl_event done;

	object_make(&o, BUFFER, row->type, CL_MEM_READ_WRITE);
	spec.queue = queues_create(spec.context, CL_QUEUE_PROFILING_ENABLE);
	done = events_of_kernel(&o, NULL);
	spec.queue = own;
	EXPECT_EQ(clWaitForEvents(1, &done), CL_SUCCESS);
	clGetEventProfilingInfo(done, CL_PROFILING_COMMAND_QUEUED, sizeof(queued), &queued, NULL);
	clGetEventProfilingInfo(done, CL_PROFILING_COMMAND_SUBMIT, sizeof(queued), &submitted,
				NULL);
	clGetEventProfilingInfo(done, CL_PROFILING_COMMAND_START, sizeof(queued), &start, NULL);
	EXPECT_EQ(clGetEventProfilingInfo(done, CL_PROFILING_COMMAND_END, sizeof(end), &end, NULL),
		  CL_SUCCESS);
	EXPECT_OF_DRIVER(queued && queued <= submitted && submitted <= start && start <= end);
	EXPECT_EQ(clReleaseEvent(done), CL_SUCCESS);
}
