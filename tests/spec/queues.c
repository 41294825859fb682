/* SPDX-License-Identifier: Apache-2.0 */
#include "queues.h"

#include <time.h>

const char *const queue_names[QUEUE_KINDS] = {
	[QUEUE_FIRST] = "first queue",
	[QUEUE_SECOND] = "second queue",
	[QUEUE_OUT_OF_ORDER] = "queue out of order",
	[QUEUE_PROFILING] = "queue with profiling",
};

static const cl_command_queue_properties queue_properties[QUEUE_KINDS] = {
	[QUEUE_OUT_OF_ORDER] = CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE,
	[QUEUE_PROFILING] = CL_QUEUE_PROFILING_ENABLE,
};

static void queues_release(void *queue)
{
	clReleaseCommandQueue(queue);
}

cl_command_queue queues_create_on(cl_context context, cl_device_id device,
				  cl_command_queue_properties properties)
{
	cl_int error = 1;
	cl_command_queue queue = clCreateCommandQueue(context, device, properties, &error);

	EXPECT_EQ(error, CL_SUCCESS);
	spec_undo_later(queues_release, queue);
	return queue;
}

cl_command_queue queues_create(cl_context context, cl_command_queue_properties properties)
{
	return queues_create_on(context, spec.device, properties);
}

cl_command_queue queues_get(enum queue_kind kind)
{
	cl_command_queue_properties properties = queue_properties[kind];

	if (kind == QUEUE_FIRST)
		return spec.queue;
	if (properties & ~device_number(CL_DEVICE_QUEUE_PROPERTIES))
		return NULL;
	return queues_create(spec.context, properties);
}

static void queues_release_gate(void *gate)
{
	clReleaseEvent(gate);
}

/* A command that waits for ever would keep the release of its queue waiting. */
static void queues_end_gate(void *gate)
{
	cl_int status = CL_COMPLETE;

	clGetEventInfo(gate, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status, NULL);
	if (status > CL_COMPLETE)
		clSetUserEventStatus(gate, CL_COMPLETE);
}

cl_event queues_create_gate(void)
{
	cl_int error = 1;
	cl_event gate = clCreateUserEvent(spec.context, &error);

	EXPECT_EQ(error, CL_SUCCESS);
	spec_undo_later(queues_release_gate, gate);
	spec_undo_later(queues_end_gate, gate);
	return gate;
}

void queues_open_gate(cl_event gate)
{
	EXPECT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
}

void queues_rest(void)
{
	nanosleep(&(struct timespec){ 0, 1000 * 1000 }, NULL);
}
