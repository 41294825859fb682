/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel module gdmabuf: ranges of this process as dma-bufs (kmod/).
 *
 * One context a process, opened at the first export; a child after fork() opens its own, and so
 * does a process that has closed it.
 * Functions return 0 or a negative errno, may sleep, and be called from any thread.
 */
#ifndef IMPORT_GDMABUF_H
#define IMPORT_GDMABUF_H

#include <stddef.h>
#include <stdint.h>

/* The GPU memory of a CUDA device pointer, or host memory. */
enum gdmabuf_memory { GDMABUF_MEMORY_HOST, GDMABUF_MEMORY_GPU };

enum gdmabuf_export_option { GDMABUF_OPTION_READ_ONLY = 1, GDMABUF_OPTION_KEEP = 2 };

struct gdmabuf_range {
	int fd;	       /* the caller's */
	size_t offset; /* of the range in it */
	/* For gdmabuf_is_current(). */
	uint32_t context, slot, generation;
};

/*
 * Exports [@address, @address + @size), rounded to whole pages.  Errors as in
 * <CL/climport.h>, and -EOPNOTSUPP if nobody provides GPU memory.
 */
int gdmabuf_export(enum gdmabuf_memory memory, uintptr_t address, size_t size, unsigned int options,
		   struct gdmabuf_range *range);

/*
 * Whether the address that was exported still means these pages: one load.  No if it was
 * exported before a fork(), or before the program closed the context's descriptor.
 */
int gdmabuf_is_current(const struct gdmabuf_range *range);

#endif
