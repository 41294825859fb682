/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/access/bracket.h"

#include <stdlib.h>

#include "icd/access/idle.h"
#include "icd/access/outcome.h"
#include "icd/access/overdue.h"
#include "icd/access/region_set.h"
#include "icd/error.h"
#include "icd/layer.h"
#include "icd/methods/method.h"
#include "icd/objects/context.h"
#include "icd/objects/proxy_event.h"
#include "util/lock.h"
#include "util/log.h"

enum bracket_state {
	BEGUN = 1 << 0,	    /* START has succeeded */
	CANCELLED = 1 << 1, /* there are no commands */
	DONE = 1 << 2,	    /* END is on its way, or not needed */
	FAILED = 1 << 3,    /* START or END, or a command */
	STARTED = 1 << 4,   /* START is on its way: what is enqueued now is not covered by it */
	READY_DUE = 1 << 5, /* the driver is to call on_ready(), which has a reference */
	DONE_DUE = 1 << 6,  /* on_done() */
};

/*
 * Held by who enqueues, by the side that begins until the gate is open, and by the side that ends.
 *
 * Events are kept until the end, and those of commands that the gate may still fail: PoCL 3.1
 * aborts when a command fails whose event nobody holds any more.
 */
struct bracket {
	struct overdue overdue; /* first: it is the bracket's address, too */
	atomic_uint refs;
	atomic_uint state;
	unsigned int edges;
	bool in_order;
	bool by_marker; /* the driver's markers wait for their list on any queue */
	cl_command_queue queue;
	cl_context context;
	cl_mem mem;		    /* one of the imports */
	struct bracket *begun;	    /* of an unmap: the map's, held until access has ended */
	struct outcome gate, ended; /* user events, for an edge that is asked for */
	cl_event ready, marker;
	cl_event last;	  /* command */
	cl_event wait[2]; /* of the commands: the gate, and ready */
	cl_uint num_wait;
	size_t num_held, room;
	cl_event *held;	      /* of the commands before the last */
	cl_int status;	      /* of the last command, once it is done */
	bool begins_late;     /* START may be on its way when the last command is done */
	cl_int refused;	      /* why the driver does not tell when the last command is done */
	struct bracket *next; /* in the grave */
	unsigned int age;     /* there: milliseconds */
	struct region_set set;
};

/* One more reference; NULL stays NULL. */
static cl_event event_hold(cl_event event)
{
	if (event)
		next.clRetainEvent(event);
	return event;
}

static void event_put(cl_event event)
{
	if (event)
		next.clReleaseEvent(event);
}

static cl_int bracket_event_status(cl_event event)
{
	cl_int status = CL_QUEUED;

	next.clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status,
			    NULL);
	return status;
}

void bracket_hold(struct bracket *b)
{
	atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
}

static void bracket_drop_begun(struct bracket *b)
{
	if (b->begun)
		bracket_put(b->begun);
	b->begun = NULL;
}

static void bracket_free(struct bracket *b)
{
	bracket_drop_begun(b);
	region_set_put(&b->set);
	for (size_t i = 0; i < b->num_held; i++)
		event_put(b->held[i]);
	event_put(b->ready);
	event_put(b->last);
	event_put(b->marker);
	event_put(b->gate.event);
	event_put(b->ended.event);
	free(b->held);
	free(b);
}

/*
 * Brackets that failed.  PoCL 3.1 calls back before it tells a command's successors, which a
 * failure in the callback has ended already: it uses their events after they are gone, if nobody
 * holds them.  So the bracket stays until the driver has no reference to the events that the
 * callbacks were for, which it drops last, or for a second after they are done.
 */
#define GRAVE_MS 1000

static void grave_in_child(struct lock *lock) TSA(no_thread_safety_analysis);

LOCK_DEFINE_IN_CHILD(grave_lock, LOCK_LAST, grave_in_child); /* the list */
static struct bracket *grave GUARDED_BY(grave_lock);

/* They are the parent's: their driver is not asked in a child. */
static void grave_in_child(struct lock *lock)
{
	(void)lock;
	grave = NULL;
}

