/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/methods/host_ptr/image_made.h"

#include <stdint.h>

#include "icd/error.h"
#include "icd/image_format.h"
#include "icd/layer.h"
#include "icd/mem_flags.h"
#include "icd/methods/host_ptr/image_check.h"
#include "icd/methods/host_ptr/zero_copy.h"
#include "icd/methods/part.h"
#include "util/log.h"
#include "util/restricted.h"

unsigned char *image_memory(const struct memobj *parent)
{
	return (unsigned char *)parent->region->addr + parent->origin;
}

void image_place_get(const struct memobj *parent, struct image_place *place)
{
	void *const hidden = memobj_import(parent)->hidden;

	place->from = parent->parent || hidden ? IMAGE_OF_SUB_BUFFER : IMAGE_OF_BUFFER;
	place->ops = NULL;
	place->addr = (unsigned char *)parent->region->addr - part_offset(hidden);
	place->origin = parent->origin + part_offset(hidden);
}

/* What the request leaves to the driver: the pitch, and the size of an unusual format's pixels. */
static cl_int image_made_complete(cl_mem image, cl_image_format *format, cl_image_desc *desc)
{
	size_t element = image_format_element(format);
	cl_int err = CL_SUCCESS;

	if (!element) {
		err = next.clGetImageInfo(image, CL_IMAGE_ELEMENT_SIZE, sizeof(element), &element,
					  NULL);
		image_format_of_size(element, format);
	}
	if (!err && !desc->image_row_pitch && desc->image_type == CL_MEM_OBJECT_IMAGE2D)
		err = next.clGetImageInfo(image, CL_IMAGE_ROW_PITCH, sizeof(desc->image_row_pitch),
					  &desc->image_row_pitch, NULL);
	if (err)
		error_of_driver("clGetImageInfo", err);
	return err;
}

static cl_int image_made_prove(struct context *context, cl_mem image, const struct image_request *r,
			       const struct memobj *parent, const struct image_place *place,
			       cl_mem_flags flags)
{
	cl_image_format format = *r->format;
	cl_image_desc desc = *r->desc;
	struct zero_copy_context *c;
	cl_int err = image_made_complete(image, &format, &desc);

	if (!err)
		err = zero_copy_find(context, &c);
	return err ? err
		   : image_class_prove(c->proofs, parent->region->kinds, flags, &format, &desc,
				       place);
}

/* Nothing can be ignored: the image has one row, and begins with the root object, at a page. */
static bool image_made_is_plain(const cl_image_desc *desc, const struct image_place *place)
{
	return desc->image_type == CL_MEM_OBJECT_IMAGE1D_BUFFER && !place->origin &&
	       !((uintptr_t)place->addr & (class_page_size() - 1));
}

/* Whether @r describes an image that fits: other images the driver refuses. */
static bool image_made_is_possible(const struct image_request *r, const struct image_parent *from)
{
	const bool is_2d = r->desc->image_type == CL_MEM_OBJECT_IMAGE2D;
	const size_t element = r->format ? image_format_element(r->format) : 0;
	bool fits;

	if (!element || !r->desc->image_width || from->type != CL_MEM_OBJECT_BUFFER)
		return false;
	if (r->desc->image_type == CL_MEM_OBJECT_IMAGE1D_BUFFER)
		return r->desc->image_width <= from->size / element;
	log_hold();
	fits = is_2d && r->desc->image_height && !image_check_extent(r->format, r->desc, from);
	log_resume(false);
	return fits;
}

/* An image that needs no proof asks nobody in a program that has restricted its system calls. */
cl_int image_made_allow(struct context *context, const struct image_request *r,
			const struct memobj *parent, const struct image_place *place)
{
	struct zero_copy_context *c = context ? zero_copy_get(context) : NULL;
	struct image_parent from;
	bool is_known;

	if (!c || (image_made_is_plain(r->desc, place) && restricted_is_entered()))
		return CL_SUCCESS;
	log_hold();
	is_known = !image_parent_get(parent->handle, &from);
	log_resume(false);
	if (!is_known || !image_made_is_possible(r, &from))
		return CL_SUCCESS;
	return image_class_allow(c->proofs, parent->region->kinds,
				 mem_flags_inherit(r->flags, from.flags), r->format, r->desc,
				 place);
}

/* An image of an image shows the bytes of a proved image. */
cl_int image_made_check(struct context *context, cl_mem image, const struct image_request *r,
			const struct memobj *parent, const struct image_place *place)
{
	struct image_parent from;
	cl_int err;

	if (image_made_is_plain(r->desc, place))
		return CL_SUCCESS;
	err = image_parent_get(parent->handle, &from);
	if (err || from.type != CL_MEM_OBJECT_BUFFER)
		return err;
	if (r->desc->image_type == CL_MEM_OBJECT_IMAGE2D)
		err = image_check_made(image, r->desc, image_memory(parent), &from);
	return err ? err
		   : image_made_prove(context, image, r, parent, place,
				      mem_flags_inherit(r->flags, from.flags));
}
