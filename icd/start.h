/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The environment with which drivers were started: that of the process when the loader started the
 * layer.  Drivers change the environment later, some while devices are listed, and so do programs.
 */
#ifndef ICD_START_H
#define ICD_START_H

/* For clInitLayer(): keeps the environment as it is, once for the process. */
void start_note_environment(void);

/* "NAME=VALUE" each, and NULL at the end.  Without memory for a copy: the environment as it is now. */
char **start_environment(void);

/* The value of a variable; NULL: not set, or not for a privileged process. */
const char *start_variable(const char *name);

#endif /* ICD_START_H */
