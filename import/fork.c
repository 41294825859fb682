/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All locks of the process, those of libclimport and of the layer.
 *
 * The handlers are registered when libclimport is loaded: before main() where a program links to
 * it, and with the layer at the program's first OpenCL call.  Handlers that run before fork() run
 * in reverse.  So handlers of the application that were there earlier run after ours, and may wait
 * for a lock of the application whose owner waits in a call of ours, or may call OpenCL.  Therefore
 * no lock is held while they run.  Instead a gate is closed: a thread that is about to take a lock
 * waits until the fork is over, and the thread that forks passes without taking any.
 *
 * Where the forking thread sleeps while others wait at the gate, a handler waits for one of them.
 * Then the gate is opened: the program goes on, and its child may find a list of ours half written.
 *
 * Handlers may fork, too, and a signal's handler may while this thread is in fork(): a fork by the
 * thread that has closed the gate goes through it, and leaves it closed.
 *
 * vfork() and posix_spawn() run no handlers, and their children call nothing of ours.
 */
#include "lock.h"
#include "process.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LOOK_MS 5
#define LOOKS 2		/* at a thread that sleeps */
#define BLIND_LOOKS 200 /* where that cannot be seen */
#define OWNER_SECONDS 1 /* for a lock's owner, who may wait for a lock of the thread that forks */

static pthread_mutex_t list_mutex = LOCK_MUTEX_INITIALIZER;
static struct lock *list;

_Atomic(pthread_t) lock_forker;
static atomic_bool fork_expired;
static atomic_int fork_rank; /* locks of this rank and lower ones are behind the gate */
static uint32_t fork_parent; /* its generation; written before lock_forker, as the next */
static pid_t fork_thread;
static unsigned int fork_depth;	 /* locks that the forking thread believes to hold; its own */
static unsigned int fork_nested; /* forks in its fork; its own */

/*
 * Changes of lock_forker and fork_expired, for those who wait.  No other lock is taken while it is
 * held, and no signal's handler runs, which might fork.
 */
static pthread_mutex_t gate_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t gate_changed = PTHREAD_COND_INITIALIZER;

static bool fork_is_mine(void)
{
	return pthread_equal(atomic_load(&lock_forker), pthread_self());
}

/* Whether the thread that forks passes; once it has, until it holds nothing. */
static bool fork_passes(void)
{
	return fork_is_mine() &&
	       (fork_depth || !atomic_load(&fork_expired) || process_generation() != fork_parent);
}

/* The state of the thread that forks, as proc_pid_stat(5) has it; 0 if it cannot be read. */
static char fork_state(void)
{
	char path[64], text[256];
	const char *after = NULL;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", fork_thread);
	file = fopen(path, "re");
	if (!file)
		return 0;
	if (fgets(text, sizeof(text), file))
		after = strrchr(text, ')'); /* the name may hold anything */
	fclose(file);
	return after && after[1] ? after[2] : 0;
}

static void gate_expire(void)
{
	atomic_store(&fork_expired, true);
	pthread_cond_broadcast(&gate_changed);
}

/* With the gate's mutex.  The kernel may take long to copy a large process: then it does not sleep. */
static void gate_wait(void)
{
	int asleep = 0, blind = 0;

	while (atomic_load(&lock_forker) && !atomic_load(&fork_expired)) {
		struct timespec look;
		char state;

		clock_gettime(CLOCK_REALTIME, &look);
		look.tv_nsec += LOOK_MS * 1000000L;
		look.tv_sec += look.tv_nsec / 1000000000;
		look.tv_nsec %= 1000000000;
		if (!pthread_cond_timedwait(&gate_changed, &gate_mutex, &look))
			continue;
		state = fork_state();
		asleep = state == 'S' ? asleep + 1 : 0;
		blind += !state;
		if (asleep == LOOKS || blind == BLIND_LOOKS)
			gate_expire();
	}
}

static sigset_t gate_acquire(void)
{
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_mutex_lock(&gate_mutex);
	return before;
}

static void gate_release(const sigset_t *before)
{
	pthread_mutex_unlock(&gate_mutex);
	pthread_sigmask(SIG_SETMASK, before, NULL);
}

