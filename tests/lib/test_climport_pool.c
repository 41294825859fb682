/* SPDX-License-Identifier: Apache-2.0 */
/* climport_pool_*(), and the allocators of PyTorch and CuPy. */
#include "fixture.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#define KB ((size_t)1 << 10)
#define MB ((size_t)1 << 20)
#define OUT_OF_MEMORY 2
#define LOG_SIZE 1024
#define BLOCKING CLIMPORT_STREAMS_BLOCKING
#define ALL CLIMPORT_STREAMS_ALL

/* Functions of the fake libcuda. */
int cuStreamCreate(void **stream, unsigned int flags);
int cuStreamDestroy_v2(void *stream);

static struct climport_pool *pool;
static uintptr_t pool_filled; /* pool_fill_device() */

static void pool_begin(uint64_t flags)
{
	fake_cuda_set_busy(false);
	EXPECT_EQ(climport_pool_create(0, flags, &pool), 0);
}

static void pool_end(void)
{
	climport_pool_destroy(pool);
	fake_cuda_set_busy(false);
	if (pool_filled)
		fake_cuda_free(pool_filled);
	pool_filled = 0;
}

#define POOL_TEST(id, sentence) POOL_TEST_OF(0, id, sentence)

/* The fake's cuMemAlloc() has a limit. */
#define SHORT_TEST(id, sentence) POOL_TEST_OF(CLIMPORT_POOL_IPC, id, sentence)

#define POOL_TEST_OF(flags, id, sentence) \
	static void pooled_##id(void);    \
	LIB_TEST(id, sentence)            \
	{                                 \
		pool_begin(flags);        \
		pooled_##id();            \
		pool_end();               \
	}                                 \
	static void pooled_##id(void)

static void *pool_get(size_t size, void *stream)
{
	void *address = NULL;

	EXPECT_EQ(climport_pool_alloc(pool, size, stream, &address, 1), 1);
	EXPECT_EQ((uintptr_t)address % 512, 0);
	return address;
}

static void pool_put(void *address, void *stream)
{
	EXPECT_EQ(climport_pool_free(pool, &address, 1, stream), 0);
}

static struct climport_pool_info pool_info(void)
{
	struct climport_pool_info info;

	EXPECT_EQ(climport_pool_get_info(pool, &info, sizeof(info)), 0);
	return info;
}

/* All of the device's memory but for @left bytes, by other programs. */
static void pool_fill_device(size_t left)
{
	pool_filled = fake_cuda_alloc(0, ((size_t)1 << 30) - left - pool_info().bytes);
	EXPECT(pool_filled != 0);
}

static const struct part_row {
	const char *name;
	size_t size, part, slab;
} part_sizes[] = {
	{ "0", 0, 512, 2 * MB },
	{ "1", 1, 512, 2 * MB },
	{ "512", 512, 512, 2 * MB },
	{ "513", 513, 1024, 2 * MB },
	{ "1mb", MB, MB, 2 * MB },
	{ "1mb_1", MB + 1, 2 * MB, 2 * MB },
	{ "2mb_1", 2 * MB + 1, 4 * MB, 4 * MB },
};

TEST_EACH(pool_sizes, struct part_row, part_sizes,
	  "A part has a power of two of bytes up to 1 MiB, else a multiple of 2 MiB.")
{
	fixture_begin();
	pool_begin(0);
	pool_get(row->size, NULL);
	EXPECT_EQ(pool_info().used, row->part);
	EXPECT_EQ(pool_info().bytes, row->slab);
	pool_end();
	fixture_end();
}

POOL_TEST(pool_disjoint, "Allocations of a slab do not overlap, and fill the slab.")
{
	void *parts[2048];
	unsigned char used[2048] = { 0 };
	uintptr_t first = UINTPTR_MAX;

	for (size_t i = 0; i < 2048; i++) {
		parts[i] = pool_get(KB, NULL);
		first = (uintptr_t)parts[i] < first ? (uintptr_t)parts[i] : first;
	}
	for (size_t i = 0; i < 2048; i++)
		used[((uintptr_t)parts[i] - first) / KB]++;
	for (size_t i = 0; i < 2048; i++)
		EXPECT_EQ(used[i], 1);
	EXPECT_EQ(pool_info().bytes, 2 * MB);
}

