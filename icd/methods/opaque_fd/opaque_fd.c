/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The method opaque_fd: cl_khr_external_memory_opaque_fd, for devices with memory of their own.
 *
 * An exporter makes a descriptor of the memory (import/opaque_fd/opaque.c).  No document promises zero copy, so a
 * self-test decides, for each exporter, since the exporter decides whether the device caches the memory.
 *
 * A descriptor covers whole pages, or a whole allocation.  If an import starts further inside, the
 * import is a part of a backing buffer over the descriptor (objects/backing.h).
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include "icd/driver_info.h"
#include "icd/error.h"
#include "icd/layer.h"
#include "icd/methods/descriptor_buffer.h"
#include "icd/methods/opaque_fd/large.h"
#include "icd/methods/verify.h"
#include "icd/objects/backing.h"
#include "icd/objects/context.h"
#include "icd/objects/device.h"
#include "icd/objects/method.h"
#include "icd/selftest/session.h"
#include "util/log.h"
#include "util/shortage.h"

#define EXTENSION "cl_khr_external_memory_opaque_fd"
#define ROUNDS 256 /* by chance, other programs may evict the device's cache */

/* A device in the host's memory is served better by the memory's address. */
static bool opaque_fd_is_discrete(cl_device_id id)
{
	cl_bool unified = CL_TRUE;

	next.clGetDeviceInfo(id, CL_DEVICE_HOST_UNIFIED_MEMORY, sizeof(unified), &unified, NULL);
	return !unified;
}

/* A self-test, and VERIFY, make several buffers of one region: what keeps the memory is replaced. */
static int opaque_fd_import(struct import_region *region, const unsigned char *uuid,
			    struct import_opaque *out)
{
	struct opaque *opaque;
	int ret = import_opaque(region, uuid, &opaque, out);

	if (ret)
		return ret;
	if (region->opaque)
		region->opaque->put(region->opaque);
	region->opaque = opaque;
	return 0;
}

/* On a page of host memory.  A shortage says nothing about the exporter. */
static enum tested opaque_fd_test_exporter(struct device *device, const unsigned char *uuid,
					   unsigned int exporter)
{
	const struct context_import how = { .ops = &method_opaque_fd_ops,
					    .device = device,
					    .base_align = device->base_align };
	struct import_opaque opaque = { .fd = -1 };
	struct import_region *region;
	enum tested found;
	int ret = import_sample(exporter, uuid, &region);

	if (ret)
		return shortage_is(ret) ? UNTESTED : NO_SAMPLE;
	ret = opaque_fd_import(region, uuid, &opaque);
	found = shortage_is(ret) ? UNTESTED : NO_SAMPLE;
	if (!ret) {
		close(opaque.fd);
		device->facts.exporters |= 1u << exporter;
		found = session_judge(verify_memory(&how, &device->id, 1, region, ROUNDS));
		if (found != PASSED)
			device->facts.exporters &= ~(1u << exporter);
	}
	import_put(region);
	return found;
}

/* Exporters of any pages come first in the sentence. */
static bool opaque_fd_test_host(struct device *device, struct facts_type *answer)
{
	static const char *const says[] = {
		[UNTESTED] = "untested", [PASSED] = "zero copy by self-test", [FAILED] = "copied",
		[BROKEN] = "copied",	 [NO_SAMPLE] = "no descriptor",
	};
	enum tested found[IMPORT_EXPORTERS];
	size_t used = 0;

	if (!device->has_uuid) {
		device->facts.is_unknown |= has_word(device->extensions, "cl_khr_device_uuid");
		snprintf(answer->why, sizeof(answer->why), "the device has no CL_DEVICE_UUID_KHR");
		return false;
	}
	device->facts.exporters = 0;
	for (unsigned int i = 0; i < IMPORT_EXPORTERS; i++) {
		found[i] = opaque_fd_test_exporter(device, device->uuid, i);
		device->facts.is_unknown |= found[i] == UNTESTED;
		answer->is_reason |= found[i] == UNTESTED;
	}
	for (int i = IMPORT_EXPORTERS - 1; i >= 0 && used < sizeof(answer->why); i--)
		used += (size_t)snprintf(answer->why + used, sizeof(answer->why) - used, "%s%s: %s",
					 used ? "; " : "", import_exporter_get(i)->memory,
					 says[found[i]]);
	return device->facts.exporters;
}

