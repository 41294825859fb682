// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Contexts: the pins of an open file, and the eviction of idle pins.
 *
 * Eviction takes two steps.  With locks held, idle pins move from the lists of their contexts to a
 * list of the caller, and become invisible to exports.  With no lock held, the caller puts the
 * pins, and the last put gives the memory back.
 */
#include <linux/cred.h>
#include <linux/pid.h>
#include <linux/sched/mm.h>
#include <linux/seq_file.h>
#include <linux/slab.h>

#include "core.h"

static struct {
	struct mutex lock;	/* protects list */
	struct list_head list;
} contexts = {
	.lock = __MUTEX_INITIALIZER(contexts.lock),
	.list = LIST_HEAD_INIT(contexts.list),
};

static void gdmabuf_context_destroy(struct gdmabuf_context *ctx)
{
	if (ctx->owner)
		gdmabuf_owner_put(ctx->owner);
	if (ctx->quota)
		gdmabuf_quota_put(ctx->quota);
	if (ctx->notifier)
		gdmabuf_notifier_put(ctx->notifier);
	kvfree(ctx->by_slot);
	kfree(ctx);
}

struct gdmabuf_context *gdmabuf_context_create(void)
{
	struct gdmabuf_context *ctx = kzalloc(sizeof(*ctx), GFP_KERNEL_ACCOUNT);

	if (!ctx)
		return ERR_PTR(-ENOMEM);
	ctx->uid = current_uid();
	ctx->owner = gdmabuf_owner_get_current();
	ctx->quota = gdmabuf_quota_get_current();
	ctx->by_slot = kvcalloc(GDMABUF_SLOTS, sizeof(*ctx->by_slot), GFP_KERNEL_ACCOUNT);
	if (!ctx->owner || !ctx->quota || !ctx->by_slot || gdmabuf_slots_create(&ctx->slots)) {
		gdmabuf_context_destroy(ctx);
		return ERR_PTR(-ENOMEM);
	}
	kref_init(&ctx->kref);
	mutex_init(&ctx->lock);
	ctx->tree = RB_ROOT_CACHED;
	INIT_LIST_HEAD(&ctx->lru);
	xa_init_flags(&ctx->host_watches, XA_FLAGS_ACCOUNT);
	ctx->mm = current->mm;
	mmgrab(ctx->mm);
	ctx->cred = get_current_cred();
	ctx->limited = gdmabuf_memlock_limits_current();
	ctx->budget[0] = U64_MAX;
	ctx->budget[1] = U64_MAX;
	ctx->watchers = 1;
	mutex_lock(&contexts.lock);
	list_add_tail(&ctx->link, &contexts.list);
	mutex_unlock(&contexts.lock);
	return ctx;
}

static void gdmabuf_context_free(struct kref *kref)
{
	struct gdmabuf_context *ctx = container_of(kref, struct gdmabuf_context, kref);

	list_del(&ctx->link);
	mutex_unlock(&contexts.lock);
	gdmabuf_context_destroy(ctx);
}

void gdmabuf_context_put(struct gdmabuf_context *ctx)
{
	kref_put_mutex(&ctx->kref, gdmabuf_context_free, &contexts.lock);
}

/*
 * A revocable pin is given back to the driver by the owner only, so eviction by other processes
 * frees nothing now.
 */
static bool gdmabuf_context_frees_room(const struct gdmabuf_pin *pin)
{
	return !(pin->flags & GDMABUF_REVOCABLE) || gdmabuf_owner_is_current(pin->ctx->owner);
}

static void gdmabuf_context_take_locked(struct gdmabuf_pin *pin, struct list_head *idle)
{
	gdmabuf_pin_unlist_locked(pin);
	gdmabuf_pin_goes(pin);
	list_add_tail(&pin->lru, idle);
}

/*
 * Moves idle pins of @kind to @idle, until their lengths reach @bytes, with charges of at most
 * @most.
 */
static u64 gdmabuf_context_collect_idle_locked(struct gdmabuf_context *ctx, u32 kind, u64 bytes,
					       u64 most, bool for_room, struct list_head *idle)
{
	struct gdmabuf_pin *pin, *next;
	u64 found = 0;

	list_for_each_entry_safe(pin, next, &ctx->lru, lru) {
		if (found >= bytes)
			break;
		if (pin->ops->kind != kind || !gdmabuf_pin_is_idle_locked(pin) ||
		    (for_room && !gdmabuf_context_frees_room(pin)) || pin->charged > most)
			continue;
		found += pin->length;
		most -= pin->charged;
		gdmabuf_context_take_locked(pin, idle);
	}
	return found;
}

static void gdmabuf_context_put_all(struct list_head *idle)
{
	struct gdmabuf_pin *pin, *next;

	list_for_each_entry_safe(pin, next, idle, lru) {
		count(pin->ctx, evictions);
		list_del_init(&pin->lru);
		gdmabuf_pin_put_going(pin);
	}
}

