/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cl_khr_command_buffer: the forbidden calls when they are recorded, and the
 * imports that recorded kernels use.
 *
 * An application has one address for a function, whose parameters differ between versions:
 * command_functions.h.
 */
#ifndef ICD_CALLS_COMMAND_BUFFER_H
#define ICD_CALLS_COMMAND_BUFFER_H

#include <stdbool.h>

#include "icd/calls/command_functions.h"
#include "icd/calls/command_uses.h"
#include "icd/cl_compat.h"

/* This layer's function of that name, or NULL. */
void *command_buffer_function(const char *name);

/* The driver that made @buffer; without functions if it is no command buffer. */
struct command_target command_target_of(cl_command_buffer_khr buffer);

/* Commands of @buffer use these from now on; takes them over.  Returns the stamp that they got. */
unsigned long command_buffer_add(cl_command_buffer_khr buffer, struct command_use *uses);

/* Takes those out that @is_gone says; it is called with a lock held. */
void command_buffer_remove(cl_command_buffer_khr buffer,
			   bool (*is_gone)(const struct command_use *use, const void *data),
			   const void *data);

/* The end of a recording function: adds @uses, or drops them if the driver's answer is an error. */
cl_int command_buffer_recorded(cl_command_buffer_khr buffer, struct command_use *uses, cl_int err);

/* command_copy.c, command_update.c: this layer's function of that name, or NULL. */
void *command_copy_function(const char *name);
void *command_update_function(const char *name);

#endif /* ICD_CALLS_COMMAND_BUFFER_H */
