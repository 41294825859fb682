/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Imports that a device has to acquire before a command uses them, and to release behind.
 *
 *	acquire (application's wait list)
 *	command (acquire)
 *	release (command)
 *
 * If the command fails, so does the release: the imports stay acquired until the next command that
 * uses them.
 *
 * The application's event is the release, which answers as if it were the command
 * (objects/proxy_event.h).  Each command acquires for itself, so an application that knows nothing of
 * acquiring does nothing wrong.
 */
#ifndef ICD_ACCESS_ACQUIRED_H
#define ICD_ACCESS_ACQUIRED_H

#include <stdbool.h>

#include "icd/cl_compat.h"
#include "icd/objects/memobj.h"

struct acquired;

/**
 * acquired_begin - acquire what a command is to use
 * @objs: @count records, borrowed; NULL, and objects without need, are skipped
 * @acquired: set to NULL if nothing has to be acquired
 *
 * Returns CL_SUCCESS; or the driver's error, or CL_OUT_OF_HOST_MEMORY: then nothing is acquired.
 */
cl_int acquired_begin(cl_command_queue queue, struct memobj *const *objs, size_t count,
		      cl_uint num_wait, const cl_event *wait, struct acquired **acquired);

/* The wait list of the command. */
const cl_event *acquired_wait_list(const struct acquired *a);

/* Where the driver is to put the command's event. */
cl_event *acquired_command(struct acquired *a);

/* No command was enqueued. */
void acquired_cancel(struct acquired *a);

/**
 * acquired_end - release behind the command
 * @event: the application's event; NULL: none
 * @blocking: wait until the release has run
 *
 * Returns CL_SUCCESS; or CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST if @blocking and the command
 * has failed.
 */
cl_int acquired_end(struct acquired *a, cl_event *event, cl_bool blocking);

#endif /* ICD_ACCESS_ACQUIRED_H */
