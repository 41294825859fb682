/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images on imports by CL_MEM_USE_HOST_PTR.
 *
 * The driver creates the image from the import's buffer if the driver can, and a self-test shows that
 * such images work on the buffer's memory (image_made.h).  Other images the layer creates over the
 * same memory, and the driver does not know their parent: a 2D image for a driver without
 * cl_khr_image2d_from_buffer, and an image on a sub-buffer for a driver that takes root buffers
 * only, or ignores where a sub-buffer begins.
 */
#ifndef ICD_METHODS_HOST_PTR_IMAGE_CREATE_H
#define ICD_METHODS_HOST_PTR_IMAGE_CREATE_H

#include "icd/methods/method.h"

/* See method_ops.create_image. */
cl_mem image_create(struct context *context, const struct memobj *parent,
		    const struct image_request *request, bool *hides_parent, cl_int *err);

#endif /* ICD_METHODS_HOST_PTR_IMAGE_CREATE_H */
