/* SPDX-License-Identifier: Apache-2.0 */
#include "cache.h"
#include "cache_entry.h"
#include "log.h"

#include <errno.h>
#include <string.h>

static struct cache_entry *entry_of(const struct cache_ref *ref)
{
	return (struct cache_entry *)((char *)ref->pin - offsetof(struct cache_entry, pin));
}

static void ref_fill(struct cache_ref *ref, struct cache_entry *entry, uintptr_t address,
		     void *cell)
{
	*ref = (struct cache_ref){
		.pin = &entry->pin,
		.offset = entry->pin.offset + (address - entry->pin.base),
		.cell = cell,
	};
}

/*
 * Uses @entry, in a cell or counted, if it is live; only then may the rest of it be read.  Cells
 * may be taken by uses that last: then the first one holds the entry until it is counted.
 */
static bool entry_hold(struct cells *cells, struct cache_entry *entry, void *_Atomic **held)
{
	void *_Atomic *cell = cells_free(cells), *_Atomic *taken = cell ? cell : &cells->cell[0];
	bool live;

	atomic_store(taken, entry);
	live = atomic_load(&entry->state) == ENTRY_LIVE;
	if (live && !cell)
		atomic_fetch_add(&entry->refs, 1);
	if (!live || !cell)
		atomic_store(taken, NULL);
	*held = cell;
	return live;
}

static void entry_release(struct cache_entry *entry, void *_Atomic *cell)
{
	if (cell)
		atomic_store(cell, NULL);
	else
		atomic_fetch_sub(&entry->refs, 1);
}

static void count_hit(struct cache *cache, struct cells *cells)
{
	uint64_t hits = atomic_load_explicit(&cells->hits[cache->id], memory_order_relaxed);

	atomic_store_explicit(&cells->hits[cache->id], hits + 1, memory_order_relaxed);
}

static void mark_used(struct cache_entry *entry)
{
	if (!atomic_load_explicit(&entry->referenced, memory_order_relaxed))
		atomic_store_explicit(&entry->referenced, 1, memory_order_relaxed);
}

/* A failed hold looked like a use to others: the caller goes on under the lock and looks after it. */
static bool hit(struct cache *cache, uintptr_t address, size_t size, struct cache_ref *ref)
{
	struct cache_entry *entry = cache_table_peek(&cache->table, address, size);
	struct cells *cells = entry ? cells_get() : NULL;
	void *_Atomic *cell;

	if (!cells || !entry_hold(cells, entry, &cell))
		return false;
	if (!range_contains(entry->pin.base, entry->pin.size, address, size) ||
	    !entry_is_current(cache, entry)) {
		entry_release(entry, cell);
		return false;
	}
	mark_used(entry);
	count_hit(cache, cells);
	ref_fill(ref, entry, address, cell);
	return true;
}

/* Under the lock an entry needs no cell to stay. */
static void hold_locked(struct cache_entry *entry, uintptr_t address, struct cache_ref *ref)
{
	struct cells *cells = cells_get();
	void *_Atomic *cell = cells ? cells_free(cells) : NULL;

	if (cell)
		atomic_store(cell, entry);
	else
		atomic_fetch_add(&entry->refs, 1);
	ref_fill(ref, entry, address, cell);
}

/* Entries of freed memory that are in the way are taken out. */
static bool find(struct cache *cache, uintptr_t address, size_t size, struct cache_ref *ref)
	REQUIRES(cache->lock)
{
	struct cache_entry *entry;

	while ((entry = cache_table_find(&cache->table, address, size))) {
		if (entry_is_current(cache, entry)) {
			mark_used(entry);
			hold_locked(entry, address, ref);
			cache->stats.hits++;
			return true;
		}
		entry_retire(cache, entry);
		cache->stats.stale++;
	}
	return false;
}

/* Unpins @count idle entries; false if there are none. */
static bool make_room(struct cache *cache, uint32_t count)
{
	struct cache_entry *list;

	lock_acquire(&cache->lock);
	list = cache_evict(cache, count, 0);
	lock_release(&cache->lock);
	cache_unpin(cache, list);
	return list;
}

/* What is exhausted is shared by all entries: unpins 1, 2, 4, ... of them, to the last idle one. */
static int pin(struct cache *cache, uintptr_t address, size_t size, struct cache_pin *pin)
{
	int err = cache->source->pin(cache->context, address, size, pin);

	for (uint32_t count = 1; err == -ENOSPC || err == -ENOMEM;) {
		if (!make_room(cache, count))
			break;
		count = count < cache->limit ? count * 2 : count;
		*pin = (struct cache_pin){ .fd = -1 };
		err = cache->source->pin(cache->context, address, size, pin);
	}
	if (err || (pin->size && pin->base + (pin->size - 1) >= pin->base &&
		    range_contains(pin->base, pin->size, address, size)))
		return err;
	cache->source->unpin(cache->context, pin);
	return log_errno(EINVAL, "asked for %zu bytes at %#zx, pinned %zu at %#zx", size,
			 (size_t)address, pin->size, (size_t)pin->base);
}

static struct cache_entry *entry_take(struct cache *cache) REQUIRES(cache->lock)
{
	struct cache_entry *entry = cache->free;

	if (entry)
		cache->free = entry->next;
	else if (cache->used < cache->limit)
		entry = &cache->entries[cache->used++];
	return entry;
}

