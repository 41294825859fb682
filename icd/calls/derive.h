/* SPDX-License-Identifier: Apache-2.0 */
/* Images on imports. */
#ifndef ICD_CALLS_DERIVE_H
#define ICD_CALLS_DERIVE_H

#include "icd/objects/memobj.h"

struct context;
struct image_request;

/*
 * An image on @parent, and its record.  @properties: struct memobj's, taken over on success.  Without an image *err is
 * set and the reason logged; the driver may give a handle all the same.  @r: its flags follow the parent's.
 */
cl_mem derive_image(struct context *context, struct image_request *r, struct memobj *parent,
		    cl_mem_properties *properties, cl_int *err);

/* An image that a program asks for: on an import by its method, any other by the driver. */
cl_mem derive_image_of_request(struct image_request *r, cl_int *errcode_ret);

#endif /* ICD_CALLS_DERIVE_H */
