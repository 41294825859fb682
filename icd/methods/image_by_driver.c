/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/methods/image_by_driver.h"

#include "icd/error.h"
#include "icd/layer.h"

cl_mem image_by_driver(const struct image_request *r, cl_mem_flags flags, const cl_image_desc *desc,
		       void *host_ptr, cl_int *err)
{
	if (r->with_properties && next.clCreateImageWithProperties)
		return next.clCreateImageWithProperties(r->context, r->properties, flags, r->format,
							desc, host_ptr, err);
	return next.clCreateImage(r->context, flags, r->format, desc, host_ptr, err);
}

cl_mem image_by_driver_create(struct context *context, const struct memobj *parent,
			      const struct image_request *r, bool *hides_parent, cl_int *err)
{
	cl_mem image = image_by_driver(r, r->flags, r->desc, r->host_ptr, err);

	(void)context;
	(void)parent;
	(void)hides_parent;
	if (!is_created(image, *err))
		error_of_driver(r->function, *err);
	return image;
}
