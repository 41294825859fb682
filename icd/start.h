/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The environment with which drivers were started: that of the process when the loader started the
 * layer.  Programs change the environment later.  Drivers read some variables early and some late, so
 * nobody knows with which variables the drivers of such a process work.
 *
 * The environment is looked at when the layer starts, and when a key of a result is made, and never in
 * calls of the application that need no key: a thread may be changing the environment.
 */
#ifndef ICD_START_H
#define ICD_START_H

#include <stdbool.h>

/* For clInitLayer(): keeps the environment as it is, once for the process. */
void start_note_environment(void);

/*
 * Whether the program has changed a variable that counts since the loader started the layer; true from
 * then on, and where there was no memory for a copy.  No result of such a process is of use for another.
 */
bool start_is_changed(void);

/* "NAME=VALUE" each, and NULL at the end: as noted, or as it was when a change was found. */
char **start_environment(void);

/* A sum over the variables of start_environment() by which drivers, and the layer, choose. */
unsigned long long start_sum(void);

/* The value of a variable; NULL: not set, or not for a privileged process. */
const char *start_variable(const char *name);

#endif /* ICD_START_H */
