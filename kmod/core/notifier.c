// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Notifiers: how a watch learns of new pages at its address.
 *
 * A notifier has the watches of an mm_struct.  The kernel reports each invalidation of a range
 * twice: at the start, before page tables change, and at the end.  Each report takes the watches of
 * the range out of the notifier, and writes their words.
 *
 * A watch is added before the pages are looked up.  If an invalidation has started before, and
 * takes the pages away, the report of its end is for the watch.  So no watch has to wait for
 * invalidations.  The price: an invalidation may be done with the page tables before the pages are
 * looked up, and is still reported.
 *
 * The removal of a watch waits for no invalidation.  mmu_interval_notifier_remove() would wait
 * until no thread of the process is inside one.  Threads in a loop of madvise() would delay that
 * for ever, and the one that waits may be another process that closes the file.
 */
#include <linux/mm.h>
#include <linux/mmu_notifier.h>
#include <linux/slab.h>
#include <linux/wait_bit.h>

#include "core.h"
#include "slot.h"

/*
 * All contexts of an mm_struct share a notifier.  The kernel counts them, and holds the mm_struct
 * and the notifier until each has called mmu_notifier_put().
 */
struct gdmabuf_notifier {
	struct mmu_notifier base;
	spinlock_t lock;		/* protects watches, nr, and added of the watches */
	struct rb_root_cached watches;	/* by address */
	unsigned int nr;		/* of watches: bounds the time that a report takes */
};

/* Notifiers not yet released by the kernel: for gdmabuf_notifiers_exit(). */
static atomic_t registered;

static struct gdmabuf_notifier *gdmabuf_notifier_of(struct mmu_notifier *base)
{
	return container_of(base, struct gdmabuf_notifier, base);
}

static void gdmabuf_notifier_remove_locked(struct gdmabuf_notifier *notifier,
					   struct gdmabuf_watch *watch)
{
	interval_tree_remove(&watch->node, &notifier->watches);
	notifier->nr--;
	watch->added = false;
}

static void gdmabuf_notifier_set_stale(struct gdmabuf_notifier *notifier, unsigned long first,
				       unsigned long last)
{
	struct interval_tree_node *node;
	struct gdmabuf_watch *watch;

	spin_lock(&notifier->lock);
	while ((node = interval_tree_iter_first(&notifier->watches, first, last))) {
		watch = container_of(node, struct gdmabuf_watch, node);
		gdmabuf_notifier_remove_locked(notifier, watch);
		/* Pairs with the acquire load of user space. */
		smp_store_release(watch->word, slot_word_over(watch->generation));
	}
	spin_unlock(&notifier->lock);
}

static void gdmabuf_notifier_invalidate(struct mmu_notifier *base,
					const struct mmu_notifier_range *range)
{
	/* These events change rights, not pages: fork() copies pinned pages for the child. */
	if (range->event == MMU_NOTIFY_PROTECTION_VMA ||
	    range->event == MMU_NOTIFY_PROTECTION_PAGE || range->event == MMU_NOTIFY_SOFT_DIRTY)
		return;
	gdmabuf_notifier_set_stale(gdmabuf_notifier_of(base), range->start, range->end - 1);
}

static int gdmabuf_notifier_start(struct mmu_notifier *base, const struct mmu_notifier_range *range)
{
	gdmabuf_notifier_invalidate(base, range);
	return 0;
}

/* The process exits, or executes another program. */
static void gdmabuf_notifier_release(struct mmu_notifier *base, struct mm_struct *mm)
{
	gdmabuf_notifier_set_stale(gdmabuf_notifier_of(base), 0, ULONG_MAX);
}

static struct mmu_notifier *gdmabuf_notifier_alloc(struct mm_struct *mm)
{
	struct gdmabuf_notifier *notifier = kzalloc(sizeof(*notifier), GFP_KERNEL_ACCOUNT);

	if (!notifier)
		return ERR_PTR(-ENOMEM);
	spin_lock_init(&notifier->lock);
	notifier->watches = RB_ROOT_CACHED;
	atomic_inc(&registered);
	return &notifier->base;
}

/* The kernel will not call the notifier again. */
static void gdmabuf_notifier_free(struct mmu_notifier *base)
{
	kfree(gdmabuf_notifier_of(base));
	if (atomic_dec_and_test(&registered))
		wake_up_var(&registered);
}

static const struct mmu_notifier_ops notifier_ops = {
	.release = gdmabuf_notifier_release,
	.invalidate_range_start = gdmabuf_notifier_start,
	.invalidate_range_end = gdmabuf_notifier_invalidate,
	.alloc_notifier = gdmabuf_notifier_alloc,
	.free_notifier = gdmabuf_notifier_free,
};

struct gdmabuf_notifier *gdmabuf_notifier_get(void)
{
	struct mmu_notifier *base = mmu_notifier_get(&notifier_ops, current->mm);

	/* Any signal interrupts: the call is restarted after the handler. */
	if (IS_ERR(base))
		return ERR_PTR(PTR_ERR(base) == -EINTR ? -ERESTARTNOINTR : PTR_ERR(base));
	return gdmabuf_notifier_of(base);
}

void gdmabuf_notifier_put(struct gdmabuf_notifier *notifier)
{
	mmu_notifier_put(&notifier->base);
}

int gdmabuf_notifier_add(struct gdmabuf_notifier *notifier, struct gdmabuf_watch *watch)
{
	spin_lock(&notifier->lock);
	watch->added = notifier->nr < GDMABUF_WATCHES;
	if (watch->added) {
		interval_tree_insert(&watch->node, &notifier->watches);
		notifier->nr++;
	}
	spin_unlock(&notifier->lock);
	return watch->added ? 0 : -EDQUOT;
}

void gdmabuf_notifier_remove(struct gdmabuf_notifier *notifier, struct gdmabuf_watch *watch)
{
	spin_lock(&notifier->lock);
	if (watch->added)
		gdmabuf_notifier_remove_locked(notifier, watch);
	spin_unlock(&notifier->lock);
}

/*
 * mmu_notifier_synchronize() waits for readers of the kernel's list of notifiers.  On machines with
 * many CPUs, SRCU queues the callbacks of mmu_notifier_put() on other CPUs, and
 * mmu_notifier_synchronize() does not wait for such callbacks.  A callback runs with bottom halves
 * disabled.  So a grace period after the wake-up by the last callback, no callback is inside the
 * module.
 */
void gdmabuf_notifiers_exit(void)
{
	wait_var_event(&registered, !atomic_read(&registered));
	synchronize_rcu();
}
