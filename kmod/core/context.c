// SPDX-License-Identifier: GPL-2.0 OR MIT
/* A context: a process's pins, and which of them it keeps. */
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

struct gdmabuf_context *gdmabuf_context_create(void)
{
	struct gdmabuf_context *ctx = kzalloc(sizeof(*ctx), GFP_KERNEL_ACCOUNT);

	if (!ctx)
		return ERR_PTR(-ENOMEM);
	ctx->by_slot = kvcalloc(GDMABUF_SLOTS, sizeof(*ctx->by_slot), GFP_KERNEL_ACCOUNT);
	if (!ctx->by_slot || gdmabuf_slots_create(&ctx->slots)) {
		kvfree(ctx->by_slot);
		kfree(ctx);
		return ERR_PTR(-ENOMEM);
	}
	kref_init(&ctx->kref);
	mutex_init(&ctx->lock);
	ctx->tree = RB_ROOT_CACHED;
	INIT_LIST_HEAD(&ctx->lru);
	ctx->tgid = get_pid(task_tgid(current));
	ctx->mm = current->mm;
	mmgrab(ctx->mm);
	ctx->uid = current_uid();
	ctx->budget[0] = U64_MAX;
	ctx->budget[1] = U64_MAX;
	mutex_lock(&contexts.lock);
	list_add_tail(&ctx->link, &contexts.list);
	mutex_unlock(&contexts.lock);
	return ctx;
}

static void context_free(struct kref *kref)
{
	struct gdmabuf_context *ctx = container_of(kref, struct gdmabuf_context, kref);

	list_del(&ctx->link);
	mutex_unlock(&contexts.lock);
	gdmabuf_slots_destroy(&ctx->slots);
	kvfree(ctx->by_slot);
	mmdrop(ctx->mm);
	put_pid(ctx->tgid);
	kfree(ctx);
}

void gdmabuf_context_put(struct gdmabuf_context *ctx)
{
	kref_put_mutex(&ctx->kref, context_free, &contexts.lock);
}

int gdmabuf_context_check(const struct gdmabuf_context *ctx)
{
	/* After execve() the process is the same, but its memory is not. */
	return task_tgid(current) == ctx->tgid && current->mm == ctx->mm ? 0 : -EACCES;
}

/* Moves idle pins of @kind to @idle, until they are @bytes. */
static u64 collect_idle_locked(struct gdmabuf_context *ctx, u32 kind, u64 bytes,
			       struct list_head *idle)
{
	struct gdmabuf_pin *pin, *next;
	u64 found = 0;

	list_for_each_entry_safe(pin, next, &ctx->lru, lru) {
		if (found >= bytes)
			break;
		if (pin->ops->kind != kind || !gdmabuf_pin_is_idle_locked(pin))
			continue;
		found += pin->length;
		gdmabuf_pin_unlist_locked(pin);
		list_add_tail(&pin->lru, idle);
	}
	return found;
}

static void put_all(struct list_head *idle)
{
	struct gdmabuf_pin *pin, *next;

	list_for_each_entry_safe(pin, next, idle, lru) {
		count(pin->ctx, evictions);
		list_del_init(&pin->lru);
		gdmabuf_pin_put(pin);
	}
}

bool gdmabuf_context_evict(struct gdmabuf_context *ctx, u32 kind, u64 bytes)
{
	LIST_HEAD(idle);
	u64 found;

	mutex_lock(&ctx->lock);
	found = collect_idle_locked(ctx, kind, bytes, &idle);
	mutex_unlock(&ctx->lock);
	put_all(&idle);
	return found > 0;
}

bool gdmabuf_contexts_evict(u32 kind, u64 bytes)
{
	struct gdmabuf_context *ctx;
	LIST_HEAD(idle);
	u64 found = 0;

	mutex_lock(&contexts.lock);
	list_for_each_entry(ctx, &contexts.list, link) {
		if (found >= bytes)
			break;
		mutex_lock(&ctx->lock);
		found += collect_idle_locked(ctx, kind, bytes - found, &idle);
		mutex_unlock(&ctx->lock);
	}
	mutex_unlock(&contexts.lock);
	put_all(&idle);
	return found > 0;
}

u64 gdmabuf_context_trim(struct gdmabuf_context *ctx, u32 kind)
{
	struct gdmabuf_pin *pin;
	u64 used = 0, over = 0;
	LIST_HEAD(idle);

	mutex_lock(&ctx->lock);
	list_for_each_entry(pin, &ctx->lru,
			    lru) if (pin->ops->kind == kind && gdmabuf_pin_is_idle_locked(pin))
		used += pin->length;
	if (used > ctx->budget[kind_index(kind)])
		over = collect_idle_locked(ctx, kind, used - ctx->budget[kind_index(kind)], &idle);
	mutex_unlock(&ctx->lock);
	put_all(&idle);
	return used - over;
}

void gdmabuf_context_close(struct gdmabuf_context *ctx)
{
	struct gdmabuf_pin *pin, *next;
	LIST_HEAD(kept);

	mutex_lock(&ctx->lock);
	list_for_each_entry_safe(pin, next, &ctx->lru, lru) if (gdmabuf_pin_unlist_locked(pin))
		list_add_tail(&pin->lru, &kept);
	mutex_unlock(&ctx->lock);
	list_for_each_entry_safe(pin, next, &kept, lru) {
		list_del_init(&pin->lru);
		gdmabuf_pin_put(pin);
	}
	gdmabuf_context_put(ctx);
}

int gdmabuf_contexts_show(struct seq_file *seq, void *unused)
{
	struct gdmabuf_context *ctx;

	seq_puts(seq, "total\n");
	gdmabuf_stats_show(seq, &gdmabuf_total);
	mutex_lock(&contexts.lock);
	list_for_each_entry(ctx, &contexts.list, link) {
		seq_printf(seq, "process %d, user %u\n", pid_nr(ctx->tgid),
			   from_kuid_munged(seq_user_ns(seq), ctx->uid));
		gdmabuf_stats_show(seq, &ctx->counters);
	}
	mutex_unlock(&contexts.lock);
	return 0;
}
