/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All locks of the process: the locks of libclimport and of the layer.
 *
 * A child finds every lock free, and the data that a lock protects whole.  A thread that forks
 * closes a gate: no other thread takes a lock until the fork is over.  Then the thread waits for
 * the owners of locks.  In two cases the child may find a list half written instead:
 *
 * - A side has waited for FORK_PATIENCE_MS.  Threads at the gate then go on, as a fork handler of
 *   the application may wait for a thread at the gate; the fork goes on, too, as the owner of a
 *   lock may wait for the thread that forks.  A program that stands still would be worse than a
 *   broken child, as most children call exec.
 * - A signal handler forks in the middle of a call of climport.  The fork waits for no thread, as
 *   its own thread has the lock.  The child may go on with the call; no data is put right.
 *
 * Handlers of the application that are older than ours run inside of ours, and may call OpenCL or
 * fork.  No lock is held while application handlers run.  Application handlers take locks as
 * ever: in a child after the data was put right; in the fork of a signal handler no locks at all.
 */
#include "util/fork.h"
#include "util/lock.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util/thread.h"

#define FORK_PATIENCE_MS 100
#define FORK_SLICE_MS 10 /* a time in which the whole process is stopped counts as one slice */
#define FORK_TRY_US 100

static _Atomic uint32_t fork_last;	     /* generation of this process, or less */
static _Atomic uint32_t fork_unwiped;	     /* the generation, without a wiped page */
_Atomic uint32_t *fork_mark = &fork_unwiped; /* 0 in a process without a generation */

void *fork_create_wiped_page(void)
{
	size_t size = (size_t)sysconf(_SC_PAGESIZE);
	void *page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		return NULL;
	if (!madvise(page, size, MADV_WIPEONFORK))
		return page;
	munmap(page, size);
	return NULL;
}

/* Before the constructors that ask for a generation. */
__attribute__((constructor(101))) static void fork_prepare(void)
{
	void *page = fork_create_wiped_page();

	if (page)
		fork_mark = page;
}

/* @fork_last grows first: a child of this moment gets a larger number than the parent has. */
uint32_t fork_begin_generation(void)
{
	uint32_t none = 0, next = atomic_fetch_add(&fork_last, 1) + 1;

	return atomic_compare_exchange_strong(fork_mark, &none, next) ? next : none;
}

static struct lock lock_list_lock = { .mutex = PTHREAD_MUTEX_INITIALIZER, .rank = LOCK_LAST };
static struct lock *lock_list; /* outer locks first */

_Thread_local struct lock_thread lock_thread;
atomic_int lock_gate;

static atomic_uint fork_parent, fork_child; /* generations */

/*
 * The gate is neither a mutex nor a condition: a signal handler that forks could find the inside of
 * a mutex in use.  The gate holds its owner, and how many ranks are behind the gate, from the
 * lowest.
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

/* While the gate is half closed, the fork waits for the owners of locks. */
static void gate_wait(enum lock_rank rank)
{
	struct timespec until = thread_time_in(FORK_SLICE_MS);
	int patience = 10 * FORK_PATIENCE_MS / FORK_SLICE_MS, saved = errno;

	while (!gate_is_open(rank)) {
		int value = atomic_load(&lock_gate);

		if (!syscall(SYS_futex, &lock_gate, FUTEX_WAIT_BITSET_PRIVATE, value, &until, NULL,
			     FUTEX_BITSET_MATCH_ANY) ||
		    errno != ETIMEDOUT)
			continue;
		until = thread_time_in(FORK_SLICE_MS);
		patience -= (value & 3) == LOCK_RANKS ? 10 : 1;
		if (patience <= 0)
			gate_open(value);
	}
	errno = saved;
}

/* Two threads fork in turn, if the first ends in time. */
static void gate_close(void)
{
	int open = 0;

	while (!atomic_compare_exchange_strong(&lock_gate, &open, gate_value(LOCK_OUTER + 1))) {
		gate_wait(LOCK_OUTER);
		open = 0;
	}
}

/* @tries are left, for all mutexes together. */
static bool fork_try_mutex(pthread_mutex_t *mutex, int *tries)
{
	const struct timespec pause = { 0, FORK_TRY_US * 1000L };

	while (pthread_mutex_trylock(mutex)) {
		if (--*tries <= 0)
			return false;
		nanosleep(&pause, NULL);
	}
	return true;
}

