/* SPDX-License-Identifier: Apache-2.0 */
/* Memory objects of cl_khr_external_memory_dma_buf, where the driver lacks it. */
#ifndef ICD_CALLS_EXTERNAL_MEMORY_H
#define ICD_CALLS_EXTERNAL_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

#include "icd/cl_compat.h"

/* The application's arguments; the properties have a dma-buf. */
struct external_request {
	const char *function; /* the name */
	cl_context context;
	const cl_mem_properties *properties;
	cl_mem_flags flags;
	size_t size;		       /* of a buffer, in bytes */
	const cl_image_format *format; /* of an image */
	const cl_image_desc *desc;     /* of an image; NULL: a buffer is asked for */
	void *host_ptr;
};

/* Whether the list has CL_EXTERNAL_MEMORY_HANDLE_DMA_BUF_KHR.  @properties: or NULL. */
bool external_is_dma_buf(const cl_mem_properties *properties);

/* The devices of CL_MEM_DEVICE_HANDLE_LIST_KHR, ended by 0; NULL: no such property. */
const cl_mem_properties *external_devices(const cl_mem_properties *properties);

/* The words of a list, with the 0 at its end. */
size_t external_length(const cl_mem_properties *properties);

/*
 * False: the driver has the extension, or the context is none of the layer's, so the driver gets the call.  Else *mem, or
 * NULL and *err, which is logged and told to the context's callback.
 */
bool external_make(const struct external_request *r, cl_mem *mem, cl_int *err);

#endif /* ICD_CALLS_EXTERNAL_MEMORY_H */
