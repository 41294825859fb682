// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Notifiers: how a pin or a watch of host memory learns of new pages at the address.
 *
 * A notice is a range with a function to call when the address gets other pages.  A pin of host
 * memory has a notice, and so has a watch of host memory.  A notifier has the notices of an
 * mm_struct.  The kernel reports each invalidation of a range twice: at the start, before page
 * tables change, and at the end.  Each report takes the notices of the range out of the notifier,
 * and calls their functions.
 *
 * A notice is added before the pages are looked up.  If an invalidation has started before, and
 * takes the pages away, the report of the end is for the notice.  So no export has to wait for
 * invalidations.  The price: an invalidation may be done with the page tables before the pages are
 * looked up, and is still reported.
 *
 * The removal of a notice waits for no invalidation.  mmu_interval_notifier_remove() would wait
 * until no thread of the process is inside an invalidation.  Threads in a loop of madvise() would
 * delay such a removal for ever, and the waiting process, which closes the last dma-buf, may be a
 * different process.
 */
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/wait_bit.h>

#include "core.h"

/*
 * All contexts of an mm_struct share a notifier.  The kernel knows the notifier, and the notifier
 * holds the mm_struct, until every context has called mmu_notifier_put(): when the context's file
 * is closed and the notifier has no notice of the context.
 */
struct gdmabuf_notifier {
	struct mmu_notifier base;
	struct kref kref;	    /* refs: kernel, contexts until freed, forget */
	spinlock_t lock;	    /* protects the rest, notices, watchers of contexts */
	struct rb_root_cached notices; /* by address */
	struct list_head stale;	    /* stale pins, referenced, for forget */
	struct work_struct forget;
	bool forgetting;	    /* forget will look at stale */
};

/* Notifiers not yet released by the kernel: for gdmabuf_notifiers_exit(). */
static atomic_t registered;

static struct gdmabuf_notifier *gdmabuf_notifier_of(struct mmu_notifier *base)
{
	return container_of(base, struct gdmabuf_notifier, base);
}

static void gdmabuf_notifier_free(struct kref *kref)
{
	kfree(container_of(kref, struct gdmabuf_notifier, kref));
}

/* The context's file is closed, or a notice was taken out. */
static void gdmabuf_notifier_leave_locked(struct gdmabuf_notifier *notifier,
					  struct gdmabuf_context *ctx)
{
	lockdep_assert_held(&notifier->lock);
	if (!--ctx->watchers)
		mmu_notifier_put(&notifier->base);
}

static void gdmabuf_notifier_remove_locked(struct gdmabuf_notifier *notifier,
					   struct gdmabuf_notice *notice)
{
	interval_tree_remove(&notice->node, &notifier->notices);
	notice->added = false;
	gdmabuf_notifier_leave_locked(notifier, notice->ctx);
}

static struct gdmabuf_pin *gdmabuf_notifier_take_stale(struct gdmabuf_notifier *notifier)
{
	struct gdmabuf_pin *pin;

	spin_lock(&notifier->lock);
	pin = list_first_entry_or_null(&notifier->stale, struct gdmabuf_pin, host.stale);
	if (pin)
		list_del(&pin->host.stale);
	else
		notifier->forgetting = false;
	spin_unlock(&notifier->lock);
	return pin;
}

/* Each notifier has a work item, so a process with many pins delays no other process. */
static void gdmabuf_notifier_forget(struct work_struct *work)
{
	struct gdmabuf_notifier *notifier = container_of(work, struct gdmabuf_notifier, forget);
	struct gdmabuf_pin *pin;

	while ((pin = gdmabuf_notifier_take_stale(notifier))) {
		gdmabuf_pin_forget(pin);
		cond_resched();
	}
	kref_put(&notifier->kref, gdmabuf_notifier_free);
}

void gdmabuf_notifier_forget_locked(struct gdmabuf_pin *pin)
{
	struct gdmabuf_notifier *notifier = pin->ctx->notifier;

	lockdep_assert_held(&notifier->lock);
	if (!kref_get_unless_zero(&pin->kref))
		return;
	gdmabuf_pin_goes(pin);
	list_add_tail(&pin->host.stale, &notifier->stale);
	if (notifier->forgetting)
		return;
	notifier->forgetting = true;
	kref_get(&notifier->kref);
	queue_work(gdmabuf_wq, &notifier->forget);
}

/* A huge page may have a million notices of a process: the processor is given up after so many. */
#define STALE_AT_ONCE 32
/* After so many rounds all notices are taken at once: other threads may add notices as fast. */
#define STALE_YIELDS 65536

/* True if more notices may be left. */
static bool gdmabuf_notifier_set_some_stale(struct gdmabuf_notifier *notifier, unsigned long first,
					    unsigned long last, int most)
{
	struct interval_tree_node *node = NULL;
	int i;

	spin_lock(&notifier->lock);
	for (i = 0; i < most; i++) {
		struct gdmabuf_notice *notice;

		node = interval_tree_iter_first(&notifier->notices, first, last);
		if (!node)
			break;
		notice = container_of(node, struct gdmabuf_notice, node);
		gdmabuf_notifier_remove_locked(notifier, notice);
		notice->stale_locked(notice);
	}
	spin_unlock(&notifier->lock);
	return node;
}

