/* SPDX-License-Identifier: Apache-2.0 */
/* How entries go: by eviction, by invalidation, and stale. */
#include "import/cache/entry.h"

static void entry_unpublish(struct cache *cache, struct cache_entry *entry) REQUIRES(cache->lock)
{
	cache_table_remove(&cache->table, entry, entry->pin.base, entry->pin.size);
}

void entry_retire(struct cache *cache, struct cache_entry *entry)
{
	atomic_fetch_and(&entry->state, ~ENTRY_LIVE);
	entry_unpublish(cache, entry);
	entry->next = cache->dying;
	cache->dying = entry;
}

/* The entry leaves the counts under the lock; the pin goes without the lock. */
static void entry_give_out(struct cache *cache, struct cache_entry *entry,
			   struct cache_entry **list) REQUIRES(cache->lock)
{
	if (entry->counted) {
		cache->stats.bytes_pinned -= entry->pin.size;
		cache->stats.entries--;
	}
	entry->next = *list;
	*list = entry;
}

struct cache_entry *cache_collect(struct cache *cache)
{
	struct cache_entry *list = NULL, **link = &cache->dying, *entry;

	while ((entry = *link)) {
		if (atomic_load(&entry->state)) {
			link = &entry->next;
			continue;
		}
		*link = entry->next;
		entry_give_out(cache, entry, &list);
	}
	return list;
}

/* Adds an idle entry to @list, unless a user comes first. */
static bool entry_evict(struct cache *cache, struct cache_entry *entry, struct cache_entry **list)
	REQUIRES(cache->lock)
{
	uint32_t idle = ENTRY_LIVE;

	if (!atomic_compare_exchange_strong(&entry->state, &idle, 0))
		return false;
	entry_unpublish(cache, entry);
	entry_give_out(cache, entry, list);
	cache->stats.evictions++;
	return true;
}

/* Since the last call. */
static bool entry_was_used(struct cache_entry *entry)
{
	return atomic_exchange_explicit(&entry->referenced, 0, memory_order_relaxed);
}

/* The clock: an entry that was used since the hand passed gets a second chance. */
struct cache_entry *cache_evict(struct cache *cache, uint32_t entries, size_t bytes)
{
	struct cache_entry *list = NULL;
	uint32_t chosen = 0;
	size_t size = 0;

	for (uint64_t i = 0; i < 2 * (uint64_t)cache->used && (chosen < entries || size < bytes);
	     i++) {
		struct cache_entry *entry = &cache->entries[cache->hand];

		cache->hand = (cache->hand + 1) % cache->used;
		if (!entry_is_idle(entry) || entry_was_used(entry) ||
		    !entry_evict(cache, entry, &list))
			continue;
		chosen++;
		size += entry->pin.size;
	}
	return list;
}

/* Whether the entry was idle at the last call, and nobody has used it since. */
static bool entry_ages(struct cache_entry *entry)
{
	bool was_aged = entry->aged;

	entry->aged = entry_is_idle(entry);
	return !entry_was_used(entry) && was_aged && entry->aged;
}

/* Before a look for idle entries: the put of an entry that looks used tells the source. */
static void cache_tell_of_put(struct cache *cache) REQUIRES(cache->lock)
{
	if (cache->source->idle)
		atomic_store(&cache->tells, true);
}

bool cache_age(struct cache *cache)
{
	struct cache_entry *list = NULL;
	bool is_left = false;

	lock_acquire(&cache->lock);
	cache_tell_of_put(cache);
	for (uint32_t i = 0; i < cache->used; i++) {
		struct cache_entry *entry = &cache->entries[i];

		if (entry_is_live(entry) &&
		    !(entry_ages(entry) && entry_evict(cache, entry, &list)))
			is_left |= entry->aged;
	}
	lock_release(&cache->lock);
	cache_unpin(cache, list);
	return is_left;
}

static struct cache_entry *cache_list_join(struct cache_entry *a, struct cache_entry *b)
{
	struct cache_entry **end = &a;

	while (*end)
		end = &(*end)->next;
	*end = b;
	return a;
}

/* On a line that each hit reads. */
static void cache_set_over(struct cache *cache, bool over) REQUIRES(cache->lock)
{
	if (atomic_load(&cache->over) != over)
		atomic_store(&cache->over, over);
}

/* More than the limits may be idle as soon as users put their entries. */
static bool cache_may_idle_over(const struct cache *cache) REQUIRES(cache->lock)
{
	return cache->stats.bytes_pinned > cache->idle_bytes ||
	       cache->stats.entries > cache->idle_entries;
}

