/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/access/bracket.h"

#include <stdlib.h>

#include "icd/access/bracket_state.h"
#include "icd/error.h"
#include "icd/layer.h"
#include "icd/objects/context.h"
#include "icd/objects/method.h"
#include "util/cl_names.h"
#include "util/log.h"

/*
 * A command that only waits: a marker, or on an out-of-order queue a migration to the device where
 * the memory is, which moves nothing and stays behind barriers.  On such a queue PoCL ignores the
 * wait list of a marker, and can lose the marker.  A driver whose markers do wait gets a marker.
 */
static cl_int bracket_enqueue_wait(const struct bracket *b, cl_uint num_wait, const cl_event *wait,
				   cl_event *event)
{
	if (b->by_marker)
		return next.clEnqueueMarkerWithWaitList(b->queue, num_wait, wait, event);
	return next.clEnqueueMigrateMemObjects(b->queue, 1, &b->mem, 0, num_wait, wait, event);
}

bool queue_is_in_order(cl_command_queue queue)
{
	cl_command_queue_properties properties;

	return !next.clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES, sizeof(properties),
					   &properties, NULL) &&
	       !(properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
}

bool bracket_serves(const struct bracket *b, const struct import_region *region,
		    unsigned int access)
{
	for (size_t i = 0; i < b->count; i++)
		if (b->regions[i] == region && !(access & ~b->access[i]))
			return true;
	return false;
}

/* An import and its sub-buffers are one region. */
static void bracket_hold_regions(struct bracket *b, const struct memobj_list *imports, bool by_host)
{
	for (size_t i = 0; i < imports->count; i++) {
		struct import_region *region = imports->objs[i]->region;

		import_hold(region);
		b->access[b->count] = by_host ? region->access : region->wanted & region->access;
		b->regions[b->count++] = region;
	}
}

/* With the regions of @imports, each once and held.  NULL: no memory, logged. */
static struct bracket *bracket_alloc(cl_command_queue queue, const struct memobj_list *imports,
				     unsigned int edges)
{
	const struct memobj *import = memobj_import(imports->objs[0]);
	const size_t room = sizeof(struct import_region *) + sizeof(unsigned int);
	struct bracket *b = calloc(1, sizeof(*b) + imports->count * room);

	if (!b) {
		log_error("no memory for DMA_BUF_IOCTL_SYNC around a command that uses a dma-buf");
		return NULL;
	}
	list_init(&b->overdue);
	b->refs = 1;
	b->edges = edges & ACCESS_BOTH;
	b->is_release = edges & ACCESS_RELEASE;
	b->queue = queue;
	b->context = import->context;
	b->mem = import->handle;
	b->by_marker = import->method->quirks & METHOD_MARKERS_WAIT || edges & ACCESS_IN_ORDER ||
		       queue_is_in_order(queue);
	b->access = (unsigned int *)(b->regions + imports->count);
	bracket_hold_regions(b, imports, edges & ACCESS_BY_HOST);
	return b;
}

static void bracket_put_regions(struct bracket *b)
{
	while (b->count)
		import_put(b->regions[--b->count]);
}

void bracket_destroy(struct bracket *b)
{
	bracket_events_put(&b->events);
	free(b);
}

/* Pairs with itself. */
void bracket_put(struct bracket *b)
{
	if (atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel) != 1)
		return;
	bracket_overdue_remove(b);
	bracket_put_regions(b);
	if (atomic_load(&b->state) & FAILED)
		bracket_overdue_add(b);
	else
		bracket_destroy(b);
}

/* Tells the thread's last fault to the application, which may have no event to see it. */
static void bracket_notify(const struct bracket *b, int error)
{
	context_notify(b->context, "access to a dma-buf", error_to_cl(error));
}

/* Returns the first error. */
static int bracket_end_now(struct bracket *b)
{
	int first_error = 0;

	for (size_t i = 0; i < b->count; i++) {
		int error = import_sync(b->regions[i], b->access[i], IMPORT_END);

		first_error = first_error ? first_error : error;
	}
	if (first_error)
		bracket_notify(b, first_error);
	return first_error;
}

/* A driver may say CL_COMPLETE to the callback of a command that failed (PoCL 7). */
static cl_int bracket_real_status(cl_event event, cl_int status)
{
	cl_int found = bracket_event_status(event);

	return found < 0 ? found : status;
}

/* Whether access has begun, and the caller has to end access: no other thread will. */
static bool bracket_take_access(struct bracket *b)
{
	return (atomic_fetch_or(&b->state, ENDING) & (BEGUN | ENDING)) == BEGUN;
}

