/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A driver's functions of extensions that the layer calls, and how the functions of
 * cl_khr_command_buffer take their parameters.
 *
 * The functions are found by address alone, so the types of the driver's headers count:
 *
 *	from cl_khr_command_buffer 0.9.5 on
 *		recording functions have a list of properties as third parameter
 *	from cl_khr_command_buffer_mutable_dispatch 0.9.2 on
 *		clUpdateMutableCommandsKHR has arrays instead of a chain of structures
 *
 * A driver may report the extension for the device alone (PoCL 7), so the device is asked, and
 * the platform where the device does not tell.
 */
#ifndef ICD_OBJECTS_COMMAND_FUNCTIONS_H
#define ICD_OBJECTS_COMMAND_FUNCTIONS_H

#include <stdbool.h>

#include "icd/cl_compat.h"
#include "icd/objects/handle_table.h"

/* A driver's functions.  Filled once for each platform, never freed. */
struct command_functions {
	struct handle_record record;
	void *create, *retain, *release, *enqueue, *remap, *ndrange_kernel, *update;
	void *copy_buffer, *copy_buffer_rect, *copy_buffer_to_image, *copy_image,
		*copy_image_to_buffer;
	void *fill_buffer, *fill_image;
	void *count_kernel, *blocking_free;	   /* of Intel's extensions */
	void *acquire_external, *release_external; /* of cl_khr_external_memory */
};

/* How the commands of a command buffer are recorded. */
struct command_target {
	const struct command_functions *functions; /* NULL: no command buffer */
	bool properties; /* recording functions have a list of properties */
	bool arrays;	 /* clUpdateMutableCommandsKHR has arrays */
};

/* The functions of a platform; each may be NULL.  NULL: no memory. */
const struct command_functions *command_functions_get(cl_platform_id platform);

/* The functions of a queue's platform, or the driver's error for the queue. */
cl_int command_functions_of_queue(cl_command_queue queue,
				  const struct command_functions **functions);

/**
 * command_target_find - for command buffers of a queue
 * @target: set on success; with functions, of which each may be NULL
 *
 * Returns CL_SUCCESS, CL_INVALID_COMMAND_QUEUE if @queue is NULL or the driver does not know it,
 * or CL_OUT_OF_HOST_MEMORY.
 */
cl_int command_target_find(cl_command_queue queue, struct command_target *target);

#endif /* ICD_OBJECTS_COMMAND_FUNCTIONS_H */
