/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sub-buffers of imports, and images on them.  They are imports too: the same
 * calls are forbidden, and a read-only dma-buf makes them read-only.
 *
 * Where the driver makes no image from the buffer, one is made over the same
 * memory; the layer then answers for its parent.
 */
#include <stdint.h>

#include "context.h"
#include "import/log.h"
#include "intercept.h"
#include "layer.h"
#include "memobj.h"
#include "properties.h"

struct image_request {
	cl_context context;
	const cl_mem_properties *properties;
	cl_mem_flags flags;
	const cl_image_format *format;
	const cl_image_desc *desc;
	void *host_ptr;
};

/* Records @mem as made from @parent, or releases it. */
static cl_mem derive(cl_mem mem, struct memobj *parent, size_t origin, cl_int *err)
{
	const struct memobj like = {
		.handle = mem,
		.context = parent->context,
		.region = parent->region,
		.origin = parent->origin + origin,
		.bracket = parent->bracket,
		.parent = parent,
	};

	if (!mem)
		return NULL;
	*err = memobj_add(&like);
	if (!*err)
		return mem;
	next.clReleaseMemObject(mem);
	return NULL;
}

/* An object that the driver thinks stands alone: it holds the region, and keeps its parent alive. */
static cl_mem derive_hidden(cl_mem mem, struct memobj *parent, size_t origin, cl_int *err)
{
	const struct memobj like = {
		.handle = mem,
		.context = parent->context,
		.region = parent->region,
		.origin = parent->origin + origin,
		.bracket = parent->bracket,
		.parent = parent,
		.retained = parent->handle,
		.hides_parent = true,
	};

	*err = next.clRetainMemObject(parent->handle);
	if (*err)
		goto err_release;
	*err = memobj_add(&like);
	if (!*err)
		return mem;
	next.clReleaseMemObject(parent->handle);
err_release:
	next.clReleaseMemObject(mem);
	return NULL;
}

static void finish(const struct memobj *parent, const char *function, cl_int err,
		   cl_int *errcode_ret)
{
	struct context *context;

	if (errcode_ret)
		*errcode_ret = err;
	if (!err)
		return;
	context = context_get(parent->context);
	context_notify(context, function);
	context_put(context);
}

/* Not every driver looks (NVIDIA 580). */
static bool is_within(const struct memobj *import, const cl_buffer_region *part)
{
	return part->origin <= import->region->size &&
	       part->size <= import->region->size - part->origin;
}

/* Where the import is a part of a buffer that the application does not know, so is the new one. */
static cl_mem sub_buffer(const struct memobj *parent, cl_mem_flags flags,
			 cl_buffer_create_type type, const void *info, cl_int *err)
{
	cl_buffer_region part;
	cl_mem mem;

	if (parent->parent)
		return next.clCreateSubBuffer(parent->handle, flags, type, info, err);
	*err = CL_INVALID_VALUE;
	if (type != CL_BUFFER_CREATE_TYPE_REGION || !info) {
		log_error("a sub-buffer is made of a region, which is given");
		return NULL;
	}
	if (!is_within(parent, info)) {
		log_error("a sub-buffer that ends beyond the %zu bytes of its import",
			  parent->region->size);
		return NULL;
	}
	part = *(const cl_buffer_region *)info;
	part.origin += parent->root_offset;
	mem = next.clCreateSubBuffer(parent->root ? parent->root : parent->handle, flags, type,
				     &part, err);
	if (!mem)
		log_error("the driver makes no such sub-buffer of the import: error %d", *err);
	return mem;
}

static cl_mem derive_sub_buffer(cl_mem mem, struct memobj *parent, size_t origin, cl_int *err)
{
	return parent->root ? derive_hidden(mem, parent, origin, err)
			    : derive(mem, parent, origin, err);
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
	mem = sub_buffer(parent, flags_restrict(flags, parent->region->access), type, info, &err);
	if (mem)
		mem = derive_sub_buffer(mem, parent, ((const cl_buffer_region *)info)->origin,
					&err);
	finish(parent, "clCreateSubBuffer", err, errcode_ret);
	memobj_put(parent);
	return mem;
}

