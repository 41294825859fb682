/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Vulkan is set up once in a process, so each test runs in one of its own: FRESH(name, says).
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan_core.h>

#include "fake_vulkan.h"
#include "harness.h"
#include "process.h"
#include "import/nvidia/vulkan/vulkan.h"
#include "opaque.h"
#include "util/log.h"

#define PAGE 4096
#define SIZE (16 * PAGE)
#define STEP "CLIMPORT_TEST_STEP"

extern char **environ;

static const unsigned char uuid_1[16] = { 1 }, uuid_2[16] = { 2 }, uuid_unknown[16] = { 9 };

/* Runs one test of this program in a new process, with @step for step_number(). */
static int step_spawn(const char *name, int step)
{
	char program[] = "/proc/self/exe", number[16], *argv[] = { program, strdup(name), NULL };
	posix_spawn_file_actions_t actions;
	int status = -1;
	pid_t pid;

	snprintf(number, sizeof(number), "%d", step);
	setenv(STEP, number, 1);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, 2, 1);
	if (!posix_spawn(&pid, program, &actions, NULL, argv, environ))
		waitpid(pid, &status, 0);
	posix_spawn_file_actions_destroy(&actions);
	unsetenv(STEP);
	free(argv[1]);
	return status;
}

static int step_number(void)
{
	return atoi(getenv(STEP));
}

/* Exit status of a child that a test skipped is 77. */
static void step_run_fresh(const char *name, int steps, void (*run)(void))
{
	if (getenv(STEP)) {
		run();
		return;
	}
	for (int i = 1; i <= steps; i++) {
		int status = step_spawn(name, i);

		if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
			test_skip("see above");
		EXPECT_EQ(status, 0);
	}
}

#define FRESH_STEPS(name, steps, says)                        \
	static void fresh_##name(void);                       \
	TEST(name, says)                                      \
	{                                                     \
		step_run_fresh(#name, (steps), fresh_##name); \
	}                                                     \
	static void fresh_##name(void)

#define FRESH(name, says) FRESH_STEPS(name, 1, says)

static char *vulkan_map_host(size_t size)
{
	char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	EXPECT(p != MAP_FAILED);
	return p;
}

struct imported {
	struct vulkan_memory *memory;
	int fd;
};

static int vulkan_import_on(const unsigned char *uuid, void *p, size_t size, struct imported *out)
{
	return vulkan_import_host(uuid, p, size, &out->memory, &out->fd);
}

static void imported_drop(struct imported *imported)
{
	close(imported->fd);
	vulkan_free(imported->memory);
}

/* An import that has to work, and is given back. */
static void import_works(void)
{
	char *p = vulkan_map_host(SIZE);
	struct fake_opaque opaque;
	struct imported in;

	EXPECT_EQ(vulkan_import_on(uuid_1, p, SIZE, &in), 0);
	EXPECT(fake_opaque_read(in.fd, &opaque));
	EXPECT(opaque.memory == p);
	imported_drop(&in);
	munmap(p, SIZE);
}

static int try_import(void *p, size_t size)
{
	struct imported in;
	int ret = vulkan_import_on(uuid_1, p, size, &in);

	if (!ret)
		imported_drop(&in);
	return ret;
}

/* After everything was freed the shared devices are left, and nothing else. */
static void expect_clean(unsigned int devices)
{
	EXPECT_EQ(fake_vulkan()->memories, 0);
	EXPECT_EQ(fake_vulkan()->devices, devices);
	EXPECT_EQ(fake_vulkan()->misuses, 0);
}

static bool is_loaded(void)
{
	void *library = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_NOLOAD);

	if (library)
		dlclose(library);
	return library;
}

