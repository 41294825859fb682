/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opaque descriptors of host memory that the program has registered (climport_register()): kept for
 * any kind of memory from the first import to the last climport_unregister(), or until the
 * registration's status word says that the address has other pages.  A descriptor is of all of the
 * registration, for its parts.
 */
#ifndef IMPORT_OPAQUE_FD_OPAQUE_REGISTERED_H
#define IMPORT_OPAQUE_FD_OPAQUE_REGISTERED_H

#include "import/opaque_fd/opaque_cache.h"

/* As opaque_host_get().  -ENOENT, not logged: no registration covers the range. */
int opaque_registered_get(const unsigned char uuid[IMPORT_UUID_SIZE], uintptr_t address,
			  size_t size, struct opaque_hold *hold);

/* Adds the numbers of all devices. */
void opaque_registered_add_stats(struct cache_stats *sum);

#endif
