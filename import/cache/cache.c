/* SPDX-License-Identifier: Apache-2.0 */
/* Life, look-ups and invalidation.  hazard.h says why a hit needs no lock. */
#include "import/cache/cache.h"
#include "import/cache/entry.h"
#include "import/kinds/ranges.h"
#include "util/log.h"

#include <errno.h>
#include <stdlib.h>

#define CACHE_DEFAULT_ENTRIES 65536

LOCK_DEFINE(cache_ids_lock, LOCK_LAST);
static uint32_t cache_ids GUARDED_BY(cache_ids_lock); /* a bit for each cache */

static void cache_disinherit(struct lock *lock) TSA(no_thread_safety_analysis);

/*
 * In a child nobody finds the parent's entries.  An entry that another thread was about to unpin is
 * dying too: the thread's list is gone with the thread.
 */
static void cache_disinherit(struct lock *lock)
{
	struct cache *cache = (struct cache *)((char *)lock - offsetof(struct cache, lock));

	cache_table_clear(&cache->table);
	cache->dying = NULL;
	for (uint32_t i = 0; i < cache->used; i++) {
		struct cache_entry *entry = &cache->entries[i];

		if (atomic_load(&entry->state) == ENTRY_FREE)
			continue;
		atomic_store(&entry->state, ENTRY_DYING);
		entry->counted = false;
		entry->next = cache->dying;
		cache->dying = entry;
	}
	cache->stats.bytes_pinned = 0;
	cache->stats.entries = 0;
	atomic_store(&cache->over, false);
}

/* Gives the cache an id, or -ENFILE, and a lock. */
static int cache_register(struct cache *cache)
{
	lock_acquire(&cache_ids_lock);
	for (cache->id = 0; cache->id < CACHE_MAX && cache_ids & 1U << cache->id;)
		cache->id++;
	if (cache->id < CACHE_MAX)
		cache_ids |= 1U << cache->id;
	lock_release(&cache_ids_lock);
	if (cache->id == CACHE_MAX)
		return -ENFILE;
	lock_init(&cache->lock, LOCK_OUTER, cache_disinherit);
	return 0;
}

static void cache_unregister(struct cache *cache)
{
	lock_destroy(&cache->lock);
	lock_acquire(&cache_ids_lock);
	cache_ids &= ~(1U << cache->id);
	lock_release(&cache_ids_lock);
}

static void cache_free(struct cache *cache)
{
	cache_table_destroy(&cache->table);
	free(cache->memory);
	free(cache);
}

/* Unused entries cost no memory: the kernel gives a large calloc() zero pages. */
static int cache_entries_create(struct cache *cache)
{
	size_t align = alignof(struct cache_entry);

	cache->memory = calloc(cache->limit + (size_t)1, sizeof(struct cache_entry));
	cache->entries = (void *)(((uintptr_t)cache->memory + align - 1) & ~(align - 1));
	return cache->memory ? 0 : -ENOMEM;
}

int cache_create(const struct cache_source *source, void *context,
		 const struct cache_config *config, struct cache **out)
{
	struct cache *cache = aligned_alloc(alignof(struct cache), sizeof(*cache));
	int err;

	if (!cache)
		return -ENOMEM;
	*cache = (struct cache){
		.source = source,
		.context = context,
		.budget = config->bytes,
		.limit = config->entries ? config->entries : CACHE_DEFAULT_ENTRIES,
		.idle_bytes = config->idle_bytes ? config->idle_bytes : SIZE_MAX,
		.idle_entries = config->idle_entries ? config->idle_entries : UINT32_MAX,
	};
	hazard_init();
	err = cache_table_create(&cache->table);
	if (!err)
		err = cache_entries_create(cache);
	if (!err)
		err = cache_register(cache);
	if (err) {
		cache_free(cache);
		return err;
	}
	cache->hits_before = hazard_hits(cache->id);
	*out = cache;
	return 0;
}

