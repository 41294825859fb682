/* SPDX-License-Identifier: Apache-2.0 */
/* Flags of memory objects, and of objects made from them: clCreateBuffer(), clCreateSubBuffer(), clCreateImage(). */
#ifndef ICD_MEM_FLAGS_H
#define ICD_MEM_FLAGS_H

#include <stdbool.h>

#include "icd/cl_compat.h"

/* What kernels and what the host may do: of each, one flag at most. */
#define MEM_FLAGS_ACCESS ((cl_mem_flags)(CL_MEM_READ_WRITE | CL_MEM_WRITE_ONLY | CL_MEM_READ_ONLY))
#define MEM_FLAGS_HOST \
	((cl_mem_flags)(CL_MEM_HOST_WRITE_ONLY | CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_NO_ACCESS))

static inline bool mem_flags_exclude_each_other(cl_mem_flags flags)
{
	const cl_mem_flags access = flags & MEM_FLAGS_ACCESS, host = flags & MEM_FLAGS_HOST;

	return access & (access - 1) || host & (host - 1); /* more than one */
}

/*
 * Whether an object with @flags may be made from an object with the flags @parent: no flags of host
 * pointers, no flags that exclude each other, and no access that @parent excludes.
 */
bool mem_flags_fit(cl_mem_flags flags, cl_mem_flags parent);

/* "If the flags ... are not specified, they are inherited from the buffer." */
cl_mem_flags mem_flags_inherit(cl_mem_flags flags, cl_mem_flags parent);

#endif /* ICD_MEM_FLAGS_H */
