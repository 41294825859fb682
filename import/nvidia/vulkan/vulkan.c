/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host memory and dma-bufs take one path: ask for the memory types, allocate memory as an import,
 * export the memory.
 *
 * The calls need no lock: the specification asks for external synchronization only when a
 * VkDeviceMemory is freed and when a VkDevice is destroyed.
 */
#include "import/nvidia/vulkan/vulkan.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "import/nvidia/pinnable.h"
#include "import/nvidia/vulkan/vulkan_device.h"
#include "util/descriptor.h"
#include "util/log.h"

_Static_assert(VULKAN_UUID_SIZE == VK_UUID_SIZE, "a UUID is what Vulkan says");

struct vulkan_memory {
	struct vulkan_device *device;
	VkDeviceMemory handle;
};

/* The memory to import: host memory, or a dma-buf if @host is NULL. */
struct source {
	void *host;
	int dmabuf;
	size_t size;
};

/* An import in the making. */
struct attempt {
	VkDeviceMemory memory;
	int fd;
	const char *call; /* the last call */
};

static VkResult vulkan_allowed_types(const struct vulkan_device *device,
				     const struct source *source, uint32_t *types)
{
	VkMemoryHostPointerPropertiesEXT host = {
		.sType = VK_STRUCTURE_TYPE_MEMORY_HOST_POINTER_PROPERTIES_EXT,
	};
	VkMemoryFdPropertiesKHR fd = { .sType = VK_STRUCTURE_TYPE_MEMORY_FD_PROPERTIES_KHR };
	VkResult result;

	if (source->host)
		result = device->get_host_properties(
			device->handle, VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT,
			source->host, &host);
	else
		result = device->get_fd_properties(device->handle,
						   VK_EXTERNAL_MEMORY_HANDLE_TYPE_DMA_BUF_BIT_EXT,
						   source->dmabuf, &fd);
	*types = host.memoryTypeBits | fd.memoryTypeBits;
	return result == VK_SUCCESS && !*types ? VK_ERROR_INVALID_EXTERNAL_HANDLE : result;
}

/* Host memory is cached and coherent; further types that a driver names work, too. */
static uint32_t vulkan_choose_type(const VkPhysicalDeviceMemoryProperties *memory, uint32_t types)
{
	const VkMemoryPropertyFlags wishes[] = {
		VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT |
			VK_MEMORY_PROPERTY_HOST_CACHED_BIT,
		VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT,
		VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT,
	};

	for (size_t w = 0; w < sizeof(wishes) / sizeof(wishes[0]); w++)
		for (uint32_t i = 0; i < memory->memoryTypeCount; i++)
			if (types & 1u << i &&
			    (memory->memoryTypes[i].propertyFlags & wishes[w]) == wishes[w])
				return i;
	return __builtin_ctz(types);
}

/*
 * The export is announced at the allocation, as vkGetMemoryFdKHR demands
 * (VUID-VkMemoryGetFdInfoKHR-handleType-00671).
 */
static VkResult vulkan_allocate(const struct vulkan_device *device, const void *import, size_t size,
				uint32_t type, VkDeviceMemory *memory)
{
	const VkExportMemoryAllocateInfo export = {
		.sType = VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO,
		.pNext = import,
		.handleTypes = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT,
	};
	const VkMemoryAllocateInfo info = {
		.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
		.pNext = &export,
		.allocationSize = size,
		.memoryTypeIndex = type,
	};

	return device->allocate_memory(device->handle, &info, NULL, memory);
}

static VkResult vulkan_allocate_host(const struct vulkan_device *device,
				     const struct source *source, uint32_t type,
				     VkDeviceMemory *memory)
{
	const VkImportMemoryHostPointerInfoEXT import = {
		.sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT,
		.handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT,
		.pHostPointer = source->host,
	};

	return vulkan_allocate(device, &import, source->size, type, memory);
}

/* A successful import takes the descriptor over. */
static VkResult vulkan_allocate_dmabuf(const struct vulkan_device *device,
				       const struct source *source, uint32_t type,
				       VkDeviceMemory *memory)
{
	const VkImportMemoryFdInfoKHR import = {
		.sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR,
		.handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_DMA_BUF_BIT_EXT,
		.fd = descriptor_duplicate(source->dmabuf),
	};
	VkResult result;

	if (import.fd < 0)
		return VK_ERROR_TOO_MANY_OBJECTS;
	result = vulkan_allocate(device, &import, source->size, type, memory);
	if (result != VK_SUCCESS)
		close(import.fd);
	return result;
}

static VkResult vulkan_export_memory(const struct vulkan_device *device, VkDeviceMemory memory,
				     int *fd)
{
	const VkMemoryGetFdInfoKHR info = {
		.sType = VK_STRUCTURE_TYPE_MEMORY_GET_FD_INFO_KHR,
		.memory = memory,
		.handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT,
	};

	return device->get_memory_fd(device->handle, &info, fd);
}

/* A failure leaves nothing behind. */
static VkResult vulkan_import_on_device(const struct vulkan_device *device,
					const struct source *source, struct attempt *attempt)
{
	uint32_t types;
	VkResult result;

	attempt->call = "the memory types of an import";
	result = vulkan_allowed_types(device, source, &types);
	if (result != VK_SUCCESS)
		return result;
	attempt->call = "vkAllocateMemory";
	result = (source->host ? vulkan_allocate_host : vulkan_allocate_dmabuf)(
		device, source, vulkan_choose_type(&device->memory, types), &attempt->memory);
	if (result != VK_SUCCESS)
		return result;
	attempt->call = "vkGetMemoryFdKHR";
	result = vulkan_export_memory(device, attempt->memory, &attempt->fd);
	if (result != VK_SUCCESS)
		device->free_memory(device->handle, attempt->memory, NULL);
	return result;
}

