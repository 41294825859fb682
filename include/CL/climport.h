/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libclimport: memory for clImportMemoryARM.
 *
 * Functions that return int return 0 or a negative errno, and change *out on success only.
 * All may be called from any thread, and block for no longer than the drivers below do.  What
 * went wrong says CLIMPORT_LOG=error, in a sentence on standard error.  Sizes are bytes.
 */
#ifndef CL_CLIMPORT_H
#define CL_CLIMPORT_H

#include <stddef.h>
#include <stdint.h>

#ifndef CL_TARGET_OPENCL_VERSION
#define CL_TARGET_OPENCL_VERSION 300
#endif
#include <CL/cl.h>
#include <CL/cl_ext.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Memory in a dma-buf: @size bytes from byte @offset on. */
struct climport_dmabuf {
	int fd;
	size_t offset;
	size_t size;
};

/* Flags of climport_export_dmabuf(). */
#define CLIMPORT_READ_ONLY 1u /* nobody can write by way of the dma-buf: of host memory alone */
#define CLIMPORT_KEEP 2u      /* the range stays registered for exports to come */
#define CLIMPORT_MAPPABLE 4u  /* CPUs can map it: memory of GPUs by the kernel module alone */
#define CLIMPORT_REVOCABLE 8u /* freeing the memory takes it away from the dma-buf: of GPUs alone */

/**
 * climport_export_dmabuf - a range of this process's memory as a dma-buf
 * @address: host memory, or a CUDA device pointer
 * @size: bytes
 * @flags: CLIMPORT_*
 * @out: set on success
 *
 * CUDA memory is exported by CUDA where it can (cuMemGetHandleForAddressRange, CUDA 11.7), else
 * by the kernel module gdmabuf_nvidia, which CLIMPORT_MAPPABLE needs.
 * Host memory needs the kernel module gdmabuf (kmod/).
 *
 * The dma-buf consists of whole pages, of the GPU 64 KiB if the module made it, and so may
 * begin before @address: out->offset is where the range is in it.  With CLIMPORT_KEEP it may
 * be of the whole allocation.  Who gets the descriptor gets all that is in it.
 *
 * The descriptor is the caller's, with O_CLOEXEC.  The pages stay pinned, and count as
 * locked memory (RLIMIT_MEMLOCK) or against the GPU's BAR, until the last descriptor,
 * mapping and import of the dma-buf is gone; even if the memory is freed before.  It then
 * has what was there, but @address is other memory.
 *
 * With CLIMPORT_REVOCABLE the pages do not stay pinned: freeing the memory takes them away from
 * every consumer, whose CPU mappings give SIGBUS from then on.  The kernel module exports it.
 * Devices cannot import it: for them memory stays pinned.
 *
 * With CLIMPORT_KEEP the registration stays when they are gone, so that the next export of the
 * range, or of a part of it, is another descriptor of the same dma-buf.  CUDA's memory that
 * is registered is not given back when it is freed, until climport_invalidate(), or until the
 * next export of that address finds out.  A range of several allocations of CUDA's is not kept.
 * Up to 512 allocations and 64 GiB stay registered, each with a descriptor of the process; no
 * more than an eighth of the descriptors that the process may have (RLIMIT_NOFILE) at the first.
 * Where a descriptor is needed and none is left, those that nobody uses are given up for it.
 * What the kernel module keeps takes no descriptor; it stays pinned, and is counted, until
 * climport_invalidate(), or until the module needs the room.
 *
 * Returns 0, or
 *   -ENXIO   no /dev/gdmabuf: the module is not loaded (CUDA memory: and CUDA makes none itself)
 *   -EACCES  /dev/gdmabuf may not be opened; or the range is mapped read-only, and
 *	      CLIMPORT_READ_ONLY is not set
 *   -EINVAL  size is 0, or the range wraps around; an unknown flag
 *   -EFAULT  not memory of this process, or only part of the range; or none that can be pinned;
 *	      or no GPU's, with CLIMPORT_REVOCABLE
 *   -EOPNOTSUPP  CUDA managed memory, which moves (GPUDirect RDMA, "Changes in CUDA 6.0");
 *	      CUDA memory that neither CUDA nor a loaded module exports, or read-only
 *   -ENODEV  the memory was freed meanwhile
 *   -EIO     another error of CUDA's
 *   -ENOMEM  no memory, or RLIMIT_MEMLOCK is too small
 *   -ENOSPC  no room left in the GPU's BAR
 *   -EDQUOT  the user's quota of GPU memory is used up
 *   -EMFILE  the process has no descriptor left; -ENFILE: the system has none
 *   -EINTR, -EAGAIN as in <linux/gdmabuf.h>
 */
