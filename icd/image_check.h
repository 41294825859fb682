/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What clCreateImage's specification asks of an image that is made from another object, for
 * images that the layer makes itself: the driver does not see the other object, so it cannot check.
 */
#ifndef ICD_IMAGE_CHECK_H
#define ICD_IMAGE_CHECK_H

#include <stdbool.h>

#include "cl_compat.h"

/* The arguments of clCreateImage or clCreateImageWithProperties; desc is not NULL. */
struct image_request {
	cl_context context;
	const cl_mem_properties *properties;
	cl_mem_flags flags;
	const cl_image_format *format;
	const cl_image_desc *desc;
	void *host_ptr;
};

/**
 * image_check_request - the rules that need no image
 * @parent: the buffer or image that the image is to be made from
 *
 * Returns CL_SUCCESS or the specification's error, logged.
 */
cl_int image_check_request(const struct image_request *r, cl_mem parent);

/**
 * image_check_extent - does a 2D image fit its parent's memory?
 * @image: made over that memory; it knows its element's size and, if none was given, its pitch
 * @desc: what it was made with
 *
 * Returns CL_SUCCESS or CL_INVALID_IMAGE_DESCRIPTOR, logged, or CL_OUT_OF_RESOURCES.
 */
cl_int image_check_extent(cl_mem image, const cl_image_desc *desc, cl_mem parent);

/* Whether an object is a buffer. */
bool image_check_is_buffer(cl_mem mem);

#endif /* ICD_IMAGE_CHECK_H */
