/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What clCreateImage's specification asks of an image that is made from another object, for
 * images that the layer makes itself: the driver does not see the other object, so it cannot check.
 */
#ifndef ICD_CALLS_IMAGE_CHECK_H
#define ICD_CALLS_IMAGE_CHECK_H

#include <stdbool.h>

#include "icd/cl_compat.h"

/* The arguments of one of the two functions that create images; desc is not NULL. */
struct image_request {
	const char *function; /* its name */
	bool with_properties; /* it is clCreateImageWithProperties */
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
 * image_check_address - does an image on a buffer begin at a whole pixel of memory?
 *
 * A driver takes the address of a buffer to be aligned, an import's may be any.  Formats that are
 * not in the specification's tables pass: image_check_made() knows them.
 *
 * Returns CL_SUCCESS or CL_INVALID_IMAGE_FORMAT_DESCRIPTOR, logged.
 */
cl_int image_check_address(const cl_image_format *format, const void *addr);

/**
 * image_check_extent - does a 2D image that is about to be made fit its parent's memory?
 * @desc: what it is to be made with
 *
 * Formats that are not in the specification's tables pass, as above.
 *
 * Returns CL_SUCCESS or CL_INVALID_IMAGE_DESCRIPTOR, logged.
 */
cl_int image_check_extent(const cl_image_format *format, const cl_image_desc *desc,
			  const struct image_parent *parent);

/**
 * image_check_made - the same two for an image that was made, as the driver sees its size
 * @image: made over that memory; it knows its element's size and, if none was given, its pitch
 * @desc: what it was made with
 *
 * Returns their errors, or CL_OUT_OF_RESOURCES.
 */
cl_int image_check_made(cl_mem image, const cl_image_desc *desc, const void *addr,
			const struct image_parent *parent);

#endif /* ICD_CALLS_IMAGE_CHECK_H */