void bracket_done(struct bracket *b, cl_int status)
{
	/*
	 * What fails of a release that has a bracket of its own is its wait list, or for PoCL 3.1 a command in front of it:
	 * the application releases again.
	 */
	const bool is_alone = b->is_release && !(b->edges & ACCESS_BEGIN);
	unsigned int state;
	int error;

	if (!(b->edges & ACCESS_END))
		return;
	state = atomic_fetch_or(&b->state, ENDING);
	if (state & ENDING)
		return;
	error = state & BEGUN && !(is_alone && status < 0) ? bracket_end_now(b) : 0;
	if (error)
		status = error_to_cl(error);
	if (status < 0)
		atomic_fetch_or(&b->state, FAILED);
	/* A kernel between acquire and release has failed, and the object is released all the same. */
	if (!error && state & BEGUN && b->is_release && !is_alone)
		status = CL_COMPLETE;
	outcome_set(&b->events.ended, status < 0 ? status : CL_COMPLETE);
}

void bracket_fail(struct bracket *b, cl_int status)
{
	atomic_fetch_or(&b->state, FAILED);
	if (outcome_set(&b->events.gate, status))
		bracket_done(b, status);
}

/* Access has begun, or could not. */
static void bracket_on_begun(void *arg, int error)
{
	struct bracket *b = arg;

	if (error) {
		bracket_notify(b, error);
		bracket_fail(b, error_to_cl(error));
	} else {
		bool cancelled = atomic_fetch_or(&b->state, BEGUN) & ENDING;

		if (cancelled)
			bracket_end_now(b);
		outcome_set(&b->events.gate, CL_COMPLETE);
	}
	bracket_put(b);
}

/* Whether a callback has not come.  The caller then does the work, with the reference. */
static bool bracket_take_due(struct bracket *b, unsigned int due)
{
	return atomic_fetch_and(&b->state, ~due) & due;
}

/* The driver is to call @notify, with a reference.  Returns the driver's error. */
static cl_int bracket_call_back(struct bracket *b, cl_event event, unsigned int due,
				void(CL_CALLBACK *notify)(cl_event, cl_int, void *))
{
	cl_int err;

	atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
	atomic_fetch_or(&b->state, due);
	err = next.clSetEventCallback(event, CL_COMPLETE, notify, b);
	if (err && bracket_take_due(b, due))
		bracket_put(b);
	return err;
}

void CL_CALLBACK bracket_on_ready(cl_event event, cl_int status, void *arg)
{
	struct bracket *b = arg;
	bool cancelled;
	int error;

	if (!bracket_take_due(b, READY_DUE))
		return;
	cancelled = atomic_fetch_or(&b->state, STARTED) & ENDING;
	status = bracket_real_status(event, status);
	if (status >= 0 && !cancelled) {
		error = import_begin_async(b->regions, b->access, b->count, bracket_on_begun, b);
		if (error)
			bracket_on_begun(b, error);
		return;
	}
	if (status < 0)
		bracket_fail(b, status);
	else
		outcome_set(&b->events.gate, CL_COMPLETE); /* no command waits for it */
	bracket_put(b);
}

void CL_CALLBACK bracket_on_done(cl_event event, cl_int status, void *arg)
{
	struct bracket *b = arg;

	if (!bracket_take_due(b, DONE_DUE))
		return;
	bracket_done(b, bracket_real_status(event, status));
	bracket_put(b);
}

/* Ends access, now or once it has begun, unless an END is on its way. */
static void bracket_abandon(struct bracket *b)
{
	if (bracket_take_access(b))
		bracket_end_now(b);
}

/* Of regions that can still be bracketed. */
static cl_int bracket_check(const struct bracket *b)
{
	int error = 0;

	for (size_t i = 0; i < b->count && !error; i++)
		error = import_check_access(b->regions[i]);
	return error ? error_to_cl(error) : CL_SUCCESS;
}

static cl_int bracket_create_events(struct bracket *b, unsigned int edges)
{
	cl_int err = CL_SUCCESS;

	if (edges & ACCESS_BEGIN)
		b->events.gate.event =
			created_or_null(next.clCreateUserEvent(b->context, &err), &err);
	if (!err && edges & (ACCESS_END | ACCESS_JOIN)) /* or the release's */
		b->events.ended.event =
			created_or_null(next.clCreateUserEvent(b->context, &err), &err);
	if (err)
		log_error("the driver made no user event, which DMA_BUF_IOCTL_SYNC around a "
			  "command needs: %s",
			  cl_error_name(err));
	return err;
}

static cl_int bracket_begin(struct bracket *b, cl_uint num_wait, const cl_event *wait)
{
	cl_int err = bracket_enqueue_wait(b, num_wait, wait, &b->events.ready);

	if (!err) {
		err = bracket_call_back(b, b->events.ready, READY_DUE, bracket_on_ready);
		if (err)
			atomic_fetch_or(&b->state, FAILED); /* keeps the events */
	}
	if (err)
		log_error("the driver refuses the command's wait list: %s", cl_error_name(err));
	return err;
}

