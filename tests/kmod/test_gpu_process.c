/* SPDX-License-Identifier: Apache-2.0 */
/* GPU memory and processes: children, others that have a dma-buf, the end of the exporter; quotas. */
#include "gpu_fixture.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* The byte that gpu_touch() reads, in a child. */
static volatile unsigned char *touched;

static void gpu_touch(void *arg)
{
	(void)arg;
	(void)*touched;
}

static void export_parents(void *arg)
{
	const struct setup *s = arg;
	int ctx = gdm_open();

	if (gdm_export_gpu(s->ctx, s->va, LENGTH, 0, NULL) != -EACCES)
		_exit(1);
	if (gdm_export_gpu(ctx, s->va, LENGTH, 0, NULL) != -EFAULT)
		_exit(2);
}

TEST(gpu_child_of_owner,
     "A child can neither use the parent's context (EACCES) nor export the parent's memory "
     "(EFAULT).")
{
	struct setup s = gpu_test_begin();

	EXPECT_EQ(in_child(export_parents, &s), 0);
	gpu_test_end(&s);
}

TEST(gpu_child_has_no_mapping,
     "A child does not inherit a mapping of GPU memory: a read gives SIGSEGV.")
{
	struct setup s = gpu_test_begin();
	int fd = gpu_export(&s);
	unsigned char *view = dmabuf_map(fd, LENGTH, PROT_READ);

	touched = view;
	EXPECT_EQ(in_child(gpu_touch, NULL), 128 + SIGSEGV);
	EXPECT_EQ(view[0], pattern_at(0));
	munmap(view, LENGTH);
	close(fd);
	gpu_test_end(&s);
}

static void map_and_check(void *arg)
{
	unsigned char *view = dmabuf_map(*(int *)arg, LENGTH, PROT_READ);

	if (!view || pattern_mismatches(view, LENGTH))
		_exit(1);
}

TEST(gpu_child_maps, "A child maps an inherited dma-buf, even after the parent freed the memory.")
{
	struct setup s = gpu_test_begin();
	int fd = gpu_export(&s);

	EXPECT_EQ(in_child(map_and_check, &fd), 0);
	mockgpu_free(s.gpu, s.va);
	EXPECT_EQ(in_child(map_and_check, &fd), 0);
	close(fd);
	gpu_test_end(&s);
}

static void receive_and_map(void *arg)
{
	int fd = receive_fd(((int *)arg)[1]);

	map_and_check(&fd);
}

TEST(gpu_passed, "A process maps a dma-buf received by SCM_RIGHTS.")
{
	struct setup s = gpu_test_begin();
	int fd = gpu_export(&s);
	int sockets[2];

	EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
	send_fd(sockets[0], fd);
	EXPECT_EQ(in_child(receive_and_map, sockets), 0);
	close(sockets[0]);
	close(sockets[1]);
	close(fd);
	gpu_test_end(&s);
}

static void receive_context(void *arg)
{
	int ctx = receive_fd(((int *)arg)[1]);

	if (gdm_export_gpu(ctx, 0x7f4000000000, GPU_PAGE, 0, NULL) != -EACCES)
		_exit(1);
}

TEST(gpu_context_passed, "An export with a context received by SCM_RIGHTS fails with EACCES.")
{
	struct setup s = gpu_test_begin();
	int sockets[2];

	EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
	send_fd(sockets[0], s.ctx);
	EXPECT_EQ(in_child(receive_context, sockets), 0);
	close(sockets[0]);
	close(sockets[1]);
	gpu_test_end(&s);
}

static void *export_in_thread(void *arg)
{
	const struct setup *s = arg;

	return (void *)(intptr_t)gdm_export_gpu(s->ctx, s->va, LENGTH, 0, NULL);
}

TEST(gpu_thread, "Any thread of the process that opened the context can export.")
{
	struct setup s = gpu_test_begin();
	pthread_t thread;
	void *err;

	EXPECT_EQ(pthread_create(&thread, NULL, export_in_thread, &s), 0);
	pthread_join(thread, &err);
	EXPECT(!err);
	gpu_test_end(&s);
}

/* A receiver of dma-bufs.  The consumer closes a dma-buf after the sender's close. */
struct consumer {
	pid_t pid;
	int socket;
};

static void consumer_run(int socket)
{
	char byte;

	/* The consumer must hold no descriptor of the parent. */
	close_range(3, (unsigned int)socket - 1, 0);
	close_range((unsigned int)socket + 1, ~0U, 0);

	while (read(socket, &byte, 1) == 1) {
		int fd = receive_fd(socket);

		if (read(socket, &byte, 1) != 1)
			break;
		close(fd);
		if (write(socket, &byte, 1) != 1)
			break;
	}
	_exit(0);
}

static struct consumer consumer_start(void)
{
	struct consumer c;
	int sockets[2];

	EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
	c.pid = fork();
	if (!c.pid) {
		close(sockets[0]);
		consumer_run(sockets[1]);
	}
	close(sockets[1]);
	c.socket = sockets[0];
	return c;
}

/* On return the consumer has dropped the last reference to the dma-buf. */
static int consumer_closes_last(const struct consumer *c, int fd)
{
	char byte = 0;

	if (write(c->socket, &byte, 1) != 1)
		return -1;
	send_fd(c->socket, fd);
	close(fd);
	return write(c->socket, &byte, 1) == 1 && read(c->socket, &byte, 1) == 1 ? 0 : -1;
}

static void consumer_stop(const struct consumer *c)
{
	close(c->socket);
	waitpid(c->pid, NULL, 0);
}

TEST(gpu_last_close_elsewhere,
     "The last close in another process unpins everything at once, while exporter and memory live.")
{
	struct setup s = gpu_test_begin();
	struct consumer c = consumer_start();

	for (int i = 0; i < 10; i++) {
		EXPECT_EQ(consumer_closes_last(&c, gpu_export(&s)), 0);
		EXPECT_EQ(mockgpu_stats(s.gpu).pins, 0);
		EXPECT_EQ(mockgpu_stats(s.gpu).pages_pinned, 0);
	}
	consumer_stop(&c);
	gpu_test_end(&s);
}

TEST(gpu_last_close_after_all,
     "The last close in another process unpins everything after the context was closed and the "
     "memory was freed.")
{
	struct setup s = gpu_test_begin();
	int fd = gpu_export(&s);
	struct consumer c = consumer_start();

	close(s.ctx);
	mockgpu_free(s.gpu, s.va);
	EXPECT_EQ(mockgpu_stats(s.gpu).pins, 1);
	EXPECT_EQ(consumer_closes_last(&c, fd), 0);
	EXPECT_EQ(mockgpu_stats(s.gpu).pins, 0);
	s.ctx = gdm_open();
	consumer_stop(&c);
	gpu_test_end(&s);
}

TEST(gpu_cycles, "Cycles of export, pass on and close leave no pin, no reference and no BAR space.")
{
	const char *wanted = getenv("GDM_CYCLES");
	long cycles = wanted ? atol(wanted) : 2000;
	struct setup s = gpu_test_begin();
	struct consumer c = consumer_start();
	uint32_t most = 0;

	for (long i = 0; i < cycles; i++) {
		EXPECT_EQ(consumer_closes_last(&c, gpu_export(&s)), 0);
		if (mockgpu_stats(s.gpu).pages_pinned > most)
			most = mockgpu_stats(s.gpu).pages_pinned;
	}
	printf("# %ld cycles of export, pass on, close: left %u pins, %u pages of the BAR, %d "
	       "references to the driver's module; at most %u pages after a close\n",
	       cycles, mockgpu_stats(s.gpu).pins, mockgpu_stats(s.gpu).pages_pinned,
	       gdm_module_users("gdmabuf_nvidia"), most);
	EXPECT_EQ(most, 0);
	consumer_stop(&c);
	gpu_test_end(&s);
}

static void export_and_send(void *arg)
{
	int gpu = mockgpu_open(), ctx = gdm_open();
	uint64_t va = mockgpu_alloc(gpu, LENGTH, 0);
	int fd;

	pattern_fill(bytes, LENGTH);
	mockgpu_write(gpu, va, bytes, LENGTH);
	if (gdm_export_gpu(ctx, va, LENGTH, 0, &fd))
		_exit(1);
	send_fd(((int *)arg)[0], fd);
}

TEST(gpu_owner_exits,
     "A dma-buf outlives the process that exported it, and the last close frees the memory.")
{
	struct setup s = gpu_test_begin();
	uint32_t used = mockgpu_stats(s.gpu).pages_used;
	int sockets[2], fd;
	unsigned char *view;

	EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
	EXPECT_EQ(in_child(export_and_send, sockets), 0);
	fd = receive_fd(sockets[1]);
	view = dmabuf_map(fd, LENGTH, PROT_READ);
	EXPECT(view);
	EXPECT_EQ(pattern_mismatches(view, LENGTH), 0);
	munmap(view, LENGTH);
	close(fd);
	EXPECT_EQ(mockgpu_stats(s.gpu).pages_used, used);
	close(sockets[0]);
	close(sockets[1]);
	gpu_test_end(&s);
}

/* ---- quotas ---- */

enum { MB = 1 << 20 };

