// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * GPU memory of NVIDIA's open driver, by its GPUDirect RDMA interface (nv-p2p.h).
 *
 * A page table belongs to the driver, and is gone when the free callback returned: addresses are
 * copied at once.  Tokens are always 0: with others a process could ask for memory of another's.
 */
#include <linux/kref.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/pid.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "compat.h"
#include "gdmabuf_provider.h"

#undef pr_fmt
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#define NV_PAGE_SIZE SZ_64K

struct nv_pin {
	u64 address;
	struct nvidia_p2p_page_table *table;
};

enum { NV_NEW, NV_LIVE, NV_FREED };

/*
 * What the driver calls back with.  One reference is the watch's, one the driver's: until its
 * callback ran, or cannot run any more.
 */
struct nv_registration {
	struct kref kref;
	atomic_t state;
	struct gdmabuf_watch *watch;
	struct pid *tgid;		/* who alone can put it */
	u64 address;
	struct nvidia_p2p_page_table *table;
};

/* The driver's errno in gdmabuf's words. */
static int translate(int err)
{
	switch (err) {
	case -EINVAL:
		return -EFAULT;		/* no such memory in this process */
	case -ENOMEM:
		return -ENOSPC;		/* of the BAR, first of all */
	case -ENOTSUPP:
		return -EOPNOTSUPP;
	}
	return err;
}

static int check_table(const struct nvidia_p2p_page_table *table, u64 length)
{
	if (!NVIDIA_P2P_PAGE_TABLE_VERSION_COMPATIBLE(table)) {
		pr_debug("page table version %#x, built for %#x\n", table->version,
			 NVIDIA_P2P_PAGE_TABLE_VERSION);
		return -EINVAL;
	}
	if (table->page_size != NVIDIA_P2P_PAGE_SIZE_64KB || table->entries != length / NV_PAGE_SIZE) {
		pr_debug("page size %u, %u entries\n", table->page_size, table->entries);
		return -EINVAL;
	}
	return 0;
}

static bool follows(const struct nvidia_p2p_page_table *table, unsigned int i)
{
	return i && table->pages[i]->physical_address ==
			    table->pages[i - 1]->physical_address + NV_PAGE_SIZE;
}

static int copy_runs(const struct nvidia_p2p_page_table *table, u64 length,
		     struct gdmabuf_gpu_pages *pages)
{
	struct gdmabuf_run *run;
	unsigned int i, nr = 0;
	int err = check_table(table, length);

	if (err)
		return err;
	for (i = 0; i < table->entries; i++)
		nr += !follows(table, i);
	pages->runs = kvmalloc_array(nr, sizeof(*run), GFP_KERNEL_ACCOUNT);
	if (!pages->runs)
		return -ENOMEM;
	run = pages->runs - 1;
	for (i = 0; i < table->entries; i++) {
		if (follows(table, i))
			run->length += NV_PAGE_SIZE;
		else
			*++run = (struct gdmabuf_run){ table->pages[i]->physical_address,
						       NV_PAGE_SIZE };
	}
	pages->nr_runs = nr;
	pages->cacheable = table_is_cacheable(table);
	return 0;
}

static int nv_pin(u64 address, u64 length, struct gdmabuf_gpu_pages *pages)
{
	struct nv_pin *pin = kzalloc(sizeof(*pin), GFP_KERNEL_ACCOUNT);
	int err;

	if (!pin)
		return -ENOMEM;
	pin->address = address;
	err = translate(nvidia_p2p_get_pages_persistent(address, length, &pin->table, 0));
	if (err)
		goto free_pin;
	err = copy_runs(pin->table, length, pages);
	if (err)
		goto put_pages;
	pages->handle = pin;
	return 0;

put_pages:
	nvidia_p2p_put_pages_persistent(address, pin->table, 0);
free_pin:
	kfree(pin);
	return err;
}

static void nv_unpin(struct gdmabuf_gpu_pages *pages)
{
	struct nv_pin *pin = pages->handle;
	int err = nvidia_p2p_put_pages_persistent(pin->address, pin->table, 0);

	if (err)
		pr_warn_ratelimited("the driver did not take pages back: %d\n", err);
	kfree(pin);
}

