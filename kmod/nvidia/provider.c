// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Pins GPU memory by nvidia_p2p_get_pages_persistent() of NVIDIA's open driver.  Such a pin lasts
 * until it is put, by any process.  The driver's other interface, nvidia_p2p_get_pages(), takes the
 * pages away when the memory is freed, and no device can let go of a dma-buf at that moment.
 *
 * The token is always 0.  By other tokens a process could ask for the memory of other processes.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/mm.h>
#include <linux/module.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "compat.h"
#include "gdmabuf_provider.h"

/* The driver's page tables have no other page size. */
#define GPU_PAGE_SIZE	SZ_64K

struct pin {
	u64 address;
	struct nvidia_p2p_page_table *table;
};

/* The driver returns -EINVAL for an unknown address, and -ENOMEM for a full BAR. */
static int gdmabuf_nvidia_translate(int err)
{
	switch (err) {
	case -ENOTSUPP:
		return -EOPNOTSUPP;
	case -EINVAL:
		return -EFAULT;
	case -ENOMEM:
		return -ENOSPC;
	case -EINTR:
		return err;
	default:
		return err ? -EIO : 0;
	}
}

static int gdmabuf_nvidia_check_table(const struct nvidia_p2p_page_table *table)
{
	u32 major = NVIDIA_P2P_MAJOR_VERSION(table->version);

	if (!NVIDIA_P2P_PAGE_TABLE_VERSION_COMPATIBLE(table) || (major != 1 && major != 2)) {
		pr_debug("page table of version 0x%08x, not 0x%08x\n", table->version,
			 NVIDIA_P2P_PAGE_TABLE_VERSION);
		return -EIO;
	}
	if (table->page_size != NVIDIA_P2P_PAGE_SIZE_64KB) {
		pr_debug("page table of page size %u, not 64 KiB\n", table->page_size);
		return -EIO;
	}
	return 0;
}

/* The contiguous pages from @i on. */
static struct gdmabuf_run gdmabuf_nvidia_run_at(const struct nvidia_p2p_page_table *table, u32 i)
{
	struct gdmabuf_run run = { table->pages[i]->physical_address, GPU_PAGE_SIZE };

	while (++i < table->entries &&
	       run_extend(&run, table->pages[i]->physical_address, GPU_PAGE_SIZE))
		;
	return run;
}

/* Fills @runs, unless NULL.  Returns the number of runs in the table. */
static unsigned int gdmabuf_nvidia_copy_runs(const struct nvidia_p2p_page_table *table,
					     struct gdmabuf_run *runs)
{
	struct gdmabuf_run run;
	unsigned int nr = 0;
	u32 i;

	for (i = 0; i < table->entries; i += run.length / GPU_PAGE_SIZE) {
		run = gdmabuf_nvidia_run_at(table, i);
		if (runs)
			runs[nr] = run;
		nr++;
	}
	return nr;
}

static int gdmabuf_nvidia_read_table(const struct nvidia_p2p_page_table *table,
				     struct gdmabuf_gpu_pages *pages)
{
	int err = gdmabuf_nvidia_check_table(table);

	if (err)
		return err;
	pages->nr_runs = gdmabuf_nvidia_copy_runs(table, NULL);
	pages->runs = kvmalloc_array(pages->nr_runs, sizeof(*pages->runs), GFP_KERNEL_ACCOUNT);
	if (!pages->runs)
		return -ENOMEM;
	gdmabuf_nvidia_copy_runs(table, pages->runs);
	pages->cacheable = table_is_cacheable(table);
	return 0;
}

static int gdmabuf_nvidia_pin(u64 address, u64 length, struct gdmabuf_gpu_pages *pages)
{
	struct pin *pin = kzalloc(sizeof(*pin), GFP_KERNEL_ACCOUNT);
	int err;

	if (!pin)
		return -ENOMEM;
	pin->address = address;
	err = nvidia_p2p_get_pages_persistent(address, length, &pin->table, 0);
	if (err) {
		kfree(pin);
		return gdmabuf_nvidia_translate(err);
	}
	pages->handle = pin;
	return gdmabuf_nvidia_read_table(pin->table, pages);
}

/* A put starts with an allocation.  All later errors, as for a lost GPU, are permanent. */
static int gdmabuf_nvidia_unpin(void *handle)
{
	struct pin *pin = handle;
	int err = nvidia_p2p_put_pages_persistent(pin->address, pin->table, 0);

	if (err)
		pr_warn_ratelimited("nvidia_p2p_put_pages_persistent: %d, %s\n", err,
				    err == -ENOMEM ? "tried again" : "pages stay pinned");
	if (err != -ENOMEM)
		kfree(pin);
	return err;
}

static const struct gdmabuf_provider provider = {
	.owner = THIS_MODULE,
	.name = "nvidia",
	.page_size = GPU_PAGE_SIZE,
	.pin = gdmabuf_nvidia_pin,
	.unpin = gdmabuf_nvidia_unpin,
};

static int __init gdmabuf_nvidia_provider_init(void)
{
	return gdmabuf_register_provider(&provider);
}

static void __exit gdmabuf_nvidia_provider_exit(void)
{
	gdmabuf_unregister_provider(&provider);
}

module_init(gdmabuf_nvidia_provider_init);
module_exit(gdmabuf_nvidia_provider_exit);
MODULE_DESCRIPTION("gdmabuf: GPU memory of NVIDIA's open driver");
MODULE_LICENSE("Dual MIT/GPL");
MODULE_SOFTDEP("pre: nvidia");