FRESH(lazy, "Vulkan is loaded by the first import, and not by ranges that cannot work.")
{
	char *p = mmap(NULL, SIZE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	EXPECT(!is_loaded());
	EXPECT_EQ(try_import(p, SIZE), -EOPNOTSUPP);
	EXPECT_EQ(try_import(vulkan_map_host(SIZE) + 1, SIZE), -EINVAL);
	EXPECT(!is_loaded());
	import_works();
	EXPECT(is_loaded());
}

FRESH(host_import, "The descriptor is of the same bytes, for the device with the UUID.")
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

FRESH(descriptor_is_callers, "The descriptor is the caller's, and outlives the import.")
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

FRESH(two_gpus, "Each GPU has a device of its own.")
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

FRESH(two_gpus_refusal, "A refusal on one GPU does not touch the device of another.")
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

FRESH(unknown_device, "-EOPNOTSUPP when no Vulkan device has the UUID.")
{
	struct imported in;

	EXPECT_EQ(vulkan_import_on(uuid_unknown, vulkan_map_host(SIZE), SIZE, &in), -EOPNOTSUPP);
	EXPECT(strstr(log_last(), "no Vulkan device"));
	expect_clean(0);
	import_works();
}

FRESH(no_memory_fd, "-EOPNOTSUPP when the device has no VK_KHR_external_memory_fd.")
{
	fake_vulkan()->gpu[0].no_fd = true;
	EXPECT_EQ(try_import(vulkan_map_host(SIZE), SIZE), -EOPNOTSUPP);
	EXPECT(strstr(log_last(), "VK_KHR_external_memory_fd"));
	expect_clean(0);
}

FRESH(no_memory_host, "-EOPNOTSUPP when it has no VK_EXT_external_memory_host.")
{
	fake_vulkan()->gpu[0].no_host = true;
	EXPECT_EQ(try_import(vulkan_map_host(SIZE), SIZE), -EOPNOTSUPP);
	EXPECT(strstr(log_last(), "VK_EXT_external_memory_host"));
	EXPECT_EQ(fake_vulkan()->imports, 0);
	expect_clean(1);
}

FRESH(whole_pages, "-EINVAL for what is not whole pages.")
{
	char *p = vulkan_map_host(SIZE);

	EXPECT_EQ(try_import(p + 64, PAGE), -EINVAL);
	EXPECT_EQ(try_import(p, 5000), -EINVAL);
	EXPECT_EQ(try_import(p, 0), -EINVAL);
	EXPECT(!is_loaded());
}

FRESH(device_alignment,
      "-EINVAL for less than minImportedHostPointerAlignment, before Vulkan sees it.")
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

FRESH(not_mapped, "-EFAULT when part is not mapped, -ERANGE when it leaves the address space.")
{
	char *p = vulkan_map_host(SIZE);

	mprotect(p, PAGE, PROT_READ);
	EXPECT_EQ(try_import(p, SIZE), -EOPNOTSUPP); /* maps what the check itself needs */
	mprotect(p, PAGE, PROT_READ | PROT_WRITE);
	munmap(p + 3 * PAGE, PAGE);
	EXPECT_EQ(try_import(p, SIZE), -EFAULT);
	EXPECT_EQ(try_import(NULL, PAGE), -EFAULT);
	EXPECT_EQ(try_import((void *)(UINTPTR_MAX - 2 * PAGE + 1), 4 * PAGE), -ERANGE);
	EXPECT(!is_loaded());
}

FRESH(not_pinnable, "-EOPNOTSUPP for memory that cannot be pinned, before Vulkan sees it.")
{
	char *p = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	import_works();
	EXPECT_EQ(try_import(p, PAGE), -EOPNOTSUPP);
	EXPECT_EQ(fake_vulkan()->imports, 1);
	EXPECT_EQ(fake_vulkan()->devices_made, 1);
}

FRESH(refused, "-ENOMEM when the driver has no memory, and the next import works.")
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

FRESH(survivors, "Imports that are alive keep their device; the last of them destroys it.")
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
      "An import that fails once succeeds on a new device, which is then the shared one.")
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

/*
 * The calls of a first import: vkCreateInstance, vkEnumeratePhysicalDevices twice,
 * vkEnumerateDeviceExtensionProperties twice, vkCreateDevice, memory types, vkAllocateMemory,
 * vkGetMemoryFdKHR.
 */
enum { SETUP_CALLS = 6, IMPORT_CALLS = 9 };

