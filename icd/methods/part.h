/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Imports that are parts of a backing buffer.
 *
 * A driver may take whole pages alone, or the whole of a descriptor.  If an import begins or ends
 * inside, the driver gets a *backing buffer* over the whole, which is hidden, and the application
 * gets a sub-buffer.  The layer answers for offset and parent as if the backing buffer did not exist
 * (calls/mem_object.c), and sub-buffers of the import are made from the backing buffer.
 *
 * A sub-buffer begins at a multiple of CL_DEVICE_MEM_BASE_ADDR_ALIGN, and so does such an import.
 */
#ifndef ICD_METHODS_PART_H
#define ICD_METHODS_PART_H

#include "icd/methods/backing.h"
#include "icd/objects/method.h"
#include "util/shortage.h"

/* CL_INVALID_OPERATION, logged: an import at @offset of a backing buffer can be no part. */
cl_int part_refuse_offset(const struct import_region *region, size_t align);

static inline cl_int part_check_offset(const struct import_region *region, size_t offset,
				       size_t align)
{
	return offset % align ? part_refuse_offset(region, align) : CL_SUCCESS;
}

/**
 * part_create - the buffer of an import, as a part of @backing
 * @backing: a user's; taken over on success
 *
 * Returns CL_SUCCESS or an error, logged.
 */
cl_int part_create(struct backing *backing, cl_mem_flags flags, size_t offset, size_t size,
		   struct method_buffer *buffer);

/* The same as a part of @whole alone, which is taken over. */
cl_int part_create_alone(cl_mem whole, cl_mem_flags flags, size_t offset, size_t size,
			 struct method_buffer *buffer);

/* See struct method_ops. */
cl_mem part_create_sub_buffer(void *hidden, cl_mem_flags flags, const cl_buffer_region *region,
			      cl_int *err);
void part_release(void *hidden);
cl_mem part_buffer(void *hidden);

/* Bytes from the backing buffer's first to the import's; @hidden: NULL, the import is no part. */
size_t part_offset(const void *hidden);

/*
 * For an object of a driver that was not made, with @err: whether room was made for another try.  A
 * driver may give errors that OpenCL does not define: any may come of a lack of memory, descriptors
 * or addresses.
 */
bool part_retry(struct shortage_retry *retry, cl_int err);

#endif /* ICD_METHODS_PART_H */