static struct cache_entry *cache_evict_over_idle(struct cache *cache) REQUIRES(cache->lock)
{
	uint32_t entries = 0;
	size_t bytes = 0;

	for (uint32_t i = 0; i < cache->used; i++) {
		if (!entry_is_idle(&cache->entries[i]))
			continue;
		entries++;
		bytes += cache->entries[i].pin.size;
	}
	entries = entries > cache->idle_entries ? entries - cache->idle_entries : 0;
	bytes = bytes > cache->idle_bytes ? bytes - cache->idle_bytes : 0;
	return entries || bytes ? cache_evict(cache, entries, bytes) : NULL;
}

/* Sets @over before the look for idle entries: a user that puts an entry later sees @over. */
struct cache_entry *cache_trim(struct cache *cache)
{
	struct cache_entry *list = cache_collect(cache);

	if (cache_may_idle_over(cache)) {
		cache_set_over(cache, true);
		list = cache_list_join(list, cache_evict_over_idle(cache));
	}
	cache_set_over(cache, cache_may_idle_over(cache));
	return list;
}

void cache_unpin(struct cache *cache, struct cache_entry *list)
{
	struct cache_entry *next;

	for (struct cache_entry *entry = list; entry; entry = entry->next)
		if (!entry_is_inherited(entry))
			cache->source->unpin(cache->context, &entry->pin);
	if (!list)
		return;
	lock_acquire(&cache->lock);
	for (struct cache_entry *entry = list; entry; entry = next) {
		next = entry->next;
		entry->is_taken = false;
		entry->next = cache->free;
		cache->free = entry;
	}
	lock_release(&cache->lock);
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

bool cache_invalidate_only(struct cache *cache, uintptr_t address, size_t size)
{
	bool is_left;

	lock_acquire(&cache->lock);
	cache->invalidated++;
	for (uint32_t i = 0; size && i < cache->used; i++) {
		struct cache_entry *entry = &cache->entries[i];

		if (entry_is_live(entry) && entry_touches(entry, address, size))
			entry_retire(cache, entry);
	}
	is_left = cache->dying;
	lock_release(&cache->lock);
	return is_left;
}

void cache_invalidate(struct cache *cache, uintptr_t address, size_t size)
{
	if (cache_invalidate_only(cache, address, size))
		cache_tidy(cache);
}

static void cache_retire_stale(struct cache *cache, struct cache_entry *entry)
{
	lock_acquire(&cache->lock);
	if (entry_is_live(entry)) {
		entry_retire(cache, entry);
		cache->stats.stale++;
	}
	lock_release(&cache->lock);
}

void cache_drop_stale_ref(struct cache *cache, struct cache_ref *ref)
{
	cache_retire_stale(cache, cache_entry_of(ref));
	cache_put(cache, ref);
}

/* Uses the next live entry from @at on that touches the range. */
static bool cache_hold_next(struct cache *cache, uint32_t *at, uintptr_t address, size_t size,
			    struct cache_ref *ref)
{
	bool held = false;

	lock_acquire(&cache->lock);
	while (!held && *at < cache->used) {
		struct cache_entry *entry = &cache->entries[(*at)++];

		held = entry_is_live(entry) && entry_touches(entry, address, size);
		if (held)
			entry_hold_locked(entry, entry->pin.base, ref);
	}
	lock_release(&cache->lock);
	return held;
}

/* The source is asked without the lock. */
bool cache_drop_stale_only(struct cache *cache, uintptr_t address, size_t size)
{
	struct cache_ref ref;
	bool is_left = false;
	uint32_t at = 0;

	while (cache_hold_next(cache, &at, address, size, &ref)) {
		if (!entry_is_current(cache, cache_entry_of(&ref)))
			cache_retire_stale(cache, cache_entry_of(&ref));
		is_left |= cache_put_only(cache, &ref);
	}
	return is_left;
}

void cache_drop_stale(struct cache *cache, uintptr_t address, size_t size)
{
	if (cache_drop_stale_only(cache, address, size))
		cache_tidy(cache);
}

bool cache_drop_changed(struct cache *cache)
{
	struct cache_entry *list;
	bool is_left = false;

	lock_acquire(&cache->lock);
	cache_tell_of_put(cache);
	for (uint32_t i = 0; i < cache->used; i++) {
		struct cache_entry *entry = &cache->entries[i];

		if (!entry_is_live(entry) || !entry->pin.status)
			continue;
		if (entry_is_current(cache, entry)) {
			is_left |= entry_is_idle(entry);
			continue;
		}
		entry_retire(cache, entry);
		cache->stats.stale++;
	}
	list = cache_collect(cache);
	lock_release(&cache->lock);
	cache_unpin(cache, list);
	return is_left;
}
