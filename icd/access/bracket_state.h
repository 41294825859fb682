/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of a bracket, for its files: bracket.c enqueues, bracket_edges.c runs START and END,
 * and bracket_overdue.c asks drivers that do not call back.
 */
#ifndef ICD_ACCESS_BRACKET_STATE_H
#define ICD_ACCESS_BRACKET_STATE_H

#include <stdatomic.h>

#include "icd/access/bracket.h"
#include "icd/access/bracket_events.h"
#include "util/list.h"

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
	struct list overdue; /* bracket_overdue.c's, as the three below */
	unsigned int round;  /* when it was added, or asked */
	bool is_overdue, is_leftover;
	atomic_uint refs;
	atomic_uint state; /* enum bracket_state */
	unsigned int edges;
	bool in_order;
	bool by_marker; /* the driver's markers wait for their wait list on any queue */
	cl_command_queue queue;
	cl_context context;
	cl_mem mem; /* an import */
	struct bracket_events events;
	cl_int status;	  /* of the last command, if the last command is done */
	bool begins_late; /* START may be on its way when the last command is done */
	cl_int refused;	  /* why the driver does not tell when the last command is done */
	struct region_set set;
};

void bracket_put(struct bracket *b);

/* Ends access, now or once it has begun, unless an END is on its way. */
void bracket_abandon(struct bracket *b);

/* The driver is to call @notify, with a reference.  Returns the driver's error. */
cl_int bracket_call_back(struct bracket *b, cl_event event, unsigned int due,
			 void(CL_CALLBACK *notify)(cl_event, cl_int, void *));

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

void bracket_destroy(struct bracket *b);

#endif /* ICD_ACCESS_BRACKET_STATE_H */
