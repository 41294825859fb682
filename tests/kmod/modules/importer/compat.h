/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Differences between the guest's kernels, whose versions say all. */
#ifndef GDMABUF_IMPORTER_COMPAT_H
#define GDMABUF_IMPORTER_COMPAT_H

#include <linux/dma-buf.h>
#include <linux/version.h>

/*
 * Members of struct dma_buf_attach_ops.  Before 7.1 the kernel requires a callback of every
 * importer with operations.  From 7.1 on, an importer that pins and cannot let go has no callback.
 */
#if LINUX_VERSION_CODE < KERNEL_VERSION(7, 1, 0)
#define ON_MOVE(function) .move_notify = (function),
#define ON_MOVE_PINNED(function) .move_notify = (function),
#else
#define ON_MOVE(function) .invalidate_mappings = (function),
#define ON_MOVE_PINNED(function)
#endif

/* Since 6.2 dma_buf_vmap() needs the dma-buf's resv locked. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 2, 0)
#define dma_buf_vmap_unlocked(dmabuf, map) dma_buf_vmap(dmabuf, map)
#define dma_buf_vunmap_unlocked(dmabuf, map) dma_buf_vunmap(dmabuf, map)
#endif

/* Until 6.13 a namespace is an identifier, then a string. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
#define IMPORT_DMA_BUF MODULE_IMPORT_NS(DMA_BUF)
#else
#define IMPORT_DMA_BUF MODULE_IMPORT_NS("DMA_BUF")
#endif

#endif
