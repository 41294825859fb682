/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of clCreateImage for an image that is made from a buffer.  The layer checks these
 * rules for images that the layer creates, because the driver does not see the buffer, and for others, because not
 * every driver checks.
 */
#ifndef ICD_METHODS_IMAGE_CHECK_H
#define ICD_METHODS_IMAGE_CHECK_H

#include "icd/objects/method.h"

/* The buffer or image that an image is to be made from. */
struct image_parent {
	cl_context context;
	cl_mem_object_type type;
	cl_mem_flags flags;
	size_t size;
};

/* Asks the driver for the properties of @mem.  CL_SUCCESS, or the driver's error, logged. */
cl_int image_parent_get(cl_mem mem, struct image_parent *parent);

/**
 * image_check - is the request as the specification wants it?
 * @parent: a buffer
 * @addr: of the parent's memory.  A driver expects a buffer at an aligned address; the address of an import may be any
 *
 * Returns CL_SUCCESS or the specification's error, logged.
 */
cl_int image_check(const struct image_request *r, const struct image_parent *parent,
		   const void *addr);

/* Bytes from row to row of a 2D image. */
size_t image_pitch(const struct image_request *r);

#endif /* ICD_METHODS_IMAGE_CHECK_H */
