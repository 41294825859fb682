/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/methods/host_ptr/image_check.h"

#include <stdbool.h>
#include <stdint.h>

#include "icd/error.h"
#include "icd/image_format.h"
#include "icd/layer.h"
#include "icd/mem_flags.h"
#include "util/cl_names.h"
#include "util/log.h"

/* Channel orders that show the same memory: of an image, and of its parent image. */
static const struct {
	cl_channel_order image, parent;
} views[] = {
	{ CL_sBGRA, CL_BGRA }, { CL_BGRA, CL_sBGRA }, { CL_sRGBA, CL_RGBA },
	{ CL_RGBA, CL_sRGBA }, { CL_sRGB, CL_RGB },   { CL_RGB, CL_sRGB },
	{ CL_sRGBx, CL_RGBx }, { CL_RGBx, CL_sRGBx }, { CL_DEPTH, CL_R },
};

static cl_int image_parent_get_2d(cl_mem mem, struct image_parent *parent)
{
	cl_int err = next.clGetImageInfo(mem, CL_IMAGE_WIDTH, sizeof(parent->width), &parent->width,
					 NULL);

	if (!err)
		err = next.clGetImageInfo(mem, CL_IMAGE_HEIGHT, sizeof(parent->height),
					  &parent->height, NULL);
	if (!err)
		err = next.clGetImageInfo(mem, CL_IMAGE_ROW_PITCH, sizeof(parent->row_pitch),
					  &parent->row_pitch, NULL);
	if (!err)
		err = next.clGetImageInfo(mem, CL_IMAGE_FORMAT, sizeof(parent->format),
					  &parent->format, NULL);
	if (err)
		error_of_driver("clGetImageInfo", err);
	return err;
}

cl_int image_parent_get(cl_mem mem, struct image_parent *parent)
{
	cl_int err;

	*parent = (struct image_parent){ 0 };
	err = next.clGetMemObjectInfo(mem, CL_MEM_CONTEXT, sizeof(parent->context),
				      &parent->context, NULL);
	if (!err)
		err = next.clGetMemObjectInfo(mem, CL_MEM_TYPE, sizeof(parent->type), &parent->type,
					      NULL);
	if (!err)
		err = next.clGetMemObjectInfo(mem, CL_MEM_FLAGS, sizeof(parent->flags),
					      &parent->flags, NULL);
	if (!err)
		err = next.clGetMemObjectInfo(mem, CL_MEM_SIZE, sizeof(parent->size), &parent->size,
					      NULL);
	if (err)
		error_of_driver("clGetMemObjectInfo", err);
	else if (parent->type == CL_MEM_OBJECT_IMAGE2D)
		err = image_parent_get_2d(mem, parent);
	return err;
}

static cl_int check_context(const struct image_request *r, const struct image_parent *parent)
{
	if (parent->context == r->context)
		return CL_SUCCESS;
	log_error("the image's context differs from the context of the image's memory object");
	return CL_INVALID_CONTEXT;
}

static cl_int check_flags(const struct image_request *r, const struct image_parent *parent)
{
	if (mem_flags_fit(r->flags, parent->flags))
		return CL_SUCCESS;
	log_error("the image's flags %s do not fit its memory object's, %s",
		  cl_mem_flags_names(r->flags),
		  cl_mem_flags_names(parent->flags & ~(cl_mem_flags)CL_MEM_USE_HOST_PTR));
	return CL_INVALID_VALUE;
}

static cl_int refuse_descriptor(const char *why)
{
	log_error("%s", why);
	return CL_INVALID_IMAGE_DESCRIPTOR;
}

static cl_int image_check_descriptor(const cl_image_desc *desc)
{
	if (!desc->image_width ||
	    (desc->image_type == CL_MEM_OBJECT_IMAGE2D && !desc->image_height))
		return refuse_descriptor("an image has at least one row and one column");
	if (desc->num_mip_levels || desc->num_samples)
		return refuse_descriptor("num_mip_levels and num_samples must be 0");
	if (desc->image_slice_pitch)
		return refuse_descriptor("image_slice_pitch must be 0 without a host pointer");
	return CL_SUCCESS;
}

static bool is_view(cl_channel_order image, cl_channel_order parent)
{
	bool found = image == parent;

	for (size_t i = 0; i < sizeof(views) / sizeof(views[0]); i++)
		found |= views[i].image == image && views[i].parent == parent;
	return found;
}

