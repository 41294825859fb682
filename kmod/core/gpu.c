// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Pins of GPU memory.
 *
 * A watch is a pin of the provider's that notices when the memory is freed.  A hold is a pin of the
 * provider's that outlives the free.  The flags of an export choose between three combinations:
 *
 * Default: a hold on the whole range, and a watch on the first page.  The hold keeps dma-bufs valid
 * whatever the owner frees, also for importers that cannot let go.  The watch makes the address
 * stale.
 *
 * GDMABUF_REVOCABLE, for CPU mappings only: a watch on the whole range.  When the memory is freed,
 * gdmabuf_pin_revoke() takes the mappings down.
 *
 * GDMABUF_UNWATCHED: a hold on the whole range.  The address is stale from the beginning.
 */
#include <linux/memremap.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "core.h"

static u64 gdmabuf_gpu_page_size(void)
{
	const struct gdmabuf_provider *provider = gdmabuf_provider_get();
	u64 size;

	if (!provider)
		return 0;
	size = provider->page_size;
	gdmabuf_provider_put(provider);
	return size;
}

/* GPU memory is charged to the opener of the context. */
static struct gdmabuf_quota *gdmabuf_gpu_get_quota(struct gdmabuf_context *ctx)
{
	return gdmabuf_quota_get(ctx->quota);
}

/* BAR memory has struct pages if a driver made some for peer-to-peer DMA. */
static bool gdmabuf_gpu_is_ram(phys_addr_t address)
{
	unsigned long pfn = PHYS_PFN(address);

	return pfn_valid(pfn) && !is_pci_p2pdma_page(pfn_to_page(pfn));
}

/* Refuses memory of coherent GPUs: the kernel counts references to such RAM, and pins have none. */
static int gdmabuf_gpu_check_pages(const struct gdmabuf_gpu_pages *pages, u64 length)
{
	unsigned int i;
	u64 sum = 0;

	for (i = 0; i < pages->nr_runs; i++) {
		const struct gdmabuf_run *run = &pages->runs[i];

		if (gdmabuf_gpu_is_ram(run->start) ||
		    gdmabuf_gpu_is_ram(run->start + run->length - 1))
			return -EOPNOTSUPP;
		sum += run->length;
	}
	return sum == length ? 0 : -EIO;
}

static void gdmabuf_gpu_end_watch(struct gdmabuf_pin *pin)
{
	if (pin->gpu.watch)
		gdmabuf_watch_end(pin->gpu.watch);
}

/* The watch starts before the hold, so a free between the two makes the pin stale. */
static int gdmabuf_gpu_start_watch(struct gdmabuf_pin *pin)
{
	struct gdmabuf_watch *watch = pin->gpu.watch;

	if (!watch)
		return 0;
	if (pin->flags & GDMABUF_REVOCABLE)
		return gdmabuf_watch_start(watch, pin->address, pin->length, &pin->gpu.pages);
	return gdmabuf_watch_start(watch, pin->address, pin->gpu.provider->page_size, NULL);
}

/* Without a watch the address is stale from the beginning. */
static int gdmabuf_gpu_create_watch(struct gdmabuf_pin *pin)
{
	bool revocable = pin->flags & GDMABUF_REVOCABLE;
	struct gdmabuf_watch *watch;

	if (pin->flags & GDMABUF_UNWATCHED) {
		gdmabuf_pin_set_stale(pin);
		return 0;
	}
	watch = gdmabuf_watch_create(pin->gpu.provider, pin,
				     revocable ? pin->length : pin->gpu.provider->page_size);
	if (IS_ERR(watch))
		return PTR_ERR(watch);
	pin->gpu.watch = watch;
	return 0;
}

/*
 * A hold, and the charge for its bytes.  Both end together: if the driver has no memory to give the
 * pages back, a work item tries again, and the quota counts the bytes until then.
 */
