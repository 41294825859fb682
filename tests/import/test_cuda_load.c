/* SPDX-License-Identifier: Apache-2.0 */
/* How libcuda is found.  It is loaded once a process: each test has one of its own. */
#include "fixture.h"

#include "import/nvidia/cuda/cuda.h"
#include "util/log.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *hidden; /* a function that libcuda then lacks */
static bool missing;	   /* libcuda itself */
static int searches;	   /* for it */
static const unsigned char uuid0[CUDA_UUID_SIZE] = {
	0xa0, 0xa0, 0xa0, 0xa0, 0xa0, 0xa0, 0xa0, 0xa0,
	0xa0, 0xa0, 0xa0, 0xa0, 0xa0, 0xa0, 0xa0, 0xa0,
};

/*
 * What this program's import/nvidia/cuda/cuda_driver.c calls.  Not --wrap, which would wrap the calls of the
 * sanitizers' libraries too.
 */
void *test_dlsym(void *library, const char *name);
void *test_dlopen(const char *file, int flags);

void *test_dlsym(void *library, const char *name)
{
	return hidden && !strcmp(name, hidden) ? NULL : dlsym(library, name);
}

void *test_dlopen(const char *file, int flags)
{
	searches++;
	return dlopen(missing ? "nowhere/libcuda.so.1" : file, flags);
}

static void *libcuda_handle(void)
{
	return dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
}

/* A function of tests/fake/fake_cuda.h, which this program is not linked to. */
static void control_find(const char *name, void *function)
{
	void *found = dlsym(dlopen("libcuda.so.1", RTLD_NOW), name);

	EXPECT(found);
	memcpy(function, &found, sizeof(found));
}

static int count_calls(const char *function)
{
	int (*calls)(const char *name);

	control_find("fake_cuda_calls", &calls);
	return calls(function);
}

/* As an application that uses CUDA. */
static uintptr_t control_allocate(void)
{
	void (*reset)(int devices);
	uintptr_t (*alloc)(int device, size_t size);

	control_find("fake_cuda_reset", &reset);
	control_find("fake_cuda_alloc", &alloc);
	reset(1);
	return alloc(0, 1 << 20);
}

/* Runs this program again, for one test. */
static void alone_run(const char *test)
{
	pid_t child = fork();
	int status;

	if (!child) {
		setenv("ALONE", "1", 1);
		dup2(STDERR_FILENO, STDOUT_FILENO);
		execl("/proc/self/exe", "test_cuda_load", test, (char *)NULL);
		_exit(126);
	}
	EXPECT_EQ(waitpid(child, &status, 0), child);
	EXPECT_EQ(status, 0);
}

