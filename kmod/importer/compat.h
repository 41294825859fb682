/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Differences between kernels for importers only. */
#ifndef GDMABUF_IMPORTER_COMPAT_H
#define GDMABUF_IMPORTER_COMPAT_H

#include "../core/compat.h"

/*
 * Members of struct dma_buf_attach_ops.  Before 7.1 the kernel requires a callback of every
 * importer with operations.  From 7.1 on, an importer that pins and cannot let go has no callback.
 */
#ifdef GDMABUF_HAS_MOVE_NOTIFY
#define ON_MOVE(function) .move_notify = (function),
#define ON_MOVE_PINNED(function) .move_notify = (function),
#else
#define ON_MOVE(function) .invalidate_mappings = (function),
#define ON_MOVE_PINNED(function)
#endif

#ifndef GDMABUF_HAS_VMAP_UNLOCKED
#define dma_buf_vmap_unlocked(dmabuf, map) dma_buf_vmap(dmabuf, map)
#define dma_buf_vunmap_unlocked(dmabuf, map) dma_buf_vunmap(dmabuf, map)
#endif

#endif
