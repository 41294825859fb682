/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images on imports by cl_khr_external_memory: the driver makes them, and a self-test on a dma-buf
 * shows that they work on the buffer's memory (host_ptr/image_made.h).
 */
#ifndef ICD_METHODS_KHR_IMAGE_H
#define ICD_METHODS_KHR_IMAGE_H

#include "icd/methods/method.h"

extern const struct proof khr_image_proof;

/* See struct method_ops. */
cl_mem khr_create_image(struct context *context, const struct memobj *parent,
			const struct image_request *request, bool *hides_parent, cl_int *err);

#endif /* ICD_METHODS_KHR_IMAGE_H */
