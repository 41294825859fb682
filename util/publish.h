/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects that are made once and then live until the process ends, or until their owner does.
 *
 * A thread makes its object without a lock, as making calls a driver, then publishes the object.  If
 * two threads make the same object at once, the first to publish wins: both threads go on with the
 * winner's object, and the loser destroys its own.  Readers take no lock.
 */
#ifndef UTIL_PUBLISH_H
#define UTIL_PUBLISH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* The object in @place, or NULL.  Pairs with publish_first(). */
static inline void *publish_get(void *_Atomic *place)
{
	return atomic_load_explicit(place, memory_order_acquire);
}

/* Publishes @mine if @place is empty.  Returns the object in @place: @mine, or the winner's. */
static inline void *publish_first(void *_Atomic *place, void *mine)
{
	void *winner = NULL;

	return atomic_compare_exchange_strong(place, &winner, mine) ? mine : winner;
}

/* The first member of an object in a list. */
struct published {
	struct published *next;
};

/* Grows at the head only. */
struct publish_list {
	struct published *_Atomic head;
};

typedef bool (*publish_match)(const void *object, const void *key);

/* The newest object.  Pairs with publish_add(). */
static inline void *publish_list_head(const struct publish_list *list)
{
	return atomic_load_explicit(&list->head, memory_order_acquire);
}

static inline void *publish_next(const void *object)
{
	return ((const struct published *)object)->next;
}

/* The object for which @match holds, or NULL. */
static inline void *publish_find(const struct publish_list *list, publish_match match,
				 const void *key)
{
	void *object = publish_list_head(list);

	while (object && !match(object, key))
		object = publish_next(object);
	return object;
}

/* Publishes @mine if the list has no object with the key.  Returns @mine, or the winner's object. */
static inline void *publish_add(struct publish_list *list, void *mine, publish_match match,
				const void *key)
{
	struct published *object = mine;
	void *winner;

	object->next = publish_list_head(list);
	do {
		winner = publish_find(list, match, key);
		if (winner)
			return winner;
	} while (!atomic_compare_exchange_weak(&list->head, &object->next, object));
	return mine;
}

#endif /* UTIL_PUBLISH_H */