POOL_TEST(pool_same_stream, "The next allocation for the same stream reuses memory at once.")
{
	void *stream = NULL, *address;

	EXPECT_EQ(cuStreamCreate(&stream, 1), 0);
	fake_cuda_set_busy(true);
	address = pool_get(4 * MB, stream);
	pool_put(address, stream);
	EXPECT(pool_get(4 * MB, stream) == address);
	EXPECT_EQ(fake_cuda_calls("cuEventRecord") + fake_cuda_calls("cuCtxSynchronize"), 0);
	EXPECT_EQ(cuStreamDestroy_v2(stream), 0);
}

POOL_TEST(pool_other_stream, "Another stream does not get memory of a stream that is busy.")
{
	void *stream = NULL, *address;

	EXPECT_EQ(cuStreamCreate(&stream, 0), 0);
	fake_cuda_set_busy(true);
	address = pool_get(4 * MB, stream);
	pool_put(address, stream);
	EXPECT(pool_get(4 * MB, NULL) != address);
	EXPECT(pool_get(4 * MB, BLOCKING) != address);
	EXPECT_EQ(cuStreamDestroy_v2(stream), 0);
}

POOL_TEST(pool_dead_stream, "A stream at the handle of a destroyed stream does not get its memory.")
{
	void *first = NULL, *second = NULL, *address;

	EXPECT_EQ(cuStreamCreate(&first, 0), 0);
	address = pool_get(4 * MB, first);
	pool_put(address, first);
	EXPECT_EQ(cuStreamDestroy_v2(first), 0);
	EXPECT_EQ(cuStreamCreate(&second, 0), 0);
	fake_cuda_set_busy(true);
	EXPECT(pool_get(4 * MB, second) != address);
	EXPECT_EQ(cuStreamDestroy_v2(second), 0);
}

POOL_TEST(pool_no_stream_id, "A stream without a number is as all streams.")
{
	void *stream = NULL, *address = pool_get(4 * MB, NULL);

	EXPECT_EQ(cuStreamCreate(&stream, 0), 0);
	fake_cuda_fail("cuStreamGetId", 1, 801);
	pool_put(address, stream);
	EXPECT(pool_get(4 * MB, stream) == address);
	EXPECT_EQ(fake_cuda_calls("cuCtxSynchronize"), 1);
	EXPECT_EQ(cuStreamDestroy_v2(stream), 0);
}

POOL_TEST(pool_capture, "A stream that captures a graph gets no memory, and other streams do.")
{
	void *capturing = NULL, *other = NULL, *address;

	EXPECT_EQ(cuStreamCreate(&capturing, 1), 0);
	EXPECT_EQ(cuStreamCreate(&other, 1), 0);
	address = pool_get(4 * MB, capturing);
	pool_put(address, capturing);
	fake_cuda_capture_begin(capturing);
	EXPECT_EQ(climport_pool_alloc(pool, 4 * MB, capturing, &address, 1), -EBUSY);
	EXPECT(strstr(climport_last_error(), "captures a CUDA graph"));
	pool_get(4 * MB, other);
	EXPECT(fake_cuda_capture_end(capturing));
	EXPECT(pool_get(4 * MB, capturing) == address);
	EXPECT_EQ(cuStreamDestroy_v2(capturing), 0);
	EXPECT_EQ(cuStreamDestroy_v2(other), 0);
}

POOL_TEST(pool_busy, "Memory of blocking streams is reused when the device has reached an event.")
{
	void *address = pool_get(4 * MB, BLOCKING);

	fake_cuda_set_busy(true);
	pool_put(address, BLOCKING);
	EXPECT(pool_get(4 * MB, BLOCKING) != address);
	fake_cuda_set_busy(false);
	EXPECT(pool_get(4 * MB, BLOCKING) == address);
}

POOL_TEST(pool_later_free, "Memory that is freed after an event waits for another event.")
{
	void *first = pool_get(4 * MB, BLOCKING), *second = pool_get(4 * MB, BLOCKING);

	fake_cuda_set_busy(true);
	pool_put(first, BLOCKING);
	EXPECT(pool_get(4 * MB, BLOCKING) != first);
	pool_put(second, BLOCKING);
	EXPECT(pool_get(4 * MB, BLOCKING) != second);
	EXPECT_EQ(fake_cuda_calls("cuEventRecord"), 2);
}

