/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sub-buffers of imports, and images on them.  They are imports too: the same
 * calls are forbidden, and a read-only dma-buf makes them read-only.
 *
 * Where the driver makes no image from the buffer, one is made over the same
 * memory; the layer then answers for its parent.
 *
 * A call that goes to the driver as it is gives what the driver gave, handle and error.
 */
#include <stdint.h>

#include "icd/calls/image_check.h"
#include "icd/calls/properties.h"
#include "icd/error.h"
#include "icd/intercept.h"
#include "icd/layer.h"
#include "icd/methods/method.h"
#include "icd/objects/context.h"
#include "icd/objects/memobj_watch.h"
#include "util/log.h"

/* Records @mem as made from @parent, or releases it. */
static cl_mem derive_record(cl_mem mem, struct memobj *parent, size_t origin, bool hides_parent,
			    cl_int *err)
{
	const struct memobj like = {
		.handle = mem,
		.context = parent->context,
		.region = parent->region,
		.origin = parent->origin + origin,
		.bracket = parent->bracket,
		.parent = parent,
		.method = parent->method,
		.hides_parent = hides_parent,
	};

	*err = memobj_add(&like);
	if (!*err)
		return mem;
	next.clReleaseMemObject(mem);
	return NULL;
}

/* An object that the driver thinks stands alone: it holds the region, and keeps its parent alive. */
static cl_mem derive_hidden(cl_mem mem, struct memobj *parent, size_t origin, cl_int *err)
{
	*err = memobj_watch_part(mem, parent);
	if (!*err)
		return derive_record(mem, parent, origin, true, err);
	next.clReleaseMemObject(mem);
	return NULL;
}

static void derive_notify(const struct memobj *parent, const char *function, cl_int err)
{
	struct context *context = err ? context_get(parent->context) : NULL;

	context_notify(context, function, err);
	context_put(context);
}

/* What the driver's @function gave for the layer's own use: an object, or NULL and an error. */
static cl_mem derive_own(const char *function, cl_mem mem, cl_int *err)
{
	if (!is_created(mem, *err))
		error_of_driver(function, *err);
	return created_or_null(mem, err);
}

/* The descriptor's mode takes precedence over the flags, also of what is made from the import. */
static cl_mem_flags derive_flags(const struct import_region *region, cl_mem_flags flags)
{
	return region->reduced ? flags_restrict(flags, region->access) : flags;
}

/* Not every driver looks. */
static bool derive_is_within(const struct memobj *import, const cl_buffer_region *part)
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
	if (!derive_is_within(parent, info)) {
		log_error("the sub-buffer ends beyond the %zu bytes of its import",
			  parent->region->size);
		return CL_INVALID_VALUE;
	}
	return CL_SUCCESS;
}

/* Where the import is a part of a buffer that the application does not know, so is the new one. */
static cl_mem sub_buffer_of_hidden(struct memobj *parent, cl_mem_flags flags,
				   const cl_buffer_region *region, cl_int *err)
{
	cl_mem mem = parent->method->create_sub_buffer(parent->hidden, flags, region, err);

	mem = derive_own("clCreateSubBuffer", mem, err);
	return mem ? derive_hidden(mem, parent, region->origin, err) : NULL;
}

static cl_mem sub_buffer_create(struct memobj *parent, cl_mem_flags flags,
				cl_buffer_create_type type, const void *info, cl_int *err)
{
	cl_mem mem;

	*err = parent->parent ? CL_SUCCESS : sub_buffer_check(parent, type, info);
	if (*err)
		return NULL;
	if (parent->hidden)
		return sub_buffer_of_hidden(parent, flags, info, err);
	mem = next.clCreateSubBuffer(parent->handle, flags, type, info, err);
	if (is_created(mem, *err))
		return derive_record(mem, parent, ((const cl_buffer_region *)info)->origin, false,
				     err);
	error_of_driver("clCreateSubBuffer", *err);
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
	derive_notify(parent, "clCreateSubBuffer", err);
	memobj_put(parent);
	if (errcode_ret)
		*errcode_ret = err;
	return mem;
}

/* The driver's own call, with @desc and @host_ptr in place of the application's. */
static cl_mem image_of_driver(const struct image_request *r, cl_mem_flags flags,
			      const cl_image_desc *desc, void *host_ptr, cl_int *err)
{
	if (r->with_properties && next.clCreateImageWithProperties)
		return next.clCreateImageWithProperties(r->context, r->properties, flags, r->format,
							desc, host_ptr, err);
	return next.clCreateImage(r->context, flags, r->format, desc, host_ptr, err);
}

static unsigned char *address_of(const struct memobj *obj)
{
	return (unsigned char *)obj->region->addr + obj->origin;
}

/* "If the flags ... are not specified, they are inherited from the buffer." */
static cl_mem_flags flags_inherit(cl_mem_flags flags, cl_mem_flags inherited)
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

