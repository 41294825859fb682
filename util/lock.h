/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A mutex for clang's -Wthread-safety, and for fork() (util/fork.h).
 *
 * fork() copies a process with one thread.  If a second thread holds a mutex at the moment of
 * fork(), the mutex stays locked in the child for ever, over data that is half written.  So a
 * thread that forks keeps other threads from taking locks, and waits for the owners of locks
 * (fork.c).  The macros and functions below, which register each lock, are the only ways to make a
 * lock.
 *
 * Rules that keep fork() and the program from a deadlock:
 *
 * - A thread may take a lock while holding locks of a lower rank, never of an equal rank.
 * - No lock is held across a call into a driver, the dynamic loader or the application: each may
 *   fork (cuInit() does), or have a lock that the fork handler of the callee holds already.
 * - No cancellation point is reached with a lock: THREAD_NO_CANCEL() comes before the lock.
 * - lock_wait() alone waits for a condition of a lock.
 */
#ifndef UTIL_LOCK_H
#define UTIL_LOCK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#include "util/shared.h"

#ifdef __clang__
#define TSA(x) __attribute__((x))
#else
#define TSA(x)
#endif

#define GUARDED_BY(lock) TSA(guarded_by(lock))
#define REQUIRES(lock) TSA(requires_capability(lock))
#define EXCLUDES(lock) TSA(locks_excluded(lock))

enum lock_rank {
	LOCK_OUTER, /* a lock of rank LOCK_LAST may follow */
	LOCK_LAST,
	LOCK_RANKS,
};

struct TSA(capability("mutex")) lock {
	pthread_mutex_t mutex;
	enum lock_rank rank;
	/* Called in a child, which has one thread: puts right the data of the parent's threads. */
	void (*in_child)(struct lock *lock);
	struct lock *next; /* fork.c's */
};

/* Makes an initialized lock known to fork().  Holds no lock of a rank. */
void lock_register(struct lock *lock);
void lock_unregister(struct lock *lock);

/* A lock of one source file. */
#define LOCK_DEFINE(name, rank) LOCK_DEFINE_IN_CHILD(name, rank, NULL)
#define LOCK_DEFINE_IN_CHILD(name, lock_rank, child)                   \
	static struct lock name = {                                    \
		.mutex = PTHREAD_MUTEX_INITIALIZER,                    \
		.rank = (lock_rank),                                   \
		.in_child = (child),                                   \
	};                                                             \
	__attribute__((constructor)) static void name##_register(void) \
	{                                                              \
		lock_register(&(name));                                \
	}                                                              \
	static struct lock name

/* A lock in an object: lock_destroy() comes before the object's memory goes. */
static inline void lock_init(struct lock *l, enum lock_rank rank, void (*in_child)(struct lock *l))
{
	pthread_mutex_init(&l->mutex, NULL);
	l->rank = rank;
	l->in_child = in_child;
	lock_register(l);
}

static inline void lock_destroy(struct lock *l)
{
	lock_unregister(l);
	pthread_mutex_destroy(&l->mutex);
}

static inline void lock_acquire(struct lock *l) TSA(acquire_capability(*l))
	TSA(no_thread_safety_analysis);
static inline void lock_release(struct lock *l) TSA(release_capability(*l))
	TSA(no_thread_safety_analysis);

/**
 * lock_wait - wait for a change of the data of a lock, as pthread_cond_clockwait() does
 * @until: on CLOCK_MONOTONIC; NULL: without a limit
 *
 * Returns 0, ETIMEDOUT, or EDEADLK at once for a thread that forks: the waking thread may wait for
 * the end of the fork, and a child has no waking thread.  No cancellation point.
 */
int lock_wait(struct lock *l, pthread_cond_t *changed, const struct timespec *until) REQUIRES(*l);

/*
 * A thread's state for fork().  Initial-exec: a signal handler that forks must not be the first to
 * allocate the state.
 */
struct lock_thread {
	unsigned int held; /* locks of the thread, with the lock that the thread is about to take */
	unsigned int forks; /* calls of fork() in progress: a handler of a fork may fork */
	unsigned int blind; /* the first of @forks in which the thread takes no locks, or 0 */
};

extern _Thread_local struct lock_thread lock_thread __attribute__((tls_model("initial-exec")));

/* 0: open to all. */
extern atomic_int lock_gate;

/* fork.c: in fork(), or at the gate. */
void lock_acquire_in_fork(struct lock *l);

static inline bool lock_is_fork(void)
{
	return __builtin_expect(atomic_load_explicit(&lock_gate, memory_order_relaxed) != 0 ||
					lock_thread.forks,
				0);
}

/* The count comes first: a signal handler that forks in between then waits for no thread. */
static inline void lock_acquire(struct lock *l)
{
	lock_thread.held++;
	if (!lock_is_fork()) {
		pthread_mutex_lock(&l->mutex);
		if (!lock_is_fork()) /* fork.c closes the gate before waiting for mutexes */
			return;
		pthread_mutex_unlock(&l->mutex);
	}
	lock_acquire_in_fork(l);
}

static inline void lock_release(struct lock *l)
{
	if (!lock_thread.blind)
		pthread_mutex_unlock(&l->mutex);
	lock_thread.held--;
}

#endif /* UTIL_LOCK_H */
