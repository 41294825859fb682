/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA memory of this process: what memory an address is in, and descriptors of the memory.
 *
 * libcuda is never linked.  Questions about an address use libcuda where the process has loaded
 * libcuda already: else no memory is CUDA's.  Allocating loads libcuda.
 * Functions return 0 or a negative errno, logged, may be called from any thread, and leave the
 * calling thread's current CUDA context as they found the context.
 */
#ifndef IMPORT_NVIDIA_CUDA_CUDA_H
#define IMPORT_NVIDIA_CUDA_CUDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CUDA_UUID_SIZE 16

enum cuda_kind {
	CUDA_NONE,    /* not CUDA's: memory of the host, or unmapped */
	CUDA_DEVICE,  /* on a GPU */
	CUDA_HOST,    /* pinned host memory: cuMemHostAlloc, cuMemHostRegister, host VMM */
	CUDA_MANAGED, /* moves between the two: never exported */
};

/* The memory that an address is in. */
struct cuda_range {
	enum cuda_kind kind;
	int device;			    /* ordinal; -1: host memory of no device */
	unsigned char uuid[CUDA_UUID_SIZE]; /* of the device, or 0 */
	uintptr_t base;			    /* of the allocation, or of the mapped segment */
	size_t size;			    /* of the allocation or segment */
	uint64_t buffer_id; /* unique to the allocation in this process; 0: unknown */
	void *context;	    /* of the allocation; NULL: VMM memory and pools */
	bool syncs;	    /* has SYNC_MEMOPS: CUDA orders copies with other accesses */
};

/* Identifies the memory at @addr.  Other memory than CUDA's is CUDA_NONE, and no error. */
int cuda_identify(uintptr_t addr, struct cuda_range *range);

/* Whether [@addr, @addr + @size) is in one allocation or segment. */
bool cuda_range_contains(const struct cuda_range *range, uintptr_t addr, size_t size);

/* Whether VMM memory (cuMemCreate) is at @addr: only VMM memory has opaque descriptors. */
bool cuda_is_vmm(uintptr_t addr);

/* The buffer id alone, or 0: the tag check of a registration.  Tens of nanoseconds. */
uint64_t cuda_buffer_id(uintptr_t addr);

/* The GPU of the calling thread's context. */
struct cuda_gpu {
	unsigned char uuid[CUDA_UUID_SIZE];
	bool needs_flush; /* until a read over the bus, kernels may read old data */
};

/* -ENODEV: no libcuda is loaded, or the thread has no context. */
int cuda_get_current_gpu(struct cuda_gpu *gpu);

/* A descriptor of memory.  The caller owns fd, which is close-on-exec. */
struct cuda_export {
	int fd;
	size_t offset; /* of the requested address in the descriptor's memory */
	size_t size;   /* of the descriptor's memory */
};

/**
 * cuda_export_dmabuf - device memory as a dma-buf of CUDA's own
 * @memory: from cuda_identify(@addr)
 *
 * The dma-buf has whole pages around the range, not around the allocation: a range may have
 * several VMM segments.  Sets SYNC_MEMOPS on each allocation, where the driver can.
 *
 *   -EINVAL      @size is 0, or the range wraps
 *   -EFAULT      not CUDA device memory, or only part of the range
 *   -EOPNOTSUPP  managed memory; or the driver exports no dma-bufs (named)
 *   -ENODEV      the memory was freed meanwhile
 */
int cuda_export_dmabuf(const struct cuda_range *memory, uintptr_t addr, size_t size,
		       struct cuda_export *out);

/**
 * cuda_export_opaque - VMM memory, of a device or the host, as an opaque descriptor
 * @memory: from cuda_identify(@addr)
 *
 * For OpenCL on the device with @uuid.  -EOPNOTSUPP: not VMM memory, or made
 * without a POSIX descriptor, or several segments; -EXDEV: of another device; -EFAULT: only
 * part of the range; -EINVAL and -ENODEV as above.
 */
int cuda_export_opaque(const struct cuda_range *memory, uintptr_t addr, size_t size,
		       const unsigned char uuid[CUDA_UUID_SIZE], struct cuda_export *out);

/* VMM memory with a POSIX descriptor: every driver in this project can import VMM memory. */
struct cuda_memory {
	uintptr_t addr; /* for the CPU as well, if host memory */
	size_t size;	/* a multiple of the granularity */
	uint64_t handle;
	int device; /* its primary context is held while the memory lives */
};

/**
 * cuda_alloc - allocate on a device, or host memory for the device to read in place
 * @kind: CUDA_DEVICE or CUDA_HOST
 * @align: bytes, a power of two; 0 for the granularity
 *
 * -ENODEV: no libcuda, or no device with @uuid; -ENOMEM; -EOPNOTSUPP: no VMM, or no VMM memory of
 * the kind; -EINVAL: no size, no such kind, or @align is no power of two.
 */
int cuda_alloc(enum cuda_kind kind, const unsigned char uuid[CUDA_UUID_SIZE], size_t size,
	       size_t align, struct cuda_memory *memory);

/* Whether the device has memory of the kind, as far as the driver tells: errors of cuda_alloc(). */
int cuda_check_alloc(enum cuda_kind kind, const unsigned char uuid[CUDA_UUID_SIZE]);

/* No kernel may use the memory.  @memory is zeroed; a second call does nothing. */
void cuda_free(struct cuda_memory *memory);

#endif
