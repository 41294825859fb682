// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Pins of GPU memory.
 *
 * HOLD, the default: the provider's pin lasts whatever the owner frees, so that dma-bufs stay
 * good even for importers that cannot let go.  It does not tell of the free; a watch on the
 * first page does, a second and small pin, and makes the address stale.
 *
 * REVOCABLE: the watch is the pin.  When it ends, gdmabuf_pin_revoke() has everyone let go.
 */
#include <linux/mm.h>
#include <linux/slab.h>

#include "core.h"

static u64 gpu_page_size(void)
{
	const struct gdmabuf_provider *provider = gdmabuf_provider_get();
	u64 size;

	if (!provider)
		return 0;
	size = provider->page_size;
	gdmabuf_provider_put(provider);
	return size;
}

/* The memory of coherent GPUs is RAM to the kernel: without a reference on its pages, no. */
static int check_pages(const struct gdmabuf_gpu_pages *pages, u64 length)
{
	unsigned int i;
	u64 sum = 0;

	for (i = 0; i < pages->nr_runs; i++) {
		if (pfn_valid(PHYS_PFN(pages->runs[i].start)))
			return -EOPNOTSUPP;
		sum += pages->runs[i].length;
	}
	return sum == length ? 0 : -EIO;
}

static void put_watch(struct gdmabuf_pin *pin)
{
	struct gdmabuf_watch *watch = pin->gpu.watch;

	if (!watch)
		return;
	gdmabuf_watch_detach(watch);
	pin->gpu.provider->unwatch(watch);
	gdmabuf_watch_put(watch);
}

static int get_pages(struct gdmabuf_pin *pin)
{
	const struct gdmabuf_provider *provider = pin->gpu.provider;
	struct gdmabuf_watch *watch = pin->gpu.watch;
	int err;

	if (!watch)
		return provider->pin(pin->address, pin->length, &pin->gpu.pages);
	if (pin->flags & GDMABUF_REVOCABLE)
		return provider->watch(watch, pin->address, pin->length, &pin->gpu.pages);
	/* First the watch: it sees that the address means other memory before that is pinned. */
	err = provider->watch(watch, pin->address, provider->page_size, NULL);
	if (err)
		return err;
	err = provider->pin(pin->address, pin->length, &pin->gpu.pages);
	if (err) {
		gdmabuf_watch_detach(watch);
		provider->unwatch(watch);
	}
	return err;
}

static void put_pages(struct gdmabuf_pin *pin)
{
	put_watch(pin);
	if (!(pin->flags & GDMABUF_REVOCABLE))
		pin->gpu.provider->unpin(&pin->gpu.pages);
}

/* Without one the address is stale from the beginning. */
static int get_watch(struct gdmabuf_pin *pin)
{
	if (pin->flags & GDMABUF_UNWATCHED) {
		gdmabuf_pin_set_stale(pin);
		return 0;
	}
	pin->gpu.watch = gdmabuf_watch_create(pin->gpu.provider, pin);
	return pin->gpu.watch ? 0 : -ENOMEM;
}

static int gpu_pin(struct gdmabuf_pin *pin)
{
	int err;

	if (pin->flags & GDMABUF_UNWATCHED && pin->flags & GDMABUF_REVOCABLE)
		return -EOPNOTSUPP;
	memset(&pin->gpu, 0, sizeof(pin->gpu));
	pin->gpu.provider = gdmabuf_provider_get();
	if (!pin->gpu.provider)
		return -EOPNOTSUPP;
	err = gdmabuf_quota_charge(pin->ctx->uid, pin->length, &pin->gpu.quota);
	if (err)
		goto put_provider;
	err = get_watch(pin);
	if (err)
		goto uncharge;
	err = get_pages(pin);
	if (err)
		goto put_watch;
	err = check_pages(&pin->gpu.pages, pin->length);
	if (err)
		goto put_pages;
	pin->runs = pin->gpu.pages.runs;
	pin->nr_runs = pin->gpu.pages.nr_runs;
	pin->cacheable = pin->gpu.pages.cacheable;
	return 0;

put_pages:
	put_pages(pin);
	kvfree(pin->gpu.pages.runs);
	goto uncharge;
put_watch:
	if (pin->gpu.watch) {
		gdmabuf_watch_detach(pin->gpu.watch);
		gdmabuf_watch_put(pin->gpu.watch);
	}
uncharge:
	gdmabuf_quota_uncharge(pin->gpu.quota, pin->length);
put_provider:
	gdmabuf_provider_put(pin->gpu.provider);
	return err;
}

static void gpu_unpin(struct gdmabuf_pin *pin)
{
	put_pages(pin);
	gdmabuf_quota_uncharge(pin->gpu.quota, pin->length);
	gdmabuf_provider_put(pin->gpu.provider);
}

#define GPU_BUFFER_OPS                                                                          \
	.attach = gdmabuf_attach_gpu, .pin = gdmabuf_attach_pin, .unpin = gdmabuf_attach_unpin, \
	.map_dma_buf = gdmabuf_sg_map_gpu, .unmap_dma_buf = gdmabuf_sg_unmap_gpu,               \
	.end_cpu_access = gdmabuf_sg_end_cpu_access_gpu, .mmap = gdmabuf_buffer_mmap,           \
	.release = gdmabuf_buffer_release

/* An operation that fails makes the dma-buf core warn: what cannot be done has none. */
static const struct dma_buf_ops gpu_ops = { GPU_BUFFER_OPS };
static const struct dma_buf_ops gpu_vmap_ops = {
	GPU_BUFFER_OPS,
	.vmap = gdmabuf_vmap_gpu,
	.vunmap = gdmabuf_vunmap_gpu,
};

static const struct dma_buf_ops *gpu_buffer_ops(const struct gdmabuf_pin *pin, u64 offset,
						u64 length, u32 flags)
{
	if (flags & GDMABUF_REVOCABLE || !gdmabuf_vmap_gpu_works(pin, offset, length))
		return &gpu_ops;
	return &gpu_vmap_ops;
}

const struct gdmabuf_pin_ops gdmabuf_gpu_pin_ops = {
	.kind = GDMABUF_KIND_GPU,
	.flags = GDMABUF_KEEP | GDMABUF_REVOCABLE | GDMABUF_UNWATCHED,
	.page_size = gpu_page_size,
	.pin = gpu_pin,
	.unpin = gpu_unpin,
	.buffer_ops = gpu_buffer_ops,
};
