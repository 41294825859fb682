/* SPDX-License-Identifier: Apache-2.0 */
#include "import/kinds/ranges.h"

#include <errno.h>
#include <stdbool.h>

#include "util/log.h"

/* Ranges with equal first addresses are ordered by the addresses of the structs. */
static bool ranges_is_before(const struct range *a, const struct range *b)
{
	return a->first != b->first ? a->first < b->first : (uintptr_t)a < (uintptr_t)b;
}

/* As random as is needed: the finalizer of splitmix64. */
static uint64_t ranges_priority(const struct range *range)
{
	uint64_t x = (uintptr_t)range;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
	x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
	return x ^ (x >> 31);
}

static void ranges_update(struct range *range)
{
	range->reach = range->last;
	if (range->left && range->left->reach > range->reach)
		range->reach = range->left->reach;
	if (range->right && range->right->reach > range->reach)
		range->reach = range->right->reach;
}

static void ranges_split(struct range *set, const struct range *at, struct range **before,
			 struct range **after)
{
	if (!set) {
		*before = *after = NULL;
		return;
	}
	if (ranges_is_before(set, at)) {
		*before = set;
		ranges_split(set->right, at, &set->right, after);
	} else {
		*after = set;
		ranges_split(set->left, at, before, &set->left);
	}
	ranges_update(set);
}

/* All of @before come before all of @after. */
static struct range *ranges_join(struct range *before, struct range *after)
{
	struct range *top = before;

	if (!before || !after)
		return before ? before : after;
	if (before->priority > after->priority) {
		before->right = ranges_join(before->right, after);
	} else {
		after->left = ranges_join(before, after->left);
		top = after;
	}
	ranges_update(top);
	return top;
}

static void ranges_place(struct range **set, struct range *range)
{
	struct range *top = *set;

	if (top && top->priority >= range->priority) {
		ranges_place(ranges_is_before(top, range) ? &top->right : &top->left, range);
		ranges_update(top);
		return;
	}
	ranges_split(top, range, &range->left, &range->right);
	ranges_update(range);
	*set = range;
}

void ranges_insert(struct range **set, struct range *range)
{
	range->priority = ranges_priority(range);
	ranges_place(set, range);
}

void ranges_remove(struct range **set, struct range *range)
{
	struct range *top = *set;

	if (top == range) {
		*set = ranges_join(range->left, range->right);
		return;
	}
	ranges_remove(ranges_is_before(top, range) ? &top->right : &top->left, range);
	ranges_update(top);
}

struct range *ranges_find(struct range *set, uintptr_t first, uintptr_t last)
{
	while (set && (set->first > last || set->last < first))
		set = set->left && set->left->reach >= first ? set->left : set->right;
	return set;
}

int range_refuse(uintptr_t address, size_t size)
{
	if (!size)
		return log_errno(EINVAL, "0 bytes at %#zx are no range", (size_t)address);
	return log_errno(EINVAL, "%#zx bytes at %#zx reach beyond the last address", size,
			 (size_t)address);
}
