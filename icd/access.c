/* SPDX-License-Identifier: Apache-2.0 */
#include "access.h"

#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "event.h"
#include "import/log.h"
#include "layer.h"
#include "user_event.h"

enum state {
	BEGUN = 1 << 0,
	CANCELLED = 1 << 1, /* the command was not enqueued */
};

/*
 * Held by the side that begins, until the gate is open, and by the side that
 * ends.  Callbacks of the driver, and of import/'s worker, run on any thread.
 *
 * Events are kept until the end: PoCL 3.1 aborts when a command fails whose
 * event nobody holds any more.
 */
struct bracket {
	atomic_uint refs;
	atomic_uint state;
	unsigned int edges;
	cl_event gate, ended; /* user events; NULL for an edge that is not asked for */
	cl_event ready, command, marker;
	cl_event *wait; /* the application's list, and the gate */
	cl_int status;	/* of the command, once it is done */
	size_t count;
	unsigned int *access;
	struct import_region *regions[];
};

/* One more reference; NULL stays NULL. */
static cl_event keep(cl_event event)
{
	if (event)
		next.clRetainEvent(event);
	return event;
}

static void release(cl_event event)
{
	if (event)
		next.clReleaseEvent(event);
}

static void bracket_put(struct bracket *b)
{
	if (atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel) != 1)
		return;
	for (size_t i = 0; i < b->count; i++)
		import_put(b->regions[i]);
	release(b->ready);
	release(b->command);
	release(b->marker);
	release(b->gate);
	release(b->ended);
	free(b->wait);
	free(b->access);
	free(b);
}

/* Room for @count regions, or NULL. */
static struct bracket *bracket_alloc(size_t count, unsigned int edges)
{
	struct bracket *b = calloc(1, sizeof(*b) + count * sizeof(b->regions[0]));

	if (!b)
		return NULL;
	b->access = calloc(count, sizeof(b->access[0]));
	if (!b->access) {
		free(b);
		return NULL;
	}
	b->refs = 1;
	b->edges = edges;
	return b;
}

static unsigned int access_of(const struct import_region *region, unsigned int edges)
{
	return edges & ACCESS_BY_HOST ? region->access : region->wanted & region->access;
}

/* An import and its sub-buffers are one region. */
static bool bracket_has(const struct bracket *b, const struct import_region *region)
{
	for (size_t i = 0; i < b->count; i++)
		if (import_same_bracket(b->regions[i], region))
			return true;
	return false;
}

static void bracket_add(struct bracket *b, struct import_region *region, unsigned int access)
{
	b->access[b->count] = access;
	b->regions[b->count++] = region;
	import_hold(region);
}

static bool needs_end(const struct bracket *b)
{
	for (size_t i = 0; i < b->count; i++)
		if (import_needs_end(b->regions[i]))
			return true;
	return false;
}

static struct bracket *bracket_create(struct memobj *const *objs, size_t count, unsigned int edges)
{
	struct bracket *b = bracket_alloc(count, edges);

	if (!b) {
		log_error("no memory for a dma-buf bracket");
		return NULL;
	}
	for (size_t i = 0; i < count; i++)
		if (objs[i] && objs[i]->bracket && !bracket_has(b, objs[i]->region))
			bracket_add(b, objs[i]->region, access_of(objs[i]->region, edges));
	if (!needs_end(b))
		b->edges &= ~(unsigned int)ACCESS_END;
	return b;
}

static void end_now(struct bracket *b)
{
	for (size_t i = 0; i < b->count; i++)
		import_end_access(b->regions[i], b->access[i]);
}

/* A driver may say CL_COMPLETE to the callback of a command that failed (PoCL 7). */
static cl_int real_status(cl_event event, cl_int status)
{
	cl_int found = status;

	next.clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(found), &found, NULL);
	return found < 0 ? found : status;
}

/* Access has begun, or could not. */
static void on_begun(void *arg, int error)
{
	struct bracket *b = arg;

	if (!error && atomic_fetch_or(&b->state, BEGUN) & CANCELLED)
		end_now(b);
	next.clSetUserEventStatus(b->gate, error ? error_to_cl(error) : CL_COMPLETE);
	bracket_put(b);
}

