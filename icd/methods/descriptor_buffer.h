/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers of file descriptors: cl_khr_external_memory. */
#ifndef ICD_METHODS_DESCRIPTOR_BUFFER_H
#define ICD_METHODS_DESCRIPTOR_BUFFER_H

#include "icd/cl_compat.h"

/**
 * descriptor_buffer - a buffer over the first @size bytes of a descriptor's memory
 * @handle_type: CL_EXTERNAL_MEMORY_HANDLE_*
 * @fd: stays the caller's.  The specification gives a descriptor to the driver, so each buffer gets a
 *	duplicate, not below 3, since Intel's driver takes descriptor 0 for none
 *
 * Returns NULL, and @err is set and logged, if the driver makes no buffer.
 */
cl_mem descriptor_buffer(cl_context context, cl_mem_properties handle_type, cl_mem_flags flags,
			 int fd, size_t size, cl_int *err);

#endif /* ICD_METHODS_DESCRIPTOR_BUFFER_H */
