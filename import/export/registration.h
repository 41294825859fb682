/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Registrations: allocations of CUDA's device memory that stay exported as dma-bufs, for messages
 * (climport_register()) and for exports to come (CLIMPORT_KEEP).
 *
 * One registration cache of the process holds them.  A registration is of a whole allocation, and
 * serves every range in the allocation.  At each hit the cache checks that the allocation has not
 * been freed: by the status word of the kernel module, or by CUDA's buffer id.
 */
#ifndef IMPORT_EXPORT_REGISTRATION_H
#define IMPORT_EXPORT_REGISTRATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "import/cache/cache.h"
#include "import/export/host_registration.h"

struct export_range;
struct export_request;

/* A reference to a registration. */
struct registration {
	struct cache_ref
		ref; /* pin->fd is the dma-buf, and stays the cache's; pin NULL: host memory */
	struct host_registration host;
};

enum registration_by {
	REGISTRATION_BY_CUDA,	/* -EOPNOTSUPP where CUDA makes no dma-buf */
	REGISTRATION_BY_ANYONE, /* the kernel module where CUDA makes no dma-buf */
};

/*
 * Whether @request's range can be registered.  A range of several allocations cannot: no check at a
 * hit says that all allocations are still there.  Nor can memory that has no buffer id.
 */
bool registration_can_keep(const struct export_request *request);

/*
 * Finds the registration that covers the range.  No error, and no call of a driver but the check.
 */
bool registration_find(uintptr_t address, size_t size, struct registration *registration);

/* Finds or makes the registration.  Errors as climport_register() has them, logged. */
int registration_get(const struct export_request *request, enum registration_by by,
		     struct registration *registration);

void registration_put(struct registration *registration);

/* A name for a registration, of any kind of memory. */
uint64_t registration_next_number(void);

/*
 * A duplicate of the registration's descriptor, as an export.  -ESTALE, not logged: the program has
 * closed the descriptor, and may have another file at the number.
 */
int registration_export(const struct registration *registration, struct export_range *out);

/* Ends the registrations that touch the range; users keep their references. */
void registration_invalidate(uintptr_t address, size_t size);

/* Ends the registrations of freed memory that touch the range. */
void registration_drop_stale(uintptr_t address, size_t size);

/* The most registrations without users. */
void registration_set_limits(uint64_t bytes, uint64_t entries);

/* Ends the registrations without users. */
void registration_drop_idle(void);

/* Zeros before the first registration. */
void registration_stats(struct cache_stats *stats);

#endif