/*
 * A dma-buf is taken as the mapped memory, or by the same descriptors: the answer for host memory holds.  If the
 * driver itself takes host memory, the test has not run yet.
 */
static bool opaque_fd_test(struct device *device, enum import_type type, struct facts_type *answer)
{
	const struct method_ops *host = device->ops[IMPORT_HOST];

	if (type == IMPORT_HOST || (host && !host->create))
		return opaque_fd_test_host(device, answer);
	snprintf(answer->why, sizeof(answer->why),
		 "made of this process's memory, or mapped by the CPU, as host memory: %.120s",
		 device->facts.type[IMPORT_HOST].why);
	answer->is_reason = device->facts.type[IMPORT_HOST].is_reason;
	return device->facts.exporters;
}

static bool opaque_fd_probe(struct device *device, enum import_type type, struct facts_type *answer)
{
	bool takes;

	if (!has_word(device->extensions, EXTENSION) || !opaque_fd_is_discrete(device->id) ||
	    !next.clCreateBufferWithProperties) {
		snprintf(answer->why, sizeof(answer->why), "a discrete device with %s is needed",
			 EXTENSION);
		return false;
	}
	answer->align = 1;
	takes = opaque_fd_test(device, type, answer);
	device->facts.is_best &= device->facts.exporters == (1u << IMPORT_EXPORTERS) - 1;
	return takes;
}

/*
 * Whether the device is proved to see memory with a descriptor of an exporter.  The self-test is about
 * the host's memory: nothing has to be proved of the device's own.
 */
static cl_int opaque_fd_check(const struct device *device, const struct import_opaque *opaque)
{
	if (device->facts.exporters & 1u << opaque->exporter || opaque->is_on_device)
		return CL_SUCCESS;
	log_error("no self-test has shown that memory exported by %s is zero copy on this "
		  "device: %s",
		  import_exporter_get(opaque->exporter)->name, device->facts.type[IMPORT_HOST].why);
	return device->facts.is_unknown ? CL_OUT_OF_RESOURCES : CL_INVALID_OPERATION;
}

static uint64_t opaque_fd_largest_buffer(cl_device_id device)
{
	cl_ulong bytes = 0;

	next.clGetDeviceInfo(device, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof(bytes), &bytes, NULL);
	return bytes ? bytes : UINT64_MAX;
}

/* A registration is imported whole, once, and for imports with any flags. */
static struct backing *opaque_fd_of_whole(cl_context context, const struct import_opaque *opaque,
					  cl_int *err)
{
	struct backing *backing = NULL;
	cl_mem mem;

	import_on_forget(backing_drop_memory);
	import_on_shortage(backing_give_up);
	mem = descriptor_buffer(context, CL_EXTERNAL_MEMORY_HANDLE_OPAQUE_FD_KHR, CL_MEM_READ_WRITE,
				opaque->fd, opaque->size, err);
	if (!*err) {
		backing = backing_create(mem);
		*err = backing ? CL_SUCCESS : CL_OUT_OF_HOST_MEMORY;
	}
	if (backing)
		backing_keep(backing, context, opaque->kept, opaque->share);
	if (!context_is_owned(context))
		backing_drop_context(context); /* released meanwhile */
	return backing;
}

/*
 * A driver takes buffers of a limited size.  The registration may be larger, and the import not: NULL
 * without an error if @opaque is of the import's pages now.
 */
static struct backing *opaque_fd_of_registration(cl_context context, struct import_region *region,
						 const unsigned char *uuid,
						 struct import_opaque *opaque, cl_int *err)
{
	const int whole = opaque->fd;
	struct backing *backing;

	log_hold();
	backing = opaque_fd_of_whole(context, opaque, err);
	if (*err && !import_opaque_open_part(region->opaque, uuid, opaque)) {
		close(whole);
		*err = CL_SUCCESS;
	}
	log_resume(*err);
	return backing;
}

/* A registration that no buffer can cover is not pinned: it may be hardly used memory. */
static cl_int opaque_fd_get_descriptor(cl_context context, const struct device *device,
				       struct import_region *region, struct import_opaque *opaque)
{
	bool may_keep = context_is_owned(context) && backing_may_keep(opaque->share);
	int ret = -EOPNOTSUPP;

