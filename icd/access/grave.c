/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/access/grave.h"

#include "util/idle.h"
#include "util/lock.h"

#define GRAVE_MS 1000

static void grave_in_child(struct lock *lock) TSA(no_thread_safety_analysis);

LOCK_DEFINE_IN_CHILD(grave_lock, LOCK_LAST, grave_in_child);
static struct list graves GUARDED_BY(grave_lock) = LIST_INIT(graves);

/* The graves are the parent's: a child does not ask the parent's driver. */
static void grave_in_child(struct lock *lock)
{
	(void)lock;
	list_init(&graves);
}

static void grave_list(struct grave *grave)
{
	lock_acquire(&grave_lock);
	list_add(&graves, &grave->link);
	lock_release(&grave_lock);
}

static bool grave_is_in_use(struct grave *grave)
{
	if (bracket_events_are_pending(grave->events))
		return true;
	return grave->age++ < GRAVE_MS && bracket_events_are_in_use(grave->events);
}

/* Whether a bracket has to stay. */
static bool grave_tick(void)
{
	struct list all, *link;
	bool any = false;

	lock_acquire(&grave_lock);
	list_move_all(&all, &graves);
	lock_release(&grave_lock);
	while ((link = list_take(&all))) {
		struct grave *grave = container_of(link, struct grave, link);

		if (grave_is_in_use(grave)) {
			grave_list(grave);
			any = true;
		} else {
			grave->destroy(grave);
		}
	}
	return any;
}

void grave_add(struct grave *grave)
{
	static struct idle_watcher watcher = { .tick = grave_tick, .period_ms = 1 };

	grave->age = 0;
	grave_list(grave);
	idle_watch(&watcher);
}
