// SPDX-License-Identifier: GPL-2.0 OR MIT
/* A fence on a dma-buf, signalled only when the importer removes the fence. */
#include <linux/dma-fence.h>
#include <linux/dma-resv.h>
#include <linux/err.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "fence.h"

struct fence {
	struct dma_fence base;
	spinlock_t lock;
};

static const char *gdmabuf_importer_fence_name(struct dma_fence *fence)
{
	return KBUILD_MODNAME;
}

static void gdmabuf_importer_fence_release(struct dma_fence *fence)
{
	dma_fence_free(fence);
	module_put(THIS_MODULE);
}

static const struct dma_fence_ops fence_ops = {
	.get_driver_name = gdmabuf_importer_fence_name,
	.get_timeline_name = gdmabuf_importer_fence_name,
	.release = gdmabuf_importer_fence_release,
};

/* A fence may outlive the caller's file, so the fence holds the module, too. */
static struct dma_fence *gdmabuf_importer_fence_create(void)
{
	struct fence *fence = kzalloc(sizeof(*fence), GFP_KERNEL);

	if (!fence)
		return NULL;
	__module_get(THIS_MODULE);
	spin_lock_init(&fence->lock);
	dma_fence_init(&fence->base, &fence_ops, &fence->lock, dma_fence_context_alloc(1), 1);
	return &fence->base;
}

static int gdmabuf_importer_fence_add_to(struct dma_resv *resv, struct dma_fence *fence,
					 enum dma_resv_usage usage)
{
	int err = dma_resv_lock_interruptible(resv, NULL);

	if (err)
		return err;
	err = dma_resv_reserve_fences(resv, 1);
	if (!err)
		dma_resv_add_fence(resv, fence, usage);
	dma_resv_unlock(resv);
	return err;
}

struct dma_fence *gdmabuf_importer_fence_add(struct dma_resv *resv, bool writes)
{
	enum dma_resv_usage usage = writes ? DMA_RESV_USAGE_WRITE : DMA_RESV_USAGE_BOOKKEEP;
	struct dma_fence *fence = gdmabuf_importer_fence_create();
	int err;

	if (!fence)
		return ERR_PTR(-ENOMEM);
	err = gdmabuf_importer_fence_add_to(resv, fence, usage);
	if (!err)
		return fence;
	dma_fence_signal(fence);
	dma_fence_put(fence);
	return ERR_PTR(err);
}

/*
 * Signals first, because a waiter for the fence may hold the lock.  Then a stub replaces the fence,
 * which would otherwise hold the module as long as the dma-buf exists.
 */
void gdmabuf_importer_fence_remove(struct dma_resv *resv, struct dma_fence *fence)
{
	struct dma_fence *stub = dma_fence_get_stub();

	dma_fence_signal(fence);
	dma_resv_lock(resv, NULL);
	dma_resv_replace_fences(resv, fence->context, stub, DMA_RESV_USAGE_BOOKKEEP);
	dma_resv_unlock(resv);
	dma_fence_put(stub);
	dma_fence_put(fence);
}
