/* SPDX-License-Identifier: Apache-2.0 */
/* What the exporters get and give. */
#ifndef IMPORT_EXPORT_EXPORTER_H
#define IMPORT_EXPORT_EXPORTER_H

#include <stddef.h>
#include <stdint.h>

#include "import/nvidia/cuda/cuda.h"

enum export_option {
	EXPORT_READ_ONLY = 1 << 0,
	EXPORT_KEEP = 1 << 1,
	EXPORT_MAPPABLE = 1 << 2,
};

/* What to export.  The CUDA memory at @address is identified once, for all exporters. */
struct export_request {
	uintptr_t address;
	size_t size;
	unsigned int options;	  /* enum export_option */
	struct cuda_range memory; /* CUDA_NONE: not CUDA's */
};

struct export_range {
	int fd;	       /* the caller's */
	size_t offset; /* of the range in it */
	size_t whole;  /* size of the dma-buf */
};

/* Whether udmabuf is to try, and not the module. */
bool exporter_udmabuf_takes(const struct export_request *request);

/* Memfds.  -ENOENT, not logged: the range is of no memfd of the process. */
int exporter_udmabuf_export(const struct export_request *request, struct export_range *out);

#endif