static void fail_step(VkResult result)
{
	struct fake_vulkan *fake = fake_vulkan();
	struct imported in = { NULL, -7 };
	int before = process_count_descriptors();
	int ret;

	fake->fail_result = result;
	fake->fail_call = step_number();
	ret = vulkan_import_on(uuid_1, vulkan_map_host(SIZE), SIZE, &in);
	fake->fail_call = 0;
	if (step_number() <= SETUP_CALLS) {
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

FRESH_STEPS(each_call_no_memory, IMPORT_CALLS,
	    "Each call may fail once: nothing leaks, the next import works.")
{
	fail_step(VK_ERROR_OUT_OF_HOST_MEMORY);
}

FRESH_STEPS(each_call_lost, IMPORT_CALLS,
	    "An import that loses the device in any of its calls is an error, and leaves nothing.")
{
	fail_step(VK_ERROR_DEVICE_LOST);
}

FRESH(step_count, "The tests of failing calls know all calls of an import that can fail.")
{
	import_works();
	EXPECT_EQ(fake_vulkan()->calls, IMPORT_CALLS);
}

static const char *const import_calls[] = { "vkGetMemoryHostPointerPropertiesEXT",
					    "vkAllocateMemory", "vkGetMemoryFdKHR" };

FRESH_STEPS(both_attempts, 3,
	    "An import that a new device refuses too fails, and leaves nothing behind.")
{
	struct fake_vulkan *fake = fake_vulkan();
	int before;

	import_works();
	before = process_count_descriptors();
	fake->fail_name = import_calls[step_number() - 1];
	fake->fail_result = VK_ERROR_DEVICE_LOST;
	fake->fail_call = 1;
	fake->fail_times = 2;
	EXPECT_EQ(try_import(vulkan_map_host(SIZE), SIZE), -EIO);
	EXPECT_EQ(fake->matched, 2);
	expect_clean(0);
	EXPECT_EQ(process_count_descriptors(), before);
	import_works();
}

FRESH(no_second_device, "When no new device can be made the import fails; a later one makes it.")
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

static const char *const used_functions[] = {
	"vkCreateInstance",
	"vkDestroyInstance",
	"vkEnumeratePhysicalDevices",
	"vkEnumerateDeviceExtensionProperties",
	"vkGetPhysicalDeviceProperties2",
	"vkGetPhysicalDeviceMemoryProperties",
	"vkCreateDevice",
	"vkGetDeviceProcAddr",
	"vkDestroyDevice",
	"vkAllocateMemory",
	"vkFreeMemory",
	"vkGetMemoryFdKHR",
	"vkGetMemoryFdPropertiesKHR",
	"vkGetMemoryHostPointerPropertiesEXT",
};

enum { INSTANCE_FUNCTIONS = 8 }; /* those at the start: without them there is no instance */

FRESH_STEPS(missing_function, sizeof(used_functions) / sizeof(used_functions[0]),
	    "-EOPNOTSUPP when a function is not there.")
{
	const char *name = used_functions[step_number() - 1];
	bool cannot_undo = !strcmp(name, "vkDestroyInstance") || !strcmp(name, "vkDestroyDevice");

	fake_vulkan()->missing = name;
	EXPECT_EQ(try_import(vulkan_map_host(SIZE), SIZE), -EOPNOTSUPP);
	EXPECT_EQ(fake_vulkan()->memories, 0);
	if (!cannot_undo) {
		EXPECT_EQ(fake_vulkan()->devices, 0);
		EXPECT_EQ(fake_vulkan()->instances, step_number() > INSTANCE_FUNCTIONS);
	}
	fake_vulkan()->missing = NULL;
	import_works();
}

FRESH(no_descriptors, "A process without descriptors gets an error, and later its imports.")
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

static int vulkan_create_dmabuf(void)
{
	int fd = memfd_create("dma-buf", MFD_CLOEXEC);

	EXPECT_EQ(ftruncate(fd, SIZE), 0);
	return fd;
}

FRESH(dmabuf_import, "A dma-buf becomes a descriptor of the same bytes, and stays the caller's.")
{
	struct fake_opaque opaque;
	struct imported in;
	int fd = vulkan_create_dmabuf();
	int before = process_count_descriptors();
	char byte;

	EXPECT_EQ(vulkan_import_dmabuf(uuid_1, fd, SIZE, &in.memory, &in.fd), 0);
	EXPECT(fake_opaque_read(in.fd, &opaque));
	EXPECT_EQ(opaque.size, SIZE);
	((char *)opaque.memory)[SIZE - 1] = 42;
	EXPECT_EQ(pread(fd, &byte, 1, SIZE - 1), 1);
	EXPECT_EQ(byte, 42);
	EXPECT_EQ(fake_vulkan()->last_type, 1);
	imported_drop(&in);
	EXPECT_EQ(process_count_descriptors(), before);
	expect_clean(1);
}

FRESH(no_dmabuf,
      "-EOPNOTSUPP when the device has no VK_EXT_external_memory_dma_buf; hosts' memory works.")
{
	struct imported in;

	fake_vulkan()->gpu[0].no_dmabuf = true;
	EXPECT_EQ(vulkan_import_dmabuf(uuid_1, vulkan_create_dmabuf(), SIZE, &in.memory, &in.fd),
		  -EOPNOTSUPP);
	EXPECT(strstr(log_last(), "VK_EXT_external_memory_dma_buf"));
	EXPECT_EQ(fake_vulkan()->imports, 0);
	import_works();
	EXPECT_EQ(fake_vulkan()->devices_made, 1);
}

FRESH(dmabuf_bounds, "-EBADF and -ERANGE for dma-bufs that cannot have the bytes, before Vulkan.")
{
	struct imported in;
	int fd = vulkan_create_dmabuf(), ends[2];

	EXPECT_EQ(pipe(ends), 0);
	EXPECT_EQ(vulkan_import_dmabuf(uuid_1, fd, SIZE + 1, &in.memory, &in.fd), -ERANGE);
	EXPECT_EQ(vulkan_import_dmabuf(uuid_1, fd, 0, &in.memory, &in.fd), -ERANGE);
	EXPECT_EQ(vulkan_import_dmabuf(uuid_1, -1, SIZE, &in.memory, &in.fd), -EBADF);
	EXPECT_EQ(vulkan_import_dmabuf(uuid_1, ends[0], SIZE, &in.memory, &in.fd), -EBADF);
	EXPECT(!is_loaded());
}

static const char *const dmabuf_calls[] = { "vkGetMemoryFdPropertiesKHR", "vkAllocateMemory",
					    "vkGetMemoryFdKHR" };

FRESH_STEPS(dmabuf_refused, 3, "A dma-buf that is refused leaves no descriptor behind.")
{
	struct fake_vulkan *fake = fake_vulkan();
	struct imported in;
	int fd = vulkan_create_dmabuf();
	int before;

	import_works();
	before = process_count_descriptors();
	fake->fail_name = dmabuf_calls[step_number() - 1];
	fake->fail_result = VK_ERROR_INVALID_EXTERNAL_HANDLE;
	fake->fail_call = 1;
	fake->fail_times = 2;
	EXPECT_EQ(vulkan_import_dmabuf(uuid_1, fd, SIZE, &in.memory, &in.fd), -EOPNOTSUPP);
	EXPECT_EQ(process_count_descriptors(), before);
	expect_clean(0);
	EXPECT_EQ(vulkan_import_dmabuf(uuid_1, fd, SIZE, &in.memory, &in.fd), 0);
	imported_drop(&in);
}

TEST(no_library, "-EOPNOTSUPP without Vulkan; the fake in the path is what makes the difference.")
{
	const char *path = getenv("LD_LIBRARY_PATH");
	char *saved = strdup(path ? path : "");
	char folder[] = "climport-test-XXXXXX", file[64];
	int status[3];

	if (getenv(STEP)) {
		int ret = try_import(vulkan_map_host(SIZE), SIZE);

		EXPECT_EQ(ret, step_number() == 2 ? 0 : -EOPNOTSUPP);
		EXPECT(step_number() == 2 || strstr(log_last(), "no Vulkan"));
		free(saved);
		return;
	}
	/* Where the machine has a libvulkan it finds no driver. */
	setenv("VK_ICD_FILENAMES", "/nonexistent", 1);
	unsetenv("LD_LIBRARY_PATH");
	status[0] = step_spawn("no_library", 1);
	setenv("LD_LIBRARY_PATH", saved, 1);
	status[1] = step_spawn("no_library", 2);
	/* A library that cannot be loaded is the same to dlopen() as none. */
	EXPECT(mkdtemp(folder));
	snprintf(file, sizeof(file), "%s/libvulkan.so.1", folder);
	close(open(file, O_CREAT | O_WRONLY, 0600));
	setenv("LD_LIBRARY_PATH", folder, 1);
	status[2] = step_spawn("no_library", 3);
	setenv("LD_LIBRARY_PATH", saved, 1);
	unlink(file);
	rmdir(folder);
	free(saved);
	EXPECT_EQ(status[0], 0);
	EXPECT_EQ(status[1], 0);
	EXPECT_EQ(status[2], 0);
}

FRESH(child, "A child of fork() gets -EOPNOTSUPP, and what it frees stays its parent's.")
{
	struct imported in, its;
	int status;
	pid_t pid;

	EXPECT_EQ(vulkan_import_on(uuid_1, vulkan_map_host(SIZE), SIZE, &in), 0);
	pid = fork();
	if (!pid) {
		bool bad = vulkan_import_on(uuid_1, vulkan_map_host(SIZE), SIZE, &its) !=
			   -EOPNOTSUPP;

		vulkan_free(in.memory);
		_exit(bad || fake_vulkan()->memories != 1);
	}
	EXPECT_EQ(waitpid(pid, &status, 0), pid);
	EXPECT_EQ(status, 0);
	imported_drop(&in);
	import_works();
}

FRESH(free_nothing, "NULL may be freed.")
{
	vulkan_free(NULL);
	EXPECT(!is_loaded());
}

enum { THREADS = 4, ROUNDS = 60 };

static atomic_int wrong;

static void *import_good(void *arg)
{
	char *p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)arg;
	for (int i = 0; i < ROUNDS; i++)
		wrong += try_import(p, SIZE) != 0;
	munmap(p, SIZE);
	return NULL;
}

static void *import_bad(void *arg)
{
	for (int i = 0; i < ROUNDS; i++)
		wrong += try_import(arg, SIZE) != -ENOMEM;
	return NULL;
}

static void vulkan_run_threads(void *(*even)(void *), void *(*odd)(void *), void *arg)
{
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		EXPECT_EQ(pthread_create(&threads[i], NULL, i % 2 ? odd : even, arg), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

FRESH(races, "No import fails for another's refusal, whenever that comes.")
{
	char *bad = vulkan_map_host(SIZE);
	int before;

	import_works();
	before = process_count_descriptors();
	fake_vulkan()->refused = bad;
	fake_vulkan()->slow_us = 100;
	vulkan_run_threads(import_good, import_bad, bad);
	EXPECT_EQ(wrong, 0);
	EXPECT_EQ(process_count_descriptors(), before);
	EXPECT(fake_vulkan()->devices <= 1);
	import_works();
	expect_clean(1);
}

static void *vulkan_import_once(void *arg)
{
	wrong += try_import(arg, SIZE) != (fake_vulkan()->refused == arg ? -ENOMEM : 0);
	return NULL;
}

FRESH(afresh_together, "Of new devices that threads make at the same time one is kept.")
{
	char *ranges[] = { vulkan_map_host(SIZE), vulkan_map_host(SIZE), vulkan_map_host(SIZE) };
	pthread_t threads[3];

	import_works();
	fake_vulkan()->refused = ranges[0];
	fake_vulkan()->slow_us = 50000;
	for (int i = 0; i < 3; i++) { /* the others are under way when the first is refused */
		EXPECT_EQ(pthread_create(&threads[i], NULL, vulkan_import_once, ranges[i]), 0);
		usleep(i ? 0 : 10000);
	}
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	EXPECT_EQ(wrong, 0);
	EXPECT(fake_vulkan()->devices <= 1); /* none, where the others were over before */
	import_works();
	expect_clean(1);
}

FRESH(first_together, "Of devices that threads make at the same time at first one is kept.")
{
	vulkan_run_threads(import_good, import_good, NULL);
	EXPECT_EQ(wrong, 0);
	EXPECT_EQ(fake_vulkan()->instances, 1);
	EXPECT_EQ(fake_vulkan()->devices, 1);
	expect_clean(1);
}

FRESH(driver_forks, "Vulkan's driver may fork in any of its calls.")
{
	alarm(60);
	fake_vulkan()->forks = true;
	import_works();
	fake_vulkan()->forks = false;
	expect_clean(1);
	alarm(0);
}

FRESH(parallel, "Imports do not wait for each other.")
{
	import_works();
	fake_vulkan()->slow_us = 2000;
	vulkan_run_threads(import_good, import_good, NULL);
	EXPECT_EQ(wrong, 0);
	EXPECT(fake_vulkan()->concurrent >= 2);
}
