/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory objects that are made from imports: sub-buffers, and images by the method that took the
 * import.  Such an object is an import, too: the extension forbids the same calls, and objects from a
 * read-only dma-buf are read-only.
 *
 * A call that goes to the driver unchanged returns handle and error of the driver.
 */
#include "icd/calls/derive.h"

#include <stdlib.h>

#include "icd/calls/properties.h"
#include "icd/driver_info.h"
#include "icd/error.h"
#include "icd/intercept.h"
#include "icd/mem_flags.h"
#include "icd/objects/backing.h"
#include "icd/objects/context.h"
#include "icd/objects/device.h"
#include "icd/objects/memobj_watch.h"
#include "icd/objects/method.h"
#include "util/cl_names.h"
#include "util/log.h"

/* Records @mem as made from @parent.  On failure @mem is released and NULL returned. */
static cl_mem derive_record(cl_mem mem, struct memobj *parent, size_t origin, bool hides_parent,
			    cl_mem_properties *properties, cl_int *err)
{
	struct memobj *obj = malloc(sizeof(*obj));

	*err = CL_OUT_OF_HOST_MEMORY;
	if (obj) {
		*obj = (struct memobj){
			.handle = mem,
			.context = parent->context,
			.region = parent->region,
			.origin = parent->origin + origin,
			.external = parent->external,
			.properties = properties,
			.parent = parent,
			.method = parent->method,
			.hides_parent = hides_parent,
		};
		*err = memobj_add(obj);
	} else {
		log_error("no memory to keep track of a sub-buffer or image of an import");
	}
	if (!*err)
		return mem;
	free(obj);
	next.clReleaseMemObject(mem);
	return NULL;
}

/* Puts @parent.  An error is told to the callback of its context. */
static cl_mem derive_end(struct memobj *parent, const char *function, cl_mem mem, cl_int err,
			 cl_int *errcode_ret)
{
	if (err)
		context_notify(parent->context, function, err);
	memobj_put(parent);
	if (errcode_ret)
		*errcode_ret = err;
	return mem;
}

/*
 * The mode of a dma-buf's descriptor takes precedence over the flags of derived objects.
 * CL_MEM_WRITE_ONLY stays, and does not fit the import's CL_MEM_READ_ONLY.
 */
static cl_mem_flags derive_flags(const struct import_region *region, cl_mem_flags flags)
{
	return region->wanted & ~region->access && !(flags & CL_MEM_WRITE_ONLY)
		       ? flags_restrict(flags, region->access)
		       : flags;
}

