/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the host can hold back commands that are enqueued already.
 *
 * A command without a wait list runs when those before it in its queue are done.  Only a user
 * event, or a semaphore, lets the host write memory after the enqueue and before the command.
 * While there is none, what is to be done before the command can be done at its enqueue.
 */
#ifndef ICD_SELFTEST_USER_EVENT_H
#define ICD_SELFTEST_USER_EVENT_H

#include <stdbool.h>

/* User events of the application that have no status yet; those it released as well. */
bool user_events_pending(void);

/* From now on, always: the application has other ways. */
void user_events_assume_pending(void);

#endif
