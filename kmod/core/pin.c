// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Pins: finding, making, keeping, giving up and revoking.  Only gpu.c and host.c know the kinds of
 * memory.
 */
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "core.h"

/* Ended pins, of all users. */
static atomic_long_t ended;

/* References are taken with ctx->lock held, so a kept pin with a single reference is idle. */
bool gdmabuf_pin_is_idle_locked(const struct gdmabuf_pin *pin)
{
	return pin->kept && kref_read(&pin->kref) == 1;
}

/* Returns the former value. */
static bool gdmabuf_pin_set_kept_locked(struct gdmabuf_pin *pin, bool kept)
{
	bool was = pin->kept;

	lockdep_assert_held(&pin->ctx->lock);
	pin->kept = kept;
	if (kept != was)
		gdmabuf_shrinker_account(pin, kept);
	return was;
}

bool gdmabuf_pin_unlist_locked(struct gdmabuf_pin *pin)
{
	bool kept = gdmabuf_pin_set_kept_locked(pin, false);

	if (pin->listed) {
		interval_tree_remove(&pin->node, &pin->ctx->tree);
		list_del_init(&pin->lru);
		pin->listed = false;
	}
	return kept;
}

/*
 * The caller's dma-buf holds the pin.  A stale pin is not kept, because no other export can use the
 * pin.
 */
void gdmabuf_pin_exported(struct gdmabuf_pin *pin, bool keep, bool hit)
{
	count(pin->ctx, exports);
	if (hit)
		count(pin->ctx, hits);
	if (!keep)
		return;
	mutex_lock(&pin->ctx->lock);
	if (pin->listed && !gdmabuf_pin_set_kept_locked(pin, true))
		kref_get(&pin->kref);
	mutex_unlock(&pin->ctx->lock);
}

/* Adds @n, 1 or -1, to the counters of current pins. */
static void gdmabuf_pin_count_pin(const struct gdmabuf_pin *pin, int n)
{
	unsigned int kind = gdmabuf_kind_index(pin->ops->kind);

	count_add(pin->ctx, pins[kind], n);
	count_add(pin->ctx, bytes[kind], n * (s64)pin->length);
}

static void gdmabuf_pin_destroy(struct gdmabuf_pin *pin)
{
	struct gdmabuf_context *ctx = pin->ctx;

	pin->ops->unpin(pin);
	atomic_long_inc(&ended);
	if (!test_bit(PIN_REVOKED, &pin->state))
		gdmabuf_pin_count_pin(pin, -1);
	gdmabuf_slots_put(&ctx->slots, pin->slot);
	kvfree(pin->runs);
	gdmabuf_quota_put(pin->quota);
	kfree(pin);
	gdmabuf_context_put(ctx);
}

static void gdmabuf_pin_last_put(struct kref *kref)
{
	struct gdmabuf_pin *pin = container_of(kref, struct gdmabuf_pin, kref);

	gdmabuf_pin_unlist_locked(pin);
	if (pin->ctx->by_slot)
		pin->ctx->by_slot[pin->slot] = NULL;
	mutex_unlock(&pin->ctx->lock);
	gdmabuf_pin_destroy(pin);
}

void gdmabuf_pin_put(struct gdmabuf_pin *pin)
{
	kref_put_mutex(&pin->kref, gdmabuf_pin_last_put, &pin->ctx->lock);
}

bool gdmabuf_pin_drop(struct gdmabuf_pin *pin)
{
	bool kept;

	mutex_lock(&pin->ctx->lock);
	kept = gdmabuf_pin_set_kept_locked(pin, false);
	mutex_unlock(&pin->ctx->lock);
	if (kept)
		gdmabuf_pin_put(pin);
	return atomic_read(&pin->buffers) > 0;
}

void gdmabuf_pin_goes(struct gdmabuf_pin *pin)
{
	gdmabuf_quota_goes(pin->quota, pin->ops->kind);
}

void gdmabuf_pin_put_going(struct gdmabuf_pin *pin)
{
	struct gdmabuf_quota *quota = pin->quota;
	u32 kind = pin->ops->kind;

	gdmabuf_pin_put(pin);
	gdmabuf_quota_gone(quota, kind);
}

