/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/methods/part.h"

#include <errno.h>
#include <stdlib.h>

#include "icd/layer.h"
#include "util/cl_names.h"
#include "util/log.h"

/* struct method_buffer's hidden. */
struct part {
	struct backing *backing; /* a user's */
	size_t offset;		 /* bytes from the backing buffer's first to the import's */
};

static bool part_is_short(cl_int err)
{
	return err > 0 || err == CL_OUT_OF_RESOURCES || err == CL_OUT_OF_HOST_MEMORY ||
	       err == CL_MEM_OBJECT_ALLOCATION_FAILURE;
}

bool part_retry(struct shortage_retry *retry, cl_int err)
{
	return shortage_retry(retry, part_is_short(err) ? -ENOMEM : 0);
}

cl_int part_refuse_offset(const struct import_region *region, size_t align)
{
	log_error("%zu bytes at %p: this device takes addresses that are multiples of %zu bytes",
		  region->size, region->addr, align);
	return CL_INVALID_OPERATION;
}

static cl_mem part_make(cl_mem backing, cl_mem_flags flags, size_t offset, size_t size, cl_int *err)
{
	const cl_buffer_region region = { offset, size };
	struct shortage_retry retry = { 0 };
	cl_mem part;

	do
		part = next.clCreateSubBuffer(backing, flags, CL_BUFFER_CREATE_TYPE_REGION, &region,
					      err);
	while (*err && part_retry(&retry, *err));
	return part;
}

cl_mem part_create_sub_buffer(void *hidden, cl_mem_flags flags, const cl_buffer_region *region,
			      cl_int *err)
{
	const struct part *part = hidden;

	return part_make(backing_mem(part->backing), flags, region->origin + part->offset,
			 region->size, err);
}

void part_release(void *hidden)
{
	struct part *part = hidden;

	backing_put(part->backing);
	free(part);
}

cl_mem part_buffer(void *hidden)
{
	return backing_mem(((struct part *)hidden)->backing);
}

size_t part_offset(const void *hidden)
{
	return hidden ? ((const struct part *)hidden)->offset : 0;
}

cl_int part_create(struct backing *backing, cl_mem_flags flags, size_t offset, size_t size,
		   struct method_buffer *buffer)
{
	struct part *part = malloc(sizeof(*part));
	cl_int err;

	if (!part) {
		log_error("no memory for the record of an import");
		return CL_OUT_OF_HOST_MEMORY;
	}
	buffer->handle = part_make(backing_mem(backing), flags, offset, size, &err);
	if (!is_created(buffer->handle, err)) {
		log_error("the driver makes no sub-buffer of an import's backing buffer: %s",
			  cl_error_name(err));
		free(part);
		return err ? err : CL_OUT_OF_RESOURCES;
	}
	*part = (struct part){ backing, offset };
	buffer->hidden = part;
	return CL_SUCCESS;
}

cl_int part_create_alone(cl_mem whole, cl_mem_flags flags, size_t offset, size_t size,
			 struct method_buffer *buffer)
{
	struct backing *backing = backing_create(whole);
	cl_int err = backing ? part_create(backing, flags, offset, size, buffer)
			     : CL_OUT_OF_HOST_MEMORY;

	if (err && backing)
		backing_put(backing);
	return err;
}
