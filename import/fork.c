/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All locks of the process, those of libclimport and of the layer, in the order of their ranks.
 *
 * The handlers are registered before main(): handlers that run before fork() run in reverse, so
 * the locks of drivers and libraries that come later are taken first, ours after them, and those
 * of an allocator, which is there earlier, last.
 *
 * vfork() and posix_spawn() run no handlers, and their children call nothing of ours.
 */
#include "lock.h"

/* The list.  Taken before every other lock, and for a moment only: no constructor waits long. */
static pthread_mutex_t list_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct lock *list;

static void fork_before(void)
{
	pthread_mutex_lock(&list_mutex);
	for (struct lock *l = list; l; l = l->next)
		pthread_mutex_lock(&l->mutex);
}

static void fork_after(void)
{
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
	pthread_mutex_lock(&list_mutex);
	while (*link && (*link)->rank < lock->rank)
		link = &(*link)->next;
	lock->next = *link;
	*link = lock;
	pthread_mutex_unlock(&list_mutex);
}

void lock_unregister(struct lock *lock)
{
	struct lock **link = &list;

	pthread_mutex_lock(&list_mutex);
	while (*link != lock)
		link = &(*link)->next;
	*link = lock->next;
	pthread_mutex_unlock(&list_mutex);
}
