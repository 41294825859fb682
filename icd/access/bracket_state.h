/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of a bracket, for its files: bracket.c enqueues and runs START and END, bracket_events.c
 * keeps the events, and bracket_overdue.c asks drivers that do not call back.
 */
#ifndef ICD_ACCESS_BRACKET_STATE_H
#define ICD_ACCESS_BRACKET_STATE_H

#include <stdatomic.h>

#include "icd/objects/memobj.h"
#include "util/list.h"

/*
 * A user event whose failure waits until all commands behind the event are enqueued.
 *
 * With some drivers (PoCL 3.1) a command that is enqueued behind a failed event never runs and
 * never fails: the command hangs, and so does clFinish().  So a failure is kept until the outcome
 * is armed.  Whichever comes second, outcome_arm() or the failure, fails the event.
 * Success is never kept.  Only the first status counts.
 */
struct outcome {
	cl_event event;	  /* NULL: no command waits for the outcome */
	atomic_int state; /* enum outcome_state, or the kept failure */
};

/*
 * Kept until the end of the bracket, also events of commands that the gate may still
 * fail: PoCL 3.1 aborts when a command fails whose event has no owner.
 */
struct bracket_events {
	struct outcome gate, ended; /* for the edges that the bracket has */
	cl_event ready;		    /* the marker in front of the gate */
	cl_event marker;	    /* the marker behind "ended" */
	cl_event last;		    /* of the last command */
	cl_event *held;		    /* of the commands before the last */
	size_t num_held, room;
	unsigned int questions; /* bracket_events_are_needed() */
};

enum bracket_state {
	STARTED = 1 << 0,   /* START is on its way, and does not cover later commands */
	BEGUN = 1 << 1,	    /* START has succeeded */
	ENDING = 1 << 2,    /* no command will follow: END is on its way, or not needed */
	FAILED = 1 << 3,    /* START or END, or a command */
	READY_DUE = 1 << 4, /* the driver is to call bracket_on_ready(), which has a reference */
	DONE_DUE = 1 << 5,  /* the driver is to call bracket_on_done(), which has a reference */
};

/* References: the thread that enqueues, START until the gate is open, and END. */
struct bracket {
	struct list overdue; /* bracket_overdue.c's, as the two below */
	unsigned int round;  /* when it was added, or asked */
	bool is_leftover;
	atomic_uint refs;
	atomic_uint state; /* enum bracket_state */
	unsigned int edges;
	bool is_release; /* ACCESS_RELEASE */
	bool by_marker;	 /* the queue's markers wait for their wait list */
	cl_command_queue queue;
	cl_context context;
	cl_mem mem; /* an import */
	struct bracket_events events;
	size_t count;
	unsigned int *access;		 /* enum import_access of each region, behind them */
	struct import_region *regions[]; /* held, each once */
};

void bracket_put(struct bracket *b);
void bracket_destroy(struct bracket *b);

/* Driver: the first command could run now, or a command of its wait list failed. */
void CL_CALLBACK bracket_on_ready(cl_event event, cl_int status, void *arg);

/* Driver: the last command is done, or was given up. */
void CL_CALLBACK bracket_on_done(cl_event event, cl_int status, void *arg);

/* The last command is done, or will never run.  Counts once.  A later START ends at once. */
void bracket_done(struct bracket *b, cl_int status);

/* Fails the commands.  PoCL 3.1 does not say that failed commands are done. */
void bracket_fail(struct bracket *b, cl_int status);

/* A driver that does not call back for commands that fail (PoCL 3.1) is asked: for those that may have failed before. */
void bracket_ask_now(struct bracket *b);

/*
 * The idle thread asks for all from now on.  False: it cannot.  A failed bracket that nobody holds is left to it,
 * and destroyed when the driver needs the events no more: bracket_events_are_needed().
 */
bool bracket_overdue_add(struct bracket *b);
void bracket_overdue_remove(struct bracket *b);

/* Sets success, or the failure @status < 0.  Whether the event has failed by the call. */
bool outcome_set(struct outcome *outcome, cl_int status);

/* All commands behind the event are enqueued.  Returns the failure if the event has failed by the call, or 0. */
cl_int outcome_arm(struct outcome *outcome);

/* Room for one more command.  False: no memory. */
bool bracket_events_reserve(struct bracket_events *e);

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

/*
 * bracket_event_status() for those who are not called back: Intel's CPU runtime (2026.22) calls a failed command
 * complete, and a wait for it returns the failure, at once.
 */
cl_int bracket_event_outcome(cl_event event);

#endif /* ICD_ACCESS_BRACKET_STATE_H */
