/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Registrations of memory for drivers: a registration cache for each source of descriptors.
 *
 * A *registration* is a name for memory that stays what it is.  The layer makes a driver's buffer of
 * the memory once, keeps the buffer under the name, and drops the buffer when told to
 * (opaque_forget()).  The driver's buffers keep the memory in place.
 *
 * No descriptor is kept, neither here nor for an import that is alive.  Every open file of
 * /dev/nvidiactl has one identity (util/descriptor.h), and so have all opaque descriptors.  A
 * program that closes a number by mistake, or puts another file there, would have climport import
 * other memory, or close the program's file.  A descriptor is made for a driver's call, and closed
 * after the call.
 */
#ifndef IMPORT_OPAQUE_FD_OPAQUE_CACHE_H
#define IMPORT_OPAQUE_FD_OPAQUE_CACHE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "import/cache/cache.h"
#include "import/import.h"

/* The exporters of import_exporter_get(). */
enum opaque_exporter_id { OPAQUE_BY_CUDA, OPAQUE_BY_RM };

/*
 * Who pins the whole of a registration is refused, and tries again after twice as many imports as
 * before.  Zeroed at first.
 */
struct opaque_refusals {
	atomic_uint imports; /* since the last refusal */
	atomic_uint wait;    /* as many imports */
};

/* The number of a pin is the registration's name: struct import_opaque's @kept. */
struct opaque_source {
	struct cache_source cache; /* pins without descriptors */
	unsigned int exporter;
	enum import_share share; /* struct import_opaque's */
	/*
	 * A new descriptor of all of the memory for the device; 0 or a negative errno, logged.
	 * NULL: of the pin's pages, by RM.
	 */
	int (*open)(const struct cache_pin *pin, const unsigned char *uuid, int *fd);
	/* NULL: the memory is the host's. */
	bool (*is_on_device)(const struct cache_pin *pin);
	bool counts_refusals; /* the pin's data begins with struct opaque_refusals */
};

/* The cache of a source, for all devices.  Made with the first registration, never removed. */
struct opaque_cache {
	const struct opaque_source *source;
	struct cache_config config;
	void *_Atomic cache;		   /* starts NULL */
	struct opaque_cache *_Atomic next; /* opaque_cache.c's, as all below */
	atomic_bool is_untidy;
};

/* A reference to a registration. */
struct opaque_hold {
	struct opaque_cache *of; /* NULL: none */
	struct cache_ref ref;
};

/* NULL: nothing was ever registered. */
struct cache *opaque_cache_of(struct opaque_cache *of);

/* Finds a registration that covers the range. */
bool opaque_cache_find(struct opaque_cache *of, uintptr_t address, size_t size,
		       struct opaque_hold *hold);

/*
 * For an import that works without a registration, before opaque_cache_get(): whether the process
 * has the thread that the end of a hold may need.  Where no thread can be started, the process tries
 * again after twice as many imports as before.  0 or a negative errno, not logged.
 */
int opaque_cache_prepare(void);

/* Finds or makes a registration; @wanted is for the source.  0 or a negative errno. */
int opaque_cache_get(struct opaque_cache *of, uintptr_t address, size_t size, const void *wanted,
		     struct opaque_hold *hold);

/*
 * The registration stays.  If the registration has ended meanwhile, or is one too many, the idle
 * thread ends the registration soon: the caller may be a driver's callback, in which no function of
 * the driver may be called.
 */
void opaque_cache_put(struct opaque_hold *hold);

/* Whether the idle thread has registrations to end, or is ending some. */
bool opaque_cache_is_ending(struct opaque_cache *of);

/* opaque_cache_put() for a caller that may call the driver. */
void opaque_cache_put_now(struct opaque_hold *hold);

/* A name for a registration of host memory, apart from CUDA's buffer ids. */
uint64_t opaque_cache_name_host(void);

/* The registration, without a descriptor. */
void opaque_cache_describe(const struct opaque_hold *hold, struct import_opaque *out);

/* Whether to try the whole; counts the import.  opaque_cache_refuse(): the try was in vain. */
bool opaque_cache_is_due(const struct opaque_hold *hold);
void opaque_cache_refuse(const struct opaque_hold *hold);

/* See struct opaque_source. */
int opaque_cache_open(const struct opaque_hold *hold, const unsigned char *uuid, int *fd);

/*
 * Takes out the stale registrations that touch the range: no look-up finds them any more.  The
 * caller may be a driver's callback.  The idle thread ends them, for which the caller waits: not for long, since the driver may
 * wait for the end of its callback.
 */
void opaque_cache_drop_stale_by_idle(struct opaque_cache *of, uintptr_t address, size_t size);

/* The same for all registrations that touch the range. */
void opaque_cache_invalidate_by_idle(struct opaque_cache *of, uintptr_t address, size_t size);

/* Ends @count idle registrations; false: there is none. */
bool opaque_cache_make_room(struct opaque_cache *of, uint32_t count);

void opaque_cache_add_stats(struct opaque_cache *of, struct cache_stats *sum);

/*
 * Calls the function of import_on_forget(), if there is one; not once the process exits, when the
 * drivers of the function may have ended.
 */
void opaque_forget(uint64_t kept);
bool opaque_process_exits(void);

#endif
