// SPDX-License-Identifier: GPL-2.0 OR MIT
/* /dev/gdmabuf_importer: imports dma-bufs as drivers of all kinds do.  For tests. */
#include <linux/dma-fence.h>
#include <linux/dma-mapping.h>
#include <linux/dma-resv.h>
#include <linux/iopoll.h>
#include <linux/iosys-map.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/nospec.h>
#include <linux/overflow.h>
#include <linux/pci.h>
#include <linux/platform_device.h>
#include <linux/scatterlist.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "compat.h"
#include "importer.h"

#define NAME		"gdmabuf_importer"

/* QEMU's edu, docs/specs/edu: registers, and where it has memory on its side of the DMA. */
#define EDU_ID		0x00
#define EDU_SOURCE	0x80
#define EDU_DESTINATION	0x88
#define EDU_COUNT	0x90
#define EDU_COMMAND	0x98
#define EDU_RUN		BIT(0)
#define EDU_FROM_EDU	BIT(1)
#define EDU_MEMORY	0x40000

/* edu drops the bits of an address beyond its dma_mask=, which tests/vm/run sets. */
#define EDU_DMA_BITS	48
#define EDU_TIMEOUT_US	(5 * USEC_PER_SEC)

/* @lock is the registers' and edu's memory's, too.  It is taken within a dma-buf's resv. */
static struct {
	struct mutex lock;
	struct pci_dev *pdev;
	void __iomem *regs;
	void *bounce;
	dma_addr_t bounce_address;
} edu = { .lock = __MUTEX_INITIALIZER(edu.lock) };

static struct platform_device *platform_device;

/*
 * @lock: the members until @sgt.  It is taken before the dma-buf's resv, so not by a move.
 * @sgt: the dma-buf's resv.  Others may look whether it is there.
 */
struct importer {
	struct mutex lock;
	struct device *dev;
	struct dma_buf *dmabuf;
	struct dma_buf_attachment *attachment;
	struct dma_fence *fence;
	struct iosys_map vmap;
	enum dma_data_direction direction;
	u32 mode;
	struct sg_table *sgt;
	bool hang;
	atomic64_t moves;
};

static int edu_dma_locked(u64 source, u64 destination, u32 length, u64 command)
{
	u64 status;

	lockdep_assert_held(&edu.lock);
	writeq(source, edu.regs + EDU_SOURCE);
	writeq(destination, edu.regs + EDU_DESTINATION);
	writeq(length, edu.regs + EDU_COUNT);
	writeq(command | EDU_RUN, edu.regs + EDU_COMMAND);
	return read_poll_timeout(readq, status, !(status & EDU_RUN), 5 * USEC_PER_MSEC,
				 EDU_TIMEOUT_US, false, edu.regs + EDU_COMMAND);
}

static int edu_load_locked(u32 length)
{
	return edu_dma_locked(edu.bounce_address, EDU_MEMORY, length, 0);
}

static int edu_store_locked(u32 length)
{
	return edu_dma_locked(EDU_MEMORY, edu.bounce_address, length, EDU_FROM_EDU);
}

/* What is left in edu's memory looks like the data, when DMA from the dma-buf does nothing. */
static int edu_poison_locked(u32 length)
{
	memset(edu.bounce, GDMABUF_IMPORTER_POISON, length);
	return edu_load_locked(length);
}

/* The DMA address of @offset, and how many of @length bytes are in its segment. */
static u32 locate(struct sg_table *sgt, u64 offset, u32 length, dma_addr_t *address)
{
	struct scatterlist *sg;
	int i;

	for_each_sgtable_dma_sg(sgt, sg, i) {
		if (offset < sg_dma_len(sg)) {
			*address = sg_dma_address(sg) + offset;
			return min_t(u64, length, sg_dma_len(sg) - offset);
		}
		offset -= sg_dma_len(sg);
	}
	return 0;
}

