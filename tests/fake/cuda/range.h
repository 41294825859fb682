/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranges: the memory known to CUDA, by address.  Callers hold the lock.
 *
 * A range lies in a block of whole pages.  The CPU cannot touch a block of device memory; the
 * device's bytes are at range->memory.
 */
#ifndef FAKE_CUDA_RANGE_H
#define FAKE_CUDA_RANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct handle;

enum kind { KIND_DEVICE, KIND_HOST, KIND_REGISTERED, KIND_MANAGED, KIND_VMM };

struct range {
	struct range *next;
	enum kind kind;
	uintptr_t addr;
	size_t size;
	uintptr_t block;
	size_t block_size;
	int device; /* -1: the host, KIND_VMM alone */
	void *context;
	unsigned long long id;
	unsigned int sync;
	int access;
	struct handle *handle; /* KIND_VMM alone */
	char *memory;	       /* the bytes of the block */
	int shared;	       /* a memfd of the bytes, or 0 */
};

/* The list of all ranges, the newest first. */
struct range *range_first(void);

/* The range that contains @addr, or NULL. */
struct range *range_find(uintptr_t addr);

bool range_overlaps(uintptr_t addr, size_t size);

/* Adds a copy of @with, which gets an id; NULL without memory. */
struct range *range_add(const struct range *with);
void range_remove(struct range *r);

/* Gives back what is mapped of the range, and the memfd. */
void range_unmap(const struct range *r);

size_t pages_round_up(size_t size);

/* Anonymous pages at @addr, or anywhere if @addr is 0; 0 on failure. */
uintptr_t pages_reserve(uintptr_t addr, size_t size, int prot);

/* Addresses for device memory, the same ones again if @addr was device memory's; 0 on failure. */
uintptr_t device_pages_reserve(uintptr_t addr, size_t size);

/* The defaults of the controls in pointer.c and dma_buf.c. */
void pointer_reset(void);
void dma_buf_reset(void);

#endif
