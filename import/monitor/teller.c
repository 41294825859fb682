/* SPDX-License-Identifier: Apache-2.0 */
#include "import/monitor/teller.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "import/monitor/futex.h"
#include "import/monitor/threads.h"
#include "import/monitor/watches.h"
#include "util/lock.h"
#include "util/thread.h"

#define TELLER_EXIT_MS 1000
#define TELLER_LOOKS 10

static void teller_in_child(struct lock *lock) TSA(no_thread_safety_analysis);

LOCK_DEFINE_IN_CHILD(teller_lock, LOCK_LAST, teller_in_child); /* the three below */
static pthread_cond_t teller_changed = PTHREAD_COND_INITIALIZER;
static bool teller_is_telling GUARDED_BY(teller_lock);
static bool teller_is_stopped GUARDED_BY(teller_lock); /* the process exits, and its drivers do */

static atomic_bool teller_is_registered; /* the exit handler */
static _Atomic uint32_t teller_news;	 /* counts */
static _Atomic(monitor_told_fn) teller_told;

/* A thread that has a watch ends, perhaps as the last: seconds in which the teller looks. */
static atomic_int teller_looks;
static pthread_key_t teller_key;
static atomic_bool teller_has_key;

/* The thread is the parent's.  The child's drivers are younger than the parent's exit handler. */
static void teller_in_child(struct lock *lock)
{
	(void)lock;
	pthread_cond_init(&teller_changed, NULL);
	teller_is_telling = false;
	atomic_store(&teller_is_registered, false);
	atomic_store(&teller_looks, 0);
}

void teller_on_stale(monitor_told_fn told)
{
	atomic_store(&teller_told, told);
}

void teller_wake(void)
{
	atomic_fetch_add(&teller_news, 1);
	futex_wake(&teller_news);
}

static void teller_thread_ends(void *unused)
{
	(void)unused;
	atomic_store(&teller_looks, TELLER_LOOKS);
	teller_wake();
}

void teller_note_thread(void)
{
	if (atomic_load(&teller_has_key))
		pthread_setspecific(teller_key, &teller_key);
}

static bool teller_begin(void)
{
	bool may_tell;

	lock_acquire(&teller_lock);
	may_tell = teller_is_telling = !teller_is_stopped;
	lock_release(&teller_lock);
	return may_tell;
}

static void teller_end(void)
{
	lock_acquire(&teller_lock);
	teller_is_telling = false;
	pthread_cond_broadcast(&teller_changed);
	lock_release(&teller_lock);
}

static void teller_tell(uintptr_t start, uintptr_t end)
{
	monitor_told_fn told = atomic_load(&teller_told);

	if (!told || !teller_begin())
		return;
	told(start, end - start);
	teller_end();
}

/* The last thread of the program has ended: the C library would end the process. */
static void teller_look(void)
{
	if (!threads_has_first_ended())
		atomic_fetch_sub(&teller_looks, 1);
	else if (threads_are_alone())
		exit(0); /* NOLINT(concurrency-mt-unsafe): no other thread of the program */
}

static void teller_wait(uint32_t seen)
{
	const struct timespec second = { 1, 0 };
	bool is_looking = atomic_load(&teller_looks) > 0;

	futex_wait(&teller_news, seen, is_looking ? &second : NULL);
	if (is_looking && atomic_load(&teller_news) == seen)
		teller_look();
}

static void *teller_main(void *arg)
{
	(void)arg;
	thread_begin("climport-stale");
	for (;;) {
		uint32_t seen = atomic_load(&teller_news);
		uintptr_t start, end;

		while (watches_next_untold(&start, &end))
			teller_tell(start, end);
		teller_wait(seen);
	}
	return NULL;
}

/* An owner that is being told delays the exit by a second at most. */
static void teller_stop(void)
{
	const struct timespec limit = thread_time_in(TELLER_EXIT_MS);
	THREAD_NO_CANCEL();

	lock_acquire(&teller_lock);
	teller_is_stopped = true;
	while (teller_is_telling && !lock_wait(&teller_lock, &teller_changed, &limit))
		;
	lock_release(&teller_lock);
}

static int teller_register(void)
{
	if (atomic_exchange(&teller_is_registered, true) || !atexit(teller_stop))
		return 0;
	atomic_store(&teller_is_registered, false);
	return -ENOMEM;
}

int teller_start(void)
{
	pthread_t thread;
	int ret = teller_register();

	if (!atomic_load(&teller_has_key) && !pthread_key_create(&teller_key, teller_thread_ends))
		atomic_store(&teller_has_key, true);
	if (!ret)
		ret = threads_create(&thread, teller_main, NULL);
	if (!ret)
		pthread_detach(thread);
	return ret;
}
