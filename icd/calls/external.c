/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clEnqueueAcquireExternalMemObjectsKHR and clEnqueueReleaseExternalMemObjectsKHR.
 *
 * Some programs call the two for imports, too.  The layer acquires imports for each command
 * (access/acquired.h), and a driver may refuse, or count, a second acquire.  So the driver gets the
 * other objects alone; without other objects the command is a marker.
 *
 * On an out-of-order queue a marker without a wait list waits for every command before, and an acquire
 * waits for none.  There the marker waits for an event that is complete.
 */
#include <stdlib.h>

#include "icd/access/queue_bracket.h"
#include "icd/driver_info.h"
#include "icd/intercept.h"
#include "icd/objects/extensions.h"
#include "icd/objects/memobj.h"

static bool external_has_import(const cl_mem *mems, cl_uint count)
{
	for (cl_uint i = 0; mems && memobj_live() && i < count; i++)
		if (memobj_is_import(mems[i]))
			return true;
	return false;
}

static cl_int external_create_complete(cl_command_queue queue, cl_event *complete)
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

static cl_int external_mark(cl_command_queue queue, cl_uint num_wait, const cl_event *wait,
			    cl_event *event)
{
	cl_event complete;
	cl_int err;

	if (num_wait || wait || queue_is_in_order(queue))
		return next.clEnqueueMarkerWithWaitList(queue, num_wait, wait, event);
	err = external_create_complete(queue, &complete);
	if (err)
		return err;
	err = next.clEnqueueMarkerWithWaitList(queue, 1, &complete, event);
	next.clReleaseEvent(complete);
	return err;
}

static cl_int external_enqueue(layer_clEnqueueAcquireExternalMemObjectsKHR_fn driver,
			       cl_command_queue queue, cl_uint count, const cl_mem *mems,
			       cl_uint num_wait, const cl_event *wait, cl_event *event)
{
	cl_mem *others;
	cl_uint left = 0;
	cl_int err;

	if (!driver)
		return CL_INVALID_COMMAND_QUEUE;
	queue_bracket_close(queue);
	if (!external_has_import(mems, count))
		return driver(queue, count, mems, num_wait, wait, event);
	others = malloc(count * sizeof(*others));
	if (!others)
		return CL_OUT_OF_HOST_MEMORY;
	for (cl_uint i = 0; i < count; i++)
		if (!memobj_is_import(mems[i]))
			others[left++] = mems[i];
	err = left ? driver(queue, left, others, num_wait, wait, event)
		   : external_mark(queue, num_wait, wait, event);
	free(others);
	return err;
}

cl_int CL_API_CALL layer_clEnqueueAcquireExternalMemObjectsKHR(cl_command_queue queue,
							       cl_uint count, const cl_mem *mems,
							       cl_uint num_wait,
							       const cl_event *wait,
							       cl_event *event)
{
	const struct extensions *driver;
	cl_int err = extensions_of_queue(queue, &driver);

	return err ? err
		   : external_enqueue(driver->clEnqueueAcquireExternalMemObjectsKHR, queue, count,
				      mems, num_wait, wait, event);
}

cl_int CL_API_CALL layer_clEnqueueReleaseExternalMemObjectsKHR(cl_command_queue queue,
							       cl_uint count, const cl_mem *mems,
							       cl_uint num_wait,
							       const cl_event *wait,
							       cl_event *event)
{
	const struct extensions *driver;
	cl_int err = extensions_of_queue(queue, &driver);

	return err ? err
		   : external_enqueue(driver->clEnqueueReleaseExternalMemObjectsKHR, queue, count,
				      mems, num_wait, wait, event);
}
