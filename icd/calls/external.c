/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clEnqueueAcquireExternalMemObjectsKHR and clEnqueueReleaseExternalMemObjectsKHR.
 *
 * Some programs call the two for imports, too.  The layer acquires imports for each command
 * (access/access.h), and a driver may refuse, or count, a second acquire.  So the driver gets the
 * other objects alone.  Without other objects the command is a migration to the device where the
 * memory is, which moves nothing and waits for its wait list alone.
 */
#include <stdlib.h>

#include "icd/access/queue_bracket.h"
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

static cl_int external_enqueue(bool is_acquire, cl_command_queue queue, cl_uint count,
			       const cl_mem *mems, cl_uint num_wait, const cl_event *wait,
			       cl_event *event)
{
	layer_clEnqueueAcquireExternalMemObjectsKHR_fn call;
	const struct extensions *driver;
	cl_int err = extensions_of_queue(queue, &driver);
	cl_uint left = 0;
	cl_mem *others;

	if (err)
		return err;
	call = is_acquire ? driver->clEnqueueAcquireExternalMemObjectsKHR
			  : driver->clEnqueueReleaseExternalMemObjectsKHR;
	if (!call)
		return CL_INVALID_COMMAND_QUEUE;
	queue_bracket_close(queue);
	if (!external_has_import(mems, count))
		return call(queue, count, mems, num_wait, wait, event);
	others = malloc(count * sizeof(*others));
	if (!others)
		return CL_OUT_OF_HOST_MEMORY;
	for (cl_uint i = 0; i < count; i++)
		if (!memobj_is_import(mems[i]))
			others[left++] = mems[i];
	err = left ? call(queue, left, others, num_wait, wait, event)
		   : next.clEnqueueMigrateMemObjects(queue, 1, mems, 0, num_wait, wait, event);
	free(others);
	return err;
}

cl_int CL_API_CALL layer_clEnqueueAcquireExternalMemObjectsKHR(cl_command_queue queue,
							       cl_uint count, const cl_mem *mems,
							       cl_uint num_wait,
							       const cl_event *wait,
							       cl_event *event)
{
	return external_enqueue(true, queue, count, mems, num_wait, wait, event);
}

cl_int CL_API_CALL layer_clEnqueueReleaseExternalMemObjectsKHR(cl_command_queue queue,
							       cl_uint count, const cl_mem *mems,
							       cl_uint num_wait,
							       const cl_event *wait,
							       cl_event *event)
{
	return external_enqueue(false, queue, count, mems, num_wait, wait, event);
}