/* Owners of locks call no other code, so the wait is a moment. */
static void fork_wait_for_owners(void)
{
	int tries = FORK_PATIENCE_MS * 1000 / FORK_TRY_US;
	bool listed = fork_try_mutex(&lock_list_lock.mutex, &tries);

	for (int rank = LOCK_OUTER; rank < LOCK_RANKS; rank++) {
		atomic_store(&lock_gate, gate_value(rank + 1));
		for (struct lock *l = listed ? lock_list : NULL; l; l = l->next)
			if ((int)l->rank == rank && fork_try_mutex(&l->mutex, &tries))
				pthread_mutex_unlock(&l->mutex);
	}
	if (listed)
		pthread_mutex_unlock(&lock_list_lock.mutex);
}

/* A thread of the parent may have the mutex after all, if only for a moment at the gate. */
static void fork_free_mutex(pthread_mutex_t *mutex)
{
	if (pthread_mutex_trylock(mutex))
		pthread_mutex_init(mutex, NULL);
	else
		pthread_mutex_unlock(mutex);
}

/* Without a wiped page, the child's generation begins here. */
static void fork_in_child(void)
{
	atomic_store(&fork_unwiped, 0);
	if (atomic_exchange(&fork_child, fork_generation()) == fork_generation())
		return;
	fork_free_mutex(&lock_list_lock.mutex);
	for (struct lock *l = lock_list; l; l = l->next)
		fork_free_mutex(&l->mutex);
	atomic_store(&lock_gate, 0);
	lock_thread.forks = lock_thread.blind = 0;
	for (struct lock *l = lock_list; l && !lock_thread.held; l = l->next)
		if (l->in_child)
			l->in_child(l);
}

/* In a child, a handler that is older than ours runs first. */
static void fork_notice_child(void)
{
	if (lock_thread.forks && fork_generation() != atomic_load(&fork_parent))
		fork_in_child();
}

#define FORK_BEFORES 2 /* kept exports, kept imports of opaque_fd */

static void (*_Atomic fork_givers[FORK_BEFORES])(void);

void fork_on_before(void (*before)(void))
{
	for (int i = 0; i < FORK_BEFORES; i++) {
		void (*there)(void) = NULL;

		if (atomic_compare_exchange_strong(&fork_givers[i], &there, before) ||
		    there == before)
			return;
	}
}

static void fork_call_before(void)
{
	for (int i = 0; i < FORK_BEFORES; i++) {
		void (*before)(void) = atomic_load(&fork_givers[i]);

		if (before)
			before();
	}
}

static void fork_before(void)
{
	struct lock_thread *self = &lock_thread;
	THREAD_NO_CANCEL();

	fork_notice_child();
	if (!self->forks && !self->held)
		fork_call_before();
	atomic_store(&fork_parent, fork_generation());
	self->forks++;
	if (self->held && !self->blind)
		self->blind = self->forks;
	if (self->forks > 1 || self->blind)
		return;
	gate_close();
	fork_wait_for_owners();
}

/*
 * A signal may come inside fork(), and its handler fork again.  The inner fork's child may go on
 * with the outer fork: @forks is 0 then.
 */
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

void lock_acquire_in_fork(struct lock *l)
{
	lock_thread.held--;
	fork_notice_child();
	lock_thread.held++;
	if (lock_thread.blind)
		return;
	for (;;) {
		if (!lock_thread.forks)
			gate_wait(l->rank);
		pthread_mutex_lock(&l->mutex);
		if (lock_thread.forks || gate_is_open(l->rank))
			return;
		pthread_mutex_unlock(&l->mutex);
	}
}

/* pthread_cond_wait() takes the mutex without a look at the gate: so the lock is taken again. */
int lock_wait(struct lock *l, pthread_cond_t *changed, const struct timespec *until)
{
	THREAD_NO_CANCEL();
	int ret;

	if (lock_thread.forks)
		return EDEADLK;
	ret = until ? pthread_cond_clockwait(changed, &l->mutex, CLOCK_MONOTONIC, until)
		    : pthread_cond_wait(changed, &l->mutex);
	if (!gate_is_open(l->rank)) {
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
	struct lock **link = &lock_list;

	pthread_once(&once, fork_init);
	lock_acquire(&lock_list_lock);
	while (*link && (*link)->rank < lock->rank)
		link = &(*link)->next;
	lock->next = *link;
	*link = lock;
	lock_release(&lock_list_lock);
}

void lock_unregister(struct lock *lock)
{
	struct lock **link = &lock_list;

	lock_acquire(&lock_list_lock);
	while (*link != lock)
		link = &(*link)->next;
	*link = lock->next;
	lock_release(&lock_list_lock);
}
