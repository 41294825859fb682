/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Runs of physically contiguous memory.  Arithmetic only, also compiled in user space by
 * tests/kmod/test_units.c.
 */
#ifndef GDMABUF_RUN_H
#define GDMABUF_RUN_H

#include <linux/types.h>

struct gdmabuf_run {
	phys_addr_t start;
	u64 length;
};

/* Appends the memory at @start to @run, if @run is not empty and ends at @start. */
static inline bool run_extend(struct gdmabuf_run *run, phys_addr_t start, u64 length)
{
	if (!run->length || run->start + run->length != start)
		return false;
	run->length += length;
	return true;
}

#endif
