/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Facts of VMM memory that CUDA tells in several calls, or by a refusal.  A buffer id is of one
 * allocation for the life of the process, and a page is in one mapping at most: a fact of both stays
 * true.
 */
#ifndef IMPORT_NVIDIA_CUDA_CUDA_FACTS_H
#define IMPORT_NVIDIA_CUDA_CUDA_FACTS_H

#include <stdint.h>

enum cuda_fact {
	CUDA_FACT_ON_DEVICE = 1, /* the memory is a device's */
	CUDA_FACT_ON_HOST = 2,	 /* the memory is the host's */
	CUDA_FACT_NO_SYNC = 4,	 /* the driver refuses SYNC_MEMOPS */
};

/* The facts of the memory with @buffer_id at @addr: bits of enum cuda_fact; 0: none is known. */
unsigned int cuda_facts_get(uint64_t buffer_id, uintptr_t addr);

/* The table has room for a few facts, and forgets older ones. */
void cuda_facts_add(uint64_t buffer_id, uintptr_t addr, enum cuda_fact fact);

#endif
