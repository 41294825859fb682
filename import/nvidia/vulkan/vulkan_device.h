/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Vulkan devices that memory is imported on: one a GPU, shared by all imports until its
 * driver refuses one.  Then it is spoiled: nobody gets it any more, and it is destroyed
 * when the last import on it is freed.
 *
 * Functions return 0 or a negative errno, logged; any thread.
 */
#ifndef IMPORT_NVIDIA_VULKAN_VULKAN_DEVICE_H
#define IMPORT_NVIDIA_VULKAN_VULKAN_DEVICE_H

#include <stdbool.h>

#include "import/nvidia/vulkan/vulkan_driver.h"

/* But for the count and the list, not changed once it is made. */
struct vulkan_device {
	struct vulkan_device *next; /* of the shared ones */
	unsigned int refs;	    /* under the lock of vulkan_device.c */
	unsigned char uuid[VK_UUID_SIZE];
	VkDevice handle;
	bool takes_host, takes_dmabuf;
	VkDeviceSize host_alignment; /* of address and size of a host range; a power of two */
	VkPhysicalDeviceMemoryProperties memory;

	PFN_vkDestroyDevice destroy;
	PFN_vkAllocateMemory allocate_memory;
	PFN_vkFreeMemory free_memory;
	PFN_vkGetMemoryFdKHR get_memory_fd;
	PFN_vkGetMemoryFdPropertiesKHR get_fd_properties;
	PFN_vkGetMemoryHostPointerPropertiesEXT get_host_properties; /* if takes_host */
};

/*
 * The shared device of a GPU, made if there is none; the first loads Vulkan.
 * -EOPNOTSUPP, -ENOMEM or -EIO.  The caller puts it.
 */
int vulkan_device_get(const unsigned char uuid[VK_UUID_SIZE], struct vulkan_device **device);

/* A new device that nobody else has. */
int vulkan_device_make(const unsigned char uuid[VK_UUID_SIZE], struct vulkan_device **device);

/* Shares a device that was made, unless its GPU has a shared one already. */
void vulkan_device_share(struct vulkan_device *device);

/* Nobody gets @device any more. */
void vulkan_device_spoil(struct vulkan_device *device);

/* Drops a reference; the last one destroys. */
void vulkan_device_put(struct vulkan_device *device);

/* Whether this is a child of the process that set Vulkan up: then nothing of it may be used. */
bool vulkan_is_foreign(void);

#endif
