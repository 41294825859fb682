/* SPDX-License-Identifier: Apache-2.0 */
/* Brackets whose driver does not call back for commands that fail: PoCL 3.1 to 6.0. */
#include "icd/access/bracket_state.h"

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

static bool bracket_overdue_hold(struct overdue *o)
{
	struct bracket *b = container_of(o, struct bracket, overdue);
	unsigned int refs = atomic_load(&b->refs);

	while (refs && !atomic_compare_exchange_weak(&b->refs, &refs, refs + 1))
		;
	return refs;
}

/*
 * The bracket learns of a failed command, whether the driver calls back or not.  If an event is
 * complete or failed, and the driver has no reference to the event, no callback will come.
 */
static void bracket_overdue_ask(struct overdue *o)
{
	struct bracket *b = container_of(o, struct bracket, overdue);
	unsigned int state = atomic_load(&b->state);
	cl_int status;

	bracket_ask_now(b);
	status = state & READY_DUE ? bracket_event_outcome(b->events.ready) : CL_QUEUED;
	if (status <= CL_COMPLETE && !bracket_events_ready_is_in_use(&b->events))
		bracket_on_ready(b->events.ready, status, b);
	status = state & DONE_DUE ? bracket_event_outcome(b->events.last) : CL_QUEUED;
	if (status <= CL_COMPLETE && !bracket_events_last_is_in_use(&b->events))
		bracket_on_done(b->events.last, status, b);
	bracket_put(b);
}

bool bracket_watch_overdue(struct bracket *b)
{
	static const struct overdue_ops ops = { bracket_overdue_hold, bracket_overdue_ask };

	return overdue_add(&b->overdue, &ops);
}

static bool bracket_leftover_hold(struct overdue *o)
{
	(void)o;
	return true;
}

static void bracket_leftover_ask(struct overdue *o)
{
	struct bracket *b = container_of(o, struct bracket, overdue);

	if (bracket_events_are_needed(&b->events))
		return;
	overdue_remove(o);
	bracket_destroy(b);
}

void bracket_destroy_later(struct bracket *b)
{
	static const struct overdue_ops ops = { bracket_leftover_hold, bracket_leftover_ask };

	overdue_add(&b->overdue, &ops);
}
