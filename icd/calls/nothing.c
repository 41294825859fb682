/* SPDX-License-Identifier: Apache-2.0 */
/*
 * On an out-of-order queue a marker without a wait list waits for every command before, and another
 * command waits for none.  There the marker waits for an event that is complete.
 */
#include "icd/calls/nothing.h"

#include "icd/layer.h"
#include "icd/objects/proxy_event.h"

static bool nothing_is_in_order(cl_command_queue queue)
{
	cl_command_queue_properties properties = 0;

	next.clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES, sizeof(properties), &properties,
				   NULL);
	return !(properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
}

static cl_int nothing_create_complete(cl_command_queue queue, cl_event *complete)
{
	cl_context context;
	cl_int err = next.clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof(context), &context,
						NULL);

	if (err)
		return err;
	*complete = created_or_null(next.clCreateUserEvent(context, &err), &err);
	if (*complete)
		next.clSetUserEventStatus(*complete, CL_COMPLETE);
	return err;
}

static cl_int nothing_enqueue_marker(cl_command_queue queue, cl_uint num_wait, const cl_event *wait,
				     cl_event *event)
{
	cl_event complete;
	cl_int err;

	if (num_wait || wait || nothing_is_in_order(queue))
		return next.clEnqueueMarkerWithWaitList(queue, num_wait, wait, event);
	err = nothing_create_complete(queue, &complete);
	if (err)
		return err;
	err = next.clEnqueueMarkerWithWaitList(queue, 1, &complete, event);
	next.clReleaseEvent(complete);
	return err;
}

cl_int nothing_enqueue(cl_command_type type, cl_command_queue queue, cl_uint num_wait,
		       const cl_event *wait, cl_event *event)
{
	cl_event marker;
	cl_int err = nothing_enqueue_marker(queue, num_wait, wait, event ? &marker : NULL);

	if (!err && event)
		proxy_event_give_as(marker, type, event);
	return err;
}

cl_int nothing_enqueue_and_wait(cl_command_type type, cl_command_queue queue, cl_uint num_wait,
				const cl_event *wait, cl_event *event)
{
	cl_event marker;
	cl_int err = nothing_enqueue_marker(queue, num_wait, wait, &marker);

	if (err)
		return err;
	err = next.clWaitForEvents(1, &marker);
	if (!err && event)
		proxy_event_give_as(marker, type, event);
	else
		next.clReleaseEvent(marker);
	return err;
}