/* Checks before the device is asked, so that no device is spoiled for nothing. */
static int vulkan_check_device(const struct vulkan_device *device, const struct source *source)
{
	if (!source->host && !device->takes_dmabuf)
		return log_errno(EOPNOTSUPP, "the Vulkan device has no %s",
				 VK_EXT_EXTERNAL_MEMORY_DMA_BUF_EXTENSION_NAME);
	if (!source->host)
		return 0;
	if (!device->takes_host)
		return log_errno(EOPNOTSUPP, "the Vulkan device has no %s",
				 VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME);
	if (((uintptr_t)source->host | source->size) & (device->host_alignment - 1))
		return log_errno(EINVAL, "%zu bytes at %p are not aligned to %llu bytes",
				 source->size, source->host,
				 (unsigned long long)device->host_alignment);
	return pinnable_check_release(device->release);
}

/*
 * A second thread may have spoiled a shared device, so a refusal counts only from a fresh device.
 */
static int vulkan_import_afresh(const unsigned char *uuid, const struct source *source,
				struct vulkan_device **device, struct attempt *attempt)
{
	int no_descriptor, ret = vulkan_device_make(uuid, device);
	VkResult result;

	if (ret)
		return ret;
	result = vulkan_import_on_device(*device, source, attempt);
	if (result == VK_SUCCESS) {
		vulkan_device_share(*device);
		return 0;
	}
	vulkan_device_put(*device);
	no_descriptor = descriptor_errno();
	return log_errno(no_descriptor ? no_descriptor : -vulkan_result_errno(result),
			 "Vulkan refuses %zu bytes of %s: %s: %s (%d)", source->size,
			 source->host ? "host memory" : "a dma-buf", attempt->call,
			 vulkan_result_name(result), result);
}

static int vulkan_import_source(const unsigned char *uuid, const struct source *source,
				struct vulkan_device **device, struct attempt *attempt)
{
	int ret = vulkan_device_get(uuid, device);
	VkResult result;

	if (ret)
		return ret;
	ret = vulkan_check_device(*device, source);
	if (ret)
		goto put_device;
	result = vulkan_import_on_device(*device, source, attempt);
	if (result == VK_SUCCESS)
		return 0;
	log_debug("%s: %s (%d), trying a new device", attempt->call, vulkan_result_name(result),
		  result);
	vulkan_device_spoil(*device);
	vulkan_device_put(*device);
	return vulkan_import_afresh(uuid, source, device, attempt);

put_device:
	vulkan_device_put(*device);
	return ret;
}

static int vulkan_import_memory(const unsigned char *uuid, const struct source *source,
				struct vulkan_memory **out, int *fd)
{
	struct vulkan_memory *memory = malloc(sizeof(*memory));
	struct attempt attempt;
	int ret;

	if (!memory)
		return log_errno(ENOMEM, "no memory for an import");
	ret = vulkan_import_source(uuid, source, &memory->device, &attempt);
	if (ret) {
		free(memory);
		return ret;
	}
	memory->handle = attempt.memory;
	*out = memory;
	*fd = attempt.fd;
	return 0;
}

int vulkan_import_host(const unsigned char uuid[VULKAN_UUID_SIZE], void *addr, size_t size,
		       struct vulkan_memory **memory, int *fd)
{
	const struct source source = { .host = addr, .size = size };
	size_t page = sysconf(_SC_PAGESIZE);
	int ret;

	if (!size || ((uintptr_t)addr | size) & (page - 1))
		return log_errno(EINVAL, "%zu bytes at %p are not whole pages", size, addr);
	if (!addr)
		return log_errno(EFAULT, "host memory at 0 is not mapped");
	ret = pinnable_check(addr, size, PINNABLE_MEMORY);
	return ret ? ret : vulkan_import_memory(uuid, &source, memory, fd);
}

int vulkan_import_dmabuf(const unsigned char uuid[VULKAN_UUID_SIZE], int dmabuf, size_t size,
			 struct vulkan_memory **memory, int *fd)
{
	const struct source source = { .dmabuf = dmabuf, .size = size };
	off_t has = lseek(dmabuf, 0, SEEK_END);

	if (has < 0)
		return log_errno(EBADF, "descriptor %d is not a dma-buf", dmabuf);
	if (!size || size > (size_t)has)
		return log_errno(ERANGE, "%zu bytes exceed dma-buf %d, which has %lld", size,
				 dmabuf, (long long)has);
	return vulkan_import_memory(uuid, &source, memory, fd);
}

bool vulkan_takes_dmabufs(const unsigned char uuid[VULKAN_UUID_SIZE])
{
	struct vulkan_device *device;
	bool takes;

	if (vulkan_device_get(uuid, &device))
		return false;
	takes = device->takes_dmabuf;
	vulkan_device_put(device);
	return takes;
}

void vulkan_free(struct vulkan_memory *memory)
{
	if (!memory)
		return;
	if (!vulkan_is_foreign()) {
		memory->device->free_memory(memory->device->handle, memory->handle, NULL);
		vulkan_device_put(memory->device);
	}
	free(memory);
}
