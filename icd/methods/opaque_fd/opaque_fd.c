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
#include <string.h>
#include <unistd.h>

#include "icd/error.h"
#include "icd/layer.h"
#include "icd/methods/method.h"
#include "icd/methods/opaque_fd/backing.h"
#include "icd/methods/opaque_fd/invalidate.h"
#include "icd/methods/opaque_fd/proof.h"
#include "util/descriptor.h"
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
	log_error("memory that %s made a descriptor of is not zero copy on this device: %s",
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

cl_mem opaque_fd_buffer(cl_context context, cl_mem_flags flags, int fd, size_t size, cl_int *err)
{
	const int own = descriptor_duplicate(fd);
	const cl_mem_properties properties[] = {
		CL_EXTERNAL_MEMORY_HANDLE_OPAQUE_FD_KHR,
		(cl_mem_properties)own,
		0,
	};
	cl_mem mem;

	if (own < 0) {
		*err = CL_OUT_OF_RESOURCES;
		return NULL;
	}
	mem = next.clCreateBufferWithProperties(context, properties, flags, size, NULL, err);
	if (!*err)
		return mem; /* with the descriptor: the driver closes it (NVIDIA 580) */
	/* NVIDIA's driver gives an object and an error, which is CUDA's. */
	if (mem)
		next.clReleaseMemObject(mem);
	close(own);
	log_error("the driver makes no buffer of %zu bytes from an opaque descriptor: error %d",
		  size, *err);
	*err = *err > 0 ? CL_INVALID_OPERATION : *err;
	return NULL;
}

/* A part of the root, which the application takes for a buffer of its own. */
static cl_mem opaque_fd_part_of(cl_mem root, cl_mem_flags flags, size_t offset, size_t size,
				cl_int *err)
{
	const cl_buffer_region region = { offset, size };

	return next.clCreateSubBuffer(root, flags, CL_BUFFER_CREATE_TYPE_REGION, &region, err);
}

/* Memory that stays is imported whole, and once. */
static cl_mem kept_root(cl_context context, cl_mem_flags flags, const struct import_opaque *opaque,
			cl_int *err)
{
	cl_mem root = backing_find(context, opaque->kept, flags);

	*err = CL_SUCCESS;
	if (root)
		return root;
	import_on_forget(backing_drop_memory);
	root = opaque_fd_buffer(context, flags, opaque->fd, opaque->size, err);
	if (!*err)
		backing_keep(context, opaque->kept, flags, root);
	return root;
}

static cl_int opaque_fd_build(cl_context context, cl_mem_flags flags,
			      const struct import_opaque *opaque, size_t size, struct built *built)
{
	cl_mem root;
	cl_int err;

	if (opaque->kept)
		root = kept_root(context, flags, opaque, &err);
	else
		root = opaque_fd_buffer(context, flags, opaque->fd, opaque->offset + size, &err);
	if (err)
		return err;
	if (!opaque->offset && !opaque->kept) {
		built->handle = root;
		return CL_SUCCESS;
	}
	built->handle = opaque_fd_part_of(root, flags, opaque->offset, size, &err);
	if (err) {
		log_error("the driver makes no part of a buffer: error %d", err);
		next.clReleaseMemObject(root);
		return err;
	}
	built->root = root;
	built->offset = opaque->offset;
	return CL_SUCCESS;
}

static cl_int opaque_fd_create(cl_context context, cl_mem_flags flags, struct import_region *region,
			       struct built *built)
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
	return err ? err : opaque_fd_build(context, flags, &opaque, region->size, built);
}

const struct method_ops method_opaque_fd_ops = {
	.name = "opaque_fd",
	.probe = opaque_fd_probe,
	.create = opaque_fd_create,
	.cpu_optional = true,
};
