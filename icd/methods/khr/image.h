/* SPDX-License-Identifier: Apache-2.0 */
/* Images on imports by cl_khr_external_memory: the driver makes them from the import's buffer. */
#ifndef ICD_METHODS_KHR_IMAGE_H
#define ICD_METHODS_KHR_IMAGE_H

#include "icd/objects/method.h"

/* See struct method_ops. */
bool khr_test_images(const struct device *device, struct image_rule *rules, image_note_fn note,
		     void *arg);
cl_mem khr_create_image(struct context *context, const struct memobj *parent,
			const struct image_request *request, bool *hides_parent, cl_int *err);

#endif /* ICD_METHODS_KHR_IMAGE_H */