int climport_export_dmabuf(const void *address, size_t size, unsigned int flags,
			   struct climport_dmabuf *out);

/**
 * climport_invalidate - memory that was exported with CLIMPORT_KEEP is about to be freed
 *
 * To be called before cuMemFree() and the like.  Ranges that nobody registered are fine.
 */
void climport_invalidate(const void *address, size_t size);

/*
 * A registration: an allocation of a GPU's memory as a dma-buf.  climport_register() fills all
 * fields; the caller reads @base to @id, and may copy the struct.
 */
struct climport_registration {
	const void *base; /* first byte of the allocation */
	size_t length;	  /* bytes of the allocation, all of which @fd has */
	int fd;		  /* climport's: not to be closed; a dma-buf until climport_unregister() */
	size_t offset;	  /* of @base in @fd */
	uint64_t id;	  /* of the registration; no other registration of the process has the id */
	void *reserved[2];
};

/**
 * climport_register - the registration that covers a range of GPU memory
 * @address: a CUDA device pointer
 * @size: bytes
 * @out: set on success; the caller's until climport_unregister()
 *
 * For stacks that ask for each message (RDMA, NVMe, NCCL).  NVIDIA's GPUDirect RDMA document asks
 * for a cache of pinned memory: "Lazy Unpinning Optimization" and "Registration Cache".  The first
 * call for an allocation makes a dma-buf of the whole allocation.  Later calls for any range of the
 * allocation find the registration, take no lock and make no system call, until the program frees
 * the memory or the cache needs the room.
 *
 * At each call climport checks that the program has not freed the allocation: by a word that the
 * kernel module gdmabuf_nvidia writes, if the module made the dma-buf; else by the buffer id of the
 * pointer, which takes a call of CUDA's.  CUDA makes the dma-buf where CUDA can, else the module.
 * An allocation at an address that was used before has another @id.  So a stack keeps an @id and a
 * memory region (MR) of its own for each allocation:
 *
 *	struct climport_registration now;
 *	uint64_t at;
 *
 *	if (climport_register(address, size, &now))
 *		return -1;
 *	if (now.id == mr->registration.id) {		// each message but the first
 *		climport_unregister(&now);
 *	} else {					// the first, or the memory is new
 *		if (mr->verbs) {
 *			ibv_dereg_mr(mr->verbs);
 *			climport_unregister(&mr->registration);
 *		}
 *		at = (uintptr_t)now.base;
 *		mr->verbs = ibv_reg_dmabuf_mr(pd, now.offset, now.length, at, now.fd, access);
 *		mr->registration = now;			// kept as long as the MR
 *	}
 *	// the address of the message in the MR is @address
 *
 * A registration keeps the memory's pages, also after cuMemFree(), until the last
 * climport_unregister() and then until climport_invalidate(), until a call for the address finds
 * the memory freed, or until the cache needs the room.  The limits of CLIMPORT_KEEP hold:
 * 512 registrations at once (an eighth of RLIMIT_NOFILE, if less), of which 64 GiB without users
 * (climport_set_keep_limit(CLIMPORT_DEVICE, ...)).  climport_export_dmabuf() with CLIMPORT_KEEP and
 * climport_register() share registrations.
 *
 * Any thread may call; any thread may unregister.  A child after fork() has no registrations: the
 * child may unregister the parent's, which does nothing to the parent.  A program that closes
 * descriptors that it did not open calls climport_invalidate(NULL, SIZE_MAX) before the next
 * climport_register(): @fd would be another file.
 *
 * Returns 0, or
 *   -EINVAL  size is 0, or the range wraps around
 *   -EFAULT  no memory of this process
 *   -EOPNOTSUPP  memory of the host, CUDA's among it, or CUDA's managed memory: use
 *	      climport_export_dmabuf() for memory of the host; or memory that CUDA gives no buffer id
 *   -ERANGE  the range reaches beyond one allocation (cuMemMap() puts allocations side by side):
 *	      register each part; with a size of 1, @base and @length say where the first part ends
 *   -ENXIO   CUDA makes no dma-buf of the memory, and /dev/gdmabuf is not there
 *   -EACCES  the same, and /dev/gdmabuf may not be opened
 *   -ENODEV  the memory was freed meanwhile
 *   -ENOSPC  all registrations are in use; or no room is left in the GPU's BAR
 *   -EDQUOT  the user's quota of GPU memory is used up
 *   -ENOMEM
 *   -EMFILE  the process has no descriptor left; -ENFILE: the system has none
 *   -EIO     another error of CUDA's
 */
int climport_register(const void *address, size_t size, struct climport_registration *out);

