/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What cache.c, cache_evict.c and cache_fork.c share.
 *
 * An entry is FREE, LIVE (in the table), or DYING: no new user gets it.  Entries are an array
 * and never freed before the cache: a thread may read the state of an entry that went.  Fields
 * other than the atomic ones change only while an entry is FREE and out of the table.
 */
#ifndef IMPORT_CACHE_CACHE_ENTRY_H
#define IMPORT_CACHE_CACHE_ENTRY_H

#include "import/cache/cache.h"
#include "import/cache/cache_cells.h"
#include "import/cache/cache_table.h"
#include "util/lock.h"

enum entry_state { ENTRY_FREE, ENTRY_LIVE, ENTRY_DYING };

struct cache_entry {
	alignas(64) _Atomic uint32_t state; /* written under the lock */
	_Atomic uint32_t referenced;	    /* used since the clock's hand was here */
	_Atomic uint32_t refs;		    /* users that have no cell */
	uint32_t sweep;			    /* the last sweep that found it in a cell */
	struct cache_pin pin;
	struct cache_entry *next; /* in the list that it is in */
	bool inherited;		  /* the parent's: not to be unpinned */
};

struct cache {
	/* Constant, or read at each hit and seldom written. */
	alignas(64) struct cache_table table; /* written under the lock */
	_Atomic bool over;		      /* more is pinned than the budget */
	uint32_t id;
	uint32_t limit;
	_Atomic size_t budget; /* written under the lock */
	struct cache_entry *entries;
	const struct cache_source *source;
	void *context;
	void *memory; /* of the entries, unaligned */

	/* Before the cells' lock.  Never held across a call to the source. */
	alignas(64) struct lock lock;
	/* Under the lock; clang's analysis has no word for that in C. */
	uint32_t used; /* entries that were ever in use */
	uint32_t hand;
	uint32_t sweep;
	struct cache_entry *free;
	struct cache_entry *dying;
	uint64_t invalidated; /* calls of cache_invalidate() */
	uint64_t hits_before; /* of an earlier cache of this id */
	struct cache_stats stats;
};

/* cache_evict.c.  Entries that are given out as a list have no users and nobody finds them. */

/* Takes a live entry out of the table.  It is unpinned when its last user is gone. */
void entry_retire(struct cache *cache, struct cache_entry *entry) REQUIRES(cache->lock);

/* Those that are dying and have no users left. */
struct cache_entry *cache_collect(struct cache *cache) REQUIRES(cache->lock);

/* At least so many idle entries and bytes, if there are. */
struct cache_entry *cache_evict(struct cache *cache, uint32_t entries, size_t bytes)
	REQUIRES(cache->lock);

/* What is idle and over the budget, and what cache_collect() gives. */
struct cache_entry *cache_trim(struct cache *cache) REQUIRES(cache->lock);

/* Unpins a list and frees its entries. */
void cache_unpin(struct cache *cache, struct cache_entry *list) EXCLUDES(cache->lock);

/* Whether nobody uses it, after cache_sweep(). */
bool entry_is_idle(struct cache *cache, struct cache_entry *entry) REQUIRES(cache->lock);
void cache_sweep(struct cache *cache) REQUIRES(cache->lock);

/* Whether the address still means what was pinned. */
static inline bool entry_is_current(struct cache *cache, const struct cache_entry *entry)
{
	const struct cache_pin *pin = &entry->pin;

	if (pin->status)
		return atomic_load_explicit(pin->status, memory_order_acquire) == pin->valid;
	return !cache->source->is_current || cache->source->is_current(cache->context, pin);
}

/* Of all threads and all caches that ever had this id. */
static inline uint64_t cells_hits(uint32_t id)
{
	uint64_t hits = 0;

	for (struct cells *cells = cells_first(); cells; cells = cells->next)
		hits += atomic_load_explicit(&cells->hits[id], memory_order_relaxed);
	return hits;
}

/* cache_fork.c: gives the cache an id, or -ENFILE, and a lock. */
int cache_register(struct cache *cache);
void cache_unregister(struct cache *cache);

#endif /* IMPORT_CACHE_CACHE_ENTRY_H */
