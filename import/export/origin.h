/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The *origin* of each dma-buf that this process has made of CUDA's device memory: a driver that
 * takes no dma-bufs of a GPU's memory may take the origin.
 *
 * The table has the last ORIGINS dma-bufs: nobody tells when a dma-buf is gone, and a reference to
 * a dma-buf would hold the memory.  Older dma-bufs count as dma-bufs of other processes.
 */
#ifndef IMPORT_EXPORT_ORIGIN_H
#define IMPORT_EXPORT_ORIGIN_H

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "util/descriptor.h"

#define ORIGINS 16384

/* With the means to check whether the memory has been freed. */
struct origin {
	uintptr_t address; /* of the dma-buf's first byte */

	uint64_t buffer_id; /* CUDA's, or 0: nobody can tell whether the memory was freed */
	uintptr_t inside;   /* of the allocation, which may begin after @address */
};

/*
 * Remembers a dma-buf by inode: programs close dma-bufs, pass dma-bufs on and get dma-bufs back.
 * An origin without a buffer id is not remembered.
 */
void origin_add(const struct descriptor_id *id, const struct origin *origin);

extern atomic_bool origin_any; /* remembered */

/* Returns 0; -ENOENT, not logged: not known here; -ENODEV: the memory is gone. */
int origin_find_kept(const struct descriptor_id *id, uintptr_t *address);

static inline int origin_find(const struct descriptor_id *id, uintptr_t *address)
{
	return atomic_load_explicit(&origin_any, memory_order_relaxed)
		       ? origin_find_kept(id, address)
		       : -ENOENT;
}

#endif
