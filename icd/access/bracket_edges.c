/* SPDX-License-Identifier: Apache-2.0 */
/* START and END of a bracket, in callbacks of the driver and of import/'s threads. */
#include <stdlib.h>

#include "icd/access/bracket_state.h"
#include "icd/error.h"
#include "icd/layer.h"
#include "icd/objects/context.h"

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
	unsigned int state;
	int error;

	if (!(b->edges & ACCESS_END))
		return;
	state = atomic_fetch_or(&b->state, ENDING);
	if (state & ENDING)
		return;
	error = state & BEGUN ? bracket_end_now(b) : 0;
	if (error)
		status = error_to_cl(error);
	if (status < 0)
		atomic_fetch_or(&b->state, FAILED);
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

cl_int bracket_call_back(struct bracket *b, cl_event event, unsigned int due,
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

void bracket_abandon(struct bracket *b)
{
	if (bracket_take_access(b))
		bracket_end_now(b);
}