cl_int bracket_open(cl_command_queue queue, const struct memobj_list *imports, unsigned int edges,
		    cl_uint num_wait, const cl_event *wait, struct bracket **bracket)
{
	struct bracket *b = bracket_alloc(queue, imports, edges);
	cl_int err;

	if (!b)
		return CL_OUT_OF_HOST_MEMORY;
	err = bracket_check(b);
	if (!err)
		err = bracket_create_events(b, edges);
	if (!err && edges & ACCESS_BEGIN)
		err = bracket_begin(b, num_wait, wait);
	if (err)
		bracket_end(b, NULL);
	else
		*bracket = b;
	return err;
}

const cl_event *bracket_wait_list(const struct bracket *b)
{
	return &b->events.gate.event;
}

bool bracket_is_acquired(const struct bracket *b)
{
	return b->edges == ACCESS_BEGIN;
}

void bracket_mark_begin(struct bracket *b)
{
	cl_int err = b->events.last
			     ? CL_SUCCESS
			     : bracket_enqueue_wait(b, 1, &b->events.gate.event, &b->events.last);

	if (!err)
		return;
	log_error("the driver refuses the command of an acquire: %s", cl_error_name(err));
	context_notify(b->context, "access to a dma-buf", err);
}

bool bracket_admits(struct bracket *b, const struct memobj_list *imports, unsigned int edges)
{
	for (size_t i = 0; i < imports->count; i++) {
		const struct import_region *region = imports->objs[i]->region;

		if (!bracket_serves(b, region, region->wanted & region->access))
			return false;
	}
	if ((edges & ACCESS_BOTH) == ACCESS_BOTH)
		return (bracket_is_acquired(b) ? b->events.num_held < 15
					       : !(atomic_load(&b->state) & STARTED)) &&
		       bracket_events_reserve(&b->events);
	if (edges & ACCESS_BEGIN || !bracket_is_acquired(b) || b->count != imports->count)
		return false;
	bracket_mark_begin(b);
	if (!b->events.last)
		return false;
	b->edges = ACCESS_BOTH;
	b->is_release = true;
	return true;
}

void bracket_add(struct bracket *b, cl_event command)
{
	struct bracket_events *e = &b->events;

	if (e->last)
		e->held[e->num_held++] = e->last;
	e->last = command;
}

/* Enqueues the event behind the end of access. */
static void bracket_mark_end(struct bracket *b)
{
	cl_int err = bracket_call_back(b, b->events.last, DONE_DUE, bracket_on_done);

	if (!err) {
		err = bracket_enqueue_wait(b, 1, &b->events.ended.event, &b->events.marker);
	} else {
		bracket_fail(b, err); /* no command runs without START ... */
		bracket_abandon(b);   /* ... and END comes too early rather than never */
	}
	if (err)
		log_error("the command's event may complete before its dma-buf access ends: %s",
			  cl_error_name(err));
}

/* The same for a release, which ends nothing if the driver refuses it: so the callback comes last. */
static cl_int bracket_mark_release(struct bracket *b)
{
	cl_int err = bracket_enqueue_wait(b, 1, &b->events.ended.event, &b->events.marker);

	if (!err) {
		err = bracket_call_back(b, b->events.last, DONE_DUE, bracket_on_done);
		if (err)
			outcome_set(&b->events.ended, CL_COMPLETE); /* for the marker */
	}
	if (err) {
		log_error("the memory objects are not released: %s", cl_error_name(err));
		context_notify(b->context, "access to a dma-buf", err);
	}
	return err;
}

/* All commands are enqueued: the gate and "ended" may fail now. */
static void bracket_arm(struct bracket *b)
{
	cl_int failure;

	outcome_arm(&b->events.ended);
	failure = outcome_arm(&b->events.gate);
	if (failure)
		bracket_done(b, failure);
	if (!bracket_overdue_add(b))
		bracket_ask_now(b);
}

cl_int bracket_end(struct bracket *b, cl_event *marker)
{
	cl_int err = CL_SUCCESS;

	if (!b->events.last) {
		bracket_abandon(b);
	} else {
		if (b->edges == ACCESS_END) /* another bracket has begun access */
			atomic_fetch_or(&b->state, BEGUN);
		if (b->is_release)
			err = bracket_mark_release(b);
		else if (b->edges & ACCESS_END)
			bracket_mark_end(b);
	}
	if (marker && b->events.marker)
		next.clRetainEvent(b->events.marker);
	if (marker)
		*marker = b->events.marker;
	bracket_arm(b);
	bracket_put(b);
	return err;
}
