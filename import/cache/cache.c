/* SPDX-License-Identifier: Apache-2.0 */
#include "import/cache/cache.h"
#include "import/cache/cache_entry.h"
#include "util/log.h"

#include <errno.h>
#include <string.h>

static struct cache_entry *cache_entry_of(const struct cache_ref *ref)
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
static bool cache_hit(struct cache *cache, uintptr_t address, size_t size, struct cache_ref *ref)
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

/* Holds an entry that has the range; whether it is current still has to be asked. */
static bool hold_any(struct cache *cache, uintptr_t address, size_t size, struct cache_ref *ref)
{
	struct cache_entry *entry;

	lock_acquire(&cache->lock);
	entry = cache_table_find(&cache->table, address, size);
	if (entry)
		hold_locked(entry, address, ref);
	lock_release(&cache->lock);
	return entry;
}

/* Of freed memory: another thread may have taken it out already. */
static void cache_drop_stale_entry(struct cache *cache, struct cache_ref *ref)
{
	struct cache_entry *entry = cache_entry_of(ref);

	lock_acquire(&cache->lock);
	if (atomic_load(&entry->state) == ENTRY_LIVE) {
		entry_retire(cache, entry);
		cache->stats.stale++;
	}
	lock_release(&cache->lock);
	cache_put(cache, ref);
}

static void count_late_hit(struct cache *cache, struct cache_ref *ref)
{
	mark_used(cache_entry_of(ref));
	lock_acquire(&cache->lock);
	cache->stats.hits++;
	lock_release(&cache->lock);
}

/* Entries of freed memory that are in the way are taken out.  The source is asked without the lock. */
static bool cache_find(struct cache *cache, uintptr_t address, size_t size, struct cache_ref *ref)
{
	while (hold_any(cache, address, size, ref)) {
		if (entry_is_current(cache, cache_entry_of(ref))) {
			count_late_hit(cache, ref);
			return true;
		}
		cache_drop_stale_entry(cache, ref);
	}
	return false;
}

static bool cache_entry_touches(const struct cache_entry *entry, uintptr_t address, size_t size)
{
	return entry->pin.base - address < size || address - entry->pin.base < entry->pin.size;
}

/* Holds the next live entry from @at on that touches the range. */
static bool hold_next(struct cache *cache, uint32_t *at, uintptr_t address, size_t size,
		      struct cache_ref *ref)
{
	bool held = false;

	lock_acquire(&cache->lock);
	while (!held && *at < cache->used) {
		struct cache_entry *entry = &cache->entries[(*at)++];

		held = atomic_load_explicit(&entry->state, memory_order_relaxed) == ENTRY_LIVE &&
		       cache_entry_touches(entry, address, size);
		if (held)
			hold_locked(entry, entry->pin.base, ref);
	}
	lock_release(&cache->lock);
	return held;
}

void cache_drop_stale(struct cache *cache, uintptr_t address, size_t size)
{
	struct cache_ref ref;
	uint32_t at = 0;

	while (hold_next(cache, &at, address, size, &ref)) {
		if (entry_is_current(cache, cache_entry_of(&ref)))
			cache_put(cache, &ref);
		else
			cache_drop_stale_entry(cache, &ref);
	}
}

bool cache_make_room(struct cache *cache, uint32_t count)
{
	struct cache_entry *list;

	lock_acquire(&cache->lock);
	list = cache_evict(cache, count, 0);
	lock_release(&cache->lock);
	cache_unpin(cache, list);
	return list;
}

/* What entries have together: the room to pin, and descriptors of the process and the system. */
static bool is_exhausted(int err)
{
	return err == -ENOSPC || err == -ENOMEM || err == -EMFILE || err == -ENFILE;
}

/* What is exhausted is shared by all entries: unpins 1, 2, 4, ... of them, to the last idle one. */
static int cache_pin_range(struct cache *cache, uintptr_t address, size_t size,
			   struct cache_pin *pin)
{
	int err = cache->source->pin(cache->context, address, size, pin);

