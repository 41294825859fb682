/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Brackets whose driver does not call back for commands that fail: PoCL 3.1 to 6.0.  The idle thread asks for
 * brackets that have waited for a tenth of a second, some times a second.
 */
#include "icd/access/bracket_state.h"
#include "util/idle.h"
#include "util/lock.h"

#define PERIOD_MS 64
#define BATCH 64

static void bracket_overdue_in_child(struct lock *lock) TSA(no_thread_safety_analysis);

LOCK_DEFINE_IN_CHILD(bracket_overdue_lock, LOCK_LAST, bracket_overdue_in_child); /* the list */
/* The bracket that was added or asked longest ago comes first. */
static struct list
	bracket_overdue_list GUARDED_BY(bracket_overdue_lock) = LIST_INIT(bracket_overdue_list);
static unsigned int bracket_overdue_round GUARDED_BY(bracket_overdue_lock);

/* The brackets are the parent's: a child does not ask the parent's driver. */
static void bracket_overdue_in_child(struct lock *lock)
{
	(void)lock;
	for (struct list *link; (link = list_take(&bracket_overdue_list));)
		list_init(link);
}

static void bracket_overdue_append(struct bracket *b) REQUIRES(bracket_overdue_lock)
{
	b->round = bracket_overdue_round;
	list_add(&bracket_overdue_list, &b->overdue);
}

void bracket_ask_now(struct bracket *b)
{
	cl_int status = b->events.ready && !(atomic_load(&b->state) & BEGUN)
				? bracket_event_outcome(b->events.ready)
				: CL_COMPLETE;

	if (status < 0)
		bracket_fail(b, status);
	status = b->events.last && !(atomic_load(&b->state) & ENDING)
			 ? bracket_event_outcome(b->events.last)
			 : CL_COMPLETE;
	if (status < 0)
		bracket_done(b, status);
}

/*
 * The bracket learns of a failed command, whether the driver calls back or not.  If an event is
 * complete or failed, and the driver has no reference to the event, no callback will come.
 */
static void bracket_overdue_ask(struct bracket *b)
{
	unsigned int state = atomic_load(&b->state);
	cl_int status;

	if (b->is_leftover) {
		if (bracket_events_are_needed(&b->events))
			return;
		bracket_overdue_remove(b);
		bracket_destroy(b);
		return;
	}
	bracket_ask_now(b);
	status = state & READY_DUE ? bracket_event_outcome(b->events.ready) : CL_QUEUED;
	if (status <= CL_COMPLETE && !bracket_events_ready_is_in_use(&b->events))
		bracket_on_ready(b->events.ready, status, b);
	status = state & DONE_DUE ? bracket_event_outcome(b->events.last) : CL_QUEUED;
	if (status <= CL_COMPLETE && !bracket_events_last_is_in_use(&b->events))
		bracket_on_done(b->events.last, status, b);
	bracket_put(b);
}

/* False: the bracket is about to be removed. */
static bool bracket_overdue_hold(struct bracket *b)
{
	unsigned int refs = atomic_load(&b->refs);

	while (refs && !atomic_compare_exchange_weak(&b->refs, &refs, refs + 1))
		;
	return refs || b->is_leftover;
}

/* Brackets of the round before the last or of an earlier round, held unless they are left over.  How many. */
static size_t bracket_overdue_take(struct bracket *taken[BATCH])
{
	size_t count = 0;

	lock_acquire(&bracket_overdue_lock);
	while (count < BATCH && !list_is_empty(&bracket_overdue_list)) {
		struct bracket *b =
			container_of(bracket_overdue_list.next, struct bracket, overdue);

		if (bracket_overdue_round - b->round < 2)
			break;
		list_remove(&b->overdue);
		bracket_overdue_append(b);
		if (bracket_overdue_hold(b))
			taken[count++] = b;
	}
	lock_release(&bracket_overdue_lock);
	return count;
}

static bool bracket_overdue_tick(void)
{
	struct bracket *taken[BATCH];
	size_t count;
	bool any;

	lock_acquire(&bracket_overdue_lock);
	any = !list_is_empty(&bracket_overdue_list);
	bracket_overdue_round++;
	lock_release(&bracket_overdue_lock);
	do {
		count = bracket_overdue_take(taken);
		for (size_t i = 0; i < count; i++)
			bracket_overdue_ask(taken[i]);
	} while (count == BATCH);
	return any;
}

bool bracket_overdue_add(struct bracket *b)
{
	static struct idle_task task = { .tick = bracket_overdue_tick, .period_ms = PERIOD_MS };
	static atomic_bool is_watched;
	bool is_first;

	lock_acquire(&bracket_overdue_lock);
	is_first = list_is_empty(&bracket_overdue_list);
	b->is_leftover = !atomic_load(&b->refs);
	bracket_overdue_append(b);
	lock_release(&bracket_overdue_lock);
	if (is_first || !atomic_load(&is_watched))
		atomic_store(&is_watched, idle_request(&task));
	return atomic_load(&is_watched);
}

void bracket_overdue_remove(struct bracket *b)
{
	lock_acquire(&bracket_overdue_lock);
	list_remove(&b->overdue);
	list_init(&b->overdue);
	lock_release(&bracket_overdue_lock);
}
