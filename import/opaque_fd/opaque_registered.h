/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host memory that the program has registered (climport_register()): kept for any kind of memory
 * from the first import to the last climport_unregister(), or until the registration's status word
 * says that the address has other pages.  A driver's buffer is of all of the registration, for its
 * parts.
 */
#ifndef IMPORT_OPAQUE_FD_OPAQUE_REGISTERED_H
#define IMPORT_OPAQUE_FD_OPAQUE_REGISTERED_H

#include "import/opaque_fd/opaque_cache.h"

/*
 * Finds or makes a registration of the pages.  Returns 0; or a negative errno, not logged: the caller
 * pins for itself.  -ENOENT: no registration of the program's covers the range.
 */
int opaque_registered_get(uintptr_t address, size_t size, struct opaque_hold *hold);

/* Whether a registration of the program covers the range. */
bool opaque_registered_has(uintptr_t address, size_t size);

/* See opaque_cache_make_room(). */
bool opaque_registered_make_room(uint32_t count);

void opaque_registered_add_stats(struct cache_stats *sum);

#endif
