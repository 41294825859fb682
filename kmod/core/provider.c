// SPDX-License-Identifier: GPL-2.0 OR MIT
/* The registered provider. */
#include <linux/module.h>

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
