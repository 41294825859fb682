/* SPDX-License-Identifier: Apache-2.0 */
#define VK_NO_PROTOTYPES
#include <vulkan/vulkan_core.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fake_vulkan.h"
#include "fork.h"
#include "opaque.h"

#define EXPORTED __attribute__((visibility("default")))

EXPORTED extern struct fake_vulkan fake_vulkan_state;
EXPORTED PFN_vkVoidFunction vkGetInstanceProcAddr(VkInstance instance, const char *name);

#define GPU(n)                                   \
	{                                        \
		.uuid = { n }, .alignment = 4096 \
	}

struct fake_vulkan fake_vulkan_state = {
	.gpu_count = 1,
	.gpu = { GPU(1), GPU(2), GPU(3), GPU(4) },
};

static struct fake_vulkan *const fake = &fake_vulkan_state;

struct device {
	struct fake_vulkan_gpu *gpu;
	bool fd, host, dmabuf; /* enabled extensions */
	atomic_bool spoiled;
	atomic_uint memories;
};

struct memory {
	struct device *device;
	void *bytes;
	size_t size;
	bool mapped; /* a dma-buf, which fake_free_memory() unmaps */
	bool exportable;
};

static struct device *_Atomic oldest; /* a device that cannot be destroyed is not a leak */

/* Each byte of the first GPU's UUID, for programs that do not know of the fake. */
__attribute__((constructor)) static void take_environment(void)
{
	const char *byte = getenv("FAKE_VULKAN_UUID");

	if (byte)
		memset(fake->gpu[0].uuid, (int)strtoul(byte, NULL, 16), sizeof(fake->gpu[0].uuid));
}

static void fake_note_misuse(const char *what)
{
	fprintf(stderr, "# fake Vulkan: %s\n", what);
	fake->misuses++;
}

/* The error that the test set for the call of @name, or VK_SUCCESS. */
static VkResult fake_take_error(const char *name)
{
	unsigned int n, last;

	fake->calls++;
	if (fake->forks)
		fake_fork();
	if (!fake->fail_call || (fake->fail_name && strcmp(fake->fail_name, name)))
		return VK_SUCCESS;
	n = atomic_fetch_add(&fake->matched, 1) + 1;
	last = fake->fail_call + (fake->fail_times ? fake->fail_times - 1 : 0);
	return n >= fake->fail_call && n <= last ? (VkResult)fake->fail_result : VK_SUCCESS;
}

static VkResult fake_create_instance(const VkInstanceCreateInfo *info,
				     const VkAllocationCallbacks *callbacks, VkInstance *instance)
{
	VkResult result = fake_take_error("vkCreateInstance");

	(void)callbacks;
	if (info->enabledLayerCount || info->enabledExtensionCount)
		fake_note_misuse("an instance with layers or extensions");
	if (!info->pApplicationInfo || info->pApplicationInfo->apiVersion < VK_API_VERSION_1_1)
		fake_note_misuse("an instance of Vulkan 1.0");
	if (result != VK_SUCCESS)
		return result;
	*instance = (VkInstance)fake;
	fake->instances++;
	return VK_SUCCESS;
}

static void fake_destroy_instance(VkInstance instance, const VkAllocationCallbacks *callbacks)
{
	(void)callbacks;
	if (fake->devices &&
	    fake->instances == 1) /* with two instances the owner of a device is unknown */
		fake_note_misuse("an instance is destroyed before its devices");
	if (instance != (VkInstance)fake)
		fake_note_misuse("a foreign instance is destroyed");
	fake->instances--;
}

static VkResult fake_enumerate_physical_devices(VkInstance instance, uint32_t *count,
						VkPhysicalDevice *list)
{
	VkResult result = fake_take_error("vkEnumeratePhysicalDevices");

	(void)instance;
	if (result != VK_SUCCESS)
		return result;
	for (uint32_t i = 0; list && i < *count && i < fake->gpu_count; i++)
		list[i] = (VkPhysicalDevice)&fake->gpu[i];
	if (!list || *count > fake->gpu_count)
		*count = fake->gpu_count;
	return *count < fake->gpu_count ? VK_INCOMPLETE : VK_SUCCESS;
}

