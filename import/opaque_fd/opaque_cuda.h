/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opaque descriptors that CUDA makes.  Imports share a descriptor while an import holds it, by
 * caches that keep nothing idle: a descriptor keeps its memory allocated, whatever the owner frees.
 * climport_alloc() holds the descriptors of its memory.
 */
#ifndef IMPORT_OPAQUE_FD_OPAQUE_CUDA_H
#define IMPORT_OPAQUE_FD_OPAQUE_CUDA_H

#include "import/opaque_fd/opaque_cache.h"

struct cuda_range;

extern struct opaque_caches opaque_cuda_caches; /* @wanted: the struct cuda_range of the address */

/* Whether CUDA makes opaque descriptors of memory of the kind at @address. */
bool opaque_cuda_takes(const struct cuda_range *memory, uintptr_t address);

#endif
