// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Watches: notice of freed GPU memory, and the return of the driver's pins.
 *
 * A watch pins GPU memory: all of a revocable pin, the first page of other pins.  The quota is
 * charged until the driver has released the bytes: when the memory is freed, or when the owner has
 * given the watch back, which may be long after the last dma-buf was closed.  If the driver has no
 * memory to take a watch back, the watch becomes an orphan, and the owner is called again.
 */
#include <linux/module.h>
#include <linux/slab.h>

#include "core.h"

static atomic64_t started;

s64 gdmabuf_watches_count(void)
{
	return atomic64_read(&started);
}

static void gdmabuf_watch_uncharge(struct gdmabuf_watch *watch)
{
	bool leaving;
	u64 bytes;

	spin_lock(&watch->lock);
	bytes = watch->bytes;
	watch->bytes = 0;
	leaving = !watch->pin;
	spin_unlock(&watch->lock);
	gdmabuf_quota_uncharge(watch->quota, bytes);
	/*
	 * Pairs with gdmabuf_quota_leaving(), whose callers read leaving before the charged bytes.
	 */
	smp_wmb();
	if (leaving)
		atomic64_sub(bytes, &watch->quota->leaving);
}

static void gdmabuf_watch_free(struct kref *kref)
{
	struct gdmabuf_watch *watch = container_of(kref, struct gdmabuf_watch, kref);
	struct module *provider = watch->provider->owner;

	if (watch->started)
		atomic64_dec(&started);
	gdmabuf_watch_uncharge(watch);
	gdmabuf_quota_put(watch->quota);
	gdmabuf_owner_put(watch->owner);
	kfree(watch);
	/*
	 * The provider may be the caller, and still running: the provider's exit waits for the
	 * return.
	 */
	module_put(provider);
}

void gdmabuf_watch_put(struct gdmabuf_watch *watch)
{
	kref_put(&watch->kref, gdmabuf_watch_free);
}
EXPORT_SYMBOL_GPL(gdmabuf_watch_put);

static int gdmabuf_watch_unwatch(struct gdmabuf_watch *watch)
{
	int err = watch->provider->unwatch(watch);

	if (err == -ENOMEM)
		return err;
	if (!err)
		gdmabuf_watch_uncharge(watch);
	gdmabuf_watch_put(watch);
	return 0;
}

bool gdmabuf_watch_give_back(struct gdmabuf_watch *watch)
{
	while (gdmabuf_watch_unwatch(watch))
		if (gdmabuf_owner_add_orphan(watch->owner, watch, HZ))
			return false;
	return true;
}

/* A freed orphan may be given back by any process. */
static void gdmabuf_watch_give_back_work(struct work_struct *work)
{
	gdmabuf_watch_give_back(container_of(work, struct gdmabuf_watch, work));
}

struct gdmabuf_watch *gdmabuf_watch_create(const struct gdmabuf_provider *provider,
					   struct gdmabuf_pin *pin, u64 bytes)
{
	struct gdmabuf_watch *watch = kzalloc(sizeof(*watch), GFP_KERNEL_ACCOUNT);
	int err;

	if (!watch)
		return ERR_PTR(-ENOMEM);
	err = gdmabuf_quota_charge(pin->ctx->quota, bytes);
	if (err) {
		kfree(watch);
		return ERR_PTR(err);
	}
	/* The caller's own reference keeps the module here. */
	__module_get(provider->owner);
	kref_init(&watch->kref);
	spin_lock_init(&watch->lock);
	INIT_LIST_HEAD(&watch->orphan);
	INIT_WORK(&watch->work, gdmabuf_watch_give_back_work);
	watch->provider = provider;
	watch->pin = pin;
	watch->bytes = bytes;
	watch->quota = gdmabuf_quota_get(pin->ctx->quota);
	watch->owner = gdmabuf_owner_get(pin->ctx->owner);
	return watch;
}

int gdmabuf_watch_start(struct gdmabuf_watch *watch, u64 address, u64 length,
			struct gdmabuf_gpu_pages *pages)
{
	int err = watch->provider->watch(watch, address, length, pages);

	if (err)
		return err;
	watch->started = true;
	atomic64_inc(&started);
	return 0;
}

void gdmabuf_watch_end(struct gdmabuf_watch *watch)
{
	spin_lock(&watch->lock);
	watch->pin = NULL;
	atomic64_add(watch->bytes, &watch->quota->leaving);
	spin_unlock(&watch->lock);
	if (!watch->started)
		gdmabuf_watch_put(watch);
	else if (gdmabuf_owner_is_current(watch->owner) ||
		 !gdmabuf_owner_add_orphan(watch->owner, watch, 0))
		gdmabuf_watch_give_back(watch);
}

/* Marks the pin stale.  Returns a reference if the pin has to be revoked or forgotten. */
static struct gdmabuf_pin *gdmabuf_watch_get_pin(struct gdmabuf_watch *watch)
{
	struct gdmabuf_pin *pin;

	spin_lock(&watch->lock);
	pin = watch->pin;
	if (pin)
		gdmabuf_pin_set_stale(pin);
	/* The creating thread sees PIN_STALE itself. */
	if (pin && (READ_ONCE(pin->creating) || !kref_get_unless_zero(&pin->kref)))
		pin = NULL;
	spin_unlock(&watch->lock);
	return pin;
}

void gdmabuf_watch_freed(struct gdmabuf_watch *watch)
{
	struct gdmabuf_pin *pin = gdmabuf_watch_get_pin(watch);

	if (pin) {
		if (pin->flags & GDMABUF_REVOCABLE)
			gdmabuf_pin_revoke(pin);
		/*
		 * The work item puts the reference: here, with RM held, the last put would call the
		 * provider.  A watch is freed once, so the work is not queued yet.
		 */
		gdmabuf_pin_goes(pin);
		queue_work(gdmabuf_wq, &pin->forget);
	}
	gdmabuf_watch_uncharge(watch);
	if (gdmabuf_owner_forget_orphan(watch->owner, watch))
		queue_work(gdmabuf_wq, &watch->work);
}
EXPORT_SYMBOL_GPL(gdmabuf_watch_freed);
