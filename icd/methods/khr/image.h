/* SPDX-License-Identifier: Apache-2.0 */
/* Images on imports by cl_khr_external_memory: the driver makes them from the import's buffer. */
#ifndef ICD_METHODS_KHR_IMAGE_H
#define ICD_METHODS_KHR_IMAGE_H

#include "icd/objects/method.h"

/* See struct method_ops. */
extern const struct method_danger khr_image_dangers[];
cl_mem khr_create_image(struct context *context, const struct memobj *parent,
			const struct image_request *request, bool *hides_parent, cl_int *err);

#endif /* ICD_METHODS_KHR_IMAGE_H */
