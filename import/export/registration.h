/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Registrations: memory that stays exported as dma-bufs, for messages (climport_register()) and for
 * exports to come (CLIMPORT_KEEP).
 *
 * A registration cache holds those of each kind, with a descriptor for each.  A registration of a
 * GPU's memory is of a whole allocation, and serves every range in the allocation; one of host
 * memory is of whole pages.  At each hit the cache checks that the address still means the memory:
 * by CUDA's buffer id, or by the kernel module's watch of host memory.
 */
#ifndef IMPORT_EXPORT_REGISTRATION_H
#define IMPORT_EXPORT_REGISTRATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "import/cache/cache.h"
#include "import/export/exporter.h"

enum registration_kind {
	REGISTRATION_BY_CUDA,	/* a GPU's memory: CUDA's dma-buf, which no CPU maps */
	REGISTRATION_BY_MODULE, /* a GPU's memory */
	REGISTRATION_OF_HOST,	/* by the module */
	REGISTRATION_KINDS,
};

/*
 * Whether @request's range of a GPU's memory can be registered.  A range of several allocations
 * cannot: no check at a hit says that all allocations are still there.  Nor can memory that has no
 * buffer id.
 */
bool registration_can_keep(const struct export_request *request);

/*
 * Finds a registration of one of the kinds @first to @last that covers the range.  No error, and no
 * call of a driver but the check.
 */
bool registration_find(enum registration_kind first, enum registration_kind last, uintptr_t address,
		       size_t size, struct cache_ref *ref);

/*
 * Finds or makes the registration.  Errors as climport_register() has them, logged;
 * REGISTRATION_BY_CUDA: -EOPNOTSUPP where CUDA makes no dma-buf.
 */
int registration_get(enum registration_kind kind, const struct export_request *request,
		     struct cache_ref *ref);

void registration_put(struct cache_ref *ref);

/*
 * A dma-buf of CUDA's device memory, by the module.  -ENODEV: the memory at @address was freed
 * meanwhile.
 */
int registration_export_by_module(const struct cuda_range *memory, uintptr_t address, size_t size,
				  struct export_range *made);

/* A name for a registration, of any kind of memory. */
uint64_t registration_next_number(void);

/*
 * A duplicate of the registration's descriptor, as an export.  -ESTALE, not logged: the program has
 * closed the descriptor, and may have another file at the number.
 */
int registration_export(const struct cache_ref *ref, struct export_range *out);

/* An export of a registration, which is found or made. */
int registration_export_kept(enum registration_kind kind, const struct export_request *request,
			     struct export_range *out);

/* Ends the registrations that touch the range; users keep their references. */
void registration_invalidate(uintptr_t address, size_t size);

/* Ends the registrations of freed memory that touch the range. */
void registration_drop_stale(uintptr_t address, size_t size);

/* The most registrations without users: of GPUs' memory, or of the host's. */
void registration_set_limits(bool gpu, uint64_t bytes, uint64_t entries);

/* Ends the registrations without users. */
void registration_drop_idle(void);

void registration_add_stats(struct cache_stats *sum);

#endif
