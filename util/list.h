/* SPDX-License-Identifier: Apache-2.0 */
/* A doubly linked list whose links are members of the objects, as in the Linux kernel. */
#ifndef UTIL_LIST_H
#define UTIL_LIST_H

#include <stdbool.h>
#include <stddef.h>

/* The head of a list, or an object's link. */
struct list {
	struct list *next, *prev;
};

#define LIST_INIT(head)          \
	{                        \
		&(head), &(head) \
	}

#define container_of(pointer, type, member) ((type *)((char *)(pointer)-offsetof(type, member)))

static inline void list_init(struct list *head)
{
	head->next = head->prev = head;
}

static inline bool list_is_empty(const struct list *head)
{
	return head->next == head;
}

/* Adds @link at the end. */
static inline void list_add(struct list *head, struct list *link)
{
	link->next = head;
	link->prev = head->prev;
	head->prev->next = link;
	head->prev = link;
}

static inline void list_remove(struct list *link)
{
	link->prev->next = link->next;
	link->next->prev = link->prev;
}

/* Takes the first link out; NULL: the list is empty. */
static inline struct list *list_take(struct list *head)
{
	struct list *link = head->next;

	if (link == head)
		return NULL;
	list_remove(link);
	return link;
}

/* Moves all links of @from to @to, which had none. */
static inline void list_move_all(struct list *to, struct list *from)
{
	list_init(to);
	if (list_is_empty(from))
		return;
	*to = *from;
	to->next->prev = to->prev->next = to;
	list_init(from);
}

#endif /* UTIL_LIST_H */
