/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Invalidation: a GPU drops cached lines of the host's memory.
 *
 * NVIDIA's driver maps memory from Vulkan's descriptors in such a way that the GPU's L2 keeps lines
 * after kernels have read them.  No command of the driver's OpenCL drops these lines: not acquire,
 * migrate, semaphores nor clFinish (driver 580, H200).  Unmapping any such memory drops all lines:
 * the kernel driver then writes back and invalidates all lines of system memory
 * (open-gpu-kernel-modules 580, virt_mem_allocator_gm107.c, bNeedL2InvalidateAtUnmap).
 *
 * So an invalidation imports a page and releases the page: 40 us for each of the two, and the
 * import can be done in advance.  An invalidation needs no queue and waits for no kernel.
 */
#ifndef ICD_METHODS_OPAQUE_FD_INVALIDATE_H
#define ICD_METHODS_OPAQUE_FD_INVALIDATE_H

#include "icd/cl_compat.h"
#include "import/import.h"

/*
 * The invalidation for a context's device, at the beginning of the bracket around a kernel.  All
 * regions of the context share the bracket, which is kept, too, until the application releases the
 * context.  Dropped with put().  Returns 0 or a negative errno, logged.
 */
int invalidate_get(cl_context context, const unsigned char uuid[IMPORT_UUID_SIZE],
		   struct import_bracket **bracket);

/* The application releases the context: only regions keep the bracket from here on. */
void invalidate_drop_context(cl_context context);

#endif
