/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/access/access.h"

#include "icd/driver_info.h"
#include "icd/error.h"
#include "icd/layer.h"
#include "icd/objects/context.h"
#include "icd/objects/method.h"
#include "icd/objects/proxy_event.h"

/* The layer needs the event of the command. */
static void access_take_event(struct access *a)
{
	a->app_event = a->event;
	a->event = &a->command;
	a->command = NULL;
}

/* What a command uses. */
struct access_use {
	cl_command_queue queue;
	struct memobj *const *objs;
	size_t count;
	unsigned int edges; /* enum access_edges */
};

/* A kernel joins the queue's open bracket.  False: the kernel needs a bracket of its own. */
static bool access_join(struct access *a, const struct access_use *use)
{
	a->queue = queue_bracket_enter(use->queue, use->objs, use->count, !a->event);
	if (!a->queue)
		return false;
	a->bracket = queue_bracket_of(a->queue);
	a->num_wait = 1;
	a->wait = bracket_wait_list(a->bracket);
	access_take_event(a);
	return true;
}

/* Tells the context's callback why a command is not enqueued. */
static void access_notify(cl_command_queue queue, cl_int err)
{
	struct context *context;
	cl_context handle;

	if (next.clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof(handle), &handle, NULL))
		return;
	context = context_get(handle);
	context_notify(context, "access to a dma-buf", err);
	context_put(context);
}

static cl_int access_open(struct access *a, const struct access_use *use)
{
	struct bracket *b;
	cl_int err = bracket_create(use->queue, use->objs, use->count, use->edges, &b);

	if (err) {
		access_notify(use->queue, err);
		return err;
	}
	if (use->edges & ACCESS_BEGIN) {
		err = bracket_begin(b, a->num_wait, a->wait);
		if (err) {
			bracket_cancel(b);
			return err;
		}
		a->num_wait = 1;
		a->wait = bracket_wait_list(b);
	}
	a->bracket = b;
	access_take_event(a);
	return CL_SUCCESS;
}

static cl_int access_bracket(struct access *a, const struct access_use *use)
{
	const bool may_join = use->edges & ACCESS_JOIN && !a->num_wait;

	if (may_join && access_join(a, use))
		return CL_SUCCESS;
	queue_bracket_close(use->queue);
	/* PoCL 3.1 takes a list of no events for kernels, not for markers. */
	if (may_join)
		a->wait = NULL;
	return access_open(a, use);
}

/* The command waits for the acquire, and gives its event to the release. */
static cl_int access_acquire(struct access *a, cl_command_queue queue, struct memobj *const *objs,
			     size_t count)
{
	cl_int err = acquired_begin(queue, objs, count, a->num_wait, a->wait, &a->acquired);

	if (err)
		access_notify(queue, err);
	if (err || !a->acquired)
		return err;
	a->num_wait = 1;
	a->wait = acquired_wait_list(a->acquired);
	a->app_event = a->event;
	a->event = acquired_command(a->acquired);
	return CL_SUCCESS;
}

cl_int access_release(struct access *a, cl_int err, cl_bool blocking)
{
	if (!err)
		return acquired_end(a->acquired, a->app_event, blocking);
	acquired_cancel(a->acquired);
	return err;
}

/* A context takes dma-bufs by one method, whose imports are bracketed or acquired. */
cl_int access_begin(struct access *a, cl_command_queue queue, struct memobj *const *objs,
		    size_t count, unsigned int edges)
{
	const struct access_use use = { queue, objs, count, edges };

	if (region_set_first(objs, count))
		return access_bracket(a, &use);
	if (a->num_wait || a->event)
		queue_bracket_close(queue);
	return access_acquire(a, queue, objs, count);
}

/* The command is in the queue's open bracket, which an event of the application closes. */
static cl_int access_leave(struct access *a, cl_int err)
{
	cl_event command = a->command, marker = NULL;

	if (!err && a->app_event)
		next.clRetainEvent(command);
	if (!err)
		bracket_add(a->bracket, command);
	if (!err && a->app_event)
		queue_bracket_end(a->queue, &marker);
	queue_bracket_leave(a->queue);
	if (!err && a->app_event)
		proxy_event_give(marker, command, a->app_event);
	return err;
}

/* The application wants an event, or waits, for the end of access. */
static cl_int access_watch(struct access *a, cl_bool blocking)
{
	cl_int err = CL_SUCCESS;
	cl_event marker;

	next.clRetainEvent(a->command);
	bracket_add(a->bracket, a->command);
	bracket_end(a->bracket, &marker);
	if (blocking)
		err = proxy_event_wait(marker ? marker : a->command);
	proxy_event_give(marker, a->command, err ? NULL : a->app_event);
	return err;
}

cl_int access_finish(struct access *a, cl_int err, cl_bool blocking)
{
	if (a->queue)
		return access_leave(a, err);
	if (err) {
		bracket_cancel(a->bracket);
		return err;
	}
	if (blocking || a->app_event)
		return access_watch(a, blocking);
	bracket_add(a->bracket, a->command);
	bracket_end(a->bracket, NULL);
	return CL_SUCCESS;
}

cl_int access_enqueue_wait(cl_command_queue queue, const struct memobj *obj, cl_uint num_wait,
			   const cl_event *wait, cl_event *event)
{
	const cl_mem mem = obj ? memobj_import(obj)->handle : NULL;

	if (!obj || obj->method->quirks & METHOD_MARKERS_WAIT || queue_is_in_order(queue))
		return next.clEnqueueMarkerWithWaitList(queue, num_wait, wait, event);
	return next.clEnqueueMigrateMemObjects(queue, 1, &mem, 0, num_wait, wait, event);
}