static cl_mem image_native(const struct image_request *r, cl_mem_flags flags, cl_int *err)
{
	if (r->properties && next.clCreateImageWithProperties)
		return next.clCreateImageWithProperties(r->context, r->properties, flags, r->format,
							r->desc, r->host_ptr, err);
	return next.clCreateImage(r->context, flags, r->format, r->desc, r->host_ptr, err);
}

/* "If the flags ... are not specified, they are inherited from the buffer." */
static cl_mem_flags image_flags(const struct image_request *r, const struct memobj *parent)
{
	cl_mem_flags inherited = 0, flags = r->flags;
	const cl_mem_flags access = CL_MEM_READ_WRITE | CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY;
	const cl_mem_flags host = CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_WRITE_ONLY |
				  CL_MEM_HOST_NO_ACCESS;

	next.clGetMemObjectInfo(parent->handle, CL_MEM_FLAGS, sizeof(inherited), &inherited, NULL);
	if (!(flags & access))
		flags |= inherited & access;
	if (!(flags & host))
		flags |= inherited & host;
	return flags_restrict(flags, parent->region->access);
}

static cl_int image_check(const struct image_request *r)
{
	if (r->host_ptr) {
		log_error("an image on a buffer takes no host pointer");
		return CL_INVALID_HOST_PTR;
	}
	if (r->flags & (CL_MEM_USE_HOST_PTR | CL_MEM_ALLOC_HOST_PTR | CL_MEM_COPY_HOST_PTR)) {
		log_error("an image on a buffer takes no host pointer flags");
		return CL_INVALID_VALUE;
	}
	return CL_SUCCESS;
}

static cl_int refuse_pitch(size_t pitch, size_t width, size_t element)
{
	log_error("a row pitch of %zu bytes does not fit rows of %zu elements of %zu bytes", pitch,
		  width, element);
	return CL_INVALID_IMAGE_DESCRIPTOR;
}

/*
 * The pitch must hold a row and be a multiple of the element, and
 * "image_row_pitch x image_height" may not exceed the buffer: asked of the
 * image, which knows its element's size and, if none was given, its pitch.
 */
static cl_int image_check_size(cl_mem image, const cl_image_desc *desc, cl_mem buffer)
{
	size_t pitch = 0, element = 0, size = 0;

	if (next.clGetImageInfo(image, CL_IMAGE_ROW_PITCH, sizeof(pitch), &pitch, NULL) ||
	    next.clGetImageInfo(image, CL_IMAGE_ELEMENT_SIZE, sizeof(element), &element, NULL) ||
	    next.clGetMemObjectInfo(buffer, CL_MEM_SIZE, sizeof(size), &size, NULL) || !element)
		return CL_OUT_OF_RESOURCES;
	if (desc->image_row_pitch)
		pitch = desc->image_row_pitch;
	if (pitch % element || pitch / element < desc->image_width)
		return refuse_pitch(pitch, desc->image_width, element);
	if (desc->image_height > size / pitch) {
		log_error("%zu rows of %zu bytes exceed the %zu bytes of the buffer",
			  desc->image_height, pitch, size);
		return CL_INVALID_IMAGE_DESCRIPTOR;
	}
	return CL_SUCCESS;
}

static cl_mem image_over_memory(const struct image_request *r, struct memobj *parent, cl_int *err)
{
	unsigned char *addr = (unsigned char *)parent->region->addr + parent->origin;
	cl_image_desc desc = *r->desc;
	cl_mem image;

	desc.mem_object = NULL;
	image = next.clCreateImage(r->context, image_flags(r, parent) | CL_MEM_USE_HOST_PTR,
				   r->format, &desc, addr, err);
	if (!image) {
		log_error("the driver makes no such 2D image over the import's memory: error %d",
			  *err);
		return NULL;
	}
	*err = image_check_size(image, &desc, parent->handle);
	if (!*err)
		*err = memobj_watch(image, parent->region);
	if (!*err)
		return derive_hidden(image, parent, 0, err);
	next.clReleaseMemObject(image);
	return NULL;
}

