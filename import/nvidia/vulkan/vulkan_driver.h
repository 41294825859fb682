/* SPDX-License-Identifier: Apache-2.0 */
/* libvulkan, loaded by name, and an instance without layers and extensions. */
#ifndef IMPORT_NVIDIA_VULKAN_VULKAN_DRIVER_H
#define IMPORT_NVIDIA_VULKAN_VULKAN_DRIVER_H

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan_core.h>

struct vulkan_driver {
	VkInstance instance;
	PFN_vkDestroyInstance destroy_instance;
	PFN_vkEnumeratePhysicalDevices enumerate_physical_devices;
	PFN_vkEnumerateDeviceExtensionProperties enumerate_device_extensions;
	PFN_vkGetPhysicalDeviceProperties2 get_properties;
	PFN_vkGetPhysicalDeviceMemoryProperties get_memory_properties;
	PFN_vkCreateDevice create_device;
	PFN_vkGetDeviceProcAddr get_device_proc;
};

/*
 * Fills @driver; there is no unload.  -EOPNOTSUPP, logged, without a Vulkan 1.1 driver;
 * a later call may succeed.  Any thread.
 */
int vulkan_driver_load(struct vulkan_driver *driver);

/* The device with @uuid, and the driver's description; -EOPNOTSUPP, logged.  Any thread. */
int vulkan_driver_find(const struct vulkan_driver *driver, const unsigned char uuid[VK_UUID_SIZE],
		       VkPhysicalDevice *found);

/* The name of a failure, for the log. */
const char *vulkan_result_name(VkResult result);

/* -ENOMEM, -EOPNOTSUPP or -EIO */
int vulkan_result_errno(VkResult result);

#endif
