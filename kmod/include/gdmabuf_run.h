/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Physically contiguous memory.  Arithmetic alone: tests/kmod/test_units.c compiles it, too. */
#ifndef GDMABUF_RUN_H
#define GDMABUF_RUN_H

#include <linux/types.h>

struct gdmabuf_run {
	phys_addr_t start;
	u64 length;
};

/* Makes @run longer, if the memory at @start follows it.  An empty one is followed by nothing. */
static inline bool run_extend(struct gdmabuf_run *run, phys_addr_t start, u64 length)
{
	if (!run->length || run->start + run->length != start)
		return false;
	run->length += length;
	return true;
}

#endif
