/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/methods/image_create.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "icd/error.h"
#include "icd/image_format.h"
#include "icd/layer.h"
#include "icd/mem_flags.h"
#include "icd/objects/context.h"
#include "icd/objects/device.h"
#include "icd/objects/memobj_watch.h"
#include "util/cl_names.h"
#include "util/log.h"

#define IMAGE_FORMATS_SIZE 128 /* of a sentence of LOG_MESSAGE_SIZE */

/* All formats of such images, the caller's to free; NULL: the driver tells none. */
static cl_image_format *image_formats(cl_context context, cl_mem_flags flags,
				      cl_mem_object_type type, cl_uint *count)
{
	cl_image_format *formats = NULL;

	*count = 0;
	if (!next.clGetSupportedImageFormats(context, flags, type, 0, NULL, count) && *count)
		formats = calloc(*count, sizeof(*formats));
	if (!formats ||
	    !next.clGetSupportedImageFormats(context, flags, type, *count, formats, NULL))
		return formats;
	free(formats);
	return NULL;
}

/* " with CL_UNORM_INT8 are CL_R, CL_RGBA": formats with the channel type; "": there are none. */
static void image_formats_describe(const cl_image_format *formats, cl_uint count,
				   cl_channel_type type, char text[IMAGE_FORMATS_SIZE])
{
	size_t used = 0;

	text[0] = '\0';
	for (cl_uint i = 0; i < count && used < IMAGE_FORMATS_SIZE; i++)
		if (formats[i].image_channel_data_type == type)
			used += (size_t)snprintf(
				text + used, IMAGE_FORMATS_SIZE - used, "%s%s", used ? ", " : "",
				cl_channel_order_name(formats[i].image_channel_order));
}

static bool image_formats_have(const cl_image_format *formats, cl_uint count,
			       const cl_image_format *format)
{
	for (cl_uint i = 0; i < count; i++)
		if (formats[i].image_channel_order == format->image_channel_order &&
		    formats[i].image_channel_data_type == format->image_channel_data_type)
			return true;
	return false;
}

/* The driver has @formats, and not the request's. */
static void image_refuse_format(const cl_image_format *format, const cl_image_format *formats,
				cl_uint count, cl_int err)
{
	const char *type = cl_channel_type_name(format->image_channel_data_type);
	char instead[IMAGE_FORMATS_SIZE];

	image_formats_describe(formats, count, format->image_channel_data_type, instead);
	log_error("the driver has no images of %s/%s (%s); it has %s with %s",
		  cl_channel_order_name(format->image_channel_order), type, cl_error_name(err),
		  *instead ? instead : "none", type);
}

/* Only now is the driver asked, as not every driver says with its error that the format is the fault (PoCL 3.1). */
static void image_refused(const struct image_request *r, cl_mem_flags flags, cl_int err)
{
	cl_uint count = 0;
	cl_image_format *formats =
		r->format ? image_formats(r->context, flags & ~(cl_mem_flags)CL_MEM_USE_HOST_PTR,
					  r->desc->image_type, &count)
			  : NULL;

	if (formats && !image_formats_have(formats, count, r->format))
		image_refuse_format(r->format, formats, count, err);
	else
		error_of_driver(r->function, err);
	free(formats);
}

/*
 * The driver's call, with @flags, @desc and @host_ptr in place of the application's.  A refusal is logged; if the
 * driver has no images of the format, with the formats that it has.
 */
static cl_mem image_by_driver(const struct image_request *r, cl_mem_flags flags,
			      const cl_image_desc *desc, void *host_ptr, cl_int *err)
{
	cl_mem image =
		r->with_properties && next.clCreateImageWithProperties
			? next.clCreateImageWithProperties(r->context, r->properties, flags,
							   r->format, desc, host_ptr, err)
			: next.clCreateImage(r->context, flags, r->format, desc, host_ptr, err);

	if (!is_created(image, *err))
		image_refused(r, flags, *err);
	return image;
}

/* The buffer or image that an image is to be made from. */
struct image_parent {
	cl_mem_object_type type;
	cl_mem_flags flags;
	size_t size;
};

