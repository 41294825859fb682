/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "icd/access/bracket.h"
#include "icd/access/bracket_state.h"
#include "icd/layer.h"
#include "icd/objects/proxy_event.h"

enum outcome_state {
	OUTCOME_NEW, /* a failure is kept */
	OUTCOME_ARMED,
	OUTCOME_SET,
};

static bool outcome_decide(struct outcome *outcome, cl_int status)
{
	if (outcome->event)
		next.clSetUserEventStatus(outcome->event, status);
	return status < 0;
}

bool outcome_set(struct outcome *outcome, cl_int status)
{
	int state = atomic_load(&outcome->state), after;

	do {
		if (state != OUTCOME_NEW && state != OUTCOME_ARMED)
			return false;
		after = status < 0 && state == OUTCOME_NEW ? status : OUTCOME_SET;
	} while (!atomic_compare_exchange_weak(&outcome->state, &state, after));
	return after == OUTCOME_SET && outcome_decide(outcome, status);
}

cl_int outcome_arm(struct outcome *outcome)
{
	int state = atomic_load(&outcome->state);

	while (state <= OUTCOME_NEW &&
	       !atomic_compare_exchange_weak(&outcome->state, &state,
					     state < 0 ? OUTCOME_SET : OUTCOME_ARMED))
		;
	if (state >= 0)
		return CL_SUCCESS;
	outcome_decide(outcome, state);
	return state;
}

bool bracket_events_reserve(struct bracket_events *e)
{
	size_t room = e->room ? 2 * e->room : 16;
	cl_event *held;

	if (e->num_held < e->room)
		return true;
	held = realloc(e->held, room * sizeof(*held));
	if (!held)
		return false;
	e->held = held;
	e->room = room;
	return true;
}

cl_int bracket_event_status(cl_event event)
{
	cl_int status = CL_QUEUED;

	next.clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status,
			    NULL);
	return status;
}

cl_int bracket_event_outcome(cl_event event)
{
	cl_int status = bracket_event_status(event);

	if (status == CL_COMPLETE && next.clWaitForEvents(1, &event))
		return CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
	return status;
}

/* @ours: references that are not the driver's */
static bool bracket_event_is_in_use(cl_event event, cl_uint ours)
{
	cl_uint refs = 0;

	next.clGetEventInfo(event, CL_EVENT_REFERENCE_COUNT, sizeof(refs), &refs, NULL);
	return refs > ours;
}

bool bracket_events_ready_is_in_use(const struct bracket_events *e)
{
	return bracket_event_is_in_use(e->ready, 1);
}

/* A marker that the application has for the command holds it, too.  A release's own marker does not. */
bool bracket_events_last_is_in_use(const struct bracket_events *e)
{
	const bool is_given = e->marker && proxy_event_command(e->marker) == e->last;

	return bracket_event_is_in_use(e->last, is_given ? 2 : 1);
}

static bool bracket_events_are_in_use(const struct bracket_events *e)
{
	const cl_event own[] = { e->ready, e->gate.event, e->ended.event,
				 proxy_event_is_given(e->marker) ? NULL : e->marker };

	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		if (own[i] && bracket_event_is_in_use(own[i], 1))
			return true;
	for (size_t i = 0; i < e->num_held; i++)
		if (bracket_event_is_in_use(e->held[i], 1))
			return true;
	return e->last && bracket_events_last_is_in_use(e);
}

bool bracket_events_are_needed(struct bracket_events *e)
{
	if (e->ready && bracket_event_status(e->ready) > CL_COMPLETE)
		return true;
	return e->questions++ < 16 && bracket_events_are_in_use(e);
}

static void bracket_event_put(cl_event event)
{
	if (event)
		next.clReleaseEvent(event);
}

void bracket_events_put(struct bracket_events *e)
{
	for (size_t i = 0; i < e->num_held; i++)
		bracket_event_put(e->held[i]);
	bracket_event_put(e->ready);
	bracket_event_put(e->last);
	bracket_event_put(e->marker);
	bracket_event_put(e->gate.event);
	bracket_event_put(e->ended.event);
	free(e->held);
}
