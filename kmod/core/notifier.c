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
#include <linux/sched.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/wait_bit.h>

#include "core.h"

/*
 * All contexts of an mm_struct have the same one.  The kernel knows it, and holds the mm_struct,
 * until each of them has called mmu_notifier_put(): when its file is closed and none of its pins is
 * watched.
 */
struct gdmabuf_notifier {
	struct mmu_notifier base;
	struct kref kref;	    /* the kernel's, contexts' until they are freed, and forget's */
	spinlock_t lock;	    /* protects the rest, what pins have in it, contexts' watchers */
	struct rb_root_cached pins; /* by address */
	struct list_head stale;	    /* pins that were removed, referenced: for forget */
	struct work_struct forget;
	bool forgetting;	    /* forget will look at the list */
};

/* Notifiers that the kernel calls, or will call the last time: for gdmabuf_notifiers_exit(). */
static atomic_t registered;

static struct gdmabuf_notifier *gdmabuf_notifier_of(struct mmu_notifier *base)
{
	return container_of(base, struct gdmabuf_notifier, base);
}

static void gdmabuf_notifier_free(struct kref *kref)
{
	kfree(container_of(kref, struct gdmabuf_notifier, kref));
}

/* The file is closed, or a pin is not watched any more. */
static void gdmabuf_notifier_leave_locked(struct gdmabuf_notifier *notifier,
					  struct gdmabuf_context *ctx)
{
	lockdep_assert_held(&notifier->lock);
	if (!--ctx->watchers)
		mmu_notifier_put(&notifier->base);
}

static void gdmabuf_notifier_remove_locked(struct gdmabuf_notifier *notifier,
					   struct gdmabuf_pin *pin)
{
	interval_tree_remove(&pin->host.node, &notifier->pins);
	pin->host.watched = false;
	gdmabuf_notifier_leave_locked(notifier, pin->ctx);
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

/* A work item for each notifier: a process with many pins delays nobody else's. */
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

static void gdmabuf_notifier_forget_locked(struct gdmabuf_notifier *notifier,
					   struct gdmabuf_pin *pin)
{
	lockdep_assert_held(&notifier->lock);
	if (!kref_get_unless_zero(&pin->kref))
		return;
	list_add_tail(&pin->host.stale, &notifier->stale);
	if (notifier->forgetting)
		return;
	notifier->forgetting = true;
	kref_get(&notifier->kref);
	queue_work(gdmabuf_wq, &notifier->forget);
}

/* A process may have a million pins on a huge page: others get the processor in between. */
#define STALE_AT_ONCE 32
/* So often; then all at once: other threads may add pins as fast. */
#define STALE_YIELDS 65536

/* True if there may be more. */
static bool gdmabuf_notifier_set_some_stale(struct gdmabuf_notifier *notifier, unsigned long first,
					    unsigned long last, int most)
{
	struct interval_tree_node *node = NULL;
	int i;

	spin_lock(&notifier->lock);
	for (i = 0; i < most; i++) {
		struct gdmabuf_pin *pin;

		node = interval_tree_iter_first(&notifier->pins, first, last);
		if (!node)
			break;
		pin = container_of(node, struct gdmabuf_pin, host.node);
		gdmabuf_notifier_remove_locked(notifier, pin);
		if (gdmabuf_pin_set_stale(pin) && !READ_ONCE(pin->creating))
			gdmabuf_notifier_forget_locked(notifier, pin);
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
	/* Rights may change, but not the pages: fork() copies pinned ones for the child. */
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

/* The process has ended, or executed another program. */
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
	notifier->pins = RB_ROOT_CACHED;
	INIT_LIST_HEAD(&notifier->stale);
	INIT_WORK(&notifier->forget, gdmabuf_notifier_forget);
	atomic_inc(&registered);
	return &notifier->base;
}

/* The kernel calls it no more. */
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
	/* A signal of any kind: the call is made again after its handler. */
	if (IS_ERR(base))
		return PTR_ERR(base) == -EINTR ? -ERESTARTNOINTR : PTR_ERR(base);
	kref_get(&gdmabuf_notifier_of(base)->kref);
	if (!cmpxchg(&ctx->notifier, NULL, gdmabuf_notifier_of(base)))
		return 0;
	/* Another thread was first, with the same one. */
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
		gdmabuf_notifier_remove_locked(notifier, pin);
	spin_unlock(&notifier->lock);
}

/*
 * mmu_notifier_synchronize() waits for those who read the kernel's list of notifiers.  It does not
 * wait for callbacks of mmu_notifier_put() that other CPUs have queued, which is what SRCU does on
 * machines with many CPUs.  Such a callback runs with bottom halves disabled, so a grace period
 * after the last one has woken us, it has left this module.
 */
void gdmabuf_notifiers_exit(void)
{
	wait_var_event(&registered, !atomic_read(&registered));
	synchronize_rcu();
}
