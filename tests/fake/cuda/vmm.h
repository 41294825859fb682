/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA's virtual memory management.  A handle is physical memory; a reservation is a range of
 * addresses; a mapping, which is a struct range, gives a part of a reservation the memory of a
 * handle.  Callers hold the lock.  An int result is a CUresult.
 */
#ifndef FAKE_CUDA_VMM_H
#define FAKE_CUDA_VMM_H

#include "import/nvidia/cuda/cuda_driver.h"

/* Lives until the last reference and the last mapping are gone. */
struct handle {
	int fd;
	char *memory;
	size_t size;
	struct cuda_properties properties;
	int refs, maps;
};

struct reservation {
	struct reservation *next;
	uintptr_t addr;
	size_t size;
};

bool vmm_is_granular(uint64_t n);

int handle_create(struct handle **out, size_t size, const struct cuda_properties *p);

/* Drops a reference. */
int handle_release(struct handle *h);

/* Frees @h if no reference and no mapping is left. */
void handle_put(struct handle *h);

bool handle_is_host(const struct handle *h);

/* References to all handles. */
int handle_count(void);

/* The reservation that contains @addr, or NULL. */
struct reservation *reservation_find(uintptr_t addr);
int reservation_count(void);

#endif
