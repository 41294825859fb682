/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cl_khr_external_memory_opaque_fd, for devices with memory of their own (NVIDIA's).  The
 * descriptor comes from CUDA or, for any host memory, from Vulkan (import/opaque_fd/opaque.c).  Nothing
 * promises that this is zero copy: only the self-test decides, for each maker of descriptors.
 *
 * The import is a buffer from the descriptor's first byte on.  Memory that begins later is a
 * sub-buffer of that; the application does not see the difference.
 */
#include <stdint.h>
#include <stdio.h>

#include "icd/error.h"
#include "icd/layer.h"
#include "icd/methods/method.h"
#include "icd/methods/opaque_fd/backing.h"
#include "icd/methods/opaque_fd/buffer.h"
#include "icd/methods/opaque_fd/invalidate.h"
#include "icd/methods/opaque_fd/proof.h"
#include "util/log.h"

#define EXTENSION "cl_khr_external_memory_opaque_fd"

/* Devices that share the host's memory are better served by its address. */
static bool is_discrete(cl_device_id id)
{
	cl_bool unified = CL_TRUE;

	next.clGetDeviceInfo(id, CL_DEVICE_HOST_UNIFIED_MEMORY, sizeof(unified), &unified, NULL);
	return !unified;
}

static bool opaque_fd_probe(const struct device *device, const char *extensions,
			    enum import_type type, struct method *method)
{
	struct opaque_proof proof;

	if (!has_word(extensions, EXTENSION) || !is_discrete(device->id) ||
	    !next.clCreateBufferWithProperties) {
		snprintf(method->why, sizeof(method->why), "a discrete device with %s is needed",
			 EXTENSION);
		return false;
	}
	method->align = 1; /* known when the descriptor is: opaque_fd_create() */
	method->untested = !opaque_proof_get(device->id, device->may_compile, &proof);
	snprintf(method->why, sizeof(method->why), "%s", proof.why[type]);
	return proof.by[IMPORT_BY_VULKAN] >= PROOF_INVALIDATED ||
	       proof.by[IMPORT_BY_CUDA] >= PROOF_INVALIDATED;
}

/* The context's device, root of sub-devices; NULL if there are several. */
static const struct device *only_device(cl_context context)
{
	cl_device_id ids[64];
	const struct device *device = NULL;
	size_t size = 0;

	if (next.clGetContextInfo(context, CL_CONTEXT_DEVICES, sizeof(ids), ids, &size))
		return NULL;
	for (size_t i = 0; i < size / sizeof(ids[0]); i++) {
		const struct device *d = device_get(ids[i]);

		if (device && d != device) {
			log_error("an opaque descriptor is for one device, this context has %zu",
				  size / sizeof(ids[0]));
			return NULL;
		}
		device = d;
	}
	return device;
}

/* CUDA's dma-bufs of a device's memory have no CPU mapping. */
static bool is_on_device(const struct import_region *region, enum import_maker maker)
{
	return maker == IMPORT_BY_CUDA && !region->addr;
}

/* Whether the device was proved to take what this maker made; attaches the refresh it needs. */
static cl_int attach_invalidate(cl_context context, const struct opaque_proof *proof,
				enum import_maker maker, struct import_region *region)
{
	if (proof->by[maker] == PROOF_COHERENT || is_on_device(region, maker))
		return CL_SUCCESS;
	if (proof->by[maker] == PROOF_INVALIDATED)
		return error_to_cl(invalidate_get(context, proof->uuid, &region->invalidate));
	log_error("memory with a descriptor of %s is not zero copy on this device: %s",
		  maker == IMPORT_BY_CUDA ? "CUDA" : "Vulkan", proof->why[IMPORT_HOST]);
	return CL_INVALID_OPERATION;
}

static cl_int check_offset(const struct import_region *region, size_t offset, size_t align)
{
	if (!(offset % align))
		return CL_SUCCESS;
	log_error("%zu bytes at %p: this device takes addresses that are multiples of %zu bytes",
		  region->size, region->addr, align);
	return CL_INVALID_OPERATION;
}

static cl_int opaque_fd_create(cl_context context, cl_mem_flags flags, struct import_region *region,
			       struct method_buffer *buffer)
{
	const struct device *device = only_device(context);
	struct import_opaque opaque;
	struct opaque_proof proof;
	cl_int err;

	if (!device)
		return CL_INVALID_OPERATION;
	if (!opaque_proof_get(device->id, true, &proof))
		return CL_OUT_OF_RESOURCES;
	err = error_to_cl(import_opaque(region, proof.uuid, &opaque));
	if (!err)
		err = check_offset(region, opaque.offset, proof.align);
	if (!err)
		err = attach_invalidate(context, &proof, opaque.maker, region);
	return err ? err : opaque_fd_build(context, flags, &opaque, region->size, buffer);
}

static void opaque_fd_context_release(cl_context context)
{
	backing_drop_context(context);
	invalidate_drop_context(context);
}

/*
 * NVIDIA's driver (580) makes 1D images on such imports and refuses every kernel that uses them,
 * so there are no images.  The driver crashes in many migrations of such a buffer, and the driver's
 * markers wait for their list on queues of any order.
 */
const struct method_ops method_opaque_fd_ops = {
	.name = "opaque_fd",
	.probe = opaque_fd_probe,
	.create = opaque_fd_create,
	.create_sub_buffer = opaque_fd_create_sub_buffer,
	.release_hidden = opaque_fd_release_hidden,
	.context_release = opaque_fd_context_release,
	.quirks = METHOD_MARKERS_WAIT,
	.cpu_optional = true,
};
