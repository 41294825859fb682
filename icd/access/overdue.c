/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/access/overdue.h"

#include <stdatomic.h>
#include <stddef.h>

#include "util/idle.h"
#include "util/lock.h"

#define PERIOD_MS 64
#define BATCH 64

static void overdue_in_child(struct lock *lock) TSA(no_thread_safety_analysis);

LOCK_DEFINE_IN_CHILD(overdue_lock, LOCK_LAST, overdue_in_child); /* the list */
/* The object that was added or asked longest ago comes first. */
static struct list overdue_list GUARDED_BY(overdue_lock) = LIST_INIT(overdue_list);
static unsigned int overdue_round GUARDED_BY(overdue_lock);

/* The objects are the parent's: a child does not ask the parent's driver. */
static void overdue_in_child(struct lock *lock)
{
	(void)lock;
	for (struct list *link; (link = list_take(&overdue_list));)
		container_of(link, struct overdue, link)->listed = false;
}

static void overdue_append(struct overdue *o) REQUIRES(overdue_lock)
{
	o->round = overdue_round;
	list_add(&overdue_list, &o->link);
}

/* The first object, if it is of the round before the last or of an earlier round; or NULL. */
static struct overdue *overdue_first(void) REQUIRES(overdue_lock)
{
	struct overdue *o = container_of(overdue_list.next, struct overdue, link);

	return !list_is_empty(&overdue_list) && overdue_round - o->round >= 2 ? o : NULL;
}

/* Objects that are due.  How many. */
static size_t overdue_take(struct overdue *taken[BATCH])
{
	struct overdue *o;
	size_t count = 0;

	lock_acquire(&overdue_lock);
	while (count < BATCH && (o = overdue_first())) {
		list_remove(&o->link);
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
	any = !list_is_empty(&overdue_list);
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
	is_first = list_is_empty(&overdue_list);
	overdue_append(o);
	o->listed = true;
	lock_release(&overdue_lock);
	if (is_first || !atomic_load(&is_watched))
		atomic_store(&is_watched, idle_watch(&watcher));
	return atomic_load(&is_watched);
}

void overdue_remove(struct overdue *o)
{
	if (!o->listed)
		return;
	lock_acquire(&overdue_lock);
	list_remove(&o->link);
	o->listed = false;
	lock_release(&overdue_lock);
}
