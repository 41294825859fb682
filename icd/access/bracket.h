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
 * A user event fails only when all commands behind the event are enqueued: access/outcome.h.
 * A SYNC that fails is also told to the context's error callback.
 */
#ifndef ICD_ACCESS_BRACKET_H
#define ICD_ACCESS_BRACKET_H

#include "icd/access/region_set.h"

enum access_edges {
	ACCESS_BEGIN = 1 << 0,
	ACCESS_END = 1 << 1,
	ACCESS_BOTH = ACCESS_BEGIN | ACCESS_END,
	ACCESS_BY_HOST =
		1 << 2, /* all access of the memory, not only the access of kernels by its flags */
	ACCESS_JOIN = 1 << 3, /* a kernel, which may share a bracket with kernels before */
};

struct bracket;

/**
 * bracket_create - a bracket without START
 * @objs: @count records or NULL, of which one needs a bracket
 * @edges: enum access_edges
 *
 * Returns CL_SUCCESS or an error, logged.  Undone by bracket_cancel() or bracket_end().
 */
cl_int bracket_create(cl_command_queue queue, struct memobj *const *objs, size_t count,
		      unsigned int edges, struct bracket **bracket);

/* Schedules START for the time when a command with @wait could run. */
cl_int bracket_begin(struct bracket *b, cl_uint num_wait, const cl_event *wait);

/*
 * Whether START is on its way, or done.  A command that is enqueued now would not see later writes
 * of a device, of which the application may know.
 */
bool bracket_is_started(const struct bracket *b);

/* The wait list of a command of the bracket, of one event: the end of START. */
const cl_event *bracket_wait_list(const struct bracket *b);

/* Whether the bracket serves a kernel that uses @objs. */
bool bracket_admits(const struct bracket *b, struct memobj *const *objs, size_t count);

bool bracket_uses(const struct bracket *b, const struct import_region *region);

/* Room for one more event in bracket_add().  False: no memory. */
bool bracket_reserve(struct bracket *b);

/*
 * Adds a command as the bracket's last; bracket_reserve() made room.  Takes over the reference to
 * @command.
 */
void bracket_add(struct bracket *b, cl_event command);
bool bracket_is_empty(const struct bracket *b);

/**
 * bracket_end - the last command was added: schedules END
 * @marker: NULL, or set to a reference to the marker behind END.  Set to NULL if nothing has to be
 *	ended, or if the driver creates no marker: the commands are enqueued all the same.
 *
 * Gives the bracket up.
 */
void bracket_end(struct bracket *b, cl_event *marker);

/* Gives up a bracket without commands: if access has begun, it ends at once. */
void bracket_cancel(struct bracket *b);

#endif /* ICD_ACCESS_BRACKET_H */