	if (opaque->size > opaque_fd_largest_buffer(device->id))
		ret = import_opaque_open_part(region->opaque, device->uuid, opaque);
	if (ret == -EOPNOTSUPP)
		ret = import_opaque_open(region->opaque, device->uuid, may_keep, opaque);
	return error_to_cl(ret);
}

/* The kept buffer of a registration.  NULL without an error: there is none, and a descriptor for the import alone. */
static struct backing *opaque_fd_get_kept(cl_context context, const struct device *device,
					  struct import_region *region,
					  struct import_opaque *opaque, cl_int *err)
{
	struct backing *backing = backing_find(context, opaque->kept);

	*err = CL_SUCCESS;
	if (backing)
		return backing;
	*err = opaque_fd_get_descriptor(context, device, region, opaque);
	if (*err || !opaque->kept)
		return NULL;
	return opaque_fd_of_registration(context, region, device->uuid, opaque, err);
}

/*
 * @opaque: the place of @region in memory with a descriptor, or in a registration, which may get a descriptor: the caller
 * closes the descriptor in either case.
 */
static cl_int opaque_fd_build(cl_context context, cl_mem_flags flags, const struct device *device,
			      struct import_region *region, struct import_opaque *opaque,
			      struct method_buffer *buffer)
{
	struct backing *backing = NULL;
	cl_int err = CL_SUCCESS;
	cl_mem mem;

	if (opaque->fd < 0)
		backing = opaque_fd_get_kept(context, device, region, opaque, &err);
	if (err)
		return err;
	if (!backing) {
		mem = descriptor_buffer(context, CL_EXTERNAL_MEMORY_HANDLE_OPAQUE_FD_KHR, flags,
					opaque->fd, opaque->offset + region->size, &err);
		/* An import that is the whole buffer hides nothing. */
		if (err || !opaque->offset) {
			buffer->handle = mem;
			return err;
		}
		return backing_import_alone(mem, flags, opaque->offset, region->size, buffer);
	}
	err = backing_import(backing, flags, opaque->offset, region->size, buffer);
	if (err)
		backing_put(backing);
	return err;
}

/* The driver's buffer keeps the memory. */
static cl_int opaque_fd_create(cl_context context, const struct context_import *how,
			       cl_mem_flags flags, struct import_region *region,
			       struct method_buffer *buffer)
{
	const struct device *device = how->device;
	struct import_opaque opaque;
	int ret = opaque_fd_import(region, device->uuid, &opaque);
	cl_int err;

	if (ret)
		return error_to_cl(ret);
	err = backing_check_offset(region, opaque.offset, how->base_align);
	if (!err)
		err = large_check(device, &opaque);
	if (!err)
		err = opaque_fd_check(device, &opaque);
	if (!err)
		err = opaque_fd_build(context, flags, device, region, &opaque, buffer);
	if (opaque.fd >= 0)
		close(opaque.fd);
	return err;
}

/* Whether one of @exporters, a bit for each, takes any pages of the host. */
static bool opaque_fd_takes_pages(unsigned int exporters)
{
	for (unsigned int id = 0; id < IMPORT_EXPORTERS; id++)
		if (exporters & 1u << id && !import_exporter_get(id)->has_device_memory)
			return true;
	return false;
}

static void opaque_fd_describe(const struct device *device, enum import_type type,
			       struct device_description *memory)
{
	const bool takes_pages = opaque_fd_takes_pages(device->facts.exporters);

	memory->by_uuid = true;
	memory->address_align = device->base_align;
	memory->by_uuid_alone = !takes_pages;
	if (takes_pages && type == IMPORT_HOST)
		memory->kept = import_describe_kept();
}

/*
 * NVIDIA's driver (580) makes 1D images on such imports and refuses every kernel with such an image,
 * so imports have no images.  The driver crashes in many migrations of such a buffer, and the driver's
 * markers wait for their list on queues of any order.
 */
const struct method_ops method_opaque_fd_ops = {
	.name = "opaque_fd",
	.probe = opaque_fd_probe,
	.create = opaque_fd_create,
	.context_release = backing_drop_context,
	.describe = opaque_fd_describe,
	.quirks = METHOD_MARKERS_WAIT | METHOD_NO_CALLS_IN_CALLBACKS | METHOD_NO_CONTEXT_CALLBACKS,
	.extension = EXTENSION,
	.cpu_optional = true,
};
