/* SPDX-License-Identifier: Apache-2.0 */
/* Imports of dma-bufs by Vulkan, threads, and children of fork(). */
#include "vulkan_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static int vulkan_create_dmabuf(void)
{
	int fd = memfd_create("dma-buf", MFD_CLOEXEC);

	EXPECT_EQ(ftruncate(fd, SIZE), 0);
	return fd;
}

FRESH(dmabuf_import, "A dma-buf becomes a descriptor of the dma-buf's bytes, and the caller still "
		     "owns the dma-buf.")
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

FRESH(no_dmabuf, "If the device has no VK_EXT_external_memory_dma_buf, dma-bufs are -EOPNOTSUPP "
		 "and host memory works.")
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

FRESH(dmabuf_bounds, "A descriptor that is too small or no dma-buf is -ERANGE or -EBADF, without a "
		     "call of Vulkan.")
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

static const struct dmabuf_function {
	const char *name;
} dmabuf_functions[] = {
	{ "vkGetMemoryFdPropertiesKHR" },
	{ "vkAllocateMemory" },
	{ "vkGetMemoryFdKHR" },
};

FRESH_EACH(dmabuf_refused, struct dmabuf_function, dmabuf_functions,
	   "A refused dma-buf leaves no descriptor behind.")
{
	struct fake_vulkan *fake = fake_vulkan();
	struct imported in;
	int fd = vulkan_create_dmabuf();
	int before;

	import_works();
	before = process_count_descriptors();
	fake->fail_name = row->name;
	fake->fail_result = VK_ERROR_INVALID_EXTERNAL_HANDLE;
	fake->fail_call = 1;
	fake->fail_times = 2;
	EXPECT_EQ(vulkan_import_dmabuf(uuid_1, fd, SIZE, &in.memory, &in.fd), -EOPNOTSUPP);
	EXPECT_EQ(process_count_descriptors(), before);
	expect_clean(0);
	EXPECT_EQ(vulkan_import_dmabuf(uuid_1, fd, SIZE, &in.memory, &in.fd), 0);
	imported_drop(&in);
}

TEST(no_library,
     "Without Vulkan an import is -EOPNOTSUPP; with the fake in the path an import works.")
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
	/* If the machine has a libvulkan, the libvulkan finds no driver. */
	setenv("VK_ICD_FILENAMES", "/nonexistent", 1);
	unsetenv("LD_LIBRARY_PATH");
	status[0] = step_spawn("no_library", 1);
	setenv("LD_LIBRARY_PATH", saved, 1);
	status[1] = step_spawn("no_library", 2);
	/* To dlopen() an unloadable library is a missing library. */
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

FRESH(child,
      "A child of fork() gets -EOPNOTSUPP, and a free in the child keeps the parent's import.")
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

FRESH(races, "No import fails because of another import's refusal, whenever the refusal comes.")
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

FRESH(afresh_together, "If threads make new devices at the same time, a single device is kept.")
{
	char *ranges[] = { vulkan_map_host(SIZE), vulkan_map_host(SIZE), vulkan_map_host(SIZE) };
	pthread_t threads[3];

	import_works();
	fake_vulkan()->refused = ranges[0];
	/* The second and third import run when the first is refused. */
	fake_vulkan()->concurrent = 0;
	fake_vulkan()->meeting = 3;
	for (int i = 0; i < 3; i++)
		EXPECT_EQ(pthread_create(&threads[i], NULL, vulkan_import_once, ranges[i]), 0);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	EXPECT_EQ(wrong, 0);
	EXPECT(fake_vulkan()->devices <= 1); /* 0, if the other imports ended before */
	import_works();
	expect_clean(1);
}

FRESH(first_together,
      "If threads make the first devices at the same time, a single device is kept.")
{
	vulkan_run_threads(import_good, import_good, NULL);
	EXPECT_EQ(wrong, 0);
	EXPECT_EQ(fake_vulkan()->instances, 1);
	EXPECT_EQ(fake_vulkan()->devices, 1);
	expect_clean(1);
}

FRESH(driver_forks, "Vulkan's driver may fork in any call.")
{
	alarm(TEST_HANG_S);
	fake_vulkan()->forks = true;
	import_works();
	fake_vulkan()->forks = false;
	expect_clean(1);
	alarm(0);
}

FRESH(parallel, "Imports do not wait for each other.")
{
	import_works();
	fake_vulkan()->concurrent = 0;
	fake_vulkan()->meeting = 2;
	vulkan_run_threads(import_good, import_good, NULL);
	EXPECT_EQ(wrong, 0);
	EXPECT(fake_vulkan()->concurrent >= 2);
}
