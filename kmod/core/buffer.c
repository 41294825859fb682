// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Buffers: dma-bufs of pinned memory. */
#include <linux/fcntl.h>
#include <linux/slab.h>

#include "compat.h"
#include "core.h"

void gdmabuf_buffer_release(struct dma_buf *dmabuf)
{
	struct gdmabuf_buffer *buffer = dmabuf->priv;

	WARN_ON(!list_empty(&buffer->maps));
	buffer->kind->destroy(buffer);
}

static struct dma_buf *gdmabuf_buffer_make(struct gdmabuf_buffer *buffer)
{
	DEFINE_DMA_BUF_EXPORT_INFO(info);

	info.ops = buffer->kind->ops(buffer);
	info.exp_name = buffer->kind->name;
	info.size = buffer->length;
	info.flags = buffer->flags & GDMABUF_READ_ONLY ? O_RDONLY : O_RDWR;
	info.priv = buffer;
	return dma_buf_export(&info);
}

struct dma_buf *gdmabuf_buffer_export(const struct gdmabuf_kind *kind, u64 address, u64 length,
				      u32 flags)
{
	struct gdmabuf_buffer *buffer = kzalloc(sizeof(*buffer), GFP_KERNEL_ACCOUNT);
	struct dma_buf *dmabuf;
	int err;

	if (!buffer)
		return ERR_PTR(-ENOMEM);
	buffer->kind = kind;
	buffer->length = length;
	buffer->flags = flags;
	mutex_init(&buffer->maps_lock);
	INIT_LIST_HEAD(&buffer->maps);
	err = kind->pin(buffer, address);
	dmabuf = err ? ERR_PTR(err) : gdmabuf_buffer_make(buffer);
	if (IS_ERR(dmabuf))
		kind->destroy(buffer);
	return dmabuf;
}
