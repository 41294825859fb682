/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands that use dma-bufs, or imports that the device acquires.
 *
 *	struct access a;
 *
 *	access_none(&a, num_wait, wait, event);
 *	... memobj_list_add(&a.imports, mem) ...
 *	err = access_begin(&a, queue, edges);
 *	if (err)
 *		return err;
 *	err = next.clEnqueueX(queue, ..., a.num_wait, a.wait, a.event);
 *	return access_end(&a, err, blocking);
 *
 * The command gets a bracket (access/bracket.h).  Access begins when the command is free to run,
 * not when the command is enqueued.  Access has ended when the application's event completes, which
 * is the marker behind the bracket.  All work is done in callbacks: no call waits, no matter which
 * thread completes the wait list.  Consecutive kernels share a bracket (access/queue_bracket.h).
 *
 * Imports that a device acquires have no bracket: the method enqueues the acquire before the command
 * and the release behind it, whose event is the application's.  Each command acquires for itself, so
 * an application that knows nothing of acquiring does nothing wrong.  If the command fails, so does
 * the release, and the imports stay acquired until the next command that uses them.
 */
#ifndef ICD_ACCESS_ACCESS_H
#define ICD_ACCESS_ACCESS_H

#include "icd/access/bracket.h"
#include "icd/access/queue_bracket.h"
#include "icd/cl_compat.h"
#include "icd/objects/memobj.h"

struct access {
	/* The arguments for the driver's enqueue function. */
	cl_uint num_wait;
	const cl_event *wait;
	cl_event *event;

	struct memobj_list imports;   /* that the command uses; none: nothing is to be done */
	struct bracket *bracket;      /* or NULL: the imports are acquired */
	struct queue_bracket *joined; /* whose open bracket @bracket is; or NULL */
	cl_command_queue queue;
	cl_event *app_event;
	cl_event command;
	cl_event acquire;
};

/* A command that needs no bracket. */
static inline void access_none(struct access *a, cl_uint num_wait, const cl_event *wait,
			       cl_event *event)
{
	a->num_wait = num_wait;
	a->wait = wait;
	a->event = event;
	a->joined = NULL;
	a->imports.count = 0;
	a->imports.left_out = 0;
}

/**
 * access_begin - prepare a command on imports
 * @a: filled by access_none(), with the imports; changed if there are any
 * @edges: enum access_edges
 *
 * Returns CL_SUCCESS or an error; then the command must not be enqueued, and the imports are put.
 */
cl_int access_begin(struct access *a, cl_command_queue queue, unsigned int edges);

/* access_end() of a command on imports. */
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
	return a->imports.count || a->joined ? access_finish(a, err, blocking) : err;
}

#endif /* ICD_ACCESS_ACCESS_H */
