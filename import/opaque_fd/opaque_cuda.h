/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opaque descriptors that CUDA makes.  Imports share a descriptor while an import holds it, by a
 * registration cache for each device that keeps nothing idle: a descriptor keeps its memory
 * allocated, whatever the owner frees.  climport_alloc() holds the descriptors of its memory.
 */
#ifndef IMPORT_OPAQUE_FD_OPAQUE_CUDA_H
#define IMPORT_OPAQUE_FD_OPAQUE_CUDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "import/cache/cache.h"
#include "import/import.h"

struct cuda_range;

/* A reference to a descriptor for one device. */
struct opaque_hold {
	struct cache *cache; /* NULL: none */
	struct cache_ref ref;
};

/* Whether CUDA makes opaque descriptors of memory of the kind at @address. */
bool opaque_cuda_takes(const struct cuda_range *memory, uintptr_t address);

/* Finds a descriptor that covers the range. */
bool opaque_cuda_find(const unsigned char uuid[IMPORT_UUID_SIZE], uintptr_t address, size_t size,
		      struct opaque_hold *hold);

/* Finds or makes a descriptor; @memory: of @address.  0 or a negative errno, logged. */
int opaque_cuda_get(const unsigned char uuid[IMPORT_UUID_SIZE], const struct cuda_range *memory,
		    uintptr_t address, size_t size, struct opaque_hold *hold);

void opaque_cuda_put(struct opaque_hold *hold);

/* The descriptor, which stays the cache's. */
void opaque_cuda_describe(const struct opaque_hold *hold, struct import_opaque *out);

#endif
