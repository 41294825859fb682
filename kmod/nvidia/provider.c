// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Pins GPU memory by the functions nvidia_p2p_*() of NVIDIA's open driver.
 *
 * A persistent pin lasts until put, by any process.  A non-persistent pin ends when the memory is
 * freed: the driver calls back with its lock held, and frees the page table when the callback
 * returns.  Only the process that got a non-persistent pin can put the pin.  In any other process,
 * put returns 0 and does nothing, and the callback is still to come: at the owner's exit at the
 * latest.
 *
 * Tokens are always 0.  By other tokens a process could ask for the memory of other processes.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/kref.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/sched/mm.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "compat.h"
#include "gdmabuf_provider.h"

/* The driver's page tables have no other page size. */
#define GPU_PAGE_SIZE	SZ_64K

/* A persistent pin. */
struct pin {
	u64 address;
	struct nvidia_p2p_page_table *table;
};

enum registration_state {
	NEW,	/* watch() has not seen the table yet */
	LIVE,	/* has a reference to @watch, which holds this module */
	LOST,	/* watch() and the put failed; has a reference to this module */
	DEAD,	/* the callback came, and @table is freed */
};

/*
 * A non-persistent pin.  The references are watch->handle, and the driver's until the callback has
 * returned or the pages were put.
 * @lock: protects @state.  Held while the callback tells the core: any other holder knows that the
 *	callback is over, or has not begun.  Taken under the driver's lock, so nothing may be
 *	allocated with @lock held; see gdmabuf_nvidia_registration_create().
 */
struct registration {
	struct kref kref;
	struct mutex lock;		/* see above */
	enum registration_state state;
	struct gdmabuf_watch *watch;
	u64 address;
	struct nvidia_p2p_page_table *table;
};

/*
 * The driver finds a pin of a process only by the address of the page table.  Between the check
 * that a table still exists and the put, no new table may get the address.  The driver's lock is
 * taken under table_lock.
 *
 * Other modules that pin memory of the same process, such as gdrdrv and nvidia-peermem, do not take
 * table_lock.  So a put may end their pin, if three things coincide: the memory is freed after the
 * check, the other module pins before the driver takes its lock for the put, and the new table is
 * at the old address.  The driver has no call to rule this out, and all users of the driver have
 * the gap, with each other and with gdmabuf.
 */
static DEFINE_MUTEX(table_lock);

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
	default:
		return err;
	}
}

