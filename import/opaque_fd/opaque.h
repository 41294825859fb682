/* SPDX-License-Identifier: Apache-2.0 */
/* How a region becomes an opaque descriptor: see import_opaque() in import.h. */
#ifndef IMPORT_OPAQUE_FD_OPAQUE_H
#define IMPORT_OPAQUE_FD_OPAQUE_H

#include "import/cache/cache.h"
#include "import/import.h"

struct opaque;

/* @opaque is set on success; drop it with opaque_put(). */
int opaque_get(const struct import_region *region, const unsigned char uuid[IMPORT_UUID_SIZE],
	       struct opaque **opaque, struct import_opaque *out);

/* @opaque may be NULL. */
void opaque_put(struct opaque *opaque);

/*
 * CUDA memory that stays registered until opaque_release(), which comes before it is freed:
 * imports of a part of it find it.
 */
struct opaque_hold {
	struct cache *cache;
	struct cache_ref ref;
};

int opaque_hold(const unsigned char uuid[IMPORT_UUID_SIZE], uintptr_t address, size_t size,
		struct opaque_hold *hold);
void opaque_release(struct opaque_hold *hold);

/* See import_on_forget(). */
typedef void (*opaque_forget_fn)(uint64_t kept);
void opaque_on_forget(opaque_forget_fn forget);

/* The sum of all devices. */
void opaque_stats(struct cache_stats *sum);

#endif
