/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which process this is.
 *
 * Contexts of kernel modules and drivers belong to one process, and a child inherits the memory
 * that describes them.  getpid() does not tell a child from its parent: in two PID namespaces both
 * may be process 1.  Here a page tells, which the kernel empties in every child (MADV_WIPEONFORK),
 * also where no handler of fork() runs.
 */
#ifndef UTIL_PROCESS_H
#define UTIL_PROCESS_H

#include <stdint.h>

/* A number that no process has in common with its ancestors; never 0.  A load. */
uint32_t process_generation(void);

/* A page of zeros, in every child as well, for as long as the process lives; NULL: there is none. */
void *process_create_page(void);

/* In a child, by fork.c: the next number, where the kernel empties no page. */
void process_forked(void);

#endif
