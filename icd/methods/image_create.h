/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images on imports.  Before an image is made, the rule of each device of the context says whether such images are
 * zero copy (facts/image_rule.h).
 *
 * The driver makes the image from the import's buffer where it can.  Other images the layer makes over the same host
 * memory by CL_MEM_USE_HOST_PTR, and the driver does not know their parent: a 2D image for a driver without
 * cl_khr_image2d_from_buffer, and an image on a sub-buffer for a driver that takes root buffers only, or ignores where
 * a sub-buffer begins (rusticl of Mesa 25.0).
 */
#ifndef ICD_METHODS_IMAGE_CREATE_H
#define ICD_METHODS_IMAGE_CREATE_H

#include "icd/objects/method.h"

/* See method_ops.create_image. */
cl_mem image_create(struct context *context, const struct memobj *parent,
		    const struct image_request *request, bool *hides_parent, cl_int *err);

#endif /* ICD_METHODS_IMAGE_CREATE_H */
