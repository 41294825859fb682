/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clEnqueueAcquireExternalMemObjectsKHR and clEnqueueReleaseExternalMemObjectsKHR.
 *
 * "Once a memory object created from a dma_buf has been acquired ..., all access, including host access should be done
 * through OpenCL": so DMA_BUF_IOCTL_SYNC START belongs to the acquire and END to the release.  The command between is a
 * command that only waits, or the driver's own for its objects.  In order, without lists and events, kernels take the
 * place of both commands (access/queue_bracket.h).
 *
 * Some programs call the two for imports of clImportMemoryARM, too, whose commands have a bracket each: nothing is to be
 * done for those, and a driver may refuse, or count, a second acquire (access/access.h).
 */
#include <stdint.h>
#include <stdlib.h>

#include "icd/calls/command.h"
#include "icd/calls/external_memory.h"
#include "icd/driver_info.h"
#include "icd/intercept.h"
#include "icd/objects/context.h"
#include "icd/objects/extensions.h"
#include "icd/objects/memobj.h"
#include "icd/objects/proxy_event.h"
#include "util/log.h"

struct external_command {
	layer_clEnqueueAcquireExternalMemObjectsKHR_fn
		driver; /* NULL: it has none, or is not needed */
	cl_command_queue queue;
	cl_context context; /* the queue's, as @in_order */
	bool in_order;
	cl_uint count;
	const cl_mem *mems;

	cl_mem *others; /* of these the driver's: @theirs */
	cl_uint theirs;
};

static cl_uint external_count_imports(const cl_mem *mems, cl_uint count)
{
	cl_uint imports = 0;

	for (cl_uint i = 0; mems && memobj_live() && i < count; i++)
		imports += memobj_is_known(mems[i]);
	return imports;
}

/* A marker without a list waits for every command before it on an out-of-order queue, so it gets an event that is complete. */
static cl_int external_mark_nothing(const struct external_command *c, cl_event *event)
{
	cl_int err = CL_SUCCESS;
	cl_event complete = created_or_null(next.clCreateUserEvent(c->context, &err), &err);

	if (!complete)
		return err;
	next.clSetUserEventStatus(complete, CL_COMPLETE);
	err = next.clEnqueueMarkerWithWaitList(c->queue, 1, &complete, event);
	next.clReleaseEvent(complete);
	return err;
}

/*
 * A command that only waits: a marker, or on an out-of-order queue a migration to the device where the memory is, which
 * moves nothing and waits for its list alone (bracket_enqueue_wait()).
 */
static cl_int external_mark(const struct external_command *c, cl_uint num_wait,
			    const cl_event *wait, cl_event *event)
{
	if (c->count && !c->in_order)
		return next.clEnqueueMigrateMemObjects(c->queue, 1, c->mems, 0, num_wait, wait,
						       event);
	return num_wait || c->in_order
		       ? next.clEnqueueMarkerWithWaitList(c->queue, num_wait, wait, event)
		       : external_mark_nothing(c, event);
}

/* "if event objects in event_wait_list are not valid events" is the driver's to say. */
static cl_int external_check_wait(cl_uint num_wait, const cl_event *wait)
{
	if (!num_wait != !wait)
		return CL_INVALID_EVENT_WAIT_LIST;
	return command_list_failed(num_wait, wait) ? CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST
						   : CL_SUCCESS;
}

/* Whether the queue's device may have the object: of the same context, and in the list of devices. */
static cl_int external_check_queue(const struct external_command *c, const struct memobj *obj)
{
	const cl_mem_properties *listed;
	cl_device_id device;
	cl_int err;

	if (c->context != obj->context) {
		log_error("the memory object belongs to another context than the queue");
		return CL_INVALID_COMMAND_QUEUE;
	}
	while (!obj->properties && obj->parent)
		obj = obj->parent;
	listed = external_devices(obj->properties);
	if (!listed)
		return CL_SUCCESS;
	err = next.clGetCommandQueueInfo(c->queue, CL_QUEUE_DEVICE, sizeof(device), &device, NULL);
	if (err)
		return err;
	if (context_lists(listed, device))
		return CL_SUCCESS;
	log_error("the queue's device is not in the memory object's CL_MEM_DEVICE_HANDLE_LIST_KHR");
	return CL_INVALID_COMMAND_QUEUE;
}