static void export_as_user(void *arg)
{
	static const struct mock_config fails = { .fail_errno = -EIO }, works;
	int gpu = mockgpu_open(), ctx, other, fd;
	uint64_t va = mockgpu_alloc(gpu, 2 * MB, 0);

	(void)arg;
	become_user(0);
	ctx = gdm_open();
	other = gdm_open();
	if (gdm_export_gpu(ctx, va, MB + GPU_PAGE, 0, NULL) != -EDQUOT)
		_exit(1);
	if (gdm_export_gpu(ctx, va, MB / 2, 0, &fd))
		_exit(2);
	if (gdm_export_gpu(other, va, MB / 2 + GPU_PAGE, 0, NULL) != -EDQUOT)
		_exit(3);
	/* An error of the driver and the last close both end the charge. */
	mockgpu_config(gpu, &fails);
	if (gdm_export_gpu(other, va, MB / 2, 0, NULL) != -EIO)
		_exit(4);
	mockgpu_config(gpu, &works);
	close(fd);
	if (gdm_export_gpu(other, va, MB, 0, NULL))
		_exit(5);
}

TEST(gpu_quota, "An export beyond gpu_quota_mb of the user fails with EDQUOT.")
{
	struct setup s = gpu_test_begin();

	EXPECT_EQ(in_child_with_quota(export_as_user, NULL), 0);
	gpu_test_end(&s);
}

static void export_as_root(void *arg)
{
	int gpu = mockgpu_open(), ctx = gdm_open();
	uint64_t va = mockgpu_alloc(gpu, 2 * MB, 0);

	(void)arg;
	_exit(gdm_export_gpu(ctx, va, 2 * MB, 0, NULL) ? 1 : 0);
}

TEST(gpu_quota_capability, "CAP_SYS_RESOURCE lifts gpu_quota_mb, and 0 is no limit.")
{
	struct setup s = gpu_test_begin();
	uint64_t va = mockgpu_alloc(s.gpu, 2 * MB, 0);

	EXPECT_EQ(in_child_with_quota(export_as_root, NULL), 0);
	EXPECT_EQ(gdm_export_gpu(s.ctx, va, 2 * MB, 0, NULL), 0);
	mockgpu_free(s.gpu, va);
	gpu_test_end(&s);
}

static void pass_on_as_user(void *arg)
{
	int gpu = mockgpu_open(), ctx = gdm_open(), fd;
	uint64_t va = mockgpu_alloc(gpu, 40 * LENGTH, 0);
	struct consumer c = consumer_start();

	(void)arg;
	become_user(0);
	for (uint64_t i = 0; i < 40; i++) {
		if (gdm_export_gpu(ctx, va + i * LENGTH, LENGTH, 0, &fd))
			_exit(1);
		if (consumer_closes_last(&c, fd))
			_exit(2);
	}
	consumer_stop(&c);
}

TEST(gpu_quota_passed_on, "The last close in a process of another user ends the charge, too.")
{
	struct setup s = gpu_test_begin();

	EXPECT_EQ(in_child_with_quota(pass_on_as_user, NULL), 0);
	gpu_test_end(&s);
}

/* Exports all that the quota allows in a child that ends, then in this process. */
static void export_of_quota(void *arg)
{
	int *sockets = arg, gpu = mockgpu_open(), ctx, fd;
	uint64_t va = mockgpu_alloc(gpu, MB, 0);

	become_user(0);
	ctx = gdm_open();
	if (gdm_export_gpu(ctx, va, MB, 0, &fd))
		_exit(1);
	send_fd(sockets[0], fd);
}

static void outlive_exporter(void *arg)
{
	int sockets[2], fd;

	(void)arg;
	EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
	if (in_child(export_of_quota, sockets))
		_exit(1);
	fd = receive_fd(sockets[1]);
	if (in_child(export_of_quota, sockets) != 1)
		_exit(2);
	close(fd);
	if (in_child(export_of_quota, sockets))
		_exit(3);
}

TEST(gpu_quota_of_exited,
     "GPU memory counts for the user after the exporter's exit, until another process closes it.")
{
	struct setup s = gpu_test_begin();

	EXPECT_EQ(in_child_with_quota(outlive_exporter, NULL), 0);
	gpu_test_end(&s);
}

static void free_of_quota(void *arg)
{
	int gpu = mockgpu_open(), ctx, fd;
	uint64_t va = mockgpu_alloc(gpu, MB, 0);

	(void)arg;
	become_user(0);
	ctx = gdm_open();
	if (gdm_export_gpu(ctx, va, MB, 0, &fd))
		_exit(1);
	mockgpu_free(gpu, va);
	va = mockgpu_alloc(gpu, MB, 0);
	if (gdm_export_gpu(ctx, va, GPU_PAGE, 0, NULL) != -EDQUOT)
		_exit(2);
	close(fd);
	if (gdm_export_gpu(ctx, va, MB, 0, NULL))
		_exit(3);
}

TEST(gpu_quota_of_freed, "Freed memory counts as long as a dma-buf keeps it.")
{
	struct setup s = gpu_test_begin();

	EXPECT_EQ(in_child_with_quota(free_of_quota, NULL), 0);
	gpu_test_end(&s);
}
