/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of a cache: for hit.c, miss.c and evict.c.
 *
 * An entry's *state* is a word: whether the entry is live, and how many users it has.  A user is added
 * to a live entry alone.  A *taker*, which has the lock, takes the entry of no user by making it not
 * live, or lets the last user see that the entry is not live any more.  Entries are an array that lives
 * as long as the cache, so a thread may look at the state of an entry that was freed.  The fields that
 * are not atomic change only while nobody can become a user.
 */
#ifndef IMPORT_CACHE_ENTRY_H
#define IMPORT_CACHE_ENTRY_H

#include <stdalign.h>

#include "import/cache/cache.h"
#include "import/cache/table.h"
#include "util/fork.h"
#include "util/lock.h"

#define ENTRY_LIVE (UINT32_C(1) << 31) /* in the table; the other bits are the users */

struct cache_entry {
	alignas(64) _Atomic uint32_t state;
	_Atomic uint32_t referenced; /* used since the clock's hand passed */
	_Atomic uint64_t hits;	     /* on all pins that the entry ever had */
	struct cache_pin pin;
	uint32_t process;	  /* fork_generation() before the pin */
	struct cache_entry *next; /* in a list: free, dying, or to unpin */
	bool is_taken;		  /* not free */
	bool counted;		  /* in the cache's stats */
	bool aged;		  /* idle at the last cache_age() */
};

struct cache {
	/* Constant, or read at each hit and seldom written. */
	alignas(64) struct cache_table table; /* written under the lock */
	_Atomic bool over;		      /* more is pinned than the limits of what is idle */
	_Atomic bool tells;		      /* the source, of the next put */
	uint32_t limit;
	struct cache_entry *entries;
	const struct cache_source *source;
	void *context;
	void *memory; /* of the entries, unaligned */

	/* Never held across a call to the source. */
	alignas(64) struct lock lock;
	/* Under the lock; clang's analysis has no word for this in C. */
	uint32_t used; /* entries that were ever in use */
	uint32_t hand;
	struct cache_entry *free;
	struct cache_entry *dying;
	size_t idle_bytes;
	uint32_t idle_entries;
	uint64_t invalidated; /* calls of cache_invalidate() */
	struct cache_stats stats;
};

static inline bool entry_is_live(const struct cache_entry *entry)
{
	return atomic_load(&entry->state) & ENTRY_LIVE;
}

/* In the table, and without users. */
static inline bool entry_is_idle(const struct cache_entry *entry)
{
	return atomic_load(&entry->state) == ENTRY_LIVE;
}

/* evict.c.  A list that is given out has entries without users, out of the table. */

/* Takes a live entry out of the table.  The entry is unpinned after its last user. */
void entry_retire(struct cache *cache, struct cache_entry *entry) REQUIRES(cache->lock);

/* The dying entries without users. */
struct cache_entry *cache_collect(struct cache *cache) REQUIRES(cache->lock);

/* At least @entries idle entries and @bytes idle bytes, or all. */
struct cache_entry *cache_evict(struct cache *cache, uint32_t entries, size_t bytes)
	REQUIRES(cache->lock);

/* The idle entries over the limits, and cache_collect()'s. */
struct cache_entry *cache_trim(struct cache *cache) REQUIRES(cache->lock);

/* Unpins a list and frees the entries. */
void cache_unpin(struct cache *cache, struct cache_entry *list) EXCLUDES(cache->lock);

/* Takes out an entry of freed memory, unless another thread did, and drops @ref. */
void cache_drop_stale_ref(struct cache *cache, struct cache_ref *ref) EXCLUDES(cache->lock);

/* miss.c: pins what no entry contains. */
int cache_miss(struct cache *cache, uintptr_t address, size_t size, const void *wanted,
	       struct cache_ref *ref) EXCLUDES(cache->lock);

/* hit.c: uses a live entry that the lock keeps. */
void entry_hold_locked(struct cache_entry *entry, uintptr_t address, struct cache_ref *ref);

static inline struct cache_entry *cache_entry_of(const struct cache_ref *ref)
{
	return (struct cache_entry *)((char *)ref->pin - offsetof(struct cache_entry, pin));
}

static inline bool entry_touches(const struct cache_entry *entry, uintptr_t address, size_t size)
{
	return cache_range_touches(entry->pin.base, entry->pin.size, address, size);
}

/* For the clock, and for the count. */
static inline void entry_mark_used(struct cache_entry *entry)
{
	atomic_store_explicit(&entry->referenced, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&entry->hits, 1, memory_order_relaxed);
}

/* Whether the pin is a parent process's: never unpinned, nor asked about. */
static inline bool entry_is_inherited(const struct cache_entry *entry)
{
	return entry->process != fork_generation();
}

/*
 * Whether the address still means the pinned memory.  A child without fork handlers finds the
 * parent's entries in the table, and cannot read their status words, which gdmabuf_notifier_set_stale() writes.
 */
static inline bool entry_is_current(struct cache *cache, const struct cache_entry *entry)
{
	const struct cache_pin *pin = &entry->pin;

	if (entry_is_inherited(entry))
		return false;
	if (pin->status)
		return atomic_load_explicit(pin->status, memory_order_acquire) == pin->valid;
	return !cache->source->is_current || cache->source->is_current(cache->context, pin);
}

#endif /* IMPORT_CACHE_ENTRY_H */
