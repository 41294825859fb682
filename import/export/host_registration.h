/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Registrations of host memory (climport_register()).
 *
 * Nouns.  A *registration* is of the whole pages of a range.  A registration has *users*, and lives
 * from the first climport_register() to the last climport_unregister(); no registration is idle.
 * Where the kernel module gdmabuf is loaded, the registration uses an entry of the registration cache
 * (registration.h): a dma-buf of the pages, and a status word in which the module tells when the
 * address gets other pages.  Elsewhere the registration is a *promise* of the program's that the
 * address keeps its pages.  A registration is *current* until the last user puts it, until
 * host_registration_invalidate(), and until the status word changes.
 *
 * A struct host_registration may be copied.  Code that keeps something of the pages, and is no
 * user, asks host_registration_is_current() before each use.  Thereby nothing outlives the promise.
 *
 * Look-ups share the table of the registration cache (import/cache/table.h), and take no lock where
 * they find a registration.  The cache itself does not suit promises: for a moment after the last
 * user, a concurrent look-up may still find an entry of the cache.  Here one word has the number
 * and the users of a registration.  The put that takes the last user out of the word comes before
 * every later look-up, which takes no user where there is none.
 *
 * Functions return 0 or a negative errno, logged, and may be called from any thread.  A child after
 * fork() has no registrations.
 */
#ifndef IMPORT_EXPORT_HOST_REGISTRATION_H
#define IMPORT_EXPORT_HOST_REGISTRATION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cache_stats;
struct host_slot;

/* Constant until the last user puts the registration; a copy may be kept longer. */
struct host_registration {
	uint64_t number; /* of no other registration; never 0 */
	uintptr_t base;	 /* whole pages */
	size_t size;
	const _Atomic uint32_t *status; /* NULL: a promise; never unmapped */
	uint32_t valid;			/* value of *@status while the pages are the address's */
	uint32_t process;		/* fork_generation() */
	int fd;				/* the dma-buf, the cache's; -1: a promise */
	struct host_slot *slot;		/* in the table; never freed */
};

/* Whether there may be registrations.  A load. */
bool host_registration_exists(void);

/* Finds a current registration that covers the range, and makes the caller a user. */
bool host_registration_find(uintptr_t address, size_t size, struct host_registration *out);

/* The same without a user.  @size is not 0. */
bool host_registration_look(uintptr_t address, size_t size, struct host_registration *out);

/*
 * Makes a registration of the range's pages, or of the cache's entry that covers the range, with the
 * caller as user.
 *
 * -EFAULT: part of the range is not mapped, or is beyond the end of the file that it maps.  -EACCES:
 * part is mapped without write access.  -EOPNOTSUPP: part is memory that no device pins.  -ENOMEM.
 * Or the module's.
 */
int host_registration_make(uintptr_t address, size_t size, struct host_registration *out);

/* The last user ends the registration.  A registration of a parent process is left. */
void host_registration_put(struct host_slot *slot, uint64_t number);

/*
 * Ends the registrations that touch the range; users keep descriptors until they put.  @size is not
 * 0.
 */
void host_registration_invalidate(uintptr_t address, size_t size);

/* Loads alone. */
bool host_registration_is_current(const struct host_registration *registration);

/*
 * @ended is called without locks when registrations end, before host_registration_put() and
 * host_registration_invalidate() return.  One function for the process.
 */
typedef void (*host_registration_ended_fn)(uintptr_t address, size_t size);
void host_registration_on_end(host_registration_ended_fn ended);

/* Adds hits and misses. */
void host_registration_add_stats(struct cache_stats *sum);

#endif
