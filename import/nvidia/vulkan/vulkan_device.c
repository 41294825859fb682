/* SPDX-License-Identifier: Apache-2.0 */
#include "import/nvidia/vulkan/vulkan_device.h"

#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "util/lock.h"
#include "util/fork.h"
#include "util/log.h"
#include "util/publish.h"

#define NVIDIA 0x10de /* the PCI vendor */

static void *_Atomic vulkan_driver_published; /* const struct vulkan_driver */

LOCK_DEFINE(vulkan_devices_lock, LOCK_LAST); /* the list, and every device's count and link */
/* The shared devices, each with a reference. */
static struct vulkan_device *vulkan_shared GUARDED_BY(vulkan_devices_lock);

static _Atomic uint32_t vulkan_owner; /* the process that set Vulkan up, or tried; 0: nobody */

bool vulkan_is_foreign(void)
{
	uint32_t process = atomic_load_explicit(&vulkan_owner, memory_order_relaxed);

	return process && process != fork_generation();
}

static int vulkan_device_driver_load(const struct vulkan_driver **out)
{
	struct vulkan_driver *mine = calloc(1, sizeof(*mine)), *winner;
	int ret;

	if (!mine)
		return log_errno(ENOMEM, "no memory for the functions of Vulkan");
	ret = vulkan_driver_load(mine);
	if (ret) {
		free(mine);
		return ret;
	}
	winner = publish_first(&vulkan_driver_published, mine);
	if (winner != mine) {
		mine->destroy_instance(mine->instance, NULL);
		free(mine);
	}
	*out = winner;
	return 0;
}

static int vulkan_device_driver_get(const struct vulkan_driver **out)
{
	uint32_t nobody = 0;

	if (!atomic_compare_exchange_strong(&vulkan_owner, &nobody, fork_generation()) &&
	    vulkan_is_foreign())
		return log_errno(EOPNOTSUPP, "Vulkan does not work in a child of the process "
					     "that used it first");
	*out = atomic_load_explicit(&vulkan_driver_published, memory_order_acquire);
	return *out ? 0 : vulkan_device_driver_load(out);
}

/* The extensions, as bits of a set and as names for Vulkan. */
enum { MEMORY_FD = 1 << 0, MEMORY_HOST = 1 << 1, MEMORY_DMABUF = 1 << 2, EXTENSIONS = 3 };

static const char *const extension_names[EXTENSIONS] = {
	VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME,
	VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME,
	VK_EXT_EXTERNAL_MEMORY_DMA_BUF_EXTENSION_NAME,
};

static unsigned int vulkan_device_extension_bit(const char *name)
{
	for (unsigned int i = 0; i < EXTENSIONS; i++)
		if (!strcmp(name, extension_names[i]))
			return 1u << i;
	return 0;
}

static int vulkan_device_read_extensions(const struct vulkan_driver *vk, VkPhysicalDevice gpu,
					 unsigned int *set)
{
	VkExtensionProperties *list = NULL;
	uint32_t count;
	VkResult result;

	result = vk->enumerate_device_extensions(gpu, NULL, &count, NULL);
	if (result == VK_SUCCESS) {
		list = calloc(count + 1, sizeof(*list));
		if (!list)
			return log_errno(ENOMEM, "no memory for a list of extensions");
		result = vk->enumerate_device_extensions(gpu, NULL, &count, list);
	}
	*set = 0;
	for (uint32_t i = 0; result >= VK_SUCCESS && i < count; i++)
		*set |= vulkan_device_extension_bit(list[i].extensionName);
	free(list);
	if (result < VK_SUCCESS)
		return log_errno(-vulkan_result_errno(result),
				 "vkEnumerateDeviceExtensionProperties: %s (%d)",
				 vulkan_result_name(result), result);
	if (!(*set & MEMORY_FD))
		return log_errno(EOPNOTSUPP, "the Vulkan device has no %s", extension_names[0]);
	return 0;
}

