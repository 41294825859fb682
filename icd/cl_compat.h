/* SPDX-License-Identifier: Apache-2.0 */
/* OpenCL as the layer sees it, with what older Khronos headers lack. */
#ifndef ICD_CL_COMPAT_H
#define ICD_CL_COMPAT_H

#ifndef CL_TARGET_OPENCL_VERSION
#define CL_TARGET_OPENCL_VERSION 300
#endif
#define CL_ENABLE_BETA_EXTENSIONS /* cl_khr_command_buffer */
#define CL_USE_DEPRECATED_OPENCL_1_0_APIS
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#define CL_USE_DEPRECATED_OPENCL_2_0_APIS
#define CL_USE_DEPRECATED_OPENCL_2_1_APIS
#define CL_USE_DEPRECATED_OPENCL_2_2_APIS
#include <CL/cl.h>
#include <CL/cl_ext.h>
#include <CL/cl_icd.h>
#include <CL/cl_layer.h>

/* cl_khr_extended_versioning of OpenCL 1.x and 2.x drivers */
#ifndef CL_PLATFORM_EXTENSIONS_WITH_VERSION_KHR
#define CL_PLATFORM_EXTENSIONS_WITH_VERSION_KHR 0x0907
#define CL_DEVICE_EXTENSIONS_WITH_VERSION_KHR 0x1060
#endif

/* cl_khr_external_memory 1.0; older headers have the first as CL_DEVICE_HANDLE_LIST_KHR */
#ifndef CL_MEM_DEVICE_HANDLE_LIST_KHR
#define CL_MEM_DEVICE_HANDLE_LIST_KHR 0x2051
#endif
#ifndef CL_DEVICE_EXTERNAL_MEMORY_IMPORT_ASSUME_LINEAR_IMAGES_HANDLE_TYPES_KHR
#define CL_DEVICE_EXTERNAL_MEMORY_IMPORT_ASSUME_LINEAR_IMAGES_HANDLE_TYPES_KHR 0x2052
#endif

#endif /* ICD_CL_COMPAT_H */
