/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory by way of NVIDIA's resource manager (RM): host pages and dma-bufs become opaque
 * descriptors for NVIDIA's OpenCL, as CUDA makes them.
 *
 * RM is a part of the kernel driver, behind ioctls of /dev/nvidiactl and /dev/nvidiaN (rm_abi.h).
 * RM maps the memory so that the GPU does not cache what kernels read of it, as CUDA maps its own
 * host memory.  CUDA is not loaded.
 *
 * A descriptor keeps its memory: RM's object is freed before the functions return, and nothing is to
 * be tracked but the descriptor.  (Driver 580: RM duplicates an exported object for the descriptor,
 * rmobjexportimport.c; the pages stay pinned until the last descriptor and the last import are gone.)
 *
 * Functions return 0 or a negative errno, logged; any thread.  No cancellation points, if the caller
 * has THREAD_NO_CANCEL().
 */
#ifndef IMPORT_NVIDIA_RM_RM_H
#define IMPORT_NVIDIA_RM_RM_H

#include <stddef.h>

#include "import/nvidia/rm/rm_abi.h"

/**
 * rm_import_host - host pages, for the device with @uuid
 * @addr, @size: whole pages
 * @fd: set on success: the opaque descriptor, the caller's
 *
 *   -EOPNOTSUPP  no driver of NVIDIA's, or no GPU with the UUID (a MIG instance has none); memory
 *		  that cannot be pinned for writing: shared mappings of disk files, mappings of
 *		  devices, and read-only mappings
 *   -EINVAL	  not whole pages
 *   -EFAULT	  part is not mapped
 *   -ERANGE	  beyond the address space
 *   -ENOMEM, -EMFILE, -ENFILE, -EIO
 */
int rm_import_host(const unsigned char uuid[RM_UUID_SIZE], void *addr, size_t size, int *fd);

/*
 * rm_import_host() for the first @size bytes of a dma-buf, which stays the caller's.  -EOPNOTSUPP
 * for exporters that are not known to give memory of the host (rm.c): a GPU that imports
 * memory which it cannot reach faults at the first kernel, and the program's context is lost.
 */
int rm_import_dmabuf(const unsigned char uuid[RM_UUID_SIZE], int dmabuf, size_t size, int *fd);

/*
 * 0 if the first @size bytes of a dma-buf are memory of the host.  Or -EOPNOTSUPP: not known to be;
 * -EBADF: no dma-buf; -ERANGE: the dma-buf is smaller.  Logged.
 */
int rm_dmabuf_check(int dmabuf, size_t size);

#endif
