// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * GPU memory: pinned by a provider until the dma-buf is released, whatever the process frees, and
 * given back by whichever process drops the last reference.
 */
#include <linux/cred.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "core.h"

static struct workqueue_struct *retries; /* of puts */

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

/* BAR memory has struct pages if a driver made some for peer-to-peer DMA. */
static bool gdmabuf_gpu_is_ram(phys_addr_t address)
{
	unsigned long pfn = PHYS_PFN(address);

	return pfn_valid(pfn) && !is_pci_p2pdma_page(pfn_to_page(pfn));
}

/* Refuses memory of coherent GPUs: the kernel counts references to such RAM, and pins have none. */
static int gdmabuf_gpu_check_runs(const struct gdmabuf_buffer *buffer)
{
	unsigned int i;
	u64 sum = 0;

	for (i = 0; i < buffer->nr_runs; i++) {
		const struct gdmabuf_run *run = &buffer->runs[i];

		if (gdmabuf_gpu_is_ram(run->start) ||
		    gdmabuf_gpu_is_ram(run->start + run->length - 1))
			return -EOPNOTSUPP;
		sum += run->length;
	}
	return sum == buffer->length ? 0 : -EIO;
}

/*
 * If the driver has no memory to give the pages back, a work item tries again.  The user is charged
 * until then: for good if the driver refuses, because it keeps the pages.  The work holds the
 * provider's module, which in turn needs this module.
 */
static void gdmabuf_gpu_put(struct work_struct *work)
{
	struct gdmabuf_buffer *buffer = container_of(work, struct gdmabuf_buffer, gpu.put.work);
	int err = buffer->gpu.handle ? buffer->gpu.provider->unpin(buffer->gpu.handle) : 0;

	if (err == -ENOMEM) {
		queue_delayed_work(retries, &buffer->gpu.put, HZ);
		return;
	}
	if (!err)
		gdmabuf_user_uncharge(buffer->gpu.uid, buffer->length);
	gdmabuf_provider_put(buffer->gpu.provider);
	kvfree(buffer->runs);
	kfree(buffer);
}

static int gdmabuf_gpu_pin_pages(struct gdmabuf_buffer *buffer, u64 address)
{
	struct gdmabuf_gpu_pages pages = {};
	int err = buffer->gpu.provider->pin(address, buffer->length, &pages);

	buffer->gpu.handle = pages.handle;
	buffer->runs = pages.runs;
	buffer->nr_runs = pages.nr_runs;
	buffer->cacheable = pages.cacheable;
	return err ? err : gdmabuf_gpu_check_runs(buffer);
}

static int gdmabuf_gpu_pin(struct gdmabuf_buffer *buffer, u64 address)
{
	const struct gdmabuf_provider *provider = gdmabuf_provider_get();
	int err;

	if (!provider)
		return -EOPNOTSUPP;
	buffer->gpu.uid = current_uid();
	err = gdmabuf_user_charge(buffer->gpu.uid, buffer->length);
	if (err) {
		gdmabuf_provider_put(provider);
		return err;
	}
	INIT_DELAYED_WORK(&buffer->gpu.put, gdmabuf_gpu_put);
	buffer->gpu.provider = provider;
	return gdmabuf_gpu_pin_pages(buffer, address);
}

static void gdmabuf_gpu_destroy(struct gdmabuf_buffer *buffer)
{
	if (buffer->gpu.provider)
		gdmabuf_gpu_put(&buffer->gpu.put.work);
	else
		kfree(buffer);
}

#define GPU_OPS                                                                   \
	.attach = gdmabuf_sg_attach_gpu, .map_dma_buf = gdmabuf_sg_map_gpu,       \
	.unmap_dma_buf = gdmabuf_sg_unmap_gpu,                                    \
	.end_cpu_access = gdmabuf_sg_end_cpu_access_gpu, .mmap = gdmabuf_mmap_buffer, \
	.release = gdmabuf_buffer_release

/* The dma-buf core warns if an operation fails, so an impossible operation is left out. */
static const struct dma_buf_ops gpu_ops = { GPU_OPS };
static const struct dma_buf_ops gpu_vmap_ops = {
	GPU_OPS,
	.vmap = gdmabuf_vmap_gpu,
	.vunmap = gdmabuf_vunmap_gpu,
};

static const struct dma_buf_ops *gdmabuf_gpu_dma_buf_ops(const struct gdmabuf_buffer *buffer)
{
	return gdmabuf_vmap_gpu_works(buffer) ? &gpu_vmap_ops : &gpu_ops;
}

const struct gdmabuf_kind gdmabuf_gpu_kind = {
	.name = "gdmabuf-gpu",
	.vm_flags = VM_DONTCOPY,	/* the GPU driver passes no mapping on to children either */
	.page_size = gdmabuf_gpu_page_size,
	.pin = gdmabuf_gpu_pin,
	.destroy = gdmabuf_gpu_destroy,
	.ops = gdmabuf_gpu_dma_buf_ops,
};

int gdmabuf_gpu_init(void)
{
	retries = alloc_workqueue("gdmabuf", WQ_UNBOUND, 0);
	return retries ? 0 : -ENOMEM;
}

/* The work that dropped a provider, and so the last reference to this module, may still run. */
void gdmabuf_gpu_exit(void)
{
	destroy_workqueue(retries);
	gdmabuf_users_exit();
}
