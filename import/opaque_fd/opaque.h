/* SPDX-License-Identifier: Apache-2.0 */
/* Regions as opaque descriptors: import_opaque() and what follows it in import.h, and what import/ itself calls. */
#ifndef IMPORT_OPAQUE_FD_OPAQUE_H
#define IMPORT_OPAQUE_FD_OPAQUE_H

#include "import/import.h"
#include "import/opaque_fd/opaque_cache.h"

struct opaque;

/* @opaque may be NULL. */
void opaque_put(struct opaque *opaque);

/*
 * Keeps CUDA memory registered until opaque_release(), which comes before the memory is freed:
 * imports of a part of the memory find the registration.
 */
int opaque_hold(const unsigned char uuid[IMPORT_UUID_SIZE], uintptr_t address, size_t size,
		struct opaque_hold *hold);
void opaque_release(struct opaque_hold *hold);

/*
 * Calls the function of import_on_forget(), if there is one; not once the process exits, when the drivers of the
 * function may have ended.
 */
void opaque_forget(uint64_t kept);

/* The sum of all registrations. */
void opaque_stats(struct cache_stats *sum);

#endif
