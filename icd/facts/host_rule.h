/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rule under which a device's buffers over host memory (CL_MEM_USE_HOST_PTR) are zero copy.
 *
 * A driver may take some memory as it is and copy other memory: read-only pointers, shared mappings, large
 * ranges.  The self-test (selftest/host_rule.c) tries one property after the other on memory of climport's own,
 * and what it has seen is the rule.  Imports outside the rule are refused.
 *
 * A CPU whose kernels get the host's own address of everything that was tried has nothing to copy to: there the
 * rule is "all memory".  CLIMPORT_VERIFY=1 checks that for each import.
 */
#ifndef ICD_FACTS_HOST_RULE_H
#define ICD_FACTS_HOST_RULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "icd/cl_compat.h"
#include "import/import.h"

/* What kernels (3) and the host (4: CL_MEM_HOST_*) may do with a buffer. */
#define HOST_RULE_ACCESSES 12

struct host_rule {
	size_t align;	  /* bytes: of addresses and sizes: 1, 64 or a page; 0: the device copies */
	bool own_address; /* all memory, of any kind, size and access */
	size_t largest;	  /* bytes: the largest buffer that was zero copy */
	unsigned int kinds;    /* 1 << enum import_kind: what was zero copy */
	unsigned int accesses; /* 1 << host_rule_access(): what was zero copy */
};

/* The number of the access that flags allow, below HOST_RULE_ACCESSES; and flags with this access. */
unsigned int host_rule_access(cl_mem_flags flags);
cl_mem_flags host_rule_flags(unsigned int access);

/* host_rule_check() for a rule that is not "all memory". */
cl_int host_rule_check_each(const struct host_rule *rule, unsigned int kinds, cl_mem_flags flags,
			    const void *addr, size_t size);

/**
 * host_rule_check - is a buffer over such memory zero copy?
 * @kinds: a bit for each enum import_kind of the memory
 * @flags: of the buffer
 * @addr, @size: of the buffer, in bytes
 *
 * Returns CL_SUCCESS, or CL_INVALID_OPERATION, logged with the property that is outside the rule.
 */
static inline cl_int host_rule_check(const struct host_rule *rule, unsigned int kinds,
				     cl_mem_flags flags, const void *addr, size_t size)
{
	if (rule->own_address && !(((uintptr_t)addr | size) & (rule->align - 1)))
		return CL_SUCCESS;
	return host_rule_check_each(rule, kinds, flags, addr, size);
}

#endif /* ICD_FACTS_HOST_RULE_H */
