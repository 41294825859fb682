/* SPDX-License-Identifier: Apache-2.0 */
/* Life and look-ups.  entry.h says why a hit needs no lock. */
#include "import/cache/cache.h"
#include "import/cache/entry.h"
#include "import/kinds/range.h"
#include "util/log.h"

#include <errno.h>
#include <stdlib.h>

#define CACHE_DEFAULT_ENTRIES 65536

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

		if (!entry->is_taken)
			continue;
		atomic_fetch_and(&entry->state, ~ENTRY_LIVE);
		entry->counted = false;
		entry->next = cache->dying;
		cache->dying = entry;
	}
	cache->stats.bytes_pinned = 0;
	cache->stats.entries = 0;
	atomic_store(&cache->over, false);
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
		.limit = config->entries ? config->entries : CACHE_DEFAULT_ENTRIES,
		.idle_bytes = config->bytes,
		.idle_entries = config->idle ? config->idle : UINT32_MAX,
	};
	err = cache_table_create(&cache->table);
	if (!err)
		err = cache_entries_create(cache);
	if (err) {
		cache_free(cache);
		return err;
	}
	lock_init(&cache->lock, LOCK_OUTER, cache_disinherit);
	*out = cache;
	return 0;
}

static bool cache_is_busy(struct cache *cache) REQUIRES(cache->lock)
{
	for (uint32_t i = 0; i < cache->used; i++) {
		struct cache_entry *entry = &cache->entries[i];

		if (entry->is_taken && !entry_is_inherited(entry) &&
		    atomic_load(&entry->state) & ~ENTRY_LIVE)
			return true;
	}
	return false;
}

static struct cache_entry *cache_take_all(struct cache *cache) REQUIRES(cache->lock)
{
	for (uint32_t i = 0; i < cache->used; i++)
		if (entry_is_live(&cache->entries[i]))
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
	lock_destroy(&cache->lock);
	cache_free(cache);
	return 0;
}

static void cache_ref_fill(struct cache_ref *ref, struct cache_entry *entry, uintptr_t address)
{
	*ref = (struct cache_ref){
		.pin = &entry->pin,
		.offset = entry->pin.offset + (address - entry->pin.base),
	};
}

/* Uses a live entry; the fields that are not atomic may be read only then.  Pairs with entry_insert(). */
static bool entry_hold(struct cache_entry *entry)
{
	uint32_t state = atomic_load(&entry->state);

	while (state & ENTRY_LIVE)
		if (atomic_compare_exchange_weak(&entry->state, &state, state + 1))
			return true;
	return false;
}

void entry_hold_locked(struct cache_entry *entry, uintptr_t address, struct cache_ref *ref)
{
	atomic_fetch_add(&entry->state, 1);
	cache_ref_fill(ref, entry, address);
}

/* After every use, be it for a moment: an entry that looked used may be idle. */
static void cache_tell(struct cache *cache)
{
	if (__builtin_expect(atomic_load(&cache->tells), 0) &&
	    atomic_exchange(&cache->tells, false))
		cache->source->idle(cache->context);
}

/* Returns as cache_put_only().  @over is read after the user is gone: its pair, cache_trim(), sets it, then looks. */
static bool entry_release(struct cache *cache, struct cache_entry *entry)
{
	const bool was_last_of_dying = atomic_fetch_sub(&entry->state, 1) == 1;

	cache_tell(cache);
	return __builtin_expect(was_last_of_dying || atomic_load(&cache->over), 0);
}

void cache_tidy(struct cache *cache)
{
	struct cache_entry *list;

	lock_acquire(&cache->lock);
	list = cache_trim(cache);
	lock_release(&cache->lock);
	cache_unpin(cache, list);
}

static bool cache_hit(struct cache *cache, uintptr_t address, size_t size, struct cache_ref *ref)
{
	struct cache_entry *entry = cache_table_peek(&cache->table, address, size);

	if (!entry || !entry_hold(entry))
		return false;
	if (cache_range_contains(entry->pin.base, entry->pin.size, address, size) &&
	    entry_is_current(cache, entry)) {
		entry_mark_used(entry);
		cache_ref_fill(ref, entry, address);
		return true;
	}
	if (entry_release(cache, entry))
		cache_tidy(cache);
	return false;
}

bool cache_get_cached(struct cache *cache, uintptr_t address, size_t size, struct cache_ref *ref)
{
	return size && cache_hit(cache, address, size, ref);
}

int cache_get(struct cache *cache, uintptr_t address, size_t size, const void *wanted,
	      struct cache_ref *ref)
{
	uintptr_t last;

	if (__builtin_expect(!size || __builtin_add_overflow(address, size - 1, &last), 0))
		return range_refuse(address, size);
	return cache_hit(cache, address, size, ref) ? 0
						    : cache_miss(cache, address, size, wanted, ref);
}

bool cache_put_only(struct cache *cache, struct cache_ref *ref)
{
	return entry_release(cache, cache_entry_of(ref));
}

void cache_put(struct cache *cache, struct cache_ref *ref)
{
	if (cache_put_only(cache, ref))
		cache_tidy(cache);
}

void cache_set_limits(struct cache *cache, size_t bytes, uint32_t idle)
{
	lock_acquire(&cache->lock);
	cache->idle_bytes = bytes;
	cache->idle_entries = idle;
	lock_release(&cache->lock);
	cache_tidy(cache);
}

void cache_stats(struct cache *cache, struct cache_stats *stats)
{
	lock_acquire(&cache->lock);
	*stats = cache->stats;
	for (uint32_t i = 0; i < cache->used; i++) {
		const struct cache_entry *entry = &cache->entries[i];

		stats->hits += atomic_load_explicit(&entry->hits, memory_order_relaxed);
		if (entry_is_idle(entry))
			stats->bytes_idle += entry->pin.size;
	}
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
	sum->bytes_pinned += s.bytes_pinned;
	sum->bytes_idle += s.bytes_idle;
	sum->entries += s.entries;
}