static void fake_get_properties(VkPhysicalDevice device, VkPhysicalDeviceProperties2 *properties)
{
	const struct fake_vulkan_gpu *gpu = (const struct fake_vulkan_gpu *)device;

	properties->properties.apiVersion = VK_API_VERSION_1_1;
	properties->properties.vendorID = gpu->release ? 0x10de : 0x1af4;
	properties->properties.driverVersion = gpu->release << 22;
	for (VkBaseOutStructure *next = properties->pNext; next; next = next->pNext) {
		if (next->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES)
			memcpy(((VkPhysicalDeviceIDProperties *)next)->deviceUUID, gpu->uuid, 16);
		if (next->sType ==
		    VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_MEMORY_HOST_PROPERTIES_EXT)
			((VkPhysicalDeviceExternalMemoryHostPropertiesEXT *)next)
				->minImportedHostPointerAlignment = gpu->alignment;
	}
}

static VkResult fake_enumerate_extensions(VkPhysicalDevice device, const char *layer,
					  uint32_t *count, VkExtensionProperties *list)
{
	const struct fake_vulkan_gpu *gpu = (const struct fake_vulkan_gpu *)device;
	VkResult result = fake_take_error("vkEnumerateDeviceExtensionProperties");
	const char *names[4] = { "VK_KHR_swapchain" };
	uint32_t n = 1;

	(void)layer;
	if (result != VK_SUCCESS)
		return result;
	if (!gpu->no_fd)
		names[n++] = VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME;
	if (!gpu->no_host)
		names[n++] = VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME;
	if (!gpu->no_dmabuf)
		names[n++] = VK_EXT_EXTERNAL_MEMORY_DMA_BUF_EXTENSION_NAME;
	for (uint32_t i = 0; list && i < *count && i < n; i++)
		strcpy(list[i].extensionName, names[i]);
	*count = n;
	return VK_SUCCESS;
}

/* As on an H200: types 2 and 3 are the host's, and type 3 is cached. */
static void fake_get_memory_properties(VkPhysicalDevice device,
				       VkPhysicalDeviceMemoryProperties *memory)
{
	const VkMemoryPropertyFlags host = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT |
					   VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;

	(void)device;
	memset(memory, 0, sizeof(*memory));
	memory->memoryTypeCount = 4;
	memory->memoryTypes[1].propertyFlags = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
	memory->memoryTypes[2].propertyFlags = host;
	memory->memoryTypes[3].propertyFlags = host | VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
}

static void device_enable(struct device *device, const char *name)
{
	const struct fake_vulkan_gpu *gpu = device->gpu;

	if (!gpu->no_fd && !strcmp(name, VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME))
		device->fd = true;
	else if (!gpu->no_host && !strcmp(name, VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME))
		device->host = true;
	else if (!gpu->no_dmabuf && !strcmp(name, VK_EXT_EXTERNAL_MEMORY_DMA_BUF_EXTENSION_NAME))
		device->dmabuf = true;
	else
		fake_note_misuse("an extension is enabled that the device does not have");
}

static VkResult fake_create_device(VkPhysicalDevice gpu, const VkDeviceCreateInfo *info,
				   const VkAllocationCallbacks *callbacks, VkDevice *out)
{
	VkResult result = fake_take_error("vkCreateDevice");
	struct device *device;

	(void)callbacks;
	if (info->queueCreateInfoCount != 1 || info->pQueueCreateInfos->queueCount != 1)
		fake_note_misuse("a device without a queue");
	if (result != VK_SUCCESS)
		return result;
	device = calloc(1, sizeof(*device));
	device->gpu = (struct fake_vulkan_gpu *)gpu;
	if (!oldest)
		oldest = device;
	for (uint32_t i = 0; i < info->enabledExtensionCount; i++)
		device_enable(device, info->ppEnabledExtensionNames[i]);
	fake->devices++;
	fake->devices_made++;
	*out = (VkDevice)device;
	return VK_SUCCESS;
}

static void fake_destroy_device(VkDevice handle, const VkAllocationCallbacks *callbacks)
{
	struct device *device = (struct device *)handle;

	(void)callbacks;
	if (device->memories)
		fake_note_misuse("a device is destroyed before its memory");
	free(device);
	fake->devices--;
}