static void registration_free(struct kref *kref)
{
	struct nv_registration *reg = container_of(kref, struct nv_registration, kref);

	put_pid(reg->tgid);
	kfree(reg);
}

static void registration_put(struct nv_registration *reg)
{
	kref_put(&reg->kref, registration_free);
}

/* The driver's reference, and with it that on the watch. */
static void driver_put(struct nv_registration *reg)
{
	struct gdmabuf_watch *watch = reg->watch;

	registration_put(reg);
	gdmabuf_watch_put(watch);
}

/* With the driver's lock held: neither put_pages nor anything that waits for a GPU. */
static void freed(void *data)
{
	struct nv_registration *reg = data;

	atomic_set(&reg->state, NV_FREED);
	gdmabuf_watch_freed(reg->watch);
	if (reg->table)
		nvidia_p2p_free_page_table(reg->table);
	driver_put(reg);
}

static struct nv_registration *registration_create(struct gdmabuf_watch *watch, u64 address)
{
	struct nv_registration *reg = kzalloc(sizeof(*reg), GFP_KERNEL_ACCOUNT);

	if (!reg)
		return NULL;
	kref_init(&reg->kref);
	kref_get(&reg->kref);
	gdmabuf_watch_get(watch);
	reg->watch = watch;
	reg->tgid = get_pid(task_tgid(current));
	reg->address = address;
	return reg;
}

/* Takes the pages back, unless the callback came first; it runs no more when put_pages returned. */
static void unregister(struct nv_registration *reg)
{
	if (atomic_read(&reg->state) != NV_FREED)
		nvidia_p2p_put_pages(0, 0, reg->address, reg->table);
	if (atomic_read(&reg->state) != NV_FREED)
		driver_put(reg);
}

static int nv_watch(struct gdmabuf_watch *watch, u64 address, u64 length,
		    struct gdmabuf_gpu_pages *pages)
{
	struct nv_registration *reg = registration_create(watch, address);
	int err;

	if (!reg)
		return -ENOMEM;
	err = translate(nvidia_p2p_get_pages(0, 0, address, length, &reg->table, freed, reg));
	if (err) {
		if (atomic_read(&reg->state) != NV_FREED)
			driver_put(reg);
		goto put_registration;
	}
	/* Freed meanwhile: the table is gone. */
	if (atomic_cmpxchg(&reg->state, NV_NEW, NV_LIVE) == NV_FREED) {
		err = -EFAULT;
		goto put_registration;
	}
	err = pages ? copy_runs(reg->table, length, pages) : 0;
	if (err)
		goto unregister;
	watch->handle = reg;
	return 0;

unregister:
	unregister(reg);
put_registration:
	registration_put(reg);
	return err;
}

/*
 * In another process put_pages would return 0 and do nothing: then the driver calls back when the
 * owner ends, and until then has its reference.
 */
static void nv_unwatch(struct gdmabuf_watch *watch)
{
	struct nv_registration *reg = watch->handle;

	if (task_tgid(current) == reg->tgid)
		unregister(reg);
	registration_put(reg);
}

static const struct gdmabuf_provider provider = {
	.owner = THIS_MODULE,
	.name = "nvidia",
	.page_size = NV_PAGE_SIZE,
	.pin = nv_pin,
	.unpin = nv_unpin,
	.watch = nv_watch,
	.unwatch = nv_unwatch,
};

static int __init nv_init(void)
{
	return gdmabuf_register_provider(&provider);
}

static void __exit nv_exit(void)
{
	gdmabuf_unregister_provider(&provider);
	/*
	 * The last reference on this module may have been dropped from freed(), which has still to
	 * return: every task that was there gets to where it sleeps or leaves the kernel.
	 */
	synchronize_rcu_tasks();
}

module_init(nv_init);
module_exit(nv_exit);
MODULE_DESCRIPTION("NVIDIA GPU memory for gdmabuf");
MODULE_LICENSE("Dual MIT/GPL");
MODULE_SOFTDEP("pre: nvidia");
