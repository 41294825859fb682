/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All locks of the process, those of libclimport and of the layer.
 *
 * What a child of fork() may rely on: every lock is free, and what locks protect is whole.  The
 * thread that forks closes a gate, so that no other takes a lock until the fork is over, and waits
 * for those that have one.  In two cases the child may find a list half written instead:
 *
 * - One side has waited PATIENCE_MS.  Threads at the gate go on then, as a fork handler of the
 *   application may wait for them; so does the fork, as the owner of a lock may wait for its
 *   thread.  A program that stands still would be worse than a child of it, which mostly execs.
 * - A signal handler forks in the middle of a call of ours.  That fork waits for nobody, for its
 *   own thread has the lock.  The child may go on with the call; nothing else is put right there.
 *
 * Handlers of the application that are older than ours run inside of ours, and may call OpenCL or
 * fork.  No lock is held while they run.  They take locks as ever: in a child after it was put
 * right, in the fork of a signal handler none at all.
 *
 * vfork() and posix_spawn() run no handlers, and their children call nothing of ours.
 */
#include "util/lock.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util/process.h"
#include "util/thread.h"

#define PATIENCE_MS 100
#define SLICE_MS 10 /* a time in which the whole process is stopped counts as one */
#define TRY_US 100

static pthread_mutex_t list_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct lock *list;

_Thread_local struct lock_thread lock_thread;
atomic_int lock_gate;

static atomic_uint fork_parent, fork_child; /* generations of processes */

/*
 * The gate is no mutex and no condition, whose insides a signal handler that forks could find in
 * use.  This is what it holds: its owner, and how many ranks are behind it, from the lowest.
 */
static int gate_value(int ranks)
{
	return gettid() << 2 | ranks;
}

static bool gate_is_open(enum lock_rank rank)
{
	return (int)rank >= (atomic_load(&lock_gate) & 3);
}

static void gate_open(int value)
{
	if (atomic_compare_exchange_strong(&lock_gate, &value, 0))
		syscall(SYS_futex, &lock_gate, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

/* While the gate is half closed, it is the owners of locks that the fork waits for. */
static void gate_wait(enum lock_rank rank)
{
	struct timespec until = thread_time_in(SLICE_MS);
	int patience = 10 * PATIENCE_MS / SLICE_MS, saved = errno;

	while (!gate_is_open(rank)) {
		int value = atomic_load(&lock_gate);

		if (!syscall(SYS_futex, &lock_gate, FUTEX_WAIT_BITSET_PRIVATE, value, &until, NULL,
			     FUTEX_BITSET_MATCH_ANY) ||
		    errno != ETIMEDOUT)
			continue;
		until = thread_time_in(SLICE_MS);
		patience -= (value & 3) == LOCK_RANKS ? 10 : 1;
		if (patience <= 0)
			gate_open(value);
	}
	errno = saved;
}

/* One thread forks at a time, if the other ends in time. */
static void gate_close(void)
{
	int open = 0;

	while (!atomic_compare_exchange_strong(&lock_gate, &open, gate_value(LOCK_OUTER + 1))) {
		gate_wait(LOCK_OUTER);
		open = 0;
	}
}

/* @tries are left, of all mutexes together. */
static bool mutex_try(pthread_mutex_t *mutex, int *tries)
{
	const struct timespec pause = { 0, TRY_US * 1000L };

	while (pthread_mutex_trylock(mutex)) {
		if (--*tries <= 0)
			return false;
		nanosleep(&pause, NULL);
	}
	return true;
}

/* Owners of locks call nobody, so it is a moment. */
static void owners_wait(void)
{
	int tries = PATIENCE_MS * 1000 / TRY_US;
	bool listed = mutex_try(&list_mutex, &tries);

	for (int rank = LOCK_OUTER; rank < LOCK_RANKS; rank++) {
		atomic_store(&lock_gate, gate_value(rank + 1));
		for (struct lock *l = listed ? list : NULL; l; l = l->next)
			if ((int)l->rank == rank && mutex_try(&l->mutex, &tries))
				pthread_mutex_unlock(&l->mutex);
	}
	if (listed)
		pthread_mutex_unlock(&list_mutex);
}

/* Another thread, which is not here, may have it after all, if only for a moment at the gate. */
static void mutex_free(pthread_mutex_t *mutex)
{
	if (pthread_mutex_trylock(mutex))
		pthread_mutex_init(mutex, NULL);
	else
		pthread_mutex_unlock(mutex);
}

static void fork_in_child(void)
{
	process_forked();
	if (atomic_exchange(&fork_child, process_generation()) == process_generation())
		return;
	mutex_free(&list_mutex);
	for (struct lock *l = list; l; l = l->next)
		mutex_free(&l->mutex);
	atomic_store(&lock_gate, 0);
	lock_thread.forks = lock_thread.blind = 0;
	for (struct lock *l = list; l && !lock_thread.held; l = l->next)
		if (l->in_child)
			l->in_child(l);
}

/* A handler that is older than ours comes first in a child. */
static void child_notice(void)
{
	if (lock_thread.forks && process_generation() != atomic_load(&fork_parent))
		fork_in_child();
}

static void fork_before(void)
{
	struct lock_thread *self = &lock_thread;
	THREAD_NO_CANCEL();

	child_notice();
	atomic_store(&fork_parent, process_generation());
	self->forks++;
	if (self->held && !self->blind)
		self->blind = self->forks;
	if (self->forks > 1 || self->blind)
		return;
	gate_close();
	owners_wait();
}

/* A child of a fork in a signal handler may go on with the fork that the signal came in: with 0. */
static void fork_in_parent(void)
{
	struct lock_thread *self = &lock_thread;

	if (self->forks <= 1)
		gate_open(gate_value(LOCK_RANKS));
	if (self->blind == self->forks)
		self->blind = 0;
	if (self->forks)
		self->forks--;
}

void lock_acquire_in_fork(pthread_mutex_t *mutex, enum lock_rank rank)
{
	lock_thread.held--;
	child_notice();
	lock_thread.held++;
	if (lock_thread.blind)
		return;
	for (;;) {
		if (!lock_thread.forks)
			gate_wait(rank);
		pthread_mutex_lock(mutex);
		if (lock_thread.forks || gate_is_open(rank))
			return;
		pthread_mutex_unlock(mutex);
	}
}

int lock_wait(struct lock *l, pthread_cond_t *changed, const struct timespec *until)
{
	THREAD_NO_CANCEL();
	int ret;

	if (lock_thread.forks)
		return EDEADLK;
	ret = until ? pthread_cond_clockwait(changed, &l->mutex, CLOCK_MONOTONIC, until)
		    : pthread_cond_wait(changed, &l->mutex);
	if (!gate_is_open(l->rank)) { /* the mutex was taken without a look at it */
		lock_release(l);
		lock_acquire(l);
	}
	return ret;
}

static void fork_init(void)
{
	pthread_atfork(fork_before, fork_in_parent, fork_in_child);
}

void lock_register(struct lock *lock)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct lock **link = &list;

	pthread_once(&once, fork_init);
	lock_mutex_acquire(&list_mutex, LOCK_LAST);
	while (*link && (*link)->rank < lock->rank)
		link = &(*link)->next;
	lock->next = *link;
	*link = lock;
	lock_mutex_release(&list_mutex);
}

void lock_unregister(struct lock *lock)
{
	struct lock **link = &list;

	lock_mutex_acquire(&list_mutex, LOCK_LAST);
	while (*link != lock)
		link = &(*link)->next;
	*link = lock->next;
	lock_mutex_release(&list_mutex);
}
