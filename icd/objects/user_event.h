/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the host can hold back commands that are enqueued already.
 *
 * A command without a wait list runs when the commands before it in its queue are done.  Only a
 * user event, or a semaphore, lets the host write memory after the enqueue and before the command.
 * While the application has neither, work that must precede the command can be done at the enqueue.
 */
#ifndef ICD_OBJECTS_USER_EVENT_H
#define ICD_OBJECTS_USER_EVENT_H

#include <stdatomic.h>
#include <stdbool.h>

/* User events of the application without a status, released events included. */
extern atomic_uint user_event_count;

static inline bool user_event_is_pending(void)
{
	return atomic_load_explicit(&user_event_count, memory_order_relaxed) != 0;
}

static inline void user_event_add(void)
{
	atomic_fetch_add_explicit(&user_event_count, 1, memory_order_relaxed);
}

static inline void user_event_remove(void)
{
	atomic_fetch_sub_explicit(&user_event_count, 1, memory_order_relaxed);
}

#endif /* ICD_OBJECTS_USER_EVENT_H */
