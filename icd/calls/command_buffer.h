/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cl_khr_command_buffer: recording of forbidden calls, and the imports that recorded kernels use.
 *
 * An application has a single address for a function whose parameters differ between versions:
 * command_functions.h.
 */
#ifndef ICD_CALLS_COMMAND_BUFFER_H
#define ICD_CALLS_COMMAND_BUFFER_H

/* The layer's function @name, or NULL. */
void *command_buffer_function(const char *name);

#endif /* ICD_CALLS_COMMAND_BUFFER_H */
