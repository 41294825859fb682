// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Idle pins of host memory can be neither swapped nor migrated.  When the kernel needs memory, the
 * shrinker gives up the idle pins exported longest ago, context by context.
 *
 * The end of a pin takes locks of allocating threads, on whose behalf the kernel may be looking for
 * memory.  So the shrinker leaves the pins to a work item.  The pins count as freed at once:
 * otherwise the kernel would look for as much memory again.
 */
#include <linux/list.h>
#include <linux/spinlock.h>

#include "compat.h"
#include "core.h"

static struct shrinker *shrinker;
static atomic_long_t kept_pages;
static DEFINE_SPINLOCK(lock);
static LIST_HEAD(found);	/* lock; pins, by lru */

static void gdmabuf_shrinker_give_up(struct work_struct *work)
{
	LIST_HEAD(idle);

	spin_lock(&lock);
	list_splice_init(&found, &idle);
	spin_unlock(&lock);
	gdmabuf_contexts_put_idle(&idle);
}

static DECLARE_WORK(work, gdmabuf_shrinker_give_up);

/* Counts kept pins with buffers, too.  Scanning then finds nothing, and stops. */
static unsigned long gdmabuf_shrinker_count_kept(struct shrinker *shrinker,
						 struct shrink_control *control)
{
	return atomic_long_read(&kept_pages);
}

static unsigned long gdmabuf_shrinker_scan_kept(struct shrinker *shrinker,
						struct shrink_control *control)
{
	LIST_HEAD(idle);
	u64 bytes = gdmabuf_contexts_take_idle(GDMABUF_KIND_HOST,
					       (u64)control->nr_to_scan << PAGE_SHIFT, &idle);

	if (!bytes)
		return SHRINK_STOP;
	spin_lock(&lock);
	list_splice_tail(&idle, &found);
	spin_unlock(&lock);
	queue_work(gdmabuf_wq, &work);
	return bytes >> PAGE_SHIFT;
}

void gdmabuf_shrinker_account(const struct gdmabuf_pin *pin, bool kept)
{
	long pages = pin->length >> PAGE_SHIFT;

	if (pin->ops->kind == GDMABUF_KIND_HOST)
		atomic_long_add(kept ? pages : -pages, &kept_pages);
}

int gdmabuf_shrinker_create(void)
{
	shrinker =
		gdmabuf_shrinker_register(gdmabuf_shrinker_count_kept, gdmabuf_shrinker_scan_kept);
	return shrinker ? 0 : -ENOMEM;
}

void gdmabuf_shrinker_destroy(void)
{
	gdmabuf_shrinker_unregister(shrinker);
	flush_work(&work);
}
