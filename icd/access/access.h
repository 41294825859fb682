/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands that use dma-bufs whose consistency the runtime keeps.
 *
 *	struct access a;
 *
 *	access_none(&a, num_wait, wait, event);
 *	err = access_begin(&a, ...);
 *	if (err)
 *		return err;
 *	err = next.clEnqueueX(queue, ..., a.num_wait, a.wait, a.event);
 *	return access_end(&a, err, blocking);
 *
 * The command gets a bracket (access/bracket.h), so that access begins when the command is free to
 * run, not when it is enqueued, and has ended when the application's event completes: that is the
 * marker behind the bracket.  Everything happens in callbacks: no call waits, whoever completes
 * the wait list.  Kernels in a row share one (access/queue_bracket.h).
 *
 * Memory that is refreshed and not synchronized has no end; where nothing can come between the
 * enqueue and the command, it is refreshed at once, without events.
 */
#ifndef ICD_ACCESS_ACCESS_H
#define ICD_ACCESS_ACCESS_H

#include "icd/access/bracket.h"
#include "icd/access/queue_bracket.h"
#include "icd/cl_compat.h"
#include "icd/objects/memobj.h"

struct access {
	/* What the command is to be enqueued with. */
	cl_uint num_wait;
	const cl_event *wait;
	cl_event *event;

	struct bracket *bracket;	   /* NULL: nothing to do */
	struct queue_bracket *queue;	   /* entered: @bracket is its open one; or NULL */
	struct import_region *invalidated; /* at the enqueue, held; or NULL */
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
	a->queue = NULL;
	a->invalidated = NULL;
}

/**
 * access_begin - prepare a command that uses imports
 * @a: filled by access_none(); changed if one of @objs needs a bracket
 * @objs: @count records, borrowed; NULL entries are skipped
 * @edges: enum access_edges
 *
 * Returns CL_SUCCESS or an error; then the command must not be enqueued.
 */
cl_int access_begin(struct access *a, cl_command_queue queue, struct memobj *const *objs,
		    size_t count, unsigned int edges);

/*
 * What a command that may block is to be enqueued with: a bracketed one does not block in the
 * driver, which might never wake up if the bracket fails; access_end() waits.
 */
static inline cl_bool access_blocking(const struct access *a, cl_bool blocking)
{
	return a->bracket ? CL_FALSE : blocking;
}

/* Gets ready for the next refresh, now that the command is on its way. */
void access_prepare(struct access *a);

/* The part of access_end() that is not inline. */
cl_int access_finish(struct access *a, cl_int err, cl_bool blocking);

/**
 * access_end - complete what access_begin() prepared
 * @err: what the enqueue returned
 * @blocking: wait until access has ended
 *
 * Returns @err; CL_SUCCESS, the application's event is set then; or
 * CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST if @blocking and the command has failed.
 */
static inline cl_int access_end(struct access *a, cl_int err, cl_bool blocking)
{
	if (a->invalidated)
		access_prepare(a);
	return a->bracket ? access_finish(a, err, blocking) : err;
}

#endif /* ICD_ACCESS_ACCESS_H */