static bool cache_is_busy(struct cache *cache) REQUIRES(cache->lock)
{
	cache_sweep(cache);
	for (uint32_t i = 0; i < cache->used; i++) {
		struct cache_entry *entry = &cache->entries[i];

		if (atomic_load(&entry->state) != ENTRY_FREE && !entry_is_inherited(entry) &&
		    !entry_is_idle(cache, entry))
			return true;
	}
	return false;
}

static struct cache_entry *cache_take_all(struct cache *cache) REQUIRES(cache->lock)
{
	for (uint32_t i = 0; i < cache->used; i++)
		if (atomic_load(&cache->entries[i].state) == ENTRY_LIVE)
			entry_retire(cache, &cache->entries[i]);
	return cache_collect(cache);
}

int cache_destroy(struct cache *cache)
{
	struct cache_entry *list;
	bool busy;

	lock_acquire(&cache->lock);
	busy = cache_is_busy(cache);
	list = busy ? NULL : cache_take_all(cache);
	lock_release(&cache->lock);
	if (busy)
		return log_errno(EBUSY, "the cache is in use");
	cache_unpin(cache, list);
	cache_unregister(cache);
	cache_free(cache);
	return 0;
}

static void cache_ref_fill(struct cache_ref *ref, struct cache_entry *entry, uintptr_t address,
			   void *slot)
{
	*ref = (struct cache_ref){
		.pin = &entry->pin,
		.offset = entry->pin.offset + (address - entry->pin.base),
		.slot = slot,
	};
}

/*
 * Uses @entry, in a slot or counted, if the entry is live; the other fields may be read only then.
 * References that last may fill the slots: slot 0 then holds the entry until the user is counted.
 */
static bool entry_hold(struct hazard_record *record, struct cache_entry *entry,
		       void *_Atomic **held)
{
	void *_Atomic *slot = hazard_free_slot(record),
		      *_Atomic *taken = slot ? slot : &record->slot[0];
	bool live;

	atomic_store(taken, entry);
	live = atomic_load(&entry->state) == ENTRY_LIVE;
	if (live && !slot)
		atomic_fetch_add(&entry->refs, 1);
	if (!live || !slot)
		atomic_store(taken, NULL);
	*held = slot;
	return live;
}

static void entry_release(struct cache_entry *entry, void *_Atomic *slot)
{
	if (slot)
		atomic_store(slot, NULL);
	else
		atomic_fetch_sub(&entry->refs, 1);
}

/* After every use, be it for a moment: an entry that looked used may be idle. */
static void cache_tell(struct cache *cache)
{
	if (__builtin_expect(atomic_load(&cache->tells), 0) &&
	    atomic_exchange(&cache->tells, false))
		cache->source->idle(cache->context);
}

void cache_tidy(struct cache *cache)
{
	struct cache_entry *list;

	lock_acquire(&cache->lock);
	list = cache_trim(cache);
	lock_release(&cache->lock);
	cache_unpin(cache, list);
}

/* To takers, a failed hold looks like a use: what takers have left for the hold is tidied up. */
static void cache_end_look(struct cache *cache)
{
	cache_tell(cache);
	cache_tidy(cache);
}

static void cache_count_hit(struct cache *cache, struct hazard_record *record)
{
	uint64_t hits = atomic_load_explicit(&record->hits[cache->id], memory_order_relaxed);

	atomic_store_explicit(&record->hits[cache->id], hits + 1, memory_order_relaxed);
}

static bool cache_hold_hit(struct cache *cache, struct hazard_record *record,
			   struct cache_entry *entry, uintptr_t address, size_t size,
			   void *_Atomic **slot)
{
	if (!entry_hold(record, entry, slot))
		return false;
	if (cache_range_contains(entry->pin.base, entry->pin.size, address, size) &&
	    entry_is_current(cache, entry))
		return true;
	entry_release(entry, *slot);
	return false;
}

