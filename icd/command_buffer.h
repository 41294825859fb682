/* SPDX-License-Identifier: Apache-2.0 */
/* cl_khr_command_buffer: the forbidden calls that are recorded, and imports that a recorded kernel uses. */
#ifndef ICD_COMMAND_BUFFER_H
#define ICD_COMMAND_BUFFER_H

/* This layer's function of that name, or NULL. */
void *command_buffer_function(const char *name);

#endif /* ICD_COMMAND_BUFFER_H */
