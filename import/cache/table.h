/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table of ranges: address -> entry, the owner's struct.  Open addressing, linear probing, at most
 * half full.  The key is a granule of 2 MiB, or of 64 KiB for entries up to 64 KiB.  An entry has a
 * slot for each granule that the entry touches.
 *
 * Writers hold the owner's lock.  A reader without the lock may miss an entry that a writer moves,
 * and may find an entry that a writer takes out: the entry's state is the truth, and a miss is
 * repeated under the lock.  An outgrown table is kept, as readers may be in the table: all outgrown
 * tables together are smaller than the current table.
 */
#ifndef IMPORT_CACHE_TABLE_H
#define IMPORT_CACHE_TABLE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

struct cache_slot {
	_Atomic uintptr_t base; /* hints: the truth is in the entry */
	_Atomic size_t size;
	void *_Atomic entry; /* NULL: empty */
	uint64_t key;	     /* writers only */
};

struct cache_slots {
	struct cache_slots *outgrown;
	size_t mask;
	size_t used;
	struct cache_slot slot[];
};

struct cache_table {
	struct cache_slots *_Atomic slots;
	_Atomic uint32_t small; /* slots of small entries */
};

/* A reader without the lock probes no further. */
#define CACHE_TABLE_PROBES 24

int cache_table_create(struct cache_table *table);
void cache_table_destroy(struct cache_table *table);

/* Forgets all entries; there may be no reader. */
void cache_table_clear(struct cache_table *table);

/* Makes room for one more entry of the range, or -ENOMEM. */
int cache_table_reserve(struct cache_table *table, uintptr_t base, size_t size);
void cache_table_add(struct cache_table *table, void *entry, uintptr_t base, size_t size);
void cache_table_remove(struct cache_table *table, void *entry, uintptr_t base, size_t size);

/* Under the lock: an entry that contains the range. */
void *cache_table_find(struct cache_table *table, uintptr_t address, size_t size);

static inline uint64_t cache_table_key(uintptr_t address, int small)
{
	return small ? (uint64_t)(address >> 16) << 1 | 1 : (uint64_t)(address >> 21) << 1;
}

static inline size_t cache_table_home(const struct cache_slots *slots, uint64_t key)
{
	return (key * UINT64_C(0x9e3779b97f4a7c15)) >> 32 & slots->mask;
}

/* Whether [@base, @base + @bytes) contains [@address, @address + @size), which may wrap. */
static inline int cache_range_contains(uintptr_t base, size_t bytes, uintptr_t address, size_t size)
{
	return address - base < bytes && size - 1 < bytes - (address - base);
}

static inline int cache_range_touches(uintptr_t base, size_t bytes, uintptr_t address, size_t size)
{
	return base - address < size || address - base < bytes;
}

/* Pairs with cache_table_fill(). */
static inline void *cache_table_probe(struct cache_slots *slots, uint64_t key, uintptr_t address,
				      size_t size, size_t probes)
{
	size_t i = cache_table_home(slots, key);

	for (; probes; probes--, i = (i + 1) & slots->mask) {
		struct cache_slot *slot = &slots->slot[i];
		void *entry = atomic_load_explicit(&slot->entry, memory_order_acquire);

		if (!entry ||
		    cache_range_contains(atomic_load_explicit(&slot->base, memory_order_relaxed),
					 atomic_load_explicit(&slot->size, memory_order_relaxed),
					 address, size))
			return entry;
	}
	return NULL;
}

/* Without the lock: an entry that seems to contain the range.  Pairs with cache_table_reserve(). */
static inline void *cache_table_peek(struct cache_table *table, uintptr_t address, size_t size)
{
	struct cache_slots *slots = atomic_load_explicit(&table->slots, memory_order_acquire);
	void *entry = cache_table_probe(slots, cache_table_key(address, 0), address, size,
					CACHE_TABLE_PROBES);

	if (entry || !atomic_load_explicit(&table->small, memory_order_relaxed))
		return entry;
	return cache_table_probe(slots, cache_table_key(address, 1), address, size,
				 CACHE_TABLE_PROBES);
}

#endif /* IMPORT_CACHE_TABLE_H */
