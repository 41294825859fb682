/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libclimport: memory for clImportMemoryARM.
 *
 * Functions return 0 or a negative errno, and change *out on success only.  They may be
 * called from any thread.  What went wrong says CLIMPORT_LOG=error, in a sentence.
 */
#ifndef CL_CLIMPORT_H
#define CL_CLIMPORT_H

#include <stddef.h>

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
#define CLIMPORT_READ_ONLY 1u /* nobody can write by way of the dma-buf */
#define CLIMPORT_KEEP 2u      /* the range stays pinned for exports to come */

/**
 * climport_export_dmabuf - a range of this process's memory as a dma-buf
 * @address: host memory, or a CUDA device pointer
 * @size: bytes
 * @flags: CLIMPORT_*
 * @out: set on success
 *
 * The dma-buf consists of whole pages, of the GPU 64 KiB, and so may begin before @address:
 * out->offset is where the range is in it.  Needs the kernel module gdmabuf (kmod/), and
 * for GPU memory gdmabuf_nvidia.
 *
 * The descriptor is the caller's, with O_CLOEXEC.  The pages stay pinned, and count as
 * locked memory (RLIMIT_MEMLOCK) or against the GPU's BAR, until the last descriptor,
 * mapping and import of the dma-buf is gone; even if the memory is freed before.  It then
 * has what was there, but @address is other memory.
 *
 * Returns 0, or
 *   -ENXIO   no /dev/gdmabuf: the module is not loaded
 *   -EACCES  /dev/gdmabuf may not be opened; or the range is mapped read-only, and
 *	      CLIMPORT_READ_ONLY is not set
 *   -EINVAL  size is 0, or the range wraps around; an unknown flag
 *   -EFAULT  not memory of this process, or none that can be pinned
 *   -ENOMEM  no memory, or RLIMIT_MEMLOCK is too small
 *   -ENOSPC  no room left in the GPU's BAR
 *   -EDQUOT  the user's quota of GPU memory is used up
 *   -EMFILE, -EINTR, -EAGAIN as in <linux/gdmabuf.h>
 */
int climport_export_dmabuf(const void *address, size_t size, unsigned int flags,
			   struct climport_dmabuf *out);

#ifdef __cplusplus
}
#endif

#endif
