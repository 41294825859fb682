/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All locks of the process, those of libclimport and of the layer, in the order of their ranks.
 *
 * The handlers are registered when libclimport is loaded: before main() where a program links to
 * it, and with the layer at the program's first OpenCL call.  Handlers that run before fork() run
 * in reverse, so the locks of drivers and libraries that come later are taken first, ours after
 * them, and those of an allocator, which is there earlier, last.  Handlers of the application
 * that were there earlier than ours run while all locks are held (lock.h).
 *
 * vfork() and posix_spawn() run no handlers, and their children call nothing of ours.
 */
#include "lock.h"

/* The list.  Taken before every other lock, and for a moment only: no constructor waits long. */
static pthread_mutex_t list_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct lock *list;

_Atomic(pthread_t) lock_forker;

static void list_acquire(void)
{
	if (!lock_is_forking())
		pthread_mutex_lock(&list_mutex);
}

static void list_release(void)
{
	if (!lock_is_forking())
		pthread_mutex_unlock(&list_mutex);
}

static void fork_before(void)
{
	pthread_mutex_lock(&list_mutex);
	for (struct lock *l = list; l; l = l->next)
		pthread_mutex_lock(&l->mutex);
	atomic_store_explicit(&lock_forker, pthread_self(), memory_order_relaxed);
}

static void fork_after(void)
{
	atomic_store_explicit(&lock_forker, (pthread_t)0, memory_order_relaxed);
	for (struct lock *l = list; l; l = l->next)
		pthread_mutex_unlock(&l->mutex);
	pthread_mutex_unlock(&list_mutex);
}

static void fork_in_child(void)
{
	for (struct lock *l = list; l; l = l->next)
		if (l->in_child)
			l->in_child(l);
	fork_after();
}

static void fork_init(void)
{
	pthread_atfork(fork_before, fork_after, fork_in_child);
}

void lock_register(struct lock *lock)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct lock **link = &list;

	pthread_once(&once, fork_init);
	list_acquire();
	if (lock_is_forking())
		pthread_mutex_lock(&lock->mutex); /* as all others are */
	while (*link && (*link)->rank < lock->rank)
		link = &(*link)->next;
	lock->next = *link;
	*link = lock;
	list_release();
}

void lock_unregister(struct lock *lock)
{
	struct lock **link = &list;

	list_acquire();
	while (*link != lock)
		link = &(*link)->next;
	*link = lock->next;
	list_release();
	if (lock_is_forking())
		pthread_mutex_unlock(&lock->mutex);
}
