/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/methods/host_ptr/class.h"

#include <unistd.h>

unsigned int class_access(cl_mem_flags flags)
{
	return flags & CL_MEM_READ_ONLY ? 0 : flags & CL_MEM_WRITE_ONLY ? 1 : 2;
}

unsigned int class_host_access(cl_mem_flags flags)
{
	return flags & CL_MEM_HOST_READ_ONLY	? 1
	       : flags & CL_MEM_HOST_WRITE_ONLY ? 2
	       : flags & CL_MEM_HOST_NO_ACCESS	? 3
						: 0;
}

const char *class_access_name(cl_mem_flags flags)
{
	static const char *const names[CLASS_ACCESSES] = { "CL_MEM_READ_ONLY", "CL_MEM_WRITE_ONLY",
							   "CL_MEM_READ_WRITE" };

	return names[class_access(flags)];
}

const char *class_host_access_name(cl_mem_flags flags)
{
	static const char *const names[CLASS_HOST_ACCESSES] = { "", ", CL_MEM_HOST_READ_ONLY",
								", CL_MEM_HOST_WRITE_ONLY",
								", CL_MEM_HOST_NO_ACCESS" };

	return names[class_host_access(flags)];
}

unsigned int class_magnitude(size_t number)
{
	return number ? 63 - (unsigned int)__builtin_clzll(number) : 0;
}

size_t class_page_size(void)
{
	static atomic_size_t known;
	size_t size = atomic_load_explicit(&known, memory_order_relaxed);

	if (!size) {
		size = (size_t)sysconf(_SC_PAGESIZE);
		atomic_store_explicit(&known, size, memory_order_relaxed);
	}
	return size;
}
