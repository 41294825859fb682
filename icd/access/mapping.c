/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/access/mapping.h"

#include <stdlib.h>

#include "util/list.h"
#include "util/lock.h"
#include "util/log.h"

struct mapping {
	struct list link;
	const struct import_region
		*region; /* held by the map's bracket; of an unmap, only a name */
	const void *ptr;
	struct bracket *bracket; /* held */
	bool unmapped;		 /* the bracket is an unmap's */
};

static void mapping_in_child(struct lock *lock) TSA(no_thread_safety_analysis);

LOCK_DEFINE_IN_CHILD(mapping_lock, LOCK_LAST, mapping_in_child); /* the list */
static struct list mappings GUARDED_BY(mapping_lock) = LIST_INIT(mappings);

/* The mappings are the parent's: a child does not ask the parent's driver. */
static void mapping_in_child(struct lock *lock)
{
	(void)lock;
	list_init(&mappings);
}

static void mapping_destroy(struct mapping *m)
{
	bracket_put(m->bracket);
	free(m);
}

static bool mapping_is_over(const struct mapping *m)
{
	return m->unmapped ? bracket_is_done(m->bracket) : bracket_is_void(m->bracket);
}

/* Moves the mappings of a region, NULL: mappings that are over, to a list of the caller's. */
static void mapping_take(const struct import_region *region, struct list *taken)
	REQUIRES(mapping_lock)
{
	struct list all;

	list_init(taken);
	list_move_all(&all, &mappings);
	for (struct list *link; (link = list_take(&all));) {
		const struct mapping *m = container_of(link, struct mapping, link);
		bool is_taken = region ? m->region == region : mapping_is_over(m);

		list_add(is_taken ? taken : &mappings, link);
	}
}

struct mapping *mapping_create(struct bracket *map)
{
	struct mapping *m = malloc(sizeof(*m));

	if (!m) {
		log_error("no memory for the record of a map");
		return NULL;
	}
	*m = (struct mapping){ .region = bracket_region(map), .bracket = map };
	bracket_hold(map);
	return m;
}

static void mapping_list(struct mapping *mapping)
{
	struct list over;

	lock_acquire(&mapping_lock);
	mapping_take(NULL, &over);
	list_add(&mappings, &mapping->link);
	lock_release(&mapping_lock);
	for (struct list *link; (link = list_take(&over));)
		mapping_destroy(container_of(link, struct mapping, link));
}

void mapping_add(struct mapping *mapping, const void *ptr)
{
	mapping->ptr = ptr;
	mapping_list(mapping);
}

void mapping_cancel(struct mapping *mapping)
{
	bracket_abandon(mapping->bracket);
	mapping_destroy(mapping);
}

/* The last map that has begun; if no map has, a map that may still begin. */
static struct mapping *mapping_find(const struct import_region *region, const void *ptr)
	REQUIRES(mapping_lock)
{
	struct mapping *found = NULL;

	for (struct list *link = mappings.prev; link != &mappings; link = link->prev) {
		struct mapping *m = container_of(link, struct mapping, link);

		if (m->region != region || m->ptr != ptr || m->unmapped)
			continue;
		if (bracket_has_begun(m->bracket))
			return m;
		if (!bracket_is_void(m->bracket))
			found = m;
	}
	return found;
}

void mapping_unmap(const void *ptr, struct bracket *unmap)
{
	struct bracket *map = NULL;
	struct mapping *m;

	lock_acquire(&mapping_lock);
	m = mapping_find(bracket_region(unmap), ptr);
	if (m) {
		map = m->bracket;
		bracket_hold(unmap);
		m->bracket = unmap;
		m->unmapped = true;
	}
	lock_release(&mapping_lock);
	if (map)
		bracket_end_of(unmap, map);
}

/* @is_last: no unmap is in a queue any more. */
static void mapping_end(const struct import_region *region, bool is_last)
{
	struct list all;

	lock_acquire(&mapping_lock);
	mapping_take(region, &all);
	lock_release(&mapping_lock);
	for (struct list *link; (link = list_take(&all));) {
		struct mapping *m = container_of(link, struct mapping, link);

		if (!m->unmapped)
			mapping_cancel(m);
		else if (bracket_poll(m->bracket) || is_last)
			mapping_destroy(m);
		else
			mapping_list(m);
	}
}

void mapping_release(const struct import_region *region)
{
	mapping_end(region, false);
}

void mapping_forget(const struct import_region *region)
{
	mapping_end(region, true);
}