void gdmabuf_pin_forget(struct gdmabuf_pin *pin)
{
	bool kept;

	mutex_lock(&pin->ctx->lock);
	kept = gdmabuf_pin_unlist_locked(pin);
	mutex_unlock(&pin->ctx->lock);
	if (kept)
		gdmabuf_pin_put(pin);
	gdmabuf_pin_put_going(pin);
}

static void gdmabuf_pin_forget_work(struct work_struct *work)
{
	gdmabuf_pin_forget(container_of(work, struct gdmabuf_pin, forget));
}

bool gdmabuf_pin_set_stale(struct gdmabuf_pin *pin)
{
	if (test_and_set_bit(PIN_STALE, &pin->state))
		return false;
	gdmabuf_slots_stale(&pin->ctx->slots, pin->slot, pin->generation);
	if (!READ_ONCE(pin->creating))
		count(pin->ctx, stale);
	return true;
}

/* Revoked mappings no longer slow a free down, so nothing counts against the limit. */
static void gdmabuf_pin_uncharge_mappings_locked(struct gdmabuf_pin *pin)
{
	enum gdmabuf_mapper mapper;

	for (mapper = GDMABUF_MAPPER_USER; mapper <= GDMABUF_MAPPER_OTHER; mapper++) {
		gdmabuf_quota_add_mapping(pin->quota, mapper, -(s64)pin->mapped_bytes[mapper]);
		pin->mapped_bytes[mapper] = 0;
	}
}

/*
 * Called from the GPU driver's callback with RM held, so all users of the GPU wait.  Nothing here
 * may wait for other processes: CPU mappings are taken down, and device mappings do not exist,
 * because gdmabuf_attach_gpu() refuses revocable memory.
 */
void gdmabuf_pin_revoke(struct gdmabuf_pin *pin)
{
	struct gdmabuf_buffer *buffer;
	bool first;

	gdmabuf_pin_set_stale(pin);
	/*
	 * A second caller waits until the first is done, because the pages are given back
	 * afterwards.
	 */
	mutex_lock(&pin->lock);
	down_write(&pin->revoke_sem);
	first = !test_and_set_bit(PIN_REVOKED, &pin->state);
	up_write(&pin->revoke_sem);
	if (first) {
		count(pin->ctx, revoked);
		gdmabuf_pin_count_pin(pin, -1);
		list_for_each_entry(buffer, &pin->mapped, link)
			gdmabuf_buffer_revoke_locked(buffer);
		gdmabuf_pin_uncharge_mappings_locked(pin);
	}
	mutex_unlock(&pin->lock);
}

static struct gdmabuf_pin *gdmabuf_pin_find_locked(struct gdmabuf_context *ctx, u32 kind,
						   u64 address, u64 length, u32 flags)
{
	struct interval_tree_node *node;
	u64 last = address + length - 1;

	for (node = interval_tree_iter_first(&ctx->tree, address, last); node;
	     node = interval_tree_iter_next(node, address, last)) {
		struct gdmabuf_pin *pin = container_of(node, struct gdmabuf_pin, node);

		if (pin->ops->kind == kind && pin->flags == flags &&
		    range_covers(pin->address, pin->length, address, length) &&
		    !test_bit(PIN_STALE, &pin->state))
			return pin;
	}
	return NULL;
}

static struct gdmabuf_pin *gdmabuf_pin_find(struct gdmabuf_context *ctx,
					    const struct gdmabuf_pin_ops *ops, u64 address,
					    u64 length, u32 flags)
{
	struct gdmabuf_pin *pin;

	mutex_lock(&ctx->lock);
	pin = gdmabuf_pin_find_locked(ctx, ops->kind, address, length, flags & ~GDMABUF_KEEP);
	if (pin) {
		kref_get(&pin->kref);
		list_move_tail(&pin->lru, &ctx->lru);
	}
	mutex_unlock(&ctx->lock);
	return pin;
}

/*
 * A pin may be stale by now.  Such a pin serves the present export, which began before, but no
 * other export.
 */
static void gdmabuf_pin_list(struct gdmabuf_pin *pin)
{
	struct gdmabuf_context *ctx = pin->ctx;

	mutex_lock(&ctx->lock);
	ctx->by_slot[pin->slot] = pin;
	if (!test_bit(PIN_STALE, &pin->state)) {
		pin->node.start = pin->address;
		pin->node.last = pin->address + pin->length - 1;
		interval_tree_insert(&pin->node, &ctx->tree);
		list_add_tail(&pin->lru, &ctx->lru);
		pin->listed = true;
	}
	mutex_unlock(&ctx->lock);
}

