/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory by way of Vulkan: host ranges and dma-bufs become opaque descriptors for OpenCL
 * of the device (VK_EXT_external_memory_host, VK_EXT_external_memory_dma_buf,
 * VK_KHR_external_memory_fd).
 *
 * libvulkan is loaded, and a device made, at the first import: 0.2 to 0.4 s.  Vulkan does not
 * promise exports of imported memory (exportFromImportedHandleTypes): callers prove such exports on
 * the device at hand first (icd/selftest/selftest.h).
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
 * A VkDevice refuses all imports after the first refused import.  The device is then replaced; live
 * imports keep the old device.  As a refusal may come from an import of a second thread, a refusal
 * counts only from a fresh device.  A refusal so costs a device, and the next import costs a second
 * device (70 ms each): ranges that cannot work are refused before Vulkan sees the range.
 *
 *   -EOPNOTSUPP  no libvulkan, no such device, or a missing extension; memory that no driver pins:
 *		  mappings of files and devices, and read-only mappings; a child of the process
 *		  that used Vulkan first
 *   -EINVAL	  not whole pages
 *   -EFAULT	  part is not mapped
 *   -ERANGE	  beyond the address space
 *   -ENOMEM	  the driver is out of memory, or claims so when refusing
 *   -EMFILE	  the process has no descriptor left; -ENFILE: the system has none
 *   -EIO	  another failure of the driver, or no /proc
 */
int vulkan_import_host(const unsigned char uuid[VULKAN_UUID_SIZE], void *addr, size_t size,
		       struct vulkan_memory **memory, int *fd);

/*
 * vulkan_import_host() for a dma-buf, which stays the caller's.  -EOPNOTSUPP where the device takes
 * no dma-bufs or refuses the dma-buf, -EBADF for other files, -ERANGE if @size is larger.
 */
int vulkan_import_dmabuf(const unsigned char uuid[VULKAN_UUID_SIZE], int dmabuf, size_t size,
			 struct vulkan_memory **memory, int *fd);

/* Whether the device takes dma-bufs.  Makes the device, as an import does; no, on failure. */
bool vulkan_takes_dmabufs(const unsigned char uuid[VULKAN_UUID_SIZE]);

/* Gives the pages back; NULL does nothing.  Imports from the descriptor keep the pages, too. */
void vulkan_free(struct vulkan_memory *memory);

#endif
