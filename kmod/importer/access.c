// SPDX-License-Identifier: GPL-2.0 OR MIT
/* What a device and the kernel read and write of a dma-buf. */
#include <linux/dma-resv.h>
#include <linux/overflow.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "commands.h"
#include "compat.h"
#include "devices.h"
#include "importer.h"

static bool in_buffer(struct importer *imp, u64 offset, u32 length)
{
	u64 end;

	return length && !check_add_overflow(offset, (u64)length, &end) && end <= imp->dmabuf->size;
}

/* On success the caller has the locks of the dma-buf and of edu. */
static int dma_begin(struct importer *imp)
{
	struct dma_resv *resv = imp->dmabuf->resv;
	int err = dma_resv_lock_interruptible(resv, NULL);

	if (err)
		return err;
	err = importer_edu_lock(imp->dev);
	if (err)
		goto unlock_resv;
	if (imp->sgt)
		return 0;
	err = -ENXIO;
	importer_edu_unlock();
unlock_resv:
	dma_resv_unlock(resv);
	return err;
}

static void dma_end(struct importer *imp)
{
	importer_edu_unlock();
	dma_resv_unlock(imp->dmabuf->resv);
}

int importer_copy(struct importer *imp, void *arg)
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
	err = importer_edu_copy_locked(imp->sgt, cmd->source, cmd->destination, cmd->length);
	dma_end(imp);
	return err;
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
int importer_read(struct importer *imp, void *arg)
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
		err = importer_edu_read_locked(imp->sgt, cmd->offset, cmd->length, data);
		dma_end(imp);
	}
	if (!err && copy_to_user(u64_to_user_ptr(cmd->data), data, cmd->length))
		err = -EFAULT;
	kfree(data);
	return err;
}

int importer_write(struct importer *imp, void *arg)
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
		err = importer_edu_write_locked(imp->sgt, cmd->offset, cmd->length, data);
		dma_end(imp);
	}
	kfree(data);
	return err;
}

static void vunmap_dmabuf(struct importer *imp)
{
	dma_buf_vunmap_unlocked(imp->dmabuf, &imp->vmap);
	iosys_map_clear(&imp->vmap);
}

int importer_vmap(struct importer *imp, void *arg)
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

int importer_vunmap(struct importer *imp, void *arg)
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

int importer_vread(struct importer *imp, void *arg)
{
	const struct gdmabuf_importer_access *cmd = arg;
	int err = check_vaccess(imp, cmd);

	if (err)
		return err;
	return copy_to_user(u64_to_user_ptr(cmd->data), imp->vmap.vaddr + cmd->offset,
			    cmd->length) ? -EFAULT : 0;
}

int importer_vwrite(struct importer *imp, void *arg)
{
	const struct gdmabuf_importer_access *cmd = arg;
	int err = check_vaccess(imp, cmd);

	if (err)
		return err;
	return copy_from_user(imp->vmap.vaddr + cmd->offset, u64_to_user_ptr(cmd->data),
			      cmd->length) ? -EFAULT : 0;
}

int importer_begin_cpu_access(struct importer *imp, void *arg)
{
	const struct gdmabuf_importer_cpu *cmd = arg;

	if (!imp->attachment)
		return -ENOTCONN;
	if (!importer_is_direction(cmd->direction))
		return -EINVAL;
	return dma_buf_begin_cpu_access(imp->dmabuf, cmd->direction);
}

int importer_end_cpu_access(struct importer *imp, void *arg)
{
	const struct gdmabuf_importer_cpu *cmd = arg;

	if (!imp->attachment)
		return -ENOTCONN;
	if (!importer_is_direction(cmd->direction))
		return -EINVAL;
	return dma_buf_end_cpu_access(imp->dmabuf, cmd->direction);
}
