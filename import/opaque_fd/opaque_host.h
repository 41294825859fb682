/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host memory whose registration stays after the imports: to pin is most of an import's cost, and
 * pages that are pinned already need no pin.
 *
 * A registration is kept as long as a watcher says that the pages are those that were pinned
 * (watcher.h), and an import has used the registration in the last one or two seconds.  The first
 * import of a range registers nothing (recent.h).  Memory of any kind is kept as long as the
 * program registers the memory (opaque_registered.h).  Other memory is pinned for each import.
 *
 * Limits are for registrations that no import uses, of all devices together.  fork() ends such
 * registrations before the process is copied.
 *
 * The idle thread ends registrations for the functions below, which wait for the end, but not for
 * long: their callers may be inside of the driver.
 */
#ifndef IMPORT_OPAQUE_FD_OPAQUE_HOST_H
#define IMPORT_OPAQUE_FD_OPAQUE_HOST_H

#include "import/opaque_fd/opaque_cache.h"

/*
 * Finds or makes a registration of the pages of [@address, @address + @size), which the program may
 * write.  Returns 0; or a negative errno, not logged, if the range is not kept: the caller pins for
 * itself.  Nothing is pinned here.
 */
int opaque_host_get(uintptr_t address, size_t size, struct opaque_hold *hold);

/*
 * Finds a registration that a watcher vouches for: the memory is the memory of the first import, which
 * found out what memory it is.  False as well for memory that the program registers, as
 * opaque_host_get() prefers the program's registration.
 */
bool opaque_host_find(uintptr_t address, size_t size, struct opaque_hold *hold);

/*
 * The most registrations, and driver's buffers of them, that no import uses.  0: the program has no
 * descriptors to spare.
 */
uint32_t opaque_host_most_idle(void);

/* A name for a registration, apart from CUDA's buffer ids. */
uint64_t opaque_host_name(void);

/* struct opaque_source's open(): pins all of the registration's pages. */
int opaque_host_open(const struct cache_pin *pin, const unsigned char *uuid, int *fd);

/* Ends @count registrations that no import uses, the program's too; false: there is none. */
bool opaque_host_make_room(uint32_t count);

/* Ends the registrations that touch the range, before the memory is freed; not the program's. */
void opaque_host_invalidate(uintptr_t address, size_t size);

/* Ends the registrations that no import uses; not the program's. */
void opaque_host_drop_idle(void);

/* Limits below climport's own; a limit of 0 keeps nothing. */
void opaque_host_set_limits(uint64_t bytes, uint64_t entries);

void opaque_host_add_stats(struct cache_stats *sum);

#endif