POOL_TEST(pool_all_streams, "Memory of all streams is reused after the whole context's work.")
{
	void *address = pool_get(4 * MB, ALL);

	fake_cuda_set_busy(true);
	pool_put(address, ALL);
	EXPECT(pool_get(4 * MB, BLOCKING) == address);
	EXPECT_EQ(fake_cuda_calls("cuCtxSynchronize"), 1);
}

POOL_TEST(pool_few_events, "A thousand small allocations and frees take an event at most.")
{
	for (int i = 0; i < 1000; i++)
		pool_put(pool_get(KB, BLOCKING), BLOCKING);
	EXPECT(fake_cuda_calls("cuEventRecord") <= 1);
	EXPECT_EQ(pool_info().bytes, 2 * MB);
}

POOL_TEST(pool_many, "Allocations in one call are as many as there are, and one at least.")
{
	void *addresses[8];

	EXPECT_EQ(climport_pool_alloc(pool, MB, BLOCKING, addresses, 8), 2);
	EXPECT_EQ(climport_pool_free(pool, addresses, 2, BLOCKING), 0);
	EXPECT_EQ(climport_pool_alloc(pool, 512 * KB, BLOCKING, addresses, 3), 3);
	EXPECT_EQ(climport_pool_alloc(pool, 512 * KB, BLOCKING, addresses, 3), 1);
	EXPECT_EQ(climport_pool_alloc(pool, 1, BLOCKING, addresses, 0), -EINVAL);
}

SHORT_TEST(pool_shortage_small, "Out of memory, parts that the device is about to leave are used.")
{
	void *parts[4];

	EXPECT_EQ(climport_pool_alloc(pool, 512 * KB, BLOCKING, parts, 4), 4);
	pool_fill_device(0);
	fake_cuda_set_busy(true);
	EXPECT_EQ(climport_pool_free(pool, parts, 3, BLOCKING), 0);
	pool_get(512 * KB, BLOCKING);
	EXPECT_EQ(pool_info().bytes, 2 * MB);
}

SHORT_TEST(pool_shortage_other, "Out of memory, another stream's memory is used.")
{
	void *stream = NULL, *address;

	EXPECT_EQ(cuStreamCreate(&stream, 0), 0);
	address = pool_get(4 * MB, stream);
	pool_fill_device(0);
	fake_cuda_set_busy(true);
	pool_put(address, stream);
	EXPECT(pool_get(4 * MB, NULL) == address);
	EXPECT_EQ(fake_cuda_calls("cuCtxSynchronize"), 1);
	EXPECT_EQ(cuStreamDestroy_v2(stream), 0);
}

SHORT_TEST(pool_shortage_unused, "Out of memory, unused slabs go back, and then memory is left.")
{
	pool_fill_device(100 * MB);
	pool_put(pool_get(60 * MB, BLOCKING), BLOCKING);
	pool_get(80 * MB, BLOCKING);
	EXPECT_EQ(pool_info().bytes, 80 * MB);
}

SHORT_TEST(pool_exhausted, "Without memory an allocation is -ENOMEM, and the pool works on.")
{
	void *address, *held = pool_get(90 * MB, NULL);

	pool_fill_device(0);
	EXPECT_EQ(climport_pool_alloc(pool, 2 * MB, NULL, &address, 1), -ENOMEM);
	EXPECT(strstr(climport_last_error(), "bytes"));
	EXPECT_EQ(climport_pool_alloc(pool, SIZE_MAX, NULL, &address, 1), -ENOMEM);
	pool_put(held, NULL);
	EXPECT(pool_get(90 * MB, NULL) == held);
}

POOL_TEST(pool_kept, "Unused slabs beyond the limit go back with the next slab.")
{
	void *parts[8];

	climport_pool_set_limit(pool, 64 * MB);
	for (int i = 0; i < 8; i++)
		parts[i] = pool_get(32 * MB, BLOCKING);
	EXPECT_EQ(climport_pool_free(pool, parts, 8, BLOCKING), 0);
	pool_get(6 * MB, BLOCKING);
	EXPECT_EQ(pool_info().bytes, (64 + 6) * MB);
}