static void gdmabuf_notifier_set_stale(struct gdmabuf_notifier *notifier, unsigned long first,
				       unsigned long last, bool may_sleep)
{
	int i;

	for (i = 0; gdmabuf_notifier_set_some_stale(notifier, first, last,
						    i < STALE_YIELDS ? STALE_AT_ONCE : INT_MAX);
	     i++)
		if (may_sleep)
			cond_resched();
}

static void gdmabuf_notifier_invalidate(struct mmu_notifier *base,
					const struct mmu_notifier_range *range)
{
	/* These events change rights, not pages: fork() copies pinned pages for the child. */
	if (range->event == MMU_NOTIFY_PROTECTION_VMA ||
	    range->event == MMU_NOTIFY_PROTECTION_PAGE || range->event == MMU_NOTIFY_SOFT_DIRTY)
		return;
	gdmabuf_notifier_set_stale(gdmabuf_notifier_of(base), range->start, range->end - 1,
				   mmu_notifier_range_blockable(range));
}

static int gdmabuf_notifier_start(struct mmu_notifier *base, const struct mmu_notifier_range *range)
{
	gdmabuf_notifier_invalidate(base, range);
	return 0;
}

/* The process exits, or executes another program. */
static void gdmabuf_notifier_release(struct mmu_notifier *base, struct mm_struct *mm)
{
	gdmabuf_notifier_set_stale(gdmabuf_notifier_of(base), 0, ULONG_MAX, true);
}

static struct mmu_notifier *gdmabuf_notifier_alloc(struct mm_struct *mm)
{
	struct gdmabuf_notifier *notifier = kzalloc(sizeof(*notifier), GFP_KERNEL_ACCOUNT);

	if (!notifier)
		return ERR_PTR(-ENOMEM);
	kref_init(&notifier->kref);
	spin_lock_init(&notifier->lock);
	notifier->notices = RB_ROOT_CACHED;
	INIT_LIST_HEAD(&notifier->stale);
	INIT_WORK(&notifier->forget, gdmabuf_notifier_forget);
	atomic_inc(&registered);
	return &notifier->base;
}

/* The kernel will not call the notifier again. */
static void gdmabuf_notifier_unregistered(struct mmu_notifier *base)
{
	kref_put(&gdmabuf_notifier_of(base)->kref, gdmabuf_notifier_free);
	if (atomic_dec_and_test(&registered))
		wake_up_var(&registered);
}

static const struct mmu_notifier_ops notifier_ops = {
	.release = gdmabuf_notifier_release,
	.invalidate_range_start = gdmabuf_notifier_start,
	.invalidate_range_end = gdmabuf_notifier_invalidate,
	.alloc_notifier = gdmabuf_notifier_alloc,
	.free_notifier = gdmabuf_notifier_unregistered,
};

int gdmabuf_notifier_get(struct gdmabuf_context *ctx)
{
	struct mmu_notifier *base;

	if (READ_ONCE(ctx->notifier))
		return 0;
	base = mmu_notifier_get(&notifier_ops, current->mm);
	/* Any signal interrupts: the call is restarted after the handler. */
	if (IS_ERR(base))
		return PTR_ERR(base) == -EINTR ? -ERESTARTNOINTR : PTR_ERR(base);
	kref_get(&gdmabuf_notifier_of(base)->kref);
	if (!cmpxchg(&ctx->notifier, NULL, gdmabuf_notifier_of(base)))
		return 0;
	/* A second thread has set the notifier meanwhile. */
	mmu_notifier_put(base);
	kref_put(&gdmabuf_notifier_of(base)->kref, gdmabuf_notifier_free);
	return 0;
}

void gdmabuf_notifier_leave(struct gdmabuf_context *ctx)
{
	struct gdmabuf_notifier *notifier = ctx->notifier;

	if (!notifier)
		return;
	spin_lock(&notifier->lock);
	gdmabuf_notifier_leave_locked(notifier, ctx);
	spin_unlock(&notifier->lock);
}

void gdmabuf_notifier_put(struct gdmabuf_notifier *notifier)
{
	kref_put(&notifier->kref, gdmabuf_notifier_free);
}

int gdmabuf_notifier_add(struct gdmabuf_notice *notice, u64 address, u64 length)
{
	struct gdmabuf_notifier *notifier = notice->ctx->notifier;

	/* An address with a tag, as of arm64, would never be reported. */
	if (address >= TASK_SIZE || length > TASK_SIZE - address)
		return -EFAULT;
	notice->node.start = address;
	notice->node.last = address + length - 1;
	spin_lock(&notifier->lock);
	interval_tree_insert(&notice->node, &notifier->notices);
	notice->added = true;
	notice->ctx->watchers++;
	spin_unlock(&notifier->lock);
	return 0;
}

void gdmabuf_notifier_remove(struct gdmabuf_notice *notice)
{
	struct gdmabuf_notifier *notifier = notice->ctx->notifier;

	spin_lock(&notifier->lock);
	if (notice->added)
		gdmabuf_notifier_remove_locked(notifier, notice);
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
