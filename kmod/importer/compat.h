/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* What differs between kernels for importers only. */
#ifndef GDMABUF_IMPORTER_COMPAT_H
#define GDMABUF_IMPORTER_COMPAT_H

#include "../core/compat.h"

/*
 * Members of struct dma_buf_attach_ops.  From 7.1 on an importer that pins, and cannot let go,
 * is one that does not ask to be told; before, the kernel wants all to ask.
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
