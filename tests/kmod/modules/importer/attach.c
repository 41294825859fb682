// SPDX-License-Identifier: GPL-2.0 OR MIT
/* The kinds of attachments, and their mappings. */
#include <linux/dma-mapping.h>
#include <linux/dma-resv.h>
#include <linux/scatterlist.h>
#include <linux/sizes.h>

#include "commands.h"
#include "compat.h"
#include "devices.h"
#include "importer.h"

static void gdmabuf_importer_attach_unmap_locked(struct importer *imp,
						 struct dma_buf_attachment *attachment)
{
	struct sg_table *sgt = imp->sgt;

	dma_resv_assert_held(attachment->dmabuf->resv);
	if (!sgt)
		return;
	WRITE_ONCE(imp->sgt, NULL);
	dma_buf_unmap_attachment(attachment, sgt, imp->direction);
}

/* Memory with attachments must not move. */
static void gdmabuf_importer_attach_on_move(struct dma_buf_attachment *attachment)
{
	WARN_ON_ONCE(1);
}

static const struct dma_buf_attach_ops dynamic_ops = {
	ON_MOVE(gdmabuf_importer_attach_on_move)
};

static const struct dma_buf_attach_ops dynamic_p2p_ops = {
	ON_MOVE(gdmabuf_importer_attach_on_move)
	.allow_peer2peer = true,
};

static const struct dma_buf_attach_ops pinned_ops = {
	ON_MOVE_PINNED(gdmabuf_importer_attach_on_move)
};

static const struct dma_buf_attach_ops pinned_p2p_ops = {
	ON_MOVE_PINNED(gdmabuf_importer_attach_on_move)
	.allow_peer2peer = true,
};

static const struct dma_buf_attach_ops *
gdmabuf_importer_attach_ops(const struct gdmabuf_importer_attach *cmd)
{
	bool p2p = cmd->flags & GDMABUF_IMPORTER_PEER2PEER;

	switch (cmd->mode) {
	case GDMABUF_IMPORTER_PINNED:
		return p2p ? &pinned_p2p_ops : &pinned_ops;
	case GDMABUF_IMPORTER_DYNAMIC:
		return p2p ? &dynamic_p2p_ops : &dynamic_ops;
	default:
		return NULL;
	}
}

/* The caller puts the device. */
static struct device *gdmabuf_importer_attach_choose_device(struct gdmabuf_importer_attach *cmd)
{
	struct device *dev = NULL;

	if (!(cmd->flags & GDMABUF_IMPORTER_PLATFORM_DEVICE))
		dev = gdmabuf_importer_edu_get();
	cmd->out_edu = !!dev;
	return dev ? dev : gdmabuf_importer_platform_get();
}

static int gdmabuf_importer_attach_check_attach(const struct gdmabuf_importer_attach *cmd)
{
	if (cmd->flags & ~(GDMABUF_IMPORTER_PEER2PEER | GDMABUF_IMPORTER_PLATFORM_DEVICE) ||
	    cmd->mode > GDMABUF_IMPORTER_DYNAMIC || !gdmabuf_importer_is_direction(cmd->direction))
		return -EINVAL;
	if (cmd->mode == GDMABUF_IMPORTER_STATIC && cmd->flags & GDMABUF_IMPORTER_PEER2PEER)
		return -EINVAL;
	return 0;
}

static int gdmabuf_importer_attach_pin(struct dma_buf_attachment *attachment)
{
	struct dma_resv *resv = attachment->dmabuf->resv;
	int err = dma_resv_lock_interruptible(resv, NULL);

	if (err)
		return err;
	err = dma_buf_pin(attachment);
	dma_resv_unlock(resv);
	return err;
}

/*
 * Static importers have no operations.  dma_buf_attach() is dma_buf_dynamic_attach() without
 * operations.
 */
static int gdmabuf_importer_attach_attach(struct importer *imp,
					  const struct dma_buf_attach_ops *ops)
{
	struct dma_buf_attachment *attachment;
	int err;

	attachment = dma_buf_dynamic_attach(imp->dmabuf, imp->dev, ops, imp);
	if (IS_ERR(attachment))
		return PTR_ERR(attachment);
	if (imp->mode == GDMABUF_IMPORTER_PINNED) {
		err = gdmabuf_importer_attach_pin(attachment);
		if (err) {
			dma_buf_detach(imp->dmabuf, attachment);
			return err;
		}
	}
	imp->attachment = attachment;
	return 0;
}

