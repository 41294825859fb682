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
 * A driver may report the extension for the device alone (PoCL 7), so the device is asked.
 */
#ifndef ICD_OBJECTS_EXTENSIONS_H
#define ICD_OBJECTS_EXTENSIONS_H

#include <stdbool.h>

#include "icd/intercept.h"
#include "icd/objects/handle_table.h"

/* A driver's functions; NULL: it has none.  Filled once for each platform, never freed. */
struct extensions {
	struct handle_record record;
#define EXTENSION(type, name, parameters) layer_##name##_fn name;
#include "icd/table.h"
};

/* How the commands of a command buffer are recorded. */
struct command_target {
	const struct extensions *driver; /* never NULL; without functions: no command buffer */
	bool properties;		 /* recording functions have a list of properties */
	bool arrays;			 /* clUpdateMutableCommandsKHR has arrays */
};

/* Of no driver, and where there is no memory. */
extern const struct extensions extensions_none;

/* The functions of a platform's driver.  Never NULL. */
const struct extensions *extensions_of_platform(cl_platform_id platform);

/* CL_SUCCESS, the driver's error for the queue, or CL_INVALID_COMMAND_QUEUE if @queue is NULL. */
cl_int extensions_of_queue(cl_command_queue queue, const struct extensions **driver);

/* The target of command buffers of a queue; without functions if the driver does not know it. */
struct command_target command_target_of_queue(cl_command_queue queue);

#endif /* ICD_OBJECTS_EXTENSIONS_H */
