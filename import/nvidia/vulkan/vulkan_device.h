/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Vulkan devices for imports.  All imports on a GPU share a device until the driver refuses an
 * import.  The device is then *spoiled*: no later import gets the device, and the last import on
 * the device destroys the device.
 *
 * Functions return 0 or a negative errno, logged; any thread.
 */
#ifndef IMPORT_NVIDIA_VULKAN_VULKAN_DEVICE_H
#define IMPORT_NVIDIA_VULKAN_VULKAN_DEVICE_H

#include <stdbool.h>

#include "import/nvidia/vulkan/vulkan_driver.h"

/* Constant, but for the count and the list. */
struct vulkan_device {
	struct vulkan_device *next; /* in the list of shared devices */
	unsigned int refs;	    /* under the lock of vulkan_device.c */
	unsigned char uuid[VK_UUID_SIZE];
	VkDevice handle;
	bool takes_host, takes_dmabuf;
	VkDeviceSize host_alignment; /* of address and size of a host range; a power of two */
	unsigned int release;	     /* of NVIDIA's driver; another vendor's: UINT_MAX */
	VkPhysicalDeviceMemoryProperties memory;

	PFN_vkDestroyDevice destroy;
	PFN_vkAllocateMemory allocate_memory;
	PFN_vkFreeMemory free_memory;
	PFN_vkGetMemoryFdKHR get_memory_fd;
	PFN_vkGetMemoryFdPropertiesKHR get_fd_properties;
	PFN_vkGetMemoryHostPointerPropertiesEXT get_host_properties; /* if takes_host */
};

/*
 * The shared device of a GPU, found or made; the first call loads Vulkan.
 * -EOPNOTSUPP, -ENOMEM or -EIO.  The caller puts the device.
 */
int vulkan_device_get(const unsigned char uuid[VK_UUID_SIZE], struct vulkan_device **device);

/* A new device for the caller alone. */
int vulkan_device_make(const unsigned char uuid[VK_UUID_SIZE], struct vulkan_device **device);

/* Shares a new device, unless the GPU has a shared device already. */
void vulkan_device_share(struct vulkan_device *device);

/* No later import gets @device. */
void vulkan_device_spoil(struct vulkan_device *device);

/* Drops a reference; the last reference destroys. */
void vulkan_device_put(struct vulkan_device *device);

/* Whether a parent process set Vulkan up: Vulkan is then unusable. */
bool vulkan_is_foreign(void);

#endif
