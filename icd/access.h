/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands that use dma-bufs whose consistency the runtime keeps.
 *
 *	struct access a;
 *
 *	err = access_begin(&a, ...);
 *	if (err)
 *		return err;
 *	err = next.clEnqueueX(queue, ..., a.num_wait, a.wait, a.event);
 *	return access_end(&a, err);
 *
 * On the queue this becomes
 *
 *	marker(the application's wait list) -> begin -> user event "gate"
 *	command(gate) -> end -> user event "ended"
 *	marker(ended), which is the event that the application gets
 *
 * (on an out-of-order queue a migration that moves nothing stands for each marker)
 *
 * Memory that is refreshed and not synchronized has no end; where nothing can come between the
 * enqueue and the command, it is refreshed at once, without events.
 *
 * so that access begins when the command is free to run, not when it is
 * enqueued, and has ended when the application's event completes.  Everything
 * happens in callbacks: no call waits, whoever completes the wait list.
 */
#ifndef ICD_ACCESS_H
#define ICD_ACCESS_H

#include "cl_compat.h"
#include "memobj.h"

struct bracket;

enum access_edges {
	ACCESS_BEGIN = 1 << 0,
	ACCESS_END = 1 << 1,
	ACCESS_BOTH = ACCESS_BEGIN | ACCESS_END,
	ACCESS_BY_HOST =
		1 << 2, /* whatever the memory permits, not what its flags say of kernels */
};

struct access {
	/* What the command is to be enqueued with. */
	cl_uint num_wait;
	const cl_event *wait;
	cl_event *event;

	struct bracket *bracket; /* NULL: nothing to do */
	cl_command_queue queue;
	cl_mem mem;			 /* one of the imports */
	bool by_marker;			 /* the driver's markers wait for their list on any queue */
	struct import_region *refreshed; /* at the enqueue, held; or NULL */
	cl_event *app_event;
	cl_event command;
};

/* A command that uses no such import. */
static inline void access_none(struct access *a, cl_uint num_wait, const cl_event *wait,
			       cl_event *event)
{
	a->num_wait = num_wait;
	a->wait = wait;
	a->event = event;
	a->bracket = NULL;
	a->refreshed = NULL;
}

/**
 * access_begin - prepare a command that uses imports
 * @a: filled by access_none(); changed if one of @objs needs a bracket
 * @objs: @count records, borrowed; NULL entries are skipped
 *
 * Returns CL_SUCCESS or an error; then the command must not be enqueued.
 */
cl_int access_begin(struct access *a, cl_command_queue queue, struct memobj *const *objs,
		    size_t count, unsigned int edges);

/* Gets ready for the next refresh, now that the command is on its way. */
void access_prepare(struct access *a);

/* The part of access_end() that is not inline. */
cl_int access_finish(struct access *a, cl_int err, cl_bool blocking);

/**
 * access_end - complete what access_begin() prepared
 * @err: what the enqueue returned
 * @blocking: wait until access has ended
 *
 * Returns @err, or CL_SUCCESS.  The application's event is set on success.
 */
static inline cl_int access_end(struct access *a, cl_int err, cl_bool blocking)
{
	if (a->refreshed)
		access_prepare(a);
	return a->bracket ? access_finish(a, err, blocking) : err;
}

#endif /* ICD_ACCESS_H */
