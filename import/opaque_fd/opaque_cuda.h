/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opaque descriptors that CUDA makes.  A descriptor keeps its memory allocated, whatever the owner
 * frees, so CUDA makes a descriptor for each import.  Memory of climport_alloc() is registered:
 * imports find the driver's buffer of the memory.
 */
#ifndef IMPORT_OPAQUE_FD_OPAQUE_CUDA_H
#define IMPORT_OPAQUE_FD_OPAQUE_CUDA_H

#include "import/opaque_fd/opaque_cache.h"

struct cuda_range;

/* The registrations of opaque_hold(). */
extern struct opaque_cache opaque_cuda_cache;

/*
 * Keeps CUDA memory registered until opaque_release(), which comes before the memory is freed:
 * imports of a part of the memory find the registration.
 */
int opaque_hold(const unsigned char uuid[IMPORT_UUID_SIZE], uintptr_t address, size_t size,
		struct opaque_hold *hold);
void opaque_release(struct opaque_hold *hold);

/* Whether CUDA makes opaque descriptors of memory of the kind at @address. */
bool opaque_cuda_takes(const struct cuda_range *memory, uintptr_t address);

/* A descriptor of @memory, the caller's, and the place of the range in the descriptor's memory. */
int opaque_cuda_export(const unsigned char *uuid, const struct cuda_range *memory,
		       uintptr_t address, size_t size, struct import_opaque *out);

#endif
