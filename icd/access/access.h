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
 * The command gets a bracket (access/bracket.h).  Access begins when the command is free to run,
 * not when the command is enqueued.  Access has ended when the application's event completes, which
 * is the marker behind the bracket.  All work is done in callbacks: no call waits, no matter which
 * thread completes the wait list.  Kernels in a row share a bracket (access/queue_bracket.h).
 *
 * Some imports are acquired before the command and released behind, outside of the bracket
 * (access/acquired.h).
 */
#ifndef ICD_ACCESS_ACCESS_H
#define ICD_ACCESS_ACCESS_H

#include "icd/access/acquired.h"
#include "icd/access/bracket.h"
#include "icd/access/queue_bracket.h"
#include "icd/cl_compat.h"
#include "icd/objects/memobj.h"

struct access {
	/* The arguments for the driver's enqueue function. */
	cl_uint num_wait;
	const cl_event *wait;
	cl_event *event;

	struct bracket *bracket;     /* NULL: no bracket */
	struct queue_bracket *queue; /* entered: @bracket is the queue's open bracket; or NULL */
	cl_event *app_event;
	cl_event command;
	struct acquired *acquired; /* NULL: nothing was acquired; never with a bracket */
};

/* A command that needs no bracket. */
static inline void access_none(struct access *a, cl_uint num_wait, const cl_event *wait,
			       cl_event *event)
{
	a->num_wait = num_wait;
	a->wait = wait;
	a->event = event;
	a->bracket = NULL;
	a->queue = NULL;
	a->acquired = NULL;
}

/**
 * access_begin - prepare a command on imports
 * @a: filled by access_none(); changed if an object needs a bracket
 * @objs: @count records, borrowed; NULL entries are skipped
 * @edges: enum access_edges; ACCESS_BY_HOST: @objs are the object that is read and the object that is written
 *
 * Returns CL_SUCCESS or an error; then the command must not be enqueued.
 */
cl_int access_begin(struct access *a, cl_command_queue queue, struct memobj *const *objs,
		    size_t count, unsigned int edges);

/*
 * The "blocking" argument for the driver.  A bracketed command does not block in the driver, which
 * might never wake up if the bracket fails; access_end() waits.
 */
static inline cl_bool access_blocking(const struct access *a, cl_bool blocking)
{
	return a->bracket || a->acquired ? CL_FALSE : blocking;
}

/* access_end() of a bracketed command, and of a command with acquired imports. */
cl_int access_finish(struct access *a, cl_int err, cl_bool blocking);
cl_int access_release(struct access *a, cl_int err, cl_bool blocking);

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
	if (a->bracket)
		return access_finish(a, err, blocking);
	return a->acquired ? access_release(a, err, blocking) : err;
}

/*
 * A command that only waits for its list: a marker; or, on an out-of-order queue where markers may not wait, a migration of
 * @obj, which moves nothing.  @obj: or NULL, for a marker.
 */
cl_int access_enqueue_wait(cl_command_queue queue, const struct memobj *obj, cl_uint num_wait,
			   const cl_event *wait, cl_event *event);

#endif /* ICD_ACCESS_ACCESS_H */
