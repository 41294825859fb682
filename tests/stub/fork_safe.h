/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the locks of the fake driver usable in a child of fork(). */
#ifndef TESTS_STUB_FORK_SAFE_H
#define TESTS_STUB_FORK_SAFE_H

#include <pthread.h>

/*
 * Takes the lock before each fork() and frees the lock afterwards.  @order, 101 or more, gives the
 * order of locks: a lock of higher order is taken before a lock of lower order.
 */
#define FORK_SAFE(mutex, order)                                              \
	static void mutex##_take(void)                                       \
	{                                                                    \
		pthread_mutex_lock(&(mutex));                                \
	}                                                                    \
	static void mutex##_give(void)                                       \
	{                                                                    \
		pthread_mutex_unlock(&(mutex));                              \
	}                                                                    \
	__attribute__((constructor(order))) static void mutex##_atfork(void) \
	{                                                                    \
		pthread_atfork(mutex##_take, mutex##_give, mutex##_give);    \
	}                                                                    \
	struct mutex##_is_fork_safe

#endif