static void start_begin(struct bracket *b)
{
	int error =
		import_bracket_async(IMPORT_BEGIN, b->regions, b->access, b->count, on_begun, b);

	if (error)
		on_begun(b, error);
}

/* Driver: the command could run now, or a command of its wait list failed. */
static void CL_CALLBACK on_ready(cl_event event, cl_int status, void *arg)
{
	struct bracket *b = arg;

	status = real_status(event, status);
	if (status >= 0) {
		start_begin(b);
		return;
	}
	next.clSetUserEventStatus(b->gate, status);
	bracket_put(b);
}

/* Access has ended. */
static void on_ended(void *arg, int error)
{
	struct bracket *b = arg;
	cl_int status = b->status < 0 ? b->status : CL_COMPLETE;

	next.clSetUserEventStatus(b->ended, error ? error_to_cl(error) : status);
	bracket_put(b);
}

/* Driver: the command is done, or was given up because the gate failed. */
static void CL_CALLBACK on_done(cl_event event, cl_int status, void *arg)
{
	struct bracket *b = arg;
	int error;

	b->status = real_status(event, status);
	if (b->edges & ACCESS_BEGIN && !(atomic_load(&b->state) & BEGUN)) {
		on_ended(b, 0);
		return;
	}
	error = import_bracket_async(IMPORT_END, b->regions, b->access, b->count, on_ended, b);
	if (error)
		on_ended(b, error);
}

static bool is_in_order(cl_command_queue queue)
{
	cl_command_queue_properties properties = 0;

	next.clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES, sizeof(properties), &properties,
				   NULL);
	return !(properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
}

/*
 * A command that only waits.  Out of order that is a migration to the device
 * where the memory is: it moves nothing, and keeps behind barriers.  PoCL takes
 * a marker there for one without a wait list, and can lose it.  NVIDIA's driver
 * (580) crashes in many such migrations, and keeps to the wait list of markers.
 */
static cl_int enqueue_nothing(const struct access *a, cl_uint num_wait, const cl_event *wait,
			      cl_event *event)
{
	if (a->by_marker || is_in_order(a->queue))
		return next.clEnqueueMarkerWithWaitList(a->queue, num_wait, wait, event);
	return next.clEnqueueMigrateMemObjects(a->queue, 1, &a->mem, 0, num_wait, wait, event);
}

/* Opens the gate when the command could run. */
static cl_int schedule_begin(const struct access *a, struct bracket *b)
{
	cl_int err = enqueue_nothing(a, a->num_wait, a->wait, &b->ready);

	if (!err) {
		atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
		err = next.clSetEventCallback(b->ready, CL_COMPLETE, on_ready, b);
		if (err)
			bracket_put(b);
	}
	if (err)
		log_error("the driver does not say when the wait list is complete: error %d", err);
	return err;
}

static cl_int create_events(struct bracket *b, cl_command_queue queue)
{
	cl_context context;
	cl_int err = next.clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof(context), &context,
						NULL);

	if (!err && b->edges & ACCESS_BEGIN)
		b->gate = next.clCreateUserEvent(context, &err);
	if (!err && b->edges & ACCESS_END)
		b->ended = next.clCreateUserEvent(context, &err);
	if (err)
		log_error("the driver makes no user event for a dma-buf bracket: error %d", err);
	return err;
}

/*
 * The command waits for the gate, and for the list itself: a driver that does
 * not call back for commands that fail (PoCL 3.1) fails this one by itself.
 */
static cl_int gate_command(struct access *a, struct bracket *b)
{
	b->wait = calloc(a->num_wait + 1, sizeof(*b->wait));
	if (!b->wait) {
		log_error("no memory for a wait list");
		return CL_OUT_OF_HOST_MEMORY;
	}
	if (a->wait)
		memcpy(b->wait, a->wait, a->num_wait * sizeof(*b->wait));
	b->wait[a->num_wait] = b->gate;
	return CL_SUCCESS;
}

