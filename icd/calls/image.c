/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images on imports: derive.h.
 *
 * If the driver creates no image from the buffer, the layer creates an image over the same memory,
 * and answers for the image's parent.
 */
#include <stdint.h>

#include "icd/calls/derive.h"
#include "icd/calls/image_check.h"
#include "icd/error.h"
#include "icd/intercept.h"
#include "icd/layer.h"
#include "icd/methods/method.h"
#include "icd/objects/context.h"
#include "util/log.h"

/* The driver's call, with @desc and @host_ptr in place of the application's. */
static cl_mem image_create_by_driver(const struct image_request *r, cl_mem_flags flags,
				     const cl_image_desc *desc, void *host_ptr, cl_int *err)
{
	if (r->with_properties && next.clCreateImageWithProperties)
		return next.clCreateImageWithProperties(r->context, r->properties, flags, r->format,
							desc, host_ptr, err);
	return next.clCreateImage(r->context, flags, r->format, desc, host_ptr, err);
}

static unsigned char *image_memory(const struct memobj *obj)
{
	return (unsigned char *)obj->region->addr + obj->origin;
}

/* "If the flags ... are not specified, they are inherited from the buffer." */
static cl_mem_flags image_flags_inherited(cl_mem_flags flags, cl_mem_flags inherited)
{
	const cl_mem_flags access = CL_MEM_READ_WRITE | CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY;
	const cl_mem_flags host = CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_WRITE_ONLY |
				  CL_MEM_HOST_NO_ACCESS;

	if (!(flags & access))
		flags |= inherited & access;
	if (!(flags & host))
		flags |= inherited & host;
	return flags;
}

/* Completes the request of an image that the layer creates: checks, flags, the parent's pitch. */
static cl_int image_request_complete(const struct image_request *asked, const struct memobj *parent,
				     struct image_request *own, struct image_parent *from)
{
	cl_int err = image_parent_get(parent->handle, from);

	if (!err)
		err = image_check_request(asked, from);
	*own = *asked;
	own->flags = image_flags_inherited(asked->flags, from->flags);
	return err;
}

/* After the driver has created the image, so that refusals of the driver come first. */
static cl_int image_prove(const struct image_request *r, const struct memobj *parent,
			  const cl_image_desc *desc)
{
	struct context *context = context_get(parent->context);
	cl_int err = CL_INVALID_CONTEXT;

	if (context)
		err = parent->method->prove_image(context, parent->region, r->flags, r->format,
						  desc, image_memory(parent));
	context_put(context);
	return err;
}

static cl_mem image_create_over_memory(const struct image_request *r, struct memobj *parent,
				       const struct image_parent *from, cl_int *err)
{
	cl_image_desc desc = *r->desc;
	cl_mem image;

	desc.mem_object = NULL;
	if (!desc.image_row_pitch)
		desc.image_row_pitch = from->row_pitch; /* 0 if the parent is a buffer */
	*err = image_check_extent(r->format, &desc, from);
	if (*err)
		return NULL;
	image = image_create_by_driver(r, r->flags | CL_MEM_USE_HOST_PTR, &desc,
				       image_memory(parent), err);
	image = derive_own(r->function, image, err);
	if (!image)
		return NULL;
	*err = image_check_made(image, &desc, image_memory(parent), from);
	if (!*err)
		*err = image_prove(r, parent, &desc);
	if (!*err)
		return derive_hidden(image, parent, 0, err);
	next.clReleaseMemObject(image);
	return NULL;
}

/* A buffer over a part of the memory has a class of its own. */
static cl_int image_prove_part(const struct image_request *r, struct memobj *parent, size_t size,
			       struct context **each)
{
	struct context *context = context_get(parent->context);
	bool is_each = false;
	cl_int err = CL_INVALID_CONTEXT;

	if (context)
		err = parent->method->prove(context, parent->region, r->flags, image_memory(parent),
					    size, &is_each);
	*each = !err && is_each ? context : NULL;
	if (!*each)
		context_put(context);
	return err;
}

/* A 2D image on a buffer, for a driver that has no cl_khr_image2d_from_buffer. */
static cl_mem image_create_2d(const struct image_request *r, struct memobj *parent, cl_int *err)
{
	struct image_request own;
	struct image_parent from;

	*err = image_request_complete(r, parent, &own, &from);
	return *err ? NULL : image_create_over_memory(&own, parent, &from, err);
}

/*
 * A backing buffer over the memory of a sub-buffer.  The backing buffer holds the sub-buffer, and
 * the driver's image holds the backing buffer: not every driver says when a 1D image is gone (PoCL
 * 3.1).
 */