POOL_TEST(pool_kept_all, "Without a limit no slab goes back.")
{
	void *parts[8];

	climport_pool_set_limit(pool, UINT64_MAX);
	for (int i = 0; i < 8; i++)
		parts[i] = pool_get(64 * MB, BLOCKING);
	EXPECT_EQ(climport_pool_free(pool, parts, 8, BLOCKING), 0);
	pool_get(6 * MB, BLOCKING);
	EXPECT_EQ(pool_info().bytes, (512 + 6) * MB);
}

/* Another thread that calls the driver with two parts of the pool's, which nobody uses, in its hands. */
struct pool_holder {
	sem_t holds;
	atomic_bool has_allocated; /* the test */
};

static bool pool_has_allocated_or_waits(void *holder)
{
	return atomic_load(&((struct pool_holder *)holder)->has_allocated) ||
	       process_is_quiet(NULL);
}

/* Holds until the test's allocation ends, or waits for this thread. */
static void pool_hold(void *arg)
{
	struct pool_holder *holder = arg;

	sem_post(&holder->holds);
	EXPECT(process_settles(pool_has_allocated_or_waits, holder));
}

static void *pool_trim_thread(void *arg)
{
	climport_pool_trim(pool, 0);
	return arg;
}

static void *pool_alloc_thread(void *arg)
{
	pool_get(4 * MB, BLOCKING);
	return arg;
}

static const struct held_row {
	const char *name, *function;
	void *(*thread)(void *arg);
} held_parts[] = {
	{ "drained", "cuCtxSynchronize", pool_trim_thread },
	{ "going", "cuMemFree_v2", pool_trim_thread },
	{ "batched", "cuEventRecord", pool_alloc_thread },
};

TEST_EACH(pool_shortage_held, struct held_row, held_parts,
	  "Memory that another thread is just giving back is not out of memory.")
{
	struct pool_holder holder = { .has_allocated = false };
	void *parts[2];
	pthread_t thread;

	fixture_begin();
	pool_begin(CLIMPORT_POOL_IPC);
	sem_init(&holder.holds, 0, 0);
	parts[0] = pool_get(4 * MB, BLOCKING);
	parts[1] = pool_get(4 * MB, BLOCKING);
	pool_fill_device(0);
	EXPECT_EQ(climport_pool_free(pool, parts, 2, BLOCKING), 0);
	fake_cuda_at(row->function, 1, pool_hold, &holder);
	EXPECT_EQ(pthread_create(&thread, NULL, row->thread, NULL), 0);
	sem_wait(&holder.holds);
	pool_get(4 * MB, BLOCKING);
	atomic_store(&holder.has_allocated, true);
	EXPECT_EQ(pthread_join(thread, NULL), 0);
	pool_end();
	sem_destroy(&holder.holds);
	fixture_end();
}

static void *pool_exhaust_thread(void *arg)
{
	void *address;

	EXPECT_EQ(climport_pool_alloc(pool, 2 * MB, BLOCKING, &address, 1), -ENOMEM);
	return arg;
}

static void pool_alloc_in_child(void *arg)
{
	climport_pool_alloc(pool, 2 * MB, BLOCKING, arg, 1);
}

SHORT_TEST(pool_fork, "An allocation in a child does not wait for a thread of the parent's.")
{
	struct pool_holder holder = { .has_allocated = false };
	char text[LOG_SIZE];
	pthread_t thread;
	void *address;

	sem_init(&holder.holds, 0, 0);
	pool_fill_device(0);
	fake_cuda_at("cuCtxSynchronize", 1, pool_hold, &holder);
	EXPECT_EQ(pthread_create(&thread, NULL, pool_exhaust_thread, NULL), 0);
	sem_wait(&holder.holds);
	EXPECT_EQ(fixture_run_child(pool_alloc_in_child, &address, text, sizeof(text)), 0);
	atomic_store(&holder.has_allocated, true);
	EXPECT_EQ(pthread_join(thread, NULL), 0);
	sem_destroy(&holder.holds);
}

static const struct ahead_row {
	const char *name;
	void *stream;
} ahead_streams[] = { { "blocking", BLOCKING }, { "all", ALL } };

TEST_EACH(pool_ahead, struct ahead_row, ahead_streams,
	  "A program that is ahead of the device waits, rather than take all memory.")
{
	fixture_begin();
	pool_begin(0);
	climport_pool_set_limit(pool, 64 * MB);
	for (int i = 0; i < 100; i++) {
		fake_cuda_set_busy(true);
		pool_put(pool_get(32 * MB, row->stream), row->stream);
	}
	EXPECT(pool_info().bytes <= 128 * MB);
	pool_end();
	fixture_end();
}

