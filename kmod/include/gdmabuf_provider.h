/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The interface between gdmabuf ("the core"), which makes dma-bufs, and a provider, a module to pin
 * GPU memory.
 *
 * The core knows no GPU driver, and a provider knows no dma-buf.  Functions return 0 or the -errno
 * of <linux/gdmabuf.h>: -EFAULT if a range is not GPU memory of the process, -ENOSPC if the BAR is
 * exhausted.  All functions sleep, and the core calls them without locks.
 */
#ifndef GDMABUF_PROVIDER_H
#define GDMABUF_PROVIDER_H

#include <linux/types.h>
#include "gdmabuf_run.h"

struct module;

/* Pinned GPU memory.  No run continues the run before; the lengths add up to the range's. */
struct gdmabuf_gpu_pages {
	struct gdmabuf_run *runs;	/* kvmalloc()ed; freed by the core */
	unsigned int nr_runs;
	bool cacheable;			/* memory of a coherent GPU, not a BAR */
	void *handle;			/* the provider's, for unpin() */
};

/**
 * struct gdmabuf_provider - pins GPU memory
 * @owner: module; the core has a reference for each pin
 * @name: for GDMABUF_CAPS
 * @page_size: bytes; alignment of ranges.  A power of two, at least PAGE_SIZE.
 * @pin: pins [@address, @address + @length) of the calling process until @unpin, even if the memory
 *	is freed.  Fills *@pages, which is zero.  On error the core unpins @pages->handle if set,
 *	and frees @pages->runs.
 * @unpin: ends the pin whose @pages->handle @pin filled in.  Called by any process.  -ENOMEM:
 *	nothing has changed, and the core tries again.  Any other error: the driver keeps the pages
 *	for good, and the handle is gone.
 */
struct gdmabuf_provider {
	struct module *owner;
	const char *name;
	u64 page_size;
	int (*pin)(u64 address, u64 length, struct gdmabuf_gpu_pages *pages);
	int (*unpin)(void *handle);
};

/*
 * -EBUSY if a provider is registered already.  Unregistering waits for nothing: the core has
 * references to @owner as long as pins need the provider.
 */
int gdmabuf_register_provider(const struct gdmabuf_provider *provider);
void gdmabuf_unregister_provider(const struct gdmabuf_provider *provider);

#endif