/* The request of an image that the layer makes: checked, with all flags, and the parent's pitch. */
static cl_int derive_image_begin(const struct image_request *asked, const struct memobj *parent,
				 struct image_request *own, struct image_parent *from)
{
	cl_int err = image_parent_get(parent->handle, from);

	if (!err)
		err = image_check_request(asked, from);
	*own = *asked;
	own->flags = flags_inherit(asked->flags, from->flags);
	return err;
}

/* By an image like it, which the driver has made: what it refuses it says first. */
static cl_int prove_image(const struct image_request *r, const struct memobj *parent,
			  const cl_image_desc *desc)
{
	struct context *context = context_get(parent->context);
	cl_int err = CL_INVALID_CONTEXT;

	if (context)
		err = parent->method->prove_image(context, parent->region, r->flags, r->format,
						  desc, address_of(parent));
	context_put(context);
	return err;
}

static cl_mem image_over_memory(const struct image_request *r, struct memobj *parent,
				const struct image_parent *from, cl_int *err)
{
	cl_image_desc desc = *r->desc;
	cl_mem image;

	desc.mem_object = NULL;
	if (!desc.image_row_pitch)
		desc.image_row_pitch = from->row_pitch; /* 0 of a buffer */
	*err = image_check_extent(r->format, &desc, from);
	if (*err)
		return NULL;
	image = image_of_driver(r, r->flags | CL_MEM_USE_HOST_PTR, &desc, address_of(parent), err);
	image = derive_own(r->function, image, err);
	if (!image)
		return NULL;
	*err = image_check_made(image, &desc, address_of(parent), from);
	if (!*err)
		*err = prove_image(r, parent, &desc);
	if (!*err)
		return derive_hidden(image, parent, 0, err);
	next.clReleaseMemObject(image);
	return NULL;
}

/* A buffer over a part of the memory is of another class than the import. */
static cl_int prove_part(const struct image_request *r, struct memobj *parent, size_t size,
			 struct context **each)
{
	struct context *context = context_get(parent->context);
	bool is_each = false;
	cl_int err = CL_INVALID_CONTEXT;

	if (context)
		err = parent->method->prove(context, parent->region, r->flags, address_of(parent),
					    size, &is_each);
	*each = !err && is_each ? context : NULL;
	if (!*each)
		context_put(context);
	return err;
}

/* A 2D image on a buffer, for a driver that has no cl_khr_image2d_from_buffer. */
static cl_mem image_2d(const struct image_request *r, struct memobj *parent, cl_int *err)
{
	struct image_request own;
	struct image_parent from;

	*err = derive_image_begin(r, parent, &own, &from);
	return *err ? NULL : image_over_memory(&own, parent, &from, err);
}

/*
 * A buffer over the same memory as a sub-buffer.  It keeps the sub-buffer, and the driver's image
 * keeps it: not every driver tells when a 1D image is gone (PoCL 3.1).
 */
static cl_mem buffer_over_memory(const struct image_request *r, struct memobj *parent, size_t size,
				 cl_int *err)
{
	struct context *each = NULL;
	cl_mem buffer;

	*err = prove_part(r, parent, size, &each);
	if (*err)
		return NULL;
	buffer = next.clCreateBuffer(r->context, r->flags | CL_MEM_USE_HOST_PTR, size,
				     address_of(parent), err);
	buffer = derive_own("clCreateBuffer", buffer, err);
	if (buffer)
		*err = memobj_watch_part(buffer, parent);
	if (buffer && !*err && each)
		*err = parent->method->prove_buffer(each, buffer, address_of(parent));
	context_put(each);
	if (buffer && *err)
		next.clReleaseMemObject(buffer);
	return *err ? NULL : buffer;
}

/* A 1D image on a sub-buffer, for a driver that takes only root buffers: on a hidden one. */
static cl_mem image_1d(const struct image_request *r, struct memobj *parent, cl_int *err)
{
	cl_image_desc desc = *r->desc;
	struct image_request own;
	struct image_parent from;
	cl_mem image;

	*err = derive_image_begin(r, parent, &own, &from);
	if (*err)
		return NULL;
	desc.mem_object = buffer_over_memory(&own, parent, from.size, err);
	if (!desc.mem_object)
		return NULL;
	image = image_of_driver(&own, own.flags, &desc, NULL, err);
	next.clReleaseMemObject(desc.mem_object);
	image = derive_own(r->function, image, err);
	return image ? derive_record(image, parent, 0, true, err) : NULL;
}

static bool driver_has_no_2d(const struct memobj *parent)
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
	*err = image_check_address(r->format, address_of(parent));
	if (*err)
		return NULL;
	if (r->desc->image_type == CL_MEM_OBJECT_IMAGE2D && driver_has_no_2d(parent))
		return image_2d(r, parent, err);
	image = image_of_driver(r, r->flags, r->desc, r->host_ptr, err);
	if (is_created(image, *err))
		return derive_record(image, parent, 0, false, err);
	if (*err && r->desc->image_type == CL_MEM_OBJECT_IMAGE1D_BUFFER && parent->parent)
		return image_1d(r, parent, err);
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
