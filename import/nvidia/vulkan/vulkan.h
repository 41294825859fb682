/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory by way of Vulkan: host ranges and dma-bufs become an opaque descriptor, which
 * OpenCL of the same device takes (VK_EXT_external_memory_host, VK_EXT_external_memory_dma_buf,
 * VK_KHR_external_memory_fd).
 *
 * libvulkan is loaded, and a device made, at the first import: 0.2 to 0.4 s.  Vulkan does not
 * promise that imported memory can be exported (exportFromImportedHandleTypes): who uses this
 * proves it on the device at hand first (icd/selftest/selftest.h).
 * Functions return 0 or a negative errno, logged; any thread.
 */
#ifndef IMPORT_NVIDIA_VULKAN_VULKAN_H
#define IMPORT_NVIDIA_VULKAN_VULKAN_H

#include <stdbool.h>
#include <stddef.h>

#define VULKAN_UUID_SIZE 16

struct vulkan_memory;

/**
 * vulkan_import_host - host memory, for the device with @uuid
 * @addr, @size: whole pages (the device's minImportedHostPointerAlignment)
 * @memory: set on success; the pages stay pinned until vulkan_free()
 * @fd: set on success: the opaque descriptor, the caller's
 *
 * A device whose driver refused an import takes none any more; it is then replaced, and
 * imports that are alive keep theirs.  Another thread's refusal may come between, so a refusal
 * counts only from a device that nobody else has had.  To be refused costs such a device, and
 * another at the next import (70 ms each), so ranges that cannot work are refused before Vulkan
 * sees them.
 *
 *   -EOPNOTSUPP  no libvulkan, no such device, or it lacks an extension; memory that cannot be
 *		  pinned: mappings of files and devices, read-only ones; a child of the process
 *		  that used Vulkan first
 *   -EINVAL	  not whole pages
 *   -EFAULT	  part is not mapped
 *   -ERANGE	  it leaves the address space
 *   -ENOMEM	  the driver is out of memory, or says so when it refuses
 *   -EMFILE	  the process has no descriptor left; -ENFILE: the system has none
 *   -EIO	  another failure of the driver, or no /proc
 */
int vulkan_import_host(const unsigned char uuid[VULKAN_UUID_SIZE], void *addr, size_t size,
		       struct vulkan_memory **memory, int *fd);

/*
 * The same for a dma-buf, which stays the caller's.  -EOPNOTSUPP where the device takes none or
 * not this one, -EBADF if it is no dma-buf, -ERANGE if it has less than @size.
 */
int vulkan_import_dmabuf(const unsigned char uuid[VULKAN_UUID_SIZE], int dmabuf, size_t size,
			 struct vulkan_memory **memory, int *fd);

/* Whether the device takes dma-bufs.  Makes it, as an import does; no, if that fails. */
bool vulkan_takes_dmabufs(const unsigned char uuid[VULKAN_UUID_SIZE]);

/* Gives the pages back; NULL is nothing.  What was imported from the descriptor meanwhile keeps them itself. */
void vulkan_free(struct vulkan_memory *memory);

#endif
