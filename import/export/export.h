/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of this process as dma-bufs, by CUDA or by the kernel module. */
#ifndef IMPORT_EXPORT_EXPORT_H
#define IMPORT_EXPORT_EXPORT_H

#include "import/cache/cache.h"
#include "import/export/exporter.h"
#include "import/export/host_registration.h"

/* What export_register() gives to the program. */
struct registration {
	struct cache_ref
		ref; /* pin->fd is the dma-buf, and stays the cache's; pin NULL: host memory */
	struct host_registration host;
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
