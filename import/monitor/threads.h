/* SPDX-License-Identifier: Apache-2.0 */
/* The monitor's threads, and the other threads of the process. */
#ifndef IMPORT_MONITOR_THREADS_H
#define IMPORT_MONITOR_THREADS_H

#include <pthread.h>
#include <stdbool.h>

/*
 * A thread that can be joined, with a small stack, since mlockall() takes all of a stack.  0; -ENOMEM:
 * no memory, or no more threads; or another errno.
 */
int threads_create(pthread_t *thread, void *(*run)(void *), void *arg);

/*
 * Whether the process's first thread has ended, and whether all others are climport's, by their
 * names.  False in a process that has restricted its system calls: both read files of /proc.
 */
bool threads_has_first_ended(void);
bool threads_are_alone(void);

#endif
