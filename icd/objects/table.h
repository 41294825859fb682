/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A map from handles to records whose readers take no lock.
 *
 * Writers are serialised by the caller.  A reader that holds no lock may use
 * only whether there is a record: to follow it, take the writers' lock.
 */
#ifndef ICD_OBJECTS_TABLE_H
#define ICD_OBJECTS_TABLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct table_slots;

struct table {
	_Atomic(struct table_slots *) slots;
	size_t live; /* records; written under the caller's lock */
};

#define TABLE_INIT      \
	{               \
		NULL, 0 \
	}

/* The record of @key, or NULL.  Any thread, no lock. */
void *table_get(struct table *table, const void *key);

/*
 * Adds or replaces.  @record is not NULL.  Writers' lock held.  False: no memory, or @key is NULL.
 */
bool table_set(struct table *table, const void *key, void *record);

/* Takes the record of @key out; NULL if there was none.  Writers' lock held. */
void *table_remove(struct table *table, const void *key);

#endif /* ICD_OBJECTS_TABLE_H */
