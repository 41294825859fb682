/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of clCreateImage for an image that is made from another object.  The layer checks these
 * rules for images that the layer creates, because the driver does not see the other object, and for 1D
 * images, because not every driver checks.
 */
#ifndef ICD_METHODS_HOST_PTR_IMAGE_CHECK_H
#define ICD_METHODS_HOST_PTR_IMAGE_CHECK_H

#include "icd/objects/method.h"

/* The buffer or image that an image is to be made from. */
struct image_parent {
	cl_context context;
	cl_mem_object_type type;
	cl_mem_flags flags;
	size_t size;
	size_t width, height, row_pitch; /* of a 2D image */
	cl_image_format format;		 /* of a 2D image */
};

/* Asks the driver for the properties of @mem.  CL_SUCCESS, or the driver's error, logged. */
cl_int image_parent_get(cl_mem mem, struct image_parent *parent);

/**
 * image_check_request - the rules that need no image
 *
 * Returns CL_SUCCESS or the specification's error, logged.
 */
cl_int image_check_request(const struct image_request *r, const struct image_parent *parent);

/**
 * image_check_address - does an image on a buffer begin at a whole pixel of memory?
 *
 * A driver expects a buffer at an aligned address; the address of an import may be any.  Formats
 * outside the specification's tables pass: image_check_made() knows their size.
 *
 * Returns CL_SUCCESS or CL_INVALID_IMAGE_FORMAT_DESCRIPTOR, logged.
 */
cl_int image_check_address(const cl_image_format *format, const void *addr);

/**
 * image_check_extent - does a new 2D image fit the memory of its parent?
 * @desc: the descriptor for the driver
 *
 * Formats outside the specification's tables pass, as above.
 *
 * Returns CL_SUCCESS or CL_INVALID_IMAGE_DESCRIPTOR, logged.
 */
cl_int image_check_extent(const cl_image_format *format, const cl_image_desc *desc,
			  const struct image_parent *parent);

/**
 * image_check_made - image_check_address() and image_check_extent() with the driver's sizes
 * @image: created over the memory at @addr; the driver knows its element size, and its pitch if
 *	@desc has no pitch
 * @desc: the descriptor that the driver got
 *
 * Returns CL_SUCCESS, the error of a check, or CL_OUT_OF_RESOURCES.
 */
cl_int image_check_made(cl_mem image, const cl_image_desc *desc, const void *addr,
			const struct image_parent *parent);

#endif /* ICD_METHODS_HOST_PTR_IMAGE_CHECK_H */