static cl_mem image_create_backing(const struct image_request *r, struct memobj *parent,
				   size_t size, cl_int *err)
{
	struct context *each = NULL;
	cl_mem buffer;

	*err = image_prove_part(r, parent, size, &each);
	if (*err)
		return NULL;
	buffer = next.clCreateBuffer(r->context, r->flags | CL_MEM_USE_HOST_PTR, size,
				     image_memory(parent), err);
	buffer = derive_own("clCreateBuffer", buffer, err);
	if (buffer)
		*err = memobj_watch_part(buffer, parent);
	if (buffer && !*err && each)
		*err = parent->method->prove_buffer(each, buffer, image_memory(parent));
	context_put(each);
	if (buffer && *err)
		next.clReleaseMemObject(buffer);
	return *err ? NULL : buffer;
}

/* A 1D image on a sub-buffer, for a driver that takes only root buffers: on a backing buffer. */
static cl_mem image_create_1d(const struct image_request *r, struct memobj *parent, cl_int *err)
{
	cl_image_desc desc = *r->desc;
	struct image_request own;
	struct image_parent from;
	cl_mem image;

	*err = image_request_complete(r, parent, &own, &from);
	if (*err)
		return NULL;
	desc.mem_object = image_create_backing(&own, parent, from.size, err);
	if (!desc.mem_object)
		return NULL;
	image = image_create_by_driver(&own, own.flags, &desc, NULL, err);
	next.clReleaseMemObject(desc.mem_object);
	image = derive_own(r->function, image, err);
	return image ? derive_record(image, parent, 0, true, err) : NULL;
}

static bool image_driver_lacks_2d(const struct memobj *parent)
{
	struct context *context = context_get(parent->context);
	bool native = !context || context_image2d_from_buffer(context);

	context_put(context);
	return !native;
}

static cl_mem image_create(const struct image_request *r, struct memobj *parent, cl_int *err)
{
	cl_mem image;

	if (!parent->method->prove_image) {
		log_error("this device makes no usable images on imported memory");
		*err = CL_INVALID_OPERATION;
		return NULL;
	}
	*err = image_check_address(r->format, image_memory(parent));
	if (*err)
		return NULL;
	if (r->desc->image_type == CL_MEM_OBJECT_IMAGE2D && image_driver_lacks_2d(parent))
		return image_create_2d(r, parent, err);
	image = image_create_by_driver(r, r->flags, r->desc, r->host_ptr, err);
	if (is_created(image, *err))
		return derive_record(image, parent, 0, false, err);
	if (*err && r->desc->image_type == CL_MEM_OBJECT_IMAGE1D_BUFFER && parent->parent)
		return image_create_1d(r, parent, err);
	error_of_driver(r->function, *err);
	return image;
}

static cl_mem image_on_import(const struct image_request *asked, struct memobj *parent,
			      cl_int *errcode_ret)
{
	struct context *context = context_get(parent->context);
	struct image_request r = *asked;
	cl_int err = CL_SUCCESS;
	cl_mem image;

	log_clear();
	r.flags = derive_flags(parent->region, r.flags);
	if (context)
		context_tests_begin(context);
	image = image_create(&r, parent, &err);
	if (context)
		err = context_tests_end(context, err);
	context_notify(context, r.function, err);
	context_put(context);
	memobj_put(parent);
	if (errcode_ret)
		*errcode_ret = err;
	return image;
}

cl_mem CL_API_CALL layer_clCreateImage(cl_context context, cl_mem_flags flags,
				       const cl_image_format *format, const cl_image_desc *desc,
				       void *host_ptr, cl_int *errcode_ret)
{
	const struct image_request r = { "clCreateImage", false,  context, NULL,
					 flags,		  format, desc,	   host_ptr };
	struct memobj *parent = memobj_live() && desc ? memobj_get(desc->mem_object) : NULL;

	if (!parent)
		return next.clCreateImage(context, flags, format, desc, host_ptr, errcode_ret);
	return image_on_import(&r, parent, errcode_ret);
}

cl_mem CL_API_CALL layer_clCreateImageWithProperties(cl_context context,
						     const cl_mem_properties *properties,
						     cl_mem_flags flags,
						     const cl_image_format *format,
						     const cl_image_desc *desc, void *host_ptr,
						     cl_int *errcode_ret)
{
	const struct image_request r = { "clCreateImageWithProperties",
					 true,
					 context,
					 properties,
					 flags,
					 format,
					 desc,
					 host_ptr };
	struct memobj *parent = memobj_live() && desc ? memobj_get(desc->mem_object) : NULL;

	if (!parent)
		return next.clCreateImageWithProperties(context, properties, flags, format, desc,
							host_ptr, errcode_ret);
	return image_on_import(&r, parent, errcode_ret);
}
