/* SPDX-License-Identifier: Apache-2.0 */
/* Where a driver keeps compiled kernels, and whether the driver can. */
#ifndef TOOLS_KERNEL_CACHE_H
#define TOOLS_KERNEL_CACHE_H

#include <CL/cl.h>

/*
 * NULL, or a sentence: why the platform's driver cannot keep compiled kernels, and the remedy.
 * PoCL then has no devices (CL_DEVICE_NOT_FOUND), or compiles nothing (CL_BUILD_PROGRAM_FAILURE).
 * Each call replaces the sentence of the last.
 */
const char *kernel_cache_why(cl_platform_id platform);

#endif /* TOOLS_KERNEL_CACHE_H */
