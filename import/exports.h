/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dma-bufs that this process has made of its own memory: a driver that takes no dma-bufs
 * may take what they were made of.
 */
#ifndef IMPORT_EXPORTS_H
#define IMPORT_EXPORTS_H

#include <stddef.h>
#include <stdint.h>

struct exported {
	uintptr_t address; /* of the dma-buf's first byte */
	size_t size;	   /* of the dma-buf */
};

/*
 * Remembers a dma-buf, by its inode: it may be closed, passed on and come back.
 * @buffer_id: CUDA's, 0 for host memory.  @slot, @generation: gdmabuf's.
 */
struct exports_origin {
	uint64_t buffer_id;
	uint32_t slot, generation; /* generation 0: none */
};

/* Returns 0, -EBADF, or -ENOMEM: the export works all the same. */
int exports_add(int fd, const struct exported *exported, const struct exports_origin *origin);

/* Returns 0; -ENOENT: not known here; -ENODEV, logged: the memory at the address is gone. */
int exports_find(int fd, struct exported *exported);

#endif
