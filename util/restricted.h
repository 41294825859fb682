/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the process has restricted its own system calls since climport was loaded. */
#ifndef UTIL_RESTRICTED_H
#define UTIL_RESTRICTED_H

#include <stdbool.h>

/*
 * A filter that the process began with is a container's, and refuses a system call with an error.
 * A filter that was entered later may end the process instead.  Calls prctl(2), and reads a file
 * of /proc if the process began with a filter.
 */
bool restricted_is_entered(void);

#endif
