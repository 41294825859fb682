/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A miss: the source pins without the lock, and the pin becomes an entry, unless another thread's
 * pin of the range became an entry first.
 */
#include "import/cache/entry.h"
#include "util/log.h"
#include "util/shortage.h"

#include <errno.h>
#include <string.h>

/* A pin that is not yet an entry. */
struct cache_new {
	struct cache_pin pin;
	uint32_t process;     /* fork_generation() before the pin */
	uint64_t invalidated; /* calls of cache_invalidate() before the pin */
	bool is_kept;	      /* entries stay without users */
	bool taken;	      /* an entry has the pin */
};

/* Uses any entry that has the range; the caller checks that the entry is current. */
static bool cache_hold_any(struct cache *cache, uintptr_t address, size_t size,
			   struct cache_ref *ref)
{
	struct cache_entry *entry;

	lock_acquire(&cache->lock);
	entry = cache_table_find(&cache->table, address, size);
	if (entry)
		entry_hold_locked(entry, address, ref);
	lock_release(&cache->lock);
	return entry;
}

/* Takes out the entries of freed memory that are in the way. */
static bool cache_find(struct cache *cache, uintptr_t address, size_t size, struct cache_ref *ref)
{
	while (cache_hold_any(cache, address, size, ref)) {
		if (entry_is_current(cache, cache_entry_of(ref))) {
			entry_mark_used(cache_entry_of(ref));
			return true;
		}
		cache_drop_stale_ref(cache, ref);
	}
	return false;
}

/* In a shortage, unpins 1, 2, 4, ... idle entries, to the last. */
static int cache_pin_with_room(struct cache *cache, uintptr_t address, size_t size,
			       const void *wanted, struct cache_pin *pin)
{
	int err = cache->source->pin(cache->context, wanted, address, size, pin);

	for (uint32_t count = 1; shortage_is(err) && cache_make_room(cache, count);) {
		count = count < cache->limit ? count * 2 : count;
		*pin = (struct cache_pin){ .fd = -1 };
		err = cache->source->pin(cache->context, wanted, address, size, pin);
	}
	return err;
}

static int cache_pin_range(struct cache *cache, uintptr_t address, size_t size, const void *wanted,
			   struct cache_pin *pin)
{
	int err = cache_pin_with_room(cache, address, size, wanted, pin);

	if (err || (pin->size && pin->base + (pin->size - 1) >= pin->base &&
		    cache_range_contains(pin->base, pin->size, address, size)))
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
 * Makes an entry of a pin.  If a range was invalidated since the pin, the memory may be what the
 * program is freeing: the entry is then for the caller alone.
 */
static int entry_insert(struct cache *cache, const struct cache_new *new, struct cache_entry **out)
	REQUIRES(cache->lock)
{
	const struct cache_pin *pin = &new->pin;
	int err = cache_table_reserve(&cache->table, pin->base, pin->size);
	struct cache_entry *entry = err ? NULL : entry_take(cache);

	if (!entry)
		return err ? err : -ENOSPC;
	entry->pin = *pin;
	entry->process = new->process;
	entry->is_taken = true;
	entry->counted = true;
	entry->aged = false;
	atomic_store_explicit(&entry->referenced, 0, memory_order_relaxed);
	cache->stats.bytes_pinned += pin->size;
	cache->stats.entries++;
	atomic_store(&entry->state, ENTRY_LIVE);
	cache_table_add(&cache->table, entry, pin->base, pin->size);
	if (new->invalidated != cache->invalidated)
		entry_retire(cache, entry);
	*out = entry;
	return 0;
}

/* -EAGAIN: another thread was faster. */
static int cache_insert_if_alone(struct cache *cache, const struct cache_new *new,
				 uintptr_t address, size_t size, struct cache_ref *ref)
	REQUIRES(cache->lock)
{
	struct cache_entry *entry;
	int err;

	if (cache_table_find(&cache->table, address, size))
		return -EAGAIN;
	err = entry_insert(cache, new, &entry);
	if (!err)
		entry_hold_locked(entry, address, ref);
	return err;
}

/* One try.  -EAGAIN: another thread was faster, or room was made. */
static int cache_publish_once(struct cache *cache, struct cache_new *new, uintptr_t address,
			      size_t size, struct cache_ref *ref)
{
	struct cache_entry *list;
	int err;

	lock_acquire(&cache->lock);
	err = cache_insert_if_alone(cache, new, address, size, ref);
	list = err == -ENOSPC ? cache_evict(cache, 1, 0) : cache_trim(cache);
	lock_release(&cache->lock);
	new->taken = !err;
	cache_unpin(cache, list);
	return err == -ENOSPC && list ? -EAGAIN : err;
}

/* Makes the pin an entry, or finds another thread's entry. */
static int cache_publish(struct cache *cache, struct cache_new *new, uintptr_t address, size_t size,
			 struct cache_ref *ref)
{
	int err = -EAGAIN;

	while (err == -EAGAIN) {
		if (cache_find(cache, address, size, ref))
			return 0;
		err = cache_publish_once(cache, new, address, size, ref);
	}
	return err;
}

/*
 * Where entries stay pinned without users, entries that overlap the new pin may be of freed memory.
 */
static int cache_pin_and_publish(struct cache *cache, struct cache_new *new, uintptr_t address,
				 size_t size, const void *wanted, struct cache_ref *ref)
{
	int err = cache_pin_range(cache, address, size, wanted, &new->pin);

	if (err)
		return err;
	if (new->is_kept)
		cache_drop_stale(cache, new->pin.base, new->pin.size);
	err = cache_publish(cache, new, address, size, ref);
	if (!new->taken)
		cache->source->unpin(cache->context, &new->pin);
	if (err)
		log_error("%u entries of the registration cache are in use: %s", cache->limit,
			  log_strerror(-err));
	return err;
}

int cache_miss(struct cache *cache, uintptr_t address, size_t size, const void *wanted,
	       struct cache_ref *ref)
{
	struct cache_new new = { .pin = { .fd = -1 }, .process = fork_generation() };
	struct cache_entry *list;

	if (cache_find(cache, address, size, ref))
		return 0;
	lock_acquire(&cache->lock);
	cache->stats.misses++;
	new.invalidated = cache->invalidated;
	new.is_kept = cache->idle_bytes;
	list = cache_collect(cache);
	lock_release(&cache->lock);
	cache_unpin(cache, list);
	return cache_pin_and_publish(cache, &new, address, size, wanted, ref);
}
