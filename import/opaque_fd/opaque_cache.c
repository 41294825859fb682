/* SPDX-License-Identifier: Apache-2.0 */
#include "import/opaque_fd/opaque_cache.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/log.h"

/* The cache of a device.  Never removed. */
struct opaque_device {
	struct published published; /* first */
	unsigned char uuid[IMPORT_UUID_SIZE];
	struct cache *cache;
};

static bool opaque_device_is(const void *device, const void *uuid)
{
	return !memcmp(((const struct opaque_device *)device)->uuid, uuid, IMPORT_UUID_SIZE);
}

static struct opaque_device *opaque_device_create(const struct opaque_caches *caches,
						  const unsigned char *uuid)
{
	struct opaque_device *device = calloc(1, sizeof(*device));
	struct cache_config config = caches->config;

	if (!device)
		return NULL;
	if (caches->entries)
		config.entries = caches->entries();
	memcpy(device->uuid, uuid, sizeof(device->uuid));
	if (!cache_create(caches->source, device->uuid, &config, &device->cache))
		return device;
	free(device);
	return NULL;
}

static struct opaque_device *opaque_device_publish(struct opaque_caches *caches,
						   struct opaque_device *mine)
{
	struct opaque_device *winner =
		publish_add(&caches->devices, mine, opaque_device_is, mine->uuid);

	if (winner != mine) {
		cache_destroy(mine->cache);
		free(mine);
	}
	return winner;
}

static struct cache *opaque_cache_of(struct opaque_caches *caches, const unsigned char *uuid)
{
	struct opaque_device *device = publish_find(&caches->devices, opaque_device_is, uuid);

	return device ? device->cache : NULL;
}

static int opaque_cache_make(struct opaque_caches *caches, const unsigned char *uuid,
			     struct cache **cache)
{
	struct opaque_device *device;

	*cache = opaque_cache_of(caches, uuid);
	if (*cache)
		return 0;
	device = opaque_device_create(caches, uuid);
	if (!device)
		return log_errno(ENOMEM, "no registration cache for a device");
	*cache = opaque_device_publish(caches, device)->cache;
	return 0;
}

static bool opaque_cache_is_open(const struct opaque_hold *hold)
{
	const struct opaque_made *made = hold->ref.pin->data;

	return descriptor_is(hold->ref.pin->fd, &made->id);
}

/* The program has closed the descriptor: the next look-up makes another. */
static void opaque_cache_discard(struct opaque_hold *hold)
{
	cache_invalidate(hold->cache, hold->ref.pin->base, hold->ref.pin->size);
	opaque_cache_put(hold);
}

bool opaque_cache_find(struct opaque_caches *caches, const unsigned char uuid[IMPORT_UUID_SIZE],
		       uintptr_t address, size_t size, struct opaque_hold *hold)
{
	struct opaque_hold found = { .cache = opaque_cache_of(caches, uuid) };

	if (!found.cache || !cache_get_cached(found.cache, address, size, &found.ref))
		return false;
	if (!opaque_cache_is_open(&found)) {
		opaque_cache_discard(&found);
		return false;
	}
	*hold = found;
	return true;
}

/* The cache may have a descriptor that opaque_cache_find() did not find, and the program closed. */
int opaque_cache_get(struct opaque_caches *caches, const unsigned char uuid[IMPORT_UUID_SIZE],
		     uintptr_t address, size_t size, const void *wanted, struct opaque_hold *hold)
{
	struct opaque_hold got;
	int ret = opaque_cache_make(caches, uuid, &got.cache);

	if (!ret)
		ret = cache_get_wanted(got.cache, address, size, wanted, &got.ref);
	if (!ret && !opaque_cache_is_open(&got)) {
		struct cache *cache = got.cache;

		opaque_cache_discard(&got);
		got.cache = cache;
		ret = cache_get_wanted(cache, address, size, wanted, &got.ref);
	}
	if (!ret)
		*hold = got;
	return ret;
}

void opaque_cache_put(struct opaque_hold *hold)
{
	cache_put(hold->cache, &hold->ref);
	hold->cache = NULL;
}

void opaque_cache_describe(const struct opaque_hold *hold, struct import_opaque *out)
{
	const struct cache_pin *pin = hold->ref.pin;
	const struct opaque_made *made = pin->data;

	*out = (struct import_opaque){
		.fd = pin->fd,
		.offset = hold->ref.offset,
		.size = pin->size,
		.exporter = made->exporter,
		.kept = atomic_load_explicit(&made->kept, memory_order_relaxed),
	};
}

void opaque_cache_drop_stale(struct opaque_caches *caches, uintptr_t address, size_t size)
{
	struct opaque_device *d = publish_list_head(&caches->devices);

	for (; d; d = publish_next(d))
		cache_drop_stale(d->cache, address, size);
}

void opaque_cache_add_stats(struct opaque_caches *caches, struct cache_stats *sum)
{
	struct opaque_device *d = publish_list_head(&caches->devices);
	struct cache_stats one;

	for (; d; d = publish_next(d)) {
		cache_stats(d->cache, &one);
		sum->hits += one.hits;
		sum->misses += one.misses;
		sum->evictions += one.evictions;
		sum->stale += one.stale;
		sum->invalidations += one.invalidations;
		sum->bytes_pinned += one.bytes_pinned;
		sum->bytes_idle += one.bytes_idle;
		sum->entries += one.entries;
	}
}