/* Between the dma-buf and edu's memory. */
static int edu_transfer_locked(struct sg_table *sgt, u64 offset, u32 length, u64 command)
{
	u32 done, part;
	dma_addr_t address;
	int err;

	for (done = 0; done < length; done += part) {
		part = locate(sgt, offset + done, length - done, &address);
		if (!part)
			return -EIO;
		if (command & EDU_FROM_EDU)
			err = edu_dma_locked(EDU_MEMORY + done, address, part, command);
		else
			err = edu_dma_locked(address, EDU_MEMORY + done, part, command);
		if (err)
			return err;
	}
	return 0;
}

static int edu_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	void __iomem *regs;
	int err;

	if (edu.pdev)
		return -EBUSY;
	err = pcim_enable_device(pdev);
	if (err)
		return err;
	err = dma_set_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(EDU_DMA_BITS));
	if (err)
		return err;
	regs = pcim_iomap(pdev, 0, 0);
	if (!regs)
		return -ENOMEM;
	if ((readl(regs + EDU_ID) & 0xff) != 0xed)
		return -ENODEV;
	edu.bounce = dmam_alloc_coherent(&pdev->dev, PAGE_SIZE, &edu.bounce_address, GFP_KERNEL);
	if (!edu.bounce)
		return -ENOMEM;
	pci_set_master(pdev);
	mutex_lock(&edu.lock);
	edu.regs = regs;
	edu.pdev = pdev;
	mutex_unlock(&edu.lock);
	return 0;
}

static void edu_remove(struct pci_dev *pdev)
{
	mutex_lock(&edu.lock);
	edu.pdev = NULL;
	mutex_unlock(&edu.lock);
	pci_clear_master(pdev);
}

static const struct pci_device_id edu_ids[] = {
	{ PCI_DEVICE(0x1234, 0x11e8) },
	{}
};

/* Attachments know the device, not whether it still has its driver. */
static struct pci_driver edu_driver = {
	.name = NAME,
	.id_table = edu_ids,
	.probe = edu_probe,
	.remove = edu_remove,
	.driver.suppress_bind_attrs = true,
};

static struct platform_driver platform_driver = {
	.driver.name = NAME,
	.driver.suppress_bind_attrs = true,
};

struct fence {
	struct dma_fence base;
	spinlock_t lock;
};

static const char *fence_name(struct dma_fence *fence)
{
	return NAME;
}

static void fence_release(struct dma_fence *fence)
{
	dma_fence_free(fence);
	module_put(THIS_MODULE);
}

static const struct dma_fence_ops fence_ops = {
	.get_driver_name = fence_name,
	.get_timeline_name = fence_name,
	.release = fence_release,
};

/* Others may keep the fence: it holds the module, which the caller's file does now. */
static struct dma_fence *fence_create(void)
{
	struct fence *fence = kzalloc(sizeof(*fence), GFP_KERNEL);

	if (!fence)
		return NULL;
	__module_get(THIS_MODULE);
	spin_lock_init(&fence->lock);
	dma_fence_init(&fence->base, &fence_ops, &fence->lock, dma_fence_context_alloc(1), 1);
	return &fence->base;
}

static int fence_add(struct importer *imp)
{
	struct dma_resv *resv = imp->dmabuf->resv;
	struct dma_fence *fence;
	int err;

	fence = fence_create();
	if (!fence)
		return -ENOMEM;
	err = dma_resv_lock_interruptible(resv, NULL);
	if (err)
		goto put;
	err = dma_resv_reserve_fences(resv, 1);
	if (!err) {
		dma_resv_add_fence(resv, fence, DMA_RESV_USAGE_BOOKKEEP);
		imp->fence = fence;
	}
	dma_resv_unlock(resv);
	if (!err)
		return 0;
put:
	dma_fence_signal(fence);
	dma_fence_put(fence);
	return err;
}

/*
 * Signals first: who waits for the fence may hold the lock.  Then another takes its place,
 * lest it hold the module as long as there is the dma-buf.
 */
