/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/mem_flags.h"

#include <stddef.h>

static const cl_mem_flags mem_flags_host_ptr = CL_MEM_USE_HOST_PTR | CL_MEM_ALLOC_HOST_PTR |
					       CL_MEM_COPY_HOST_PTR;

/* Flags of an object that the flags of its parent exclude. */
static const struct {
	cl_mem_flags parent, flags;
} mem_flags_exclusions[] = {
	{ CL_MEM_WRITE_ONLY, CL_MEM_READ_WRITE | CL_MEM_READ_ONLY },
	{ CL_MEM_READ_ONLY, CL_MEM_READ_WRITE | CL_MEM_WRITE_ONLY },
	{ CL_MEM_HOST_WRITE_ONLY, CL_MEM_HOST_READ_ONLY },
	{ CL_MEM_HOST_READ_ONLY, CL_MEM_HOST_WRITE_ONLY },
	{ CL_MEM_HOST_NO_ACCESS, CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_WRITE_ONLY },
};

bool mem_flags_fit(cl_mem_flags flags, cl_mem_flags parent)
{
	const size_t count = sizeof(mem_flags_exclusions) / sizeof(mem_flags_exclusions[0]);

	if (flags & mem_flags_host_ptr || mem_flags_exclude_each_other(flags))
		return false;
	for (size_t i = 0; i < count; i++)
		if (parent & mem_flags_exclusions[i].parent &&
		    flags & mem_flags_exclusions[i].flags)
			return false;
	return true;
}

cl_mem_flags mem_flags_inherit(cl_mem_flags flags, cl_mem_flags parent)
{
	if (!(flags & MEM_FLAGS_ACCESS))
		flags |= parent & MEM_FLAGS_ACCESS;
	if (!(flags & MEM_FLAGS_HOST))
		flags |= parent & MEM_FLAGS_HOST;
	return flags;
}
