/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/methods/host_ptr/image_create.h"

#include "icd/error.h"
#include "icd/image_format.h"
#include "icd/layer.h"
#include "icd/mem_flags.h"
#include "icd/methods/host_ptr/image_check.h"
#include "icd/methods/host_ptr/image_class.h"
#include "icd/methods/host_ptr/image_made.h"
#include "icd/methods/host_ptr/zero_copy.h"
#include "icd/methods/image_by_driver.h"
#include "icd/objects/memobj_watch.h"
#include "util/log.h"

/* Completes the request of an image that the layer creates: checks, flags, the parent's pitch. */
static cl_int image_request_complete(const struct image_request *asked, const struct memobj *parent,
				     struct image_request *own, struct image_parent *from)
{
	cl_int err = image_parent_get(parent->handle, from);

	if (!err)
		err = image_check_request(asked, from);
	*own = *asked;
	own->flags = mem_flags_inherit(asked->flags, from->flags);
	return err;
}

/* An image over the memory of an image may be of any kind of object. */
static cl_int image_allow(struct context *context, const struct image_request *r,
			  const struct memobj *parent, const cl_image_desc *desc)
{
	const struct image_place place = { IMAGE_OF_MEMORY, image_memory(parent), 0, NULL };
	struct zero_copy_context *c;
	cl_int err = zero_copy_find(context, &c);

	if (err || !image_format_element(r->format))
		return err;
	return image_class_allow(c->proofs, parent->region->kinds, r->flags, r->format, desc,
				 &place);
}

static cl_int image_prove(struct context *context, const struct image_request *r,
			  const struct memobj *parent, const cl_image_desc *desc)
{
	const struct image_place place = { IMAGE_OF_MEMORY, image_memory(parent), 0, NULL };
	struct zero_copy_context *c;
	cl_int err = zero_copy_find(context, &c);

	return err ? err
		   : image_class_prove(c->proofs, parent->region->kinds, r->flags, r->format, desc,
				       &place);
}

/* The proof comes after the driver has created the image, so that refusals of the driver are first. */
static cl_mem image_create_over_memory(struct context *context, const struct image_request *r,
				       const struct memobj *parent, const struct image_parent *from,
				       cl_int *err)
{
	cl_image_desc desc = *r->desc;
	cl_mem image;

	desc.mem_object = NULL;
	if (!desc.image_row_pitch)
		desc.image_row_pitch = from->row_pitch; /* 0 if the parent is a buffer */
	*err = image_check_extent(r->format, &desc, from);
	if (!*err)
		*err = image_allow(context, r, parent, &desc);
	if (*err)
		return NULL;
	image = image_by_driver_or_null(r, r->flags | CL_MEM_USE_HOST_PTR, &desc,
					image_memory(parent), err);
	if (!image)
		return NULL;
	*err = image_check_made(image, &desc, image_memory(parent), from);
	if (!*err)
		*err = image_prove(context, r, parent, &desc);
	if (!*err)
		*err = memobj_watch_part(image, parent);
	if (!*err)
		return image;
	next.clReleaseMemObject(image);
	return NULL;
}

static cl_mem image_create_2d(struct context *context, const struct image_request *r,
			      const struct memobj *parent, cl_int *err)
{
	struct image_request own;
	struct image_parent from;

	*err = image_request_complete(r, parent, &own, &from);
	return *err ? NULL : image_create_over_memory(context, &own, parent, &from, err);
}

/*
 * A backing buffer over the memory of a sub-buffer.  The backing buffer holds the sub-buffer, and
 * the driver's image holds the backing buffer: not every driver says when a 1D image is gone (PoCL
 * 3.1).
 */
