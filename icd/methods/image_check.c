/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/methods/image_check.h"

#include <stdbool.h>
#include <stdint.h>

#include "icd/error.h"
#include "icd/image_format.h"
#include "icd/layer.h"
#include "icd/mem_flags.h"
#include "util/cl_names.h"
#include "util/log.h"

cl_int image_parent_get(cl_mem mem, struct image_parent *parent)
{
	const struct {
		cl_mem_info name;
		size_t size;
		void *value;
	} queries[] = {
		{ CL_MEM_CONTEXT, sizeof(parent->context), &parent->context },
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

/* What needs no size of a pixel. */
static cl_int check_request(const struct image_request *r)
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
		return refuse_descriptor("an image has at least one row and one column");
	if (desc->num_mip_levels || desc->num_samples)
		return refuse_descriptor("num_mip_levels and num_samples must be 0");
	if (desc->image_slice_pitch)
		return refuse_descriptor("image_slice_pitch must be 0 without a host pointer");
	if (!is_2d && desc->image_type != CL_MEM_OBJECT_IMAGE1D_BUFFER)
		return refuse_descriptor("an image of this type is not made from a buffer");
	return CL_SUCCESS;
}

size_t image_pitch(const struct image_request *r)
{
	return r->desc->image_row_pitch ? r->desc->image_row_pitch
					: r->desc->image_width * image_format_element(r->format);
}

/* Whether a 2D image fits the memory. */
static cl_int check_extent(const struct image_request *r, size_t element, size_t size)
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

static cl_int check_pixels(const struct image_request *r, const struct image_parent *parent,
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
	return r->desc->image_type == CL_MEM_OBJECT_IMAGE2D ? check_extent(r, element, parent->size)
							    : CL_SUCCESS;
}

cl_int image_check(const struct image_request *r, const struct image_parent *parent,
		   const void *addr)
{
	cl_int err;

	if (parent->context != r->context) {
		log_error("the image's context differs from the context of the image's memory "
			  "object");
		return CL_INVALID_CONTEXT;
	}
	err = check_request(r);
	if (!err)
		err = check_flags(r, parent);
	return err ? err : check_pixels(r, parent, addr);
}