/* Whether others may take a lock.  A thread that has one of a lower rank gets what it needs. */
static bool gate_is_open(enum lock_rank rank)
{
	return !atomic_load(&lock_forker) || atomic_load(&fork_expired) ||
	       (int)rank > atomic_load(&fork_rank);
}

void lock_acquire_in_fork(pthread_mutex_t *mutex, enum lock_rank rank)
{
	if (fork_passes()) {
		fork_depth++;
		return;
	}
	for (;;) {
		if (!gate_is_open(rank)) {
			const sigset_t before = gate_acquire();

			gate_wait();
			gate_release(&before);
		}
		pthread_mutex_lock(mutex);
		if (gate_is_open(rank))
			return;
		pthread_mutex_unlock(mutex);
	}
}

bool lock_release_in_fork(void)
{
	if (!fork_is_mine() || !fork_depth)
		return false;
	fork_depth--;
	return true;
}

int lock_wait(struct lock *l, pthread_cond_t *changed, const struct timespec *until)
{
	int ret;

	if (lock_is_fork() && fork_passes())
		return EDEADLK;
	ret = until ? pthread_cond_clockwait(changed, &l->mutex, CLOCK_MONOTONIC, until)
		    : pthread_cond_wait(changed, &l->mutex);
	if (lock_is_fork()) { /* the mutex was taken without a look at the gate */
		pthread_mutex_unlock(&l->mutex);
		lock_acquire_in_fork(&l->mutex, l->rank);
	}
	return ret;
}

/* One thread forks at a time, if the other ends in time. */
static void gate_close(void)
{
	const sigset_t before = gate_acquire();

	gate_wait();
	fork_parent = process_generation();
	fork_thread = gettid();
	fork_depth = 0;
	fork_nested = 0;
	atomic_store(&fork_rank, -1);
	atomic_store(&fork_expired, false);
	atomic_store(&lock_forker, pthread_self());
	gate_release(&before);
}

/* Waits for a mutex's owner, unless that is this thread, which a signal has interrupted. */
static void owner_wait(pthread_mutex_t *mutex)
{
	struct timespec limit;

	clock_gettime(CLOCK_REALTIME, &limit);
	limit.tv_sec += OWNER_SECONDS;
	if (!pthread_mutex_timedlock(mutex, &limit))
		pthread_mutex_unlock(mutex);
}

/* Waits for those who have a lock of a rank: they call nobody, so it is a moment. */
static void gate_close_rank(enum lock_rank rank)
{
	atomic_store(&fork_rank, (int)rank);
	for (struct lock *l = list; l; l = l->next)
		if (l->rank == rank)
			owner_wait(&l->mutex);
}

static void fork_before(void)
{
	int error;

	if (fork_is_mine()) {
		fork_nested++;
		return;
	}
	gate_close();
	error = pthread_mutex_lock(&list_mutex);
	for (int rank = LOCK_OUTER; rank <= LOCK_LAST; rank++)
		gate_close_rank((enum lock_rank)rank);
	if (!error)
		pthread_mutex_unlock(&list_mutex);
}

static void fork_in_parent(void)
{
	sigset_t before;

	if (fork_is_mine() && fork_nested) {
		fork_nested--;
		return;
	}
	before = gate_acquire();
	if (fork_is_mine())
		atomic_store(&lock_forker, (pthread_t)0);
	pthread_cond_broadcast(&gate_changed);
	gate_release(&before);
}

/*
 * Threads that were about to take a lock may have held it for a moment: they are not here.  The
 * gate is open then, also for the child of a fork in a fork, which may never come back to the other.
 */
static void fork_in_child(void)
{
	process_forked();
	pthread_mutex_init(&gate_mutex, NULL);
	pthread_cond_init(&gate_changed, NULL);
	list_mutex = (pthread_mutex_t)LOCK_MUTEX_INITIALIZER;
	for (struct lock *l = list; l; l = l->next)
		l->mutex = (pthread_mutex_t)LOCK_MUTEX_INITIALIZER;
	for (struct lock *l = list; l; l = l->next)
		if (l->in_child)
			l->in_child(l);
	atomic_store(&lock_forker, (pthread_t)0);
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
