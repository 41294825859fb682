/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bracket: DMA_BUF_IOCTL_SYNC START before the first of its commands, END behind the last.
 *
 *	marker "ready" (wait list) -> START -> user event "gate"
 *	commands (gate); the last -> END -> user event "ended"
 *	marker (ended)
 *
 * What waits, waits for one event: Intel's CPU runtime (2026.22) frees a command twice, and dies, if
 * two events of the command's wait list fail.
 *
 * Callbacks of the driver and of import/'s threads do the work, on any thread.  No call waits.
 * A SYNC that fails is also told to the context's error callback.
 */
#ifndef ICD_ACCESS_BRACKET_H
#define ICD_ACCESS_BRACKET_H

#include "icd/objects/memobj.h"

enum access_edges {
	ACCESS_BEGIN = 1 << 0,
	ACCESS_END = 1 << 1,
	ACCESS_BOTH = ACCESS_BEGIN | ACCESS_END,
	ACCESS_BY_HOST = 1 << 2,  /* by the host: all access that the memory permits */
	ACCESS_JOIN = 1 << 3,	  /* the command may share the queue's open bracket */
	ACCESS_IN_ORDER = 1 << 4, /* the caller has asked: the queue is in order */
	ACCESS_RELEASE = 1 << 5,  /* END is all that the command does: without END it is an error */
};

struct bracket;

/* False also for what is no queue. */
bool queue_is_in_order(cl_command_queue queue);

/**
 * bracket_open - a bracket, whose START comes when a command with @wait could run
 * @imports: not empty
 * @edges: enum access_edges
 *
 * Returns CL_SUCCESS or an error, logged.  Undone by bracket_end().
 */
cl_int bracket_open(cl_command_queue queue, const struct memobj_list *imports, unsigned int edges,
		    cl_uint num_wait, const cl_event *wait, struct bracket **bracket);

/* The wait list of a command of the bracket, of one event: the end of START. */
const cl_event *bracket_wait_list(const struct bracket *b);

/* Whether the open bracket of a queue is an acquire's, whose release has not come. */
bool bracket_is_acquired(const struct bracket *b);

/*
 * Whether the open bracket of a queue takes one more command, which uses @imports.  Kernels take no kernel once START is on
 * its way: it would not see later writes of a device, of which the application may know.  An acquire takes 16 kernels that
 * use no imports, and then the release of what it has acquired, which is the bracket's END.
 */
bool bracket_admits(struct bracket *b, const struct memobj_list *imports, unsigned int edges);

/* The commands behind the bracket of an acquire, which no kernel has followed, wait for START. */
void bracket_mark_begin(struct bracket *b);

/* Whether the bracket has a region, with an access: enum import_access, or 0. */
bool bracket_serves(const struct bracket *b, const struct import_region *region,
		    unsigned int access);

/* Adds a command as the bracket's last.  Takes over the reference to @command. */
void bracket_add(struct bracket *b, cl_event command);

/**
 * bracket_end - the last command was added: schedules END, or cancels an empty bracket
 * @marker: NULL, or set to a reference to the marker behind END.  Set to NULL if nothing has to be
 *	ended, or if the driver creates no marker: the commands are enqueued all the same.
 *
 * Gives the bracket up.  Returns CL_SUCCESS; or of a release the driver's error, if END will not come, or nothing waits for
 * it: the application releases again.
 */
cl_int bracket_end(struct bracket *b, cl_event *marker);

/* The status that the driver tells; CL_QUEUED if it does not. */
cl_int bracket_event_status(cl_event event);

#endif /* ICD_ACCESS_BRACKET_H */