static bool is_held_by_driver(cl_event event, cl_uint others)
{
	cl_uint refs = 0;

	next.clGetEventInfo(event, CL_EVENT_REFERENCE_COUNT, sizeof(refs), &refs, NULL);
	return refs > others;
}

/* A marker without its callback: its wait list may fail at any time. */
static bool bracket_is_pending(const struct bracket *b)
{
	return b->ready && bracket_event_status(b->ready) > CL_COMPLETE;
}

static bool last_is_held_by_driver(const struct bracket *b)
{
	return is_held_by_driver(b->last, proxy_event_is_given(b->marker) ? 2 : 1);
}

static bool bracket_is_in_use(const struct bracket *b)
{
	const cl_event own[] = { b->ready, b->gate.event, b->ended.event,
				 proxy_event_is_given(b->marker) ? NULL : b->marker };

	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		if (own[i] && is_held_by_driver(own[i], 1))
			return true;
	for (size_t i = 0; i < b->num_held; i++)
		if (is_held_by_driver(b->held[i], 1))
			return true;
	return b->last && last_is_held_by_driver(b);
}

static void grave_add(struct bracket *b)
{
	lock_acquire(&grave_lock);
	b->next = grave;
	grave = b;
	lock_release(&grave_lock);
}

static struct bracket *grave_take_all(void)
{
	struct bracket *all;

	lock_acquire(&grave_lock);
	all = grave;
	grave = NULL;
	lock_release(&grave_lock);
	return all;
}

/* Whether one of them has to stay. */
static bool grave_tick(void)
{
	struct bracket *all = grave_take_all(), *b;
	bool any = false;

	while ((b = all)) {
		all = b->next;
		if (!bracket_is_pending(b) && (b->age++ >= GRAVE_MS || !bracket_is_in_use(b))) {
			bracket_free(b);
			continue;
		}
		grave_add(b);
		any = true;
	}
	return any;
}

static void bracket_bury(struct bracket *b)
{
	static struct idle_watcher watcher = { .tick = grave_tick, .period_ms = 1 };

	grave_add(b);
	idle_watch(&watcher);
}

void bracket_put(struct bracket *b)
{
	if (atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel) != 1)
		return;
	overdue_remove(&b->overdue);
	if (atomic_load(&b->state) & FAILED)
		bracket_bury(b);
	else
		bracket_free(b);
}

/* Tells this thread's last fault to the application: no event may be there to show it. */
static void bracket_notify(const struct bracket *b, int error)
{
	struct context *context = context_get(b->context);

	context_notify(context, "access to a dma-buf", error_to_cl(error));
	context_put(context);
}

static void bracket_end_now(struct bracket *b)
{
	int error = region_set_end(&b->set);

	if (error)
		bracket_notify(b, error);
}

/* A driver may say CL_COMPLETE to the callback of a command that failed (PoCL 7). */
static cl_int real_status(cl_event event, cl_int status)
{
	cl_int found = bracket_event_status(event);

	return found < 0 ? found : status;
}

/* Access has ended. */
static void on_ended(void *arg, int error)
{
	struct bracket *b = arg;
	cl_int status = b->status < 0 ? b->status : CL_COMPLETE;

	if (error)
		bracket_notify(b, error);
	bracket_drop_begun(b);
	if (!b->begins_late)
		region_set_put(&b->set); /* a driver that does not call back keeps the bracket */
	if (error || status < 0)
		atomic_fetch_or(&b->state, FAILED);
	outcome_set(&b->ended, error ? error_to_cl(error) : status);
	bracket_put(b);
}

/* Whether access has begun, and whoever asks is to end it: nobody else will. */
static bool bracket_take_access(struct bracket *b)
{
	return (atomic_fetch_or(&b->state, CANCELLED | DONE) & (BEGUN | CANCELLED)) == BEGUN;
}

static bool bracket_has_access(const struct bracket *b, unsigned int state)
{
	if (b->edges & ACCESS_BEGIN)
		return state & BEGUN;
	return b->begun && bracket_take_access(b->begun);
}