static void fence_remove(struct importer *imp)
{
	struct dma_resv *resv = imp->dmabuf->resv;
	struct dma_fence *stub = dma_fence_get_stub();

	dma_fence_signal(imp->fence);
	dma_resv_lock(resv, NULL);
	dma_resv_replace_fences(resv, imp->fence->context, stub, DMA_RESV_USAGE_BOOKKEEP);
	dma_resv_unlock(resv);
	dma_fence_put(stub);
	dma_fence_put(imp->fence);
	imp->fence = NULL;
}

static void unmap_locked(struct importer *imp, struct dma_buf_attachment *attachment)
{
	struct sg_table *sgt = imp->sgt;

	dma_resv_assert_held(attachment->dmabuf->resv);
	if (!sgt)
		return;
	WRITE_ONCE(imp->sgt, NULL);
	dma_buf_unmap_attachment(attachment, sgt, imp->direction);
}

/* May come before ATTACH knows the attachment. */
static void on_move(struct dma_buf_attachment *attachment)
{
	struct importer *imp = attachment->importer_priv;

	atomic64_inc(&imp->moves);
	if (imp->mode == GDMABUF_IMPORTER_DYNAMIC && !READ_ONCE(imp->hang))
		unmap_locked(imp, attachment);
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
	struct device *dev = &platform_device->dev;

	mutex_lock(&edu.lock);
	cmd->out_edu = edu.pdev && !(cmd->flags & GDMABUF_IMPORTER_PLATFORM_DEVICE);
	if (cmd->out_edu)
		dev = &edu.pdev->dev;
	get_device(dev);
	mutex_unlock(&edu.lock);
	return dev;
}

static bool is_direction(u32 direction)
{
	return direction <= GDMABUF_IMPORTER_FROM_DEVICE;
}

