/* SPDX-License-Identifier: Apache-2.0 */
/* Memory objects of cl_khr_external_memory_dma_buf, where the driver lacks it. */
#ifndef ICD_CALLS_EXTERNAL_MEMORY_H
#define ICD_CALLS_EXTERNAL_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

#include "icd/objects/method.h"

/*
 * Whether the list has CL_EXTERNAL_MEMORY_HANDLE_DMA_BUF_KHR, or devices for nothing, which drivers without the
 * extension may take.  @properties: or NULL.
 */
bool external_is_ours(const cl_mem_properties *properties);

/* The devices of CL_MEM_DEVICE_HANDLE_LIST_KHR, ended by 0; NULL: no such property. */
const cl_mem_properties *external_devices(const cl_mem_properties *properties);

/* The words of a list, with the 0 at its end. */
size_t external_length(const cl_mem_properties *properties);

/*
 * An object of @r->properties, external_is_ours(): an image, or without r->desc a buffer of @size bytes.
 * False: the driver has the extension, or the context is none of the layer's, so the driver gets the call.  Else *mem, or
 * NULL and *err, which is logged and told to the context's callback.
 */
bool external_make(const struct image_request *r, size_t size, cl_mem *mem, cl_int *err);

#endif /* ICD_CALLS_EXTERNAL_MEMORY_H */
