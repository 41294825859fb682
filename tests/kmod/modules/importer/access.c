// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Access to a dma-buf by a device and by the kernel. */
#include <linux/dma-resv.h>
#include <linux/overflow.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "commands.h"
#include "compat.h"
#include "devices.h"
#include "importer.h"

static bool gdmabuf_importer_access_in_buffer(struct importer *imp, u64 offset, u32 length)
{
	u64 end;

	return length && !check_add_overflow(offset, (u64)length, &end) && end <= imp->dmabuf->size;
}

/* On success the caller has the locks of the dma-buf and of edu. */
static int gdmabuf_importer_access_dma_begin(struct importer *imp)
{
	struct dma_resv *resv = imp->dmabuf->resv;
	int err = dma_resv_lock_interruptible(resv, NULL);

	if (err)
		return err;
	err = gdmabuf_importer_edu_lock(imp->dev);
	if (err)
		goto unlock_resv;
	if (imp->sgt)
		return 0;
	err = -ENXIO;
	gdmabuf_importer_edu_unlock();
unlock_resv:
	dma_resv_unlock(resv);
	return err;
}

static void gdmabuf_importer_access_dma_end(struct importer *imp)
{
	gdmabuf_importer_edu_unlock();
	dma_resv_unlock(imp->dmabuf->resv);
}

int gdmabuf_importer_copy(struct importer *imp, void *arg)
{
	const struct gdmabuf_importer_copy *cmd = arg;
	int err;

	if (!imp->attachment)
		return -ENOTCONN;
	if (cmd->reserved || cmd->length > GDMABUF_IMPORTER_DMA_MAX ||
	    !gdmabuf_importer_access_in_buffer(imp, cmd->source, cmd->length) ||
	    !gdmabuf_importer_access_in_buffer(imp, cmd->destination, cmd->length))
		return -EINVAL;
	err = gdmabuf_importer_access_dma_begin(imp);
	if (err)
		return err;
	err = gdmabuf_importer_edu_copy_locked(imp->sgt, cmd->source, cmd->destination,
					       cmd->length);
	gdmabuf_importer_access_dma_end(imp);
	return err;
}

static int gdmabuf_importer_access_check_access(struct importer *imp,
						const struct gdmabuf_importer_access *cmd, u32 max)
{
	if (!imp->attachment)
		return -ENOTCONN;
	if (cmd->reserved || cmd->length > max ||
	    !gdmabuf_importer_access_in_buffer(imp, cmd->offset, cmd->length))
		return -EINVAL;
	return 0;
}

/*
 * Copies to user space with the dma-buf unlocked, because @cmd->data may point into a mapping of
 * the dma-buf.
 */
int gdmabuf_importer_read(struct importer *imp, void *arg)
{
	const struct gdmabuf_importer_access *cmd = arg;
	void *data;
	int err = gdmabuf_importer_access_check_access(imp, cmd, GDMABUF_IMPORTER_DMA_MAX);

	if (err)
		return err;
	data = kmalloc(cmd->length, GFP_KERNEL);
	if (!data)
		return -ENOMEM;
	err = gdmabuf_importer_access_dma_begin(imp);
	if (!err) {
		err = gdmabuf_importer_edu_read_locked(imp->sgt, cmd->offset, cmd->length, data);
		gdmabuf_importer_access_dma_end(imp);
	}
	if (!err && copy_to_user(u64_to_user_ptr(cmd->data), data, cmd->length))
		err = -EFAULT;
	kfree(data);
	return err;
}

int gdmabuf_importer_write(struct importer *imp, void *arg)
{
	const struct gdmabuf_importer_access *cmd = arg;
	void *data;
	int err = gdmabuf_importer_access_check_access(imp, cmd, GDMABUF_IMPORTER_DMA_MAX);

	if (err)
		return err;
	data = memdup_user(u64_to_user_ptr(cmd->data), cmd->length);
	if (IS_ERR(data))
		return PTR_ERR(data);
	err = gdmabuf_importer_access_dma_begin(imp);
	if (!err) {
		err = gdmabuf_importer_edu_write_locked(imp->sgt, cmd->offset, cmd->length, data);
		gdmabuf_importer_access_dma_end(imp);
	}
	kfree(data);
	return err;
}

static void gdmabuf_importer_access_vunmap_dmabuf(struct importer *imp)
{
	dma_buf_vunmap_unlocked(imp->dmabuf, &imp->vmap);
	iosys_map_clear(&imp->vmap);
}

int gdmabuf_importer_vmap(struct importer *imp, void *arg)
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
	gdmabuf_importer_access_vunmap_dmabuf(imp);
	return -EIO;
}

int gdmabuf_importer_vunmap(struct importer *imp, void *arg)
{
	if (!imp->attachment)
		return -ENOTCONN;
	if (iosys_map_is_null(&imp->vmap))
		return -ENXIO;
	gdmabuf_importer_access_vunmap_dmabuf(imp);
	return 0;
}

static int gdmabuf_importer_access_check_vaccess(struct importer *imp,
						 const struct gdmabuf_importer_access *cmd)
{
	int err = gdmabuf_importer_access_check_access(imp, cmd, INT_MAX);

	return !err && iosys_map_is_null(&imp->vmap) ? -ENXIO : err;
}

int gdmabuf_importer_vread(struct importer *imp, void *arg)
{
	const struct gdmabuf_importer_access *cmd = arg;
	int err = gdmabuf_importer_access_check_vaccess(imp, cmd);

	if (err)
		return err;
	return copy_to_user(u64_to_user_ptr(cmd->data), imp->vmap.vaddr + cmd->offset,
			    cmd->length) ? -EFAULT : 0;
}

int gdmabuf_importer_vwrite(struct importer *imp, void *arg)
{
	const struct gdmabuf_importer_access *cmd = arg;
	int err = gdmabuf_importer_access_check_vaccess(imp, cmd);

	if (err)
		return err;
	return copy_from_user(imp->vmap.vaddr + cmd->offset, u64_to_user_ptr(cmd->data),
			      cmd->length) ? -EFAULT : 0;
}

int gdmabuf_importer_begin_cpu_access(struct importer *imp, void *arg)
{
	const struct gdmabuf_importer_cpu *cmd = arg;

	if (!imp->attachment)
		return -ENOTCONN;
	if (!gdmabuf_importer_is_direction(cmd->direction))
		return -EINVAL;
	return dma_buf_begin_cpu_access(imp->dmabuf, cmd->direction);
}

int gdmabuf_importer_end_cpu_access(struct importer *imp, void *arg)
{
	const struct gdmabuf_importer_cpu *cmd = arg;

	if (!imp->attachment)
		return -ENOTCONN;
	if (!gdmabuf_importer_is_direction(cmd->direction))
		return -EINVAL;
	return dma_buf_end_cpu_access(imp->dmabuf, cmd->direction);
}