static VkResult fake_get_host_properties(VkDevice handle, VkExternalMemoryHandleTypeFlagBits type,
					 const void *address,
					 VkMemoryHostPointerPropertiesEXT *properties)
{
	struct device *device = (struct device *)handle;

	(void)address;
	if (!device->host || type != VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT)
		fake_note_misuse("properties of a host pointer without the extension");
	properties->memoryTypeBits = 1u << 2 | 1u << 3;
	return fake_take_error("vkGetMemoryHostPointerPropertiesEXT");
}

static VkResult fake_get_fd_properties(VkDevice handle, VkExternalMemoryHandleTypeFlagBits type,
				       int fd, VkMemoryFdPropertiesKHR *properties)
{
	struct device *device = (struct device *)handle;

	(void)fd;
	if (!device->dmabuf || type != VK_EXTERNAL_MEMORY_HANDLE_TYPE_DMA_BUF_BIT_EXT)
		fake_note_misuse("properties of a dma-buf without the extension");
	properties->memoryTypeBits = 1u << 1;
	return fake_take_error("vkGetMemoryFdPropertiesKHR");
}

static const void *chain_find(const void *next, VkStructureType type)
{
	const VkBaseInStructure *s = next;

	while (s && s->sType != type)
		s = s->pNext;
	return s;
}

static bool line_is_pinnable(const char *line)
{
	return strstr(line, " rw") &&
	       strstr(line, " 00:"); /* memory and tmpfs; a disk has a major number */
}

static bool is_pinnable(const void *address, size_t size)
{
	unsigned long at = (unsigned long)address, end = at + size, from, to;
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];

	if ((at | size) % 4096 || (fake->refused && address == fake->refused))
		at = 0, end = 1;
	while (maps && at < end && fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%lx-%lx", &from, &to) != 2 || to <= at)
			continue;
		if (from > at || !line_is_pinnable(line))
			break;
		at = to;
	}
	if (maps)
		fclose(maps);
	return at >= end;
}

static void wait_a_while(void)
{
	static atomic_uint running;
	unsigned int now = atomic_fetch_add(&running, 1) + 1, most = fake->concurrent;

	while (now > most && !atomic_compare_exchange_weak(&fake->concurrent, &most, now))
		;
	if (fake->slow_us)
		usleep(fake->slow_us); /* time: a slow driver, for no check */
	/* A limit on a hang: imports that wait for each other never meet. */
	for (int i = 0; i < 10000 && fake->concurrent < fake->meeting; i++)
		usleep(1000); /* time: between two looks at the count */
	running--;
}

/* A successful import of a dma-buf consumes the descriptor, as Vulkan does. */
static bool memory_take(struct memory *memory, const VkMemoryAllocateInfo *info)
{
	const VkImportMemoryHostPointerInfoEXT *host =
		chain_find(info->pNext, VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT);
	const VkImportMemoryFdInfoKHR *fd =
		chain_find(info->pNext, VK_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR);

	memory->size = info->allocationSize;
	if (!host && !fd) {
		fake_note_misuse("memory that imports nothing");
		return false;
	}
	if (host) {
		memory->bytes = host->pHostPointer;
		return is_pinnable(host->pHostPointer, info->allocationSize);
	}
	memory->bytes = mmap(NULL, memory->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd->fd, 0);
	memory->mapped = memory->bytes != MAP_FAILED;
	if (memory->mapped)
		close(fd->fd);
	return memory->mapped;
}

static VkResult fake_allocate_memory(VkDevice handle, const VkMemoryAllocateInfo *info,
				     const VkAllocationCallbacks *callbacks, VkDeviceMemory *out)
{
	const VkExportMemoryAllocateInfo *export =
		chain_find(info->pNext, VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO);
	struct device *device = (struct device *)handle;
	struct memory *memory = calloc(1, sizeof(*memory));
	VkResult result = fake_take_error("vkAllocateMemory");

	(void)callbacks;
	fake->imports++;
	if (device->spoiled) {
		fake->spoiled_uses++;
		result = VK_ERROR_OUT_OF_DEVICE_MEMORY;
	}
	wait_a_while();
	memory->device = device;
	memory->exportable = export &&
			     export->handleTypes == VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;
	if (result == VK_SUCCESS && (device->spoiled || !memory_take(memory, info)))
		result = VK_ERROR_OUT_OF_DEVICE_MEMORY;
	if (result != VK_SUCCESS) {
		device->spoiled = true;
		free(memory);
		return result;
	}
	fake->last_type = info->memoryTypeIndex;
	device->memories++;
	fake->memories++;
	*out = (VkDeviceMemory)memory;
	return VK_SUCCESS;
}

