/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A set of address ranges that may overlap, which tells whether one of them meets a given range.
 *
 * The set is a treap (Seidel and Aragon, 1996): a search tree by the first address that random
 * priorities keep balanced.  Each range knows the last address of the ranges below it.  A call
 * takes logarithmic time in the mean, allocates nothing and takes no lock: that is the caller's.
 */
#ifndef IMPORT_KINDS_RANGES_H
#define IMPORT_KINDS_RANGES_H

#include <stdint.h>

/* The first two are the caller's, and stay as they are while the range is in a set. */
struct range {
	uintptr_t first, last; /* addresses, both in the range */
	uintptr_t reach;       /* the highest last of this range and those below */
	uint64_t priority;     /* not below that of a child */
	struct range *left, *right;
};

/* @set: NULL is the empty set. */
void ranges_insert(struct range **set, struct range *range);
void ranges_remove(struct range **set, struct range *range); /* which is in it */

/* A range of the set that shares an address with [@first, @last], or NULL. */
struct range *ranges_find(struct range *set, uintptr_t first, uintptr_t last);

#endif /* IMPORT_KINDS_RANGES_H */
