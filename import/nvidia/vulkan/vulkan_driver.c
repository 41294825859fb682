/* SPDX-License-Identifier: Apache-2.0 */
#include "import/nvidia/vulkan/vulkan_driver.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "util/log.h"

const char *vulkan_result_name(VkResult result)
{
	switch (result) {
	case VK_ERROR_OUT_OF_HOST_MEMORY:
		return "out of host memory";
	case VK_ERROR_OUT_OF_DEVICE_MEMORY:
		return "out of device memory";
	case VK_ERROR_TOO_MANY_OBJECTS:
		return "too many objects";
	case VK_ERROR_INVALID_EXTERNAL_HANDLE:
		return "invalid external handle";
	case VK_ERROR_INITIALIZATION_FAILED:
		return "initialization failed";
	case VK_ERROR_INCOMPATIBLE_DRIVER:
		return "incompatible driver";
	case VK_ERROR_DEVICE_LOST:
		return "device lost";
	default:
		return "another failure";
	}
}

int vulkan_result_errno(VkResult result)
{
	switch (result) {
	case VK_ERROR_OUT_OF_HOST_MEMORY:
	case VK_ERROR_OUT_OF_DEVICE_MEMORY:
	case VK_ERROR_TOO_MANY_OBJECTS:
		return -ENOMEM;
	case VK_ERROR_INVALID_EXTERNAL_HANDLE:
		return -EOPNOTSUPP;
	default:
		return -EIO;
	}
}

static int vulkan_driver_create_instance(PFN_vkGetInstanceProcAddr get_proc, VkInstance *instance)
{
	PFN_vkCreateInstance create = (PFN_vkCreateInstance)get_proc(NULL, "vkCreateInstance");
	const VkApplicationInfo application = {
		.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
		.pApplicationName = "climport",
		.apiVersion = VK_API_VERSION_1_1,
	};
	const VkInstanceCreateInfo info = {
		.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
		.pApplicationInfo = &application,
	};
	VkResult result = create ? create(&info, NULL, instance) : VK_ERROR_INCOMPATIBLE_DRIVER;

	if (result == VK_SUCCESS)
		return 0;
	return log_errno(EOPNOTSUPP, "no Vulkan: vkCreateInstance: %s (%d)",
			 vulkan_result_name(result), result);
}

struct finder {
	PFN_vkGetInstanceProcAddr get_proc;
	VkInstance instance;
	bool missing;
};

static PFN_vkVoidFunction vulkan_driver_find_function(struct finder *finder, const char *name)
{
	PFN_vkVoidFunction function = finder->get_proc(finder->instance, name);

	if (!function) {
		log_error("no Vulkan 1.1: %s is missing", name);
		finder->missing = true;
	}
	return function;
}

static bool vulkan_driver_find_all(struct vulkan_driver *driver, PFN_vkGetInstanceProcAddr get_proc)
{
	struct finder f = { get_proc, driver->instance, false };

	driver->destroy_instance =
		(PFN_vkDestroyInstance)vulkan_driver_find_function(&f, "vkDestroyInstance");
	driver->enumerate_physical_devices =
		(PFN_vkEnumeratePhysicalDevices)vulkan_driver_find_function(
			&f, "vkEnumeratePhysicalDevices");
	driver->enumerate_device_extensions =
		(PFN_vkEnumerateDeviceExtensionProperties)vulkan_driver_find_function(
			&f, "vkEnumerateDeviceExtensionProperties");
	driver->get_properties = (PFN_vkGetPhysicalDeviceProperties2)vulkan_driver_find_function(
		&f, "vkGetPhysicalDeviceProperties2");
	driver->get_memory_properties =
		(PFN_vkGetPhysicalDeviceMemoryProperties)vulkan_driver_find_function(
			&f, "vkGetPhysicalDeviceMemoryProperties");
	driver->create_device =
		(PFN_vkCreateDevice)vulkan_driver_find_function(&f, "vkCreateDevice");
	driver->get_device_proc =
		(PFN_vkGetDeviceProcAddr)vulkan_driver_find_function(&f, "vkGetDeviceProcAddr");
	return !f.missing;
}

int vulkan_driver_load(struct vulkan_driver *driver)
{
	void *library = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
	PFN_vkGetInstanceProcAddr get_proc;
	int ret;

	if (!library)
		return log_errno(EOPNOTSUPP, "no Vulkan: %s", dlerror());
	*(void **)&get_proc = dlsym(library, "vkGetInstanceProcAddr");
	ret = get_proc ? vulkan_driver_create_instance(get_proc, &driver->instance)
		       : log_errno(EOPNOTSUPP, "no Vulkan: %s", dlerror());
	if (ret)
		goto close_library;
	if (vulkan_driver_find_all(driver, get_proc))
		return 0;
	ret = -EOPNOTSUPP;
	if (driver->destroy_instance)
		driver->destroy_instance(driver->instance, NULL);
close_library:
	dlclose(library);
	return ret;
}

/* All, to be freed by the caller. */
static int vulkan_driver_physical_devices(const struct vulkan_driver *driver,
					  VkPhysicalDevice **list, uint32_t *count)
{
	VkResult result;

	*list = NULL;
	result = driver->enumerate_physical_devices(driver->instance, count, NULL);
	if (result == VK_SUCCESS) {
		*list = calloc(*count + 1, sizeof(**list));
		if (!*list)
			return log_errno(ENOMEM, "no memory for a list of GPUs");
		result = driver->enumerate_physical_devices(driver->instance, count, *list);
	}
	if (result == VK_SUCCESS || result == VK_INCOMPLETE)
		return 0;
	free(*list);
	*list = NULL;
	return log_errno(EOPNOTSUPP, "vkEnumeratePhysicalDevices: %s (%d)",
			 vulkan_result_name(result), result);
}

static bool vulkan_driver_has_uuid(const struct vulkan_driver *driver, VkPhysicalDevice device,
				   const unsigned char *uuid)
{
	VkPhysicalDeviceIDProperties id = {
		.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES,
	};
	VkPhysicalDeviceProperties2 properties = {
		.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
		.pNext = &id,
	};

	driver->get_properties(device, &properties);
	return properties.properties.apiVersion >= VK_API_VERSION_1_1 &&
	       !memcmp(id.deviceUUID, uuid, VK_UUID_SIZE);
}

int vulkan_driver_find(const struct vulkan_driver *driver, const unsigned char uuid[VK_UUID_SIZE],
		       VkPhysicalDevice *found)
{
	VkPhysicalDevice *list;
	uint32_t count;
	int ret = vulkan_driver_physical_devices(driver, &list, &count);

	if (ret)
		return ret;
	ret = -EOPNOTSUPP;
	for (uint32_t i = 0; i < count && ret; i++) {
		if (!vulkan_driver_has_uuid(driver, list[i], uuid))
			continue;
		*found = list[i];
		ret = 0;
	}
	free(list);
	return ret ? log_errno(EOPNOTSUPP, "no Vulkan device is the OpenCL device") : 0;
}
