// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Attachments and their mappings: which kinds there are. */
#include <linux/dma-mapping.h>
#include <linux/dma-resv.h>
#include <linux/scatterlist.h>
#include <linux/sizes.h>

#include "commands.h"
#include "compat.h"
#include "devices.h"
#include "fence.h"
#include "importer.h"

static void unmap_locked(struct importer *imp, struct dma_buf_attachment *attachment)
{
	struct sg_table *sgt = imp->sgt;

	dma_resv_assert_held(attachment->dmabuf->resv);
	if (!sgt)
		return;
	WRITE_ONCE(imp->sgt, NULL);
	dma_buf_unmap_attachment(attachment, sgt, imp->direction);
}

/* Devices have memory that does not move. */
static void on_move(struct dma_buf_attachment *attachment)
{
	WARN_ON_ONCE(1);
}

static const struct dma_buf_attach_ops dynamic_ops = { ON_MOVE(on_move) };
static const struct dma_buf_attach_ops dynamic_p2p_ops = {
	ON_MOVE(on_move)
	.allow_peer2peer = true,
};
static const struct dma_buf_attach_ops pinned_ops = { ON_MOVE_PINNED(on_move) };
static const struct dma_buf_attach_ops pinned_p2p_ops = {
	ON_MOVE_PINNED(on_move)
	.allow_peer2peer = true,
};

static const struct dma_buf_attach_ops *attach_ops(const struct gdmabuf_importer_attach *cmd)
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

/* The caller puts it. */
static struct device *choose_device(struct gdmabuf_importer_attach *cmd)
{
	struct device *dev = NULL;

	if (cmd->flags & GDMABUF_IMPORTER_BARE_DEVICE)
		return importer_bare_get();
	if (!(cmd->flags & GDMABUF_IMPORTER_PLATFORM_DEVICE))
		dev = importer_edu_get();
	cmd->out_edu = !!dev;
	return dev ? dev : importer_platform_get();
}

static int check_attach(const struct gdmabuf_importer_attach *cmd)
{
	if (cmd->flags & ~(GDMABUF_IMPORTER_PEER2PEER | GDMABUF_IMPORTER_PLATFORM_DEVICE |
			   GDMABUF_IMPORTER_BARE_DEVICE) ||
	    cmd->mode > GDMABUF_IMPORTER_DYNAMIC || !importer_is_direction(cmd->direction))
		return -EINVAL;
	if (cmd->mode == GDMABUF_IMPORTER_STATIC && cmd->flags & GDMABUF_IMPORTER_PEER2PEER)
		return -EINVAL;
	return 0;
}

static int pin(struct dma_buf_attachment *attachment)
{
	struct dma_resv *resv = attachment->dmabuf->resv;
	int err = dma_resv_lock_interruptible(resv, NULL);

	if (err)
		return err;
	err = dma_buf_pin(attachment);
	dma_resv_unlock(resv);
	return err;
}

/* Static importers call dma_buf_attach(), which is this without operations. */
static int attach(struct importer *imp, const struct dma_buf_attach_ops *ops)
{
	struct dma_buf_attachment *attachment;
	int err;

	attachment = dma_buf_dynamic_attach(imp->dmabuf, imp->dev, ops, imp);
	if (IS_ERR(attachment))
		return PTR_ERR(attachment);
	if (imp->mode == GDMABUF_IMPORTER_PINNED) {
		err = pin(attachment);
		if (err) {
			dma_buf_detach(imp->dmabuf, attachment);
			return err;
		}
	}
	imp->attachment = attachment;
	return 0;
}

