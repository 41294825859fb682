/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tests' declarations of libcuda.so.1, which dlopen() finds.  A result, a device and an enum
 * are int, a context is void *, a device pointer and a handle are 64 bits.
 */
#ifndef TESTS_GPU_CUDA_H
#define TESTS_GPU_CUDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* CUmemAllocationProp and CUmemAccessDesc */
struct location {
	int type; /* LOCATION_* */
	int id;
};

enum { LOCATION_DEVICE = 1, LOCATION_HOST_NUMA = 3 };

struct properties {
	int type; /* 1: pinned */
	int handle_types;
	struct location location;
	void *win32;
	unsigned char flags[8];
};

struct access {
	struct location location;
	int flags; /* 3: read and write */
};

struct cuda {
	int device;
	int (*init)(unsigned int flags);
	int (*device_count)(int *count);
	int (*device_get)(int *device, int ordinal);
	int (*device_uuid)(void *uuid, int device);
	int (*primary_retain)(void **context, int device);
	int (*push)(void *context);
	int (*synchronize)(void);
	int (*alloc)(uint64_t *address, size_t size);
	int (*free)(uint64_t address);
	int (*alloc_managed)(uint64_t *address, size_t size, unsigned int flags);
	int (*alloc_host)(void **address, size_t size, unsigned int flags);
	int (*free_host)(void *address);
	int (*to_device)(uint64_t to, const void *from, size_t size);
	int (*to_host)(void *to, uint64_t from, size_t size);
	int (*info)(size_t *free, size_t *total);
	int (*create)(uint64_t *handle, size_t size, const struct properties *properties,
		      unsigned long long flags);
	int (*release)(uint64_t handle);
	int (*reserve)(uint64_t *address, size_t size, size_t alignment, uint64_t hint,
		       unsigned long long flags);
	int (*unreserve)(uint64_t address, size_t size);
	int (*map)(uint64_t address, size_t size, size_t offset, uint64_t handle,
		   unsigned long long flags);
	int (*unmap)(uint64_t address, size_t size);
	int (*set_access)(uint64_t address, size_t size, const struct access *access, size_t count);
	int (*get_handle)(void *handle, uint64_t address, size_t size, int type,
			  unsigned long long flags); /* cuMemGetHandleForAddressRange */
	int (*share)(void *shareable, uint64_t handle, int type, unsigned long long flags);
};

extern struct cuda cuda;

/* Makes a context of the device current.  NULL, or the reason why CUDA lacks the device. */
const char *cuda_open(const unsigned char uuid[16]);

/* Likewise for the tested device; skips the test if CUDA lacks the device. */
void cuda_need(void);

/* Synchronous copies. */
void cuda_write(uint64_t to, const void *from, size_t size);
void cuda_read(void *to, uint64_t from, size_t size);

/* An application's memory by CUDA's virtual memory management. */
struct vmm {
	uint64_t address, handle;
	size_t size;
};

#define VMM_SIZE ((size_t)2 << 20) /* the smallest */

/* @location: LOCATION_*.  @handle_types: 1, or 0 for memory without a descriptor. */
void vmm_create(struct vmm *vmm, int location, int handle_types);
/* The same, of @size bytes. */
void vmm_create_sized(struct vmm *vmm, int location, int handle_types, size_t size);
void vmm_destroy(const struct vmm *vmm);

#endif