static bool cache_hit(struct cache *cache, uintptr_t address, size_t size, struct cache_ref *ref)
{
	struct cache_entry *entry = cache_table_peek(&cache->table, address, size);
	struct hazard_record *record = entry ? hazard_get() : NULL;
	void *_Atomic *slot;

	if (!record)
		return false;
	if (!cache_hold_hit(cache, record, entry, address, size, &slot)) {
		cache_end_look(cache);
		return false;
	}
	entry_mark_used(entry);
	cache_count_hit(cache, record);
	cache_ref_fill(ref, entry, address, slot);
	return true;
}

/* The lock keeps the entry: no check follows the store. */
void entry_hold_locked(struct cache_entry *entry, uintptr_t address, struct cache_ref *ref)
{
	struct hazard_record *record = hazard_get();
	void *_Atomic *slot = record ? hazard_free_slot(record) : NULL;

	if (slot)
		atomic_store(slot, entry);
	else
		atomic_fetch_add(&entry->refs, 1);
	cache_ref_fill(ref, entry, address, slot);
}

bool cache_get_cached(struct cache *cache, uintptr_t address, size_t size, struct cache_ref *ref)
{
	return size && cache_hit(cache, address, size, ref);
}

int cache_get_wanted(struct cache *cache, uintptr_t address, size_t size, const void *wanted,
		     struct cache_ref *ref)
{
	uintptr_t last;

	if (__builtin_expect(!size || __builtin_add_overflow(address, size - 1, &last), 0))
		return range_refuse(address, size);
	return cache_hit(cache, address, size, ref) ? 0
						    : cache_miss(cache, address, size, wanted, ref);
}

int cache_get(struct cache *cache, uintptr_t address, size_t size, struct cache_ref *ref)
{
	return cache_get_wanted(cache, address, size, NULL, ref);
}

/* After the release the entry may have another pin: a wrong state only tidies up in vain. */
bool cache_put_only(struct cache *cache, struct cache_ref *ref)
{
	struct cache_entry *entry = cache_entry_of(ref);

	entry_release(entry, ref->slot);
	cache_tell(cache);
	return __builtin_expect(
		atomic_load(&entry->state) != ENTRY_LIVE || atomic_load(&cache->over), 0);
}

void cache_put(struct cache *cache, struct cache_ref *ref)
{
	if (cache_put_only(cache, ref))
		cache_tidy(cache);
}

void cache_set_bytes(struct cache *cache, size_t bytes)
{
	struct cache_entry *list;

	lock_acquire(&cache->lock);
	atomic_store(&cache->budget, bytes);
	list = cache_trim(cache);
	lock_release(&cache->lock);
	cache_unpin(cache, list);
}

void cache_set_idle(struct cache *cache, size_t bytes, uint32_t entries)
{
	struct cache_entry *list;

	lock_acquire(&cache->lock);
	cache->idle_bytes = bytes;
	cache->idle_entries = entries;
	list = cache_trim(cache);
	lock_release(&cache->lock);
	cache_unpin(cache, list);
}

void cache_stats(struct cache *cache, struct cache_stats *stats)
{
	lock_acquire(&cache->lock);
	cache_sweep(cache);
	*stats = cache->stats;
	stats->hits += hazard_hits(cache->id) - cache->hits_before;
	for (uint32_t i = 0; i < cache->used; i++)
		if (atomic_load(&cache->entries[i].state) == ENTRY_LIVE &&
		    entry_is_idle(cache, &cache->entries[i]))
			stats->bytes_idle += cache->entries[i].pin.size;
	lock_release(&cache->lock);
}

void cache_add_stats(struct cache *cache, struct cache_stats *sum)
{
	struct cache_stats s;

	cache_stats(cache, &s);
	sum->hits += s.hits;
	sum->misses += s.misses;
	sum->evictions += s.evictions;
	sum->stale += s.stale;
	sum->invalidations += s.invalidations;
	sum->bytes_pinned += s.bytes_pinned;
	sum->bytes_idle += s.bytes_idle;
	sum->entries += s.entries;
}