int gdmabuf_importer_attach(struct importer *imp, void *arg)
{
	struct gdmabuf_importer_attach *cmd = arg;
	int err = imp->attachment ? -EBUSY : gdmabuf_importer_attach_check_attach(cmd);

	if (err)
		return err;
	imp->dmabuf = dma_buf_get(cmd->fd);
	if (IS_ERR(imp->dmabuf))
		return -EBADF;
	imp->dev = gdmabuf_importer_attach_choose_device(cmd);
	dma_set_max_seg_size(imp->dev, cmd->max_segment ?: SZ_64K);
	imp->mode = cmd->mode;
	imp->direction = cmd->direction;
	err = gdmabuf_importer_attach_attach(imp, gdmabuf_importer_attach_ops(cmd));
	if (err) {
		put_device(imp->dev);
		dma_buf_put(imp->dmabuf);
	}
	return err;
}

int gdmabuf_importer_detach(struct importer *imp, void *arg)
{
	if (!imp->attachment)
		return -ENOTCONN;
	if (iosys_map_is_set(&imp->vmap))
		gdmabuf_importer_vunmap(imp, NULL);
	dma_resv_lock(imp->dmabuf->resv, NULL);
	gdmabuf_importer_attach_unmap_locked(imp, imp->attachment);
	if (imp->mode == GDMABUF_IMPORTER_PINNED)
		dma_buf_unpin(imp->attachment);
	dma_resv_unlock(imp->dmabuf->resv);
	dma_buf_detach(imp->dmabuf, imp->attachment);
	dma_buf_put(imp->dmabuf);
	put_device(imp->dev);
	imp->attachment = NULL;
	return 0;
}

static void gdmabuf_importer_attach_describe(struct sg_table *sgt, struct gdmabuf_importer_map *cmd)
{
	struct scatterlist *sg;
	u64 end = 0;
	int i;

	cmd->out_nents = sgt->nents;
	cmd->out_orig_nents = sgt->orig_nents;
	for_each_sgtable_dma_sg(sgt, sg, i) {
		if (!i || sg_dma_address(sg) != end)
			cmd->out_ranges++;
		end = sg_dma_address(sg) + sg_dma_len(sg);
		cmd->out_length += sg_dma_len(sg);
		cmd->out_largest = max_t(u64, cmd->out_largest, sg_dma_len(sg));
	}
}

static int gdmabuf_importer_attach_map_locked(struct importer *imp)
{
	struct sg_table *sgt;

	if (imp->sgt)
		return -EBUSY;
	sgt = dma_buf_map_attachment(imp->attachment, imp->direction);
	if (IS_ERR(sgt))
		return PTR_ERR(sgt);
	WRITE_ONCE(imp->sgt, sgt);
	return 0;
}

int gdmabuf_importer_map(struct importer *imp, void *arg)
{
	int err;

	if (!imp->attachment)
		return -ENOTCONN;
	err = dma_resv_lock_interruptible(imp->dmabuf->resv, NULL);
	if (err)
		return err;
	err = gdmabuf_importer_attach_map_locked(imp);
	if (!err)
		gdmabuf_importer_attach_describe(imp->sgt, arg);
	dma_resv_unlock(imp->dmabuf->resv);
	return err;
}

int gdmabuf_importer_mmap(struct importer *imp, struct vm_area_struct *vma)
{
	return imp->attachment ? dma_buf_mmap(imp->dmabuf, vma, vma->vm_pgoff) : -ENOTCONN;
}

int gdmabuf_importer_unmap(struct importer *imp, void *arg)
{
	int err;

	if (!imp->attachment)
		return -ENOTCONN;
	err = dma_resv_lock_interruptible(imp->dmabuf->resv, NULL);
	if (err)
		return err;
	err = imp->sgt ? 0 : -ENXIO;
	gdmabuf_importer_attach_unmap_locked(imp, imp->attachment);
	dma_resv_unlock(imp->dmabuf->resv);
	return err;
}