struct gdmabuf_hold {
	const struct gdmabuf_provider *provider;	/* referenced */
	struct gdmabuf_quota *quota;
	u64 bytes;
	void *handle;
	unsigned long delay; /* before the next attempt of @put */
	struct delayed_work put;
};

#define MAX_DELAY (60 * HZ)

static void gdmabuf_hold_uncharge(struct gdmabuf_hold *hold)
{
	gdmabuf_quota_uncharge(hold->quota, hold->bytes);
	gdmabuf_quota_put(hold->quota);
}

static void gdmabuf_hold_free(struct gdmabuf_hold *hold)
{
	gdmabuf_provider_put(hold->provider);
	kfree(hold);
}

static void gdmabuf_hold_put_later(struct gdmabuf_hold *hold)
{
	hold->delay = clamp(2 * hold->delay, (unsigned long)HZ, (unsigned long)MAX_DELAY);
	queue_delayed_work(gdmabuf_wq, &hold->put, hold->delay);
}

/* The queued work holds the provider's module, which in turn needs this module. */
static void gdmabuf_hold_put(struct work_struct *work)
{
	struct gdmabuf_hold *hold = container_of(work, struct gdmabuf_hold, put.work);

	int err = hold->handle ? hold->provider->unpin(hold->handle) : 0;

	if (err == -ENOMEM) {
		gdmabuf_hold_put_later(hold);
		return;
	}
	/* On a permanent error the driver keeps the pages, and the user stays charged. */
	if (!err)
		gdmabuf_hold_uncharge(hold);
	gdmabuf_hold_free(hold);
}

/* Charges for the hold.  The caller pins. */
static struct gdmabuf_hold *gdmabuf_hold_create(struct gdmabuf_pin *pin)
{
	struct gdmabuf_hold *hold = kzalloc(sizeof(*hold), GFP_KERNEL_ACCOUNT);
	int err;

	if (!hold)
		return ERR_PTR(-ENOMEM);
	err = gdmabuf_quota_charge(pin->quota, pin->length);
	if (err) {
		kfree(hold);
		return ERR_PTR(err);
	}
	hold->provider = pin->gpu.provider;
	__module_get(hold->provider->owner);
	hold->quota = gdmabuf_quota_get(pin->quota);
	hold->bytes = pin->length;
	INIT_DELAYED_WORK(&hold->put, gdmabuf_hold_put);
	return hold;
}

static int gdmabuf_gpu_get_persistent(struct gdmabuf_pin *pin)
{
	struct gdmabuf_hold *hold;
	int err;

	if (pin->flags & GDMABUF_REVOCABLE)
		return 0;
	hold = gdmabuf_hold_create(pin);
	if (IS_ERR(hold))
		return PTR_ERR(hold);
	err = hold->provider->pin(pin->address, pin->length, &pin->gpu.pages);
	hold->handle = pin->gpu.pages.handle;
	if (err)
		gdmabuf_hold_put(&hold->put.work);
	else
		pin->gpu.hold = hold;
	return err;
}

static void gdmabuf_gpu_put_persistent(struct gdmabuf_pin *pin)
{
	if (pin->gpu.hold)
		gdmabuf_hold_put(&pin->gpu.hold->put.work);
}

/* The hold and the watch. */
static u64 gdmabuf_gpu_quota_needed(const struct gdmabuf_pin *pin)
{
	if (pin->flags & (GDMABUF_REVOCABLE | GDMABUF_UNWATCHED))
		return pin->length;
	return pin->length + pin->gpu.provider->page_size;
}

