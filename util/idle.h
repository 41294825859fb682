/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The idle thread calls the ticks of tasks, each millisecond or less often, while a task
 * is wanted: to close rows of kernels, to look after commands that are overdue, to do what a callback
 * of the driver's may not, and to give up what nobody uses.  The process has at most one idle thread,
 * libclimport's: from the first idle_request() or idle_prepare() on, as long as a task is wanted or a
 * thread lives that has called one of the two.
 *
 * A tick calls drivers, which may block in an enqueue until earlier commands are done.  Such
 * commands may wait for fences, so the idle thread cannot wait for these.
 */
#ifndef UTIL_IDLE_H
#define UTIL_IDLE_H

#include <stdbool.h>

#include "util/list.h"
#include "util/shared.h"

/* Static storage. */
struct idle_task {
	bool (*tick)(void);	/* returns whether a next tick is needed */
	unsigned int period_ms; /* 0: at once */
	bool is_wanted;		/* idle.c's, as all below */
	long long due;		/* milliseconds */
	unsigned long ticks;	/* that have ended */
	struct list link;	/* next is NULL before the first idle_request() */
};

/**
 * idle_request - have a task's tick called on the idle thread
 *
 * The first call comes within the period.  When the process exits, ticks that are still to come are
 * called once before drivers end, and no tick later.
 *
 * Returns false, logged once, if the thread cannot be started: the call comes after the next
 * idle_request() or idle_prepare() that can start the thread.
 */
bool idle_request(struct idle_task *task);

/**
 * idle_prepare - start the idle thread where an error can still be answered
 *
 * A program that restricts its system calls afterwards needs no new thread.
 *
 * Returns 0, or -EAGAIN, logged.
 */
int idle_prepare(void);

/*
 * Has the tick of a task called now.  Waits for the end of the tick, @ms at most: the tick may
 * wait for the caller.  On the idle thread, in a tick, there is no wait.
 */
void idle_call(struct idle_task *task, unsigned int ms);

/* False: the thread could not be started, or the process exits: nothing calls ticks. */
bool idle_is_running(void);

#endif /* UTIL_IDLE_H */
