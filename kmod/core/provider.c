// SPDX-License-Identifier: GPL-2.0 OR MIT
/* The module that pins GPU memory, and what it says when that is freed. */
#include <linux/module.h>
#include <linux/slab.h>

#include "core.h"

static DEFINE_MUTEX(lock);
static const struct gdmabuf_provider *registered;

int gdmabuf_register_provider(const struct gdmabuf_provider *provider)
{
	int err = 0;

	if (!is_power_of_2(provider->page_size) || provider->page_size < PAGE_SIZE)
		return -EINVAL;
	mutex_lock(&lock);
	if (registered)
		err = -EBUSY;
	else
		registered = provider;
	mutex_unlock(&lock);
	return err;
}
EXPORT_SYMBOL_GPL(gdmabuf_register_provider);

void gdmabuf_unregister_provider(const struct gdmabuf_provider *provider)
{
	mutex_lock(&lock);
	if (registered == provider)
		registered = NULL;
	mutex_unlock(&lock);
}
EXPORT_SYMBOL_GPL(gdmabuf_unregister_provider);

const struct gdmabuf_provider *gdmabuf_provider_get(void)
{
	const struct gdmabuf_provider *provider;

	mutex_lock(&lock);
	provider = registered;
	if (provider && !try_module_get(provider->owner))
		provider = NULL;
	mutex_unlock(&lock);
	return provider;
}

void gdmabuf_provider_put(const struct gdmabuf_provider *provider)
{
	module_put(provider->owner);
}

struct gdmabuf_watch *gdmabuf_watch_create(const struct gdmabuf_provider *provider,
					   struct gdmabuf_pin *pin)
{
	struct gdmabuf_watch *watch = kzalloc(sizeof(*watch), GFP_KERNEL_ACCOUNT);

	if (!watch)
		return NULL;
	/* The caller has one already. */
	__module_get(provider->owner);
	kref_init(&watch->kref);
	spin_lock_init(&watch->lock);
	watch->provider = provider;
	watch->pin = pin;
	return watch;
}

void gdmabuf_watch_detach(struct gdmabuf_watch *watch)
{
	spin_lock(&watch->lock);
	watch->pin = NULL;
	spin_unlock(&watch->lock);
}

static void watch_free(struct kref *kref)
{
	struct gdmabuf_watch *watch = container_of(kref, struct gdmabuf_watch, kref);
	struct module *owner = watch->provider->owner;

	kfree(watch);
	/* The provider may be the caller still: it waits for that when it is unloaded. */
	module_put(owner);
}

void gdmabuf_watch_put(struct gdmabuf_watch *watch)
{
	kref_put(&watch->kref, watch_free);
}
EXPORT_SYMBOL_GPL(gdmabuf_watch_put);

/* The pin, referenced, if there is more to do than to mark it stale. */
static struct gdmabuf_pin *get_pin(struct gdmabuf_watch *watch)
{
	struct gdmabuf_pin *pin;

	spin_lock(&watch->lock);
	pin = watch->pin;
	if (pin)
		gdmabuf_pin_set_stale(pin);
	/* While it is being made, who makes it sees that it is stale. */
	if (pin && (READ_ONCE(pin->creating) || !kref_get_unless_zero(&pin->kref)))
		pin = NULL;
	spin_unlock(&watch->lock);
	return pin;
}

void gdmabuf_watch_freed(struct gdmabuf_watch *watch)
{
	struct gdmabuf_pin *pin = get_pin(watch);

	if (!pin)
		return;
	if (pin->flags & GDMABUF_REVOCABLE)
		gdmabuf_pin_revoke(pin);
	/*
	 * Our reference is put by the work: here the last one would call the provider, with
	 * the GPU driver's lock held.  Once a watch, so the work is not queued yet.
	 */
	queue_work(gdmabuf_wq, &pin->forget);
}
EXPORT_SYMBOL_GPL(gdmabuf_watch_freed);
