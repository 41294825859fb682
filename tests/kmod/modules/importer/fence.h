/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* A fence on a dma-buf, signalled when the fence is removed. */
#ifndef GDMABUF_IMPORTER_FENCE_H
#define GDMABUF_IMPORTER_FENCE_H

#include <linux/types.h>

struct dma_fence;
struct dma_resv;

/*
 * @writes: a fence of a write, for which readers wait; else of the importer's own bookkeeping.
 *	ERR_PTR(): -ENOMEM, -EINTR.
 */
struct dma_fence *gdmabuf_importer_fence_add(struct dma_resv *resv, bool writes);
/* Consumes the reference of gdmabuf_importer_fence_add().  Signals before waiting for the lock. */
void gdmabuf_importer_fence_remove(struct dma_resv *resv, struct dma_fence *fence);

#endif
