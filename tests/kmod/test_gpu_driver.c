/* SPDX-License-Identifier: Apache-2.0 */
/* Page tables and errors of NVIDIA's driver, and memory freed during an export. */
#include "gpu_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void gpu_expect_refused(struct mock_config config, int error)
{
	struct setup s = gpu_test_begin();

	mockgpu_config(s.gpu, &config);
	EXPECT_EQ(gdm_export_gpu(s.ctx, s.va, LENGTH, 0, NULL), error);
	EXPECT_EQ(gdm_export_gpu(s.ctx, s.va, LENGTH, GDMABUF_REVOCABLE, NULL), error);
	EXPECT_EQ(mockgpu_stats(s.gpu).pages_pinned, 0);
	EXPECT_EQ(gdm_stats(s.ctx).out_gpu_pins, 0);
	gpu_test_end(&s);
}

TEST(gpu_other_version, "A page table of another major version is refused with EINVAL.")
{
	int gpu = mockgpu_open();
	uint32_t major = mockgpu_stats(gpu).version >> 16;

	close(gpu);
	gpu_expect_refused((struct mock_config){ .version = 0x00030000 }, -EINVAL);
	gpu_expect_refused((struct mock_config){ .version = (3 - major) << 16 }, -EINVAL);
}

TEST(gpu_newer_minor,
     "A page table with a newer minor version of the driver's own major version is accepted.")
{
	struct setup s = gpu_test_begin();
	struct mock_config config = { .version = mockgpu_stats(s.gpu).version + 1 };

	mockgpu_config(s.gpu, &config);
	EXPECT_EQ(gdm_export_gpu(s.ctx, s.va, LENGTH, 0, NULL), 0);
	gpu_test_end(&s);
}

TEST(gpu_other_page_size, "A page table whose pages are not of 64 KiB is refused with EINVAL.")
{
	gpu_expect_refused((struct mock_config){ .page_size = 2 }, -EINVAL);
}

TEST(gpu_coherent, "GPU memory that the kernel has as RAM is refused with EOPNOTSUPP.")
{
	gpu_expect_refused((struct mock_config){ .ram = 1 }, -EOPNOTSUPP);
}

/* The driver's error @theirs, at the pin number @pin, becomes @ours. */
struct driver_error {
	const char *name;
	uint32_t pin;
	int theirs, ours;
};

static const struct driver_error driver_errors[] = {
	{ "einval_first", 0, -EINVAL, -EFAULT },
	{ "einval_second", 1, -EINVAL, -EFAULT },
	{ "enotsupp_first", 0, -524, -EOPNOTSUPP },
	{ "enotsupp_second", 1, -524, -EOPNOTSUPP },
	{ "enomem_first", 0, -ENOMEM, -ENOSPC },
	{ "enomem_second", 1, -ENOMEM, -ENOSPC },
	{ "eio_first", 0, -EIO, -EIO },
	{ "eio_second", 1, -EIO, -EIO },
	{ "ebusy_first", 0, -EBUSY, -EBUSY },
	{ "ebusy_second", 1, -EBUSY, -EBUSY },
	{ "enodev_first", 0, -ENODEV, -ENODEV },
	{ "enodev_second", 1, -ENODEV, -ENODEV },
};

TEST_EACH(gpu_driver_fails, struct driver_error, driver_errors,
	  "If the driver fails at a pin of an export, the export fails and nothing stays pinned.")
{
	struct mock_config c = { .fail_errno = row->theirs, .fail_after = row->pin };
	struct setup s = gpu_test_begin();

	mockgpu_config(s.gpu, &c);
	EXPECT_EQ(gdm_export_gpu(s.ctx, s.va, LENGTH, 0, NULL), row->ours);
	EXPECT_EQ(mockgpu_stats(s.gpu).pages_pinned, 0);
	gpu_test_end(&s);
}

TEST(gpu_put_fails, "If the driver fails to unpin, the memory is unpinned later.")
{
	struct mock_config c = { .fail_puts = 2 };
	struct setup s = gpu_test_begin();
	struct gdm_export e = gpu_export(&s, GDMABUF_UNWATCHED);

	mockgpu_config(s.gpu, &c);
	close(e.fd);
	EXPECT(pins_go(s.gpu));
	gpu_test_end(&s);
}

/* Exports with a watch. */
struct watched_export {
	const char *name;
	uint32_t flags;
};

static const struct watched_export watched_exports[] = {
	{ "hold", 0 },
	{ "revocable", GDMABUF_REVOCABLE },
};

