/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images that the driver has made from an import, a sub-buffer of an import, or a backing buffer.
 *
 * A driver may accept a pitch below the width, ignore where a sub-buffer begins, or work on a copy:
 * the picture is wrong, and no call fails.  So the layer checks the pitch, and a self-test decides
 * whether such images work on the memory of the buffer.
 */
#ifndef ICD_METHODS_HOST_PTR_IMAGE_MADE_H
#define ICD_METHODS_HOST_PTR_IMAGE_MADE_H

#include "icd/methods/host_ptr/image_class.h"
#include "icd/methods/method.h"

/* The first byte of an import, or of an object that is made from an import. */
unsigned char *image_memory(const struct memobj *parent);

/* The place of an image that the driver makes from @parent. */
void image_place_get(const struct memobj *parent, struct image_place *place);

/**
 * image_made_allow - may the driver make an image?
 * @r: the request, which the driver checks later; without flags, the image has the flags of @parent
 * @place: of the image
 *
 * A driver that crashes with the image would end the application (image_class_allow()).  Returns
 * CL_SUCCESS or an error, logged.
 */
cl_int image_made_allow(struct context *context, const struct image_request *r,
			const struct memobj *parent, const struct image_place *place);

/**
 * image_made_check - may the application have the driver's @image?
 * @r: the request; without flags, the image has the flags of @parent
 * @parent: the memory object that the application has asked for
 * @place: of the image
 *
 * Returns CL_SUCCESS; an error of image_check_made(); CL_INVALID_OPERATION, the image does not work
 * on the memory; or another error.  Logged.
 */
cl_int image_made_check(struct context *context, cl_mem image, const struct image_request *r,
			const struct memobj *parent, const struct image_place *place);

#endif /* ICD_METHODS_HOST_PTR_IMAGE_MADE_H */
