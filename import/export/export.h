/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of this process as dma-bufs, by CUDA or by the kernel module. */
#ifndef IMPORT_EXPORT_EXPORT_H
#define IMPORT_EXPORT_EXPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cache_stats;

enum export_option {
	EXPORT_READ_ONLY = 1 << 0,
	EXPORT_KEEP = 1 << 1,
	EXPORT_MAPPABLE = 1 << 2,
	EXPORT_REVOCABLE = 1 << 3,
};

struct export_range {
	int fd;	       /* the caller's */
	size_t offset; /* of the range in it */
};

/* Returns 0 or a negative errno, logged, as climport_export_dmabuf() has them. */
int export_dmabuf(uintptr_t address, size_t size, unsigned int options, struct export_range *out);

/* Closes @count descriptors that are kept and in no use; false if there are none. */
bool export_give_up(uint32_t count);

/* The memory is about to be freed: its registrations go. */
void export_invalidate(uintptr_t address, size_t size);

/* How much EXPORT_KEEP keeps that nobody uses: of the host's memory, or of GPUs'. */
void export_set_limit(bool gpu, uint64_t bytes);

/* Of what EXPORT_KEEP keeps, and of the kernel module's exports; zeros if there were none. */
void export_stats(struct cache_stats *stats);

#endif
