/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Between gdmabuf, which makes dma-bufs, and the module that pins GPU memory.
 *
 * The core knows no GPU driver, the provider no dma-buf.  Errors are 0 or -errno, those of
 * <linux/gdmabuf.h>: -EFAULT not GPU memory of the process, -ENOSPC BAR exhausted.
 *
 * All functions sleep, and take the GPU driver's own lock ("the RM lock").  That is held, too,
 * when gdmabuf_watch_freed() is called.  So the core calls a provider with no lock held that
 * gdmabuf_watch_freed() or anything under it takes.
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

/* What a provider pinned.  Runs touch nowhere; their lengths add up to the range's. */
struct gdmabuf_gpu_pages {
	struct gdmabuf_run *runs;	/* kvmalloc()ed; the core's after success */
	unsigned int nr_runs;
	bool cacheable;			/* memory of a coherent GPU, not a BAR */
	void *handle;			/* the provider's, for unpin() */
};

struct gdmabuf_owner;
struct gdmabuf_quota;

/*
 * Told when the GPU memory is freed.  Reference counted: the provider has one reference
 * from watch() on until unwatch() or until it called gdmabuf_watch_freed(), whichever
 * comes.
 */
struct gdmabuf_watch {
	struct kref kref;
	void *handle;			/* the provider's */
	const struct gdmabuf_provider *provider;
	/* private to the core: */
	bool started;
	struct gdmabuf_quota *quota;
	struct gdmabuf_owner *owner;
	spinlock_t lock;		/* protects pin, bytes */
	struct gdmabuf_pin *pin;	/* NULL once it is released */
	u64 bytes;			/* charged */
	bool freed;			/* this and orphan: owner->lock */
	struct list_head orphan;	/* in owner->orphans */
	struct work_struct work;
};

/**
 * struct gdmabuf_provider - who pins GPU memory
 * @owner: module; has a reference from the core for each pin and watch
 * @name: for GDMABUF_CAPS
 * @page_size: bytes; what ranges are aligned to.  A power of two, at least PAGE_SIZE.
 * @pin: pins [@address, @address + @length) of the calling process until @unpin, whether it is
 *	freed or not.  Fills *@pages.  On error, too, @pages->handle is to be unpinned if there is
 *	one; there are no runs then.
 * @unpin: of @pages->handle that @pin filled in.  By any process.  -ENOMEM: all is as it was, and
 *	the core tries again.  Any other error: the driver keeps the pages for good, and the handle
 *	is gone.
 * @watch: has gdmabuf_watch_freed() called when any of the range is freed: maybe before
 *	@watch returns, maybe by another thread, at most once.  With @pages, fills it: pages
 *	that are good until then.  On error there is no reference left, and no call to come.
 * @unwatch: takes what @watch pinned back, and drops the provider's reference.  By the process
 *	that called @watch, or by any once gdmabuf_watch_freed() was called, which does not run any
 *	more when this returns, and will not.  -ENOMEM: all is as it was, and the core tries again;
 *	never once it was freed.  Any other error: the driver keeps the pin until it is freed.
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
 * One provider at a time: -EBUSY.  Unregistering waits for nobody: the core has references on
 * @owner as long as it needs it.
 */
int gdmabuf_register_provider(const struct gdmabuf_provider *provider);
void gdmabuf_unregister_provider(const struct gdmabuf_provider *provider);

static inline void gdmabuf_watch_get(struct gdmabuf_watch *watch)
{
	kref_get(&watch->kref);
}

/* Frees @watch with the last reference, and drops the one on the provider's module later. */
void gdmabuf_watch_put(struct gdmabuf_watch *watch);

/*
 * The memory was, or is being freed.  May be called with the RM lock held.  Revocable pages have
 * no CPU mapping any more when it returns, and no device had them.  Drops no reference.
 */
void gdmabuf_watch_freed(struct gdmabuf_watch *watch);

#endif
