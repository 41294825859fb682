/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opaque descriptors of host pages that stay after their imports: to pin is most of an import's
 * cost, and what pinned once need not pin again.
 *
 * A descriptor is kept while a watcher says that the pages are those that were pinned (watcher.h).
 * Memory of any kind is kept as long as the program registers it (opaque_registered.h).  Other
 * memory is pinned for each import.
 */
#ifndef IMPORT_OPAQUE_FD_OPAQUE_HOST_H
#define IMPORT_OPAQUE_FD_OPAQUE_HOST_H

#include "import/opaque_fd/opaque_cache.h"

/*
 * Finds or makes a descriptor of the pages of [@address, @address + @size), which the program may
 * write.  Returns 0; or a negative errno if the range cannot be kept: the caller pins for itself.
 */
int opaque_host_get(const unsigned char uuid[IMPORT_UUID_SIZE], uintptr_t address, size_t size,
		    struct opaque_hold *hold);

/* A new descriptor of whole pages, for a cache of kept descriptors. */
int opaque_host_export(const unsigned char *uuid, uintptr_t base, size_t size, int *fd,
		       struct opaque_made *made);

/* Adds the numbers of all devices. */
void opaque_host_add_stats(struct cache_stats *sum);

#endif
