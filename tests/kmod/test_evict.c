/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exports that evict concurrently, on gdmabuf_mock.  The tests need the modules gdmabuf and
 * gdmabuf_nvidia.
 */
#include "../harness.h"
#include "gdm.h"
#include "mockgpu.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	EXPORTERS = 16,
	BUDGET = 130, /* pages of the BAR */
	PIN_US = 1000 /* the time of a pin, as NVIDIA's driver takes */
};

/* Threads export page after page with GDMABUF_UNWATCHED, and hold the dma-bufs. */
struct exporters {
	int ctx;
	uint64_t va;
	int each; /* exports of a thread */
	pthread_barrier_t start;
	atomic_int page, exported, refused;
	int fds[EXPORTERS * 13];
};

static void *evict_export_pages(void *arg)
{
	struct exporters *x = arg;

	pthread_barrier_wait(&x->start);
	for (int i = 0; i < x->each; i++) {
		uint64_t page = (uint64_t)atomic_fetch_add(&x->page, 1);
		struct gdm_export e = { .fd = -1 };

		if (gdm_export_gpu(x->ctx, x->va + page * GPU_PAGE, GPU_PAGE, GDMABUF_UNWATCHED,
				   &e))
			atomic_fetch_add(&x->refused, 1);
		else
			atomic_fetch_add(&x->exported, 1);
		x->fds[page] = e.fd;
	}
	return NULL;
}

static void evict_run(struct exporters *x)
{
	pthread_t threads[EXPORTERS];

	pthread_barrier_init(&x->start, NULL, EXPORTERS);
	for (int i = 0; i < EXPORTERS; i++)
		if (pthread_create(&threads[i], NULL, evict_export_pages, x))
			_exit(90);
	for (int i = 0; i < EXPORTERS; i++)
		pthread_join(threads[i], NULL);
	pthread_barrier_destroy(&x->start);
	for (int i = 0; i < atomic_load(&x->page); i++)
		close(x->fds[i]);
}

static int evict_gpu_open(void)
{
	static const struct mock_config slow = { .budget_pages = BUDGET, .delay_us = PIN_US };
	int gpu = mockgpu_open();

	mockgpu_config(gpu, &slow);
	return gpu;
}

/* Makes @pins idle pins of @pages each. */
static void evict_keep(int ctx, int gpu, int pins, int pages)
{
	uint64_t va = mockgpu_alloc(gpu, (size_t)pins * pages * GPU_PAGE, 0);

	for (int i = 0; i < pins; i++) {
		struct gdm_export e;

		EXPECT_EQ(gdm_export_gpu(ctx, va + (uint64_t)i * pages * GPU_PAGE,
					 (size_t)pages * GPU_PAGE, GDMABUF_KEEP, &e),
			  0);
		close(e.fd);
	}
}

static void evict_gpu_close(int gpu)
{
	static const struct mock_config works;

	mockgpu_config(gpu, &works);
	close(gpu);
	EVENTUALLY(mockgpu_stats(mockgpu_open()).pages_pinned == 0);
}

static void evict_as_other_user(void *arg)
{
	struct exporters x = { .each = 13 };
	int gpu = evict_gpu_open();

	(void)arg;
	x.va = mockgpu_alloc(gpu, (size_t)EXPORTERS * x.each * GPU_PAGE, 0);
	become_user(0);
	x.ctx = gdm_open();
	evict_run(&x);
	_exit(atomic_load(&x.exported) > BUDGET - 49 ? 1 : 0);
}

TEST(evict_fairly_threads,
     "Several threads together evict no more of another user than a single thread.")
{
	int gpu = evict_gpu_open(), ctx = gdm_open(), status;

	/*
	 * With watches, each pin takes 49 pages, so the other user's share has room for a single
	 * pin.
	 */
	evict_keep(ctx, gpu, 2, 48);
	EXPECT_EQ(chmod("/dev/gdmabuf", 0666), 0);
	status = in_child(evict_as_other_user, NULL);
	EXPECT_EQ(chmod("/dev/gdmabuf", 0660), 0);
	EXPECT_EQ(status, 0);
	EXPECT_EQ(gdm_stats(ctx).out_gpu_pins, 1);
	EXPECT_EQ(gdm_stats(ctx).out_evictions, 1);
	close(ctx);
	evict_gpu_close(gpu);
}

