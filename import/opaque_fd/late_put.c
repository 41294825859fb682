/* SPDX-License-Identifier: Apache-2.0 */
#include "import/opaque_fd/late_put.h"

#include <pthread.h>

#include "util/fork.h"
#include "util/lock.h"
#include "util/thread.h"

static void late_put_in_child(struct lock *lock) TSA(no_thread_safety_analysis);

LOCK_DEFINE_IN_CHILD(late_put_lock, LOCK_LAST, late_put_in_child); /* all below */
static pthread_cond_t late_put_changed = PTHREAD_COND_INITIALIZER;
static struct list late_puts GUARDED_BY(late_put_lock) = LIST_INIT(late_puts); /* announced */
static uint64_t late_put_last GUARDED_BY(late_put_lock);		       /* number */
static uint32_t late_put_process GUARDED_BY(late_put_lock); /* fork_generation() */

/* A child has none of the threads that would make the parent's puts. */
static void late_put_in_child(struct lock *lock)
{
	(void)lock;
	pthread_cond_init(&late_put_changed, NULL);
	list_init(&late_puts);
	late_put_process = fork_generation();
}

/* A child whose handlers of fork() did not run has the parent's list still. */
static void late_put_look(void) REQUIRES(late_put_lock)
{
	if (late_put_process != fork_generation())
		late_put_in_child(&late_put_lock);
}

/* The put behind @put, the first for NULL; NULL: no more. */
static struct late_put *late_put_next(const struct late_put *put) REQUIRES(late_put_lock)
{
	struct list *link = put ? put->link.next : late_puts.next;

	return link == &late_puts ? NULL : container_of(link, struct late_put, link);
}

uint64_t late_put_announce(struct late_put *put, const void *of, size_t size)
{
	uint64_t number;

	lock_acquire(&late_put_lock);
	late_put_look();
	if (!put->number) {
		put->of = of;
		put->number = ++late_put_last;
		put->process = late_put_process;
		put->size = size;
		list_add(&late_puts, &put->link);
	}
	number = put->number;
	lock_release(&late_put_lock);
	return number;
}

/* The list is in the order of numbers, and the put is among the last. */
void late_put_begin(uint64_t number)
{
	struct list *link;

	if (!number)
		return;
	lock_acquire(&late_put_lock);
	late_put_look();
	for (link = late_puts.prev; link != &late_puts; link = link->prev) {
		struct late_put *put = container_of(link, struct late_put, link);

		if (put->number > number)
			continue;
		put->is_late |= put->number == number;
		break;
	}
	lock_release(&late_put_lock);
}

void late_put_end(struct late_put *put)
{
	if (!put->number)
		return;
	lock_acquire(&late_put_lock);
	late_put_look();
	if (put->process == late_put_process)
		list_remove(&put->link);
	put->number = 0;
	pthread_cond_broadcast(&late_put_changed);
	lock_release(&late_put_lock);
}

static long late_put_patience(const struct late_put *put, const struct late_put_patience *patience)
{
	size_t us = patience->bytes_per_us ? put->size / patience->bytes_per_us : SIZE_MAX;

	return us < (size_t)patience->most_us ? (long)us : patience->most_us;
}

/* The longest time for a put that was not waited for so long; 0: there is nothing to wait for. */
static long late_put_longest(const void *of, const struct late_put_patience *patience)
	REQUIRES(late_put_lock)
{
	long longest = 0;

	for (const struct late_put *put = late_put_next(NULL); put; put = late_put_next(put)) {
		long us = late_put_patience(put, patience);

		if (put->of == of && put->is_late && us > put->waited_us && us > longest)
			longest = us;
	}
	return longest;
}

static void late_put_note_wait(const void *of, long us) REQUIRES(late_put_lock)
{
	for (struct late_put *put = late_put_next(NULL); put; put = late_put_next(put))
		if (put->of == of && put->is_late && us > put->waited_us)
			put->waited_us = us;
}

void late_put_wait(const void *of, const struct late_put_patience *patience)
{
	struct timespec limit;
	long us;

	lock_acquire(&late_put_lock);
	late_put_look();
	us = late_put_longest(of, patience);
	limit = thread_time_in_us(us);
	while (late_put_longest(of, patience)) {
		if (lock_wait(&late_put_lock, &late_put_changed, &limit)) {
			late_put_note_wait(of, us);
			break;
		}
	}
	lock_release(&late_put_lock);
}
