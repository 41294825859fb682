/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/methods/host_ptr/buffer.h"

#include <stdint.h>

#include "icd/layer.h"
#include "icd/objects/backing.h"
#include "icd/objects/context.h"
#include "icd/objects/device.h"
#include "icd/objects/memobj.h"
#include "util/cl_names.h"
#include "util/log.h"

/* The memory of the driver's buffer. */
struct host_ptr_memory {
	unsigned char *addr;
	size_t size;
	size_t offset; /* bytes from the buffer's first to the import's */
	bool is_whole; /* the import is the whole buffer */
};

/* The range of whole units of @align bytes around the region. */
static struct host_ptr_memory host_ptr_enclose(const struct import_region *region, size_t align)
{
	unsigned char *const addr = region->addr;
	const size_t offset = (uintptr_t)addr & (align - 1),
		     size = (offset + region->size + align - 1) & ~(align - 1);

	return (struct host_ptr_memory){ addr - offset, size, offset, size == region->size };
}

static cl_int host_ptr_make(cl_context context, cl_mem_flags flags,
			    const struct host_ptr_memory *memory, cl_mem *buffer)
{
	cl_int err = CL_SUCCESS;

	*buffer = next.clCreateBuffer(context, flags | CL_MEM_USE_HOST_PTR, memory->size,
				      memory->addr, &err);
	if (is_created(*buffer, err))
		return CL_SUCCESS;
	log_error("the driver makes no buffer of %zu bytes: %s", memory->size, cl_error_name(err));
	return err ? err : CL_OUT_OF_RESOURCES;
}

/* The region is held until the driver has destroyed the backing buffer, the last object. */
static cl_int host_ptr_create_part(cl_context context, cl_mem_flags flags,
				   struct import_region *region,
				   const struct host_ptr_memory *memory,
				   struct method_buffer *buffer)
{
	cl_mem whole;
	cl_int err = host_ptr_make(context, flags, memory, &whole);

	if (err)
		return err;
	err = memobj_hold_until_destroyed(whole, region);
	if (err) {
		next.clReleaseMemObject(whole);
		return err;
	}
	return backing_import_alone(whole, flags, memory->offset, region->size, buffer);
}

cl_int host_ptr_create(cl_context context, const struct context_import *how, cl_mem_flags flags,
		       struct import_region *region, struct method_buffer *buffer)
{
	struct host_ptr_memory memory;
	cl_int err = CL_SUCCESS;

	if (!region->addr) {
		log_error("the dma-buf has no CPU mapping");
		return CL_INVALID_OPERATION;
	}
	memory = host_ptr_enclose(region, how->align);
	if (!memory.is_whole)
		err = backing_check_offset(region, memory.offset, how->base_align);
	/* Several devices have one method only if nothing but the alignment counts: context_is_shared(). */
	if (!err)
		err = host_rule_check(&how->device->facts.rule, region->kinds, flags, memory.addr,
				      memory.size);
	if (err)
		return err;
	return memory.is_whole ? host_ptr_make(context, flags, &memory, &buffer->handle)
			       : host_ptr_create_part(context, flags, region, &memory, buffer);
}

/* By the rule of each device. */
cl_int host_ptr_check(const struct context *context, unsigned int kinds, cl_mem_flags flags,
		      const void *addr, size_t size)
{
	const cl_device_id *ids;
	const size_t count = context_devices(context, &ids);
	cl_int err = CL_SUCCESS;

	for (size_t i = 0; i < count && !err; i++)
		err = host_rule_check(&device_get(ids[i], FACTS_KEPT)->facts.rule, kinds, flags,
				      addr, size);
	return err;
}