#define ALONE_TEST(id, sentence)        \
	static void in_##id(void);      \
	TEST(id, sentence)              \
	{                               \
		if (getenv("ALONE"))    \
			in_##id();      \
		else                    \
			alone_run(#id); \
	}                               \
	static void in_##id(void)

ALONE_TEST(questions, "A question loads no libcuda: nothing is CUDA's.")
{
	struct cuda_export out;
	struct cuda_range range;
	int local;

	EXPECT_EQ(cuda_identify((uintptr_t)&local, &range), 0);
	EXPECT_EQ(range.kind, CUDA_NONE);
	EXPECT_EQ(range.device, -1);
	EXPECT_EQ(cuda_buffer_id((uintptr_t)&local), 0);
	EXPECT_EQ(fixture_export_dmabuf((uintptr_t)&local, 4, &out), -EFAULT);
	EXPECT_EQ(fixture_export_opaque((uintptr_t)&local, 4, uuid0, &out), -EOPNOTSUPP);
	EXPECT(!libcuda_handle());
}

ALONE_TEST(found_later, "libcuda that the process loads later is found then, and not initialized.")
{
	struct cuda_range range;

	EXPECT_EQ(cuda_identify(1, &range), 0);
	EXPECT(dlopen("libcuda.so.1", RTLD_NOW));
	EXPECT_EQ(cuda_identify(1, &range), 0);
	EXPECT_EQ(count_calls("cuPointerGetAttributes"), 1);
	EXPECT_EQ(count_calls("cuInit"), 0);
}

static void cuda_ask_times(int times)
{
	struct cuda_range range;

	for (int i = 0; i < times; i++) {
		EXPECT_EQ(cuda_identify(1, &range), 0);
		EXPECT_EQ(cuda_buffer_id(1), 0);
	}
}

ALONE_TEST(one_search,
	   "The disk is searched for libcuda once, and again when a library was loaded.")
{
	void *library;

	cuda_ask_times(100);
	EXPECT_EQ(searches, 1);
	library = dlopen("libvulkan.so.1", RTLD_NOW);
	EXPECT(library);
	cuda_ask_times(100);
	EXPECT_EQ(searches, 2);
	dlclose(library);
	cuda_ask_times(100);
	EXPECT_EQ(searches, 2);
	EXPECT(dlopen("libvulkan.so.1", RTLD_NOW));
	cuda_ask_times(100);
	EXPECT_EQ(searches, 3);
	EXPECT(dlopen("libcuda.so.1", RTLD_NOW));
	cuda_ask_times(100);
	EXPECT_EQ(searches, 4);
	EXPECT(count_calls("cuPointerGetAttributes") > 0);
}

ALONE_TEST(unusable, "A libcuda that is no use is not searched for again either.")
{
	hidden = "cuCtxPushCurrent_v2";
	EXPECT(dlopen("libcuda.so.1", RTLD_NOW));
	cuda_ask_times(100);
	EXPECT_EQ(searches, 1);
}

ALONE_TEST(found_in_child, "A child finds libcuda that it loads itself.")
{
	int status = -1;
	pid_t child;

	cuda_ask_times(1);
	child = fork();
	if (!child) {
		cuda_ask_times(1);
		if (!dlopen("libcuda.so.1", RTLD_NOW))
			_exit(1);
		cuda_ask_times(1);
		_exit(!count_calls("cuPointerGetAttributes"));
	}
	EXPECT_EQ(waitpid(child, &status, 0), child);
	EXPECT_EQ(status, 0);
}

ALONE_TEST(allocation, "Allocating loads libcuda and initializes it.")
{
	struct cuda_memory m;

	EXPECT(!libcuda_handle());
	EXPECT_EQ(cuda_alloc(CUDA_DEVICE, uuid0, 1, 0, &m), -EOPNOTSUPP);
	fixture_expect_log("no virtual memory management"); /* of a fake that was not reset */
	EXPECT(libcuda_handle());
	EXPECT_EQ(count_calls("cuInit"), 1);
}

ALONE_TEST(no_library, "-ENODEV, with the reason, where no libcuda is.")
{
	struct cuda_memory m;

	missing = true;
	EXPECT_EQ(cuda_alloc(CUDA_DEVICE, uuid0, 1, 0, &m), -ENODEV);
	fixture_expect_log("libcuda.so.1: cannot open");
}

ALONE_TEST(lacks_needed, "A libcuda that lacks what all need is no libcuda: named.")
{
	struct cuda_memory m;
	struct cuda_range range;

	hidden = "cuCtxPushCurrent_v2";
	EXPECT_EQ(cuda_alloc(CUDA_DEVICE, uuid0, 1, 0, &m), -ENODEV);
	fixture_expect_log("no cuCtxPushCurrent_v2");
	EXPECT_EQ(cuda_identify(1, &range), 0);
	EXPECT_EQ(range.kind, CUDA_NONE);
	EXPECT(!libcuda_handle());
}

ALONE_TEST(lacks_dmabuf, "Before CUDA 11.7 only dma-bufs are -EOPNOTSUPP, named.")
{
	uintptr_t p;
	struct cuda_export out;
	struct cuda_range range;

	hidden = "cuMemGetHandleForAddressRange";
	p = control_allocate();
	EXPECT_EQ(cuda_identify(p, &range), 0);
	EXPECT_EQ(range.kind, CUDA_DEVICE);
	EXPECT_EQ(fixture_export_dmabuf(p, 1 << 20, &out), -EOPNOTSUPP);
	fixture_expect_log("no cuMemGetHandleForAddressRange");
}

ALONE_TEST(lacks_vmm, "Before CUDA 11.0 only VMM memory is -EOPNOTSUPP, named.")
{
	uintptr_t p;
	struct cuda_export out;
	struct cuda_memory m;

	hidden = "cuMemRetainAllocationHandle";
	p = control_allocate();
	EXPECT_EQ(fixture_export_opaque(p, 1 << 20, uuid0, &out), -EOPNOTSUPP);
	fixture_expect_log("no cuMemRetainAllocationHandle");
	EXPECT_EQ(cuda_alloc(CUDA_DEVICE, uuid0, 1, 0, &m), -EOPNOTSUPP);
	fixture_expect_log("no cuMemRetainAllocationHandle");
	EXPECT_EQ(fixture_export_dmabuf(p, 1 << 20, &out), 0);
	close(out.fd);
}

ALONE_TEST(older_name, "A function is taken by its older name where the newer one is missing.")
{
	struct cuda_range range;
	uintptr_t p;

	hidden = "cuDeviceGetUuid_v2";
	p = control_allocate();
	EXPECT_EQ(cuda_identify(p, &range), 0);
	EXPECT_EQ(range.kind, CUDA_DEVICE);
	EXPECT(!memcmp(range.uuid, uuid0, sizeof(uuid0)));
	EXPECT_EQ(count_calls("cuDeviceGetUuid"), 1);
}
