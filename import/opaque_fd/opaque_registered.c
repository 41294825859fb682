/* SPDX-License-Identifier: Apache-2.0 */
#include "import/opaque_fd/opaque_registered.h"

#include <errno.h>
#include <stdlib.h>

#include "import/export/host_registration.h"
#include "util/log.h"

struct opaque_registered_made {
	struct opaque_refusals refusals;       /* first */
	struct host_registration registration; /* without being a user */
};

/* The registration was looked for first: if it ends before the pin, the pin is stale. */
static int opaque_registered_pin(void *unused, const void *registration, uintptr_t address,
				 size_t size, struct cache_pin *pin)
{
	struct opaque_registered_made *made = calloc(1, sizeof(*made));

	(void)unused, (void)address, (void)size;
	if (!made)
		return log_errno(ENOMEM, "no memory for a registration");
	made->registration = *(const struct host_registration *)registration;
	pin->base = made->registration.base;
	pin->size = made->registration.size;
	pin->number = opaque_cache_name_host();
	pin->data = made;
	return 0;
}

static void opaque_registered_unpin(void *unused, const struct cache_pin *pin)
{
	(void)unused;
	opaque_forget(pin->number);
	free(pin->data);
}

static bool opaque_registered_is_current(void *unused, const struct cache_pin *pin)
{
	const struct opaque_registered_made *made = pin->data;

	(void)unused;
	return host_registration_is_current(&made->registration);
}

static const struct opaque_source opaque_registered_source = {
	.cache = {
		.pin = opaque_registered_pin,
		.unpin = opaque_registered_unpin,
		.is_current = opaque_registered_is_current,
	},
	.exporter = OPAQUE_BY_RM,
	.share = IMPORT_SHARE_REGISTERED,
	.counts_refusals = true,
};

/* The program's registrations are the limit. */
static struct opaque_cache opaque_registered_cache = {
	.source = &opaque_registered_source,
	.config = { .bytes = SIZE_MAX },
};

static void opaque_registered_ended(uintptr_t address, size_t size)
{
	opaque_cache_drop_stale_by_idle(&opaque_registered_cache, address, size);
}

/*
 * A registration may end during the look-up, when the cache has no entry yet: nobody but this
 * function knows the entry then.
 */
int opaque_registered_get(uintptr_t address, size_t size, struct opaque_hold *hold)
{
	struct host_registration registration;
	int ret;

	if (!host_registration_exists())
		return -ENOENT;
	if (opaque_cache_find(&opaque_registered_cache, address, size, hold))
		return 0;
	if (!host_registration_look(address, size, &registration))
		return -ENOENT;
	host_registration_on_end(opaque_registered_ended);
	ret = opaque_cache_prepare();
	if (!ret)
		ret = opaque_cache_get(&opaque_registered_cache, address, size, &registration,
				       hold);
	if (!ret && !host_registration_is_current(&registration))
		opaque_registered_ended(registration.base, registration.size);
	return ret;
}

bool opaque_registered_has(uintptr_t address, size_t size)
{
	struct host_registration registration;

	return host_registration_exists() && host_registration_look(address, size, &registration);
}

bool opaque_registered_make_room(uint32_t count)
{
	return opaque_cache_make_room(&opaque_registered_cache, count);
}

void opaque_registered_add_stats(struct cache_stats *sum)
{
	opaque_cache_add_stats(&opaque_registered_cache, sum);
}
