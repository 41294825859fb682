/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The environment with which drivers were started: that of the process when the loader started the
 * layer.  Drivers change the environment later, some while devices are listed, and so do programs.
 *
 * A change that is there when a driver's call returns, and was not there when the call began, is the
 * driver's, and does not count.  Any other change is the program's: drivers read some variables
 * early and some late, so nobody knows with which variables the drivers of such a process work.
 */
#ifndef ICD_START_H
#define ICD_START_H

#include <stdbool.h>

struct _cl_icd_dispatch;

/* For clInitLayer(): keeps the environment as it is, once for the process. */
void start_note_environment(void);

/* For clInitLayer(): has the functions of @target watched in which drivers change the environment. */
void start_watch_drivers(struct _cl_icd_dispatch *target);

/*
 * Whether the program has changed a variable that counts since the loader started the layer; true from
 * then on, and where there was no memory for a copy.  No result of such a process is of use for another.
 */
bool start_is_changed(void);

/* "NAME=VALUE" each, and NULL at the end: as noted or, if the program has changed it, as it is now. */
char **start_environment(void);

/* A sum over the variables of start_environment() by which drivers, and the layer, choose. */
unsigned long long start_sum(void);

/* The value of a variable; NULL: not set, or not for a privileged process. */
const char *start_variable(const char *name);

#endif /* ICD_START_H */
