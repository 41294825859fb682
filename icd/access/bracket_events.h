/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The events of a bracket.
 *
 * Events are kept until the end of the bracket, also events of commands that the gate may still
 * fail: PoCL 3.1 aborts when a command fails whose event has no owner.
 */
#ifndef ICD_ACCESS_BRACKET_EVENTS_H
#define ICD_ACCESS_BRACKET_EVENTS_H

#include <stdbool.h>

#include "icd/access/outcome.h"

struct bracket_events {
	struct outcome gate, ended; /* user events, for the edges that the bracket has */
	cl_event ready;		    /* the marker in front of the gate */
	cl_event marker;	    /* the marker behind "ended" */
	cl_event last;		    /* of the last command */
	cl_event *held;		    /* of the commands before the last */
	size_t num_held, room;
	unsigned int questions; /* bracket_events_are_needed() */
};

/* Room for one more command.  False: no memory. */
bool bracket_events_reserve(struct bracket_events *e);

/* A command is the last one now; takes over the reference to @command. */
void bracket_events_add(struct bracket_events *e, cl_event command);

/*
 * Whether the driver still uses the events of a failed bracket.  PoCL 3.1 calls back for a command before it tells
 * the commands that wait for it, which a failure in the callback has ended already: if nobody holds their events, it
 * uses them after their end.  It drops its references last.  Asked 16 times, after the marker in front is done, the
 * answer is no.
 */
bool bracket_events_are_needed(struct bracket_events *e);

/* Whether the driver has references to an event. */
bool bracket_events_ready_is_in_use(const struct bracket_events *e);
bool bracket_events_last_is_in_use(const struct bracket_events *e);

void bracket_events_put(struct bracket_events *e);

/* CL_QUEUED if the driver does not tell. */
cl_int bracket_event_status(cl_event event);

/*
 * The same, for those who are not called back: Intel's CPU runtime (2026.22) calls a failed command
 * complete, and a wait for it returns the failure, at once.
 */
cl_int bracket_event_outcome(cl_event event);

#endif /* ICD_ACCESS_BRACKET_EVENTS_H */