/* Asks the driver for the properties of @mem. */
static cl_int image_parent_get(cl_mem mem, struct image_parent *parent)
{
	const struct {
		cl_mem_info name;
		size_t size;
		void *value;
	} queries[] = {
		{ CL_MEM_TYPE, sizeof(parent->type), &parent->type },
		{ CL_MEM_FLAGS, sizeof(parent->flags), &parent->flags },
		{ CL_MEM_SIZE, sizeof(parent->size), &parent->size },
	};
	cl_int err = CL_SUCCESS;

	for (size_t i = 0; i < sizeof(queries) / sizeof(queries[0]) && !err; i++)
		err = next.clGetMemObjectInfo(mem, queries[i].name, queries[i].size,
					      queries[i].value, NULL);
	if (err)
		error_of_driver("clGetMemObjectInfo", err);
	return err;
}

static cl_int image_check_flags(const struct image_request *r, const struct image_parent *parent)
{
	if (mem_flags_fit(r->flags, parent->flags))
		return CL_SUCCESS;
	log_error("the image's flags %s do not fit its memory object's, %s",
		  cl_mem_flags_names(r->flags),
		  cl_mem_flags_names(parent->flags & ~(cl_mem_flags)CL_MEM_USE_HOST_PTR));
	return CL_INVALID_VALUE;
}

static cl_int image_refuse_descriptor(const char *why)
{
	log_error("%s", why);
	return CL_INVALID_IMAGE_DESCRIPTOR;
}

/* What needs no size of a pixel. */
static cl_int image_check_request(const struct image_request *r)
{
	const cl_image_desc *desc = r->desc;
	const bool is_2d = desc->image_type == CL_MEM_OBJECT_IMAGE2D;

	if (!r->format) {
		log_error("image_format is NULL");
		return CL_INVALID_IMAGE_FORMAT_DESCRIPTOR;
	}
	if (r->host_ptr) {
		log_error("an image made from a memory object takes no host pointer");
		return CL_INVALID_HOST_PTR;
	}
	if (!desc->image_width || (is_2d && !desc->image_height))
		return image_refuse_descriptor("an image has at least one row and one column");
	if (desc->num_mip_levels || desc->num_samples)
		return image_refuse_descriptor("num_mip_levels and num_samples must be 0");
	if (desc->image_slice_pitch)
		return image_refuse_descriptor(
			"image_slice_pitch must be 0 without a host pointer");
	if (!is_2d && desc->image_type != CL_MEM_OBJECT_IMAGE1D_BUFFER)
		return image_refuse_descriptor("an image of this type is not made from a buffer");
	return CL_SUCCESS;
}

/* Bytes from row to row of a 2D image. */
static size_t image_pitch(const struct image_request *r)
{
	return r->desc->image_row_pitch ? r->desc->image_row_pitch
					: r->desc->image_width * image_format_element(r->format);
}

/* Whether a 2D image fits the memory. */
static cl_int image_check_extent(const struct image_request *r, size_t element, size_t size)
{
	const size_t pitch = image_pitch(r), width = r->desc->image_width,
		     height = r->desc->image_height;

	if (pitch % element || pitch / element < width) {
		log_error("a row pitch of %zu bytes does not fit rows of %zu elements of %zu bytes",
			  pitch, width, element);
		return CL_INVALID_IMAGE_DESCRIPTOR;
	}
	if (height > size / pitch) {
		log_error("%zu rows of %zu bytes exceed the %zu bytes of the memory object", height,
			  pitch, size);
		return CL_INVALID_IMAGE_DESCRIPTOR;
	}
	return CL_SUCCESS;
}

static cl_int image_check_pixels(const struct image_request *r, const struct image_parent *parent,
				 const void *addr)
{
	const size_t element = image_format_element(r->format);

	if (!element) {
		log_error("an image on an import has a format of the specification's, not %s/%s",
			  cl_channel_order_name(r->format->image_channel_order),
			  cl_channel_type_name(r->format->image_channel_data_type));
		return CL_IMAGE_FORMAT_NOT_SUPPORTED;
	}
	if ((uintptr_t)addr % element) {
		log_error("the memory at %p does not begin at a multiple of the image's pixels, "
			  "%zu bytes",
			  addr, element);
		return CL_INVALID_IMAGE_FORMAT_DESCRIPTOR;
	}
	return r->desc->image_type == CL_MEM_OBJECT_IMAGE2D
		       ? image_check_extent(r, element, parent->size)
		       : CL_SUCCESS;
}

