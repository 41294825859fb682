// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Buffers: dma-bufs on pins. */
#include <linux/fcntl.h>
#include <linux/slab.h>

#include "compat.h"
#include "core.h"

void gdmabuf_buffer_release(struct dma_buf *dmabuf)
{
	struct gdmabuf_buffer *buffer = dmabuf->priv;
	struct gdmabuf_pin *pin = buffer->pin;
	struct gdmabuf_context *ctx = pin->ctx;
	u32 kind = pin->ops->kind;

	atomic_dec(&pin->buffers);
	WARN_ON(!list_empty(&buffer->maps) || buffer->mappings);
	kfree(buffer);
	kref_get(&ctx->kref);
	gdmabuf_pin_put(pin);
	if (READ_ONCE(ctx->budget[gdmabuf_kind_index(kind)]) != U64_MAX)
		gdmabuf_context_trim(ctx, kind);
	gdmabuf_context_put(ctx);
}

/* For fdinfo and debugfs.  The names are static, because the dma-buf outlives the buffer. */
static const char *gdmabuf_exporter_name(const struct gdmabuf_pin *pin)
{
	if (pin->ops->kind == GDMABUF_KIND_HOST)
		return "gdmabuf-host";
	return pin->flags & GDMABUF_REVOCABLE ? "gdmabuf-gpu-revocable" : "gdmabuf-gpu";
}

static struct dma_buf *gdmabuf_buffer_export(struct gdmabuf_buffer *buffer)
{
	DEFINE_DMA_BUF_EXPORT_INFO(info);

	info.ops = buffer->pin->ops->buffer_ops(buffer->pin, buffer->offset, buffer->length,
						 buffer->flags);
	info.exp_name = gdmabuf_exporter_name(buffer->pin);
	info.size = buffer->length;
	info.flags = buffer->flags & GDMABUF_READ_ONLY ? O_RDONLY : O_RDWR;
	info.priv = buffer;
	return dma_buf_export(&info);
}

struct dma_buf *gdmabuf_buffer_create(struct gdmabuf_pin *pin, u64 offset, u64 length, u32 flags)
{
	struct gdmabuf_buffer *buffer = kzalloc(sizeof(*buffer), GFP_KERNEL_ACCOUNT);
	struct dma_buf *dmabuf;

	if (!buffer) {
		gdmabuf_pin_put(pin);
		return ERR_PTR(-ENOMEM);
	}
	buffer->pin = pin;
	buffer->offset = offset;
	buffer->length = length;
	buffer->flags = flags;
	mutex_init(&buffer->maps_lock);
	INIT_LIST_HEAD(&buffer->maps);
	dmabuf = gdmabuf_buffer_export(buffer);
	if (IS_ERR(dmabuf)) {
		kfree(buffer);
		gdmabuf_pin_put(pin);
		return dmabuf;
	}
	buffer->dmabuf = dmabuf;
	atomic_inc(&pin->buffers);
	return dmabuf;
}

struct gdmabuf_buffer *gdmabuf_buffer_of(struct dma_buf *dmabuf)
{
	return dmabuf->ops->release == gdmabuf_buffer_release ? dmabuf->priv : NULL;
}

void gdmabuf_buffer_add_mapping(struct gdmabuf_buffer *buffer)
{
	mutex_lock(&buffer->pin->lock);
	if (!buffer->mappings++)
		list_add(&buffer->link, &buffer->pin->mapped);
	mutex_unlock(&buffer->pin->lock);
}

void gdmabuf_buffer_del_mapping(struct gdmabuf_buffer *buffer)
{
	mutex_lock(&buffer->pin->lock);
	if (!--buffer->mappings)
		list_del(&buffer->link);
	mutex_unlock(&buffer->pin->lock);
}

void gdmabuf_buffer_revoke_locked(struct gdmabuf_buffer *buffer)
{
	lockdep_assert_held(&buffer->pin->lock);
	unmap_mapping_range(file_inode(buffer->dmabuf->file)->i_mapping, 0, 0, 1);
}