static int vulkan_device_create_device(const struct vulkan_driver *vk, VkPhysicalDevice gpu,
				       unsigned int set, VkDevice *device)
{
	const char *names[EXTENSIONS];
	const float priority = 1;
	const VkDeviceQueueCreateInfo queue = {
		.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
		.queueCount = 1,
		.pQueuePriorities = &priority,
	};
	VkDeviceCreateInfo info = {
		.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
		.queueCreateInfoCount = 1,
		.pQueueCreateInfos = &queue,
		.ppEnabledExtensionNames = names,
	};
	VkResult result;

	for (unsigned int i = 0; i < EXTENSIONS; i++)
		if (set & 1u << i)
			names[info.enabledExtensionCount++] = extension_names[i];
	result = vk->create_device(gpu, &info, NULL, device);
	if (result == VK_SUCCESS)
		return 0;
	return log_errno(-vulkan_result_errno(result), "vkCreateDevice: %s (%d)",
			 vulkan_result_name(result), result);
}

/* NVIDIA's driver packs its version in 10, 8, 8 and 6 bits. */
static unsigned int vulkan_device_release(const VkPhysicalDeviceProperties *properties)
{
	return properties->vendorID == NVIDIA ? properties->driverVersion >> 22 : UINT_MAX;
}

static void vulkan_device_read_host_limits(const struct vulkan_driver *vk, VkPhysicalDevice gpu,
					   struct vulkan_device *device)
{
	VkPhysicalDeviceExternalMemoryHostPropertiesEXT host = {
		.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_MEMORY_HOST_PROPERTIES_EXT,
	};
	VkPhysicalDeviceProperties2 properties = {
		.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
		.pNext = &host,
	};

	vk->get_properties(gpu, &properties);
	device->host_alignment = host.minImportedHostPointerAlignment;
	device->release = vulkan_device_release(&properties.properties);
}

static int vulkan_device_find_functions(const struct vulkan_driver *vk, struct vulkan_device *d)
{
	PFN_vkGetDeviceProcAddr find = vk->get_device_proc;

	d->destroy = (PFN_vkDestroyDevice)find(d->handle, "vkDestroyDevice");
	d->allocate_memory = (PFN_vkAllocateMemory)find(d->handle, "vkAllocateMemory");
	d->free_memory = (PFN_vkFreeMemory)find(d->handle, "vkFreeMemory");
	d->get_memory_fd = (PFN_vkGetMemoryFdKHR)find(d->handle, "vkGetMemoryFdKHR");
	d->get_fd_properties =
		(PFN_vkGetMemoryFdPropertiesKHR)find(d->handle, "vkGetMemoryFdPropertiesKHR");
	if (d->takes_host)
		d->get_host_properties = (PFN_vkGetMemoryHostPointerPropertiesEXT)find(
			d->handle, "vkGetMemoryHostPointerPropertiesEXT");
	if (d->destroy && d->allocate_memory && d->free_memory && d->get_memory_fd &&
	    d->get_fd_properties && (d->get_host_properties || !d->takes_host))
		return 0;
	return log_errno(EOPNOTSUPP, "the Vulkan device lacks a function of its extensions");
}

/* Fills @device, which is zero. */
static int vulkan_device_init(const struct vulkan_driver *vk, struct vulkan_device *device)
{
	VkPhysicalDevice gpu;
	unsigned int set = 0;
	int ret = vulkan_driver_find(vk, device->uuid, &gpu);

	if (ret)
		return ret;
	ret = vulkan_device_read_extensions(vk, gpu, &set);
	if (ret)
		return ret;
	device->takes_host = set & MEMORY_HOST;
	device->takes_dmabuf = set & MEMORY_DMABUF;
	if (device->takes_host)
		vulkan_device_read_host_limits(vk, gpu, device);
	vk->get_memory_properties(gpu, &device->memory);
	ret = vulkan_device_create_device(vk, gpu, set, &device->handle);
	if (ret)
		return ret;
	ret = vulkan_device_find_functions(vk, device);
	if (ret && device->destroy)
		device->destroy(device->handle, NULL);
	return ret;
}