static cl_mem image_create_backing(struct context *context, const struct image_request *r,
				   const struct memobj *parent, size_t size, cl_int *err)
{
	struct zero_copy_context *c;
	cl_mem buffer;

	*err = zero_copy_find(context, &c);
	if (!*err)
		*err = host_rule_check(c->rule, parent->region->kinds, r->flags,
				       image_memory(parent), size);
	if (*err)
		return NULL;
	buffer = next.clCreateBuffer(r->context, r->flags | CL_MEM_USE_HOST_PTR, size,
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
				      const struct memobj *parent, cl_int *err)
{
	const struct image_place place = { IMAGE_OF_BUFFER, image_memory(parent), 0, NULL };
	struct image_request own;
	struct image_parent from;
	cl_image_desc desc = *r->desc;
	cl_mem image;

	*err = image_request_complete(r, parent, &own, &from);
	if (*err)
		return NULL;
	desc.mem_object = image_create_backing(context, &own, parent, from.size, err);
	if (!desc.mem_object)
		return NULL;
	*err = image_made_allow(context, &own, parent, &place);
	image = *err ? NULL : image_by_driver_or_null(&own, own.flags, &desc, NULL, err);
	next.clReleaseMemObject(desc.mem_object);
	if (!image)
		return NULL;
	*err = image_made_check(context, image, &own, parent, &place);
	if (!*err)
		return image;
	next.clReleaseMemObject(image);
	return NULL;
}

/*
 * The driver's image, if the image works on the memory of its parent.  A driver that ignores where a
 * sub-buffer begins (rusticl of Mesa 25.0) gets a buffer that begins there.
 */
static cl_mem image_create_proved(struct context *context, cl_mem image,
				  const struct image_request *r, const struct memobj *parent,
				  bool *hides_parent, cl_int *err)
{
	struct image_place place;
	bool is_retried;

	image_place_get(parent, &place);
	log_hold();
	*err = image_made_check(context, image, r, parent, &place);
	is_retried = *err == CL_INVALID_OPERATION && parent->parent;
	log_resume(*err && !is_retried);
	if (!*err)
		return image;
	next.clReleaseMemObject(image);
	if (!is_retried)
		return NULL;
	*hides_parent = true;
	return image_create_on_backing(context, r, parent, err);
}

/* PoCL 3.1 and Intel's runtime take a pointer, and PoCL any flags. */
static cl_int image_check_by_driver(const struct image_request *r, const struct memobj *parent)
{
	struct image_parent from;
	cl_int err = image_parent_get(parent->handle, &from);

	return err ? err : image_check_request(r, &from);
}

/* The driver survives images of the parent, or takes a buffer in the place of a sub-buffer. */
static bool image_is_allowed(struct context *context, const struct image_request *r,
			     const struct memobj *parent, cl_int *err)
{
	struct image_place place;

	image_place_get(parent, &place);
	log_hold();
	*err = image_made_allow(context, r, parent, &place);
	log_resume(*err && !parent->parent);
	return !*err;
}

/*
 * A driver that refuses 1D images of sub-buffers, or does not survive images of sub-buffers, gets a
 * buffer that begins there.
 */
static cl_mem image_create_by_driver(struct context *context, const struct image_request *r,
				     const struct memobj *parent, bool *hides_parent, cl_int *err)
{
	bool is_retried = parent->parent;
	cl_mem image = NULL;

	if (image_is_allowed(context, r, parent, err)) {
		image = image_by_driver(r, r->flags, r->desc, r->host_ptr, err);
		if (is_created(image, *err))
			return image_create_proved(context, image, r, parent, hides_parent, err);
		is_retried &= *err && r->desc->image_type == CL_MEM_OBJECT_IMAGE1D_BUFFER;
		if (!is_retried)
			image_refused_by_driver(r, r->flags, *err);
	}
	if (!is_retried)
		return image;
	*hides_parent = true;
	return image_create_on_backing(context, r, parent, err);
}

cl_mem image_create(struct context *context, const struct memobj *parent,
		    const struct image_request *r, bool *hides_parent, cl_int *err)
{
	const cl_mem_object_type type = r->desc->image_type;

	*err = image_check_address(r->format, image_memory(parent));
	if (*err)
		return NULL;
	if (type == CL_MEM_OBJECT_IMAGE2D && context && !context_image2d_from_buffer(context)) {
		*hides_parent = true;
		return image_create_2d(context, r, parent, err);
	}
	*err = image_check_by_driver(r, parent);
	if (*err)
		return NULL;
	return image_create_by_driver(context, r, parent, hides_parent, err);
}
