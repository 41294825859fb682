/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes a GPU forget what it has cached of the host's memory.
 *
 * NVIDIA's driver maps memory from Vulkan's descriptors so that the GPU's L2 keeps what kernels
 * have read, and no command of its OpenCL drops it: not acquire, migrate, semaphores nor
 * clFinish (driver 580, H200).  Unmapping any such memory does: the kernel driver then writes
 * back and invalidates all lines of system memory (open-gpu-kernel-modules 580,
 * virt_mem_allocator_gm107.c, bNeedL2InvalidateAtUnmap).  So a refresh imports a page and
 * releases it: 40 us for each, of which the import can be done before.  That needs no queue and
 * waits for no kernel.
 */
#ifndef ICD_METHODS_OPAQUE_FD_INVALIDATE_H
#define ICD_METHODS_OPAQUE_FD_INVALIDATE_H

#include "icd/cl_compat.h"
#include "import/import.h"

/*
 * The refresh of a context's device, one for all regions there, kept until the context is
 * released.  Dropped with its put().  Returns 0 or a negative errno, logged.
 */
int invalidate_get(cl_context context, const unsigned char uuid[IMPORT_UUID_SIZE],
		   struct import_invalidate **invalidate);

/* The context is about to be released for the last time: what was kept for it goes. */
void invalidate_drop_context(cl_context context);

#endif