/*
 * Gives a registration back, once for each climport_register().  The registration stays for later
 * calls, but after climport_invalidate().
 */
void climport_unregister(struct climport_registration *registration);

/* Kinds of memory. */
#define CLIMPORT_HOST 0u   /* in the host's memory; devices read it in place */
#define CLIMPORT_DEVICE 1u /* in the memory of one device */

/**
 * climport_set_keep_limit - how much CLIMPORT_KEEP keeps that nobody uses
 * @kind: CLIMPORT_HOST, or CLIMPORT_DEVICE for all GPUs together
 * @bytes: what is more is given up at once, least recently used first; UINT64_MAX: no limit but
 *	those above
 *
 * For this process, and its children.  Memory that a dma-buf or its consumers use is not
 * affected.  Returns 0, or -EINVAL: no such kind.
 */
int climport_set_keep_limit(unsigned int kind, uint64_t bytes);

#define CLIMPORT_UUID_SIZE 16

/**
 * climport_alloc - memory that OpenCL can import
 * @kind: CLIMPORT_HOST or CLIMPORT_DEVICE
 * @size: bytes
 * @alignment: a power of two, at most 2 MiB; 0 for 512
 * @uuid: of the device that is to import it: CL_DEVICE_UUID_KHR, or CUDA's and Vulkan's, which
 *	are the same; NULL for pages of the host that any device with way host_ptr imports
 * @address: set to the memory; for CLIMPORT_DEVICE a CUDA device pointer, which the CPU cannot use
 *
 * On CUDA devices it is CUDA's VMM memory (cuMemCreate), which NVIDIA's OpenCL imports at once
 * and keeps coherent: other host memory costs an import by Vulkan, and a refresh of the GPU's
 * caches before each kernel (docs/nvidia.md).  Up to 1 MiB it is a part of a slab of 2 MiB, at
 * least 512 bytes of it; more is a multiple of 2 MiB.  A slab, and what is larger, takes a
 * descriptor of the process.  What is in it at first is not defined.
 *
 * A child after fork() has CUDA's memory no more, and may free it.
 *
 * Returns 0, or
 *   -EINVAL  no such kind, a size of 0, or an alignment that is none
 *   -ENODEV  no libcuda, or no CUDA device with this UUID; a device's memory without @uuid
 *   -EOPNOTSUPP  the device has no virtual memory management, or none of the host's memory
 *   -ENOMEM
 *   -EMFILE  the process has no descriptor left; -ENFILE: the system has none
 *   -EIO     another error of CUDA's
 */
int climport_alloc(unsigned int kind, size_t size, size_t alignment, const unsigned char *uuid,
		   void **address);

/*
 * Gives memory back.  Imports of it must have been released, and commands on it be complete;
 * NULL does nothing.  Aborts if @address is not from climport_alloc(), or was freed.
 */
void climport_free(void *address);

/**
 * climport_create_buffer - an export as a buffer
 * @context: created with the layer loaded, or of a driver that has the extension itself
 * @flags: as clImportMemoryARM's
 * @dmabuf: what was exported; it may be closed as soon as this returns
 * @errcode_ret: as clImportMemoryARM's; may be NULL.  CL_MISALIGNED_SUB_BUFFER_OFFSET if
 *	dmabuf->offset is no multiple of CL_DEVICE_MEM_BASE_ADDR_ALIGN; CL_INVALID_BUFFER_SIZE
 *	if dmabuf->size is 0
 *
 * clImportMemoryARM imports from the dma-buf's first byte on: this returns the part that is
 * the range.  The caller releases it with clReleaseMemObject().
 */
cl_mem climport_create_buffer(cl_context context, cl_mem_flags flags,
			      const struct climport_dmabuf *dmabuf, cl_int *errcode_ret);

/*
 * clImportMemoryARM of <CL/cl_ext.h> is in this library as well, for programs that link to it:
 * it calls that of the context's platform.  CL_INVALID_OPERATION if that has none, or the
 * process no OpenCL loader; CL_INVALID_CONTEXT if the context is NULL.
 */

/* What this process has registered, and how often it was found. */
struct climport_stats {
	uint64_t hits, misses;	  /* of all registration caches, and the kernel module */
	uint64_t evictions;	  /* given up for room */
	uint64_t stale;		  /* found to be of memory that was freed */
	uint64_t bytes_pinned;	  /* registered now; by the module, also without CLIMPORT_KEEP */
	uint64_t bytes_idle;	  /* part of it: registered, and used by nobody */
	uint64_t bytes_allocated; /* by climport_alloc(), with what is free in its slabs */
};

void climport_get_stats(struct climport_stats *stats);

#ifdef __cplusplus
}
#endif

#endif
