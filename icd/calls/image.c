/* SPDX-License-Identifier: Apache-2.0 */
/* Images on imports, made by the method that took the import. */
#include "icd/calls/derive.h"
#include "icd/intercept.h"
#include "icd/layer.h"
#include "icd/methods/method.h"
#include "icd/objects/context.h"
#include "util/log.h"

static cl_mem image_create_by_method(struct context *context, const struct image_request *r,
				     struct memobj *parent, cl_int *err)
{
	bool hides_parent = false;
	cl_mem image;

	if (!parent->method->create_image) {
		log_error("this device makes no usable images on imported memory");
		*err = CL_INVALID_OPERATION;
		return NULL;
	}
	image = parent->method->create_image(context, parent, r, &hides_parent, err);
	if (!is_created(image, *err))
		return image;
	return derive_record(image, parent, 0, hides_parent, err);
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
	image = image_create_by_method(context, &r, parent, &err);
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
