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

#endif /* ICD_CL_COMPAT_H */