static void fake_free_memory(VkDevice handle, VkDeviceMemory object,
			     const VkAllocationCallbacks *callbacks)
{
	struct memory *memory = (struct memory *)object;

	(void)callbacks;
	if (memory->device != (struct device *)handle)
		fake_note_misuse("memory is freed on a device that is not its own");
	if (memory->mapped)
		munmap(memory->bytes, memory->size);
	memory->device->memories--;
	fake->memories--;
	free(memory);
}

static VkResult fake_get_memory_fd(VkDevice handle, const VkMemoryGetFdInfoKHR *info, int *fd)
{
	const struct memory *memory = (const struct memory *)info->memory;
	struct device *device = (struct device *)handle;
	struct fake_opaque opaque = {
		.magic = FAKE_OPAQUE_MAGIC,
		.memory = memory->bytes,
		.size = memory->size,
	};
	VkResult result = fake_take_error("vkGetMemoryFdKHR");

	if (!memory->exportable || !device->fd)
		fake_note_misuse("vkGetMemoryFdKHR of memory that was not made for it");
	opaque.cached = true;
	memcpy(opaque.uuid, device->gpu->uuid, sizeof(opaque.uuid));
	if (result != VK_SUCCESS)
		return result;
	*fd = fake_opaque_create(&opaque);
	return *fd < 0 ? VK_ERROR_TOO_MANY_OBJECTS : VK_SUCCESS;
}

static PFN_vkVoidFunction fake_get_device_proc(VkDevice device, const char *name);

static const struct {
	const char *name;
	PFN_vkVoidFunction function;
} functions[] = {
	{ "vkCreateInstance", (PFN_vkVoidFunction)fake_create_instance },
	{ "vkDestroyInstance", (PFN_vkVoidFunction)fake_destroy_instance },
	{ "vkEnumeratePhysicalDevices", (PFN_vkVoidFunction)fake_enumerate_physical_devices },
	{ "vkGetPhysicalDeviceProperties2", (PFN_vkVoidFunction)fake_get_properties },
	{ "vkGetPhysicalDeviceMemoryProperties", (PFN_vkVoidFunction)fake_get_memory_properties },
	{ "vkEnumerateDeviceExtensionProperties", (PFN_vkVoidFunction)fake_enumerate_extensions },
	{ "vkCreateDevice", (PFN_vkVoidFunction)fake_create_device },
	{ "vkGetDeviceProcAddr", (PFN_vkVoidFunction)fake_get_device_proc },
	{ "vkDestroyDevice", (PFN_vkVoidFunction)fake_destroy_device },
	{ "vkAllocateMemory", (PFN_vkVoidFunction)fake_allocate_memory },
	{ "vkFreeMemory", (PFN_vkVoidFunction)fake_free_memory },
	{ "vkGetMemoryFdKHR", (PFN_vkVoidFunction)fake_get_memory_fd },
	{ "vkGetMemoryFdPropertiesKHR", (PFN_vkVoidFunction)fake_get_fd_properties },
	{ "vkGetMemoryHostPointerPropertiesEXT", (PFN_vkVoidFunction)fake_get_host_properties },
};

static PFN_vkVoidFunction fake_find_function(const char *name)
{
	if (fake->missing && !strcmp(name, fake->missing))
		return NULL;
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
		if (!strcmp(functions[i].name, name))
			return functions[i].function;
	return NULL;
}

static PFN_vkVoidFunction fake_get_device_proc(VkDevice device, const char *name)
{
	(void)device;
	return fake_find_function(name);
}

PFN_vkVoidFunction vkGetInstanceProcAddr(VkInstance instance, const char *name)
{
	if (!instance && strcmp(name, "vkCreateInstance"))
		fake_note_misuse("a function is asked for without an instance");
	return fake_find_function(name);
}