/* The layer's objects whose memory needs a SYNC go to @imports, the driver's to c->others. */
static cl_int external_add(struct external_command *c, struct memobj_list *imports, cl_mem mem)
{
	struct memobj *obj = memobj_get(mem);
	cl_int err;

	if (obj) {
		err = external_check_queue(c, obj);
		if (!err && obj->external && import_needs_bracket(obj->region))
			memobj_list_take(imports, obj);
		else
			memobj_put(obj);
		return err;
	}
	if (c->driver) {
		c->others[c->theirs++] = mem;
		return CL_SUCCESS;
	}
	log_error("a memory object was not created from an external memory handle");
	return CL_INVALID_MEM_OBJECT;
}

static cl_int external_list(struct external_command *c, struct memobj_list *imports)
{
	cl_int err = CL_SUCCESS;

	if (!c->count != !c->mems)
		return CL_INVALID_VALUE;
	if (c->driver)
		c->others = calloc((size_t)c->count + 1, sizeof(*c->others));
	if (c->driver && !c->others)
		return CL_OUT_OF_HOST_MEMORY;
	for (cl_uint i = 0; i < c->count && !err; i++)
		err = external_add(c, imports, c->mems[i]);
	return err;
}

/*
 * A driver's function may be for other devices alone, and refuse each call (rusticl of Mesa 26.2).  A call without objects
 * is the layer's where the layer has added dma-bufs: a driver may refuse it (580.159.04), and the text wants a command.
 */
static cl_int external_find_driver(struct external_command *c, bool is_acquire)
{
	const struct extensions *driver;
	cl_device_id device;
	cl_int err = extensions_of_queue(c->queue, &driver);

	if (!err)
		err = next.clGetCommandQueueInfo(c->queue, CL_QUEUE_DEVICE, sizeof(device), &device,
						 NULL);
	if (!err &&
	    driver_imports(device, c->count || c->mems ? 0 : CL_EXTERNAL_MEMORY_HANDLE_DMA_BUF_KHR))
		c->driver = is_acquire ? driver->clEnqueueAcquireExternalMemObjectsKHR
				       : driver->clEnqueueReleaseExternalMemObjectsKHR;
	return err;
}

/* The program's command, between its edges of access.  @edges: enum access_edges. */
static cl_int external_run(struct external_command *c, unsigned int edges, cl_uint num_wait,
			   const cl_event *wait, cl_event *event)
{
	struct access a;
	cl_int err;

	access_none(&a, num_wait, wait, event);
	err = external_list(c, &a.imports);
	if (!err)
		err = external_check_wait(num_wait, wait);
	if (err) {
		memobj_list_put(&a.imports);
		return err;
	}
	edges |= ACCESS_BY_HOST | (c->in_order ? ACCESS_IN_ORDER : 0);
	if (c->in_order && !c->theirs && a.imports.count)
		edges |= ACCESS_JOIN;
	err = access_begin(&a, c->queue, edges);
	if (err)
		return err;
	if (c->theirs)
		err = c->driver(c->queue, c->theirs, c->others, a.num_wait, a.wait, a.event);
	else if (!a.joined)
		err = external_mark(c, a.num_wait, a.wait, a.event);
	return access_end(&a, err, CL_FALSE);
}

static cl_int external_enqueue(bool is_acquire, cl_command_queue queue, cl_uint count,
			       const cl_mem *mems, cl_uint num_wait, const cl_event *wait,
			       cl_event *event)
{
	struct external_command c = { .queue = queue, .count = count, .mems = mems };
	const cl_uint imports = external_count_imports(mems, count);
	cl_int err = queue ? CL_SUCCESS : CL_INVALID_COMMAND_QUEUE;

	if (!err && (!count || imports < count))
		err = external_find_driver(&c, is_acquire);
	if (err)
		return err;
	if (c.driver || !imports)
		queue_bracket_close(queue);
	if (c.driver && !imports)
		return c.driver(queue, count, mems, num_wait, wait, event);
	log_clear();
	err = next.clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof(c.context), &c.context,
					 NULL);
	if (err)
		return err;
	c.in_order = queue_is_in_order(queue);
	err = external_run(&c, is_acquire ? ACCESS_BEGIN : ACCESS_END | ACCESS_RELEASE, num_wait,
			   wait, event);
	free(c.others);
	if (!err && event)
		proxy_event_set_type(*event, is_acquire
						     ? CL_COMMAND_ACQUIRE_EXTERNAL_MEM_OBJECTS_KHR
						     : CL_COMMAND_RELEASE_EXTERNAL_MEM_OBJECTS_KHR);
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
