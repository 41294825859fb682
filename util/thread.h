/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads of climport, and the application's threads inside of climport.
 *
 * A thread of climport works for the whole process, and any thread of the application may start it:
 * perhaps a thread that is bound to a busy processor, or runs in real time.  So no thread of climport
 * keeps the scheduling of its creator.
 *
 * A thread of climport blocks the signals that any thread can take: the application's handlers run on
 * the application's threads, and signals for sigwait() stay the application's.  The signals of faults
 * stay as in the thread that starts the thread: drivers call the application's functions on a thread
 * of climport, too, and the kernel ends a process whose thread blocks the signal of its own fault,
 * whatever the handler.  A program that blocks such a signal reads the signal by signalfd().
 *
 * A cancelled thread of the application ends where the thread would end without climport: a
 * function that calls a cancellation point of the C library (files, output, waiting) has
 * THREAD_NO_CANCEL() before the call.
 */
#ifndef UTIL_THREAD_H
#define UTIL_THREAD_H

#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <time.h>

#include "util/shared.h"

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

/* What a thread of climport blocks that the calling thread starts. */
static inline void thread_blocked_signals(sigset_t *blocked)
{
	static const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS };
	sigset_t now;

	pthread_sigmask(SIG_SETMASK, NULL, &now);
	sigfillset(blocked);
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		if (!sigismember(&now, faults[i]))
			sigdelset(blocked, faults[i]);
}

/*
 * Starts a thread with a stack of @stack bytes, or more where threads need more; 0: the usual size.
 * The caller joins or detaches the thread.  0; -EAGAIN: no memory, or no more threads; or another
 * negative errno.
 */
int thread_create(pthread_t *thread, size_t stack, void *(*run)(void *), void *arg);

/* Starts a detached thread with a stack of the usual size.  Returns as thread_create(). */
int thread_start(void *(*run)(void *), void *arg);

/* The first call of a thread of climport's: frees the thread from its creator's scheduling. */
void thread_begin(const char *name);

#endif /* UTIL_THREAD_H */
