/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records of the driver's objects, found by handle.
 *
 * A handle table is a hash map, which readers search without a lock, a lock for writers, and the
 * number of records.  A record begins with struct handle_record.  Two counts decide when a record
 * ends: while the application has handles, the record is in the table; while a thread has a
 * reference, the record's memory stays.
 *
 * The layer counts the handles itself, and takes a record out before the driver's object can go.
 * So a lookup never finds the record of an older object at the address.
 *
 * A reader without the lock may use only the fact that a record exists.  To follow a record, a
 * reader takes a reference or the lock.
 */
#ifndef ICD_OBJECTS_HANDLE_TABLE_H
#define ICD_OBJECTS_HANDLE_TABLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "util/lock.h"

struct handle_slots;

struct handle_table {
	struct lock lock; /* changes of the table, and the handles of each record */
	_Atomic(struct handle_slots *) slots;
	atomic_size_t count;
};

struct handle_record {
	atomic_uint refs;     /* 1 for the table, and other holders */
	unsigned int handles; /* of the application; under the table's lock */
};

/* Defines an empty table whose lock fork() knows.  @child: lock.in_child. */
#define HANDLE_TABLE_DEFINE(name, child)                               \
	struct handle_table name = {                                   \
		.lock = { .mutex = PTHREAD_MUTEX_INITIALIZER,          \
			  .rank = LOCK_LAST,                           \
			  .in_child = (child) },                       \
	};                                                             \
	__attribute__((constructor)) static void name##_register(void) \
	{                                                              \
		lock_register(&(name).lock);                           \
	}                                                              \
	extern struct handle_table name

/* Whether the table has any record.  One relaxed load. */
static inline bool handle_table_any(const struct handle_table *table)
{
	return atomic_load_explicit(&table->count, memory_order_relaxed) != 0;
}

/* The record of @handle, or NULL, without a reference: with the lock, or of a table whose records stay. */
void *handle_table_peek(const struct handle_table *table, const void *handle);

/* Whether @handle has a record.  No lock; nanoseconds. */
static inline bool handle_table_has(const struct handle_table *table, const void *handle)
{
	return handle_table_any(table) && handle_table_peek(table, handle);
}

/* A reference to the record of @handle, or NULL.  Ends with handle_record_put(). */
void *handle_table_get(struct handle_table *table, const void *handle);

static inline void handle_record_hold(struct handle_record *record)
{
	atomic_fetch_add_explicit(&record->refs, 1, memory_order_relaxed);
}

/* Gives a reference up.  True: it was the last, and the caller frees the record.  Pairs with itself. */
static inline bool handle_record_put(struct handle_record *record)
{
	return atomic_fetch_sub_explicit(&record->refs, 1, memory_order_acq_rel) == 1;
}

/* The same for a record that malloc() made, or NULL: frees it. */
void handle_record_free(void *record);

/* Adds @record with one handle and the table's reference.  False: no memory, or @handle is NULL. */
bool handle_table_add(struct handle_table *table, const void *handle, void *record);

/**
 * handle_table_publish - add a record unless @handle has a record: the first thread wins
 *
 * Returns a reference to the record that the table has now, or NULL without memory.  The caller
 * frees @record if the answer is another record.
 */
void *handle_table_publish(struct handle_table *table, const void *handle, void *record);

/* The application retains, or releases, a handle that may have a record. */
void handle_table_retain(struct handle_table *table, const void *handle);

/* With the last handle, takes the record out and returns the table's reference; else NULL. */
void *handle_table_release(struct handle_table *table, const void *handle);

/*
 * A walk through all records.  The table may change in between: a walk may meet a record twice,
 * and misses no record that stays in the table.
 */
struct handle_cursor {
	const struct handle_slots *slots;
	size_t next;
};

/* A reference to the next record, or NULL at the end.  @cursor: zero at first. */
void *handle_table_next(struct handle_table *table, struct handle_cursor *cursor);

/* With the lock: as handle_table_add(), but replaces a record; the caller puts the old one. */
bool handle_table_set(struct handle_table *table, const void *handle, void *record)
	REQUIRES(table->lock);

/* With the lock: takes the record of @handle out, with the table's reference; or NULL. */
void *handle_table_remove(struct handle_table *table, const void *handle) REQUIRES(table->lock);

/* With the lock: as handle_table_release(). */
void *handle_table_drop(struct handle_table *table, const void *handle) REQUIRES(table->lock);

/* In a child of fork(), which has a single thread: empties the table, and leaks the records. */
void handle_table_forget(struct handle_table *table);

#endif /* ICD_OBJECTS_HANDLE_TABLE_H */
