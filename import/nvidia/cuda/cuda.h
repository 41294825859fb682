/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA memory of this process: what a pointer is, and the descriptors it can be had by.
 *
 * libcuda is never linked.  What only asks about a pointer uses it where the process has
 * loaded it already: without, no pointer is CUDA's.  Allocating loads it.
 * Functions return 0 or a negative errno, logged, and may be called from any thread;
 * the calling thread's current CUDA context is as before when they return.
 */
#ifndef IMPORT_NVIDIA_CUDA_CUDA_H
#define IMPORT_NVIDIA_CUDA_CUDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CUDA_UUID_SIZE 16

enum cuda_kind {
	CUDA_NONE,    /* not CUDA's: memory of the host, or nothing */
	CUDA_DEVICE,  /* on a GPU */
	CUDA_HOST,    /* pinned host memory: cuMemHostAlloc, cuMemHostRegister, host VMM */
	CUDA_MANAGED, /* moves between the two: never exported */
};

struct cuda_range {
	enum cuda_kind kind;
	int device;			    /* ordinal; -1: host memory of none */
	unsigned char uuid[CUDA_UUID_SIZE]; /* of the device, or 0 */
	uintptr_t base;	    /* of the allocation, or of the mapped segment, that has the address */
	size_t size;	    /* of that */
	uint64_t buffer_id; /* unique to the allocation in this process; 0: unknown */
};

/* What kind of memory is at @addr.  No error is logged for memory that is not CUDA's: CUDA_NONE. */
int cuda_identify(uintptr_t addr, struct cuda_range *range);

/* Whether VMM memory (cuMemCreate) is at @addr, which alone has opaque descriptors. */
bool cuda_is_vmm(uintptr_t addr);

/* The buffer id alone: the tag check of a cached registration.  0: none.  Tens of nanoseconds. */
uint64_t cuda_buffer_id(uintptr_t addr);

/* A descriptor of memory.  The caller owns fd, which is close-on-exec. */
struct cuda_export {
	int fd;
	size_t offset; /* of the address that was asked for, in it */
	size_t size;   /* of the whole */
};

/**
 * cuda_export_dmabuf - device memory as a dma-buf of CUDA's own
 *
 * Page-aligned around the range that was asked for (not the allocation: a range may have
 * several VMM segments).  Sets SYNC_MEMOPS on each allocation, where the driver can.
 *
 *   -EINVAL      @size is 0, or the range wraps
 *   -EFAULT      not CUDA device memory, or only part of the range
 *   -EOPNOTSUPP  managed memory; or the driver exports no dma-bufs (named)
 *   -ENODEV      the memory was freed meanwhile
 */
int cuda_export_dmabuf(uintptr_t addr, size_t size, struct cuda_export *out);

/**
 * cuda_export_opaque - VMM memory, of a device or the host, as an opaque descriptor
 *
 * For OpenCL and Vulkan on the device with @uuid.  -EOPNOTSUPP: not VMM memory, or made
 * without a POSIX descriptor, or several segments; -EXDEV: of another device; -EFAULT: only
 * part of the range; -EINVAL and -ENODEV as above.
 */
int cuda_export_opaque(uintptr_t addr, size_t size, const unsigned char uuid[CUDA_UUID_SIZE],
		       struct cuda_export *out);

/* VMM memory with a POSIX descriptor, that every driver in this project can import. */
struct cuda_memory {
	uintptr_t addr; /* for the CPU as well, if host memory */
	size_t size;	/* a multiple of the granularity */
	uint64_t handle;
	int device; /* its primary context is held while the memory lives */
};

/**
 * cuda_alloc - allocate on a device, or host memory that it reads in place
 * @kind: CUDA_DEVICE or CUDA_HOST
 * @align: bytes, a power of two; 0 for the granularity
 *
 * -ENODEV: no libcuda, or no device with this @uuid; -ENOMEM; -EOPNOTSUPP: no VMM here, or
 * none of this kind; -EINVAL: no size, no such kind, or @align is no power of two.
 */
int cuda_alloc(enum cuda_kind kind, const unsigned char uuid[CUDA_UUID_SIZE], size_t size,
	       size_t align, struct cuda_memory *memory);

/* The memory may not be in use by a kernel.  @memory is zeroed; once more does nothing. */
void cuda_free(struct cuda_memory *memory);

#endif
