// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Buffers for devices: scatterlists of DMA addresses.
 *
 * Host memory has struct pages, and is open to all devices.  Scatterlists of GPU memory have none.
 * A dynamic importer declares by peer2peer that it needs none; a static importer cannot declare
 * anything, and may only have the kernel's mapping (vmap), as cameras' drivers do.
 *
 * The pages never move, so there is no pin operation.
 */
#include <linux/dma-mapping.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>

#include "core.h"

int gdmabuf_sg_attach_gpu(struct dma_buf *dmabuf, struct dma_buf_attachment *attachment)
{
	return attachment->importer_ops && !attachment->peer2peer ? -EOPNOTSUPP : 0;
}

struct gdmabuf_map {
	struct list_head link;		/* buffer->maps_lock: in buffer->maps, of host memory */
	struct sg_table sgt;
	struct device *dev;
	enum dma_data_direction dir;
	unsigned int nr_runs;		/* mapped runs, of GPU memory */
	struct {
		dma_addr_t start;
		u64 length;
	} runs[];
};

/* The longest segment, in whole pages.  0 if the device accepts no full page. */
static u64 gdmabuf_sg_max_segment(struct device *dev)
{
	return ALIGN_DOWN(min_t(u64, dma_get_max_seg_size(dev), UINT_MAX), PAGE_SIZE);
}

/* Host memory may go through bounce buffers, which have a largest size. */
static u64 gdmabuf_sg_max_segment_host(struct device *dev)
{
	return ALIGN_DOWN(min_t(u64, gdmabuf_sg_max_segment(dev), dma_max_mapping_size(dev)),
			  PAGE_SIZE);
}

/* @runs: capacity of runs[].  -EINVAL, -ENOMEM. */
static struct gdmabuf_map *gdmabuf_sg_create(struct dma_buf_attachment *attachment, u64 max,
					     unsigned int runs, enum dma_data_direction dir)
{
	struct gdmabuf_buffer *buffer = attachment->dmabuf->priv;
	struct gdmabuf_map *map;

	if (!max)
		return ERR_PTR(-EINVAL);
	map = kvzalloc(struct_size(map, runs, runs), GFP_KERNEL_ACCOUNT);
	if (!map)
		return ERR_PTR(-ENOMEM);
	if (sg_alloc_table(&map->sgt, runs_count(buffer->runs, buffer->length, max),
			   GFP_KERNEL_ACCOUNT)) {
		kvfree(map);
		return ERR_PTR(-ENOMEM);
	}
	map->dev = attachment->dev;
	map->dir = dir;
	return map;
}

static void gdmabuf_sg_destroy(struct gdmabuf_map *map)
{
	sg_free_table(&map->sgt);
	kvfree(map);
}

static void gdmabuf_sg_add(struct gdmabuf_buffer *buffer, struct gdmabuf_map *map)
{
	mutex_lock(&buffer->maps_lock);
	list_add(&map->link, &buffer->maps);
	mutex_unlock(&buffer->maps_lock);
}

static void gdmabuf_sg_del(struct gdmabuf_buffer *buffer, struct gdmabuf_map *map)
{
	mutex_lock(&buffer->maps_lock);
	list_del(&map->link);
	mutex_unlock(&buffer->maps_lock);
}

static void gdmabuf_sg_unmap_runs(struct gdmabuf_map *map)
{
	unsigned int i;

	for (i = 0; i < map->nr_runs; i++)
		dma_unmap_resource(map->dev, map->runs[i].start, map->runs[i].length, map->dir,
				   DMA_ATTR_SKIP_CPU_SYNC);
}

/*
 * Maps each run as a whole, although a run may take several segments.  An IOMMU allocates addresses
 * downwards, so segments mapped singly would not be contiguous, as some importers need.
 */
static int gdmabuf_sg_map_runs(struct gdmabuf_buffer *buffer, struct gdmabuf_map *map, u64 max)
{
	struct scatterlist *sg = map->sgt.sgl;
	struct gdmabuf_run_iter it;

	run_first(&it, buffer->runs, 0, buffer->length);
	for (; it.length; run_next(&it)) {
		dma_addr_t start = dma_map_resource(map->dev, it.start, it.length, map->dir,
						    DMA_ATTR_SKIP_CPU_SYNC);
		u64 done;

		if (dma_mapping_error(map->dev, start))
			return -EIO;
		map->runs[map->nr_runs].start = start;
		map->runs[map->nr_runs].length = it.length;
		map->nr_runs++;
		for (done = 0; done < it.length; done += max, sg = sg_next(sg)) {
			sg_set_page(sg, NULL, 0, 0);
			sg_dma_address(sg) = start + done;
			sg_dma_len(sg) = min(max, it.length - done);
		}
	}
	return 0;
}

/*
 * GPU memory has no struct pages.  So orig_nents is 0, and CPU users of the scatterlist find no
 * entries instead of invalid pages.
 */
struct sg_table *gdmabuf_sg_map_gpu(struct dma_buf_attachment *attachment,
				    enum dma_data_direction dir)
{
	struct gdmabuf_buffer *buffer = attachment->dmabuf->priv;
	u64 max = gdmabuf_sg_max_segment(attachment->dev);
	struct gdmabuf_map *map;
	int err;