/* A 2D image on a buffer, for a driver that has no cl_khr_image2d_from_buffer. */
static cl_mem image_2d(const struct image_request *r, struct memobj *parent, cl_int *err)
{
	struct context *context = context_get(parent->context);
	cl_mem image = NULL;

	*err = image_check(r);
	if (!*err && !(context && context_image_host_ptr(context)))
		*err = CL_INVALID_OPERATION;
	if (!*err)
		image = image_over_memory(r, parent, err);
	context_put(context);
	return image;
}

/* A 1D image on a sub-buffer, for a driver that takes only root buffers: on a hidden one. */
static cl_mem image_1d(const struct image_request *r, struct memobj *parent, cl_int *err)
{
	unsigned char *addr = (unsigned char *)parent->region->addr + parent->origin;
	cl_image_desc desc = *r->desc;
	cl_mem image = NULL;
	size_t size = 0;

	next.clGetMemObjectInfo(parent->handle, CL_MEM_SIZE, sizeof(size), &size, NULL);
	desc.mem_object = next.clCreateBuffer(
		r->context, image_flags(r, parent) | CL_MEM_USE_HOST_PTR, size, addr, err);
	if (!desc.mem_object)
		return NULL;
	*err = memobj_watch(desc.mem_object, parent->region);
	if (!*err)
		image = next.clCreateImage(r->context, image_flags(r, parent), r->format, &desc,
					   NULL, err);
	next.clReleaseMemObject(desc.mem_object);
	return image ? derive_hidden(image, parent, 0, err) : NULL;
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

	if (parent->region->opaque) {
		/* NVIDIA 580 makes 1D images there, and refuses every kernel that uses them. */
		log_error("this device makes no usable images on imported memory");
		*err = CL_INVALID_OPERATION;
		return NULL;
	}
	if (r->desc->image_type == CL_MEM_OBJECT_IMAGE2D && driver_has_no_2d(parent))
		return image_2d(r, parent, err);
	image = image_native(r, flags_restrict(r->flags, parent->region->access), err);
	if (image)
		return derive(image, parent, 0, err);
	if (r->desc->image_type == CL_MEM_OBJECT_IMAGE1D_BUFFER && parent->parent &&
	    !image_check(r))
		return image_1d(r, parent, err);
	log_error("the driver makes no such image on this import: error %d", *err);
	return NULL;
}

static cl_mem image_on_import(const struct image_request *r, struct memobj *parent,
			      const char *function, cl_int *errcode_ret)
{
	cl_int err = CL_SUCCESS;
	cl_mem image = image_create(r, parent, &err);

	finish(parent, function, err, errcode_ret);
	memobj_put(parent);
	return image;
}

cl_mem CL_API_CALL layer_clCreateImage(cl_context context, cl_mem_flags flags,
				       const cl_image_format *format, const cl_image_desc *desc,
				       void *host_ptr, cl_int *errcode_ret)
{
	const struct image_request r = { context, NULL, flags, format, desc, host_ptr };
	struct memobj *parent = memobj_live() && desc ? memobj_get(desc->mem_object) : NULL;

	if (!parent)
		return next.clCreateImage(context, flags, format, desc, host_ptr, errcode_ret);
	return image_on_import(&r, parent, "clCreateImage", errcode_ret);
}

cl_mem CL_API_CALL layer_clCreateImageWithProperties(cl_context context,
						     const cl_mem_properties *properties,
						     cl_mem_flags flags,
						     const cl_image_format *format,
						     const cl_image_desc *desc, void *host_ptr,
						     cl_int *errcode_ret)
{
	const struct image_request r = { context, properties, flags, format, desc, host_ptr };
	struct memobj *parent = memobj_live() && desc ? memobj_get(desc->mem_object) : NULL;

	if (!parent)
		return next.clCreateImageWithProperties(context, properties, flags, format, desc,
							host_ptr, errcode_ret);
	return image_on_import(&r, parent, "clCreateImageWithProperties", errcode_ret);
}
