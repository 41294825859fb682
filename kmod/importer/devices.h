/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The devices that import: QEMU's edu, which does DMA, a platform device, and one that the driver
 * model knows nothing of.  They know DMA addresses, no dma-buf.  Errors are 0 or -errno.
 */
#ifndef GDMABUF_IMPORTER_DEVICES_H
#define GDMABUF_IMPORTER_DEVICES_H

#include <linux/types.h>

struct device;
struct sg_table;

int gdmabuf_importer_edu_register(void);
void gdmabuf_importer_edu_unregister(void);
/* The caller puts it; NULL if there is none. */
struct device *gdmabuf_importer_edu_get(void);

/*
 * edu's registers and memory, until gdmabuf_importer_edu_unlock(); taken within a dma-buf's resv.
 * -EOPNOTSUPP, and no lock, if @dev is not edu.
 */
int gdmabuf_importer_edu_lock(struct device *dev);
void gdmabuf_importer_edu_unlock(void);

/*
 * DMA of @length bytes, up to GDMABUF_IMPORTER_DMA_MAX, at offsets of what @sgt maps.  Sleeps.
 * -EIO: @sgt ends before; -ETIMEDOUT.
 */
int gdmabuf_importer_edu_copy_locked(struct sg_table *sgt, u64 source, u64 destination, u32 length);
int gdmabuf_importer_edu_read_locked(struct sg_table *sgt, u64 offset, u32 length, void *data);
int gdmabuf_importer_edu_write_locked(struct sg_table *sgt, u64 offset, u32 length,
				      const void *data);

int gdmabuf_importer_platform_register(void);
void gdmabuf_importer_platform_unregister(void);
/* The caller puts it. */
struct device *gdmabuf_importer_platform_get(void);

int gdmabuf_importer_bare_register(void);
void gdmabuf_importer_bare_unregister(void);
/* The caller puts it. */
struct device *gdmabuf_importer_bare_get(void);

#endif
