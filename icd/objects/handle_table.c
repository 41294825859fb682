/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Open addressing, linear probing, at most half full.
 *
 * A slot goes from empty to a key, from a key to GONE, and from GONE to a key, or to empty if the
 * next slot is empty, where probing would end in any case.  So a reader that meets a change sees
 * the table before or after the change.  A reader may still search an array of slots that was
 * outgrown: such arrays are kept.
 */
#include "icd/objects/handle_table.h"

#include <stdint.h>
#include <stdlib.h>

#define FIRST_SIZE 64
#define GONE ((void *)1)

struct handle_slot {
	_Atomic(void *) key;
	_Atomic(void *) record;
};

struct handle_slots {
	struct handle_slots *outgrown; /* reachable for leak checkers */
	size_t mask;
	size_t used; /* keys and GONE */
	struct handle_slot slot[];
};

static bool slot_is_taken(const struct handle_slot *slot)
{
	const void *key = slot->key;

	return key && key != GONE;
}

/* Handles are heap addresses: the low bits say little, and 1/phi spreads the rest. */
static size_t handle_hash(const void *handle)
{
	return ((uintptr_t)handle * UINT64_C(0x9e3779b97f4a7c15)) >> 32;
}

/* The slot of @handle.  NULL: the table has no record, as for NULL, and for what only looks like a handle. */
static struct handle_slot *slots_find(struct handle_slots *slots, const void *handle)
{
	if (!slots || !handle || handle == GONE)
		return NULL;
	for (size_t i = handle_hash(handle) & slots->mask;; i = (i + 1) & slots->mask) {
		const void *key = slots->slot[i].key; /* pairs with slots_fill() */

		if (key == handle)
			return &slots->slot[i];
		if (!key)
			return NULL;
	}
}

/* A new key takes the first slot that is GONE or empty.  False: the slot had it already.  Pairs with slots_find(). */
static bool slots_fill(struct handle_slots *slots, const void *handle, void *record)
{
	struct handle_slot *slot, *gone = NULL;
	const void *key;

	for (size_t i = handle_hash(handle);; i++) {
		slot = &slots->slot[i & slots->mask];
		key = slot->key;
		if (!key || key == handle)
			break;
		if (key == GONE && !gone)
			gone = slot;
	}
	if (!key && gone)
		slot = gone;
	else if (!key)
		slots->used++;
	atomic_store_explicit(&slot->record, record, memory_order_release);
	atomic_store_explicit(&slot->key, (void *)handle, memory_order_release);
	return key != handle;
}

/* Slots that are GONE in front of an empty slot are as good as empty.  Pairs with slots_find(). */
static void slots_sweep(struct handle_slots *slots, size_t i)
{
	if (slots->slot[(i + 1) & slots->mask].key)
		return;
	for (; slots->slot[i].key == GONE; i = (i - 1) & slots->mask) {
		atomic_store_explicit(&slots->slot[i].key, NULL, memory_order_release);
		slots->used--;
	}
}

static struct handle_slots *slots_create(size_t size, struct handle_slots *old)
{
	struct handle_slots *slots = calloc(1, sizeof(*slots) + size * sizeof(slots->slot[0]));

	if (!slots)
		return NULL;
	slots->mask = size - 1;
	slots->outgrown = old;
	for (size_t i = 0; old && i <= old->mask; i++)
		if (slot_is_taken(&old->slot[i]))
			slots_fill(slots, old->slot[i].key, old->slot[i].record);
	return slots;
}

/* Makes room for a new key.  False: no memory.  Pairs with the look-ups of handle_table_peek() and others. */
static bool handle_table_reserve(struct handle_table *table)
{
	struct handle_slots *slots = table->slots;

	if (slots && slots->used <= slots->mask / 2)
		return true;
	slots = slots_create(slots ? 2 * (slots->mask + 1) : FIRST_SIZE, slots);
	if (slots)
		atomic_store_explicit(&table->slots, slots, memory_order_release);
	return slots;
}