static int vulkan_device_new(const struct vulkan_driver *vk, const unsigned char *uuid,
			     struct vulkan_device **out)
{
	struct vulkan_device *device = calloc(1, sizeof(*device));
	int ret;

	if (!device)
		return log_errno(ENOMEM, "no memory for a Vulkan device");
	device->refs = 1;
	memcpy(device->uuid, uuid, VK_UUID_SIZE);
	ret = vulkan_device_init(vk, device);
	if (ret) {
		free(device);
		return ret;
	}
	*out = device;
	return 0;
}

int vulkan_device_make(const unsigned char uuid[VK_UUID_SIZE], struct vulkan_device **device)
{
	const struct vulkan_driver *vk;
	int ret = vulkan_device_driver_get(&vk);

	return ret ? ret : vulkan_device_new(vk, uuid, device);
}

static struct vulkan_device *vulkan_device_shared_find(const unsigned char *uuid)
	REQUIRES(vulkan_devices_lock)
{
	struct vulkan_device *device = vulkan_shared;

	while (device && memcmp(device->uuid, uuid, VK_UUID_SIZE))
		device = device->next;
	return device;
}

static void vulkan_device_shared_add(struct vulkan_device *device) REQUIRES(vulkan_devices_lock)
{
	device->refs++;
	device->next = vulkan_shared;
	vulkan_shared = device;
}

/*
 * Returns a reference.  Without a shared device, @mine, which may be NULL, is shared from now on.
 */
static struct vulkan_device *vulkan_device_shared_get(const unsigned char *uuid,
						      struct vulkan_device *mine)
{
	struct vulkan_device *device;

	lock_acquire(&vulkan_devices_lock);
	device = vulkan_device_shared_find(uuid);
	if (device)
		device->refs++;
	else if (mine)
		vulkan_device_shared_add(mine);
	lock_release(&vulkan_devices_lock);
	return device ? device : mine;
}

static void vulkan_device_destroy(struct vulkan_device *device)
{
	device->destroy(device->handle, NULL);
	free(device);
}

/* Two threads may make a device each: the first is for both. */
int vulkan_device_get(const unsigned char uuid[VK_UUID_SIZE], struct vulkan_device **out)
{
	struct vulkan_device *device, *mine;
	const struct vulkan_driver *vk;
	int ret = vulkan_device_driver_get(&vk);

	if (ret)
		return ret;
	device = vulkan_device_shared_get(uuid, NULL);
	if (!device) {
		ret = vulkan_device_new(vk, uuid, &mine);
		if (ret)
			return ret;
		device = vulkan_device_shared_get(uuid, mine);
		if (device != mine)
			vulkan_device_destroy(mine);
	}
	*out = device;
	return 0;
}

void vulkan_device_share(struct vulkan_device *device)
{
	lock_acquire(&vulkan_devices_lock);
	if (!vulkan_device_shared_find(device->uuid))
		vulkan_device_shared_add(device);
	lock_release(&vulkan_devices_lock);
}

/* True: the last reference. */
static bool vulkan_device_drop(struct vulkan_device *device) REQUIRES(vulkan_devices_lock)
{
	return !--device->refs;
}

void vulkan_device_spoil(struct vulkan_device *device)
{
	struct vulkan_device **link = &vulkan_shared;

	lock_acquire(&vulkan_devices_lock);
	while (*link && *link != device)
		link = &(*link)->next;
	if (*link) {
		*link = device->next;
		vulkan_device_drop(device); /* the caller has a second reference */
	}
	lock_release(&vulkan_devices_lock);
}

void vulkan_device_put(struct vulkan_device *device)
{
	bool last;

	lock_acquire(&vulkan_devices_lock);
	last = vulkan_device_drop(device);
	lock_release(&vulkan_devices_lock);
	if (last)
		vulkan_device_destroy(device);
}
