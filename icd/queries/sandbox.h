/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a program has restricted the system calls that it may make, as browsers' workers do. */
#ifndef ICD_QUERIES_SANDBOX_H
#define ICD_QUERIES_SANDBOX_H

#include <stdbool.h>

/*
 * Since the layer was loaded: a container's filter, which a process begins with, allows what
 * programs do and is no such restriction.  Calls prctl(); and reads a file of /proc in a process
 * that began with a filter and can add one as it is: with no_new_privs set, or privileged.
 */
bool sandbox_is_entered(void);

/* How many filters of system calls the process has now; before Linux 5.9 whether it has any. */
long sandbox_filters(void);

#endif /* ICD_QUERIES_SANDBOX_H */
