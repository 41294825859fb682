/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A set of address ranges, which may overlap.  The set tells whether a range meets a member.
 *
 * The set is a treap (Seidel and Aragon, 1996): a search tree by the first address, balanced by
 * random priorities.  Each range knows the last address of the ranges below it.  A call
 * takes logarithmic time in the mean, allocates nothing and takes no lock: locking is the caller's.
 */
#ifndef IMPORT_KINDS_RANGES_H
#define IMPORT_KINDS_RANGES_H

#include <stddef.h>
#include <stdint.h>

/* The first two are the caller's, and stay as they are while the range is in a set. */
struct range {
	uintptr_t first, last; /* addresses, both in the range */
	uintptr_t reach;       /* the highest last of the range and its subtree */
	uint64_t priority;     /* not below a child's */
	struct range *left, *right;
};

/* @set: NULL is the empty set. */
void ranges_insert(struct range **set, struct range *range);
void ranges_remove(struct range **set, struct range *range); /* a member */

/* A member with an address in [@first, @last], or NULL. */
struct range *ranges_find(struct range *set, uintptr_t first, uintptr_t last);

/* Logs why @size bytes at @address are no range, none or beyond the last address, and returns -EINVAL. */
int range_refuse(uintptr_t address, size_t size);

#endif /* IMPORT_KINDS_RANGES_H */