POOL_TEST(pool_trim, "A trim waits for the device, and leaves what is in use.")
{
	void *part = pool_get(32 * MB, BLOCKING);

	pool_get(MB, NULL);
	fake_cuda_set_busy(true);
	pool_put(part, BLOCKING);
	climport_pool_trim(pool, 0);
	EXPECT_EQ(pool_info().bytes, 2 * MB);
	EXPECT_EQ(fake_cuda_calls("cuCtxSynchronize"), 1);
}

POOL_TEST(pool_wrong_free, "A free of other memory, or a second free, is -EINVAL.")
{
	void *addresses[3] = { pool_get(KB, NULL), pool_get(4 * MB, NULL), &pool };
	void *inside = (char *)addresses[0] + 512;

	EXPECT_EQ(climport_pool_free(pool, &inside, 1, NULL), -EINVAL);
	EXPECT_EQ(climport_pool_free(pool, addresses, 3, NULL), -EINVAL);
	EXPECT_EQ(pool_info().used, 0);
	EXPECT_EQ(climport_pool_free(pool, addresses, 1, NULL), -EINVAL);
}

LIB_TEST(pool_wrong, "Unknown flags, sizes and devices are refused.")
{
	struct climport_pool_info info;

	EXPECT_EQ(climport_pool_create(0, 1, &pool), -EINVAL);
	EXPECT_EQ(climport_pool_create(0, CLIMPORT_POOL_IPC | CLIMPORT_POOL_HOST, &pool), -EINVAL);
	EXPECT_EQ(climport_pool_create(7, 0, &pool), -ENODEV);
	pool_begin(0);
	EXPECT_EQ(climport_pool_get_info(pool, &info, sizeof(info) - 1), -EINVAL);
	pool_end();
}

LIB_TEST(pool_ipc, "A pool for IPC has memory of cuMemAlloc(), and other pools of cuMemCreate().")
{
	pool_begin(CLIMPORT_POOL_IPC);
	pool_get(KB, NULL);
	pool_get(4 * MB, NULL);
	EXPECT_EQ(fake_cuda_calls("cuMemAlloc_v2"), 2);
	EXPECT_EQ(fake_cuda_calls("cuMemCreate"), 0);
	pool_end();
	EXPECT_EQ(fake_cuda_calls("cuMemFree_v2"), 2);
	pool_begin(0);
	pool_get(KB, NULL);
	EXPECT_EQ(fake_cuda_calls("cuMemCreate"), 1);
	pool_end();
}

POOL_TEST(pool_no_event, "Without an event memory waits, and is not lost.")
{
	void *address = pool_get(4 * MB, BLOCKING);

	pool_put(address, BLOCKING);
	fake_cuda_fail("cuEventRecord", 1, OUT_OF_MEMORY);
	EXPECT(pool_get(4 * MB, BLOCKING) != address);
	EXPECT(pool_get(4 * MB, BLOCKING) == address);
}

/* A run of a pool, in which the driver's @nth call fails. */
static void pool_run_with_fault(uint64_t flags, int nth)
{
	void *address;

	fake_cuda_fail(NULL, nth, OUT_OF_MEMORY);
	if (climport_pool_create(0, flags, &pool))
		return;
	for (int i = 0; i < 3; i++) {
		if (climport_pool_alloc(pool, 4 * MB, BLOCKING, &address, 1) == 1)
			pool_put(address, BLOCKING);
		if (climport_pool_alloc(pool, 300 * MB, ALL, &address, 1) == 1)
			pool_put(address, ALL);
	}
	climport_pool_destroy(pool);
}

static const struct memory_row {
	const char *name;
	uint64_t flags;
} memories[] = { { "vmm", 0 }, { "ipc", CLIMPORT_POOL_IPC }, { "host", CLIMPORT_POOL_HOST } };

TEST_EACH(pool_faults, struct memory_row, memories,
	  "A fault of any of the driver's calls leaks nothing.")
{
	struct fake_cuda_held before;
	int nth = 0;

	fixture_begin();
	before = fake_cuda_held();
	do {
		fake_cuda_reset(2);
		pool_run_with_fault(row->flags, ++nth);
		EXPECT(fake_cuda_holds(&before));
	} while (fake_cuda_has_failed());
	EXPECT(nth > 20);
	fixture_end();
}

