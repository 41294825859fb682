/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/methods/image_create.h"

#include "icd/error.h"
#include "icd/image_format.h"
#include "icd/layer.h"
#include "icd/mem_flags.h"
#include "icd/methods/host_ptr/buffer.h"
#include "icd/methods/image_by_driver.h"
#include "icd/methods/image_check.h"
#include "icd/methods/part.h"
#include "icd/objects/context.h"
#include "icd/objects/device.h"
#include "icd/objects/memobj_watch.h"
#include "util/log.h"

/* An image that is to be made. */
struct image_plan {
	struct context *context;
	const struct image_request *request;
	const struct memobj *parent;
	cl_mem_flags flags;  /* with those that are inherited */
	unsigned char *addr; /* the first byte of the parent; of a dma-buf perhaps from NULL */
	struct image_parent of;
};

static cl_int image_check_device(cl_device_id id, const struct image_shape *shape)
{
	char why[FACTS_WHY_SIZE];
	const struct facts *facts = device_tested(id, why);

	if (facts && facts->has_images && !facts->is_unknown)
		return image_rule_check(facts->images, shape);
	log_error("images could not be tested on this device now: %s", why);
	return CL_OUT_OF_RESOURCES;
}

/* Whether such an image is zero copy on all devices. */
static cl_int image_allow(const struct image_plan *p, enum image_from from)
{
	const struct image_request *r = p->request;
	const bool is_2d = r->desc->image_type == CL_MEM_OBJECT_IMAGE2D;
	const struct image_shape shape = {
		.from = from,
		.is_2d = is_2d,
		.flags = p->flags,
		.addr = image_is_of_part(from)
				? (unsigned char *)p->parent->region->addr -
					  part_offset(memobj_import(p->parent)->hidden)
				: p->addr,
		.pixel = image_format_element(r->format),
		.width = r->desc->image_width,
		.height = is_2d ? r->desc->image_height : 1,
		.pitch = image_pitch(r),
	};
	const cl_device_id *ids;
	const size_t count = context_devices(p->context, &ids);
	cl_int err = CL_SUCCESS;

	for (size_t i = 0; i < count && !err; i++)
		err = image_check_device(ids[i], &shape);
	return err;
}

/* @mem holds the memory, and is released if that fails. */
static cl_mem image_watch(cl_mem mem, const struct memobj *parent, cl_int *err)
{
	if (!mem)
		return NULL;
	*err = memobj_watch_part(mem, parent);
	if (!*err)
		return mem;
	next.clReleaseMemObject(mem);
	return NULL;
}

static cl_mem image_create_over_memory(const struct image_plan *p, cl_int *err)
{
	cl_image_desc desc = *p->request->desc;
	cl_mem image;

	*err = image_allow(p, IMAGE_OF_MEMORY);
	if (*err)
		return NULL;
	desc.mem_object = NULL;
	image = image_by_driver(p->request, p->flags | CL_MEM_USE_HOST_PTR, &desc, p->addr, err);
	return image_watch(created_or_null(image, err), p->parent, err);
}

/*
 * The driver's image of a backing buffer over the memory of a sub-buffer.  The backing buffer holds the sub-buffer, and
 * the driver's image holds the backing buffer: not every driver says when a 1D image is gone (PoCL 3.1).
 */
static cl_mem image_create_on_backing(const struct image_plan *p, cl_int *err)
{
	cl_image_desc desc = *p->request->desc;
	cl_mem image;

	*err = image_allow(p, IMAGE_OF_BUFFER);
	if (!*err)
		*err = host_ptr_check(p->context, p->parent->region->kinds, p->flags, p->addr,
				      p->of.size);
	if (*err)
		return NULL;
	desc.mem_object = next.clCreateBuffer(p->request->context, p->flags | CL_MEM_USE_HOST_PTR,
					      p->of.size, p->addr, err);
	desc.mem_object = image_watch(error_created_or_null("clCreateBuffer", desc.mem_object, err),
				      p->parent, err);
	if (!desc.mem_object)
		return NULL;
	image = created_or_null(image_by_driver(p->request, p->flags, &desc, NULL, err), err);
	next.clReleaseMemObject(desc.mem_object);
	return image;
}

/* The rule of images of sub-buffers allows the image, or another buffer may take a sub-buffer's place. */
static cl_mem image_create_by_driver(const struct image_plan *p, enum image_from from,
				     bool *hides_parent, cl_int *err)
{
	log_hold();
	*err = image_allow(p, from);
	*hides_parent = *err == CL_INVALID_OPERATION && p->parent->parent &&
			from == IMAGE_OF_SUB_BUFFER;
	log_resume(*err && !*hides_parent);
	if (*hides_parent)
		return image_create_on_backing(p, err);
	return *err ? NULL
		    : image_by_driver(p->request, p->request->flags, p->request->desc, NULL, err);
}

cl_mem image_create(struct context *context, const struct memobj *parent,
		    const struct image_request *r, bool *hides_parent, cl_int *err)
{
	struct image_plan p = {
		.context = context,
		.request = r,
		.parent = parent,
		.addr = (unsigned char *)parent->region->addr + parent->origin,
	};
	enum image_from from = memobj_import(parent)->method->images;

	*err = image_parent_get(parent->handle, &p.of);
	if (*err)
		return NULL;
	/* An image of an image shows the bytes of an allowed image. */
	if (p.of.type != CL_MEM_OBJECT_BUFFER)
		return image_by_driver(r, r->flags, r->desc, r->host_ptr, err);
	*err = image_check(r, &p.of, p.addr);
	if (!*err && !context) {
		log_error("the context is gone, or its record had no memory");
		*err = CL_INVALID_CONTEXT;
	}
	if (*err)
		return NULL;
	p.flags = mem_flags_inherit(r->flags, p.of.flags);
	if (from == IMAGE_OF_BUFFER && r->desc->image_type == CL_MEM_OBJECT_IMAGE2D &&
	    !context_image2d_from_buffer(context)) {
		*hides_parent = true;
		return image_create_over_memory(&p, err);
	}
	if (parent->parent || memobj_import(parent)->hidden)
		from = from == IMAGE_OF_BUFFER ? IMAGE_OF_SUB_BUFFER : IMAGE_OF_PART_OF_DMABUF;
	return image_create_by_driver(&p, from, hides_parent, err);
}
