/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The threads of the monitor: all signals blocked, and a small stack, since mlockall() takes all of
 * a stack.  No thread of the monitor runs in real time, though its creator may.
 */
#ifndef IMPORT_MONITOR_THREADS_H
#define IMPORT_MONITOR_THREADS_H

#include <pthread.h>
#include <stdbool.h>

/* A thread that can be joined.  0; -ENOMEM: no memory, or no more threads; or another errno. */
int threads_create(pthread_t *thread, void *(*run)(void *), void *arg);

/*
 * Frees the calling thread from the processors and the nice value of its creator, as far as the
 * system permits.  A filter with which the process began may end a process for such a system call:
 * there, the thread stays as its creator.
 */
void threads_unbind(void);

/*
 * Whether the process's first thread has ended, and whether all others are climport's, by their
 * names.  False in a process that has restricted its system calls: both read files of /proc.
 */
bool threads_has_first_ended(void);
bool threads_are_alone(void);

#endif