	if (!attachment->importer_ops)
		return ERR_PTR(-EOPNOTSUPP);
	map = gdmabuf_sg_create(attachment, max, buffer->nr_runs, dir);
	if (IS_ERR(map))
		return ERR_CAST(map);
	err = gdmabuf_sg_map_runs(buffer, map, max);
	if (err) {
		gdmabuf_sg_unmap_runs(map);
		gdmabuf_sg_destroy(map);
		return ERR_PTR(err);
	}
	map->sgt.orig_nents = 0;
	return &map->sgt;
}

void gdmabuf_sg_unmap_gpu(struct dma_buf_attachment *attachment, struct sg_table *sgt,
			  enum dma_data_direction dir)
{
	struct gdmabuf_map *map = container_of(sgt, struct gdmabuf_map, sgt);

	gdmabuf_sg_unmap_runs(map);
	sgt->orig_nents = sgt->nents;
	gdmabuf_sg_destroy(map);
}

static void gdmabuf_sg_set_pages(struct gdmabuf_buffer *buffer, struct gdmabuf_map *map, u64 max)
{
	struct scatterlist *sg = map->sgt.sgl;
	struct gdmabuf_run_iter it;
	u64 done;

	run_first(&it, buffer->runs, 0, buffer->length);
	for (; it.length; run_next(&it))
		for (done = 0; done < it.length; done += max, sg = sg_next(sg))
			sg_set_page(sg, pfn_to_page(PHYS_PFN(it.start + done)),
				    min(max, it.length - done), 0);
}

struct sg_table *gdmabuf_sg_map_host(struct dma_buf_attachment *attachment,
				     enum dma_data_direction dir)
{
	struct gdmabuf_buffer *buffer = attachment->dmabuf->priv;
	u64 max = gdmabuf_sg_max_segment_host(attachment->dev);
	struct gdmabuf_map *map;
	int err;

	if (buffer->flags & GDMABUF_READ_ONLY && dir != DMA_TO_DEVICE)
		return ERR_PTR(-EACCES);
	map = gdmabuf_sg_create(attachment, max, 0, dir);
	if (IS_ERR(map))
		return ERR_CAST(map);
	gdmabuf_sg_set_pages(buffer, map, max);
	/*
	 * Synchronized separately: dma-debug reports pages in two mappings if the mapping itself
	 * synchronizes.
	 */
	err = dma_map_sgtable(attachment->dev, &map->sgt, dir, DMA_ATTR_SKIP_CPU_SYNC);
	if (err) {
		gdmabuf_sg_destroy(map);
		return ERR_PTR(err);
	}
	dma_sync_sgtable_for_device(attachment->dev, &map->sgt, dir);
	gdmabuf_sg_add(buffer, map);
	return &map->sgt;
}

void gdmabuf_sg_unmap_host(struct dma_buf_attachment *attachment, struct sg_table *sgt,
			   enum dma_data_direction dir)
{
	struct gdmabuf_map *map = container_of(sgt, struct gdmabuf_map, sgt);

	gdmabuf_sg_del(attachment->dmabuf->priv, map);
	/*
	 * The direction is the mapping's, not the importer's @dir: bounce buffers are copied back
	 * by direction.
	 */
	dma_sync_sgtable_for_cpu(map->dev, sgt, map->dir);
	dma_unmap_sgtable(map->dev, sgt, map->dir, DMA_ATTR_SKIP_CPU_SYNC);
	gdmabuf_sg_destroy(map);
}

/*
 * A CPU that only reads data from the device passes DMA_FROM_DEVICE.  All other directions write,
 * or may write.
 */
static int gdmabuf_sg_check_cpu_access(const struct gdmabuf_buffer *buffer,
				       enum dma_data_direction dir)
{
	return buffer->flags & GDMABUF_READ_ONLY && dir != DMA_FROM_DEVICE ? -EACCES : 0;
}

int gdmabuf_sg_begin_cpu_access_host(struct dma_buf *dmabuf, enum dma_data_direction dir)
{
	struct gdmabuf_buffer *buffer = dmabuf->priv;
	int err = gdmabuf_sg_check_cpu_access(buffer, dir);
	struct gdmabuf_map *map;

	if (err)
		return err;
	mutex_lock(&buffer->maps_lock);
	list_for_each_entry(map, &buffer->maps, link)
		dma_sync_sgtable_for_cpu(map->dev, &map->sgt, map->dir);
	mutex_unlock(&buffer->maps_lock);
	return 0;
}

int gdmabuf_sg_end_cpu_access_gpu(struct dma_buf *dmabuf, enum dma_data_direction dir)
{
	/* Write-combined stores of the CPU must leave before a device is told to read. */
	wmb();
	return 0;
}

int gdmabuf_sg_end_cpu_access_host(struct dma_buf *dmabuf, enum dma_data_direction dir)
{
	struct gdmabuf_buffer *buffer = dmabuf->priv;
	int err = gdmabuf_sg_check_cpu_access(buffer, dir);
	struct gdmabuf_map *map;

	if (err)
		return err;
	mutex_lock(&buffer->maps_lock);
	list_for_each_entry(map, &buffer->maps, link)
		dma_sync_sgtable_for_device(map->dev, &map->sgt, map->dir);
	mutex_unlock(&buffer->maps_lock);
	return 0;
}
