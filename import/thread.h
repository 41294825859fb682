/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads of the process that are not the application's.
 *
 * Such a thread blocks all signals: a handler of the application runs on a thread that the
 * application knows, and a signal that it waits for by sigwait() is not taken away.
 */
#ifndef IMPORT_THREAD_H
#define IMPORT_THREAD_H

#include <pthread.h>
#include <signal.h>

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

#endif /* IMPORT_THREAD_H */
