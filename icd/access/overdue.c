/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/access/overdue.h"

#include <stdatomic.h>
#include <stddef.h>

#include "icd/access/idle.h"
#include "util/lock.h"

#define PERIOD_MS 64
#define BATCH 64

static void overdue_in_child(struct lock *lock) TSA(no_thread_safety_analysis);

LOCK_DEFINE_IN_CHILD(overdue_lock, LOCK_LAST, overdue_in_child); /* the list */
/* The object that was born or asked longest ago comes first. */
static struct overdue *overdue_list GUARDED_BY(overdue_lock);
static struct overdue **overdue_tail GUARDED_BY(overdue_lock) = &overdue_list;
static unsigned int overdue_round GUARDED_BY(overdue_lock);

/* They are the parent's: their driver is not asked in a child. */
static void overdue_in_child(struct lock *lock)
{
	(void)lock;
	for (struct overdue *o = overdue_list; o; o = o->next)
		o->listed = false;
	overdue_list = NULL;
	overdue_tail = &overdue_list;
}

static void overdue_append(struct overdue *o) REQUIRES(overdue_lock)
{
	o->round = overdue_round;
	o->next = NULL;
	o->link = overdue_tail;
	*overdue_tail = o;
	overdue_tail = &o->next;
}

static void overdue_unlink(struct overdue *o) REQUIRES(overdue_lock)
{
	*o->link = o->next;
	if (o->next)
		o->next->link = o->link;
	else
		overdue_tail = o->link;
}

/* Those of the round before the last, and of earlier ones.  How many. */
static size_t overdue_take(struct overdue *taken[BATCH])
{
	struct overdue *o;
	size_t count = 0;

	lock_acquire(&overdue_lock);
	while (count < BATCH && (o = overdue_list) && overdue_round - o->round >= 2) {
		overdue_unlink(o);
		overdue_append(o);
		if (o->ops->hold(o))
			taken[count++] = o;
	}
	lock_release(&overdue_lock);
	return count;
}

static bool overdue_next_round(void)
{
	bool any;

	lock_acquire(&overdue_lock);
	any = overdue_list;
	overdue_round++;
	lock_release(&overdue_lock);
	return any;
}

static bool overdue_tick(void)
{
	struct overdue *taken[BATCH];
	bool any = overdue_next_round();
	size_t count;

	do {
		count = overdue_take(taken);
		for (size_t i = 0; i < count; i++)
			taken[i]->ops->ask(taken[i]);
	} while (count == BATCH);
	return any;
}

bool overdue_add(struct overdue *o, const struct overdue_ops *ops)
{
	static struct idle_watcher watcher = { .tick = overdue_tick, .period_ms = PERIOD_MS };
	static atomic_bool is_watched;
	bool is_first;

	o->ops = ops;
	lock_acquire(&overdue_lock);
	is_first = !overdue_list;
	overdue_append(o);
	o->listed = true;
	lock_release(&overdue_lock);
	if (is_first)
		atomic_store(&is_watched, idle_watch(&watcher));
	return atomic_load(&is_watched);
}

void overdue_remove(struct overdue *o)
{
	if (!o->listed)
		return;
	lock_acquire(&overdue_lock);
	overdue_unlink(o);
	o->listed = false;
	lock_release(&overdue_lock);
}