static int check_attach(const struct gdmabuf_importer_attach *cmd)
{
	if (cmd->flags & ~(GDMABUF_IMPORTER_PEER2PEER | GDMABUF_IMPORTER_PLATFORM_DEVICE) ||
	    cmd->mode > GDMABUF_IMPORTER_DYNAMIC || !is_direction(cmd->direction))
		return -EINVAL;
	if (cmd->mode == GDMABUF_IMPORTER_STATIC && cmd->flags & GDMABUF_IMPORTER_PEER2PEER)
		return -EINVAL;
	return cmd->max_segment && cmd->max_segment < SZ_4K ? -EINVAL : 0;
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

static int do_attach(struct importer *imp, void *arg)
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

static void vunmap_dmabuf(struct importer *imp)
{
	dma_buf_vunmap_unlocked(imp->dmabuf, &imp->vmap);
	iosys_map_clear(&imp->vmap);
}

static int do_detach(struct importer *imp, void *arg)
{
	if (!imp->attachment)
		return -ENOTCONN;
	if (imp->fence)
		fence_remove(imp);
	if (iosys_map_is_set(&imp->vmap))
		vunmap_dmabuf(imp);
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

static int do_map(struct importer *imp, void *arg)
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

static int do_unmap(struct importer *imp, void *arg)
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

static bool in_buffer(struct importer *imp, u64 offset, u32 length)
{
	u64 end;

	return length && !check_add_overflow(offset, (u64)length, &end) && end <= imp->dmabuf->size;
}

/* On success the caller has the locks of the dma-buf and of edu. */
static int dma_begin(struct importer *imp)
{
	int err = dma_resv_lock_interruptible(imp->dmabuf->resv, NULL);

	if (err)
		return err;
	mutex_lock(&edu.lock);
	if (!edu.pdev || imp->dev != &edu.pdev->dev)
		err = -EOPNOTSUPP;
	else if (!imp->sgt)
		err = -ENXIO;
	if (!err)
		return 0;
	mutex_unlock(&edu.lock);
	dma_resv_unlock(imp->dmabuf->resv);
	return err;
}

static void dma_end(struct importer *imp)
{
	mutex_unlock(&edu.lock);
	dma_resv_unlock(imp->dmabuf->resv);
}

static int copy_locked(struct importer *imp, const struct gdmabuf_importer_copy *cmd)
{
	int err = edu_poison_locked(cmd->length);

	if (!err)
		err = edu_transfer_locked(imp->sgt, cmd->source, cmd->length, 0);
	if (!err)
		err = edu_transfer_locked(imp->sgt, cmd->destination, cmd->length, EDU_FROM_EDU);
	return err;
}

static int do_copy(struct importer *imp, void *arg)
{
	const struct gdmabuf_importer_copy *cmd = arg;
	int err;

	if (!imp->attachment)
		return -ENOTCONN;
	if (cmd->reserved || cmd->length > GDMABUF_IMPORTER_DMA_MAX ||
	    !in_buffer(imp, cmd->source, cmd->length) ||
	    !in_buffer(imp, cmd->destination, cmd->length))
		return -EINVAL;
	err = dma_begin(imp);
	if (err)
		return err;
	err = copy_locked(imp, cmd);
	dma_end(imp);
	return err;
}

static int read_locked(struct importer *imp, u64 offset, u32 length, void *data)
{
	int err = edu_poison_locked(length);

	if (!err)
		err = edu_transfer_locked(imp->sgt, offset, length, 0);
	if (!err)
		err = edu_store_locked(length);
	if (!err)
		memcpy(data, edu.bounce, length);
	return err;
}

static int write_locked(struct importer *imp, u64 offset, u32 length, const void *data)
{
	int err;

	memcpy(edu.bounce, data, length);
	err = edu_load_locked(length);
	return err ? err : edu_transfer_locked(imp->sgt, offset, length, EDU_FROM_EDU);
}

static int check_access(struct importer *imp, const struct gdmabuf_importer_access *cmd, u32 max)
{
	if (!imp->attachment)
		return -ENOTCONN;
	if (cmd->reserved || cmd->length > max || !in_buffer(imp, cmd->offset, cmd->length))
		return -EINVAL;
	return 0;
}

/* Not copied with the dma-buf locked: the pointer may be into a mapping of the same. */
static int do_read(struct importer *imp, void *arg)
{
	const struct gdmabuf_importer_access *cmd = arg;
	void *data;
	int err = check_access(imp, cmd, GDMABUF_IMPORTER_DMA_MAX);

	if (err)
		return err;
	data = kmalloc(cmd->length, GFP_KERNEL);
	if (!data)
		return -ENOMEM;
	err = dma_begin(imp);
	if (!err) {
		err = read_locked(imp, cmd->offset, cmd->length, data);
		dma_end(imp);
	}
	if (!err && copy_to_user(u64_to_user_ptr(cmd->data), data, cmd->length))
		err = -EFAULT;
	kfree(data);
	return err;
}

static int do_write(struct importer *imp, void *arg)
{
	const struct gdmabuf_importer_access *cmd = arg;
	void *data;
	int err = check_access(imp, cmd, GDMABUF_IMPORTER_DMA_MAX);

	if (err)
		return err;
	data = memdup_user(u64_to_user_ptr(cmd->data), cmd->length);
	if (IS_ERR(data))
		return PTR_ERR(data);
	err = dma_begin(imp);
	if (!err) {
		err = write_locked(imp, cmd->offset, cmd->length, data);
		dma_end(imp);
	}
	kfree(data);
	return err;
}

static int do_vmap(struct importer *imp, void *arg)
{
	int err;

	if (!imp->attachment)
		return -ENOTCONN;
	if (iosys_map_is_set(&imp->vmap))
		return -EBUSY;
	err = dma_buf_vmap_unlocked(imp->dmabuf, &imp->vmap);
	if (err) {
		iosys_map_clear(&imp->vmap);
		return err;
	}
	if (!imp->vmap.is_iomem)
		return 0;
	vunmap_dmabuf(imp);
	return -EIO;
}

static int do_vunmap(struct importer *imp, void *arg)
{
	if (!imp->attachment)
		return -ENOTCONN;
	if (iosys_map_is_null(&imp->vmap))
		return -ENXIO;
	vunmap_dmabuf(imp);
	return 0;
}

static int check_vaccess(struct importer *imp, const struct gdmabuf_importer_access *cmd)
{
	int err = check_access(imp, cmd, INT_MAX);

	return !err && iosys_map_is_null(&imp->vmap) ? -ENXIO : err;
}

static int do_vread(struct importer *imp, void *arg)
{
	const struct gdmabuf_importer_access *cmd = arg;
	int err = check_vaccess(imp, cmd);

	if (err)
		return err;
	return copy_to_user(u64_to_user_ptr(cmd->data), imp->vmap.vaddr + cmd->offset,
			    cmd->length) ? -EFAULT : 0;
}

static int do_vwrite(struct importer *imp, void *arg)
{
	const struct gdmabuf_importer_access *cmd = arg;
	int err = check_vaccess(imp, cmd);

	if (err)
		return err;
	return copy_from_user(imp->vmap.vaddr + cmd->offset, u64_to_user_ptr(cmd->data),
			      cmd->length) ? -EFAULT : 0;
}

static int do_begin_cpu_access(struct importer *imp, void *arg)
{
	const struct gdmabuf_importer_cpu *cmd = arg;

	if (!imp->attachment)
		return -ENOTCONN;
	if (!is_direction(cmd->direction))
		return -EINVAL;
	return dma_buf_begin_cpu_access(imp->dmabuf, cmd->direction);
}

static int do_end_cpu_access(struct importer *imp, void *arg)
{
	const struct gdmabuf_importer_cpu *cmd = arg;

	if (!imp->attachment)
		return -ENOTCONN;
	if (!is_direction(cmd->direction))
		return -EINVAL;
	return dma_buf_end_cpu_access(imp->dmabuf, cmd->direction);
}

static int do_stats(struct importer *imp, void *arg)
{
	struct gdmabuf_importer_stats *cmd = arg;

	cmd->out_moves = atomic64_read(&imp->moves);
	cmd->out_mapped = !!READ_ONCE(imp->sgt);
	return 0;
}

static int do_hang(struct importer *imp, void *arg)
{
	const struct gdmabuf_importer_switch *cmd = arg;

	if (cmd->on > 1)
		return -EINVAL;
	WRITE_ONCE(imp->hang, cmd->on);
	return 0;
}

static int do_fence(struct importer *imp, void *arg)
{
	const struct gdmabuf_importer_switch *cmd = arg;

	if (!imp->attachment)
		return -ENOTCONN;
	if (cmd->on > 1)
		return -EINVAL;
	if (cmd->on)
		return imp->fence ? -EBUSY : fence_add(imp);
	if (!imp->fence)
		return -ENXIO;
	fence_remove(imp);
	return 0;
}

union command {
	struct gdmabuf_importer_attach attach;
	struct gdmabuf_importer_map map;
	struct gdmabuf_importer_copy copy;
	struct gdmabuf_importer_access access;
	struct gdmabuf_importer_cpu cpu;
	struct gdmabuf_importer_stats stats;
	struct gdmabuf_importer_switch onoff;
};

#define OP(request_, execute_, locks_) \
	[_IOC_NR(request_) - _IOC_NR(GDMABUF_IMPORTER_ATTACH)] = { \
		.request = request_, \
		.execute = execute_, \
		.locks = locks_, \
	}

static const struct {
	unsigned int request;
	int (*execute)(struct importer *imp, void *arg);
	bool locks;
} ops[] = {
	OP(GDMABUF_IMPORTER_ATTACH, do_attach, true),
	OP(GDMABUF_IMPORTER_DETACH, do_detach, true),
	OP(GDMABUF_IMPORTER_MAP, do_map, true),
	OP(GDMABUF_IMPORTER_UNMAP, do_unmap, true),
	OP(GDMABUF_IMPORTER_COPY, do_copy, true),
	OP(GDMABUF_IMPORTER_READ, do_read, true),
	OP(GDMABUF_IMPORTER_WRITE, do_write, true),
	OP(GDMABUF_IMPORTER_VMAP, do_vmap, true),
	OP(GDMABUF_IMPORTER_VUNMAP, do_vunmap, true),
	OP(GDMABUF_IMPORTER_VREAD, do_vread, true),
	OP(GDMABUF_IMPORTER_VWRITE, do_vwrite, true),
	OP(GDMABUF_IMPORTER_BEGIN_CPU_ACCESS, do_begin_cpu_access, true),
	OP(GDMABUF_IMPORTER_END_CPU_ACCESS, do_end_cpu_access, true),
	OP(GDMABUF_IMPORTER_STATS, do_stats, false),
	OP(GDMABUF_IMPORTER_HANG, do_hang, false),
	OP(GDMABUF_IMPORTER_FENCE, do_fence, true),
};

static int execute(struct importer *imp, unsigned int nr, union command *cmd)
{
	int err;

	if (!ops[nr].locks)
		return ops[nr].execute(imp, cmd);
	if (mutex_lock_interruptible(&imp->lock))
		return -EINTR;
	err = ops[nr].execute(imp, cmd);
	mutex_unlock(&imp->lock);
	return err;
}

static long importer_ioctl(struct file *file, unsigned int request, unsigned long arg)
{
	unsigned int nr = _IOC_NR(request) - _IOC_NR(GDMABUF_IMPORTER_ATTACH);
	void __user *user = (void __user *)arg;
	union command cmd = {};
	int err;

	if (nr >= ARRAY_SIZE(ops))
		return -ENOTTY;
	nr = array_index_nospec(nr, ARRAY_SIZE(ops));
	if (ops[nr].request != request)
		return -ENOTTY;
	if (_IOC_DIR(request) & _IOC_WRITE && copy_from_user(&cmd, user, _IOC_SIZE(request)))
		return -EFAULT;
	err = execute(file->private_data, nr, &cmd);
	if (!err && _IOC_DIR(request) & _IOC_READ && copy_to_user(user, &cmd, _IOC_SIZE(request)))
		err = -EFAULT;
	return err;
}

static int importer_open(struct inode *inode, struct file *file)
{
	struct importer *imp = kzalloc(sizeof(*imp), GFP_KERNEL);

	if (!imp)
		return -ENOMEM;
	mutex_init(&imp->lock);
	file->private_data = imp;
	return 0;
}

static int importer_release(struct inode *inode, struct file *file)
{
	struct importer *imp = file->private_data;

	do_detach(imp, NULL);
	kfree(imp);
	return 0;
}

static const struct file_operations fops = {
	.owner = THIS_MODULE,
	.open = importer_open,
	.release = importer_release,
	.unlocked_ioctl = importer_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
};

static struct miscdevice device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = NAME,
	.fops = &fops,
	.mode = 0600,
};

static const struct platform_device_info platform_info = {
	.name = NAME,
	.id = PLATFORM_DEVID_NONE,
	.dma_mask = DMA_BIT_MASK(64),
};

static int __init importer_init(void)
{
	int err = platform_driver_register(&platform_driver);

	if (err)
		return err;
	platform_device = platform_device_register_full(&platform_info);
	err = PTR_ERR_OR_ZERO(platform_device);
	if (err)
		goto unregister_platform_driver;
	err = pci_register_driver(&edu_driver);
	if (err)
		goto unregister_platform_device;
	err = misc_register(&device);
	if (err)
		goto unregister_edu;
	return 0;

unregister_edu:
	pci_unregister_driver(&edu_driver);
unregister_platform_device:
	platform_device_unregister(platform_device);
unregister_platform_driver:
	platform_driver_unregister(&platform_driver);
	return err;
}

static void __exit importer_exit(void)
{
	misc_deregister(&device);
	pci_unregister_driver(&edu_driver);
	platform_device_unregister(platform_device);
	platform_driver_unregister(&platform_driver);
}

module_init(importer_init);
module_exit(importer_exit);
MODULE_DESCRIPTION("a device that imports dma-bufs, for tests");
MODULE_LICENSE("Dual MIT/GPL");
GDMABUF_IMPORT_NS(DMA_BUF);
