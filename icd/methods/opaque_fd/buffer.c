/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/methods/opaque_fd/buffer.h"

#include <errno.h>
#include <unistd.h>

#include "icd/error.h"
#include "icd/layer.h"
#include "icd/methods/descriptor_buffer.h"
#include "icd/objects/backing.h"
#include "icd/objects/context.h"
#include "util/log.h"

static uint64_t opaque_largest_buffer(cl_device_id device)
{
	cl_ulong bytes = 0;

	next.clGetDeviceInfo(device, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof(bytes), &bytes, NULL);
	return bytes ? bytes : UINT64_MAX;
}

/* A registration is imported whole, once, and for imports with any flags. */
static struct backing *buffer_of_whole(cl_context context, const struct import_opaque *opaque,
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
static cl_int buffer_get_descriptor(cl_context context, const struct device *device,
				    struct import_region *region, struct import_opaque *opaque)
{
	bool may_keep = context_is_owned(context) && backing_may_keep(opaque->share);
	int ret = -EOPNOTSUPP;

	if (opaque->size > opaque_largest_buffer(device->id))
		ret = import_opaque_open_part(region->opaque, device->uuid, opaque);
	if (ret == -EOPNOTSUPP)
		ret = import_opaque_open(region->opaque, device->uuid, may_keep, opaque);
	return error_to_cl(ret);
}

/* The kept buffer of a registration.  NULL without an error: there is none, and a descriptor for the import alone. */
static struct backing *buffer_get_kept(cl_context context, const struct device *device,
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

cl_int opaque_fd_build(cl_context context, cl_mem_flags flags, const struct device *device,
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
