/* SPDX-License-Identifier: Apache-2.0 */
#include "import/cache/table.h"

#include <errno.h>
#include <stdlib.h>

#define CACHE_TABLE_FIRST_SLOTS 256
#define CACHE_TABLE_SMALL (64 << 10)

/* The keys of an entry: first, first + 2, ..., last. */
struct cache_table_keys {
	uint64_t first, last;
};

static struct cache_table_keys cache_table_keys_of(uintptr_t base, size_t size)
{
	int small = size <= CACHE_TABLE_SMALL;

	return (struct cache_table_keys){
		cache_table_key(base, small),
		cache_table_key(base + (size - 1), small),
	};
}

static size_t cache_table_count(struct cache_table_keys keys)
{
	return (keys.last - keys.first) / 2 + 1;
}

/* Writers have the lock, and read their own writes relaxed. */
static struct cache_slots *cache_table_own(struct cache_table *table)
{
	return atomic_load_explicit(&table->slots, memory_order_relaxed);
}

static void *cache_table_entry_of(struct cache_slot *slot)
{
	return atomic_load_explicit(&slot->entry, memory_order_relaxed);
}

static struct cache_slots *cache_table_slots_create(size_t count)
{
	struct cache_slots *slots =
		count > SIZE_MAX / 2 / sizeof(struct cache_slot)
			? NULL
			: calloc(1, sizeof(*slots) + count * sizeof(struct cache_slot));

	if (slots)
		slots->mask = count - 1;
	return slots;
}

int cache_table_create(struct cache_table *table)
{
	struct cache_slots *slots = cache_table_slots_create(CACHE_TABLE_FIRST_SLOTS);

	atomic_store_explicit(&table->slots, slots, memory_order_relaxed);
	return slots ? 0 : -ENOMEM;
}

void cache_table_destroy(struct cache_table *table)
{
	struct cache_slots *outgrown;

	for (struct cache_slots *slots = cache_table_own(table); slots; slots = outgrown) {
		outgrown = slots->outgrown;
		free(slots);
	}
}

/* The entry last: a reader, cache_table_probe(), that sees the entry sees the hints. */
static void cache_table_fill(struct cache_slot *slot, void *entry, uintptr_t base, size_t size,
			     uint64_t key)
{
	slot->key = key;
	atomic_store_explicit(&slot->base, base, memory_order_relaxed);
	atomic_store_explicit(&slot->size, size, memory_order_relaxed);
	atomic_store_explicit(&slot->entry, entry, memory_order_release);
}

static void cache_table_empty(struct cache_slot *slot)
{
	cache_table_fill(slot, NULL, 0, 0, 0);
}

static void cache_table_copy(struct cache_slot *to, struct cache_slot *from)
{
	cache_table_fill(to, cache_table_entry_of(from),
			 atomic_load_explicit(&from->base, memory_order_relaxed),
			 atomic_load_explicit(&from->size, memory_order_relaxed), from->key);
}

static struct cache_slot *cache_table_free_slot(struct cache_slots *slots, uint64_t key)
{
	size_t i = cache_table_home(slots, key);

	while (cache_table_entry_of(&slots->slot[i]))
		i = (i + 1) & slots->mask;
	slots->used++;
	return &slots->slot[i];
}

void cache_table_clear(struct cache_table *table)
{
	struct cache_slots *slots = cache_table_own(table);

	for (size_t i = 0; i <= slots->mask; i++)
		cache_table_empty(&slots->slot[i]);
	slots->used = 0;
	atomic_store_explicit(&table->small, 0, memory_order_relaxed);
}

int cache_table_reserve(struct cache_table *table, uintptr_t base, size_t size)
{
	struct cache_slots *old = cache_table_own(table), *slots;
	size_t need = old->used + cache_table_count(cache_table_keys_of(base, size)),
	       slots_count = old->mask + 1;

	if (need <= slots_count / 2)
		return 0;
	while (need > slots_count / 2)
		slots_count *= 2;
	slots = cache_table_slots_create(slots_count);
	if (!slots)
		return -ENOMEM;
	for (size_t i = 0; i <= old->mask; i++)
		if (cache_table_entry_of(&old->slot[i]))
			cache_table_copy(cache_table_free_slot(slots, old->slot[i].key),
					 &old->slot[i]);
	slots->outgrown = old;
	atomic_store_explicit(&table->slots, slots, memory_order_release); /* cache_table_peek() */
	return 0;
}

static void cache_table_count_small(struct cache_table *table, uint64_t key, uint32_t by)
{
	if (key & 1)
		atomic_fetch_add_explicit(&table->small, by, memory_order_relaxed);
}

void cache_table_add(struct cache_table *table, void *entry, uintptr_t base, size_t size)
{
	struct cache_table_keys keys = cache_table_keys_of(base, size);

	for (uint64_t key = keys.first; key <= keys.last; key += 2) {
		cache_table_fill(cache_table_free_slot(cache_table_own(table), key), entry, base,
				 size, key);
		cache_table_count_small(table, key, 1);
	}
}

/* Whether a search from @home that ends before @at passes @hole. */
static int cache_table_passes(size_t home, size_t hole, size_t at, size_t mask)
{
	return ((at - home) & mask) >= ((at - hole) & mask);
}

/* Moves later slots of the run into the hole, so that no search ends early. */
static void cache_table_close_hole(struct cache_slots *slots, size_t hole)
{
	for (size_t i = (hole + 1) & slots->mask; cache_table_entry_of(&slots->slot[i]);
	     i = (i + 1) & slots->mask) {
		if (!cache_table_passes(cache_table_home(slots, slots->slot[i].key), hole, i,
					slots->mask))
			continue;
		cache_table_copy(&slots->slot[hole], &slots->slot[i]);
		hole = i;
	}
	cache_table_empty(&slots->slot[hole]);
	slots->used--;
}

void cache_table_remove(struct cache_table *table, void *entry, uintptr_t base, size_t size)
{
	struct cache_slots *slots = cache_table_own(table);
	struct cache_table_keys keys = cache_table_keys_of(base, size);

	for (uint64_t key = keys.first; key <= keys.last; key += 2) {
		size_t i = cache_table_home(slots, key);

		while (cache_table_entry_of(&slots->slot[i]) != entry || slots->slot[i].key != key)
			i = (i + 1) & slots->mask;
		cache_table_close_hole(slots, i);
		cache_table_count_small(table, key, -1U);
	}
}

void *cache_table_find(struct cache_table *table, uintptr_t address, size_t size)
{
	struct cache_slots *slots = cache_table_own(table);
	void *entry =
		cache_table_probe(slots, cache_table_key(address, 0), address, size, SIZE_MAX);

	return entry ? entry
		     : cache_table_probe(slots, cache_table_key(address, 1), address, size,
					 SIZE_MAX);
}
