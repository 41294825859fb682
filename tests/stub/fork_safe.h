/* SPDX-License-Identifier: Apache-2.0 */
/* A driver whose locks are free in a child of fork(). */
#ifndef TESTS_STUB_FORK_SAFE_H
#define TESTS_STUB_FORK_SAFE_H

#include <pthread.h>

/* @order, 101 or more: locks of a higher one may be held when this is taken. */
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