TEST_EACH(gpu_put_fails_while_owned, struct watched_export, watched_exports,
	  "If the driver fails to unpin a watch, the watch is unpinned later, while owner and "
	  "memory live.")
{
	struct mock_config c = { .fail_puts = 2 };
	struct setup s = gpu_test_begin();
	struct gdm_export e = gpu_export(&s, row->flags);

	mockgpu_config(s.gpu, &c);
	close(e.fd);
	EXPECT(pins_go(s.gpu));
	EXPECT_EQ(mockgpu_stats(s.gpu).pages_pinned, 0);
	EVENTUALLY(provider_users() == 0);
	gpu_test_end(&s);
}

static void close_unwatched(int gpu, int ctx, uint64_t va, struct mock_config c)
{
	struct gdm_export e;

	EXPECT_EQ(gdm_export_gpu(ctx, va, GPU_PAGE, GDMABUF_UNWATCHED, &e), 0);
	mockgpu_config(gpu, &c);
	close(e.fd);
}

/* Runs as another user: the page of the first export stays charged to the user for ever. */
static void lose_page(void *arg)
{
	struct setup s = gpu_test_begin();
	uint32_t failed = s.before.failed_puts;
	int ctx;

	(void)arg;
	become_user(0);
	ctx = gdm_open();
	close_unwatched(s.gpu, ctx, s.va,
			(struct mock_config){ .fail_puts = ~0U, .fail_put_errno = -EIO });
	close_unwatched(s.gpu, ctx, s.va, (struct mock_config){ .fail_puts = 1 });
	/*
	 * A second attempt to unpin the first export would come before the attempt for the second
	 * export.
	 */
	EXPECT(pins_go(s.gpu));
	EXPECT_EQ(mockgpu_stats(s.gpu).failed_puts, failed + 2);
	EVENTUALLY(provider_users() == 0);
}

TEST(gpu_put_fails_for_good,
     "If the driver refuses to unpin, gdmabuf asks once, and the provider can be unloaded.")
{
	EXPECT_EQ(chmod("/dev/gdmabuf", 0666), 0);
	EXPECT_EQ(in_child(lose_page, NULL), 0);
	EXPECT_EQ(chmod("/dev/gdmabuf", 0660), 0);
}

TEST(gpu_put_fails_of_refused,
     "If the driver fails to unpin memory with an unreadable page table, the memory is unpinned "
     "later.")
{
	struct mock_config c = { .fail_puts = 2, .page_size = 2 };
	struct setup s = gpu_test_begin();

	mockgpu_config(s.gpu, &c);
	EXPECT_EQ(gdm_export_gpu(s.ctx, s.va, LENGTH, GDMABUF_UNWATCHED, NULL), -EINVAL);
	EXPECT(pins_go(s.gpu));
	gpu_test_end(&s);
}

TEST(gpu_put_fails_of_watch,
     "A failed export keeps the provider loaded as long as the driver has the provider's callback.")
{
	struct mock_config c = { .fail_puts = 1, .page_size = 2 };
	struct setup s = gpu_test_begin();

	mockgpu_config(s.gpu, &c);
	EXPECT_EQ(gdm_export_gpu(s.ctx, s.va, LENGTH, GDMABUF_REVOCABLE, NULL), -EINVAL);
	EXPECT_EQ(mockgpu_stats(s.gpu).pins, 1);
	EXPECT_EQ(provider_users(), 1);
	mockgpu_free(s.gpu, s.va);
	EVENTUALLY(provider_users() == 0);
	gpu_test_end(&s);
}

enum { IDLE_PINS = 300 };

/* The export evicts idle pins in turn, each in a fifth of a second, and never gets enough room. */
static void evict_for_long(int socket)
{
	struct mock_config c = { .delay_us = 200000, .budget_pages = 1 };
	int gpu = mockgpu_open(), ctx = gdm_open();
	uint64_t va = mockgpu_alloc(gpu, (IDLE_PINS + 1) * (size_t)GPU_PAGE, 0);
	struct gdm_export e;

	for (int i = 0; i < IDLE_PINS; i++) {
		if (gdm_export_gpu(ctx, va + (uint64_t)i * GPU_PAGE, GPU_PAGE, GDMABUF_KEEP, &e))
			_exit(1);
		close(e.fd);
	}
	mockgpu_config(gpu, &c);
	if (write(socket, "", 1) != 1)
		_exit(1);
	gdm_export_gpu(ctx, va + IDLE_PINS * (uint64_t)GPU_PAGE, GPU_PAGE, 0, NULL);
	_exit(0);
}