/* Not every driver checks the parent and the range. */
static cl_int sub_buffer_check(const struct memobj *parent, cl_buffer_create_type type,
			       const cl_buffer_region *part)
{
	const size_t size = parent->region->size;

	if (parent->parent) {
		log_error("a sub-buffer and an image have no sub-buffers");
		return CL_INVALID_MEM_OBJECT;
	}
	if (type != CL_BUFFER_CREATE_TYPE_REGION)
		log_error("buffer_create_type %#x is not CL_BUFFER_CREATE_TYPE_REGION", type);
	else if (!part)
		log_error("buffer_create_info is NULL: a sub-buffer has no region");
	else if (part->origin > size || part->size > size - part->origin)
		log_error("the sub-buffer ends beyond the %zu bytes of its import", size);
	else
		return CL_SUCCESS;
	return CL_INVALID_VALUE;
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

/* The alignment of a device of the context, none of which has taken the origin; 0: unknown. */
static size_t sub_buffer_align(cl_context handle)
{
	struct context *context = context_get(handle);
	const cl_device_id *devices;
	size_t align = context && context_devices(context, &devices) ? device_base_align(devices[0])
								     : 0;

	context_put(context);
	return align;
}

/* A plane of a frame may begin anywhere, so a user has to know what the device wants. */
static void sub_buffer_log(const struct memobj *parent, size_t origin, cl_int err)
{
	const size_t align =
		err == CL_MISALIGNED_SUB_BUFFER_OFFSET ? sub_buffer_align(parent->context) : 0;

	if (align)
		log_error("CL_MISALIGNED_SUB_BUFFER_OFFSET: the origin %zu is no multiple of %zu "
			  "bytes, the device's CL_DEVICE_MEM_BASE_ADDR_ALIGN",
			  origin, align);
	else
		error_of_driver("clCreateSubBuffer", err);
}

/*
 * If the import is a part of a backing buffer, so is the sub-buffer.  The driver does not know the
 * sub-buffer's parent, so the sub-buffer holds the parent.
 */
static cl_mem sub_buffer_of_hidden(struct memobj *parent, cl_mem_flags flags,
				   const cl_buffer_region *part, cl_int *err)
{
	cl_mem mem = backing_create_part(parent->backing, flags, parent->offset + part->origin,
					 part->size, err);

	mem = memobj_watched(error_created_or_null("clCreateSubBuffer", mem, err), parent, err);
	return mem ? derive_record(mem, parent, part->origin, true, NULL, err) : NULL;
}

static cl_mem sub_buffer_create(struct memobj *parent, cl_mem_flags flags,
				cl_buffer_create_type type, const cl_buffer_region *part,
				cl_int *err)
{
	cl_mem_flags from = 0;
	cl_mem mem;

	*err = sub_buffer_check(parent, type, part);
	if (!*err)
		*err = sub_buffer_check_flags(parent, flags, &from);
	if (*err)
		return NULL;
	if (parent->backing)
		return sub_buffer_of_hidden(parent, mem_flags_inherit(flags, from), part, err);
	mem = next.clCreateSubBuffer(parent->handle, flags, type, part, err);
	if (is_created(mem, *err))
		return derive_record(mem, parent, part->origin, false, NULL, err);
	sub_buffer_log(parent, part->origin, *err);
	return mem;
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
	return derive_end(parent, "clCreateSubBuffer", mem, err, errcode_ret);
}

cl_mem derive_image(struct context *context, struct image_request *r, struct memobj *parent,
		    cl_mem_properties *properties, cl_int *err)
{
	bool hides_parent = false;
	cl_mem image;

	if (!parent->method->create_image) {
		log_error("this device makes no usable images on imported memory");
		*err = CL_INVALID_OPERATION;
		return NULL;
	}
	r->flags = derive_flags(parent->region, r->flags);
	image = parent->method->create_image(context, parent, r, &hides_parent, err);
	return is_created(image, *err)
		       ? derive_record(image, parent, 0, hides_parent, properties, err)
		       : image;
}

cl_mem derive_image_of_request(struct image_request *r, cl_int *errcode_ret)
{
	struct memobj *parent = memobj_live() && r->desc ? memobj_get(r->desc->mem_object) : NULL;
	cl_int err = CL_SUCCESS;
	struct context *context;
	cl_mem image;

	if (!parent)
		return r->with_properties
			       ? next.clCreateImageWithProperties(r->context, r->properties,
								  r->flags, r->format, r->desc,
								  r->host_ptr, errcode_ret)
			       : next.clCreateImage(r->context, r->flags, r->format, r->desc,
						    r->host_ptr, errcode_ret);
	log_clear();
	context = context_get(parent->context);
	image = derive_image(context, r, parent, NULL, &err);
	context_put(context);
	return derive_end(parent, r->function, image, err, errcode_ret);
}

cl_mem CL_API_CALL layer_clCreateImage(cl_context context, cl_mem_flags flags,
				       const cl_image_format *format, const cl_image_desc *desc,
				       void *host_ptr, cl_int *errcode_ret)
{
	struct image_request r = { "clCreateImage", false,  context, NULL,
				   flags,	    format, desc,    host_ptr };

	return derive_image_of_request(&r, errcode_ret);
}
