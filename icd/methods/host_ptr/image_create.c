/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/methods/host_ptr/image_create.h"

#include "icd/error.h"
#include "icd/image_format.h"
#include "icd/layer.h"
#include "icd/mem_flags.h"
#include "icd/methods/host_ptr/buffer.h"
#include "icd/methods/host_ptr/image_check.h"
#include "icd/methods/image_by_driver.h"
#include "icd/methods/part.h"
#include "icd/objects/context.h"
#include "icd/objects/device.h"
#include "icd/objects/memobj_watch.h"
#include "util/log.h"

/* The first byte of an import, or of an object that is made from an import. */
static unsigned char *image_memory(const struct memobj *parent)
{
	return (unsigned char *)parent->region->addr + parent->origin;
}

bool image_is_of_part(const struct memobj *parent)
{
	return parent->parent || memobj_import(parent)->hidden;
}

static cl_int image_check(const struct image_request *r, const struct memobj *parent,
			  struct image_parent *of)
{
	cl_int err = image_check_address(r->format, image_memory(parent));

	if (!err)
		err = image_parent_get(parent->handle, of);
	return err ? err : image_check_request(r, of);
}

static struct image_shape image_describe(const struct image_request *r, const struct memobj *parent,
					 const struct image_parent *of, enum image_from from)
{
	const bool is_of_part = from == IMAGE_OF_SUB_BUFFER || from == IMAGE_OF_PART_OF_DMABUF,
		   is_2d = r->desc->image_type == CL_MEM_OBJECT_IMAGE2D;
	const size_t pitch = r->desc->image_row_pitch ? r->desc->image_row_pitch : of->row_pitch;

	return (struct image_shape){
		.from = from,
		.is_2d = is_2d,
		.flags = mem_flags_inherit(r->flags, of->flags),
		.addr = is_of_part ? (unsigned char *)parent->region->addr -
					     part_offset(memobj_import(parent)->hidden)
				   : image_memory(parent),
		.pixel = image_format_element(r->format),
		.width = r->desc->image_width,
		.height = is_2d ? r->desc->image_height : 1,
		.pitch = is_2d ? pitch : 0,
	};
}

static cl_int image_check_device(cl_device_id id, const struct image_shape *shape)
{
	char why[FACTS_WHY_SIZE];
	const struct image_rule *rules = device_images(id, why);

	if (rules)
		return image_rule_check(rules, shape);
	log_error("images could not be tested on this device now: %s", why);
	return CL_OUT_OF_RESOURCES;
}

/* Whether such an image fits its memory, and is zero copy on all devices. */
static cl_int image_allow(struct context *context, const struct image_request *r,
			  const struct memobj *parent, const struct image_parent *of,
			  enum image_from from)
{
	const struct image_shape shape = image_describe(r, parent, of, from);
	const cl_device_id *ids;
	size_t count;
	cl_int err = shape.is_2d ? image_check_extent(r->format, r->desc, of) : CL_SUCCESS;

	if (!context) {
		log_error("the context is gone, or its record had no memory");
		return CL_INVALID_CONTEXT;
	}
	count = context_devices(context, &ids);
	for (size_t i = 0; i < count && !err; i++)
		err = image_check_device(ids[i], &shape);
	return err;
}

/* The driver's image with the driver's sizes checked: it may take a pitch below the width. */
static cl_mem image_make(const struct image_request *r, const struct memobj *parent,
			 const struct image_parent *of, cl_mem_flags flags,
			 const cl_image_desc *desc, void *host_ptr, cl_int *err)
{
	cl_mem image = image_by_driver(r, flags, desc, host_ptr, err);

	if (!is_created(image, *err)) {
		image_refused_by_driver(r, flags, *err);
		return image;
	}
	if (desc->image_type == CL_MEM_OBJECT_IMAGE2D)
		*err = image_check_made(image, desc, image_memory(parent), of);
	if (!*err)
		return image;
	next.clReleaseMemObject(image);
	return NULL;
}

static cl_mem image_create_over_memory(struct context *context, const struct image_request *r,
				       const struct memobj *parent, const struct image_parent *of,
				       cl_int *err)
{
	const cl_mem_flags flags = mem_flags_inherit(r->flags, of->flags) | CL_MEM_USE_HOST_PTR;
	cl_image_desc desc = *r->desc;
	cl_mem image;

	desc.mem_object = NULL;
	if (!desc.image_row_pitch)
		desc.image_row_pitch = of->row_pitch; /* 0 if the parent is a buffer */
	*err = image_allow(context, r, parent, of, IMAGE_OF_MEMORY);
	if (*err)
		return NULL;
	image = created_or_null(image_make(r, parent, of, flags, &desc, image_memory(parent), err),
				err);
	if (!image)
		return NULL;
	*err = memobj_watch_part(image, parent);
	if (!*err)
		return image;
	next.clReleaseMemObject(image);
	return NULL;
}

