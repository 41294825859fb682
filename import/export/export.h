/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of this process as dma-bufs, by CUDA or by the kernel module. */
#ifndef IMPORT_EXPORT_EXPORT_H
#define IMPORT_EXPORT_EXPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cache_stats;
struct registration;

enum export_option {
	EXPORT_READ_ONLY = 1 << 0,
	EXPORT_KEEP = 1 << 1,
	EXPORT_MAPPABLE = 1 << 2,
};

struct export_range {
	int fd;	       /* the caller's */
	size_t offset; /* of the range in it */
	size_t whole;  /* size of the dma-buf */
};

/* Returns 0 or a negative errno, logged, as climport_export_dmabuf() has them. */
int export_dmabuf(uintptr_t address, size_t size, unsigned int options, struct export_range *out);

/* The registration that covers the range, as climport_register() has the errors.  A miss. */
int export_register(uintptr_t address, size_t size, struct registration *registration);
void export_unregister(struct registration *registration);

/* Before the memory is freed: ends the registrations of the range. */
void export_invalidate(uintptr_t address, size_t size);

/* Counts registrations; zeros before the first. */
void export_stats(struct cache_stats *stats);

#endif