/*
 * Makes an entry of a pin.  It is not for others if something was invalidated meanwhile: the
 * memory may be what is being freed.
 */
static int insert(struct cache *cache, const struct cache_pin *pin, bool shared,
		  struct cache_entry **out) REQUIRES(cache->lock)
{
	int err = cache_table_reserve(&cache->table, pin->base, pin->size);
	struct cache_entry *entry = err ? NULL : entry_take(cache);

	if (!entry)
		return err ? err : -ENOSPC;
	entry->pin = *pin;
	entry->inherited = false;
	atomic_store_explicit(&entry->referenced, 0, memory_order_relaxed);
	cache->stats.bytes_pinned += pin->size;
	cache->stats.entries++;
	atomic_store(&entry->state, ENTRY_LIVE);
	cache_table_add(&cache->table, entry, pin->base, pin->size);
	if (!shared)
		entry_retire(cache, entry);
	*out = entry;
	return 0;
}

/* Finds the range after all, or makes an entry of @pin, which is then @taken. */
static int find_or_insert(struct cache *cache, const struct cache_pin *pin, bool shared,
			  uintptr_t address, size_t size, struct cache_ref *ref, bool *taken)
	REQUIRES(cache->lock)
{
	struct cache_entry *entry;
	int err;

	*taken = false;
	if (find(cache, address, size, ref))
		return 0;
	err = insert(cache, pin, shared, &entry);
	if (err)
		return err;
	hold_locked(entry, address, ref);
	*taken = true;
	return 0;
}

/* Gives the pin to the cache, or back to the source: if there is no room, or another was faster. */
static int publish(struct cache *cache, const struct cache_pin *pin, uint64_t invalidated,
		   uintptr_t address, size_t size, struct cache_ref *ref)
{
	struct cache_entry *list;
	bool taken, again;
	int err;

	do {
		lock_acquire(&cache->lock);
		err = find_or_insert(cache, pin, invalidated == cache->invalidated, address, size,
				     ref, &taken);
		list = err == -ENOSPC ? cache_evict(cache, 1, 0) : cache_trim(cache);
		lock_release(&cache->lock);
		again = err == -ENOSPC && list;
		cache_unpin(cache, list);
	} while (again);
	if (!taken)
		cache->source->unpin(cache->context, pin);
	if (err)
		log_error("%u entries of the registration cache are in use: %s", cache->limit,
			  strerror(-err));
	return err;
}

static int miss(struct cache *cache, uintptr_t address, size_t size, struct cache_ref *ref)
{
	struct cache_pin new = { .fd = -1 };
	struct cache_entry *list;
	uint64_t invalidated;
	bool found;
	int err;

	lock_acquire(&cache->lock);
	found = find(cache, address, size, ref);
	cache->stats.misses += !found;
	invalidated = cache->invalidated;
	list = cache_collect(cache);
	lock_release(&cache->lock);
	cache_unpin(cache, list);
	if (found)
		return 0;
	err = pin(cache, address, size, &new);
	return err ? err : publish(cache, &new, invalidated, address, size, ref);
}

int cache_get(struct cache *cache, uintptr_t address, size_t size, struct cache_ref *ref)
{
	uintptr_t last;

	if (__builtin_expect(!size || __builtin_add_overflow(address, size - 1, &last), 0))
		return log_errno(EINVAL, "%zu bytes at %#zx are no range", size, (size_t)address);
	return hit(cache, address, size, ref) ? 0 : miss(cache, address, size, ref);
}

static void tidy(struct cache *cache)
{
	struct cache_entry *list;

	lock_acquire(&cache->lock);
	list = cache_trim(cache);
	lock_release(&cache->lock);
	cache_unpin(cache, list);
}

/* After the release the entry may be another's already: its state can only be wrong to tidy up. */
void cache_put(struct cache *cache, struct cache_ref *ref)
{
	struct cache_entry *entry = entry_of(ref);

	entry_release(entry, ref->cell);
	if (__builtin_expect(atomic_load(&entry->state) != ENTRY_LIVE || atomic_load(&cache->over),
			     0))
		tidy(cache);
}

void cache_invalidate(struct cache *cache, uintptr_t address, size_t size)
{
	struct cache_entry *list;

	lock_acquire(&cache->lock);
	cache->invalidated++;
	for (uint32_t i = 0; size && i < cache->used; i++) {
		struct cache_entry *entry = &cache->entries[i];

		if (atomic_load_explicit(&entry->state, memory_order_relaxed) != ENTRY_LIVE ||
		    (entry->pin.base - address >= size &&
		     address - entry->pin.base >= entry->pin.size))
			continue;
		entry_retire(cache, entry);
		cache->stats.invalidations++;
	}
	list = cache_collect(cache);
	lock_release(&cache->lock);
	cache_unpin(cache, list);
}

void cache_stats(struct cache *cache, struct cache_stats *stats)
{
	lock_acquire(&cache->lock);
	cache_sweep(cache);
	*stats = cache->stats;
	stats->hits += cells_hits(cache->id) - cache->hits_before;
	for (uint32_t i = 0; i < cache->used; i++)
		if (atomic_load(&cache->entries[i].state) == ENTRY_LIVE &&
		    entry_is_idle(cache, &cache->entries[i]))
			stats->bytes_idle += cache->entries[i].pin.size;
	lock_release(&cache->lock);
}
