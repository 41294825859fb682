// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Watches of host memory: notice of new pages at an address, for pins of other drivers.
 *
 * A watch is a slot and a notice.  The context has the only reference, and ends its watches.  An
 * invalidation changes the slot's word with notifier.lock held, and leaves the rest to the owner,
 * so nothing is freed elsewhere, and no end of a watch waits for an invalidation.
 */
#include <linux/slab.h>
#include <linux/xarray.h>

#include "core.h"

/* Of a context.  The other slots are for exports. */
#define HOST_WATCHES (GDMABUF_SLOTS / 2)

struct gdmabuf_host_watch {
	struct gdmabuf_notice notice;
	u32 slot, generation;
};

static void gdmabuf_host_watch_stale_locked(struct gdmabuf_notice *notice)
{
	struct gdmabuf_host_watch *watch = container_of(notice, struct gdmabuf_host_watch, notice);

	gdmabuf_slots_stale(&notice->ctx->slots, watch->slot, watch->generation);
}

static bool gdmabuf_host_watch_count(struct gdmabuf_context *ctx)
{
	if (!atomic64_add_unless(&ctx->counters.host_watches, 1, HOST_WATCHES))
		return false;
	atomic64_inc(&gdmabuf_total.host_watches);
	return true;
}

static struct gdmabuf_host_watch *gdmabuf_host_watch_alloc(struct gdmabuf_context *ctx)
{
	struct gdmabuf_host_watch *watch = kzalloc(sizeof(*watch), GFP_KERNEL_ACCOUNT);

	if (!watch)
		return ERR_PTR(-ENOMEM);
	watch->notice.ctx = ctx;
	watch->notice.stale_locked = gdmabuf_host_watch_stale_locked;
	if (!gdmabuf_host_watch_count(ctx))
		goto free_watch;
	if (!gdmabuf_slots_get(&ctx->slots, &watch->slot, &watch->generation))
		return watch;
	count_add(ctx, host_watches, -1);
free_watch:
	kfree(watch);
	return ERR_PTR(-ENOSPC);
}

/* Ends a watch that the context does not list. */
static void gdmabuf_host_watch_free(struct gdmabuf_host_watch *watch)
{
	struct gdmabuf_context *ctx = watch->notice.ctx;

	gdmabuf_notifier_remove(&watch->notice);
	gdmabuf_slots_put(&ctx->slots, watch->slot);
	count_add(ctx, host_watches, -1);
	kfree(watch);
}

int gdmabuf_host_watch_create(struct gdmabuf_context *ctx, u64 address, u64 length, u32 *slot,
			      u32 *generation)
{
	struct gdmabuf_host_watch *watch;
	int err = gdmabuf_notifier_get(ctx);

	if (err)
		return err;
	watch = gdmabuf_host_watch_alloc(ctx);
	if (IS_ERR(watch))
		return PTR_ERR(watch);
	*slot = watch->slot;
	*generation = watch->generation;
	err = gdmabuf_notifier_add(&watch->notice, address, length);
	/* Comes last: any thread may end a watch that is listed. */
	if (!err)
		err = xa_insert(&ctx->host_watches, *slot, watch, GFP_KERNEL_ACCOUNT);
	if (err)
		gdmabuf_host_watch_free(watch);
	return err;
}

int gdmabuf_host_watch_end(struct gdmabuf_context *ctx, u32 slot, u32 generation)
{
	struct gdmabuf_host_watch *watch;

	xa_lock(&ctx->host_watches);
	watch = xa_load(&ctx->host_watches, slot);
	if (watch && watch->generation == (generation & ~1U))
		__xa_erase(&ctx->host_watches, slot);
	else
		watch = NULL;
	xa_unlock(&ctx->host_watches);
	if (!watch)
		return -ENOENT;
	gdmabuf_host_watch_free(watch);
	return 0;
}

void gdmabuf_host_watches_end(struct gdmabuf_context *ctx)
{
	struct gdmabuf_host_watch *watch;
	unsigned long slot;

	xa_for_each(&ctx->host_watches, slot, watch)
		gdmabuf_host_watch_free(watch);
	xa_destroy(&ctx->host_watches);
}
