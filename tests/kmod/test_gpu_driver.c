/* SPDX-License-Identifier: Apache-2.0 */
/* Page tables and errors of NVIDIA's driver, a full BAR, and memory freed during an export. */
#include "gpu_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void gpu_expect_refused(struct mock_config config, int error)
{
	struct setup s = gpu_test_begin();

	mockgpu_config(s.gpu, &config);
	EXPECT_EQ(gdm_export_gpu(s.ctx, s.va, LENGTH, 0, NULL), error);
	EXPECT_EQ(mockgpu_stats(s.gpu).pages_pinned, 0);
	gpu_test_end(&s);
}

TEST(gpu_other_version, "A page table of another major version is refused with EIO.")
{
	int gpu = mockgpu_open();
	uint32_t major = mockgpu_stats(gpu).version >> 16;

	close(gpu);
	gpu_expect_refused((struct mock_config){ .version = 0x00030000 }, -EIO);
	gpu_expect_refused((struct mock_config){ .version = (3 - major) << 16 }, -EIO);
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

TEST(gpu_other_page_size, "A page table whose pages are not of 64 KiB is refused with EIO.")
{
	gpu_expect_refused((struct mock_config){ .page_size = 2 }, -EIO);
}

TEST(gpu_coherent, "GPU memory that the kernel has as RAM is refused with EOPNOTSUPP.")
{
	gpu_expect_refused((struct mock_config){ .ram = 1 }, -EOPNOTSUPP);
}

/* The driver's error @theirs becomes @ours. */
struct driver_error {
	const char *name;
	int theirs, ours;
};

static const struct driver_error driver_errors[] = {
	{ "einval", -EINVAL, -EFAULT }, { "enotsupp", -524, -EOPNOTSUPP },
	{ "enomem", -ENOMEM, -ENOSPC }, { "eio", -EIO, -EIO },
	{ "ebusy", -EBUSY, -EIO },	{ "enodev", -ENODEV, -EIO },
	{ "eagain", -EAGAIN, -EIO },
};

TEST_EACH(gpu_driver_fails, struct driver_error, driver_errors,
	  "If the driver fails to pin, the export fails, and nothing stays pinned or charged.")
{
	struct mock_config c = { .fail_errno = row->theirs };
	long long before = gdm_read_total("gpu-bytes");
	struct setup s = gpu_test_begin();

	mockgpu_config(s.gpu, &c);
	EXPECT_EQ(gdm_export_gpu(s.ctx, s.va, LENGTH, 0, NULL), row->ours);
	EXPECT_EQ(mockgpu_stats(s.gpu).pages_pinned, 0);
	EXPECT_EQ(gdm_read_total("gpu-bytes"), before);
	gpu_test_end(&s);
}

TEST(gpu_bar_exhausted,
     "If the BAR has no room, the export fails with ENOSPC and nothing stays pinned.")
{
	struct mock_config c = { .budget_pages = 4 };
	struct setup s = gpu_test_begin();

	mockgpu_config(s.gpu, &c);
	EXPECT_EQ(gdm_export_gpu(s.ctx, s.va, LENGTH, 0, NULL), -ENOSPC);
	EXPECT_EQ(mockgpu_stats(s.gpu).pages_pinned, 0);
	EXPECT_EQ(gdm_export_gpu(s.ctx, s.va, 4 * GPU_PAGE, 0, NULL), 0);
	gpu_test_end(&s);
}

/* ---- the driver fails to take pages back ---- */

static void close_with(int gpu, int ctx, uint64_t va, struct mock_config c)
{
	int fd;

	EXPECT_EQ(gdm_export_gpu(ctx, va, GPU_PAGE, 0, &fd), 0);
	mockgpu_config(gpu, &c);
	close(fd);
}

TEST(gpu_put_fails,
     "If the driver has no memory to unpin, the pages stay charged until a later attempt succeeds.")
{
	struct setup s = gpu_test_begin();
	long long before = gdm_read_total("gpu-bytes");

	close_with(s.gpu, s.ctx, s.va, (struct mock_config){ .fail_puts = 2 });
	EXPECT_EQ(mockgpu_stats(s.gpu).pins, 1);
	EXPECT_EQ(gdm_read_total("gpu-bytes"), before + GPU_PAGE);
	EVENTUALLY(mockgpu_stats(s.gpu).pins == 0);
	EVENTUALLY(gdm_read_total("gpu-bytes") == before);
	EXPECT_EQ(mockgpu_stats(s.gpu).failed_puts, s.before.failed_puts + 2);
	EVENTUALLY(gdm_module_users("gdmabuf_nvidia") == 0);
	gpu_test_end(&s);
}

TEST(gpu_put_fails_of_many, "All pages that the driver had no memory to unpin are tried again.")
{
	static const struct mock_config fails = { .fail_puts = ~0U }, works;
	struct setup s = gpu_test_begin();

	for (uint64_t i = 0; i < 8; i++)
		close_with(s.gpu, s.ctx, s.va + i * GPU_PAGE, fails);
	EXPECT_EQ(mockgpu_stats(s.gpu).pins, 8);
	mockgpu_config(s.gpu, &works);
	EVENTUALLY(mockgpu_stats(s.gpu).pins == 0);
	EVENTUALLY(gdm_module_users("gdmabuf_nvidia") == 0);
	gpu_test_end(&s);
}

/* The second export would be refused if the first were not tried again. */
static void exceed_quota_by_lost(void *arg)
{
	static const struct mock_config works;
	int gpu = mockgpu_open(), ctx;
	uint64_t va = mockgpu_alloc(gpu, 2 << 20, 0);
	int fd;

	(void)arg;
	become_user(0);
	ctx = gdm_open();
	if (gdm_export_gpu(ctx, va, 1 << 20, 0, &fd))
		_exit(1);
	mockgpu_config(gpu, &(struct mock_config){ .fail_puts = ~0U });
	close(fd);
	if (gdm_export_gpu(ctx, va + (1 << 20), GPU_PAGE, 0, NULL) != -EDQUOT)
		_exit(2);
	mockgpu_config(gpu, &works);
	EVENTUALLY(mockgpu_stats(gpu).pins == 0);
	EVENTUALLY(!gdm_export_gpu(ctx, va + (1 << 20), 1 << 20, 0, NULL));
}

TEST(gpu_put_fails_of_quota, "Pages that are tried again count for the user until they are gone.")
{
	struct setup s = gpu_test_begin();

	EXPECT_EQ(in_child_with_quota(exceed_quota_by_lost, NULL), 0);
	gpu_test_end(&s);
}

static void lose_all(void *arg)
{
	static const struct mock_config works;
	int gpu = mockgpu_open(), ctx, fd;
	uint64_t va = mockgpu_alloc(gpu, 2 << 20, 0);
	uint32_t failed = mockgpu_stats(gpu).failed_puts;

	(void)arg;
	become_user(0);
	ctx = gdm_open();
	if (gdm_export_gpu(ctx, va, GPU_PAGE, 0, &fd))
		_exit(1);
	mockgpu_config(gpu, &(struct mock_config){ .fail_puts = ~0U, .fail_put_errno = -EIO });
	close(fd);
	mockgpu_config(gpu, &works);
	/* A second attempt to unpin the page would come before the first attempt for this one. */
	close_with(gpu, ctx, va + GPU_PAGE, (struct mock_config){ .fail_puts = 1 });
	EVENTUALLY(mockgpu_stats(gpu).pins == 0);
	if (mockgpu_stats(gpu).failed_puts != failed + 2)
		_exit(2);
	if (gdm_export_gpu(ctx, va, 1 << 20, 0, NULL) != -EDQUOT)
		_exit(3);
}

/*
 * The page stays charged until gdmabuf is unloaded, so this test is one of the last that has a
 * quota: of uid 1000 a page is missing from now on.
 */
TEST(gpu_put_fails_for_good,
     "If the driver refuses to unpin, gdmabuf asks once, the page stays charged, and the provider "
     "can be unloaded.")
{
	struct setup s = gpu_test_begin();
	long long before = gdm_read_total("gpu-bytes");

	EXPECT_EQ(in_child_with_quota(lose_all, NULL), 0);
	EXPECT_EQ(gdm_read_total("gpu-bytes"), before + GPU_PAGE);
	EVENTUALLY(gdm_module_users("gdmabuf_nvidia") == 0);
	gpu_test_end(&s);
}

TEST(gpu_put_fails_of_refused,
     "If the driver fails to unpin memory with an unreadable page table, the memory is unpinned "
     "later.")
{
	struct mock_config c = { .fail_puts = 2, .page_size = 2 };
	struct setup s = gpu_test_begin();

	mockgpu_config(s.gpu, &c);
	EXPECT_EQ(gdm_export_gpu(s.ctx, s.va, LENGTH, 0, NULL), -EIO);
	EVENTUALLY(mockgpu_stats(s.gpu).pins == 0);
	EVENTUALLY(gdm_module_users("gdmabuf_nvidia") == 0);
	gpu_test_end(&s);
}

/* ---- during the pin ---- */

static void export_slowly(int socket)
{
	struct mock_config c = { .delay_us = 500000 };
	int gpu = mockgpu_open(), ctx = gdm_open();
	uint64_t va = mockgpu_alloc(gpu, LENGTH, 0);

	mockgpu_config(gpu, &c);
	if (write(socket, "", 1) != 1)
		_exit(1);
	for (;;)
		gdm_export_gpu(ctx, va, LENGTH, 0, NULL);
}

TEST(gpu_killed, "A process that is killed while the driver pins leaves nothing pinned.")
{
	struct setup s = gpu_test_begin();
	int pipes[2], status;
	char byte;
	pid_t pid;

	EXPECT_EQ(pipe(pipes), 0);
	pid = fork();
	if (!pid)
		export_slowly(pipes[1]);
	EXPECT_EQ(read(pipes[0], &byte, 1), 1);
	EVENTUALLY(mockgpu_stats(s.gpu).gets > s.before.gets);
	EXPECT_EQ(kill(pid, SIGKILL), 0);
	EXPECT_EQ(waitpid(pid, &status, 0), pid);
	EXPECT(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	EXPECT_EQ(mockgpu_stats(s.gpu).pins, 0);
	close(pipes[0]);
	close(pipes[1]);
	gpu_test_end(&s);
}

static uint64_t to_free;
static int stop_freeing, freeing_gpu;

static void *free_always(void *arg)
{
	(void)arg;
	while (!__atomic_load_n(&stop_freeing, __ATOMIC_ACQUIRE)) {
		uint64_t va = __atomic_load_n(&to_free, __ATOMIC_ACQUIRE);

		if (va)
			mockgpu_try_free(freeing_gpu, va);
	}
	return NULL;
}

TEST(gpu_freed_while_pinned,
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
		uint64_t va = mockgpu_alloc(s.gpu, BIG, 0);
		int err;

		__atomic_store_n(&to_free, va, __ATOMIC_RELEASE);
		err = gdm_export_gpu(s.ctx, va, BIG, 0, NULL);
		EXPECT(!err || err == -EFAULT);
		__atomic_store_n(&to_free, 0, __ATOMIC_RELEASE);
		mockgpu_try_free(s.gpu, va);
	}
	__atomic_store_n(&stop_freeing, 1, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	gpu_test_end(&s);
}

TEST(gpu_rmmod_busy, "A dma-buf of GPU memory keeps both modules loaded.")
{
	struct setup s = gpu_test_begin();
	int fd = gpu_export(&s);

	close(s.ctx);
	EXPECT_EQ(syscall(SYS_delete_module, "gdmabuf_nvidia", O_NONBLOCK), -1);
	EXPECT(errno == EAGAIN || errno == EBUSY);
	EXPECT_EQ(syscall(SYS_delete_module, "gdmabuf", O_NONBLOCK), -1);
	EXPECT(errno == EAGAIN || errno == EBUSY);
	s.ctx = gdm_open();
	close(fd);
	gpu_test_end(&s);
}

/* This test is the last of the file: the struct pages cannot be removed again. */
TEST(gpu_p2pdma_pages, "A BAR with struct pages of another driver is exported, mapped and read.")
{
	struct setup s = gpu_test_begin_flags(MOCK_SCATTER);
	unsigned char *view;
	int fd;

	if (ioctl(s.gpu, MOCK_ADD_PAGES)) {
		int err = errno;

		gpu_test_end(&s);
		test_skip("no struct pages for the BAR: %s", strerror(err));
	}
	fd = gpu_export(&s);
	view = dmabuf_map(fd, LENGTH, PROT_READ | PROT_WRITE);
	EXPECT_EQ(pattern_mismatches(view, LENGTH), 0);
	munmap(view, LENGTH);
	close(fd);
	gpu_test_end(&s);
}
