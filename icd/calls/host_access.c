/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/calls/host_access.h"

#include "icd/config.h"
#include "icd/layer.h"
#include "icd/objects/context.h"
#include "util/log.h"

static cl_int host_access_refuse(const struct memobj *obj, const char *function)
{
	struct context *context = context_get(obj->context);

	context_notify(context, function, CL_INVALID_OPERATION);
	context_put(context);
	return CL_INVALID_OPERATION;
}

static cl_int host_access_refuse_version(const struct memobj *obj, const char *function)
{
	log_error("imported memory cannot be passed to %s before version 1.1.0 of "
		  "cl_arm_import_memory "
		  "(CLIMPORT_VERSION=1.1.0)",
		  function);
	return host_access_refuse(obj, function);
}

static cl_int host_access_refuse_write(const struct memobj *obj, const char *function)
{
	log_error("%s would write to memory that is mapped read-only", function);
	return host_access_refuse(obj, function);
}

bool host_access_refuses(const char *function, cl_mem first, cl_mem second)
{
	struct memobj *obj;

	if (!memobj_live() || config_host_access())
		return false;
	obj = memobj_get(first);
	if (!obj)
		obj = memobj_get(second);
	if (!obj)
		return false;
	host_access_refuse_version(obj, function);
	memobj_put(obj);
	return true;
}

static bool host_access_event_failed(cl_event event)
{
	cl_int status;

	return event &&
	       !next.clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status),
				    &status, NULL) &&
	       status < 0;
}

/*
 * In some drivers (PoCL 3.1) a command behind an event that has failed already never runs and
 * never fails.  So the layer refuses a command that blocks behind such an event.  The layer does
 * not wait for the list, because the driver has not looked at the command's arguments yet, and
 * leaves other errors to the driver.
 */
static bool host_access_list_failed(const struct access *a)
{
	for (cl_uint i = 0; a->wait && i < a->num_wait; i++)
		if (host_access_event_failed(a->wait[i]))
			return true;
	return false;
}

/* The driver has the error for an unknown queue, and is asked first. */
static cl_int host_access_check(struct access *a, const char *function, cl_command_queue queue,
				struct memobj *const *objs, unsigned int edges)
{
	struct memobj *written = objs[1];
	cl_context context;
	cl_int err;

	if (!objs[0] && !written)
		return CL_SUCCESS;
	err = next.clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof(context), &context, NULL);
	if (err)
		return err;
	if (!config_host_access())
		return host_access_refuse_version(written ? written : objs[0], function);
	if (written && !(written->region->access & IMPORT_WRITE))
		return host_access_refuse_write(written, function);
	return access_begin(a, queue, objs, 2, edges | ACCESS_BY_HOST);
}

cl_int host_access_begin_import(struct access *a, const char *function, cl_command_queue queue,
				cl_mem read, cl_mem written, unsigned int edges, cl_bool blocking)
{
	struct memobj *objs[2];
	cl_int err;

	if (blocking && config_host_access() && host_access_list_failed(a))
		return CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
	objs[0] = memobj_get(read);
	objs[1] = memobj_get(written);
	err = host_access_check(a, function, queue, objs, edges);
	memobj_put(objs[0]);
	memobj_put(objs[1]);
	return err;
}
