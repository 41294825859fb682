/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How entries go.  The order is always: the state, the cells, the counted users.  A user in
 * transit from a cell to a counter is seen in one of them, for it counts itself first.
 */
#include "import/cache/cache_entry.h"

static uint32_t state_of(struct cache_entry *entry)
{
	return atomic_load_explicit(&entry->state, memory_order_relaxed);
}

/* Marks the entries of this cache that are in cells. */
void cache_sweep(struct cache *cache)
{
	uintptr_t first = (uintptr_t)cache->entries;
	uintptr_t size = cache->used * sizeof(struct cache_entry);

	cache->sweep++;
	for (struct cells *cells = cells_first(); cells; cells = cells->next) {
		for (int i = 0; i < CELLS; i++) {
			struct cache_entry *entry = atomic_load(&cells->cell[i]);

			if ((uintptr_t)entry - first < size)
				entry->sweep = cache->sweep;
		}
	}
}

bool entry_is_idle(struct cache *cache, struct cache_entry *entry)
{
	return entry->sweep != cache->sweep && !atomic_load(&entry->refs);
}

static void cache_evict_unpublish(struct cache *cache, struct cache_entry *entry)
	REQUIRES(cache->lock)
{
	cache_table_remove(&cache->table, entry, entry->pin.base, entry->pin.size);
}

void entry_retire(struct cache *cache, struct cache_entry *entry)
{
	atomic_store(&entry->state, ENTRY_DYING);
	cache_evict_unpublish(cache, entry);
	entry->next = cache->dying;
	cache->dying = entry;
}

/* The entry leaves the counts with the lock held, its pin goes without. */
static void give_out(struct cache *cache, struct cache_entry *entry, struct cache_entry **list)
	REQUIRES(cache->lock)
{
	if (!entry->inherited) {
		cache->stats.bytes_pinned -= entry->pin.size;
		cache->stats.entries--;
	}
	entry->next = *list;
	*list = entry;
}

struct cache_entry *cache_collect(struct cache *cache)
{
	struct cache_entry *list = NULL, **link = &cache->dying, *entry;

	if (!cache->dying)
		return NULL;
	cache_sweep(cache);
	while ((entry = *link)) {
		if (!entry_is_idle(cache, entry)) {
			link = &entry->next;
			continue;
		}
		*link = entry->next;
		give_out(cache, entry, &list);
	}
	return list;
}

/* The clock: an entry that was used since the hand was here gets a second chance. */
static bool is_victim(struct cache *cache, struct cache_entry *entry) REQUIRES(cache->lock)
{
	if (state_of(entry) != ENTRY_LIVE || !entry_is_idle(cache, entry))
		return false;
	return !atomic_exchange_explicit(&entry->referenced, 0, memory_order_relaxed);
}

/* Entries that seem idle, made unusable for now; they are still in the table. */
static struct cache_entry *cache_evict_choose(struct cache *cache, uint32_t entries, size_t bytes)
	REQUIRES(cache->lock)
{
	struct cache_entry *list = NULL;
	uint32_t chosen = 0;
	size_t size = 0;

	for (uint64_t i = 0; i < 2 * (uint64_t)cache->used; i++) {
		struct cache_entry *entry = &cache->entries[cache->hand];

		if (chosen >= entries && size >= bytes)
			break;
		cache->hand = (cache->hand + 1) % cache->used;
		if (!is_victim(cache, entry))
			continue;
		atomic_store(&entry->state, ENTRY_DYING);
		entry->next = list;
		list = entry;
		chosen++;
		size += entry->pin.size;
	}
	return list;
}

struct cache_entry *cache_evict(struct cache *cache, uint32_t entries, size_t bytes)
{
	struct cache_entry *chosen, *list = NULL, *next;

	cache_sweep(cache);
	chosen = cache_evict_choose(cache, entries, bytes);
	if (!chosen)
		return NULL;
	cache_sweep(cache);
	for (struct cache_entry *entry = chosen; entry; entry = next) {
		next = entry->next;
		if (!entry_is_idle(cache, entry)) {
			atomic_store(&entry->state, ENTRY_LIVE);
			continue;
		}
		cache_evict_unpublish(cache, entry);
		give_out(cache, entry, &list);
		cache->stats.evictions++;
	}
	return list;
}

static struct cache_entry *cache_evict_join(struct cache_entry *a, struct cache_entry *b)
{
	struct cache_entry **end = &a;

	while (*end)
		end = &(*end)->next;
	*end = b;
	return a;
}

/* On a line that each hit reads. */
static void set_over(struct cache *cache, bool over) REQUIRES(cache->lock)
{
	if (atomic_load(&cache->over) != over)
		atomic_store(&cache->over, over);
}

/* Says first that there is too much: who puts an entry that is not idle here sees it. */
struct cache_entry *cache_trim(struct cache *cache)
{
	struct cache_entry *list = cache_collect(cache);
	size_t budget = atomic_load(&cache->budget);

	if (cache->stats.bytes_pinned > budget) {
		set_over(cache, true);
		list = cache_evict_join(list,
					cache_evict(cache, 0, cache->stats.bytes_pinned - budget));
	}
	set_over(cache, cache->stats.bytes_pinned > budget);
	return list;
}

void cache_unpin(struct cache *cache, struct cache_entry *list)
{
	struct cache_entry *next;

	for (struct cache_entry *entry = list; entry; entry = entry->next)
		if (!entry->inherited)
			cache->source->unpin(cache->context, &entry->pin);
	if (!list)
		return;
	lock_acquire(&cache->lock);
	for (struct cache_entry *entry = list; entry; entry = next) {
		next = entry->next;
		atomic_store(&entry->state, ENTRY_FREE);
		entry->next = cache->free;
		cache->free = entry;
	}
	lock_release(&cache->lock);
}
