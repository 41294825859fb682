/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a device was proved to do with memory from opaque descriptors.  The proof takes about a
 * second on a GPU, loads Vulkan and CUDA, and is made once for a device and driver: its result
 * is kept in the user's cache (result_cache.h), so that programs that import nothing do not pay.
 */
#ifndef ICD_METHODS_OPAQUE_FD_PROOF_H
#define ICD_METHODS_OPAQUE_FD_PROOF_H

#include <stdbool.h>

#include "icd/cl_compat.h"
#include "import/import.h"

#define IMPORT_MAKERS (IMPORT_BY_VULKAN + 1)

enum proof {
	PROOF_NONE,	   /* the maker is not there, or makes no descriptor of host memory */
	PROOF_COPIES,	   /* the device does not see the host's memory */
	PROOF_INVALIDATED, /* zero copy, where kernels are preceded by a refresh (invalidate.h) */
	PROOF_COHERENT,	   /* zero copy */
};

struct opaque_proof {
	enum proof by[IMPORT_MAKERS];
	unsigned char uuid[IMPORT_UUID_SIZE];
	size_t align;		     /* bytes: CL_DEVICE_MEM_BASE_ADDR_ALIGN */
	char why[IMPORT_TYPES][192]; /* sentences */
};

/*
 * False if nothing could be proved this time, for want of memory perhaps, or because that was not
 * kept and @may_compile is false.  Any thread.
 */
bool opaque_proof_get(cl_device_id device, bool may_compile, struct opaque_proof *proof);

#endif