bool gdmabuf_context_evict(struct gdmabuf_context *ctx, u32 kind, u64 bytes)
{
	LIST_HEAD(idle);
	u64 found;

	mutex_lock(&ctx->lock);
	found = gdmabuf_context_collect_idle_locked(ctx, kind, bytes, U64_MAX, true, &idle);
	mutex_unlock(&ctx->lock);
	gdmabuf_context_put_all(&idle);
	return found > 0;
}

/*
 * The charge that @other may lose for @bytes of @ctx.  Contexts of the same user may lose
 * everything.  A different user may lose the excess over the charge of @ctx's user after the
 * export.  Memory that only waits for an owner does not count as the different user's.
 */
static u64 gdmabuf_context_may_lose(const struct gdmabuf_context *other,
				    const struct gdmabuf_context *ctx, u64 bytes)
{
	/* In this order: gdmabuf_watch_uncharge() changes bytes first, then leaving. */
	u64 leaving = gdmabuf_quota_leaving(other->quota);
	u64 theirs = gdmabuf_quota_used(other->quota) - leaving;
	u64 ours = gdmabuf_quota_used(ctx->quota) + bytes;

	if (other->quota == ctx->quota)
		return U64_MAX;
	return (s64)theirs > (s64)ours ? theirs - ours : 0;
}

/* Takes from a single context only: the charges have changed before the next context is asked. */
static u64 gdmabuf_context_collect_others_locked(struct gdmabuf_context *ctx, u32 kind, u64 bytes,
						 bool same_user, struct list_head *idle)
{
	struct gdmabuf_context *other;
	u64 most, found = 0;

	lockdep_assert_held(&contexts.lock);
	list_for_each_entry(other, &contexts.list, link) {
		if (other == ctx || (other->quota == ctx->quota) != same_user)
			continue;
		mutex_lock(&other->lock);
		most = gdmabuf_context_may_lose(other, ctx, bytes);
		found = gdmabuf_context_collect_idle_locked(other, kind, bytes, most, true, idle);
		mutex_unlock(&other->lock);
		if (found)
			break;
	}
	return found;
}

static bool gdmabuf_context_contexts_evict(struct gdmabuf_context *ctx, u32 kind, u64 bytes,
					   bool same_user)
{
	LIST_HEAD(idle);
	u64 found;

	mutex_lock(&contexts.lock);
	found = gdmabuf_context_collect_others_locked(ctx, kind, bytes, same_user, &idle);
	mutex_unlock(&contexts.lock);
	gdmabuf_context_put_all(&idle);
	return found > 0;
}

bool gdmabuf_contexts_evict_own(struct gdmabuf_context *ctx, u32 kind, u64 bytes)
{
	return gdmabuf_context_contexts_evict(ctx, kind, bytes, true);
}

bool gdmabuf_contexts_evict_others(struct gdmabuf_context *ctx, u32 kind, u64 bytes)
{
	return gdmabuf_context_contexts_evict(ctx, kind, bytes, false);
}

/* The bytes that a limit is short of, and the idle pins to give up. */
struct relief {
	const struct gdmabuf_pin *needed_for;
	u64 bytes;
	struct gdmabuf_gain gain;
	u64 counted, freed; /* of all idle pins, and of the pins in idle */
	struct list_head idle;
};

static bool gdmabuf_context_relieves_locked(const struct gdmabuf_pin *pin, const struct relief *r)
{
	const struct gdmabuf_pin *needed_for = r->needed_for;

	return pin->ops == needed_for->ops && pin->quota == needed_for->quota &&
	       (pin->ctx == needed_for->ctx || pin->limit <= needed_for->limit) &&
	       gdmabuf_pin_is_idle_locked(pin);
}

static void gdmabuf_context_relief_count_locked(struct gdmabuf_context *ctx, struct relief *r)
{
	struct gdmabuf_pin *pin;

	list_for_each_entry(pin, &ctx->lru, lru) {
		if (r->counted >= r->bytes)
			break;
		if (gdmabuf_context_relieves_locked(pin, r))
			r->counted += pin->ops->count_gain(pin, &r->gain);
	}
}

static void gdmabuf_context_relief_take_locked(struct gdmabuf_context *ctx, struct relief *r)
{
	struct gdmabuf_pin *pin, *next;

	list_for_each_entry_safe(pin, next, &ctx->lru, lru) {
		if (r->freed >= r->bytes)
			break;
		if (!gdmabuf_context_relieves_locked(pin, r) ||
		    !pin->ops->take_gain(pin, &r->gain, &r->freed))
			continue;
		gdmabuf_context_take_locked(pin, &r->idle);
	}
}

/* Calls @step_locked for all contexts, beginning with @first. */
static void gdmabuf_context_relief_each_locked(struct gdmabuf_context *first, struct relief *r,
					       void (*step_locked)(struct gdmabuf_context *ctx,
								   struct relief *r))
{
	struct gdmabuf_context *ctx;

