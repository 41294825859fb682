/* SPDX-License-Identifier: Apache-2.0 */
/* Command buffers of the application: how they record, and the imports that their commands use. */
#ifndef ICD_OBJECTS_COMMAND_BUFFER_H
#define ICD_OBJECTS_COMMAND_BUFFER_H

#include <stdbool.h>

#include "icd/cl_compat.h"
#include "icd/objects/extensions.h"
#include "icd/objects/memobj_list.h"

struct command_buffer;

/* Records a command buffer that the application is about to get.  False: no memory. */
bool command_buffer_add(cl_command_buffer_khr handle, const struct command_target *target,
			cl_command_queue queue);

/* The driver that made @handle; without functions if @handle is no command buffer. */
struct command_target command_target_of(cl_command_buffer_khr handle);

/* The application retains @handle. */
void command_buffer_retain(cl_command_buffer_khr handle);

/*
 * The application is about to release @handle.  Returns the record if the handle is the last, else NULL.
 * Ends with command_buffer_released().
 */
struct command_buffer *command_buffer_release(cl_command_buffer_khr handle);

/* @err: the driver's.  A release that the driver has refused is undone. */
void command_buffer_released(cl_command_buffer_khr handle, struct command_buffer *gone, cl_int err);

/**
 * command_buffer_use - commands of @handle may use @obj, until the command buffer ends
 * @obj: NULL, and an object without memobj_needs_access(), is left out
 *
 * Called before the driver records the command: an import that no command uses, because the driver has
 * refused, is bracketed for nothing.  Returns CL_SUCCESS or CL_OUT_OF_HOST_MEMORY, logged.
 */
cl_int command_buffer_use(cl_command_buffer_khr handle, struct memobj *obj);

/* The same for a memory object that may be an import. */
cl_int command_buffer_use_mem(cl_command_buffer_khr handle, cl_mem mem);

/**
 * command_buffer_imports - the imports that the commands of @handle use
 * @list: set also on failure; undone by memobj_list_put()
 * @queue: if NULL, set to the first queue that the command buffer was made for
 *
 * Returns CL_SUCCESS or CL_OUT_OF_HOST_MEMORY.
 */
cl_int command_buffer_imports(cl_command_buffer_khr handle, struct memobj_list *list,
			      cl_command_queue *queue);

#endif /* ICD_OBJECTS_COMMAND_BUFFER_H */
