/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads of the process that are not the application's, and what is not done to those that are.
 *
 * A thread of climport's own blocks all signals: a handler of the application runs on a thread that
 * the application knows, and a signal that it waits for by sigwait() is not taken away.
 *
 * A thread of the application's that is cancelled is cancelled where it would be without climport:
 * what calls a cancellation point of the C library on such a thread (files, output, waiting) has
 * THREAD_NO_CANCEL() before it.
 */
#ifndef UTIL_THREAD_H
#define UTIL_THREAD_H

#include <pthread.h>
#include <signal.h>
#include <time.h>

static inline int thread_cancel_disable(void)
{
	int before;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	return before;
}

static inline void thread_cancel_restore(const int *before)
{
	pthread_setcancelstate(*before, NULL);
}

/* A declaration: up to the end of the block the thread is not cancelled. */
#define THREAD_NO_CANCEL()  \
	const int no_cancel \
		__attribute__((cleanup(thread_cancel_restore), unused)) = thread_cancel_disable()

/* On CLOCK_MONOTONIC. */
static inline struct timespec thread_time_in(unsigned int ms)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	time.tv_nsec += ms * 1000000L;
	time.tv_sec += time.tv_nsec / 1000000000;
	time.tv_nsec %= 1000000000;
	return time;
}

/* Starts a detached thread; 0 or a positive errno. */
static inline int thread_start(void *(*run)(void *), void *arg)
{
	sigset_t all, before;
	pthread_t thread;
	int ret;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	ret = pthread_create(&thread, NULL, run, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!ret)
		pthread_detach(thread);
	return ret;
}

#endif /* UTIL_THREAD_H */