/* Held while idle pins of other users are given up: their possible loss depends on the charges. */
static DEFINE_MUTEX(others_lock);

/*
 * Pins may end all the time without leaving room.  After so many tries idle pins are given up
 * anyway.
 */
#define TRIES_WITHOUT_EVICTION 16

/* Whether @pin may fit with nothing given up, because pins have ended since the last try. */
static bool gdmabuf_pin_may_fit(const struct gdmabuf_pin *pin)
{
	return pin->tries <= TRIES_WITHOUT_EVICTION && atomic_long_read(&ended) != pin->ended;
}

static bool gdmabuf_pin_evict_others(struct gdmabuf_pin *pin)
{
	bool made;

	if (mutex_lock_killable(&others_lock))
		return false;
	made = gdmabuf_pin_may_fit(pin) ||
	       gdmabuf_contexts_evict_others(pin->ctx, pin->ops->kind, pin->length);
	mutex_unlock(&others_lock);
	return made;
}

/*
 * Makes room, if idle pins are in the way.  For a limit, the missing bytes are known.  For the BAR,
 * the free space is unknown: some idle pins are given up, other users' last, and the driver is
 * asked again.
 */
static bool gdmabuf_pin_evict_for(int error, struct gdmabuf_pin *pin)
{
	u32 kind = pin->ops->kind;

	if (error == -ENOSPC)
		return gdmabuf_context_evict(pin->ctx, kind, pin->length) ||
		       gdmabuf_contexts_evict_own(pin->ctx, kind, pin->length) ||
		       gdmabuf_pin_evict_others(pin);
	return pin->lacking && gdmabuf_contexts_evict_charged(pin);
}

static int gdmabuf_pin_try(struct gdmabuf_pin *pin)
{
	pin->tries++;
	pin->lacking = 0;
	pin->ended = atomic_long_read(&ended);
	return pin->ops->pin(pin);
}

/* Any idle pin may be given up for a slot. */
static int gdmabuf_pin_get_slot(struct gdmabuf_pin *pin)
{
	struct gdmabuf_context *ctx = pin->ctx;
	int err;

	do {
		err = gdmabuf_slots_get(&ctx->slots, &pin->slot, &pin->generation);
	} while (err && !fatal_signal_pending(current) &&
		 (gdmabuf_context_evict(ctx, GDMABUF_KIND_HOST, 1) ||
		  gdmabuf_context_evict(ctx, GDMABUF_KIND_GPU, 1)));
	return err && fatal_signal_pending(current) ? -EINTR : err;
}

/*
 * As gdmabuf_pin_may_fit(), after the end of the user's pins that go.  Such pins are charged until
 * a work item or another thread has put them, which may be after the end of their process.
 */
static bool gdmabuf_pin_may_fit_soon(struct gdmabuf_pin *pin)
{
	if (!gdmabuf_pin_may_fit(pin))
		gdmabuf_quota_wait_for_going(pin->quota, pin->ops->kind);
	return gdmabuf_pin_may_fit(pin);
}

/*
 * Of a user's exports, a single one at a time gives up idle pins, and only if no pin has ended
 * since the last try, and no pin goes.  Otherwise a second export would find no idle pin while the
 * first is giving a pin up, or would give up more than needed.  The lock is not held while memory
 * is pinned, because a file system's server may delay the pinning.
 */
static bool gdmabuf_pin_make_room(int error, struct gdmabuf_pin *pin, bool *evicted)
{
	bool made;

	if (error != -ENOSPC && error != -EDQUOT && !pin->lacking)
		return false;
	if (mutex_lock_killable(&pin->quota->evicting))
		return false;
	made = gdmabuf_pin_may_fit_soon(pin);
	if (!made && !fatal_signal_pending(current)) {
		made = gdmabuf_pin_evict_for(error, pin);
		*evicted |= made;
	}
	mutex_unlock(&pin->quota->evicting);
	return made;
}

static int gdmabuf_pin_with_eviction(struct gdmabuf_pin *pin)
{
	int err = gdmabuf_pin_try(pin);
	bool evicted = false;

	while (err && gdmabuf_pin_make_room(err, pin, &evicted)) {
		if (fatal_signal_pending(current))
			return -EINTR;
		err = gdmabuf_pin_try(pin);
	}
	if (evicted && !err)
		count(pin->ctx, retries);
	return err;
}

