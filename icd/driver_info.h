/* SPDX-License-Identifier: Apache-2.0 */
/* What drivers say of their platforms and devices. */
#ifndef ICD_DRIVER_INFO_H
#define ICD_DRIVER_INFO_H

#include <stdbool.h>
#include <stddef.h>

#include "icd/cl_compat.h"
#include "import/import.h"

/* The root devices of a platform, which the caller frees.  NULL: there are none, or no memory. */
cl_device_id *device_list(cl_platform_id platform, cl_uint *count);

/* The root device of a sub-device; @id if @id is a root device. */
cl_device_id device_root(cl_device_id id);

/* CL_DEVICE_MEM_BASE_ADDR_ALIGN in bytes: sub-buffers begin at multiples of it. */
size_t device_base_align(cl_device_id id);

/* An information string of the driver, without the layer's additions: the caller's, or NULL. */
char *device_string(cl_device_id id, cl_device_info name);
char *platform_string(cl_platform_id platform, cl_platform_info name);

/*
 * The OpenCL version of a device: functions of newer versions must not be called for the device.
 * 0: the version cannot be read now.
 */
cl_version device_version(cl_device_id id);

/* Whether a space-separated @list has the word @name. */
bool has_word(const char *list, const char *name);

/* The extension name for a type: "cl_arm_import_memory_host", ... */
const char *type_extension(enum import_type type);

/* Whether the driver itself imports handles of a type on the device, or of any (0): cl_khr_external_memory. */
bool driver_imports(cl_device_id device, cl_external_memory_handle_type_khr type);

#endif /* ICD_DRIVER_INFO_H */
