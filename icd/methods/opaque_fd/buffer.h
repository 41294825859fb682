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
#include "util/publish.h"

/* The driver's answers. */
struct opaque_device {
	struct published published; /* first */
	cl_device_id id;
	unsigned char uuid[IMPORT_UUID_SIZE];
	uint64_t largest; /* bytes: of a buffer */
};

/* Lives until the process ends.  NULL: no memory, or the device has no UUID, or does not tell it now. */
const struct opaque_device *opaque_device_get(const struct device *device);

/**
 * opaque_fd_buffer - a buffer over the first @size bytes of a descriptor
 * @fd: stays the caller's
 *
 * Returns NULL, and @err is set and logged, if the driver makes no buffer.
 */
cl_mem opaque_fd_buffer(cl_context context, cl_mem_flags flags, int fd, size_t size, cl_int *err);

/**
 * opaque_fd_build - the buffer of an import
 * @device: of the context
 * @opaque: the place of @region in memory with a descriptor, or in a registration, which may get a
 *	    descriptor: the caller closes the descriptor in either case
 *
 * Returns CL_SUCCESS or an error, logged.
 */
cl_int opaque_fd_build(cl_context context, cl_mem_flags flags, const struct opaque_device *device,
		       struct import_region *region, struct import_opaque *opaque,
		       struct method_buffer *buffer);

#endif /* ICD_METHODS_OPAQUE_FD_BUFFER_H */
