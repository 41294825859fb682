// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Notifiers: how a pin of host memory learns that its address got other pages.
 *
 * A notifier has the pins of one mm_struct whose addresses still mean their pages.  The kernel
 * tells it of each invalidation of a range: when that starts, before page tables change, and when
 * it ends.  Either makes the pins of the range stale, and takes them out of the notifier.
 *
 * A pin is added before its pages are looked up.  So an invalidation that had started before that,
 * and takes these pages away, makes the pin stale when it ends, and an export waits for none.  The
 * price is that an invalidation which was already done with the page tables makes the pin stale,
 * too, though it has the new pages.
 *
 * The end of a pin waits for no invalidation.  mmu_interval_notifier_remove() would wait until no
 * thread of the process was in the midst of one; threads that call madvise() all the time put that
 * off for ever, and it may be another process that closes the last dma-buf.
 */
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "core.h"

/*
 * All contexts of an mm_struct have the same one.  The kernel knows it, and holds the mm_struct,
 * until each of them has called mmu_notifier_put(): when its file is closed and none of its pins is
 * watched.
 */
struct gdmabuf_notifier {
	struct mmu_notifier base;
	struct kref kref;	    /* the kernel's, and contexts' until they are freed */
	spinlock_t lock;	    /* protects pins, what pins have in it, contexts' watchers */
	struct rb_root_cached pins; /* by address */
};

static struct gdmabuf_notifier *notifier_of(struct mmu_notifier *base)
{
	return container_of(base, struct gdmabuf_notifier, base);
}

static void notifier_free(struct kref *kref)
{
	kfree(container_of(kref, struct gdmabuf_notifier, kref));
}

/* The file is closed, or a pin is not watched any more. */
static void notifier_leave_locked(struct gdmabuf_notifier *notifier, struct gdmabuf_context *ctx)
{
	lockdep_assert_held(&notifier->lock);
	if (!--ctx->watchers)
		mmu_notifier_put(&notifier->base);
}

static void notifier_remove_locked(struct gdmabuf_notifier *notifier, struct gdmabuf_pin *pin)
{
	interval_tree_remove(&pin->host.node, &notifier->pins);
	pin->host.watched = false;
	notifier_leave_locked(notifier, pin->ctx);
}

/* Any context. */
static void notifier_set_stale(struct gdmabuf_notifier *notifier, unsigned long first,
			       unsigned long last)
{
	struct interval_tree_node *node;

	spin_lock(&notifier->lock);
	while ((node = interval_tree_iter_first(&notifier->pins, first, last))) {
		struct gdmabuf_pin *pin = container_of(node, struct gdmabuf_pin, host.node);

		notifier_remove_locked(notifier, pin);
		if (gdmabuf_pin_set_stale(pin) && !READ_ONCE(pin->creating))
			gdmabuf_pin_forget(pin);
	}
	spin_unlock(&notifier->lock);
}

static void notifier_invalidate(struct mmu_notifier *base, const struct mmu_notifier_range *range)
{
	/* Rights may change, but not the pages: fork() copies pinned ones for the child. */
	if (range->event == MMU_NOTIFY_PROTECTION_VMA ||
	    range->event == MMU_NOTIFY_PROTECTION_PAGE || range->event == MMU_NOTIFY_SOFT_DIRTY)
		return;
	notifier_set_stale(notifier_of(base), range->start, range->end - 1);
}

static int notifier_start(struct mmu_notifier *base, const struct mmu_notifier_range *range)
{
	notifier_invalidate(base, range);
	return 0;
}

/* The process has ended, or executed another program. */
static void notifier_release(struct mmu_notifier *base, struct mm_struct *mm)
{
	notifier_set_stale(notifier_of(base), 0, ULONG_MAX);
}

static struct mmu_notifier *notifier_alloc(struct mm_struct *mm)
{
	struct gdmabuf_notifier *notifier = kzalloc(sizeof(*notifier), GFP_KERNEL_ACCOUNT);

	if (!notifier)
		return ERR_PTR(-ENOMEM);
	kref_init(&notifier->kref);
	spin_lock_init(&notifier->lock);
	notifier->pins = RB_ROOT_CACHED;
	return &notifier->base;
}

static void notifier_unregistered(struct mmu_notifier *base)
{
	kref_put(&notifier_of(base)->kref, notifier_free);
}

static const struct mmu_notifier_ops notifier_ops = {
	.release = notifier_release,
	.invalidate_range_start = notifier_start,
	.invalidate_range_end = notifier_invalidate,
	.alloc_notifier = notifier_alloc,
	.free_notifier = notifier_unregistered,
};

int gdmabuf_notifier_get(struct gdmabuf_context *ctx)
{
	struct mmu_notifier *base;

	if (READ_ONCE(ctx->notifier))
		return 0;
	base = mmu_notifier_get(&notifier_ops, current->mm);
	/* A signal of any kind: the call is made again after its handler. */
	if (IS_ERR(base))
		return PTR_ERR(base) == -EINTR ? -ERESTARTNOINTR : PTR_ERR(base);
	kref_get(&notifier_of(base)->kref);
	if (!cmpxchg(&ctx->notifier, NULL, notifier_of(base)))
		return 0;
	/* Another thread was first, with the same one. */
	mmu_notifier_put(base);
	kref_put(&notifier_of(base)->kref, notifier_free);
	return 0;
}

void gdmabuf_notifier_leave(struct gdmabuf_context *ctx)
{
	struct gdmabuf_notifier *notifier = ctx->notifier;

	if (!notifier)
		return;
	spin_lock(&notifier->lock);
	notifier_leave_locked(notifier, ctx);
	spin_unlock(&notifier->lock);
}

void gdmabuf_notifier_put(struct gdmabuf_notifier *notifier)
{
	kref_put(&notifier->kref, notifier_free);
}

void gdmabuf_notifier_add(struct gdmabuf_pin *pin)
{
	struct gdmabuf_notifier *notifier = pin->ctx->notifier;

	pin->host.node.start = pin->address;
	pin->host.node.last = pin->address + pin->length - 1;
	spin_lock(&notifier->lock);
	if (test_and_clear_bit(PIN_STALE, &pin->state))
		gdmabuf_slots_live(&pin->ctx->slots, pin->slot, pin->generation);
	interval_tree_insert(&pin->host.node, &notifier->pins);
	pin->host.watched = true;
	pin->ctx->watchers++;
	spin_unlock(&notifier->lock);
}

void gdmabuf_notifier_remove(struct gdmabuf_pin *pin)
{
	struct gdmabuf_notifier *notifier = pin->ctx->notifier;

	spin_lock(&notifier->lock);
	if (pin->host.watched)
		notifier_remove_locked(notifier, pin);
	spin_unlock(&notifier->lock);
}

void gdmabuf_notifiers_exit(void)
{
	mmu_notifier_synchronize();
}
