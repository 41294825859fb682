/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/access/access.h"

#include "icd/error.h"
#include "icd/layer.h"
#include "icd/objects/context.h"
#include "icd/objects/proxy_event.h"
#include "icd/objects/user_event.h"

static bool any_needs_bracket(struct memobj *const *objs, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (objs[i] && objs[i]->bracket)
			return true;
	return false;
}

static bool invalidate_is_enough(struct memobj *const *objs, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (objs[i] && objs[i]->bracket && import_needs_end(objs[i]->region))
			return false;
	return true;
}

/* A refresh has no end, so nobody would say when the host writes again. */
static bool any_is_invalidated(struct memobj *const *objs, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (objs[i] && objs[i]->bracket && objs[i]->region->invalidate)
			return true;
	return false;
}

/* Whether a refresh among the first @i does for object @i. */
static bool is_invalidated(struct memobj *const *objs, size_t i)
{
	for (size_t j = 0; j < i; j++)
		if (objs[j] && objs[j]->bracket &&
		    import_same_bracket(objs[j]->region, objs[i]->region))
			return true;
	return false;
}

static cl_int invalidate_now(struct access *a, struct memobj *const *objs, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		int error;

		if (!objs[i] || !objs[i]->bracket || is_invalidated(objs, i))
			continue;
		error = import_begin_access(objs[i]->region, 0);
		if (error) {
			import_put(a->invalidated);
			return error_to_cl(error);
		}
		if (a->invalidated)
			continue;
		a->invalidated = objs[i]->region;
		import_hold(a->invalidated);
	}
	return CL_SUCCESS;
}

void access_prepare(struct access *a)
{
	import_prepare(a->invalidated);
	import_put(a->invalidated);
}

/* The event of the command, which the layer needs. */
static void access_take_event(struct access *a)
{
	a->app_event = a->event;
	a->event = &a->command;
	a->command = NULL;
}

/* A kernel of the queue's open bracket.  False: it has to have one of its own. */
static bool access_join(struct access *a, cl_command_queue queue, struct memobj *const *objs,
			size_t count)
{
	a->queue = queue_bracket_enter(queue, objs, count, !a->event);
	if (!a->queue)
		return false;
	a->bracket = queue_bracket_of(a->queue);
	a->wait = bracket_wait_list(a->bracket, &a->num_wait);
	access_take_event(a);
	return true;
}

/* The sentence of a command that is not enqueued. */
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

static cl_int access_open(struct access *a, cl_command_queue queue, struct memobj *const *objs,
			  size_t count, unsigned int edges)
{
	struct bracket *b;
	cl_int err = bracket_create(queue, objs, count, edges, &b);

	if (err) {
		access_notify(queue, err);
		return err;
	}
	if (edges & ACCESS_BEGIN) {
		err = bracket_begin(b, a->num_wait, a->wait);
		if (err) {
			bracket_cancel(b);
			return err;
		}
		a->wait = bracket_wait_list(b, &a->num_wait);
	}
	a->bracket = b;
	access_take_event(a);
	return CL_SUCCESS;
}

cl_int access_begin(struct access *a, cl_command_queue queue, struct memobj *const *objs,
		    size_t count, unsigned int edges)
{
	if (!any_needs_bracket(objs, count))
		return CL_SUCCESS;
	if (edges & ACCESS_JOIN && !a->num_wait && !any_is_invalidated(objs, count) &&
	    access_join(a, queue, objs, count))
		return CL_SUCCESS;
	queue_bracket_close(queue);
	if (edges & ACCESS_BEGIN && !a->num_wait && !user_event_is_pending() &&
	    invalidate_is_enough(objs, count))
		return invalidate_now(a, objs, count);
	/* PoCL 3.1 takes a list of no events for kernels, not for markers. */
	if (edges & ACCESS_JOIN && !a->num_wait)
		a->wait = NULL;
	return access_open(a, queue, objs, count, edges);
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

static cl_int wait_for(cl_event event)
{
	cl_int status = CL_COMPLETE, err = next.clWaitForEvents(1, &event);

	next.clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status,
			    NULL);
	return err || status < 0 ? CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST : CL_SUCCESS;
}

/* Somebody wants to know when access has ended. */
static cl_int access_watch(struct access *a, cl_bool blocking)
{
	cl_int err = CL_SUCCESS;
	cl_event marker;

	next.clRetainEvent(a->command);
	bracket_add(a->bracket, a->command);
	bracket_end(a->bracket, &marker);
	if (blocking)
		err = wait_for(marker ? marker : a->command);
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
