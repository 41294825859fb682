/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Open addressing, linear probing, at most half full.
 *
 * A slot goes from empty to a key, from a key to GONE, and from GONE to a key,
 * or to empty when the slot behind it is empty: probing would end there in any
 * case.  So a reader that meets a change sees the table before or after it.
 * A table that was outgrown is kept: a reader may still be in it.
 */
#include "icd/objects/table.h"

#include <stdint.h>
#include <stdlib.h>

#define FIRST_SIZE 64
#define GONE ((void *)1)

struct slot {
	_Atomic(void *) key;
	_Atomic(void *) record;
};

struct table_slots {
	struct table_slots *outgrown; /* reachable for leak checkers */
	size_t mask;
	size_t used; /* keys and GONE */
	struct slot slot[];
};

/* Handles are heap addresses: the low bits say little, and 1/phi spreads the rest. */
static size_t table_hash(const void *key)
{
	return ((uintptr_t)key * UINT64_C(0x9e3779b97f4a7c15)) >> 32;
}

static struct slot *slot_find(struct table_slots *slots, const void *key)
{
	for (size_t i = table_hash(key) & slots->mask;; i = (i + 1) & slots->mask) {
		void *found = atomic_load_explicit(&slots->slot[i].key, memory_order_acquire);

		if (found == key)
			return &slots->slot[i];
		if (!found)
			return NULL;
	}
}

void *table_get(struct table *table, const void *key)
{
	struct table_slots *slots = atomic_load_explicit(&table->slots, memory_order_acquire);
	struct slot *slot = slots && key ? slot_find(slots, key) : NULL;

	return slot ? atomic_load_explicit(&slot->record, memory_order_acquire) : NULL;
}

/* The first slot that a new key may take: GONE or empty. */
static struct slot *slot_free(struct table_slots *slots, const void *key)
{
	size_t i = table_hash(key) & slots->mask;

	for (;; i = (i + 1) & slots->mask) {
		void *found = atomic_load_explicit(&slots->slot[i].key, memory_order_relaxed);

		if (!found || found == GONE)
			return &slots->slot[i];
	}
}

static void slot_fill(struct table_slots *slots, const void *key, void *record)
{
	struct slot *slot = slot_free(slots, key);

	if (!atomic_load_explicit(&slot->key, memory_order_relaxed))
		slots->used++;
	atomic_store_explicit(&slot->record, record, memory_order_release);
	atomic_store_explicit(&slot->key, (void *)key, memory_order_release);
}

static struct table_slots *table_slots_create(size_t size)
{
	struct table_slots *slots = calloc(1, sizeof(*slots) + size * sizeof(struct slot));

	if (slots)
		slots->mask = size - 1;
	return slots;
}

static void slots_move(struct table_slots *to, struct table_slots *from)
{
	for (size_t i = 0; i <= from->mask; i++) {
		void *key = atomic_load_explicit(&from->slot[i].key, memory_order_relaxed);

		if (key && key != GONE)
			slot_fill(
				to, key,
				atomic_load_explicit(&from->slot[i].record, memory_order_relaxed));
	}
}

static bool table_grow(struct table *table, struct table_slots *old)
{
	struct table_slots *slots = table_slots_create(old ? 2 * (old->mask + 1) : FIRST_SIZE);

	if (!slots)
		return false;
	if (old)
		slots_move(slots, old);
	slots->outgrown = old;
	atomic_store_explicit(&table->slots, slots, memory_order_release);
	return true;
}

bool table_set(struct table *table, const void *key, void *record)
{
	struct table_slots *slots = atomic_load_explicit(&table->slots, memory_order_relaxed);
	struct slot *slot = slots && key ? slot_find(slots, key) : NULL;

	if (!key) /* marks an empty slot */
		return false;
	if (slot) {
		atomic_store_explicit(&slot->record, record, memory_order_release);
		return true;
	}
	if (!slots || slots->used > slots->mask / 2) {
		if (!table_grow(table, slots))
			return false;
		slots = atomic_load_explicit(&table->slots, memory_order_relaxed);
	}
	slot_fill(slots, key, record);
	table->live++;
	return true;
}

/* Slots that are GONE in front of an empty one are as good as empty. */
static void table_sweep(struct table_slots *slots, size_t i)
{
	void *behind =
		atomic_load_explicit(&slots->slot[(i + 1) & slots->mask].key, memory_order_relaxed);

	while (!behind && atomic_load_explicit(&slots->slot[i].key, memory_order_relaxed) == GONE) {
		atomic_store_explicit(&slots->slot[i].key, NULL, memory_order_release);
		slots->used--;
		i = (i - 1) & slots->mask;
	}
}

void *table_remove(struct table *table, const void *key)
{
	struct table_slots *slots = atomic_load_explicit(&table->slots, memory_order_relaxed);
	struct slot *slot = slots && key ? slot_find(slots, key) : NULL;

	if (!slot)
		return NULL;
	table->live--;
	atomic_store_explicit(&slot->key, GONE, memory_order_release);
	table_sweep(slots, slot - slots->slot);
	return atomic_load_explicit(&slot->record, memory_order_relaxed);
}
