/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cl_khr_command_buffer: the forbidden calls when they are recorded, and the
 * imports that recorded kernels use.
 *
 * An application has one address for a function, whose parameters differ between versions:
 * command_functions.h.
 */
#ifndef ICD_COMMAND_BUFFER_H
#define ICD_COMMAND_BUFFER_H

#include <stdbool.h>

#include "cl_compat.h"
#include "command_functions.h"

/* This layer's function of that name, or NULL. */
void *command_buffer_function(const char *name);

/* The driver that made @buffer; without functions if it is no command buffer. */
struct command_target command_target_of(cl_command_buffer_khr buffer);

/* Remembers that a command of @buffer uses these; NULL and objects without a bracket are skipped. */
cl_int command_buffer_use(cl_command_buffer_khr buffer, cl_mem first, cl_mem second);

/* command_copy.c, command_update.c: this layer's function of that name, or NULL. */
void *command_copy_function(const char *name);
void *command_update_function(const char *name);

#endif /* ICD_COMMAND_BUFFER_H */
