/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/access/acquired.h"

#include <stdlib.h>
#include <string.h>

#include "icd/error.h"
#include "icd/layer.h"
#include "icd/objects/proxy_event.h"
#include "util/cl_names.h"
#include "util/log.h"

struct acquired {
	cl_command_queue queue;
	struct memobj *import; /* held: the first of the imports */
	cl_event event;	       /* of the acquire */
	cl_event command;
	cl_uint count;
	cl_mem imports[]; /* each once, and a reference of the driver's to each */
};

static bool acquired_has(const struct acquired *a, cl_mem import)
{
	for (cl_uint i = 0; i < a->count; i++)
		if (a->imports[i] == import)
			return true;
	return false;
}

/* The import of an object; each once. */
static void acquired_add(struct acquired *a, struct memobj *obj)
{
	cl_mem root;

	while (obj->parent)
		obj = obj->parent;
	root = memobj_root(obj);
	if (acquired_has(a, root))
		return;
	if (!a->import)
		a->import = memobj_hold(obj);
	next.clRetainMemObject(root);
	a->imports[a->count++] = root;
}

static size_t acquired_count(struct memobj *const *objs, size_t count)
{
	size_t needed = 0;

	for (size_t i = 0; i < count; i++)
		needed += objs[i] && memobj_needs_acquire(objs[i]);
	return needed;
}

static void acquired_free(struct acquired *a)
{
	while (a->count)
		next.clReleaseMemObject(a->imports[--a->count]);
	if (a->event)
		next.clReleaseEvent(a->event);
	memobj_put(a->import);
	free(a);
}

static cl_int acquired_enqueue_marker(const struct acquired *a, cl_uint num_wait,
				      const cl_event *wait, cl_event *marker)
{
	cl_int err = next.clEnqueueMarkerWithWaitList(a->queue, num_wait, wait, marker);

	if (is_created(*marker, err))
		return CL_SUCCESS;
	*marker = NULL;
	return err ? err : CL_OUT_OF_RESOURCES;
}

/* @event: a marker, replaced by a marker that also waits for a list.  An error leaves @event alone. */
static cl_int acquired_mark_list(const struct acquired *a, cl_uint num_wait, const cl_event *wait,
				 cl_event *event)
{
	cl_event *all = malloc((num_wait + (size_t)1) * sizeof(*all)), marker = NULL;
	cl_int err = CL_OUT_OF_HOST_MEMORY;

	if (all) {
		all[0] = *event;
		memcpy(all + 1, wait, num_wait * sizeof(*all));
		err = acquired_enqueue_marker(a, num_wait + 1, all, &marker);
	}
	free(all);
	if (err)
		return err;
	next.clReleaseEvent(*event);
	*event = marker;
	return CL_SUCCESS;
}

/*
 * A marker stands for a command to which the driver gives no event.  The first marker waits for all commands
 * before, and completes also if the commands fail.  So a second marker waits for the first marker, and for the
 * command's wait list, whose failure is the command's.
 */
static cl_int acquired_mark(const struct acquired *a, cl_uint num_wait, const cl_event *wait,
			    cl_event *event)
{
	cl_int err;

	if (*event)
		return CL_SUCCESS;
	err = acquired_enqueue_marker(a, 0, NULL, event);
	if (err || !num_wait)
		return err;
	return acquired_mark_list(a, num_wait, wait, event);
}

/* What was acquired is released, though no marker says when the acquire has ended. */
static void acquired_undo(const struct acquired *a)
{
	cl_event release = NULL;

	memobj_enqueue_release(a->import, a->queue, a->count, a->imports, NULL, &release);
	if (release)
		next.clReleaseEvent(release);
}

bool acquired_is_in_order(cl_command_queue queue)
{
	cl_command_queue_properties properties = 0;

	next.clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES, sizeof(properties), &properties,
				   NULL);
	return !(properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
}

/*
 * On an out-of-order queue the marker waits for commands that the program has left without an order, and such a
 * command may wait for an event that the program sets behind the kernel.  acquired_begin() releases the imports
 * behind the marker.
 */
static cl_int acquired_refuse(struct acquired *a)
{
	log_error("the driver acquires imports without an event: a command on an import needs an "
		  "in-order queue");
	if (acquired_mark(a, 0, NULL, &a->event))
		acquired_undo(a);
	return CL_INVALID_OPERATION;
}

static cl_int acquired_enqueue(struct acquired *a, cl_uint num_wait, const cl_event *wait)
{
	cl_int err = memobj_enqueue_acquire(a->import, a->queue, a->count, a->imports, num_wait,
					    wait, &a->event);

	if (!err && !a->event && !acquired_is_in_order(a->queue))
		return acquired_refuse(a);
	if (err) {
		log_error("the device acquires no imports: %s", cl_error_name(err));
		return err;
	}
	err = acquired_mark(a, num_wait, wait, &a->event);
	if (err)
		log_error("no marker stands for the acquire of imports: %s", cl_error_name(err));
	if (err && !a->event)
		acquired_undo(a);
	return err;
}

static struct acquired *acquired_create(cl_command_queue queue, size_t needed)
{
	struct acquired *a = calloc(1, sizeof(*a) + needed * sizeof(a->imports[0]));

	if (a)
		a->queue = queue;
	else
		log_error("no memory to acquire imports");
	return a;
}

cl_int acquired_begin(cl_command_queue queue, struct memobj *const *objs, size_t count,
		      cl_uint num_wait, const cl_event *wait, struct acquired **acquired)
{
	const size_t needed = acquired_count(objs, count);
	struct acquired *a;
	cl_int err;

	*acquired = NULL;
	if (!needed)
		return CL_SUCCESS;
	a = acquired_create(queue, needed);
	if (!a)
		return CL_OUT_OF_HOST_MEMORY;
	for (size_t i = 0; i < count; i++)
		if (objs[i] && memobj_needs_acquire(objs[i]))
			acquired_add(a, objs[i]);
	err = acquired_enqueue(a, num_wait, wait);
	if (!err)
		*acquired = a;
	else if (a->event)
		acquired_cancel(a);
	else
		acquired_free(a);
	return err;
}

const cl_event *acquired_wait_list(const struct acquired *a)
{
	return &a->event;
}

cl_event *acquired_command(struct acquired *a)
{
	return &a->command;
}

/* NULL: the driver has refused.  The command runs all the same, and has its own event. */
static cl_event acquired_release(struct acquired *a, cl_event behind)
{
	cl_event release = NULL;
	cl_int err =
		memobj_enqueue_release(a->import, a->queue, a->count, a->imports, behind, &release);

	if (!err) {
		err = acquired_mark(a, 1, &behind, &release);
		if (err && release)
			next.clReleaseEvent(release);
	}
	if (is_created(release, err))
		return release;
	log_error("the device does not release imports: %s", cl_error_name(err));
	return NULL;
}

void acquired_cancel(struct acquired *a)
{
	cl_event release = acquired_release(a, a->event);

	if (release)
		next.clReleaseEvent(release);
	acquired_free(a);
}

static cl_int acquired_wait(cl_event event)
{
	cl_int status = CL_COMPLETE, err = next.clWaitForEvents(1, &event);

	next.clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status,
			    NULL);
	return err || status < 0 ? CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST : CL_SUCCESS;
}

cl_int acquired_end(struct acquired *a, cl_event *event, cl_bool blocking)
{
	cl_event release = acquired_release(a, a->command);
	cl_int err = blocking ? acquired_wait(release ? release : a->command) : CL_SUCCESS;

	proxy_event_give(release, a->command, err ? NULL : event);
	acquired_free(a);
	return err;
}
