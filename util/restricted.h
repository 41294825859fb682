/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a program has restricted its own system calls, as browsers' workers do.
 *
 * A container's filter, with which a process begins, allows the system calls of ordinary programs and
 * refuses others with an error.  A filter that a program enters later may end the process instead.
 */
#ifndef UTIL_RESTRICTED_H
#define UTIL_RESTRICTED_H

#include <stdbool.h>

#include "util/shared.h"

/*
 * Whether the program was restricted after climport was loaded.  Calls prctl().  Reads a file of
 * /proc if the process began with a filter and can add a filter without further rights: with
 * no_new_privs set, or privileged.
 */
bool restricted_is_entered(void);

/* The number of filters of system calls of the process; before Linux 5.9, 1 for any number. */
long restricted_filters(void);

#endif
