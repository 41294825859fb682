/* SPDX-License-Identifier: Apache-2.0 */
#include "import/opaque_fd/opaque_registered.h"

#include <errno.h>
#include <stdlib.h>

#include "import/export/host_registration.h"
#include "import/monitor/monitor.h"
#include "import/opaque_fd/opaque.h"
#include "import/opaque_fd/opaque_host.h"
#include "util/log.h"

struct opaque_registered_made {
	struct opaque_made made;	       /* first */
	struct host_registration registration; /* without being a user */
};

/* The registration was looked for first: if it ends before the pin, the pin is stale. */
static int opaque_registered_pin(void *uuid, const void *registration, uintptr_t address,
				 size_t size, struct cache_pin *pin)
{
	struct opaque_registered_made *made = calloc(1, sizeof(*made));
	int ret;

	(void)address, (void)size;
	if (!made)
		return log_errno(ENOMEM, "no memory for an opaque descriptor");
	made->registration = *(const struct host_registration *)registration;
	pin->base = made->registration.base;
	pin->size = made->registration.size;
	pin->data = made;
	ret = opaque_host_export(uuid, pin->base, pin->size, &pin->fd, &made->made);
	if (ret)
		free(made);
	return ret;
}

/* The layer's backing buffer keeps the pages, too, and goes first. */
static void opaque_registered_unpin(void *uuid, const struct cache_pin *pin)
{
	struct opaque_registered_made *made = pin->data;

	(void)uuid;
	opaque_forget(made->made.kept);
	descriptor_close(pin->fd, &made->made.id);
	free(made);
}

static bool opaque_registered_is_current(void *uuid, const struct cache_pin *pin)
{
	const struct opaque_registered_made *made = pin->data;

	(void)uuid;
	return host_registration_is_current(&made->registration);
}

static const struct cache_source opaque_registered_source = {
	.pin = opaque_registered_pin,
	.unpin = opaque_registered_unpin,
	.is_current = opaque_registered_is_current,
};

/* The program's registrations are the limit. */
static struct opaque_caches opaque_registered_caches = {
	.source = &opaque_registered_source,
	.config = { .bytes = SIZE_MAX, .entries = HOST_REGISTRATIONS },
};

static void opaque_registered_ended(uintptr_t address, size_t size)
{
	opaque_cache_drop_stale(&opaque_registered_caches, address, size);
}

/*
 * A registration may end during the pin, when the cache has no entry yet: nobody but this function
 * knows the entry then.
 */
int opaque_registered_get(const unsigned char uuid[IMPORT_UUID_SIZE], uintptr_t address,
			  size_t size, struct opaque_hold *hold)
{
	struct host_registration registration;
	int ret;

	if (!host_registration_exists() || monitor_is_forbidden() ||
	    !host_registration_look(address, size, &registration))
		return -ENOENT;
	host_registration_on_end(opaque_registered_ended);
	ret = opaque_cache_get(&opaque_registered_caches, uuid, address, size, &registration, hold);
	if (!ret && !host_registration_is_current(&registration))
		opaque_registered_ended(registration.base, registration.size);
	return ret;
}

void opaque_registered_add_stats(struct cache_stats *sum)
{
	opaque_cache_add_stats(&opaque_registered_caches, sum);
}
