/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The *origin* of each dma-buf that this process has made: a driver that takes no dma-bufs may take
 * the origin.
 *
 * The table has the last ORIGINS dma-bufs: nobody tells when a dma-buf is gone, and a reference to
 * a dma-buf would hold the memory.  Older dma-bufs count as dma-bufs of other processes.
 */
#ifndef IMPORT_EXPORT_ORIGIN_H
#define IMPORT_EXPORT_ORIGIN_H

#include <stddef.h>
#include <stdint.h>

#include "util/descriptor.h"

#define ORIGINS 16384

/* The origin of a dma-buf, with the means to check whether the memory has been freed. */
struct origin {
	uintptr_t address; /* of the dma-buf's first byte */

	/* CUDA's, or 0.  @inside is in the allocation, which may begin after @address. */
	uint64_t buffer_id;
	uintptr_t inside;

	uint32_t context, slot, generation; /* gdmabuf's; generation 0: not gdmabuf's */
};

/*
 * Remembers a dma-buf by inode: programs close dma-bufs, pass dma-bufs on and get dma-bufs back.
 * An origin without a check is not remembered.  0 or -EBADF; -ESTALE, not logged: @fd is of another
 * file than @expected, which may be NULL.
 */
int origin_add(int fd, const struct origin *origin, const struct descriptor_id *expected);

/* Returns 0, or -EBADF; -ENOENT, not logged: not known here; -ENODEV: the memory is gone. */
int origin_find(int fd, uintptr_t *address);

#endif