static void *pool_thread(void *stream)
{
	unsigned int seed = (unsigned int)(uintptr_t)&seed / 64;
	void *held[16] = { NULL };

	for (int i = 0; i < 2000; i++) {
		void **place = &held[rand_r(&seed) % 16];

		if (*place) {
			memset(fake_cuda_memory((uintptr_t)*place), i, 512);
			pool_put(*place, stream);
			*place = NULL;
		} else {
			*place = pool_get((size_t)rand_r(&seed) % (4 * MB), stream);
		}
	}
	for (int i = 0; i < 16; i++)
		if (held[i])
			pool_put(held[i], stream);
	return NULL;
}

POOL_TEST(pool_threads, "Threads allocate and free at once.")
{
	void *streams[] = { NULL, BLOCKING, ALL, BLOCKING };
	pthread_t threads[4];

	climport_pool_set_limit(pool, 32 * MB);
	for (int i = 0; i < 4; i++)
		EXPECT_EQ(pthread_create(&threads[i], NULL, pool_thread, streams[i]), 0);
	for (int i = 0; i < 4; i++)
		EXPECT_EQ(pthread_join(threads[i], NULL), 0);
	EXPECT_EQ(pool_info().used, 0);
}

LIB_TEST(pool_host, "A pool of the host has registered memory of cuMemHostAlloc().")
{
	struct climport_registration registration;
	char *address;

	pool_begin(CLIMPORT_POOL_HOST);
	address = pool_get(3 * MB, BLOCKING);
	memset(address, 1, 3 * MB);
	EXPECT_EQ(fake_cuda_calls("cuMemHostAlloc"), 1);
	EXPECT_EQ(climport_register(address + MB, 1, 0, &registration, sizeof(registration)), 0);
	EXPECT(registration.base == address && registration.length == 4 * MB);
	climport_unregister(&registration);
	pool_end();
	EXPECT_EQ(fake_cuda_calls("cuMemFreeHost"), 1);
}

LIB_TEST(pool_close, "Memory of the host stays until the last free of a closed pool.")
{
	char *addresses[3];

	pool_begin(CLIMPORT_POOL_HOST);
	for (int i = 0; i < 3; i++)
		addresses[i] = pool_get(i == 2 ? 3 * MB : KB, BLOCKING);
	climport_pool_close(pool);
	EXPECT_EQ(fake_cuda_held().primaries, 0);
	for (int i = 0; i < 3; i++) {
		EXPECT_EQ(fake_cuda_calls("cuMemFreeHost"), 0);
		memset(addresses[i], 1, KB);
		pool_put(addresses[i], BLOCKING);
	}
	EXPECT_EQ(fake_cuda_calls("cuMemFreeHost"), 2);
}

LIB_TEST(pool_close_unused, "A closed pool without live memory is gone.")
{
	static const uint64_t flags[] = { 0, CLIMPORT_POOL_IPC, CLIMPORT_POOL_HOST };

	for (int i = 0; i < 3; i++) {
		pool_begin(flags[i]);
		pool_put(pool_get(KB, BLOCKING), BLOCKING);
		climport_pool_close(pool);
	}
}

LIB_TEST(pool_close_context, "Memory that went with its context is not freed again.")
{
	char *address;

	pool_begin(CLIMPORT_POOL_HOST);
	address = pool_get(2 * MB, BLOCKING);
	climport_pool_close(pool);
	fake_cuda_free((uintptr_t)address);
	pool_put(address, BLOCKING);
	EXPECT_EQ(fake_cuda_calls("cuMemFreeHost"), 0);
}

/* The pools of PyTorch's and CuPy's functions live as long as the process: a device for each test. */
#define ALLOCATOR_TEST(id, sentence)                                \
	static void allocated_##id(void);                           \
	TEST(id, sentence)                                          \
	{                                                           \
		fake_cuda_reset(4);                                 \
		fake_cuda_set_busy(false);                          \
		allocated_##id();                                   \
		climport_drop_all();                                \
		EXPECT_EQ(fixture_read_stats().bytes_allocated, 0); \
	}                                                           \
	static void allocated_##id(void)