/*
 * No thread may allocate memory while holding a lock of the GPU driver's callback: in a memory
 * cgroup over the limit the allocation sleeps, and the driver would wait.
 */
static void gdmabuf_pin_teach_lockdep(struct gdmabuf_pin *pin)
{
	fs_reclaim_acquire(GFP_KERNEL);
	might_lock(&pin->lock);
	might_lock(&pin->revoke_sem);
	fs_reclaim_release(GFP_KERNEL);
}

static struct gdmabuf_pin *gdmabuf_pin_alloc(struct gdmabuf_context *ctx,
					     const struct gdmabuf_pin_ops *ops, u64 address,
					     u64 length, u32 flags)
{
	struct gdmabuf_pin *pin = kzalloc(sizeof(*pin), GFP_KERNEL_ACCOUNT);

	if (!pin)
		return NULL;
	pin->quota = ops->get_quota(ctx);
	if (!pin->quota) {
		kfree(pin);
		return NULL;
	}
	kref_init(&pin->kref);
	kref_get(&ctx->kref);
	pin->ctx = ctx;
	pin->ops = ops;
	pin->address = address;
	pin->length = length;
	pin->flags = flags & ~GDMABUF_KEEP;
	pin->creating = true;
	INIT_LIST_HEAD(&pin->lru);
	INIT_WORK(&pin->forget, gdmabuf_pin_forget_work);
	init_rwsem(&pin->revoke_sem);
	mutex_init(&pin->lock);
	INIT_LIST_HEAD(&pin->mapped);
	gdmabuf_pin_teach_lockdep(pin);
	return pin;
}

static int gdmabuf_pin_create(struct gdmabuf_context *ctx, const struct gdmabuf_pin_ops *ops,
			      u64 address, u64 length, u32 flags, struct gdmabuf_pin **out)
{
	struct gdmabuf_pin *pin = gdmabuf_pin_alloc(ctx, ops, address, length, flags);
	int err;

	if (!pin)
		return -ENOMEM;
	err = gdmabuf_pin_get_slot(pin);
	if (err)
		goto free_pin;
	err = gdmabuf_pin_with_eviction(pin);
	if (err)
		goto put_slot;
	gdmabuf_pin_count_pin(pin, 1);
	WRITE_ONCE(pin->creating, false);
	/*
	 * Pairs with callers of gdmabuf_pin_set_stale(), which set PIN_STALE first and then read
	 * creating.
	 */
	smp_mb();
	/* The pages were taken away while the pin was made. */
	if (flags & GDMABUF_REVOCABLE && test_bit(PIN_STALE, &pin->state)) {
		gdmabuf_pin_put(pin);
		return -EFAULT;
	}
	gdmabuf_pin_list(pin);
	*out = pin;
	return 0;

put_slot:
	gdmabuf_slots_put(&ctx->slots, pin->slot);
free_pin:
	gdmabuf_quota_put(pin->quota);
	kfree(pin);
	gdmabuf_context_put(ctx);
	return err;
}

int gdmabuf_pin_get(struct gdmabuf_context *ctx, const struct gdmabuf_pin_ops *ops, u64 address,
		    u64 length, u32 flags, struct gdmabuf_pin **out, bool *hit)
{
	struct gdmabuf_pin *pin = gdmabuf_pin_find(ctx, ops, address, length, flags);
	int err;

	*hit = pin;
	if (!pin)
		return gdmabuf_pin_create(ctx, ops, address, length, flags, out);
	err = ops->check ? ops->check(pin, address, length, flags) : 0;
	if (err) {
		gdmabuf_pin_put(pin);
		return err;
	}
	*out = pin;
	return 0;
}

struct gdmabuf_pin *gdmabuf_pin_find_slot(struct gdmabuf_context *ctx, u32 slot, u32 generation)
{
	struct gdmabuf_pin *pin = NULL;

	mutex_lock(&ctx->lock);
	if (slot < GDMABUF_SLOTS)
		pin = ctx->by_slot[array_index_nospec(slot, GDMABUF_SLOTS)];
	if (pin && pin->generation == (generation & ~1U))
		kref_get(&pin->kref);
	else
		pin = NULL;
	mutex_unlock(&ctx->lock);
	return pin;
}
