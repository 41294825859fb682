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

#include "icd/objects/command_buffer.h"

/* This layer's function of that name, or NULL. */
void *command_buffer_function(const char *name);

/* command_copy.c, command_update.c: this layer's function of that name, or NULL. */
void *command_copy_function(const char *name);
void *command_update_function(const char *name);

#endif /* ICD_CALLS_COMMAND_BUFFER_H */
