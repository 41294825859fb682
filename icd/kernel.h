/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which kernels have bracketed imports as arguments.  Arguments are kept by
 * handle: an object that is gone is not found any more when the kernel runs.
 */
#ifndef ICD_KERNEL_H
#define ICD_KERNEL_H

#include "memobj.h"

/**
 * kernel_imports - the bracketed imports that are arguments of a kernel
 * @objs: set to an array that the caller gives to kernel_imports_put()
 *
 * Returns how many; 0 and NULL for almost every kernel.
 */
size_t kernel_imports(cl_kernel kernel, struct memobj ***objs);
void kernel_imports_put(struct memobj **objs, size_t count);

#endif /* ICD_KERNEL_H */
