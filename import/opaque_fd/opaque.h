/* SPDX-License-Identifier: Apache-2.0 */
/* Regions as opaque descriptors: see import_opaque() in import.h. */
#ifndef IMPORT_OPAQUE_FD_OPAQUE_H
#define IMPORT_OPAQUE_FD_OPAQUE_H

#include "import/import.h"
#include "import/opaque_fd/opaque_cache.h"

struct opaque;

/* @opaque is set on success; drop it with opaque_put().  @out has a descriptor, or @kept. */
int opaque_get(const struct import_region *region, const unsigned char uuid[IMPORT_UUID_SIZE],
	       struct opaque **opaque, struct import_opaque *out);

/* See import_opaque_open(). */
int opaque_open(struct opaque *opaque, const unsigned char uuid[IMPORT_UUID_SIZE], bool may_keep,
		struct import_opaque *out);

/* See import_opaque_open_part(). */
int opaque_open_part(struct opaque *opaque, const unsigned char uuid[IMPORT_UUID_SIZE],
		     struct import_opaque *out);

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
 * See import_on_forget().  opaque_forget() calls @forget, if there is one, for @kept; not once the
 * process exits, when the drivers of @forget may have ended.
 */
typedef void (*opaque_forget_fn)(uint64_t kept);
void opaque_on_forget(opaque_forget_fn forget);
void opaque_forget(uint64_t kept);

/* See import_on_shortage(), import_share_most(). */
void opaque_on_shortage(bool (*give_up)(uint32_t count));
unsigned int opaque_share_most(enum import_share share);

/* The sum of all registrations. */
void opaque_stats(struct cache_stats *sum);

#endif
