/* SPDX-License-Identifier: Apache-2.0 */
/* Images on imports. */
#ifndef ICD_CALLS_DERIVE_H
#define ICD_CALLS_DERIVE_H

#include "icd/objects/memobj.h"

struct context;
struct image_request;

/*
 * An image on @parent, and its record.  @properties: struct memobj's, taken over on success.  Without an image *err is
 * set and the reason logged; the driver may give a handle all the same.
 */
cl_mem derive_image(struct context *context, const struct image_request *asked,
		    struct memobj *parent, cl_mem_properties *properties, cl_int *err);

#endif /* ICD_CALLS_DERIVE_H */
