// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Until 7.1 an exporter that takes pages away calls dma_buf_move_notify(). */
#include <linux/dma-buf.h>

void probe(struct dma_buf *dmabuf);

void probe(struct dma_buf *dmabuf)
{
	dma_buf_move_notify(dmabuf);
}