/*
 * The rules of clCreateImage for an image that is made from a buffer.  The layer checks them for images that the layer
 * makes, because the driver does not see the buffer, and for others, because not every driver checks.
 * @addr: a driver expects a buffer at an aligned address; the address of an import may be any
 */
static cl_int image_check(const struct image_request *r, const struct image_parent *parent,
			  cl_context context, const void *addr)
{
	cl_int err;

	if (context != r->context) {
		log_error("the image's context differs from the context of the image's memory "
			  "object");
		return CL_INVALID_CONTEXT;
	}
	err = image_check_request(r);
	if (!err)
		err = image_check_flags(r, parent);
	return err ? err : image_check_pixels(r, parent, addr);
}

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
	log_error("it is unknown which images of imports are zero copy on this device: %s", why);
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
		.addr = image_is_of_part(from) ? (unsigned char *)p->parent->region->addr -
							 memobj_import(p->parent)->offset
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

/* Whether a buffer over the memory is zero copy on all devices. */
static cl_int image_allow_backing(const struct image_plan *p)
{
	const cl_device_id *ids;
	const size_t count = context_devices(p->context, &ids);
	cl_int err = CL_SUCCESS;

	for (size_t i = 0; i < count && !err; i++)
		err = host_rule_check(&device_get(ids[i], FACTS_KEPT)->facts.rule,
				      p->parent->region->kinds, p->flags, p->addr, p->of.size);
	return err;
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
	return memobj_watched(created_or_null(image, err), p->parent, err);
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
		*err = image_allow_backing(p);
	if (*err)
		return NULL;
	desc.mem_object = next.clCreateBuffer(p->request->context, p->flags | CL_MEM_USE_HOST_PTR,
					      p->of.size, p->addr, err);
	desc.mem_object = memobj_watched(
		error_created_or_null("clCreateBuffer", desc.mem_object, err), p->parent, err);
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
	struct image_request asked = *r;
	cl_image_desc desc;
	struct image_plan p = {
		.context = context,
		.request = &asked,
		.parent = parent,
		.addr = (unsigned char *)parent->region->addr + parent->origin,
	};
	enum image_from from = memobj_import(parent)->method->images;

	/* The rules are the driver's. */
	if (!parent->method->create)
		return image_by_driver(r, r->flags, r->desc, r->host_ptr, err);
	*err = image_parent_get(parent->handle, &p.of);
	if (*err)
		return NULL;
	/* An image of an image shows the bytes of an allowed image. */
	if (p.of.type != CL_MEM_OBJECT_BUFFER)
		return image_by_driver(r, r->flags, r->desc, r->host_ptr, err);
	*err = image_check(r, &p.of, parent->context, p.addr);
	if (!*err && !context) {
		log_error("the import's context was released, or climport had no memory to keep "
			  "track of it");
		*err = CL_INVALID_CONTEXT;
	}
	if (*err)
		return NULL;
	/* What is tested is a pitch that is said: a driver may take 0 for another. */
	desc = *r->desc;
	if (desc.image_type == CL_MEM_OBJECT_IMAGE2D)
		desc.image_row_pitch = image_pitch(r);
	asked.desc = &desc;
	p.flags = mem_flags_inherit(r->flags, p.of.flags);
	if (from == IMAGE_OF_BUFFER && r->desc->image_type == CL_MEM_OBJECT_IMAGE2D &&
	    !context_image2d_from_buffer(context)) {
		*hides_parent = true;
		return image_create_over_memory(&p, err);
	}
	if (parent->parent || memobj_import(parent)->backing)
		from = from == IMAGE_OF_BUFFER ? IMAGE_OF_SUB_BUFFER : IMAGE_OF_PART_OF_DMABUF;
	return image_create_by_driver(&p, from, hides_parent, err);
}
