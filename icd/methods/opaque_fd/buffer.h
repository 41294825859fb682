/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Driver buffers from opaque descriptors (cl_khr_external_memory_opaque_fd).
 *
 * A descriptor covers whole pages, or a whole allocation.  If an import starts further inside, the
 * import is a part of a backing buffer over the descriptor (objects/backing.h).
 */
#ifndef ICD_METHODS_OPAQUE_FD_BUFFER_H
#define ICD_METHODS_OPAQUE_FD_BUFFER_H

#include "icd/objects/device.h"
#include "icd/objects/method.h"

/**
 * opaque_fd_build - the buffer of an import
 * @device: of the context
 * @opaque: the place of @region in memory with a descriptor, or in a registration, which may get a
 *	    descriptor: the caller closes the descriptor in either case
 *
 * Returns CL_SUCCESS or an error, logged.
 */
cl_int opaque_fd_build(cl_context context, cl_mem_flags flags, const struct device *device,
		       struct import_region *region, struct import_opaque *opaque,
		       struct method_buffer *buffer);

#endif /* ICD_METHODS_OPAQUE_FD_BUFFER_H */
