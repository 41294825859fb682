/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What clCreateImage's specification asks of an image that is made from another object, for
 * images that the layer makes itself: the driver does not see the other object, so it cannot check.
 */
#ifndef ICD_IMAGE_CHECK_H
#define ICD_IMAGE_CHECK_H

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

/* The buffer or image that an image is to be made from. */
struct image_parent {
	cl_context context;
	cl_mem_object_type type;
	cl_mem_flags flags;
	size_t size;
	size_t width, height, row_pitch; /* of a 2D image */
	cl_image_format format;		 /* the same */
};

/* Asks the driver for what @parent has.  CL_SUCCESS, or the driver's error, logged. */
cl_int image_parent_get(cl_mem mem, struct image_parent *parent);

/**
 * image_check_request - the rules that need no image
 *
 * Returns CL_SUCCESS or the specification's error, logged.
 */
cl_int image_check_request(const struct image_request *r, const struct image_parent *parent);

/**
 * image_check_extent - does a 2D image fit its parent's memory?
 * @image: made over that memory; it knows its element's size and, if none was given, its pitch
 * @desc: what it was made with
 *
 * Returns CL_SUCCESS or CL_INVALID_IMAGE_DESCRIPTOR, logged, or CL_OUT_OF_RESOURCES.
 */
cl_int image_check_extent(cl_mem image, const cl_image_desc *desc,
			  const struct image_parent *parent);

#endif /* ICD_IMAGE_CHECK_H */