/*
 * A backing buffer over the memory of a sub-buffer.  The backing buffer holds the sub-buffer, and
 * the driver's image holds the backing buffer: not every driver says when a 1D image is gone (PoCL
 * 3.1).
 */
static cl_mem image_create_backing(struct context *context, const struct image_request *r,
				   const struct memobj *parent, const struct image_parent *of,
				   cl_int *err)
{
	const cl_mem_flags flags = mem_flags_inherit(r->flags, of->flags);
	cl_mem buffer;

	*err = host_ptr_check(context, parent->region->kinds, flags, image_memory(parent),
			      of->size);
	if (*err)
		return NULL;
	buffer = next.clCreateBuffer(r->context, flags | CL_MEM_USE_HOST_PTR, of->size,
				     image_memory(parent), err);
	buffer = error_created_or_null("clCreateBuffer", buffer, err);
	if (!buffer)
		return NULL;
	*err = memobj_watch_part(buffer, parent);
	if (!*err)
		return buffer;
	next.clReleaseMemObject(buffer);
	return NULL;
}

/* An image that the driver makes from a backing buffer in place of the sub-buffer. */
static cl_mem image_create_on_backing(struct context *context, const struct image_request *r,
				      const struct memobj *parent, const struct image_parent *of,
				      cl_int *err)
{
	const cl_mem_flags flags = mem_flags_inherit(r->flags, of->flags);
	cl_image_desc desc = *r->desc;
	cl_mem image;

	*err = image_allow(context, r, parent, of, IMAGE_OF_BUFFER);
	if (*err)
		return NULL;
	desc.mem_object = image_create_backing(context, r, parent, of, err);
	if (!desc.mem_object)
		return NULL;
	image = created_or_null(image_make(r, parent, of, flags, &desc, NULL, err), err);
	next.clReleaseMemObject(desc.mem_object);
	return image;
}

/* An image of an image shows the bytes of an allowed image. */
static cl_int image_allow_by_driver(struct context *context, const struct image_request *r,
				    const struct memobj *parent, const struct image_parent *of,
				    enum image_from from)
{
	return of->type == CL_MEM_OBJECT_BUFFER ? image_allow(context, r, parent, of, from)
						: CL_SUCCESS;
}

cl_mem image_from_buffer(struct context *context, const struct memobj *parent,
			 const struct image_request *r, enum image_from from, cl_int *err)
{
	struct image_parent of;

	*err = image_check(r, parent, &of);
	if (!*err)
		*err = image_allow_by_driver(context, r, parent, &of, from);
	return *err ? NULL : image_make(r, parent, &of, r->flags, r->desc, NULL, err);
}

/* The rule of images of sub-buffers allows the image, or another buffer may take a sub-buffer's place. */
static cl_mem image_create_by_driver(struct context *context, const struct image_request *r,
				     const struct memobj *parent, const struct image_parent *of,
				     bool *hides_parent, cl_int *err)
{
	log_hold();
	*err = image_allow_by_driver(context, r, parent, of,
				     image_is_of_part(parent) ? IMAGE_OF_SUB_BUFFER
							      : IMAGE_OF_BUFFER);
	*hides_parent = *err == CL_INVALID_OPERATION && parent->parent;
	log_resume(*err && !*hides_parent);
	if (*hides_parent)
		return image_create_on_backing(context, r, parent, of, err);
	return *err ? NULL : image_make(r, parent, of, r->flags, r->desc, NULL, err);
}

cl_mem image_create(struct context *context, const struct memobj *parent,
		    const struct image_request *r, bool *hides_parent, cl_int *err)
{
	struct image_parent of;

	*err = image_check(r, parent, &of);
	if (*err)
		return NULL;
	if (r->desc->image_type != CL_MEM_OBJECT_IMAGE2D || !context ||
	    context_image2d_from_buffer(context))
		return image_create_by_driver(context, r, parent, &of, hides_parent, err);
	*hides_parent = true;
	return image_create_over_memory(context, r, parent, &of, err);
}
