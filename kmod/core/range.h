/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Ranges, and iteration over the runs behind a part of a range.  Arithmetic only, also compiled in
 * user space by tests/kmod/test_units.c.
 */
#ifndef GDMABUF_CORE_RANGE_H
#define GDMABUF_CORE_RANGE_H

#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/types.h>
#include "gdmabuf_run.h"

/* Whether the range is at least a page, has whole pages only, and does not wrap around. */
static inline bool range_is_valid(u64 address, u64 length, u64 page_size)
{
	return address + length > address && !((address | length) & (page_size - 1));
}

/* for (run_first(&it, runs, offset, length); it.length; run_next(&it)): @length is not 0. */
struct gdmabuf_run_iter {
	const struct gdmabuf_run *run;
	u64 start, length, left;
};

static inline void run_clip(struct gdmabuf_run_iter *it, u64 skip)
{
	it->start = it->run->start + skip;
	it->length = min(it->run->length - skip, it->left);
	it->left -= it->length;
}

static inline void run_first(struct gdmabuf_run_iter *it, const struct gdmabuf_run *runs,
			     u64 offset, u64 length)
{
	it->run = runs;
	it->left = length;
	for (; offset >= it->run->length; it->run++)
		offset -= it->run->length;
	run_clip(it, offset);
}

static inline void run_next(struct gdmabuf_run_iter *it)
{
	it->length = 0;
	if (!it->left)
		return;
	it->run++;
	run_clip(it, 0);
}

/* Counts the runs after each is cut into pieces of at most @max. */
static inline unsigned int runs_count(const struct gdmabuf_run *runs, u64 length, u64 max)
{
	struct gdmabuf_run_iter it;
	unsigned int n = 0;

	for (run_first(&it, runs, 0, length); it.length; run_next(&it))
		n += div64_u64(it.length - 1, max) + 1;
	return n;
}

#endif
