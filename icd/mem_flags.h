/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flags of memory objects that are made from memory objects: clCreateSubBuffer() and clCreateImage()
 * of the OpenCL 3.0 specification.
 */
#ifndef ICD_MEM_FLAGS_H
#define ICD_MEM_FLAGS_H

#include <stdbool.h>

#include "icd/cl_compat.h"

/*
 * Whether an object with @flags may be made from an object with the flags @parent: no flags of host
 * pointers, no flags that exclude each other, and no access that @parent excludes.
 */
bool mem_flags_fit(cl_mem_flags flags, cl_mem_flags parent);

/* "If the flags ... are not specified, they are inherited from the buffer." */
cl_mem_flags mem_flags_inherit(cl_mem_flags flags, cl_mem_flags parent);

#endif /* ICD_MEM_FLAGS_H */
