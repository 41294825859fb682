/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads of climport, and the application's threads inside of climport.
 *
 * A thread of climport blocks all signals: the application's handlers run on the application's
 * threads, and signals for sigwait() stay the application's.
 *
 * A cancelled thread of the application ends where the thread would end without climport: a
 * function that calls a cancellation point of the C library (files, output, waiting) has
 * THREAD_NO_CANCEL() before the call.
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
