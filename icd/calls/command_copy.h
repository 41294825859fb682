/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ICD_CALLS_COMMAND_COPY_H
#define ICD_CALLS_COMMAND_COPY_H

/* The layer's function @name of command_copy.c, or NULL. */
void *command_copy_function(const char *name);

#endif /* ICD_CALLS_COMMAND_COPY_H */