void *handle_table_peek(const struct handle_table *table, const void *handle)
{
	const struct handle_slot *slot = slots_find(table->slots, handle);

	return slot ? slot->record : NULL;
}

void *handle_table_get(struct handle_table *table, const void *handle)
{
	struct handle_slots *slots = handle_table_any(table) ? table->slots : NULL;
	const struct handle_slot *slot = slots_find(slots, handle);
	struct handle_record *record;

	if (!slot)
		return NULL;
	lock_acquire(&table->lock);
	if (slots != table->slots || slot->key != handle) /* changed in between */
		slot = slots_find(table->slots, handle);
	record = slot ? slot->record : NULL;
	if (record)
		handle_record_hold(record);
	lock_release(&table->lock);
	return record;
}

void handle_record_free(void *record)
{
	if (record && handle_record_put(record))
		free(record);
}

bool handle_table_set(struct handle_table *table, const void *handle, void *added)
{
	struct handle_record *record = added;

	if (!handle || !handle_table_reserve(table))
		return false;
	record->refs = 1;
	record->handles = 1;
	if (slots_fill(table->slots, handle, record))
		atomic_fetch_add_explicit(&table->count, 1, memory_order_relaxed);
	return true;
}

bool handle_table_add(struct handle_table *table, const void *handle, void *record)
{
	bool added;

	lock_acquire(&table->lock);
	added = handle_table_set(table, handle, record);
	lock_release(&table->lock);
	return added;
}

void *handle_table_publish(struct handle_table *table, const void *handle, void *record)
{
	struct handle_record *published;

	lock_acquire(&table->lock);
	published = handle_table_peek(table, handle);
	if (!published && handle_table_set(table, handle, record))
		published = record;
	if (published)
		handle_record_hold(published);
	lock_release(&table->lock);
	return published;
}

void handle_table_retain(struct handle_table *table, const void *handle)
{
	struct handle_record *record;

	if (!handle_table_has(table, handle))
		return;
	lock_acquire(&table->lock);
	record = handle_table_peek(table, handle);
	if (record)
		record->handles++;
	lock_release(&table->lock);
}

static void *handle_table_clear(struct handle_table *table, struct handle_slot *slot)
	REQUIRES(table->lock)
{
	struct handle_slots *slots = table->slots;

	atomic_fetch_sub_explicit(&table->count, 1, memory_order_relaxed);
	atomic_store_explicit(&slot->key, GONE, memory_order_release); /* pairs with slots_find() */
	slots_sweep(slots, slot - slots->slot);
	return slot->record;
}

void *handle_table_drop(struct handle_table *table, const void *handle)
{
	struct handle_slot *slot = slots_find(table->slots, handle);
	struct handle_record *record = slot ? slot->record : NULL;

	return record && !--record->handles ? handle_table_clear(table, slot) : NULL;
}

void *handle_table_remove(struct handle_table *table, const void *handle)
{
	struct handle_slot *slot = slots_find(table->slots, handle);

	return slot ? handle_table_clear(table, slot) : NULL;
}

void *handle_table_release(struct handle_table *table, const void *handle)
{
	void *record;

	if (!handle_table_has(table, handle))
		return NULL;
	lock_acquire(&table->lock);
	record = handle_table_drop(table, handle);
	lock_release(&table->lock);
	return record;
}

/* A table that has grown is walked from the start. */
void *handle_table_next(struct handle_table *table, struct handle_cursor *cursor)
{
	struct handle_record *record = NULL;
	struct handle_slots *slots;

	lock_acquire(&table->lock);
	slots = table->slots;
	if (cursor->slots != slots)
		*cursor = (struct handle_cursor){ slots, 0 };
	while (slots && !record && cursor->next <= slots->mask) {
		const struct handle_slot *slot = &slots->slot[cursor->next++];

		if (slot_is_taken(slot))
			record = slot->record;
	}
	if (record)
		handle_record_hold(record);
	lock_release(&table->lock);
	return record;
}

void handle_table_forget(struct handle_table *table)
{
	atomic_store(&table->slots, NULL);
	atomic_store(&table->count, 0);
}
