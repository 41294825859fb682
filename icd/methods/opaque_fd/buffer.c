/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/methods/opaque_fd/buffer.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "icd/error.h"
#include "icd/layer.h"
#include "icd/objects/backing.h"
#include "icd/objects/context.h"
#include "util/cl_names.h"
#include "util/descriptor.h"
#include "util/log.h"
#include "util/shortage.h"

static struct publish_list opaque_devices;

static bool opaque_device_is_of(const void *device, const void *id)
{
	return ((const struct opaque_device *)device)->id == id;
}

static uint64_t opaque_largest_buffer(cl_device_id device)
{
	cl_ulong bytes = 0;

	next.clGetDeviceInfo(device, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof(bytes), &bytes, NULL);
	return bytes ? bytes : UINT64_MAX;
}

const struct opaque_device *opaque_device_get(const struct device *device)
{
	struct opaque_device *found =
		publish_find(&opaque_devices, opaque_device_is_of, device->id);
	struct opaque_device *mine = found ? NULL : calloc(1, sizeof(*mine));

	if (!mine)
		return found;
	mine->id = device->id;
	mine->largest = opaque_largest_buffer(device->id);
	if (next.clGetDeviceInfo(device->id, CL_DEVICE_UUID_KHR, IMPORT_UUID_SIZE, mine->uuid,
				 NULL)) {
		free(mine);
		return NULL;
	}
	found = publish_add(&opaque_devices, mine, opaque_device_is_of, device->id);
	if (found != mine)
		free(mine);
	return found;
}

static cl_mem buffer_of_descriptor(cl_context context, cl_mem_flags flags, int fd, size_t size,
				   cl_int *err)
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
		return mem; /* the driver closes the descriptor with the buffer (NVIDIA 580) */
	/* NVIDIA's driver may return an object and, with it, a positive error number of CUDA's. */
	if (mem && *err > 0)
		next.clReleaseMemObject(mem);
	close(own);
	log_error("the driver makes no buffer of %zu bytes from an opaque descriptor: %s", size,
		  cl_error_name(*err));
	return NULL;
}

cl_mem opaque_fd_buffer(cl_context context, cl_mem_flags flags, int fd, size_t size, cl_int *err)
{
	struct shortage_retry retry = { 0 };
	cl_mem mem;

	log_hold();
	do
		mem = buffer_of_descriptor(context, flags, fd, size, err);
	while (*err && backing_retry(&retry, *err));
	log_resume(*err);
	if (*err > 0)
		*err = CL_INVALID_OPERATION;
	return mem;
}

/* A registration is imported whole, once, and for imports with any flags. */
static struct backing *buffer_of_whole(cl_context context, const struct import_opaque *opaque,
				       cl_int *err)
{
	struct backing *backing = NULL;
	cl_mem mem;

	import_on_forget(backing_drop_memory);
	import_on_shortage(backing_give_up);
	mem = opaque_fd_buffer(context, CL_MEM_READ_WRITE, opaque->fd, opaque->size, err);
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
static struct backing *buffer_of_registration(cl_context context, struct import_region *region,
					      const unsigned char *uuid,
					      struct import_opaque *opaque, cl_int *err)
{
	const int whole = opaque->fd;
	struct backing *backing;

	log_hold();
	backing = buffer_of_whole(context, opaque, err);
	if (*err && !import_opaque_open_part(region->opaque, uuid, opaque)) {
		close(whole);
		*err = CL_SUCCESS;
	}
	log_resume(*err);
	return backing;
}

/* A registration that no buffer can cover is not pinned: it may be hardly used memory. */
static cl_int buffer_get_descriptor(cl_context context, const struct opaque_device *device,
				    struct import_region *region, struct import_opaque *opaque)
{
	bool may_keep = context_is_owned(context) && backing_may_keep(opaque->share);
	int ret = -EOPNOTSUPP;

	if (opaque->size > device->largest)
		ret = import_opaque_open_part(region->opaque, device->uuid, opaque);
	if (ret == -EOPNOTSUPP)
		ret = import_opaque_open(region->opaque, device->uuid, may_keep, opaque);
	return error_to_cl(ret);
}

/* The kept buffer of a registration.  NULL without an error: there is none, and a descriptor for the import alone. */
static struct backing *buffer_get_kept(cl_context context, const struct opaque_device *device,
				       struct import_region *region, struct import_opaque *opaque,
				       cl_int *err)
{
	struct backing *backing = backing_find(context, opaque->kept);

	*err = CL_SUCCESS;
	if (backing)
		return backing;
	*err = buffer_get_descriptor(context, device, region, opaque);
	if (*err || !opaque->kept)
		return NULL;
	return buffer_of_registration(context, region, device->uuid, opaque, err);
}

cl_int opaque_fd_build(cl_context context, cl_mem_flags flags, const struct opaque_device *device,
		       struct import_region *region, struct import_opaque *opaque,
		       struct method_buffer *buffer)
{
	struct backing *backing = NULL;
	cl_int err = CL_SUCCESS;
	cl_mem mem;

	if (opaque->fd < 0)
		backing = buffer_get_kept(context, device, region, opaque, &err);
	if (err)
		return err;
	if (!backing) {
		mem = opaque_fd_buffer(context, flags, opaque->fd, opaque->offset + region->size,
				       &err);
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
