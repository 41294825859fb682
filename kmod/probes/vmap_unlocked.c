// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Since 6.2 dma_buf_vmap() needs the dma-buf's resv locked, and the function below takes the lock.
 */
#include <linux/dma-buf.h>

int probe(struct dma_buf *dmabuf, struct iosys_map *map);

int probe(struct dma_buf *dmabuf, struct iosys_map *map)
{
	return dma_buf_vmap_unlocked(dmabuf, map);
}
