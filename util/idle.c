/* SPDX-License-Identifier: Apache-2.0 */
#include "util/idle.h"

#include <limits.h>
#include <stdlib.h>
#include <time.h>

#include "util/lock.h"
#include "util/log.h"
#include "util/thread.h"

static void idle_in_child(struct lock *lock) TSA(no_thread_safety_analysis);

LOCK_DEFINE_IN_CHILD(idle_lock, LOCK_LAST, idle_in_child); /* all below */
static pthread_cond_t idle_changed = PTHREAD_COND_INITIALIZER;
static struct list watchers GUARDED_BY(idle_lock) = LIST_INIT(watchers);
static struct idle_watcher *ticking GUARDED_BY(idle_lock); /* whose tick runs; NULL: none */
static _Thread_local bool idle_is_this_thread;
static bool started GUARDED_BY(idle_lock);
static bool stopped GUARDED_BY(idle_lock); /* the process exits, and its drivers with it */

/* The watcher behind @w, the first for NULL; NULL: no more. */
static struct idle_watcher *idle_next(const struct idle_watcher *w) REQUIRES(idle_lock)
{
	struct list *link = w ? w->link.next : watchers.next;

	return link == &watchers ? NULL : container_of(link, struct idle_watcher, link);
}

/* The thread is the parent's, and so is the work of the watchers. */
static void idle_in_child(struct lock *lock)
{
	(void)lock;
	pthread_cond_init(&idle_changed, NULL);
	for (struct idle_watcher *w = idle_next(NULL); w; w = idle_next(w))
		w->watching = false;
	started = false;
	ticking = NULL;
}

static bool idle_any(void) REQUIRES(idle_lock)
{
	for (struct idle_watcher *w = idle_next(NULL); w; w = idle_next(w))
		if (w->watching)
			return !stopped;
	return false;
}

static long long idle_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

static void idle_tick(struct idle_watcher *w) REQUIRES(idle_lock)
{
	bool again;

	w->watching = false;
	w->due = idle_now() + w->period_ms;
	ticking = w;
	lock_release(&idle_lock);
	again = w->tick();
	lock_acquire(&idle_lock);
	ticking = NULL;
	w->ticks++;
	w->watching |= again;
	pthread_cond_broadcast(&idle_changed);
}

static long long idle_next_due(void) REQUIRES(idle_lock)
{
	long long due = LLONG_MAX;

	for (struct idle_watcher *w = idle_next(NULL); w; w = idle_next(w))
		if (w->watching && w->due < due)
			due = w->due;
	return due;
}

/*
 * Sleeps for a millisecond, or until a watcher is due or a new watcher may be due earlier.  The sleep
 * ends for idle_call().
 */
static void idle_sleep(void) REQUIRES(idle_lock)
{
	const struct timespec millisecond = thread_time_in(1);
	long long due = idle_next_due();
	struct timespec until = { due / 1000, due % 1000 * 1000000 };

	if (due > idle_now() + 1) {
		lock_wait(&idle_lock, &idle_changed, &until);
		return;
	}
	while (idle_next_due() && !lock_wait(&idle_lock, &idle_changed, &millisecond))
		;
}

static _Noreturn void *idle_run(void *unused)
{
	(void)unused;
	idle_is_this_thread = true;
	pthread_setname_np(pthread_self(), "climport-idle");
	lock_acquire(&idle_lock);
	for (;;) {
		while (!idle_any())
			lock_wait(&idle_lock, &idle_changed, NULL);
		idle_sleep();
		for (struct idle_watcher *w = idle_next(NULL); w; w = idle_next(w))
			if (w->watching && !stopped && w->due <= idle_now())
				idle_tick(w);
	}
}

/*
 * Drivers end in exit handlers that are older than idle_stop().  A driver that blocks the idle
 * thread delays the exit by a second at most.
 */
static void idle_stop(void)
{
	const struct timespec limit = thread_time_in(1000);

	lock_acquire(&idle_lock);
	stopped = true;
	while (ticking && !idle_is_this_thread && !lock_wait(&idle_lock, &idle_changed, &limit))
		;
	lock_release(&idle_lock);
}

static bool idle_start(void) REQUIRES(idle_lock)
{
	static bool registered, logged;
	int error;

	if (started)
		return true;
	if (!registered && atexit(idle_stop))
		return false;
	registered = true;
	error = thread_start(idle_run, NULL);
	if (error && !logged)
		log_errno(error, "cannot start the thread that calls drivers later");
	logged |= error != 0;
	if (error)
		return false;
	started = true;
	return true;
}

bool idle_watch(struct idle_watcher *watcher)
{
	bool ok;

	lock_acquire(&idle_lock);
	ok = idle_start();
	if (ok && !watcher->link.next)
		list_add(&watchers, &watcher->link);
	if (ok && !watcher->watching) {
		watcher->watching = true;
		watcher->due = idle_now() + watcher->period_ms;
		pthread_cond_broadcast(&idle_changed);
	}
	lock_release(&idle_lock);
	return ok;
}

static bool idle_will_tick(const struct idle_watcher *w) REQUIRES(idle_lock)
{
	return !stopped && (w->watching || ticking == w);
}

/*
 * A tick in progress began too early, perhaps: the next tick is the one to wait for.  The idle
 * thread, in a callback of a driver's, cannot wait for itself.
 */
void idle_call(struct idle_watcher *watcher, unsigned int ms)
{
	const struct timespec limit = thread_time_in(ms);
	unsigned long ticks;

	lock_acquire(&idle_lock);
	ticks = watcher->ticks + (ticking == watcher ? 2 : 1);
	while (watcher->ticks < ticks && idle_will_tick(watcher)) {
		watcher->due = 0;
		pthread_cond_broadcast(&idle_changed);
		if (idle_is_this_thread || lock_wait(&idle_lock, &idle_changed, &limit))
			break;
	}
	lock_release(&idle_lock);
}