/* The last command is done, or will never run.  Counts once.  A START that comes now ends itself. */
static void bracket_done(struct bracket *b, cl_int status)
{
	unsigned int state;
	int error;

	if (!(b->edges & ACCESS_END))
		return;
	state = atomic_fetch_or(&b->state, DONE | CANCELLED);
	if (state & DONE)
		return;
	b->status = status;
	b->begins_late = (state & (STARTED | BEGUN)) == STARTED;
	bracket_hold(b);
	if (!bracket_has_access(b, state)) {
		on_ended(b, 0);
		return;
	}
	error = import_bracket_async(IMPORT_END, b->set.regions, b->set.access, b->set.count,
				     on_ended, b);
	if (error)
		on_ended(b, error);
}

/* Fails the commands.  No driver has to say that they are done then: some do not (PoCL 3.1). */
static void bracket_fail(struct bracket *b, cl_int status)
{
	atomic_fetch_or(&b->state, FAILED);
	if (outcome_set(&b->gate, status))
		bracket_done(b, status);
}

/* The commands may run; but not those that were enqueued, and whose end nobody will tell of. */
static void bracket_open(struct bracket *b, bool cancelled)
{
	if (cancelled && b->refused)
		bracket_fail(b, b->refused);
	else
		outcome_set(&b->gate, CL_COMPLETE);
}

/* Access has begun, or could not. */
static void on_begun(void *arg, int error)
{
	struct bracket *b = arg;

	if (error) {
		bracket_notify(b, error);
		bracket_fail(b, error_to_cl(error));
	} else {
		bool cancelled = atomic_fetch_or(&b->state, BEGUN) & CANCELLED;

		if (cancelled)
			bracket_end_now(b);
		bracket_open(b, cancelled);
	}
	bracket_put(b);
}

/* Whether a callback has not come: its work and its reference are the caller's then. */
static bool bracket_take_due(struct bracket *b, unsigned int due)
{
	return atomic_fetch_and(&b->state, ~due) & due;
}

/* The driver is to call back, with a reference. */
static cl_int bracket_call_back(struct bracket *b, cl_event event, unsigned int due,
				void(CL_CALLBACK *notify)(cl_event, cl_int, void *))
{
	cl_int err;

	bracket_hold(b);
	atomic_fetch_or(&b->state, due);
	err = next.clSetEventCallback(event, CL_COMPLETE, notify, b);
	if (err && bracket_take_due(b, due))
		bracket_put(b);
	return err;
}

/* Driver: the first command could run now, or a command of its wait list failed. */
static void CL_CALLBACK on_ready(cl_event event, cl_int status, void *arg)
{
	struct bracket *b = arg;
	bool cancelled;
	int error;

	if (!bracket_take_due(b, READY_DUE))
		return;
	cancelled = atomic_fetch_or(&b->state, STARTED) & CANCELLED;
	status = real_status(event, status);
	if (status < 0 || cancelled) {
		if (status < 0)
			bracket_fail(b, status);
		else
			bracket_open(b, cancelled);
		bracket_put(b);
		return;
	}
	error = import_bracket_async(IMPORT_BEGIN, b->set.regions, b->set.access, b->set.count,
				     on_begun, b);
	if (error)
		on_begun(b, error);
}

/* Driver: the last command is done, or was given up. */
static void CL_CALLBACK on_done(cl_event event, cl_int status, void *arg)
{
	struct bracket *b = arg;

	if (!bracket_take_due(b, DONE_DUE))
		return;
	bracket_done(b, real_status(event, status));
	bracket_put(b);
}

/*
 * A driver that does not call back for commands that fail (PoCL 3.1) is asked: at once for those
 * that may have failed before, with a wait list of the application's, and later for all.
 */
static void bracket_ask_now(struct bracket *b)
{
	cl_int status = b->ready && !(atomic_load(&b->state) & BEGUN)
				? bracket_event_status(b->ready)
				: CL_COMPLETE;

	if (status < 0)
		bracket_fail(b, status);
	status = b->last && !(atomic_load(&b->state) & DONE) ? bracket_event_status(b->last)
							     : CL_COMPLETE;
	if (status < 0)
		bracket_done(b, status);
}

static bool bracket_overdue_hold(struct overdue *o)
{
	struct bracket *b = (struct bracket *)o;
	unsigned int refs = atomic_load(&b->refs);

	while (refs && !atomic_compare_exchange_weak(&b->refs, &refs, refs + 1))
		;
	return refs;
}