TEST(gpu_killed_in_eviction, "SIGKILL ends an export between two evictions.")
{
	struct setup s = gpu_test_begin();
	int sockets[2], status = -1, waited;
	char byte;
	pid_t pid;

	EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
	pid = fork();
	if (!pid)
		evict_for_long(sockets[1]);
	EXPECT_EQ(read(sockets[0], &byte, 1), 1);
	while (mockgpu_stats(s.gpu).persistent == IDLE_PINS)
		usleep(5000); /* time: between two looks */
	kill(pid, SIGKILL);
	/* All evictions would take a minute. */
	for (waited = 0; !waitpid(pid, &status, WNOHANG) && waited < 3000; waited++)
		usleep(10000); /* time: between two looks */
	EXPECT(waited < 3000);
	EXPECT_EQ(WTERMSIG(status), SIGKILL);
	close(sockets[0]);
	close(sockets[1]);
	gpu_test_end(&s);
}

TEST(gpu_freed_while_pinned, "If the memory is freed during the pin, the export fails with EFAULT.")
{
	gpu_expect_refused((struct mock_config){ .callback_in_get = 1 }, -EFAULT);
}

static uint64_t to_free;
static int stop_freeing, freeing_gpu;

static void *free_always(void *arg)
{
	(void)arg;
	while (!__atomic_load_n(&stop_freeing, __ATOMIC_ACQUIRE)) {
		uint64_t va = __atomic_load_n(&to_free, __ATOMIC_ACQUIRE);

		if (va)
			mockgpu_try_free(freeing_gpu, va, 0);
	}
	return NULL;
}

/* The pins of earlier rounds hold the memory until a work item has put them. */
static uint64_t alloc_eventually(int gpu, size_t length)
{
	struct mock_alloc alloc = { .length = length };

	EVENTUALLY(alloc.va || !ioctl(gpu, MOCK_ALLOC, &alloc));
	return alloc.va;
}

TEST(gpu_freed_by_another_thread,
     "If another thread frees the memory during the export, the export succeeds or fails with "
     "EFAULT.")
{
	enum { BIG = 16 << 20, ROUNDS = 300 };
	struct setup s = gpu_test_begin();
	pthread_t thread;

	freeing_gpu = s.gpu;
	stop_freeing = 0;
	EXPECT_EQ(pthread_create(&thread, NULL, free_always, NULL), 0);
	for (int i = 0; i < ROUNDS; i++) {
		uint64_t va = alloc_eventually(s.gpu, BIG);
		int err;

		__atomic_store_n(&to_free, va, __ATOMIC_RELEASE);
		err = gdm_export_gpu(s.ctx, va, BIG, i % 2 ? GDMABUF_REVOCABLE : 0, NULL);
		EXPECT(!err || err == -EFAULT);
		__atomic_store_n(&to_free, 0, __ATOMIC_RELEASE);
		mockgpu_try_free(s.gpu, va, 0);
	}
	__atomic_store_n(&stop_freeing, 1, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	gpu_test_end(&s);
}

TEST(gpu_rmmod_busy, "A dma-buf of GPU memory keeps both modules loaded.")
{
	struct setup s = gpu_test_begin();
	struct gdm_export e = gpu_export(&s, 0);

	close(s.ctx);
	EXPECT_EQ(syscall(SYS_delete_module, "gdmabuf_nvidia", O_NONBLOCK), -1);
	EXPECT(errno == EAGAIN || errno == EBUSY);
	EXPECT_EQ(syscall(SYS_delete_module, "gdmabuf", O_NONBLOCK), -1);
	EXPECT(errno == EAGAIN || errno == EBUSY);
	s.ctx = gdm_open();
	close(e.fd);
	gpu_test_end(&s);
}

/* This test is the last of the file: the struct pages cannot be removed again. */
TEST(gpu_p2pdma_pages, "A BAR with struct pages of another driver is exported, mapped and read.")
{
	struct setup s = gpu_test_begin_flags(MOCK_SCATTER);
	struct gdm_export e;
	unsigned char *view;

	if (ioctl(s.gpu, MOCK_ADD_PAGES)) {
		int err = errno;

		gpu_test_end(&s);
		test_skip("no struct pages for the BAR: %s", strerror(err));
	}
	for (int i = 0; i < 2; i++) {
		e = gpu_export(&s, i ? GDMABUF_REVOCABLE : 0);
		view = dmabuf_map(e.fd, LENGTH, PROT_READ | PROT_WRITE);
		EXPECT_EQ(pattern_mismatches(view, LENGTH), 0);
		view[0] = (unsigned char)pattern_at(0);
		munmap(view, LENGTH);
		close(e.fd);
	}
	gpu_test_end(&s);
}
