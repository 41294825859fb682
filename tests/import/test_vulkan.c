/* SPDX-License-Identifier: Apache-2.0 */
/* Imports of host memory by Vulkan, on a fake of libvulkan: successes and refusals. */
#include "vulkan_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

FRESH(lazy, "The first import loads Vulkan; a range that cannot work does not.")
{
	char *p = mmap(NULL, SIZE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	EXPECT(!is_loaded());
	EXPECT_EQ(try_import(p, SIZE), -EOPNOTSUPP);
	EXPECT_EQ(try_import(vulkan_map_host(SIZE) + 1, SIZE), -EINVAL);
	EXPECT(!is_loaded());
	import_works();
	EXPECT(is_loaded());
}

FRESH(host_import, "The descriptor has the bytes of the memory, for the device with the UUID.")
{
	char *p = vulkan_map_host(SIZE);
	struct fake_opaque opaque;
	struct imported in;

	EXPECT_EQ(vulkan_import_on(uuid_1, p, SIZE, &in), 0);
	EXPECT(fake_opaque_read(in.fd, &opaque));
	EXPECT(opaque.memory == p);
	EXPECT_EQ(opaque.size, SIZE);
	EXPECT(!memcmp(opaque.uuid, uuid_1, sizeof(uuid_1)));
	EXPECT_EQ(fake_vulkan()->memories, 1);
	imported_drop(&in);
	expect_clean(1);
}

FRESH(descriptor_is_callers, "The caller owns the descriptor, which outlives the import.")
{
	int before;
	struct imported in;

	import_works();
	before = process_count_descriptors();
	EXPECT_EQ(vulkan_import_on(uuid_1, vulkan_map_host(SIZE), SIZE, &in), 0);
	EXPECT(fcntl(in.fd, F_GETFD) & FD_CLOEXEC);
	vulkan_free(in.memory);
	EXPECT_EQ(close(in.fd), 0);
	EXPECT_EQ(process_count_descriptors(), before);
}

FRESH(cached_type, "Host memory is imported as a type that is host-visible, coherent and cached.")
{
	import_works();
	EXPECT_EQ(fake_vulkan()->last_type, 3);
}

FRESH(one_device, "An instance and a device serve all imports.")
{
	for (int i = 0; i < 5; i++)
		import_works();
	EXPECT_EQ(fake_vulkan()->instances, 1);
	EXPECT_EQ(fake_vulkan()->devices_made, 1);
	expect_clean(1);
}

static const struct vulkan_release {
	const char *name;
	unsigned int release;
	bool pins;
} vulkan_releases[] = {
	{ "515", 515, false }, { "520", 520, false }, { "525", 525, true },
	{ "580", 580, true },  { "other", 0, true },
};

FRESH_EACH(release, struct vulkan_release, vulkan_releases,
	   "Host memory is imported with a release of NVIDIA's driver that pins pages, and refused "
	   "with a sentence with an earlier release.")
{
	fake_vulkan()->gpu[0].release = row->release;
	if (row->pins) {
		import_works();
		return;
	}
	EXPECT_EQ(try_import(vulkan_map_host(SIZE), SIZE), -EOPNOTSUPP);
	EXPECT(strstr(log_last(), "releases of NVIDIA's driver before 525 do not pin"));
	expect_clean(1);
}

FRESH(two_gpus, "Each GPU has a separate device.")
{
	struct imported one, two;
	struct fake_opaque opaque;

	fake_vulkan()->gpu_count = 2;
	EXPECT_EQ(vulkan_import_on(uuid_2, vulkan_map_host(SIZE), SIZE, &two), 0);
	EXPECT_EQ(vulkan_import_on(uuid_1, vulkan_map_host(SIZE), SIZE, &one), 0);
	EXPECT(fake_opaque_read(one.fd, &opaque));
	EXPECT(!memcmp(opaque.uuid, uuid_1, sizeof(uuid_1)));
	EXPECT(fake_opaque_read(two.fd, &opaque));
	EXPECT(!memcmp(opaque.uuid, uuid_2, sizeof(uuid_2)));
	EXPECT_EQ(fake_vulkan()->devices, 2);
	imported_drop(&one);
	imported_drop(&two);
	import_works();
	expect_clean(2);
}

FRESH(two_gpus_refusal, "A refusal on a GPU does not affect the device of the second GPU.")
{
	struct imported two;
	char *bad = vulkan_map_host(SIZE);

	fake_vulkan()->gpu_count = 2;
	EXPECT_EQ(vulkan_import_on(uuid_2, vulkan_map_host(SIZE), SIZE, &two), 0);
	fake_vulkan()->refused = bad;
	EXPECT_EQ(try_import(bad, SIZE), -ENOMEM);
	imported_drop(&two);
	EXPECT_EQ(vulkan_import_on(uuid_2, vulkan_map_host(SIZE), SIZE, &two), 0);
	imported_drop(&two);
	EXPECT_EQ(fake_vulkan()->devices_made, 3); /* two for the refusal */
	expect_clean(1);
}

FRESH(unknown_device, "If no Vulkan device has the UUID, an import is -EOPNOTSUPP.")
{
	struct imported in;

	EXPECT_EQ(vulkan_import_on(uuid_unknown, vulkan_map_host(SIZE), SIZE, &in), -EOPNOTSUPP);
	EXPECT(strstr(log_last(), "no Vulkan device"));
	expect_clean(0);
	import_works();
}

FRESH(no_memory_fd, "If the device has no VK_KHR_external_memory_fd, an import is -EOPNOTSUPP.")
{
	fake_vulkan()->gpu[0].no_fd = true;
	EXPECT_EQ(try_import(vulkan_map_host(SIZE), SIZE), -EOPNOTSUPP);
	EXPECT(strstr(log_last(), "VK_KHR_external_memory_fd"));
	expect_clean(0);
}

FRESH(no_memory_host, "If the device has no VK_EXT_external_memory_host, an import is -EOPNOTSUPP.")
{
	fake_vulkan()->gpu[0].no_host = true;
	EXPECT_EQ(try_import(vulkan_map_host(SIZE), SIZE), -EOPNOTSUPP);
	EXPECT(strstr(log_last(), "VK_EXT_external_memory_host"));
	EXPECT_EQ(fake_vulkan()->imports, 0);
	expect_clean(1);
}

FRESH(whole_pages, "A range of other than whole pages is -EINVAL.")
{
	char *p = vulkan_map_host(SIZE);

	EXPECT_EQ(try_import(p + 64, PAGE), -EINVAL);
	EXPECT_EQ(try_import(p, 5000), -EINVAL);
	EXPECT_EQ(try_import(p, 0), -EINVAL);
	EXPECT(!is_loaded());
}

FRESH(device_alignment,
      "Alignment below minImportedHostPointerAlignment is -EINVAL, without a call of Vulkan.")
{
	char *p = vulkan_map_host(4 * 65536);

	p += -(uintptr_t)p & 65535;
	fake_vulkan()->gpu[0].alignment = 65536;
	EXPECT_EQ(try_import(p + PAGE, 65536), -EINVAL);
	EXPECT_EQ(try_import(p, 65536 + PAGE), -EINVAL);
	EXPECT_EQ(fake_vulkan()->imports, 0);
	EXPECT_EQ(try_import(p, 65536), 0);
	EXPECT_EQ(fake_vulkan()->devices_made, 1);
}

FRESH(not_mapped,
      "An unmapped part is -EFAULT, and a range that leaves the address space is -ERANGE.")
{
	char *p = vulkan_map_host(SIZE);

	mprotect(p, PAGE, PROT_READ);
	EXPECT_EQ(try_import(p, SIZE), -EOPNOTSUPP); /* opens and maps everything the check needs */
	mprotect(p, PAGE, PROT_READ | PROT_WRITE);
	munmap(p + 3 * PAGE, PAGE);
	EXPECT_EQ(try_import(p, SIZE), -EFAULT);
	EXPECT_EQ(try_import(NULL, PAGE), -EFAULT);
	EXPECT_EQ(try_import((void *)(UINTPTR_MAX - 2 * PAGE + 1), 4 * PAGE), -ERANGE);
	EXPECT(!is_loaded());
}

FRESH(not_pinnable, "Memory that cannot be pinned is -EOPNOTSUPP, without a call of Vulkan.")
{
	char *p = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	import_works();
	EXPECT_EQ(try_import(p, PAGE), -EOPNOTSUPP);
	EXPECT_EQ(fake_vulkan()->imports, 1);
	EXPECT_EQ(fake_vulkan()->devices_made, 1);
}

FRESH(refused, "If the driver has no memory, an import is -ENOMEM and the next import works.")
{
	char *bad = vulkan_map_host(SIZE);

	fake_vulkan()->refused = bad;
	for (int i = 0; i < 3; i++) {
		EXPECT_EQ(try_import(bad, SIZE), -ENOMEM);
		EXPECT(strstr(log_last(), "vkAllocateMemory: out of device memory"));
		expect_clean(0);
		import_works();
		expect_clean(1);
	}
	EXPECT_EQ(fake_vulkan()->spoiled_uses, 0);
}

FRESH(survivors, "Imports keep the device alive, and the last import destroys the device.")
{
	char *bad = vulkan_map_host(SIZE);
	struct imported old[2], new;

	for (int i = 0; i < 2; i++)
		EXPECT_EQ(vulkan_import_on(uuid_1, vulkan_map_host(SIZE), SIZE, &old[i]), 0);
	fake_vulkan()->refused = bad;
	EXPECT_EQ(try_import(bad, SIZE), -ENOMEM);
	EXPECT_EQ(fake_vulkan()->memories, 2);
	EXPECT_EQ(fake_vulkan()->devices, 1);
	EXPECT_EQ(vulkan_import_on(uuid_1, vulkan_map_host(SIZE), SIZE, &new), 0);
	EXPECT_EQ(fake_vulkan()->devices, 2);
	imported_drop(&old[0]);
	EXPECT_EQ(fake_vulkan()->devices, 2);
	imported_drop(&old[1]);
	EXPECT_EQ(fake_vulkan()->devices, 1);
	imported_drop(&new);
	expect_clean(1);
}

FRESH(second_chance,
      "An import that fails once succeeds on a new device, which is shared from then on.")
{
	struct fake_vulkan *fake = fake_vulkan();

	import_works();
	fake->fail_name = "vkAllocateMemory";
	fake->fail_result = VK_ERROR_OUT_OF_DEVICE_MEMORY;
	fake->fail_call = 1;
	import_works();
	EXPECT_EQ(fake->devices_made, 2);
	expect_clean(1);
	import_works();
	EXPECT_EQ(fake->devices_made, 2);
	EXPECT_EQ(fake->spoiled_uses, 0);
}

/* The calls of a first import that can fail, in order. */
static const struct import_call {
	const char *name;
	unsigned int number;
} first_import[] = {
	{ "create_instance", 1 },   { "count_devices", 2 },	   { "enumerate_devices", 3 },
	{ "count_extensions", 4 },  { "enumerate_extensions", 5 }, { "create_device", 6 },
	{ "find_memory_types", 7 }, { "allocate_memory", 8 },	   { "export_descriptor", 9 },
};

enum { SETUP_CALLS = 6, IMPORT_CALLS = sizeof(first_import) / sizeof(*first_import) };

static void fail_call(const struct import_call *call, VkResult result)
{
	struct fake_vulkan *fake = fake_vulkan();
	struct imported in = { NULL, -7 };
	int before = process_count_descriptors();
	int ret;

	fake->fail_result = result;
	fake->fail_call = call->number;
	ret = vulkan_import_on(uuid_1, vulkan_map_host(SIZE), SIZE, &in);
	fake->fail_call = 0;
	if (call->number <= SETUP_CALLS) {
		EXPECT(ret == -ENOMEM || ret == -EIO || ret == -EOPNOTSUPP);
		EXPECT(!in.memory);
		EXPECT_EQ(in.fd, -7);
		expect_clean(0);
	} else {
		EXPECT_EQ(ret, 0);
		imported_drop(&in);
		expect_clean(1);
	}
	import_works();
	expect_clean(1);
	EXPECT(process_count_descriptors() <= before + 1); /* /proc/self/maps, which stays open */
}

FRESH_EACH(each_call_no_memory, struct import_call, first_import,
	   "If any call fails once, nothing leaks and the next import works.")
{
	fail_call(row, VK_ERROR_OUT_OF_HOST_MEMORY);
}

FRESH_EACH(each_call_lost, struct import_call, first_import,
	   "If any call loses the device, the import is an error and leaves nothing.")
{
	fail_call(row, VK_ERROR_DEVICE_LOST);
}

FRESH(step_count, "IMPORT_CALLS is the number of calls of an import that can fail.")
{
	import_works();
	EXPECT_EQ(fake_vulkan()->calls, IMPORT_CALLS);
}

static const struct function {
	const char *name;
} import_functions[] = {
	{ "vkGetMemoryHostPointerPropertiesEXT" },
	{ "vkAllocateMemory" },
	{ "vkGetMemoryFdKHR" },
};

FRESH_EACH(both_attempts, struct function, import_functions,
	   "If a new device refuses too, the import fails and leaves nothing behind.")
{
	struct fake_vulkan *fake = fake_vulkan();
	int before;

	import_works();
	before = process_count_descriptors();
	fake->fail_name = row->name;
	fake->fail_result = VK_ERROR_DEVICE_LOST;
	fake->fail_call = 1;
	fake->fail_times = 2;
	EXPECT_EQ(try_import(vulkan_map_host(SIZE), SIZE), -EIO);
	EXPECT_EQ(fake->matched, 2);
	expect_clean(0);
	EXPECT_EQ(process_count_descriptors(), before);
	import_works();
}

FRESH(no_second_device,
      "If no new device can be made, the import fails; a later import makes the device.")
{
	struct fake_vulkan *fake = fake_vulkan();
	char *bad = vulkan_map_host(SIZE);

	import_works();
	fake->refused = bad;
	fake->fail_name = "vkCreateDevice";
	fake->fail_result = VK_ERROR_INITIALIZATION_FAILED;
	fake->fail_call = 1;
	EXPECT_EQ(try_import(bad, SIZE), -EIO);
	EXPECT(strstr(log_last(), "vkCreateDevice: initialization failed"));
	expect_clean(0);
	import_works();
}

static const struct function used_functions[] = {
	{ "vkCreateInstance" },
	{ "vkDestroyInstance" },
	{ "vkEnumeratePhysicalDevices" },
	{ "vkEnumerateDeviceExtensionProperties" },
	{ "vkGetPhysicalDeviceProperties2" },
	{ "vkGetPhysicalDeviceMemoryProperties" },
	{ "vkCreateDevice" },
	{ "vkGetDeviceProcAddr" },
	{ "vkDestroyDevice" },
	{ "vkAllocateMemory" },
	{ "vkFreeMemory" },
	{ "vkGetMemoryFdKHR" },
	{ "vkGetMemoryFdPropertiesKHR" },
	{ "vkGetMemoryHostPointerPropertiesEXT" },
};

enum { INSTANCE_FUNCTIONS = 8 }; /* the first eight; an instance needs every such function */

FRESH_EACH(missing_function, struct function, used_functions,
	   "If a function is missing, an import is -EOPNOTSUPP.")
{
	const char *name = row->name;
	bool cannot_undo = !strcmp(name, "vkDestroyInstance") || !strcmp(name, "vkDestroyDevice");

	fake_vulkan()->missing = name;
	EXPECT_EQ(try_import(vulkan_map_host(SIZE), SIZE), -EOPNOTSUPP);
	EXPECT_EQ(fake_vulkan()->memories, 0);
	if (!cannot_undo) {
		EXPECT_EQ(fake_vulkan()->devices, 0);
		EXPECT_EQ(fake_vulkan()->instances, row >= used_functions + INSTANCE_FUNCTIONS);
	}
	fake_vulkan()->missing = NULL;
	import_works();
}

FRESH(no_descriptors,
      "In a process without free descriptors an import is an error, and later imports work.")
{
	struct rlimit limit, none;
	struct imported alive;

	EXPECT_EQ(vulkan_import_on(uuid_1, vulkan_map_host(SIZE), SIZE, &alive), 0);
	getrlimit(RLIMIT_NOFILE, &limit);
	none = limit;
	none.rlim_cur = 0;
	setrlimit(RLIMIT_NOFILE, &none);
	EXPECT_EQ(try_import(vulkan_map_host(SIZE), SIZE), -EMFILE);
	setrlimit(RLIMIT_NOFILE, &limit);
	EXPECT_EQ(fake_vulkan()->memories, 1);
	import_works();
	imported_drop(&alive);
	expect_clean(1);
}
