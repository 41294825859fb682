/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/access/mapping.h"

#include <stdlib.h>

#include "util/lock.h"
#include "util/log.h"

struct mapping {
	const struct import_region *region; /* held by the map's bracket; else a name alone */
	const void *ptr;
	struct bracket *bracket; /* held */
	bool unmapped;		 /* the bracket is an unmap's */
	struct mapping *next;
};

static void mapping_in_child(struct lock *lock) TSA(no_thread_safety_analysis);

LOCK_DEFINE_IN_CHILD(mapping_lock, LOCK_LAST, mapping_in_child); /* the list */
static struct mapping *mappings GUARDED_BY(mapping_lock);

/* They are the parent's: their driver is not asked in a child. */
static void mapping_in_child(struct lock *lock)
{
	(void)lock;
	mappings = NULL;
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

/* Moves the mappings of a region, NULL: those that are over, to a list of the caller's. */
static struct mapping *mapping_take(const struct import_region *region) REQUIRES(mapping_lock)
{
	struct mapping **at = &mappings, *taken = NULL, *m;

	while ((m = *at)) {
		if (region ? m->region != region : !mapping_is_over(m)) {
			at = &m->next;
			continue;
		}
		*at = m->next;
		m->next = taken;
		taken = m;
	}
	return taken;
}

struct mapping *mapping_create(struct bracket *map, const void *ptr)
{
	struct mapping *m = malloc(sizeof(*m));

	if (!m) {
		log_error("no memory for the record of a map");
		return NULL;
	}
	*m = (struct mapping){ bracket_region(map), ptr, map, false, NULL };
	bracket_hold(map);
	return m;
}

void mapping_add(struct mapping *mapping)
{
	struct mapping *over, *m;

	lock_acquire(&mapping_lock);
	over = mapping_take(NULL);
	mapping->next = mappings;
	mappings = mapping;
	lock_release(&mapping_lock);
	while ((m = over)) {
		over = m->next;
		mapping_destroy(m);
	}
}

void mapping_cancel(struct mapping *mapping)
{
	bracket_abandon(mapping->bracket);
	mapping_destroy(mapping);
}

/* A map that has begun, else one that may begin yet. */
static struct mapping *mapping_find(const struct import_region *region, const void *ptr)
	REQUIRES(mapping_lock)
{
	struct mapping *found = NULL;

	for (struct mapping *m = mappings; m; m = m->next) {
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

void mapping_release(const struct import_region *region)
{
	struct mapping *all, *m;

	lock_acquire(&mapping_lock);
	all = mapping_take(region);
	lock_release(&mapping_lock);
	while ((m = all)) {
		all = m->next;
		if (!m->unmapped)
			mapping_cancel(m);
		else if (bracket_poll(m->bracket))
			mapping_destroy(m);
		else
			mapping_add(m);
	}
}

void mapping_forget(const struct import_region *region)
{
	struct mapping *all, *m;

	lock_acquire(&mapping_lock);
	all = mapping_take(region);
	lock_release(&mapping_lock);
	while ((m = all)) {
		all = m->next;
		if (!m->unmapped) {
			mapping_cancel(m);
			continue;
		}
		bracket_poll(m->bracket);
		mapping_destroy(m);
	}
}
