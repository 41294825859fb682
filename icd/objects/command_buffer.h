/* SPDX-License-Identifier: Apache-2.0 */
/* Command buffers of the application: which driver has them, and how it records. */
#ifndef ICD_OBJECTS_COMMAND_BUFFER_H
#define ICD_OBJECTS_COMMAND_BUFFER_H

#include <stdbool.h>

#include "icd/cl_compat.h"
#include "icd/objects/extensions.h"

/* Records a command buffer that the application is about to get.  False: no memory. */
bool command_buffer_add(cl_command_buffer_khr handle, const struct command_target *target);

/* The driver that made @handle; without functions if @handle is no command buffer. */
struct command_target command_target_of(cl_command_buffer_khr handle);

/* The application has retained @handle, or is about to release it. */
void command_buffer_retain(cl_command_buffer_khr handle);
void command_buffer_release(cl_command_buffer_khr handle);

#endif /* ICD_OBJECTS_COMMAND_BUFFER_H */
