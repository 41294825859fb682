/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opaque descriptors that imports share: a registration cache for each device and each source of
 * descriptors (CUDA's memory, pages of the host).
 *
 * The program may close a descriptor of a cache: a look-up then finds none, and makes another.
 */
#ifndef IMPORT_OPAQUE_FD_OPAQUE_CACHE_H
#define IMPORT_OPAQUE_FD_OPAQUE_CACHE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "import/cache/cache.h"
#include "import/import.h"
#include "util/descriptor.h"
#include "util/publish.h"

/* The source's part of a pin: the data of struct cache_pin.  A source may append members. */
struct opaque_made {
	struct descriptor_id id; /* of the pin's descriptor */
	unsigned int exporter;
	_Atomic uint64_t kept; /* struct import_opaque's */
};

/* The caches of a source, a cache for each device.  @config is for each. */
struct opaque_caches {
	const struct cache_source *source; /* the context of a source is the device's UUID */
	struct cache_config config;
	uint32_t (*entries)(void);   /* NULL, or the entries of a new cache instead of @config's */
	struct publish_list devices; /* starts empty */
};

/* A reference to a descriptor for one device. */
struct opaque_hold {
	struct cache *cache; /* NULL: none */
	struct cache_ref ref;
};

/* Finds a descriptor that covers the range. */
bool opaque_cache_find(struct opaque_caches *caches, const unsigned char uuid[IMPORT_UUID_SIZE],
		       uintptr_t address, size_t size, struct opaque_hold *hold);

/* Finds or makes a descriptor; @wanted is for the source.  0 or a negative errno, logged. */
int opaque_cache_get(struct opaque_caches *caches, const unsigned char uuid[IMPORT_UUID_SIZE],
		     uintptr_t address, size_t size, const void *wanted, struct opaque_hold *hold);

void opaque_cache_put(struct opaque_hold *hold);

/* The descriptor, which stays the cache's. */
void opaque_cache_describe(const struct opaque_hold *hold, struct import_opaque *out);

/* Takes out the stale descriptors that touch the range, for all devices. */
void opaque_cache_drop_stale(struct opaque_caches *caches, uintptr_t address, size_t size);

/* Adds the numbers of all devices. */
void opaque_cache_add_stats(struct opaque_caches *caches, struct cache_stats *sum);

#endif