/*
 * A failed command is told to what waits for it, whether the driver calls back or not.  An event
 * that is over, and that the driver has let go of, calls nobody back any more.
 */
static void bracket_overdue_ask(struct overdue *o)
{
	struct bracket *b = (struct bracket *)o;
	unsigned int state = atomic_load(&b->state);
	cl_int status;

	bracket_ask_now(b);
	status = state & READY_DUE ? bracket_event_status(b->ready) : CL_QUEUED;
	if (status <= CL_COMPLETE && !is_held_by_driver(b->ready, 1))
		on_ready(b->ready, status, b);
	status = state & DONE_DUE ? bracket_event_status(b->last) : CL_QUEUED;
	if (status <= CL_COMPLETE && !last_is_held_by_driver(b))
		on_done(b->last, status, b);
	bracket_put(b);
}

/* Everything is enqueued: failures may come. */
static void bracket_arm(struct bracket *b)
{
	static const struct overdue_ops ops = { bracket_overdue_hold, bracket_overdue_ask };

	outcome_arm(&b->ended);
	if (outcome_arm(&b->gate))
		bracket_done(b, CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
	if (!overdue_add(&b->overdue, &ops) || b->num_wait > 1)
		bracket_ask_now(b);
}

/*
 * A command that only waits.  Out of order that is a migration to the device
 * where the memory is: it moves nothing, and keeps behind barriers.  PoCL takes
 * a marker there for one without a wait list, and can lose it.  Drivers of a
 * method with METHOD_MARKERS_WAIT get the marker.
 */
static cl_int enqueue_nothing(const struct bracket *b, cl_uint num_wait, const cl_event *wait,
			      cl_event *event)
{
	if (b->by_marker || b->in_order)
		return next.clEnqueueMarkerWithWaitList(b->queue, num_wait, wait, event);
	return next.clEnqueueMigrateMemObjects(b->queue, 1, &b->mem, 0, num_wait, wait, event);
}

/* The import of the first object that needs a bracket. */
static const struct memobj *bracketed_import(struct memobj *const *objs, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (objs[i] && objs[i]->bracket)
			return memobj_import(objs[i]);
	return NULL;
}

/* What the bracket's own commands need to know of the memory that they are for. */
static void bracket_set_import(struct bracket *b, const struct memobj *import)
{
	b->mem = import->handle;
	b->by_marker = import->method->quirks & METHOD_MARKERS_WAIT;
}

static cl_int bracket_query_queue(struct bracket *b)
{
	cl_command_queue_properties properties = 0;
	cl_int err = next.clGetCommandQueueInfo(b->queue, CL_QUEUE_CONTEXT, sizeof(b->context),
						&b->context, NULL);

	if (!err)
		err = next.clGetCommandQueueInfo(b->queue, CL_QUEUE_PROPERTIES, sizeof(properties),
						 &properties, NULL);
	b->in_order = !(properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
	return err;
}

static cl_int bracket_create_events(struct bracket *b)
{
	cl_int err = bracket_query_queue(b);

	if (!err && b->edges & ACCESS_BEGIN)
		err = outcome_create(&b->gate, b->context);
	if (!err && b->edges & ACCESS_END)
		err = outcome_create(&b->ended, b->context);
	return err;
}

cl_int bracket_create(cl_command_queue queue, struct memobj *const *objs, size_t count,
		      unsigned int edges, struct bracket **bracket)
{
	struct bracket *b = calloc(1, sizeof(*b));
	cl_int err;

	if (!b) {
		log_error("no memory for a dma-buf bracket");
		return CL_OUT_OF_HOST_MEMORY;
	}
	if (!region_set_init(&b->set, objs, count, edges & ACCESS_BY_HOST)) {
		free(b);
		return CL_OUT_OF_HOST_MEMORY;
	}
	b->refs = 1;
	b->edges = edges & ACCESS_BOTH;
	if (!region_set_needs_end(&b->set))
		b->edges &= ~(unsigned int)ACCESS_END;
	b->queue = queue;
	bracket_set_import(b, bracketed_import(objs, count));
	err = error_to_cl(region_set_check(&b->set));
	if (!err)
		err = bracket_create_events(b);
	if (err)
		bracket_put(b);
	else
		*bracket = b;
	return err;
}

/*
 * With a wait list the commands do not wait for the gate alone: a driver that does not call back for
 * commands that fail (PoCL 3.1) fails by itself what waits for the marker behind the list.
 */
cl_int bracket_begin(struct bracket *b, cl_uint num_wait, const cl_event *wait)
{
	cl_int err = enqueue_nothing(b, num_wait, wait, &b->ready);

	b->wait[0] = b->gate.event;
	b->wait[1] = b->ready;
	b->num_wait = num_wait ? 2 : 1;
	if (!err) {
		err = bracket_call_back(b, b->ready, READY_DUE, on_ready);
		if (err)
			atomic_fetch_or(&b->state, FAILED); /* its event stays */
	}
	if (err)
		log_error("the driver refuses a callback for the command's wait list: error %d",
			  err);
	return err;
}

bool bracket_is_started(const struct bracket *b)
{
	return atomic_load(&b->state) & STARTED;
}

const cl_event *bracket_wait_list(const struct bracket *b, cl_uint *count)
{
	*count = b->num_wait;
	return b->wait;
}

bool bracket_admits(const struct bracket *b, struct memobj *const *objs, size_t count)
{
	return region_set_has(&b->set, objs, count);
}

bool bracket_needs_end(const struct bracket *b)
{
	return b->edges & ACCESS_END;
}

bool bracket_uses(const struct bracket *b, const struct import_region *region)
{
	for (size_t i = 0; i < b->set.count; i++)
		if (b->set.regions[i] == region)
			return true;
	return false;
}

bool bracket_reserve(struct bracket *b)
{
	size_t room = b->room ? 2 * b->room : 16;
	cl_event *held;

	if (b->num_held < b->room)
		return true;
	held = realloc(b->held, room * sizeof(*held));
	if (!held)
		return false;
	b->held = held;
	b->room = room;
	return true;
}

void bracket_add(struct bracket *b, cl_event command)
{
	if (b->last)
		b->held[b->num_held++] = b->last;
	b->last = command;
}

bool bracket_is_empty(const struct bracket *b)
{
	return !b->last;
}

void bracket_abandon(struct bracket *b)
{
	if (bracket_take_access(b))
		bracket_end_now(b);
	if (b->begun)
		bracket_abandon(b->begun);
}

void bracket_end_of(struct bracket *unmap, struct bracket *map)
{
	unmap->begun = map;
}

bool bracket_has_begun(const struct bracket *b)
{
	return atomic_load(&b->state) & BEGUN;
}

bool bracket_is_void(const struct bracket *b)
{
	return (atomic_load(&b->state) & (BEGUN | FAILED)) == FAILED;
}

bool bracket_is_done(const struct bracket *b)
{
	return atomic_load(&b->state) & DONE;
}

bool bracket_poll(struct bracket *b)
{
	cl_int status = bracket_is_done(b) ? CL_COMPLETE : bracket_event_status(b->last);

	if (status <= CL_COMPLETE)
		bracket_done(b, status);
	return status <= CL_COMPLETE;
}

const struct import_region *bracket_region(const struct bracket *b)
{
	return b->set.regions[0];
}

/* Enqueues the event behind the end of access. */
static void bracket_mark_end(struct bracket *b)
{
	cl_int err = bracket_call_back(b, b->last, DONE_DUE, on_done);
	if (err) {
		b->refused = err;   /* no command runs without START ... */
		bracket_abandon(b); /* ... and END comes too early rather than never */
	} else {
		err = enqueue_nothing(b, 2, (cl_event[]){ b->ended.event, b->last }, &b->marker);
	}
	if (err)
		log_error(
			"the command's event may complete before its dma-buf access ends: error %d",
			err);
}

void bracket_end(struct bracket *b, cl_event *marker)
{
	if (b->edges & ACCESS_END)
		bracket_mark_end(b);
	if (marker)
		*marker = event_hold(b->marker);
	bracket_arm(b);
	bracket_put(b);
}

void bracket_cancel(struct bracket *b)
{
	bracket_abandon(b);
	bracket_arm(b);
	bracket_put(b);
}
