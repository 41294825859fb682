/* SPDX-License-Identifier: Apache-2.0 */
/* Which idle entries go. */
#include "import/cache/entry.h"

void cache_list_add_dying(struct cache_entry **list, struct cache_entry *entry)
{
	atomic_store(&entry->state, ENTRY_DYING);
	entry->next = *list;
	*list = entry;
}

/* The clock: an entry that was used since the hand passed gets a second chance. */
static bool entry_is_victim(struct cache *cache, struct cache_entry *entry) REQUIRES(cache->lock)
{
	if (entry_state_of(entry) != ENTRY_LIVE || !entry_is_idle(cache, entry))
		return false;
	return !atomic_exchange_explicit(&entry->referenced, 0, memory_order_relaxed);
}

static struct cache_entry *cache_choose_by_clock(struct cache *cache, uint32_t entries,
						 size_t bytes) REQUIRES(cache->lock)
{
	struct cache_entry *list = NULL;
	uint32_t chosen = 0;
	size_t size = 0;

	for (uint64_t i = 0; i < 2 * (uint64_t)cache->used; i++) {
		struct cache_entry *entry = &cache->entries[cache->hand];

		if (chosen >= entries && size >= bytes)
			break;
		cache->hand = (cache->hand + 1) % cache->used;
		if (!entry_is_victim(cache, entry))
			continue;
		cache_list_add_dying(&list, entry);
		chosen++;
		size += entry->pin.size;
	}
	return list;
}

static uint64_t entry_used(struct cache_entry *entry)
{
	return atomic_load_explicit(&entry->used, memory_order_relaxed);
}

/* Two sorted lists as one.  A hit may change the order meanwhile. */
static struct cache_entry *cache_list_merge(struct cache_entry *a, struct cache_entry *b)
{
	struct cache_entry *list = NULL, **end = &list;

	while (a && b) {
		struct cache_entry **first = entry_used(b) < entry_used(a) ? &b : &a;

		*end = *first;
		end = &(*end)->next;
		*first = *end;
	}
	*end = a ? a : b;
	return list;
}

/* Takes @count entries from @list: sorted, the least recently used first. */
static struct cache_entry *cache_list_sort(struct cache_entry **list, uint32_t count)
{
	struct cache_entry *first = *list;

	if (!count)
		return NULL;
	if (count == 1) {
		*list = first->next;
		first->next = NULL;
		return first;
	}
	first = cache_list_sort(list, count / 2);
	return cache_list_merge(first, cache_list_sort(list, count - count / 2));
}

/* A live entry is in no list: its link is free for this one. */
static struct cache_entry *cache_idle_by_age(struct cache *cache) REQUIRES(cache->lock)
{
	struct cache_entry *list = NULL, **end = &list;
	uint32_t count = 0;

	for (uint32_t i = 0; i < cache->used; i++) {
		struct cache_entry *entry = &cache->entries[i];

		if (entry_state_of(entry) != ENTRY_LIVE || !entry_is_idle(cache, entry))
			continue;
		*end = entry;
		end = &entry->next;
		count++;
	}
	*end = NULL;
	return cache_list_sort(&list, count);
}

static struct cache_entry *cache_choose_by_age(struct cache *cache, uint32_t entries, size_t bytes)
	REQUIRES(cache->lock)
{
	struct cache_entry *list = NULL, *next;
	uint32_t chosen = 0;
	size_t size = 0;

	for (struct cache_entry *entry = cache_idle_by_age(cache); entry; entry = next) {
		if (chosen >= entries && size >= bytes)
			break;
		next = entry->next;
		cache_list_add_dying(&list, entry);
		chosen++;
		size += entry->pin.size;
	}
	return list;
}

struct cache_entry *cache_choose(struct cache *cache, enum cache_order order, uint32_t entries,
				 size_t bytes)
{
	return order == CACHE_BY_AGE ? cache_choose_by_age(cache, entries, bytes)
				     : cache_choose_by_clock(cache, entries, bytes);
}
