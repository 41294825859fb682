/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The environment by which drivers, and the layer, choose devices and ways of work, when the loader loaded the
 * layer.  Programs change the environment later.  Drivers read some variables early and some late, so
 * nobody knows with which variables the drivers of such a process work.
 *
 * The environment is looked at when the layer is loaded, and when a key of a record is made, and never in
 * calls of the application that need no key: a thread may be changing the environment.
 */
#ifndef ICD_START_H
#define ICD_START_H

#include <stdbool.h>

/*
 * Whether the program has changed a variable that counts since the layer was loaded; true from
 * then on.  No kept record is of use for such a process.
 */
bool start_is_changed(void);

/* A sum over the variables that count. */
unsigned long long start_sum(void);

/*
 * Whether a variable preloads the runtime of a sanitizer or of valgrind.  They watch a program, may not start behind
 * another, and would end a probe process for faults of the driver that the program survives.
 */
bool start_is_watcher(const char *variable);

#endif /* ICD_START_H */
