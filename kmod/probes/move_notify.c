// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Until 7.1 the importer's callback has this name; for gdmabuf_importer only. */
#include <linux/dma-buf.h>

void *probe(struct dma_buf_attach_ops *ops);

void *probe(struct dma_buf_attach_ops *ops)
{
	return ops->move_notify;
}