/* "creates a new image object that shares the image data store but views the pixels ... with a different channel order" */
static cl_int check_view(const struct image_request *r, const struct image_parent *parent)
{
	const cl_image_format *format = &parent->format;

	if (r->desc->image_width != parent->width || r->desc->image_height != parent->height ||
	    (r->desc->image_row_pitch && r->desc->image_row_pitch != parent->row_pitch))
		return refuse_descriptor("an image made from an image has its size and pitch");
	if (r->format->image_channel_data_type == format->image_channel_data_type &&
	    is_view(r->format->image_channel_order, format->image_channel_order))
		return CL_SUCCESS;
	log_error("an image made from an image has its channel data type, and its channel order or "
		  "the sRGB counterpart");
	return CL_INVALID_IMAGE_FORMAT_DESCRIPTOR;
}

static cl_int check_parent(const struct image_request *r, const struct image_parent *parent)
{
	const cl_mem_object_type type = r->desc->image_type;

	if (parent->type == CL_MEM_OBJECT_BUFFER &&
	    (type == CL_MEM_OBJECT_IMAGE2D || type == CL_MEM_OBJECT_IMAGE1D_BUFFER))
		return CL_SUCCESS;
	if (parent->type == CL_MEM_OBJECT_IMAGE2D && type == CL_MEM_OBJECT_IMAGE2D)
		return check_view(r, parent);
	return refuse_descriptor("an image of this type is not made from such a memory object");
}

cl_int image_check_request(const struct image_request *r, const struct image_parent *parent)
{
	cl_int err = check_context(r, parent);

	if (err)
		return err;
	if (!r->format) {
		log_error("image_format is NULL");
		return CL_INVALID_IMAGE_FORMAT_DESCRIPTOR;
	}
	if (r->host_ptr) {
		log_error("an image made from a memory object takes no host pointer");
		return CL_INVALID_HOST_PTR;
	}
	err = image_check_descriptor(r->desc);
	if (!err)
		err = check_parent(r, parent);
	return err ? err : check_flags(r, parent);
}

static cl_int check_address(const void *addr, size_t element)
{
	if (!((uintptr_t)addr % element))
		return CL_SUCCESS;
	log_error("the memory at %p does not begin at a multiple of the image's pixels, %zu bytes",
		  addr, element);
	return CL_INVALID_IMAGE_FORMAT_DESCRIPTOR;
}

cl_int image_check_address(const cl_image_format *format, const void *addr)
{
	size_t element = format ? image_format_element(format) : 0;

	return element ? check_address(addr, element) : CL_SUCCESS;
}

static cl_int refuse_pitch(size_t pitch, size_t width, size_t element)
{
	log_error("a row pitch of %zu bytes does not fit rows of %zu elements of %zu bytes", pitch,
		  width, element);
	return CL_INVALID_IMAGE_DESCRIPTOR;
}

/* @pitch: of the image, if @desc has no pitch. */
static cl_int check_extent(const cl_image_desc *desc, size_t element, size_t pitch,
			   const struct image_parent *parent)
{
	if (desc->image_row_pitch)
		pitch = desc->image_row_pitch;
	if (pitch % element || pitch / element < desc->image_width)
		return refuse_pitch(pitch, desc->image_width, element);
	if (desc->image_height > parent->size / pitch) {
		log_error("%zu rows of %zu bytes exceed the %zu bytes of the memory object",
			  desc->image_height, pitch, parent->size);
		return CL_INVALID_IMAGE_DESCRIPTOR;
	}
	return CL_SUCCESS;
}

cl_int image_check_extent(const cl_image_format *format, const cl_image_desc *desc,
			  const struct image_parent *parent)
{
	size_t element = image_format_element(format);

	if (!element)
		return CL_SUCCESS;
	return check_extent(desc, element, desc->image_width * element, parent);
}

cl_int image_check_made(cl_mem image, const cl_image_desc *desc, const void *addr,
			const struct image_parent *parent)
{
	size_t pitch = 0, element = 0;
	cl_int err;

	if (next.clGetImageInfo(image, CL_IMAGE_ROW_PITCH, sizeof(pitch), &pitch, NULL) ||
	    next.clGetImageInfo(image, CL_IMAGE_ELEMENT_SIZE, sizeof(element), &element, NULL) ||
	    !element) {
		log_error("the driver does not tell the size of an image");
		return CL_OUT_OF_RESOURCES;
	}
	err = check_address(addr, element);
	return err ? err : check_extent(desc, element, pitch, parent);
}
