/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/methods/host_ptr.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "icd/driver_info.h"
#include "icd/layer.h"
#include "icd/methods/image_create.h"
#include "icd/objects/backing.h"
#include "icd/objects/context.h"
#include "icd/objects/device.h"
#include "icd/objects/memobj.h"
#include "icd/selftest/selftest.h"
#include "util/cl_names.h"
#include "util/log.h"

/* Without /proc the layer could check no import. */
static bool host_ptr_can_check_memory(void)
{
	char own = 0;
	const struct import_desc desc = {
		.type = IMPORT_HOST, .memory = &own, .size = sizeof(own), .access = IMPORT_READ
	};
	struct import_region *region;
	int ret = import_get(&desc, &region);

	if (!ret)
		import_put(region);
	return ret != -EIO;
}

static bool host_ptr_refuse(struct facts_type *answer, const char *why)
{
	snprintf(answer->why, sizeof(answer->why), "%s", why);
	return false;
}

/* False: no test would help, or no test can run now. */
static bool host_ptr_is_testable(struct device *device, struct facts_type *answer)
{
	const cl_version version = device_version(device->id);
	const bool can_check = host_ptr_can_check_memory();

	device->facts.is_unknown |= !can_check || !version;
	if (!can_check)
		return host_ptr_refuse(
			answer, "host memory cannot be checked: /proc/self/maps cannot be read");
	if (!version)
		return host_ptr_refuse(answer, "the device's version cannot be read");
	if (version < CL_MAKE_VERSION(1, 1, 0))
		return host_ptr_refuse(
			answer, "OpenCL 1.0 does not tell when a buffer's memory is no more used");
	return true;
}

static bool host_ptr_test(struct device *device, struct facts_type *answer)
{
	struct facts *facts = &device->facts;
	enum tested found;

	if (!host_ptr_is_testable(device, answer))
		return false;
	found = selftest_host_rule(device->id, &facts->rule, answer->why, sizeof(answer->why));
	answer->align = facts->rule.align;
	facts->is_best &= facts->rule.own_address && answer->align == 1;
	facts->is_unknown |= found == UNTESTED;
	return found == PASSED;
}

/*
 * A mapped dma-buf is taken as the mapped memory, so the answer for host memory holds.  If
 * another method takes host memory, the test has not run yet.
 */
static bool host_ptr_probe(struct device *device, enum import_type type, struct facts_type *answer)
{
	const struct method_ops *host = device->ops[IMPORT_HOST];

	if (type == IMPORT_HOST || (host && host != &method_host_ptr_ops))
		return host_ptr_test(device, answer);
	*answer = device->facts.type[IMPORT_HOST];
	return host;
}

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

static cl_int host_ptr_create(cl_context context, const struct context_import *how,
			      cl_mem_flags flags, struct import_region *region,
			      struct method_buffer *buffer)
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

static void host_ptr_describe(const struct device *device, enum import_type type,
			      struct device_description *memory)
{
	(void)type;
	if (device->base_align < memory->address_align)
		memory->address_align = device->base_align;
	memory->size_align = 1;
}

/* Kernels that see the host's own addresses have nothing to copy to. */
static bool host_ptr_shares(const struct device *device)
{
	return device->facts.rule.own_address;
}

/* In the bracket of a dma-buf commands wait for user events (access.h). */
void host_ptr_refuse_events(struct facts *facts, const char *why)
{
	struct facts_type *answer = &facts->type[IMPORT_DMABUF];

	strcpy(answer->method, "-");
	snprintf(answer->why, sizeof(answer->why),
		 "commands that wait for user events, or their callbacks, %s on this device, so "
		 "dma-bufs cannot be kept consistent",
		 why);
}

void host_ptr_test_events(struct device *device)
{
	const enum tested found = selftest_user_event(device->id);

	if (found == PASSED)
		return;
	device->ops[IMPORT_DMABUF] = NULL;
	device->facts.is_unknown |= found == UNTESTED;
	device->facts.is_best = false;
	host_ptr_refuse_events(&device->facts,
			       found == UNTESTED ? "could not be tested" : "do not work");
}

const struct method_ops method_host_ptr_ops = {
	.name = "host_ptr",
	.probe = host_ptr_probe,
	.create = host_ptr_create,
	.shares = host_ptr_shares,
	.create_image = image_create,
	.images = IMAGE_OF_BUFFER,
	.describe = host_ptr_describe,
};
