/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dma-bufs that this process has made of its own memory: a driver that takes no dma-bufs
 * may take what they were made of.
 *
 * The last EXPORTS of them are remembered: nobody tells when a dma-buf is gone, and to hold one
 * would hold its memory.  An older one is as another process's.
 */
#ifndef IMPORT_EXPORT_EXPORTS_H
#define IMPORT_EXPORT_EXPORTS_H

#include <stddef.h>
#include <stdint.h>

#include "util/descriptor.h"

#define EXPORTS 16384

/* What a dma-buf was made of, and how to tell that it is there still. */
struct exported {
	uintptr_t address; /* of the dma-buf's first byte */

	/* CUDA's, or 0.  @inside is in the allocation, which may begin after @address. */
	uint64_t buffer_id;
	uintptr_t inside;

	uint32_t context, slot, generation; /* gdmabuf's; generation 0: none */
};

/*
 * Remembers a dma-buf, by its inode: it may be closed, passed on and come back.  What cannot be
 * told from other memory later is not remembered.  0 or -EBADF; -ESTALE, not logged: it is another
 * file than @expected, which may be NULL.
 */
int exports_add(int fd, const struct exported *exported, const struct descriptor_id *expected);

/* Returns 0, or -EBADF; -ENOENT, not logged: not known here; -ENODEV: the memory is gone. */
int exports_find(int fd, uintptr_t *address);

#endif