ALLOCATOR_TEST(torch, "PyTorch's allocator reuses memory of the same stream at once.")
{
	void *stream = NULL, *address, *other;

	EXPECT_EQ(cuStreamCreate(&stream, 0), 0);
	EXPECT(climport_torch_alloc(0, 1, NULL) == NULL);
	address = climport_torch_alloc(4 << 20, 1, stream);
	EXPECT(address != NULL);
	fake_cuda_set_busy(true);
	climport_torch_free(address, 4 << 20, 1, stream);
	other = climport_torch_alloc(4 << 20, 1, NULL);
	EXPECT(other != address && other != NULL);
	EXPECT(climport_torch_alloc(4 << 20, 1, stream) == address);
	EXPECT_EQ(fake_cuda_calls("cuCtxSynchronize") + fake_cuda_calls("cuEventRecord"), 0);
	climport_torch_free(NULL, 0, 1, NULL);
	climport_torch_free(address, 4 << 20, 1, stream);
	climport_torch_free(other, 4 << 20, 1, NULL);
	EXPECT_EQ(cuStreamDestroy_v2(stream), 0);
}

ALLOCATOR_TEST(torch_capture, "A capture in which PyTorch asks for memory fails, and gets none.")
{
	void *stream = NULL, *address;

	EXPECT_EQ(cuStreamCreate(&stream, 1), 0);
	fake_cuda_capture_begin(stream);
	EXPECT(climport_torch_alloc(4 << 20, 1, stream) == NULL);
	EXPECT(strstr(climport_last_error(), "captures a CUDA graph"));
	EXPECT(!fake_cuda_capture_end(stream));
	address = climport_torch_alloc(4 << 20, 1, stream);
	EXPECT(address != NULL);
	climport_torch_free(address, 4 << 20, 1, stream);
	EXPECT_EQ(cuStreamDestroy_v2(stream), 0);
}

ALLOCATOR_TEST(torch_record_stream, "PyTorch's memory of several streams is reused after all work.")
{
	void *address = climport_torch_alloc(4 << 20, 2, NULL), *stream = &stream;

	climport_torch_record_stream(address, stream);
	climport_torch_free(address, 4 << 20, 2, NULL);
	EXPECT(climport_torch_alloc(4 << 20, 2, NULL) == address);
	EXPECT_EQ(fake_cuda_calls("cuCtxSynchronize"), 1);
	climport_torch_free(address, 4 << 20, 2, NULL);
	EXPECT(climport_torch_alloc(4 << 20, 2, NULL) == address);
	EXPECT_EQ(fake_cuda_calls("cuCtxSynchronize"), 1);
	climport_torch_free(address, 4 << 20, 2, NULL);
}

ALLOCATOR_TEST(cupy, "CuPy's allocator reuses memory after all work of the device.")
{
	void *addresses[2];

	EXPECT(climport_cupy_alloc(NULL, 0, 3) == NULL);
	for (int i = 0; i < 2; i++)
		addresses[i] = climport_cupy_alloc(NULL, MB, 3);
	EXPECT(addresses[0] && addresses[1]);
	climport_cupy_free(NULL, addresses[0], 3);
	EXPECT(climport_cupy_alloc(NULL, MB, 3) == addresses[0]);
	EXPECT_EQ(fake_cuda_calls("cuCtxSynchronize"), 1);
	EXPECT_EQ(fake_cuda_calls("cuMemCreate"), 1);
	climport_cupy_free(NULL, addresses[0], 3);
	climport_cupy_free(NULL, addresses[1], 3);
	climport_cupy_free(NULL, NULL, 3);
}

ALLOCATOR_TEST(allocators_exhausted,
	       "Without memory, or a device, the allocators give NULL and a sentence.")
{
	EXPECT(climport_torch_alloc(-1, 0, NULL) == NULL);
	EXPECT(*climport_last_error());
	EXPECT(climport_cupy_alloc(NULL, KB, 99) == NULL);
	EXPECT(strstr(climport_last_error(), "device 99"));
}

static void allocator_free_twice(void *arg)
{
	climport_torch_free(arg, 1, 0, NULL);
}

ALLOCATOR_TEST(allocators_wrong_free,
	       "A free of memory that is no allocation aborts, with a sentence.")
{
	char text[LOG_SIZE];
	int status = fixture_run_child(allocator_free_twice, text, text, sizeof(text));

	EXPECT(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	EXPECT(strstr(text, "is no allocation of device 0"));
}
