/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/facts/host_rule.h"

#include <stdint.h>

#include "util/cl_names.h"
#include "util/log.h"

static const cl_mem_flags of_kernels[] = { CL_MEM_READ_ONLY, CL_MEM_WRITE_ONLY, CL_MEM_READ_WRITE };
static const cl_mem_flags of_host[] = { 0, CL_MEM_HOST_READ_ONLY, CL_MEM_HOST_WRITE_ONLY,
					CL_MEM_HOST_NO_ACCESS };

#define HOST_ACCESSES (sizeof(of_host) / sizeof(of_host[0]))

unsigned int host_rule_access(cl_mem_flags flags)
{
	const unsigned int kernel = flags & CL_MEM_READ_ONLY	? 0
				    : flags & CL_MEM_WRITE_ONLY ? 1
								: 2;
	unsigned int host = HOST_ACCESSES - 1;

	while (host && !(flags & of_host[host]))
		host--;
	return kernel * HOST_ACCESSES + host;
}

cl_mem_flags host_rule_flags(unsigned int access)
{
	return of_kernels[access / HOST_ACCESSES] | of_host[access % HOST_ACCESSES];
}

/* Part of a sentence. */
static const char *host_rule_kind_name(enum import_kind kind)
{
	static const char *const names[IMPORT_KINDS] = {
		[IMPORT_ANONYMOUS] = "anonymous memory",
		[IMPORT_FILE_PRIVATE] = "a private mapping of a file",
		[IMPORT_FILE_SHARED] = "a shared mapping of a file",
		[IMPORT_SHMEM] = "shared memory",
		[IMPORT_SHMEM_PRIVATE] = "a private mapping of shared memory",
		[IMPORT_HUGE] = "huge pages",
		[IMPORT_HUGE_SHARED] = "shared huge pages",
		[IMPORT_OF_DMABUF] = "a mapping of a dma-buf",
		[IMPORT_OTHER] = "a device's mapping",
		[IMPORT_UNWRITABLE] = "a mapping without write permission",
		[IMPORT_SEVERAL] = "a range of several mappings",
	};

	return names[kind];
}

cl_int host_rule_check_each(const struct host_rule *rule, unsigned int kinds, cl_mem_flags flags,
			    const void *addr, size_t size)
{
	const unsigned int access = host_rule_access(flags), others = kinds & ~rule->kinds;

	if (!rule->align)
		log_error("host memory is not zero copy on this device");
	else if (((uintptr_t)addr | size) & (rule->align - 1))
		log_error("%zu bytes at %p are not proved to be zero copy on this device, which "
			  "takes multiples of %zu bytes",
			  size, addr, rule->align);
	else if (others)
		log_error("%s is not proved to be zero copy on this device",
			  host_rule_kind_name((enum import_kind)__builtin_ctz(others)));
	else if (!(rule->accesses & 1u << access))
		log_error("%s is not proved to be zero copy on this device",
			  cl_mem_flags_names(host_rule_flags(access)));
	else if (size > rule->largest)
		log_error("%zu bytes are not proved to be zero copy on this device: %zu bytes are",
			  size, rule->largest);
	else
		return CL_SUCCESS;
	return CL_INVALID_OPERATION;
}
