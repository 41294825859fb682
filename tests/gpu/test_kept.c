/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the kernel module watches, registrations of host memory stay after an import.  A later import
 * of the address must never have the old memory.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu.h"

#define SIZE ((size_t)256 << 10)
#define ROUNDS 300
#define IMPORTS 3 /* of a range: the second registers the range, the third finds the registration */
#define THREADS 8
#define THREAD_ROUNDS 1000

/* What a program does to memory between two imports.  @spare: as much memory at another address. */
struct change {
	const char *name;
	bool (*make)(unsigned char *p, unsigned char *spare);
};

static void *kept_map(void *at)
{
	return mmap(at, SIZE, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED : 0), -1, 0);
}

static bool kept_unmap(unsigned char *p, unsigned char *spare)
{
	(void)spare;
	return !munmap(p, SIZE) && kept_map(p) == p;
}

static bool kept_map_over(unsigned char *p, unsigned char *spare)
{
	(void)spare;
	return kept_map(p) == p;
}

static bool kept_map_over_a_page(unsigned char *p, unsigned char *spare)
{
	void *page = p + SIZE / 2;

	(void)spare;
	return mmap(page, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		    0) == page;
}

static bool kept_discard(unsigned char *p, unsigned char *spare)
{
	(void)spare;
	return !madvise(p, SIZE, MADV_DONTNEED);
}

/* Other memory comes to the address. */
static bool kept_move_here(unsigned char *p, unsigned char *spare)
{
	return mremap(spare, SIZE, SIZE, MREMAP_MAYMOVE | MREMAP_FIXED, p) == p &&
	       kept_map(spare) == spare;
}

/* The memory goes elsewhere. */
static bool kept_move_away(unsigned char *p, unsigned char *spare)
{
	return mremap(p, SIZE, SIZE, MREMAP_MAYMOVE | MREMAP_FIXED, spare) == spare &&
	       kept_map(p) == p;
}

static bool kept_fork(unsigned char *p, unsigned char *spare)
{
	pid_t child = fork();

	(void)spare;
	if (!child) {
		memset(p, 0x11, SIZE);
		_exit(0);
	}
	return waitpid(child, NULL, 0) == child;
}

static const struct change changes[] = {
	{ "unmap", kept_unmap },
	{ "map_over", kept_map_over },
	{ "map_over_a_page", kept_map_over_a_page },
	{ "discard", kept_discard },
	{ "move_here", kept_move_here },
	{ "move_away", kept_move_away },
	{ "fork", kept_fork },
};

/* An import for a kernel, which has to see the data of now. */
static void kept_use(unsigned char *p, unsigned char *before)
{
	cl_mem mem;

	random_fill(p, SIZE);
	memcpy(before, p, SIZE);
	mem = gpu_import_host(&ours, p, SIZE);
	gpu_increment(&ours, ours.queue, mem, SIZE, AT_ONCE, NULL);
	EXPECT_EQ(clFinish(ours.queue), CL_SUCCESS);
	EXPECT(is_added(p, before, SIZE, 1));
	clReleaseMemObject(mem);
}

TEST_EACH(kept, struct change, changes,
	  "If a program changes memory between two imports, kernels see the new memory.")
{
	unsigned char *p = kept_map(NULL), *spare = kept_map(NULL), *before = malloc(SIZE);

	EXPECT(p != MAP_FAILED && spare != MAP_FAILED && before);
	gpu_session_open(&ours);
	for (int i = 0; i < ROUNDS; i++) {
		for (int j = 0; j < IMPORTS; j++)
			kept_use(p, before);
		EXPECT(row->make(p, spare));
	}
	gpu_session_close(&ours);
	munmap(p, SIZE);
	munmap(spare, SIZE);
	free(before);
}

TEST(kept_while_used, "If memory is unmapped during an import, the import keeps the old memory, "
		      "and the new memory is whole.")
{
	unsigned char *p = kept_map(NULL), *before = malloc(SIZE);

	if (!gpu.is_opaque)
		test_skip("this device takes host memory by the address");
	EXPECT(p != MAP_FAILED && before);
	gpu_session_open(&ours);
	for (int i = 0; i < 50; i++) {
		cl_mem mem;

		for (int j = 0; j < IMPORTS - 1; j++)
			kept_use(p, before);
		mem = gpu_import_host(&ours, p, SIZE);
		EXPECT(kept_map(p) == p);
		random_fill(p, SIZE);
		memcpy(before, p, SIZE);
		gpu_increment(&ours, ours.queue, mem, SIZE, AT_ONCE, NULL);
		EXPECT_EQ(clFinish(ours.queue), CL_SUCCESS);
		EXPECT(!memcmp(p, before, SIZE));
		clReleaseMemObject(mem);
		mem = gpu_import_host(&ours, p, SIZE);
		gpu_increment(&ours, ours.queue, mem, SIZE, AT_ONCE, NULL);
		EXPECT_EQ(clFinish(ours.queue), CL_SUCCESS);
		EXPECT(is_added(p, before, SIZE, 1));
		clReleaseMemObject(mem);
	}
	gpu_session_close(&ours);
	munmap(p, SIZE);
	free(before);
}

/* A thread that allocates, imports and frees; freed addresses are the other threads' next ones. */
struct allocator {
	pthread_t thread;
	cl_command_queue queue;
	unsigned int seed;
	int wrong;
	cl_int err;
};

static void *allocator_work(void *arg)
{
	struct allocator *a = arg;

	for (int i = 0; i < THREAD_ROUNDS && !a->wrong && !a->err; i++) {
		size_t size = (64 << 10) * (size_t)(1 + rand_r(&a->seed) % 4);
		unsigned char *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
					MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		unsigned char fill = (unsigned char)rand_r(&a->seed);
		cl_mem mem;

		if (p == MAP_FAILED) {
			a->err = CL_OUT_OF_HOST_MEMORY;
			break;
		}
		memset(p, fill, size);
		for (int j = 0; j < IMPORTS && !a->err; j++) {
			mem = gpu.import(ours.context, 0, NULL, p, size, &a->err);
			if (!mem)
				break;
			a->err = gpu_increment_quietly(&ours, a->queue, mem, size);
			clReleaseMemObject(mem);
		}
		for (size_t at = 0; !a->err && at < size; at++)
			a->wrong += p[at] != (unsigned char)(fill + IMPORTS);
		munmap(p, size);
	}
	return NULL;
}

TEST(kept_threads, "Eight threads can allocate, import and free memory at the same addresses.")
{
	static struct allocator allocators[THREADS];

	gpu_session_open(&ours);
	for (int i = 0; i < THREADS; i++) {
		allocators[i] = (struct allocator){ .seed = random_number() };
		allocators[i].queue = gpu_session_queue(&ours, 0);
	}
	for (int i = 0; i < THREADS; i++)
		EXPECT_EQ(
			pthread_create(&allocators[i].thread, NULL, allocator_work, &allocators[i]),
			0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(allocators[i].thread, NULL);
	for (int i = 0; i < THREADS; i++) {
		EXPECT_EQ(allocators[i].err, CL_SUCCESS);
		EXPECT_EQ(allocators[i].wrong, 0);
		clReleaseCommandQueue(allocators[i].queue);
	}
	gpu_session_close(&ours);
}
