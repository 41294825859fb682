/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exporters: who makes a dma-buf of memory of this process.  Each is a row in export.c's table.
 */
#ifndef IMPORT_EXPORT_EXPORTER_H
#define IMPORT_EXPORT_EXPORTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "import/export/export.h"
#include "import/export/origin.h"
#include "import/nvidia/cuda/cuda.h"

/* What to export.  The CUDA memory at @address is identified once, for all exporters. */
struct export_request {
	uintptr_t address;
	size_t size;
	unsigned int options;	  /* enum export_option */
	struct cuda_range memory; /* CUDA_NONE: not CUDA's */
};

enum export_outcome {
	EXPORT_DONE,	 /* the exporter took the memory: the error, if any, is the export's */
	EXPORT_DECLINED, /* for a later exporter; the last exporter's error is the export's */
};

struct exporter {
	const char *name;

	/* Whether the exporter is to try.  No side effect. */
	bool (*takes)(const struct export_request *request);

	/* @error: 0 with @out set, or a negative errno, logged. */
	enum export_outcome (*export)(const struct export_request *request,
				      struct export_range *out, int *error);
};

extern const struct exporter exporter_cuda;	    /* CUDA's device memory, by CUDA */
extern const struct exporter exporter_gdmabuf_cuda; /* CUDA's device memory, by the module */
extern const struct exporter exporter_udmabuf;	    /* memfds, without the module */
extern const struct exporter exporter_gdmabuf_host; /* memory of the host, by the module */
extern const struct exporter exporter_gdmabuf_gpu;  /* GPU memory unknown to CUDA, by the module */

/*
 * Passes a dma-buf of CUDA's device memory on, and remembers of what memory it is.  -EBADF, logged:
 * the program has closed the descriptor.
 */
int export_hand_out(const struct export_request *request, const struct export_range *made,
		    struct export_range *out);

/*
 * A dma-buf of CUDA's device memory, by the module.  -ENODEV: the memory at @address was freed
 * meanwhile.
 */
int exporter_gdmabuf_make_cuda(const struct cuda_range *memory, uintptr_t address, size_t size,
			       struct export_range *made);

#endif