	lockdep_assert_held(&contexts.lock);
	mutex_lock(&first->lock);
	step_locked(first, r);
	mutex_unlock(&first->lock);
	list_for_each_entry(ctx, &contexts.list, link) {
		if (ctx == first)
			continue;
		mutex_lock(&ctx->lock);
		step_locked(ctx, r);
		mutex_unlock(&ctx->lock);
	}
}

bool gdmabuf_contexts_evict_charged(const struct gdmabuf_pin *pin)
{
	struct relief r = {
		.needed_for = pin,
		.bytes = pin->lacking,
		.idle = LIST_HEAD_INIT(r.idle),
	};

	xa_init(&r.gain.folios);
	mutex_lock(&contexts.lock);
	gdmabuf_context_relief_each_locked(pin->ctx, &r, gdmabuf_context_relief_count_locked);
	if (r.counted >= r.bytes)
		gdmabuf_context_relief_each_locked(pin->ctx, &r,
						   gdmabuf_context_relief_take_locked);
	mutex_unlock(&contexts.lock);
	xa_destroy(&r.gain.folios);
	gdmabuf_context_put_all(&r.idle);
	return r.freed > 0;
}

u64 gdmabuf_contexts_take_idle(u32 kind, u64 bytes, struct list_head *idle)
{
	struct gdmabuf_context *ctx;
	u64 found = 0;

	if (!mutex_trylock(&contexts.lock))
		return 0;
	list_for_each_entry(ctx, &contexts.list, link) {
		if (found >= bytes)
			break;
		if (!mutex_trylock(&ctx->lock))
			continue;
		found += gdmabuf_context_collect_idle_locked(ctx, kind, bytes - found, U64_MAX,
							     true, idle);
		mutex_unlock(&ctx->lock);
	}
	/* The next call begins with the next context. */
	list_rotate_left(&contexts.list);
	mutex_unlock(&contexts.lock);
	return found;
}

void gdmabuf_contexts_put_idle(struct list_head *idle)
{
	gdmabuf_context_put_all(idle);
}

u64 gdmabuf_context_trim(struct gdmabuf_context *ctx, u32 kind)
{
	struct gdmabuf_pin *pin;
	u64 budget, used = 0, over = 0;
	LIST_HEAD(idle);

	mutex_lock(&ctx->lock);
	budget = ctx->budget[gdmabuf_kind_index(kind)];
	list_for_each_entry(pin, &ctx->lru, lru)
		if (pin->ops->kind == kind && gdmabuf_pin_is_idle_locked(pin))
			used += pin->length;
	if (used > budget)
		over = gdmabuf_context_collect_idle_locked(ctx, kind, used - budget, U64_MAX,
							   false, &idle);
	mutex_unlock(&ctx->lock);
	gdmabuf_context_put_all(&idle);
	return used - over;
}

/* Frees what only ioctls need.  Buffers may live on. */
static void gdmabuf_context_free_tables(struct gdmabuf_context *ctx)
{
	struct gdmabuf_pin **by_slot;

	mutex_lock(&ctx->lock);
	by_slot = ctx->by_slot;
	ctx->by_slot = NULL;
	mutex_unlock(&ctx->lock);
	kvfree(by_slot);
	gdmabuf_slots_destroy(&ctx->slots);
	gdmabuf_notifier_leave(ctx);
	mmdrop(ctx->mm);
	ctx->mm = NULL;
	put_cred(ctx->cred);
	ctx->cred = NULL;
}

void gdmabuf_context_close(struct gdmabuf_context *ctx)
{
	struct gdmabuf_pin *pin, *next;
	LIST_HEAD(kept);

	mutex_lock(&ctx->lock);
	list_for_each_entry_safe(pin, next, &ctx->lru, lru)
		if (gdmabuf_pin_unlist_locked(pin))
			list_add_tail(&pin->lru, &kept);
	mutex_unlock(&ctx->lock);
	list_for_each_entry_safe(pin, next, &kept, lru) {
		list_del_init(&pin->lru);
		gdmabuf_pin_put(pin);
	}
	gdmabuf_owner_collect(ctx->owner, UINT_MAX);
	gdmabuf_host_watches_end(ctx);
	gdmabuf_context_free_tables(ctx);
	gdmabuf_context_put(ctx);
}

int gdmabuf_contexts_show(struct seq_file *seq, void *unused)
{
	struct gdmabuf_context *ctx;

	seq_puts(seq, "total\n");
	gdmabuf_stats_show(seq, &gdmabuf_total);
	seq_printf(seq, "gdmabuf-watches:\t%lld\n", gdmabuf_watches_count());
	gdmabuf_owners_show(seq);
	mutex_lock(&contexts.lock);
	list_for_each_entry(ctx, &contexts.list, link) {
		seq_printf(seq, "process %d, user %u\n", pid_nr(ctx->owner->tgid),
			   from_kuid_munged(seq_user_ns(seq), ctx->uid));
		gdmabuf_stats_show(seq, &ctx->counters);
	}
	mutex_unlock(&contexts.lock);
	return 0;
}
