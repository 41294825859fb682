/* SPDX-License-Identifier: Apache-2.0 */
/* Commands of the application's with which the driver has nothing to do. */
#ifndef ICD_CALLS_NOTHING_H
#define ICD_CALLS_NOTHING_H

#include "icd/cl_compat.h"

/*
 * A marker in the place of a command: @event, which may be NULL, has the command's type.
 * Returns the driver's error.
 */
cl_int nothing_enqueue(cl_command_type type, cl_command_queue queue, cl_uint num_wait,
		       const cl_event *wait, cl_event *event);

/* The same, and waits for the marker.  An error is of the commands that the marker waits for, too. */
cl_int nothing_enqueue_and_wait(cl_command_type type, cl_command_queue queue, cl_uint num_wait,
				const cl_event *wait, cl_event *event);

#endif /* ICD_CALLS_NOTHING_H */
