/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a program has restricted the program's own system calls, as browsers' workers do. */
#ifndef ICD_QUERIES_SANDBOX_H
#define ICD_QUERIES_SANDBOX_H

#include <stdbool.h>

/*
 * Whether the program was restricted after the layer was loaded.  A container's filter, with which
 * a process begins, allows the system calls of ordinary programs and is no such restriction.  Calls
 * prctl().  Reads a file of /proc if the process began with a filter and can add a filter without
 * further rights: with no_new_privs set, or privileged.
 */
bool sandbox_is_entered(void);

/* The number of filters of system calls of the process; before Linux 5.9, 1 for any number. */
long sandbox_filters(void);

#endif /* ICD_QUERIES_SANDBOX_H */
