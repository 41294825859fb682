/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The ioctls of importer.h.  Functions return 0 or -errno.  @arg is the struct of the ioctl, which
 * main.c copies in and out.
 */
#ifndef GDMABUF_IMPORTER_COMMANDS_H
#define GDMABUF_IMPORTER_COMMANDS_H

#include <linux/dma-buf.h>
#include <linux/dma-direction.h>
#include <linux/iosys-map.h>
#include <linux/mutex.h>

/*
 * @lock: protects the members before @sgt.  Taken before the dma-buf's resv.
 * @sgt: protected by the dma-buf's resv.
 */
struct importer {
	struct mutex lock;
	struct device *dev;
	struct dma_buf *dmabuf;
	struct dma_buf_attachment *attachment;
	struct iosys_map vmap;
	enum dma_data_direction direction;
	u32 mode;
	struct sg_table *sgt;
};

/* attach.c, imp->lock held */
int gdmabuf_importer_attach(struct importer *imp, void *arg);
int gdmabuf_importer_detach(struct importer *imp, void *arg);
int gdmabuf_importer_map(struct importer *imp, void *arg);
int gdmabuf_importer_unmap(struct importer *imp, void *arg);
int gdmabuf_importer_mmap(struct importer *imp, struct vm_area_struct *vma);

/* access.c, imp->lock held */
int gdmabuf_importer_copy(struct importer *imp, void *arg);
int gdmabuf_importer_read(struct importer *imp, void *arg);
int gdmabuf_importer_write(struct importer *imp, void *arg);
int gdmabuf_importer_vmap(struct importer *imp, void *arg);
int gdmabuf_importer_vunmap(struct importer *imp, void *arg);
int gdmabuf_importer_vread(struct importer *imp, void *arg);
int gdmabuf_importer_vwrite(struct importer *imp, void *arg);
int gdmabuf_importer_begin_cpu_access(struct importer *imp, void *arg);
int gdmabuf_importer_end_cpu_access(struct importer *imp, void *arg);

static inline bool gdmabuf_importer_is_direction(u32 direction)
{
	return direction <= DMA_FROM_DEVICE;
}

#endif