	for (uint32_t count = 1; is_exhausted(err);) {
		if (!cache_make_room(cache, count))
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
static int cache_insert(struct cache *cache, const struct cache_pin *pin, bool shared,
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

/* -EAGAIN: another thread was faster. */
static int insert_if_alone(struct cache *cache, const struct cache_pin *pin, bool shared,
			   uintptr_t address, size_t size, struct cache_ref *ref)
	REQUIRES(cache->lock)
{
	struct cache_entry *entry;
	int err;

	if (cache_table_find(&cache->table, address, size))
		return -EAGAIN;
	err = cache_insert(cache, pin, shared, &entry);
	if (!err)
		hold_locked(entry, address, ref);
	return err;
}

/* Gives the pin to the cache.  Tries again if room was made, or another thread was faster. */
static int cache_publish(struct cache *cache, const struct cache_pin *pin, uint64_t invalidated,
			 uintptr_t address, size_t size, struct cache_ref *ref, bool *taken)
{
	struct cache_entry *list;
	bool again = true;
	int err = 0;

	for (*taken = false; again && !cache_find(cache, address, size, ref);) {
		lock_acquire(&cache->lock);
		err = insert_if_alone(cache, pin, invalidated == cache->invalidated, address, size,
				      ref);
		list = err == -ENOSPC ? cache_evict(cache, 1, 0) : cache_trim(cache);
		lock_release(&cache->lock);
		*taken = !err;
		again = err == -EAGAIN || (err == -ENOSPC && list);
		cache_unpin(cache, list);
	}
	return again ? 0 : err;
}

/* What stays pinned without a user may be of memory that was freed, and this is other memory. */
static int pin_and_publish(struct cache *cache, uint64_t invalidated, uintptr_t address,
			   size_t size, struct cache_ref *ref)
{
	struct cache_pin new = { .fd = -1 };
	int err = cache_pin_range(cache, address, size, &new);
	bool taken;

	if (err)
		return err;
	if (cache->budget)
		cache_drop_stale(cache, new.base, new.size);
	err = cache_publish(cache, &new, invalidated, address, size, ref, &taken);
	if (!taken)
		cache->source->unpin(cache->context, &new);
	if (err)
		log_error("%u entries of the registration cache are in use: %s", cache->limit,
			  log_strerror(-err));
	return err;
}

static int cache_miss(struct cache *cache, uintptr_t address, size_t size, struct cache_ref *ref)
{
	struct cache_entry *list;
	uint64_t invalidated;

	if (cache_find(cache, address, size, ref))
		return 0;
	lock_acquire(&cache->lock);
	cache->stats.misses++;
	invalidated = cache->invalidated;
	list = cache_collect(cache);
	lock_release(&cache->lock);
	cache_unpin(cache, list);
	return pin_and_publish(cache, invalidated, address, size, ref);
}

bool cache_get_cached(struct cache *cache, uintptr_t address, size_t size, struct cache_ref *ref)
{
	return size && cache_hit(cache, address, size, ref);
}

int cache_get(struct cache *cache, uintptr_t address, size_t size, struct cache_ref *ref)
{
	uintptr_t last;

	if (__builtin_expect(!size || __builtin_add_overflow(address, size - 1, &last), 0))
		return log_errno(EINVAL, "%zu bytes at %#zx are no range", size, (size_t)address);
	return cache_hit(cache, address, size, ref) ? 0 : cache_miss(cache, address, size, ref);
}

static void cache_tidy(struct cache *cache)
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
	struct cache_entry *entry = cache_entry_of(ref);

	entry_release(entry, ref->cell);
	if (__builtin_expect(atomic_load(&entry->state) != ENTRY_LIVE || atomic_load(&cache->over),
			     0))
		cache_tidy(cache);
}

void cache_set_bytes(struct cache *cache, size_t bytes)
{
	lock_acquire(&cache->lock);
	atomic_store(&cache->budget, bytes);
	lock_release(&cache->lock);
	cache_tidy(cache);
}

void cache_invalidate(struct cache *cache, uintptr_t address, size_t size)
{
	struct cache_entry *list;

	lock_acquire(&cache->lock);
	cache->invalidated++;
	for (uint32_t i = 0; size && i < cache->used; i++) {
		struct cache_entry *entry = &cache->entries[i];

		if (atomic_load_explicit(&entry->state, memory_order_relaxed) != ENTRY_LIVE ||
		    !cache_entry_touches(entry, address, size))
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
