/* SPDX-License-Identifier: Apache-2.0 */
/* Images that the driver makes. */
#ifndef ICD_METHODS_IMAGE_BY_DRIVER_H
#define ICD_METHODS_IMAGE_BY_DRIVER_H

#include "icd/objects/method.h"

/* The driver's call, with @flags, @desc and @host_ptr in place of the application's. */
cl_mem image_by_driver(const struct image_request *r, cl_mem_flags flags, const cl_image_desc *desc,
		       void *host_ptr, cl_int *err);

/*
 * Logs that the driver refused the image with @err.  Only now is the driver asked for its formats, as
 * not every driver says with its error that the format is the fault (PoCL 3.1).
 */
void image_refused_by_driver(const struct image_request *r, cl_mem_flags flags, cl_int err);

/* The application's request, unchanged: struct method_ops's create_image. */
cl_mem image_by_driver_create(struct context *context, const struct memobj *parent,
			      const struct image_request *r, bool *hides_parent, cl_int *err);

#endif /* ICD_METHODS_IMAGE_BY_DRIVER_H */
