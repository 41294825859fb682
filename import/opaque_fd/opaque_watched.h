/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host memory that the kernel module gdmabuf watches: the pages stay pinned from import to import,
 * because most of an import's cost is to pin and unpin.  The program asks for nothing.
 *
 * A registration begins with the second import of a range, and ends when no import has used it for
 * one or two seconds, soon after the address has got other pages, and before fork().  The module's
 * status word says at each import whether the address still has the pinned pages.  Without the module
 * each import pins for itself.
 *
 * Limits are for registrations that no import uses, of all devices together.
 *
 * The idle thread ends registrations for the functions below.  They wait for it, but not for long:
 * their callers may be inside of the driver.
 */
#ifndef IMPORT_OPAQUE_FD_OPAQUE_WATCHED_H
#define IMPORT_OPAQUE_FD_OPAQUE_WATCHED_H

#include "import/opaque_fd/opaque_cache.h"

/* Finds a registration: the memory is still what the first import found there.  Loads alone. */
bool opaque_watched_find(uintptr_t address, size_t size, struct opaque_hold *hold);

/*
 * Finds or makes a registration of the pages of [@address, @address + @size), which the program may
 * write.  Returns 0; or a negative errno, for a caller that holds the log: the caller pins for
 * itself.  Nothing is pinned here.
 */
int opaque_watched_get(uintptr_t address, size_t size, struct opaque_hold *hold);

/*
 * The most registrations, and driver's buffers of them, that no import uses.  0: the program has no
 * descriptors to spare.
 */
uint32_t opaque_watched_most_idle(void);

/* Ends @count registrations that no import uses; false: there is none. */
bool opaque_watched_make_room(uint32_t count);

/* Ends the registrations that touch the range, before the memory is freed. */
void opaque_watched_invalidate(uintptr_t address, size_t size);

/* Ends the registrations that no import uses. */
void opaque_watched_drop_idle(void);

/* Limits below climport's own; a limit of 0 keeps nothing. */
void opaque_watched_set_limits(uint64_t bytes, uint64_t entries);

void opaque_watched_add_stats(struct cache_stats *sum);

#endif
