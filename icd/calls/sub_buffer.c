/* SPDX-License-Identifier: Apache-2.0 */
/* Sub-buffers of imports: derive.h. */
#include "icd/calls/derive.h"
#include "icd/error.h"
#include "icd/intercept.h"
#include "icd/layer.h"
#include "icd/mem_flags.h"
#include "icd/methods/method.h"
#include "icd/objects/device.h"
#include "icd/objects/memobj_watch.h"
#include "util/cl_names.h"
#include "util/log.h"

#define SUB_BUFFER_DEVICES 64

/* Not every driver checks the range. */
static bool sub_buffer_is_within(const struct memobj *import, const cl_buffer_region *part)
{
	return part->origin <= import->region->size &&
	       part->size <= import->region->size - part->origin;
}

static cl_int sub_buffer_check(const struct memobj *parent, cl_buffer_create_type type,
			       const void *info)
{
	if (type != CL_BUFFER_CREATE_TYPE_REGION) {
		log_error("buffer_create_type %#x is not CL_BUFFER_CREATE_TYPE_REGION", type);
		return CL_INVALID_VALUE;
	}
	if (!info) {
		log_error("buffer_create_info is NULL: a sub-buffer has no region");
		return CL_INVALID_VALUE;
	}
	if (!sub_buffer_is_within(parent, info)) {
		log_error("the sub-buffer ends beyond the %zu bytes of its import",
			  parent->region->size);
		return CL_INVALID_VALUE;
	}
	return CL_SUCCESS;
}

/* The least alignment of the context's devices, of which one has to take the origin; 0: unknown. */
static size_t sub_buffer_align(cl_mem parent)
{
	cl_device_id devices[SUB_BUFFER_DEVICES];
	size_t size, least = 0;
	cl_context context;

	if (next.clGetMemObjectInfo(parent, CL_MEM_CONTEXT, sizeof(cl_context), &context, NULL) ||
	    next.clGetContextInfo(context, CL_CONTEXT_DEVICES, sizeof(devices), devices, &size))
		return 0;
	for (size_t i = 0; i < size / sizeof(cl_device_id); i++) {
		size_t align = device_base_align(devices[i]);

		if (!i || align < least)
			least = align;
	}
	return least;
}

/* A plane of a frame may begin anywhere, so a user has to know what the device wants. */
static void sub_buffer_log(const struct memobj *parent, const cl_buffer_region *region, cl_int err)
{
	const bool is_misaligned = region && err == CL_MISALIGNED_SUB_BUFFER_OFFSET;
	const size_t align = is_misaligned ? sub_buffer_align(parent->handle) : 0;

	if (!align) {
		error_of_driver("clCreateSubBuffer", err);
		return;
	}
	log_error(
		"CL_MISALIGNED_SUB_BUFFER_OFFSET: the origin %zu is no multiple of %zu bytes, the "
		"device's CL_DEVICE_MEM_BASE_ADDR_ALIGN",
		region->origin, align);
}

static cl_mem sub_buffer_by_driver(struct memobj *parent, cl_mem_flags flags,
				   cl_buffer_create_type type, const void *info, cl_int *err)
{
	cl_mem mem = next.clCreateSubBuffer(parent->handle, flags, type, info, err);

	if (is_created(mem, *err))
		return derive_record(mem, parent, ((const cl_buffer_region *)info)->origin, false,
				     err);
	sub_buffer_log(parent, info, *err);
	return mem;
}

/*
 * Not every driver checks the flags (PoCL 3.1).  The flags of a backing buffer allow what the import
 * excludes.
 */
static cl_int sub_buffer_check_flags(const struct memobj *parent, cl_mem_flags flags,
				     cl_mem_flags *from)
{
	cl_int err =
		next.clGetMemObjectInfo(parent->handle, CL_MEM_FLAGS, sizeof(*from), from, NULL);

	if (err) {
		error_of_driver("clGetMemObjectInfo", err);
		return err;
	}
	if (mem_flags_fit(flags, *from))
		return CL_SUCCESS;
	log_error("the sub-buffer's flags %s do not fit its import's, %s",
		  cl_mem_flags_names(flags),
		  cl_mem_flags_names(*from & ~(cl_mem_flags)CL_MEM_USE_HOST_PTR));
	return CL_INVALID_VALUE;
}

/*
 * If the import is a part of a backing buffer, so is the sub-buffer.  The driver does not know the
 * sub-buffer's parent, so the sub-buffer holds the parent.
 */
static cl_mem sub_buffer_of_hidden(struct memobj *parent, cl_mem_flags flags,
				   const cl_buffer_region *region, cl_int *err)
{
	cl_mem mem = parent->method->create_sub_buffer(parent->hidden, flags, region, err);

	mem = error_created_or_null("clCreateSubBuffer", mem, err);
	if (!mem)
		return NULL;
	*err = memobj_watch_part(mem, parent);
	if (!*err)
		return derive_record(mem, parent, region->origin, true, err);
	next.clReleaseMemObject(mem);
	return NULL;
}

static cl_mem sub_buffer_of_import(struct memobj *parent, cl_mem_flags flags,
				   cl_buffer_create_type type, const void *info, cl_int *err)
{
	cl_mem_flags from = 0;

	*err = sub_buffer_check(parent, type, info);
	if (!*err)
		*err = sub_buffer_check_flags(parent, flags, &from);
	if (*err)
		return NULL;
	if (parent->hidden)
		return sub_buffer_of_hidden(parent, mem_flags_inherit(flags, from), info, err);
	return sub_buffer_by_driver(parent, flags, type, info, err);
}

static cl_mem sub_buffer_create(struct memobj *parent, cl_mem_flags flags,
				cl_buffer_create_type type, const void *info, cl_int *err)
{
	if (parent->parent) { /* not every driver refuses */
		log_error("a sub-buffer and an image have no sub-buffers");
		*err = CL_INVALID_MEM_OBJECT;
		return NULL;
	}
	return sub_buffer_of_import(parent, flags, type, info, err);
}

cl_mem CL_API_CALL layer_clCreateSubBuffer(cl_mem buffer, cl_mem_flags flags,
					   cl_buffer_create_type type, const void *info,
					   cl_int *errcode_ret)
{
	struct memobj *parent = memobj_live() ? memobj_get(buffer) : NULL;
	cl_int err = CL_SUCCESS;
	cl_mem mem;

	if (!parent)
		return next.clCreateSubBuffer(buffer, flags, type, info, errcode_ret);
	log_clear();
	mem = sub_buffer_create(parent, derive_flags(parent->region, flags), type, info, &err);
	derive_notify(parent, "clCreateSubBuffer", err);
	memobj_put(parent);
	if (errcode_ret)
		*errcode_ret = err;
	return mem;
}