static int gdmabuf_nvidia_check_table(const struct nvidia_p2p_page_table *table)
{
	u32 major = NVIDIA_P2P_MAJOR_VERSION(table->version);

	if (!NVIDIA_P2P_PAGE_TABLE_VERSION_COMPATIBLE(table) || (major != 1 && major != 2)) {
		pr_debug("page table of version 0x%08x, not 0x%08x\n", table->version,
			 NVIDIA_P2P_PAGE_TABLE_VERSION);
		return -EINVAL;
	}
	if (table->page_size != NVIDIA_P2P_PAGE_SIZE_64KB) {
		pr_debug("page table of page size %u, not 64 KiB\n", table->page_size);
		return -EINVAL;
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

/* Copies up to @room runs.  Returns the number of runs in the table. */
static unsigned int gdmabuf_nvidia_copy_runs(const struct nvidia_p2p_page_table *table,
					     struct gdmabuf_run *runs, unsigned int room)
{
	struct gdmabuf_run run;
	unsigned int nr = 0;
	u32 i;

	for (i = 0; i < table->entries; i += run.length / GPU_PAGE_SIZE) {
		run = gdmabuf_nvidia_run_at(table, i);
		if (nr < room)
			runs[nr] = run;
		nr++;
	}
	return nr;
}

/*
 * Most tables have a single run.  -E2BIG: the table has @pages->nr_runs, more than @room; the
 * caller makes room with no lock held, and tries again.
 */
static int gdmabuf_nvidia_read_table(const struct nvidia_p2p_page_table *table,
				     struct gdmabuf_gpu_pages *pages, unsigned int room)
{
	int err = gdmabuf_nvidia_check_table(table);

	if (err || !pages)
		return err;
	pages->nr_runs = gdmabuf_nvidia_copy_runs(table, pages->runs, room);
	pages->cacheable = table_is_cacheable(table);
	return pages->nr_runs <= room ? 0 : -E2BIG;
}

static int gdmabuf_nvidia_make_room(struct gdmabuf_gpu_pages *pages, unsigned int room)
{
	pages->runs = kvmalloc_array(room, sizeof(*pages->runs), GFP_KERNEL_ACCOUNT);
	return pages->runs ? 0 : -ENOMEM;
}

static void gdmabuf_nvidia_drop_room(struct gdmabuf_gpu_pages *pages)
{
	kvfree(pages->runs);
	pages->runs = NULL;
}

/*
 * @read: calls gdmabuf_nvidia_read_table() for the table of @from; 0 or -errno.  Fills in *@pages
 *	unless NULL.
 */
static int gdmabuf_nvidia_read_pages(int (*read)(void *from, struct gdmabuf_gpu_pages *pages,
						 unsigned int room),
				     void *from, struct gdmabuf_gpu_pages *pages)
{
	unsigned int room = 1;
	int err;

	if (!pages)
		return read(from, NULL, 0);
	for (;;) {
		err = gdmabuf_nvidia_make_room(pages, room);
		if (err)
			return err;
		err = read(from, pages, room);
		if (!err)
			return 0;
		room = pages->nr_runs;
		gdmabuf_nvidia_drop_room(pages);
		if (err != -E2BIG)
			return err;
	}
}

static int gdmabuf_nvidia_pin_read(void *from, struct gdmabuf_gpu_pages *pages, unsigned int room)
{
	const struct pin *pin = from;

	return gdmabuf_nvidia_read_table(pin->table, pages, room);
}

static int gdmabuf_nvidia_pin(u64 address, u64 length, struct gdmabuf_gpu_pages *pages)
{
	struct pin *pin = kzalloc(sizeof(*pin), GFP_KERNEL_ACCOUNT);
	int err;

	pages->handle = NULL;
	if (!pin)
		return -ENOMEM;
	pin->address = address;
	err = nvidia_p2p_get_pages_persistent(address, length, &pin->table, 0);
	if (err) {
		kfree(pin);
		return gdmabuf_nvidia_translate(err);
	}
	pages->handle = pin;
	return gdmabuf_nvidia_read_pages(gdmabuf_nvidia_pin_read, pin, pages);
}

/* A put starts with an allocation.  All later errors, as for a lost GPU, are permanent. */
static const char *gdmabuf_nvidia_after_put(int err)
{
	return err == -ENOMEM ? "tried again" : "pages stay pinned";
}

static int gdmabuf_nvidia_unpin(void *handle)
{
	struct pin *pin = handle;
	int err = nvidia_p2p_put_pages_persistent(pin->address, pin->table, 0);

	if (err)
		pr_warn_ratelimited("nvidia_p2p_put_pages_persistent: %d, %s\n", err,
				    gdmabuf_nvidia_after_put(err));
	if (err != -ENOMEM)
		kfree(pin);
	return err;
}

static struct registration *gdmabuf_nvidia_registration_create(struct gdmabuf_watch *watch,
							       u64 address)
{
	struct registration *reg = kzalloc(sizeof(*reg), GFP_KERNEL_ACCOUNT);

	if (!reg)
		return NULL;
	kref_init(&reg->kref);
	mutex_init(&reg->lock);
	reg->watch = watch;
	reg->address = address;
	/* Teaches lockdep: no thread may allocate while holding a lock of the callback. */
	fs_reclaim_acquire(GFP_KERNEL);
	might_lock(&reg->lock);
	fs_reclaim_release(GFP_KERNEL);
	return reg;
}

static void gdmabuf_nvidia_registration_free(struct kref *kref)
{
	kfree(container_of(kref, struct registration, kref));
}

static void gdmabuf_nvidia_registration_put(struct registration *reg)
{
	kref_put(&reg->kref, gdmabuf_nvidia_registration_free);
}

/* Waits for a callback that is telling the core. */
static enum registration_state gdmabuf_nvidia_registration_state(struct registration *reg)
{
	enum registration_state state;

	mutex_lock(&reg->lock);
	state = reg->state;
	mutex_unlock(&reg->lock);
	return state;
}

/*
 * The driver's callback, called with the driver's lock held: may call the driver for the table
 * only.  Once the core's watch is put, this module may have no reference left; see
 * gdmabuf_nvidia_provider_exit().
 */
static void gdmabuf_nvidia_registration_freed(void *data)
{
	struct registration *reg = data;
	struct gdmabuf_watch *watch = NULL;
	bool lost;

	mutex_lock(&reg->lock);
	lost = reg->state == LOST;
	if (reg->state == LIVE) {
		watch = reg->watch;
		gdmabuf_watch_freed(watch);
	}
	reg->state = DEAD;
	mutex_unlock(&reg->lock);
	nvidia_p2p_free_page_table(reg->table);
	gdmabuf_nvidia_registration_put(reg);
	if (watch)
		gdmabuf_watch_put(watch);
	if (lost)
		module_put(THIS_MODULE);
}

static int gdmabuf_nvidia_registration_get_pages(struct registration *reg, u64 length)
{
	int err;

	kref_get(&reg->kref);
	mutex_lock(&table_lock);
	err = nvidia_p2p_get_pages(0, 0, reg->address, length, &reg->table,
				   gdmabuf_nvidia_registration_freed, reg);
	mutex_unlock(&table_lock);
	if (err)
		gdmabuf_nvidia_registration_put(reg);
	return gdmabuf_nvidia_translate(err);
}

static int gdmabuf_nvidia_registration_read(void *from, struct gdmabuf_gpu_pages *pages,
					    unsigned int room)
{
	struct registration *reg = from;
	int err = -EFAULT;

	mutex_lock(&reg->lock);
	if (reg->state == NEW)
		err = gdmabuf_nvidia_read_table(reg->table, pages, room);
	if (!err) {
		gdmabuf_watch_get(reg->watch);
		reg->watch->handle = reg;
		reg->state = LIVE;
	}
	mutex_unlock(&reg->lock);
	return err;
}

/* The callback waits while the table is read.  If the callback came before, no table is left. */
static int gdmabuf_nvidia_registration_start(struct registration *reg,
					     struct gdmabuf_gpu_pages *pages)
{
	return gdmabuf_nvidia_read_pages(gdmabuf_nvidia_registration_read, reg, pages);
}

/*
 * @ended: false if the callback came, and is over; true if the callback will not come.  A put takes
 *	the driver's lock, so a callback that had begun is over afterwards.
 */
static int gdmabuf_nvidia_put_table_locked(struct registration *reg, bool *ended)
{
	int err;

	lockdep_assert_held(&table_lock);
	*ended = false;
	if (gdmabuf_nvidia_registration_state(reg) == DEAD)
		return 0;
	err = nvidia_p2p_put_pages(0, 0, reg->address, reg->table);
	if (err)
		pr_warn_ratelimited("nvidia_p2p_put_pages: %d, %s\n", err,
				    gdmabuf_nvidia_after_put(err));
	else
		*ended = gdmabuf_nvidia_registration_state(reg) != DEAD;
	return err;
}

/*
 * Called by the owner, or once the callback has begun.  Unless the callback does so, drops the
 * driver's reference, and the registration's reference to the watch.  On error the callback is
 * still to come.
 */
static int gdmabuf_nvidia_registration_end(struct registration *reg)
{
	bool ended;
	int err;

	mutex_lock(&table_lock);
	err = gdmabuf_nvidia_put_table_locked(reg, &ended);
	mutex_unlock(&table_lock);
	if (err || !ended)
		return err;
	if (reg->state == LIVE)
		gdmabuf_watch_put(reg->watch);
	gdmabuf_nvidia_registration_put(reg);
	return 0;
}

/* The callback is still to come, although the core no longer holds this module. */
static void gdmabuf_nvidia_registration_lose(struct registration *reg)
{
	mutex_lock(&reg->lock);
	if (reg->state == NEW) {
		__module_get(THIS_MODULE);
		reg->state = LOST;
	}
	mutex_unlock(&reg->lock);
}

static int gdmabuf_nvidia_watch(struct gdmabuf_watch *watch, u64 address, u64 length,
				struct gdmabuf_gpu_pages *pages)
{
	struct registration *reg = gdmabuf_nvidia_registration_create(watch, address);
	int err;

	if (!reg)
		return -ENOMEM;
	err = gdmabuf_nvidia_registration_get_pages(reg, length);
	if (err)
		goto put;
	err = gdmabuf_nvidia_registration_start(reg, pages);
	if (!err)
		return 0;
	if (gdmabuf_nvidia_registration_end(reg))
		gdmabuf_nvidia_registration_lose(reg);
put:
	gdmabuf_nvidia_registration_put(reg);
	return err;
}

static int gdmabuf_nvidia_unwatch(struct gdmabuf_watch *watch)
{
	struct registration *reg = watch->handle;
	int err = gdmabuf_nvidia_registration_end(reg);

	if (err != -ENOMEM)
		gdmabuf_nvidia_registration_put(reg);
	return err;
}

static const struct gdmabuf_provider provider = {
	.owner = THIS_MODULE,
	.name = "nvidia",
	.page_size = GPU_PAGE_SIZE,
	.pin = gdmabuf_nvidia_pin,
	.unpin = gdmabuf_nvidia_unpin,
	.watch = gdmabuf_nvidia_watch,
	.unwatch = gdmabuf_nvidia_unwatch,
};

static int __init gdmabuf_nvidia_provider_init(void)
{
	return gdmabuf_register_provider(&provider);
}

static void __exit gdmabuf_nvidia_provider_exit(void)
{
	gdmabuf_unregister_provider(&provider);
	/*
	 * A callback may have dropped the last reference to this module just now, and not have
	 * returned.  The callback does not sleep in between, and synchronize_rcu_tasks() waits
	 * until every task has slept once.
	 */
	synchronize_rcu_tasks();
}

module_init(gdmabuf_nvidia_provider_init);
module_exit(gdmabuf_nvidia_provider_exit);
MODULE_DESCRIPTION("gdmabuf: GPU memory of NVIDIA's open driver");
MODULE_LICENSE("Dual MIT/GPL");
MODULE_SOFTDEP("pre: nvidia");
