/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Backing buffers: hidden buffers, of which imports are parts.
 *
 * A driver may take whole pages alone, or the whole of a descriptor.  If an import begins or ends
 * inside, the driver gets a *backing buffer* over the whole, which is hidden, and the application
 * gets a sub-buffer.  The layer answers for offset and parent as if the backing buffer did not exist
 * (calls/mem_object.c), and sub-buffers of the import are made from the backing buffer.
 *
 * A sub-buffer begins at a multiple of CL_DEVICE_MEM_BASE_ADDR_ALIGN, and so does such an import.
 *
 * A backing buffer over memory that stays registered (climport_alloc()'s, and the host's pages that the
 * kernel module watches or the program has registered) is kept for the next import of a part of the memory:
 * a driver may make a buffer in 40 us and more, and pin the host's pages, and a sub-buffer in less
 * than a microsecond.  A context has one backing buffer of a registration, whatever the flags of the
 * imports: flags of a sub-buffer may be stricter than the flags of its buffer.
 *
 * A backing buffer is kept until the registration ends, or the application releases the context.  A
 * context that a queue alone keeps alive has none: nobody would say when to drop the buffer.
 *
 * Each buffer that is kept has a descriptor of the process.  A buffer that no import uses is *idle*.
 * No more buffers are idle, in all contexts together, than import_share_most() says: a new buffer
 * takes the place of the least recently used.  If the buffers that go were of no use, new buffers
 * take places more and more rarely: a program may import more registrations in turn than can be kept.
 */
#ifndef ICD_OBJECTS_BACKING_H
#define ICD_OBJECTS_BACKING_H

#include <stdbool.h>
#include <stdint.h>

#include "icd/cl_compat.h"
#include "import/import.h"
#include "util/shortage.h"

struct backing;
struct method_buffer;

/* Takes over a reference to @mem, for one user.  NULL, logged: no memory, and @mem is released. */
struct backing *backing_create(cl_mem mem);

/* The buffer, as long as the user's. */
cl_mem backing_mem(const struct backing *backing);

/* The buffer of @memory in @context, with one more user; or NULL. */
struct backing *backing_find(cl_context context, uint64_t memory);

/* To be asked before a buffer is made that is to be kept. */
bool backing_may_keep(enum import_share share);

/* Keeps the buffer when its users have gone, unless another buffer is kept for the two. */
void backing_keep(struct backing *backing, cl_context context, uint64_t memory,
		  enum import_share share);

/* Ends a use. */
void backing_put(struct backing *backing);

/* Drops the buffers of a context, which the application releases. */
void backing_drop_context(cl_context context);

/* The registration ends: the memory is about to be freed, or was unmapped. */
void backing_drop_memory(uint64_t memory);

/* Drops @count idle buffers; false: no buffer is idle. */
bool backing_give_up(uint32_t count);

/* CL_INVALID_OPERATION, logged: an import at @offset of a backing buffer can be no part. */
cl_int backing_refuse_offset(const struct import_region *region, size_t align);

static inline cl_int backing_check_offset(const struct import_region *region, size_t offset,
					  size_t align)
{
	return offset % align ? backing_refuse_offset(region, align) : CL_SUCCESS;
}

/* A sub-buffer of the buffer, or NULL and the driver's error. */
cl_mem backing_create_part(const struct backing *backing, cl_mem_flags flags, size_t offset,
			   size_t size, cl_int *err);

/**
 * backing_import - the buffer of an import, as a part of @backing
 * @backing: a user's; taken over on success
 *
 * Returns CL_SUCCESS or an error, logged.
 */
cl_int backing_import(struct backing *backing, cl_mem_flags flags, size_t offset, size_t size,
		      struct method_buffer *buffer);

/* The same as a part of @whole alone, which is taken over. */
cl_int backing_import_alone(cl_mem whole, cl_mem_flags flags, size_t offset, size_t size,
			    struct method_buffer *buffer);

/*
 * For an object of a driver that was not made, with @err: whether room was made for another try.  A
 * driver may give errors that OpenCL does not define: any may come of a lack of memory, descriptors
 * or addresses.
 */
bool backing_retry(struct shortage_retry *retry, cl_int err);

#endif
