/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The interface between gdmabuf ("the core"), which makes dma-bufs, and a provider, a module to pin
 * GPU memory.
 *
 * The core knows no GPU driver, and a provider knows no dma-buf.  Functions return 0 or the -errno
 * of <linux/gdmabuf.h>: -EFAULT if a range is not GPU memory of the process, -ENOSPC if the BAR is
 * exhausted.
 *
 * All functions sleep, and take the lock of the GPU driver ("the RM lock").  The driver holds the
 * RM lock also when gdmabuf_watch_freed() is called.  So the core holds none of the locks of
 * gdmabuf_watch_freed() when calling a provider.
 */
#ifndef GDMABUF_PROVIDER_H
#define GDMABUF_PROVIDER_H

#include <linux/kref.h>
#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/workqueue.h>
#include "gdmabuf_run.h"

struct module;

/* Pinned GPU memory.  No run continues the run before; the lengths add up to the range's. */
struct gdmabuf_gpu_pages {
	struct gdmabuf_run *runs;	/* kvmalloc()ed; freed by the core after success */
	unsigned int nr_runs;
	bool cacheable;			/* memory of a coherent GPU, not a BAR */
	void *handle;			/* the provider's, for unpin() */
};

struct gdmabuf_owner;
struct gdmabuf_quota;

/*
 * Notices when GPU memory is freed.  The provider has a reference from watch() on, until unwatch()
 * or until gdmabuf_watch_freed() has returned.
 */
struct gdmabuf_watch {
	struct kref kref;
	void *handle;			/* the provider's */
	const struct gdmabuf_provider *provider;
	/* Private to the core: */
	bool started;
	struct gdmabuf_quota *quota;
	struct gdmabuf_owner *owner;
	spinlock_t lock;		/* protects pin, bytes */
	struct gdmabuf_pin *pin;	/* NULL once the pin is released */
	u64 bytes;			/* charged */
	bool freed;			/* this and orphan: owner->lock */
	struct list_head orphan;	/* in owner->orphans */
	struct work_struct work;
};

/**
 * struct gdmabuf_provider - pins GPU memory
 * @owner: module; the core has a reference for each pin and watch
 * @name: for GDMABUF_CAPS
 * @page_size: bytes; alignment of ranges.  A power of two, at least PAGE_SIZE.
 * @pin: pins [@address, @address + @length) of the calling process until @unpin, even if the memory
 *	is freed.  Fills *@pages.  On error no runs are left, and the core unpins @pages->handle if
 *	set.
 * @unpin: ends the pin whose @pages->handle @pin filled in.  Called by any process.  -ENOMEM:
 *	nothing has changed, and the core tries again.  Any other error: the driver keeps the pages
 *	for good, and the handle is gone.
 * @watch: has gdmabuf_watch_freed() called, at most once, when any part of the range is freed:
 *	possibly before @watch returns, possibly by another thread.  Unless @pages is NULL, fills
 *	*@pages with pages that stay pinned until the call.  On error the provider has no reference,
 *	and makes no call.
 * @unwatch: ends the watch, and drops the provider's reference.  Called by the process that called
 *	@watch, or by any process once gdmabuf_watch_freed() was called.  On return
 *	gdmabuf_watch_freed() has returned, or will not be called.  -ENOMEM, which is not possible
 *	after a free: nothing has changed, and the core tries again.  Any other error: the driver
 *	keeps its pin until the memory is freed.
 */
struct gdmabuf_provider {
	struct module *owner;
	const char *name;
	u64 page_size;
	int (*pin)(u64 address, u64 length, struct gdmabuf_gpu_pages *pages);
	int (*unpin)(void *handle);
	int (*watch)(struct gdmabuf_watch *watch, u64 address, u64 length,
		     struct gdmabuf_gpu_pages *pages);
	int (*unwatch)(struct gdmabuf_watch *watch);
};

/*
 * -EBUSY if a provider is registered already.  Unregistering waits for nothing: the core has
 * references to @owner as long as pins or watches need the provider.
 */
int gdmabuf_register_provider(const struct gdmabuf_provider *provider);
void gdmabuf_unregister_provider(const struct gdmabuf_provider *provider);

static inline void gdmabuf_watch_get(struct gdmabuf_watch *watch)
{
	kref_get(&watch->kref);
}

/* The last put frees @watch, and then drops the reference to the provider's module. */
void gdmabuf_watch_put(struct gdmabuf_watch *watch);

/*
 * The memory is being freed, or was freed.  May be called with the RM lock held.  On return no CPU
 * mapping of revocable pages is left; devices never map them.  Drops no reference.
 */
void gdmabuf_watch_freed(struct gdmabuf_watch *watch);

#endif
