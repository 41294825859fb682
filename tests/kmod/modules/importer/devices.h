/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The importing devices: QEMU's edu, which does DMA, and a platform device.  Devices know DMA
 * addresses, no dma-bufs.  Functions return 0 or -errno.
 */
#ifndef GDMABUF_IMPORTER_DEVICES_H
#define GDMABUF_IMPORTER_DEVICES_H

#include <linux/types.h>

struct device;
struct sg_table;

int gdmabuf_importer_edu_register(void);
void gdmabuf_importer_edu_unregister(void);
/* The caller puts the device.  NULL if the machine has no edu. */
struct device *gdmabuf_importer_edu_get(void);

/*
 * Locks edu's registers and memory.  Taken inside a dma-buf's resv.  -EOPNOTSUPP, with nothing
 * locked, if @dev is not edu.
 */
int gdmabuf_importer_edu_lock(struct device *dev);
void gdmabuf_importer_edu_unlock(void);

/*
 * Moves @length bytes, up to GDMABUF_IMPORTER_DMA_MAX, by DMA.  Offsets are in the memory mapped by
 * @sgt.  Sleeps.  -EIO: beyond the end of @sgt; -ETIMEDOUT.
 */
int gdmabuf_importer_edu_copy_locked(struct sg_table *sgt, u64 source, u64 destination, u32 length);
int gdmabuf_importer_edu_read_locked(struct sg_table *sgt, u64 offset, u32 length, void *data);
int gdmabuf_importer_edu_write_locked(struct sg_table *sgt, u64 offset, u32 length,
				      const void *data);

int gdmabuf_importer_platform_register(void);
void gdmabuf_importer_platform_unregister(void);
/* The caller puts the device. */
struct device *gdmabuf_importer_platform_get(void);

#endif
