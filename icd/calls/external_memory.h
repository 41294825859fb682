/* SPDX-License-Identifier: Apache-2.0 */
/* Memory objects of cl_khr_external_memory_dma_buf, where the driver lacks it. */
#ifndef ICD_CALLS_EXTERNAL_MEMORY_H
#define ICD_CALLS_EXTERNAL_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

#include "icd/objects/method.h"

/* The devices of CL_MEM_DEVICE_HANDLE_LIST_KHR, ended by 0; NULL: no such property. */
const cl_mem_properties *external_devices(const cl_mem_properties *properties);

/* The words of a list, with the 0 at its end. */
size_t external_length(const cl_mem_properties *properties);

#endif /* ICD_CALLS_EXTERNAL_MEMORY_H */
