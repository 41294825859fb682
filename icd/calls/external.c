/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clEnqueueAcquireExternalMemObjectsKHR and clEnqueueReleaseExternalMemObjectsKHR.
 *
 * Some programs call the two for imports, too.  The layer acquires imports for each command
 * (access/acquired.h), and a driver may refuse, or count, a second acquire.  So the driver gets the
 * other objects alone; without other objects the command does nothing.
 */
#include "icd/calls/external.h"

#include <stdlib.h>
#include <string.h>

#include "icd/access/queue_bracket.h"
#include "icd/calls/nothing.h"
#include "icd/layer.h"
#include "icd/objects/command_functions.h"
#include "icd/objects/memobj.h"

typedef cl_int(CL_API_CALL *external_fn)(cl_command_queue queue, cl_uint count, const cl_mem *mems,
					 cl_uint num_wait, const cl_event *wait, cl_event *event);

struct external {
	external_fn driver;
	cl_command_type type; /* of the command */
};

static bool external_has_import(const cl_mem *mems, cl_uint count)
{
	for (cl_uint i = 0; mems && memobj_live() && i < count; i++)
		if (memobj_is_import(mems[i]))
			return true;
	return false;
}

/* Objects of which one is an import. */
static cl_int external_enqueue_others(const struct external *e, cl_command_queue queue,
				      cl_uint count, const cl_mem *mems, cl_uint num_wait,
				      const cl_event *wait, cl_event *event)
{
	cl_mem *others = malloc(count * sizeof(*others));
	cl_uint left = 0;
	cl_int err;

	if (!others)
		return CL_OUT_OF_HOST_MEMORY;
	for (cl_uint i = 0; i < count; i++)
		if (!memobj_is_import(mems[i]))
			others[left++] = mems[i];
	err = left ? e->driver(queue, left, others, num_wait, wait, event)
		   : nothing_enqueue(e->type, queue, num_wait, wait, event);
	free(others);
	return err;
}

static cl_int external_enqueue(const struct external *e, cl_command_queue queue, cl_uint count,
			       const cl_mem *mems, cl_uint num_wait, const cl_event *wait,
			       cl_event *event)
{
	if (!e->driver)
		return CL_INVALID_COMMAND_QUEUE;
	queue_bracket_close(queue);
	if (external_has_import(mems, count))
		return external_enqueue_others(e, queue, count, mems, num_wait, wait, event);
	return e->driver(queue, count, mems, num_wait, wait, event);
}

static cl_int CL_API_CALL external_acquire(cl_command_queue queue, cl_uint count,
					   const cl_mem *mems, cl_uint num_wait,
					   const cl_event *wait, cl_event *event)
{
	const struct command_functions *functions;
	struct external e = { NULL, CL_COMMAND_ACQUIRE_EXTERNAL_MEM_OBJECTS_KHR };
	cl_int err = command_functions_of_queue(queue, &functions);

	if (err)
		return err;
	e.driver = (external_fn)functions->acquire_external;
	return external_enqueue(&e, queue, count, mems, num_wait, wait, event);
}

static cl_int CL_API_CALL external_release(cl_command_queue queue, cl_uint count,
					   const cl_mem *mems, cl_uint num_wait,
					   const cl_event *wait, cl_event *event)
{
	const struct command_functions *functions;
	struct external e = { NULL, CL_COMMAND_RELEASE_EXTERNAL_MEM_OBJECTS_KHR };
	cl_int err = command_functions_of_queue(queue, &functions);

	if (err)
		return err;
	e.driver = (external_fn)functions->release_external;
	return external_enqueue(&e, queue, count, mems, num_wait, wait, event);
}

void *external_function(const char *name)
{
	if (!next.clGetExtensionFunctionAddressForPlatform)
		return NULL;
	if (!strcmp(name, "clEnqueueAcquireExternalMemObjectsKHR"))
		return (void *)external_acquire;
	if (!strcmp(name, "clEnqueueReleaseExternalMemObjectsKHR"))
		return (void *)external_release;
	return NULL;
}