TEST(evict_once_threads,
     "Several threads that wait for room cause a single eviction if the eviction makes enough "
     "room.")
{
	int gpu = evict_gpu_open();
	struct exporters x = { .ctx = gdm_open(), .each = 1 };

	evict_keep(x.ctx, gpu, 8, 15);
	/*
	 * With watches, 128 pages are pinned.  Two threads find room, the other threads need an
	 * eviction.
	 */
	x.va = mockgpu_alloc(gpu, (size_t)EXPORTERS * GPU_PAGE, 0);
	evict_run(&x);
	EXPECT_EQ(atomic_load(&x.refused), 0);
	EXPECT_EQ(gdm_stats(x.ctx).out_evictions, 1);
	close(x.ctx);
	evict_gpu_close(gpu);
}

TEST(evict_last_threads, "Threads find room while the only idle pin is being evicted.")
{
	int gpu = evict_gpu_open();
	struct exporters x = { .ctx = gdm_open(), .each = 1 };

	evict_keep(x.ctx, gpu, 1, BUDGET - 1);
	x.va = mockgpu_alloc(gpu, (size_t)EXPORTERS * GPU_PAGE, 0);
	evict_run(&x);
	EXPECT_EQ(atomic_load(&x.refused), 0);
	EXPECT_EQ(gdm_stats(x.ctx).out_evictions, 1);
	close(x.ctx);
	evict_gpu_close(gpu);
}

enum { KEPT = 16, LOW_LIMIT = 16 * PAGE };

struct turns {
	int kept[2], looked[2]; /* pipes */
};

static void evict_wait(int fd)
{
	char byte;

	if (read(fd, &byte, 1) != 1)
		_exit(91);
}

static void evict_keep_host(void *arg)
{
	struct turns *t = arg;
	unsigned char *p = pages_new(2 * KEPT * PAGE, 1);
	int ctx;

	become_user(KEPT * PAGE);
	ctx = gdm_open();
	for (int i = 0; i < KEPT; i++) {
		struct gdm_export e;

		if (gdm_export_host(ctx, p + (size_t)2 * i * PAGE, PAGE, GDMABUF_KEEP, &e))
			_exit(1);
		close(e.fd);
	}
	if (write(t->kept[1], "k", 1) != 1)
		_exit(2);
	evict_wait(t->looked[0]);
	if (gdm_stats(ctx).out_evictions || gdm_stats(ctx).out_host_pins != KEPT)
		_exit(3);
}

/* The limit here is lower than the memory that the other process keeps. */
static void evict_with_low_limit(void *arg)
{
	unsigned char *p = pages_new(PAGE, 1);

	(void)arg;
	become_user(LOW_LIMIT / 4);
	if (gdm_export_host(gdm_open(), p, PAGE, 0, NULL) != -ENOMEM)
		_exit(1);
}

TEST(evict_lower_limit,
     "A process with a low RLIMIT_MEMLOCK evicts nothing that the user's other process keeps "
     "under a higher limit.")
{
	struct turns t;
	int status;
	pid_t pid;

	EXPECT_EQ(pipe(t.kept), 0);
	EXPECT_EQ(pipe(t.looked), 0);
	EXPECT_EQ(chmod("/dev/gdmabuf", 0666), 0);
	pid = fork();
	if (!pid) {
		evict_keep_host(&t);
		_exit(0);
	}
	close(t.kept[1]);
	close(t.looked[0]);
	evict_wait(t.kept[0]);
	EXPECT_EQ(in_child(evict_with_low_limit, NULL), 0);
	EXPECT_EQ(write(t.looked[1], "l", 1), 1);
	EXPECT_EQ(waitpid(pid, &status, 0), pid);
	EXPECT_EQ(chmod("/dev/gdmabuf", 0660), 0);
	EXPECT_EQ(status, 0);
	close(t.kept[0]);
	close(t.looked[1]);
}