static int gdmabuf_gpu_pin(struct gdmabuf_pin *pin)
{
	int err;

	if (pin->flags & GDMABUF_UNWATCHED && pin->flags & GDMABUF_REVOCABLE)
		return -EOPNOTSUPP;
	memset(&pin->gpu, 0, sizeof(pin->gpu));
	pin->gpu.provider = gdmabuf_provider_get();
	if (!pin->gpu.provider)
		return -EOPNOTSUPP;
	err = gdmabuf_gpu_create_watch(pin);
	if (err)
		goto put_provider;
	err = gdmabuf_gpu_start_watch(pin);
	if (err)
		goto end_watch;
	err = gdmabuf_gpu_get_persistent(pin);
	if (err)
		goto end_watch;
	err = gdmabuf_gpu_check_pages(&pin->gpu.pages, pin->length);
	if (err)
		goto put_persistent;
	pin->runs = pin->gpu.pages.runs;
	pin->nr_runs = pin->gpu.pages.nr_runs;
	pin->cacheable = pin->gpu.pages.cacheable;
	pin->charged = gdmabuf_gpu_quota_needed(pin);
	return 0;

put_persistent:
	gdmabuf_gpu_put_persistent(pin);
	kvfree(pin->gpu.pages.runs);
end_watch:
	gdmabuf_gpu_end_watch(pin);
put_provider:
	if (err == -EDQUOT)
		pin->lacking = gdmabuf_quota_lacks(pin->quota, gdmabuf_gpu_quota_needed(pin));
	gdmabuf_provider_put(pin->gpu.provider);
	return err;
}

static void gdmabuf_gpu_unpin(struct gdmabuf_pin *pin)
{
	gdmabuf_gpu_end_watch(pin);
	gdmabuf_gpu_put_persistent(pin);
	gdmabuf_provider_put(pin->gpu.provider);
}

/* Watched memory, which is all of a revocable pin, is given back by the owner only. */
static u64 gdmabuf_gpu_count_gain(const struct gdmabuf_pin *pin, struct gdmabuf_gain *gain)
{
	if (gdmabuf_owner_is_current(pin->ctx->owner))
		return pin->charged;
	return pin->flags & GDMABUF_REVOCABLE ? 0 : pin->length;
}

static bool gdmabuf_gpu_take_gain(const struct gdmabuf_pin *pin, struct gdmabuf_gain *gain,
				  u64 *freed)
{
	u64 gained = gdmabuf_gpu_count_gain(pin, gain);

	*freed += gained;
	return gained;
}

#define GPU_BUFFER_OPS                                                                          \
	.attach = gdmabuf_attach_gpu, .pin = gdmabuf_attach_pin, .unpin = gdmabuf_attach_unpin, \
	.map_dma_buf = gdmabuf_sg_map_gpu, .unmap_dma_buf = gdmabuf_sg_unmap_gpu,               \
	.end_cpu_access = gdmabuf_sg_end_cpu_access_gpu, .mmap = gdmabuf_buffer_mmap,           \
	.release = gdmabuf_buffer_release

/* The dma-buf core warns if an operation fails, so an impossible operation is left out. */
static const struct dma_buf_ops gpu_ops = { GPU_BUFFER_OPS };
static const struct dma_buf_ops gpu_vmap_ops = {
	GPU_BUFFER_OPS,
	.vmap = gdmabuf_vmap_gpu,
	.vunmap = gdmabuf_vunmap_gpu,
};

static const struct dma_buf_ops *gdmabuf_gpu_buffer_ops(const struct gdmabuf_pin *pin, u64 offset,
							u64 length, u32 flags)
{
	if (flags & GDMABUF_REVOCABLE || !gdmabuf_vmap_gpu_works(pin, offset, length))
		return &gpu_ops;
	return &gpu_vmap_ops;
}

const struct gdmabuf_pin_ops gdmabuf_gpu_pin_ops = {
	.kind = GDMABUF_KIND_GPU,
	.flags = GDMABUF_KEEP | GDMABUF_REVOCABLE | GDMABUF_UNWATCHED,
	.page_size = gdmabuf_gpu_page_size,
	.get_quota = gdmabuf_gpu_get_quota,
	.pin = gdmabuf_gpu_pin,
	.unpin = gdmabuf_gpu_unpin,
	.count_gain = gdmabuf_gpu_count_gain,
	.take_gain = gdmabuf_gpu_take_gain,
	.buffer_ops = gdmabuf_gpu_buffer_ops,
};
