/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/calls/in_place_image.h"

#include "icd/access/queue_bracket.h"
#include "icd/calls/in_place.h"
#include "icd/error.h"
#include "icd/layer.h"
#include "icd/mem_flags.h"
#include "util/cl_names.h"
#include "util/log.h"

static cl_int in_place_image_check(const struct image_request *r, const struct memobj *parent)
{
	const cl_mem_flags from = in_place_flags(parent->in_place);

	if (r->context != parent->context) {
		log_error("the image's context differs from the context of the image's buffer");
		return CL_INVALID_CONTEXT;
	}
	if (mem_flags_fit(r->flags, from))
		return CL_SUCCESS;
	log_error("the image's flags %s do not fit its buffer's, %s", cl_mem_flags_names(r->flags),
		  cl_mem_flags_names(from));
	return CL_INVALID_VALUE;
}

/* The driver's image of the stage, or of an image of the stage. */
static cl_mem in_place_image_by_driver(const struct image_request *r, const struct memobj *parent,
				       cl_mem stage, cl_mem_flags flags, cl_int *err)
{
	cl_image_desc desc = *r->desc;
	cl_mem image;

	desc.mem_object = parent->is_staged ? parent->handle : stage;
	flags = in_place_driver_flags(flags);
	if (r->with_properties)
		image = next.clCreateImageWithProperties(r->context, r->properties, flags,
							 r->format, &desc, r->host_ptr, err);
	else
		image = next.clCreateImage(r->context, flags, r->format, &desc, r->host_ptr, err);
	return error_created_or_null(r->function, image, err);
}

static cl_int in_place_image_record(cl_mem image, struct memobj *parent, cl_mem_flags flags,
				    bool has_properties)
{
	const struct memobj like = {
		.handle = image,
		.context = parent->context,
		.region = parent->region,
		.origin = parent->origin,
		.parent = parent,
		.method = parent->method,
		.hides_parent = true,
		.is_staged = true,
		.in_place = in_place_create_part(flags | CL_MEM_USE_HOST_PTR, has_properties),
	};
	cl_int err = like.in_place ? memobj_add(&like) : CL_OUT_OF_HOST_MEMORY;

	if (err)
		in_place_free(like.in_place);
	return err;
}

cl_mem in_place_image_create(const struct image_request *r, struct memobj *parent, cl_int *err)
{
	const struct memobj *source = parent->is_staged ? memobj_stage_source(parent) : parent;
	cl_mem_flags flags;
	cl_mem stage, image;

	*err = in_place_image_check(r, parent);
	if (*err)
		return NULL;
	flags = mem_flags_inherit(r->flags, in_place_flags(parent->in_place));
	stage = in_place_get_stage(source->in_place, source->context, source->handle, err);
	if (!stage)
		return NULL;
	image = in_place_image_by_driver(r, parent, stage, flags, err);
	if (image)
		*err = in_place_image_record(image, parent, flags, r->properties);
	if (!*err) {
		log_debug("%s: an image of memory in place: each command on the image copies the "
			  "buffer",
			  r->function);
		return image;
	}
	if (image)
		next.clReleaseMemObject(image);
	in_place_put_stage(source->in_place);
	return NULL;
}

static bool in_place_image_is_1d(cl_mem image)
{
	cl_mem_object_type type = 0;

	return !next.clGetMemObjectInfo(image, CL_MEM_TYPE, sizeof(type), &type, NULL) &&
	       type == CL_MEM_OBJECT_IMAGE1D_BUFFER;
}

bool in_place_image_is_of(cl_mem image, cl_mem buffer)
{
	struct memobj *obj = memobj_live() ? memobj_get(image) : NULL;
	const bool is_of = obj && obj->is_staged && obj->parent->handle == buffer &&
			   in_place_image_is_1d(image);

	memobj_put(obj);
	if (is_of)
		log_error("a copy between a 1D image and the buffer that the image is made of");
	return is_of;
}

/* What a map of an image needs to know. */
struct in_place_image_shape {
	size_t pixel, pitch, width, height;
};

static cl_int in_place_image_query(cl_mem image, cl_image_info name, size_t *value)
{
	return next.clGetImageInfo(image, name, sizeof(*value), value, NULL);
}

static cl_int in_place_image_shape_get(cl_mem image, struct in_place_image_shape *shape)
{
	cl_int err = in_place_image_query(image, CL_IMAGE_ELEMENT_SIZE, &shape->pixel);

	if (!err)
		err = in_place_image_query(image, CL_IMAGE_ROW_PITCH, &shape->pitch);
	if (!err)
		err = in_place_image_query(image, CL_IMAGE_WIDTH, &shape->width);
	if (!err)
		err = in_place_image_query(image, CL_IMAGE_HEIGHT, &shape->height);
	if (!shape->height)
		shape->height = 1; /* 1D */
	if (!shape->pitch)
		shape->pitch = shape->width * shape->pixel;
	return err;
}

static bool in_place_image_has(const struct in_place_image_shape *shape, const size_t *origin,
			       const size_t *region)
{
	return region[0] && region[1] && origin[0] <= shape->width &&
	       region[0] <= shape->width - origin[0] && origin[1] <= shape->height &&
	       region[1] <= shape->height - origin[1] && !origin[2] && region[2] == 1;
}

static cl_int in_place_image_check_map(const struct memobj *image,
				       const struct in_place_image_call *c,
				       struct in_place_image_shape *shape)
{
	cl_int err = in_place_image_shape_get(image->handle, shape);

	if (err)
		return err;
	if (!c->origin || !c->region || !c->row_pitch ||
	    !in_place_image_has(shape, c->origin, c->region))
		return CL_INVALID_VALUE;
	return in_place_check_map_flags(image, c->flags);
}

void *in_place_image_map(const struct memobj *image, const struct in_place_image_call *c,
			 cl_int *err)
{
	const struct in_place_order order = { CL_COMMAND_MAP_IMAGE, c->queue, c->blocking,
					      c->num_wait,	    c->wait,  c->event };
	struct in_place_image_shape shape = { 0 };
	char *pointer;

	*err = in_place_image_check_map(image, c, &shape);
	if (*err)
		return NULL;
	pointer = (char *)image->region->addr + image->origin + c->origin[1] * shape.pitch +
		  c->origin[0] * shape.pixel;
	*err = in_place_map_at(image, pointer, &order);
	if (*err)
		return NULL;
	*c->row_pitch = shape.pitch;
	if (c->slice_pitch)
		*c->slice_pitch = 0;
	return pointer;
}
