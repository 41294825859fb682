/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ICD_CALLS_COMMAND_UPDATE_H
#define ICD_CALLS_COMMAND_UPDATE_H

/* The layer's function @name of command_update.c, or NULL. */
void *command_update_function(const char *name);

#endif /* ICD_CALLS_COMMAND_UPDATE_H */
