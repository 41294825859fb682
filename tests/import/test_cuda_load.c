/* SPDX-License-Identifier: Apache-2.0 */
/* The search for libcuda.  A process loads libcuda once, so each test runs in a new process. */
#include "fixture.h"

#include "import/nvidia/cuda/cuda.h"
#include "util/log.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *hidden;	/* a function to leave out of libcuda */
static bool missing;		/* no libcuda is found */
static int searches;		/* for libcuda */
static void (*meanwhile)(void); /* called in dlopen() */
static const unsigned char uuid0[CUDA_UUID_SIZE] = {
	0xa0, 0xa0, 0xa0, 0xa0, 0xa0, 0xa0, 0xa0, 0xa0,
	0xa0, 0xa0, 0xa0, 0xa0, 0xa0, 0xa0, 0xa0, 0xa0,
};

/*
 * The program's copy of import/nvidia/cuda/cuda_driver.c calls these functions.  --wrap would also
 * wrap the calls of the sanitizers' libraries.
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
	if (meanwhile)
		meanwhile();
	return dlopen(missing ? "nowhere/libcuda.so.1" : file, flags);
}

static void *libcuda_handle(void)
{
	return dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
}

/* Finds a function of tests/fake/fake_cuda.h; the program is not linked to the fake. */
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

/* Allocates memory, as an application of CUDA would. */
static uintptr_t control_allocate(void)
{
	void (*reset)(int devices);
	uintptr_t (*alloc)(int device, size_t size);

	control_find("fake_cuda_reset", &reset);
	control_find("fake_cuda_alloc", &alloc);
	reset(1);
	return alloc(0, 1 << 20);
}

/* Runs a single test in a new process of the program. */
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

ALONE_TEST(questions, "A question loads no libcuda, and the answer is that no memory is CUDA's.")
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

ALONE_TEST(found_later, "A libcuda that the process loads later is found, and not initialized.")
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

ALONE_TEST(one_search, "The disk is not searched for a libcuda that nobody has loaded.")
{
	cuda_ask_times(100);
	EXPECT(dlopen("libresolv.so.2", RTLD_NOW));
	cuda_ask_times(100);
	EXPECT_EQ(searches, 0);
	EXPECT(dlopen("libcuda.so.1", RTLD_NOW));
	cuda_ask_times(100);
	EXPECT_EQ(searches, 1);
	EXPECT(count_calls("cuPointerGetAttributes") > 0);
}

ALONE_TEST(unusable, "An unusable libcuda is not searched for again.")
{
	hidden = "cuCtxPushCurrent_v2";
	EXPECT(dlopen("libcuda.so.1", RTLD_NOW));
	cuda_ask_times(100);
	EXPECT_EQ(searches, 1);
}

ALONE_TEST(found_in_child, "A child finds a libcuda that the child has loaded.")
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

ALONE_TEST(allocation, "An allocation loads and initializes libcuda.")
{
	struct cuda_memory m;

	EXPECT(!libcuda_handle());
	EXPECT_EQ(cuda_alloc(CUDA_DEVICE, uuid0, 1, 0, &m), -EOPNOTSUPP);
	fixture_expect_log("no virtual memory management"); /* without fake_cuda_reset() */
	EXPECT(libcuda_handle());
	EXPECT_EQ(count_calls("cuInit"), 1);
}

ALONE_TEST(
	no_library,
	"Without libcuda an allocation is -ENODEV, with the reason, and the disk is searched once.")
{
	struct cuda_memory m;

	missing = true;
	for (int i = 0; i < 10; i++) {
		EXPECT_EQ(cuda_alloc(CUDA_DEVICE, uuid0, 1, 0, &m), -ENODEV);
		fixture_expect_log("libcuda.so.1: cannot open");
	}
	EXPECT_EQ(searches, 1);
}

ALONE_TEST(shortage, "Without a descriptor left for libcuda, the next allocation tries again.")
{
	struct rlimit limit, none;
	struct cuda_memory m;

	EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = (struct rlimit){ 0, limit.rlim_max };
	EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
	EXPECT_EQ(cuda_alloc(CUDA_DEVICE, uuid0, 1, 0, &m), -ENODEV);
	EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
	EXPECT_EQ(cuda_alloc(CUDA_DEVICE, uuid0, 1, 0, &m), -EOPNOTSUPP);
	EXPECT_EQ(searches, 2);
}

/* glibc's cache of libraries may be unusable in this process. */
static int torn_child_check(void)
{
	const int before = searches;
	struct cuda_memory m;
	struct cuda_range range;

	meanwhile = NULL;
	if (cuda_alloc(CUDA_DEVICE, uuid0, 1, 0, &m) != -ENODEV ||
	    !strstr(log_last(), "loading libraries when this process was forked"))
		return 1;
	if (cuda_identify(1, &range) || range.kind != CUDA_NONE)
		return 2;
	return searches == before ? 0 : 3;
}

static void *torn_child_fork(void *status)
{
	pid_t child = fork();

	if (!child)
		_exit(torn_child_check());
	EXPECT_EQ(waitpid(child, status, 0), child);
	return NULL;
}

static int torn_child_status = -1;

static void torn_child_make(void)
{
	pthread_t thread;

	EXPECT_EQ(pthread_create(&thread, NULL, torn_child_fork, &torn_child_status), 0);
	EXPECT_EQ(pthread_join(thread, NULL), 0);
}

ALONE_TEST(torn_child,
	   "The child of a fork() while libcuda is being loaded loads nothing, and says so.")
{
	struct cuda_memory m;

	missing = true;
	meanwhile = torn_child_make;
	EXPECT_EQ(cuda_alloc(CUDA_DEVICE, uuid0, 1, 0, &m), -ENODEV);
	EXPECT_EQ(searches, 1);
	EXPECT_EQ(torn_child_status, 0);
}

ALONE_TEST(
	lacks_needed,
	"A libcuda without a necessary function counts as no libcuda, and the function is named.")
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

ALONE_TEST(lacks_dmabuf,
	   "Before CUDA 11.7 dma-bufs are -EOPNOTSUPP and the missing function is named.")
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
