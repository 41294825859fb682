// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Since 6.2 who maps a dma-buf for the CPU locks its resv, or calls what does. */
#include <linux/dma-buf.h>

int probe(struct dma_buf *dmabuf, struct iosys_map *map);

int probe(struct dma_buf *dmabuf, struct iosys_map *map)
{
	return dma_buf_vmap_unlocked(dmabuf, map);
}