int importer_attach(struct importer *imp, void *arg)
{
	struct gdmabuf_importer_attach *cmd = arg;
	int err = imp->attachment ? -EBUSY : check_attach(cmd);

	if (err)
		return err;
	imp->dmabuf = dma_buf_get(cmd->fd);
	if (IS_ERR(imp->dmabuf))
		return -EBADF;
	imp->dev = choose_device(cmd);
	dma_set_max_seg_size(imp->dev, cmd->max_segment ?: SZ_64K);
	imp->mode = cmd->mode;
	imp->direction = cmd->direction;
	err = attach(imp, attach_ops(cmd));
	if (err) {
		put_device(imp->dev);
		dma_buf_put(imp->dmabuf);
	}
	return err;
}

static int add_fence(struct importer *imp, bool writes)
{
	struct dma_fence *fence = importer_fence_add(imp->dmabuf->resv, writes);

	if (IS_ERR(fence))
		return PTR_ERR(fence);
	imp->fence = fence;
	return 0;
}

static void remove_fence(struct importer *imp)
{
	importer_fence_remove(imp->dmabuf->resv, imp->fence);
	imp->fence = NULL;
}

int importer_detach(struct importer *imp, void *arg)
{
	if (!imp->attachment)
		return -ENOTCONN;
	if (imp->fence)
		remove_fence(imp);
	if (iosys_map_is_set(&imp->vmap))
		importer_vunmap(imp, NULL);
	dma_resv_lock(imp->dmabuf->resv, NULL);
	unmap_locked(imp, imp->attachment);
	if (imp->mode == GDMABUF_IMPORTER_PINNED)
		dma_buf_unpin(imp->attachment);
	dma_resv_unlock(imp->dmabuf->resv);
	dma_buf_detach(imp->dmabuf, imp->attachment);
	dma_buf_put(imp->dmabuf);
	put_device(imp->dev);
	imp->attachment = NULL;
	return 0;
}

static void describe(struct sg_table *sgt, struct gdmabuf_importer_map *cmd)
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

static int map_locked(struct importer *imp)
{
	struct sg_table *sgt;
	long left;

	if (imp->sgt)
		return -EBUSY;
	/* Those with operations wait themselves, as RDMA does. */
	left = dma_resv_wait_timeout(imp->dmabuf->resv, DMA_RESV_USAGE_KERNEL, true,
				     MAX_SCHEDULE_TIMEOUT);
	if (left < 0)
		return left;
	sgt = dma_buf_map_attachment(imp->attachment, imp->direction);
	if (IS_ERR(sgt))
		return PTR_ERR(sgt);
	WRITE_ONCE(imp->sgt, sgt);
	return 0;
}

int importer_map(struct importer *imp, void *arg)
{
	int err;

	if (!imp->attachment)
		return -ENOTCONN;
	err = dma_resv_lock_interruptible(imp->dmabuf->resv, NULL);
	if (err)
		return err;
	err = map_locked(imp);
	if (!err)
		describe(imp->sgt, arg);
	dma_resv_unlock(imp->dmabuf->resv);
	return err;
}

int importer_mmap(struct importer *imp, struct vm_area_struct *vma)
{
	return imp->attachment ? dma_buf_mmap(imp->dmabuf, vma, vma->vm_pgoff) : -ENOTCONN;
}

int importer_unmap(struct importer *imp, void *arg)
{
	int err;

	if (!imp->attachment)
		return -ENOTCONN;
	err = dma_resv_lock_interruptible(imp->dmabuf->resv, NULL);
	if (err)
		return err;
	err = imp->sgt ? 0 : -ENXIO;
	unmap_locked(imp, imp->attachment);
	dma_resv_unlock(imp->dmabuf->resv);
	return err;
}

int importer_fence(struct importer *imp, void *arg)
{
	const struct gdmabuf_importer_switch *cmd = arg;

	if (!imp->attachment)
		return -ENOTCONN;
	if (cmd->on > GDMABUF_IMPORTER_FENCE_WRITE)
		return -EINVAL;
	if (cmd->on)
		return imp->fence ? -EBUSY
				  : add_fence(imp, cmd->on == GDMABUF_IMPORTER_FENCE_WRITE);
	if (!imp->fence)
		return -ENXIO;
	remove_fence(imp);
	return 0;
}