static cl_int prepare(struct access *a, struct bracket *b, cl_command_queue queue)
{
	cl_int err = create_events(b, queue);

	if (err)
		return err;
	a->queue = queue;
	if (b->edges & ACCESS_BEGIN) {
		err = gate_command(a, b);
		if (!err)
			err = schedule_begin(a, b);
		if (err)
			return err;
		a->num_wait++;
		a->wait = b->wait;
	}
	a->app_event = a->event;
	a->event = &a->command;
	a->bracket = b;
	return CL_SUCCESS;
}

/* The import of the first object that needs a bracket, or NULL. */
static cl_mem bracketed_root(struct memobj *const *objs, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct memobj *obj = objs[i];

		if (!obj || !obj->bracket)
			continue;
		while (obj->parent)
			obj = obj->parent;
		return obj->handle;
	}
	return NULL;
}

static bool refresh_is_enough(struct memobj *const *objs, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (objs[i] && objs[i]->bracket && import_needs_end(objs[i]->region))
			return false;
	return true;
}

/* Whether a refresh among the first @i does for object @i. */
static bool is_refreshed(struct memobj *const *objs, size_t i)
{
	for (size_t j = 0; j < i; j++)
		if (objs[j] && objs[j]->bracket &&
		    import_same_bracket(objs[j]->region, objs[i]->region))
			return true;
	return false;
}

static cl_int refresh_now(struct access *a, struct memobj *const *objs, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		int error;

		if (!objs[i] || !objs[i]->bracket || is_refreshed(objs, i))
			continue;
		error = import_begin_access(objs[i]->region, 0);
		if (error) {
			import_put(a->refreshed);
			return error_to_cl(error);
		}
		if (a->refreshed)
			continue;
		a->refreshed = objs[i]->region;
		import_hold(a->refreshed);
	}
	return CL_SUCCESS;
}

void access_prepare(struct access *a)
{
	import_prepare(a->refreshed);
	import_put(a->refreshed);
}

cl_int access_begin(struct access *a, cl_command_queue queue, struct memobj *const *objs,
		    size_t count, unsigned int edges)
{
	struct bracket *b;
	cl_int err;

	a->mem = bracketed_root(objs, count);
	if (!a->mem)
		return CL_SUCCESS;
	if (edges & ACCESS_BEGIN && !a->num_wait && !user_events_pending() &&
	    refresh_is_enough(objs, count))
		return refresh_now(a, objs, count);
	b = bracket_create(objs, count, edges);
	if (!b)
		return CL_OUT_OF_HOST_MEMORY;
	a->by_marker = b->regions[0]->opaque;
	err = prepare(a, b, queue);
	if (err)
		bracket_put(b);
	return err;
}

/* The command does not run: what was begun ends at once. */
static void cancel(struct bracket *b)
{
	if (atomic_fetch_or(&b->state, CANCELLED) & BEGUN)
		end_now(b);
	bracket_put(b);
}

/* The event behind the end of access; NULL if the driver makes none: it is enqueued all the same. */
static cl_event mark_end(struct access *a, struct bracket *b)
{
	const cl_event wait[] = { b->ended, a->command };
	cl_event marker = NULL;
	cl_int err;

	atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
	b->command = keep(a->command);
	err = next.clSetEventCallback(a->command, CL_COMPLETE, on_done, b);
	if (err)
		cancel(b); /* its end cannot be seen: better too early than never */
	else
		err = enqueue_nothing(a, 2, wait, &marker);
	if (err)
		log_error("the end of the command's dma-buf access is not part of its event: error "
			  "%d",
			  err);
	b->marker = keep(marker);
	bracket_put(b);
	return marker;
}

cl_int access_finish(struct access *a, cl_int err, cl_bool blocking)
{
	struct bracket *b = a->bracket;
	cl_event marker;

	if (err) {
		cancel(b);
		return err;
	}
	if (!(b->edges & ACCESS_END)) {
		bracket_put(b);
		marker = NULL;
	} else {
		marker = mark_end(a, b);
	}
	if (blocking && marker)
		next.clWaitForEvents(1, &marker);
	event_give(marker, a->command, a->app_event);
	return CL_SUCCESS;
}
