/* SPDX-License-Identifier: Apache-2.0 */
/* Images that the driver makes. */
#ifndef ICD_METHODS_IMAGE_BY_DRIVER_H
#define ICD_METHODS_IMAGE_BY_DRIVER_H

#include "icd/objects/method.h"

/*
 * The driver's call, with @flags, @desc and @host_ptr in place of the application's.  A refusal is logged; if the
 * driver has no images of the format, with the formats that it has.
 */
cl_mem image_by_driver(const struct image_request *r, cl_mem_flags flags, const cl_image_desc *desc,
		       void *host_ptr, cl_int *err);

#endif /* ICD_METHODS_IMAGE_BY_DRIVER_H */
