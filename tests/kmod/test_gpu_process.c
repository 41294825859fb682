/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GPU memory and processes: children, other users of a dma-buf, and the end of the owner.  The
 * owner is the process that opened the context.
 */
#include "gpu_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
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
	struct gdm_export e = gpu_export(&s, 0);
	unsigned char *view = dmabuf_map(e.fd, LENGTH, PROT_READ);

	touched = view;
	EXPECT_EQ(in_child(gpu_touch, NULL), 128 + SIGSEGV);
	EXPECT_EQ(view[0], pattern_at(0));
	munmap(view, LENGTH);
	close(e.fd);
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
	struct gdm_export e = gpu_export(&s, 0);

	EXPECT_EQ(in_child(map_and_check, &e.fd), 0);
	mockgpu_free(s.gpu, s.va);
	EXPECT_EQ(in_child(map_and_check, &e.fd), 0);
	close(e.fd);
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
	struct gdm_export e = gpu_export(&s, 0);
	int sockets[2];

	EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
	send_fd(sockets[0], e.fd);
	EXPECT_EQ(in_child(receive_and_map, sockets), 0);
	close(sockets[0]);
	close(sockets[1]);
	close(e.fd);
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

/* Runs in the program that exec_self() executes. */
__attribute__((constructor)) static void gpu_after_exec(void)
{
	const char *ctx = getenv("GDM_CONTEXT");

	if (ctx)
		_exit(gdm_export_gpu(atoi(ctx), 0x7f4000000000, GPU_PAGE, 0, NULL) == -EACCES ? 0
											      : 1);
}

static void exec_self(void *arg)
{
	char number[16];
	int ctx = gdm_open();

	(void)arg;
	snprintf(number, sizeof(number), "%d", ctx);
	setenv("GDM_CONTEXT", number, 1);
	fcntl(ctx, F_SETFD, 0);
	execl("/proc/self/exe", "exec", NULL);
	_exit(2);
}

TEST(gpu_exec, "An export with a context kept over execve() fails with EACCES.")
{
	struct setup s = gpu_test_begin();

	EXPECT_EQ(in_child(exec_self, NULL), 0);
	gpu_test_end(&s);
}

static void *export_in_thread(void *arg)
{
	const struct setup *s = arg;

	return (void *)(intptr_t)gdm_export_gpu(s->ctx, s->va, LENGTH, 0, NULL);
}

TEST(gpu_thread, "Any thread of the owner can export.")
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

struct export_flags {
	const char *name;
	uint32_t flags;
};

static const struct export_flags kinds_of_export[] = {
	{ "hold", 0 },
	{ "revocable", GDMABUF_REVOCABLE },
	{ "unwatched", GDMABUF_UNWATCHED },
};

TEST_EACH(
	gpu_last_close_elsewhere, struct export_flags, kinds_of_export,
	"The last close in another process unpins everything while the owner and the memory live.")
{
	struct setup s = gpu_test_begin();
	struct consumer c = consumer_start();

	for (int i = 0; i < 10; i++) {
		struct gdm_export e = gpu_export(&s, row->flags);

		EXPECT_EQ(consumer_closes_last(&c, e.fd), 0);
		EVENTUALLY(mockgpu_stats(s.gpu).pins == 0 && mockgpu_stats(s.gpu).persistent == 0);
		EXPECT_EQ(mockgpu_stats(s.gpu).pages_pinned, 0);
	}
	EXPECT_EQ(mockgpu_stats(s.gpu).foreign_puts, s.before.foreign_puts);
	consumer_stop(&c);
	gpu_test_end(&s);
}

static void *wake_often(void *arg)
{
	for (;;)
		usleep(10000); /* time: the thread that is awake at times */
	return arg;
}

/*
 * Exports and sends @dmabufs dma-bufs.  Then the main thread sleeps for good, and
 * another thread wakes up often.
 */
static void sleeping_owner(int socket, int dmabufs)
{
	int gpu = mockgpu_open(), ctx = gdm_open();
	uint64_t va = mockgpu_alloc(gpu, (size_t)dmabufs * GPU_PAGE, 0);
	struct gdm_export e;
	pthread_t thread;

	for (int i = 0; i < dmabufs; i++) {
		if (gdm_export_gpu(ctx, va + (uint64_t)i * GPU_PAGE, GPU_PAGE, GDMABUF_REVOCABLE,
				   &e))
			_exit(1);
		send_fd(socket, e.fd);
		close(e.fd);
	}
	pthread_create(&thread, NULL, wake_often, NULL);
	if (write(socket, "", 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

static int main_thread_sleeps(pid_t pid)
{
	char path[64], state = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "r");
	EXPECT(f);
	EXPECT_EQ(fscanf(f, "%*d %*s %c", &state), 1);
	fclose(f);
	return state == 'S';
}

TEST(gpu_last_close_sleeping_thread,
     "The last close in another process unpins everything even if the owner's main thread sleeps "
     "for good.")
{
	enum { DMABUFS = 8 };
	struct setup s = gpu_test_begin();
	int sockets[2], fds[DMABUFS];
	char byte;
	pid_t pid;

	EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
	pid = fork();
	if (!pid)
		sleeping_owner(sockets[1], DMABUFS);
	for (int i = 0; i < DMABUFS; i++)
		fds[i] = receive_fd(sockets[0]);
	EXPECT_EQ(read(sockets[0], &byte, 1), 1);
	EVENTUALLY(main_thread_sleeps(pid));
	for (int i = 0; i < DMABUFS; i++)
		close(fds[i]);
	EXPECT(pins_go(s.gpu));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(sockets[0]);
	close(sockets[1]);
	gpu_test_end(&s);
}

/* The calls in sleeping threads of process @pid, as the list of contexts counts. */
static int calls_of(pid_t pid)
{
	FILE *f = fopen("/sys/kernel/debug/gdmabuf/contexts", "r");
	int process, calls = 0, n;
	char line[128];

	EXPECT(f);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "process %d, calls in threads that sleep: %d", &process, &n) ==
			    2 &&
		    process == pid)
			calls = n;
	fclose(f);
	return calls;
}

TEST(gpu_calls_listed,
     "The list of contexts shows a call that waits for a sleeping thread, until the process is "
     "stopped and continued.")
{
	struct setup s = gpu_test_begin();
	int sockets[2], fd, status;
	char byte;
	pid_t pid;

	EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
	pid = fork();
	if (!pid)
		sleeping_owner(sockets[1], 1);
	fd = receive_fd(sockets[0]);
	EXPECT_EQ(read(sockets[0], &byte, 1), 1);
	EVENTUALLY(main_thread_sleeps(pid));
	close(fd);
	EXPECT(pins_go(s.gpu));
	EXPECT_EQ(calls_of(pid), 1);
	kill(pid, SIGSTOP);
	EXPECT_EQ(waitpid(pid, &status, WUNTRACED), pid);
	EXPECT(WIFSTOPPED(status));
	kill(pid, SIGCONT);
	EVENTUALLY(calls_of(pid) == 0);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(sockets[0]);
	close(sockets[1]);
	gpu_test_end(&s);
}

TEST(gpu_last_close_after_context,
     "The last close in another process unpins everything after the owner closed the context.")
{
	struct setup s = gpu_test_begin();
	struct gdm_export e = gpu_export(&s, GDMABUF_REVOCABLE);
	struct consumer c = consumer_start();

	close(s.ctx);
	EXPECT_EQ(consumer_closes_last(&c, e.fd), 0);
	EVENTUALLY(mockgpu_stats(s.gpu).pins == 0);
	s.ctx = gdm_open();
	consumer_stop(&c);
	gpu_test_end(&s);
}

TEST(gpu_last_close_after_free,
     "The last close in another process unpins everything, and keeps no watch, after the memory "
     "was freed.")
{
	struct setup s = gpu_test_begin();
	struct gdm_export e = gpu_export(&s, 0);
	struct consumer c = consumer_start();

	mockgpu_free(s.gpu, s.va);
	EXPECT_EQ(consumer_closes_last(&c, e.fd), 0);
	EVENTUALLY(provider_users() == 0);
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
		struct gdm_export e = gpu_export(&s, i % 2 ? GDMABUF_REVOCABLE : 0);

		EXPECT_EQ(consumer_closes_last(&c, e.fd), 0);
		if (mockgpu_stats(s.gpu).pages_pinned > most)
			most = mockgpu_stats(s.gpu).pages_pinned;
	}
	EVENTUALLY(mockgpu_stats(s.gpu).pages_pinned == 0 && provider_users() == 0);
	printf("# %ld cycles of export, pass on, close: left %u pins, %u persistent ones, %u pages "
	       "of the "
	       "BAR, %d references to the driver's module; at most %u pages in between\n",
	       cycles, mockgpu_stats(s.gpu).pins, mockgpu_stats(s.gpu).persistent,
	       mockgpu_stats(s.gpu).pages_pinned, provider_users(), most);
	consumer_stop(&c);
	gpu_test_end(&s);
}

static void pass_on_as_user(void *arg)
{
	int gpu = mockgpu_open(), ctx = gdm_open();
	uint64_t va = mockgpu_alloc(gpu, 40 * LENGTH, 0);
	struct consumer c = consumer_start();

	(void)arg;
	become_user(0);
	for (uint64_t i = 0; i < 40; i++) {
		struct gdm_export e;

		if (gdm_export_gpu(ctx, va + i * LENGTH, LENGTH, GDMABUF_REVOCABLE, &e))
			_exit(1);
		if (consumer_closes_last(&c, e.fd))
			_exit(2);
		if (mockgpu_stats(gpu).pages_pinned > (1 << 20) / GPU_PAGE)
			_exit(3);
	}
	consumer_stop(&c);
}

TEST(gpu_quota_passed_on,
     "No more than the user's quota stays pinned for dma-bufs closed by other processes.")
{
	struct setup s = gpu_test_begin();
	int user;

	parameter_set("gdmabuf", "gpu_quota_mb", "1");
	user = in_child(pass_on_as_user, NULL);
	parameter_set("gdmabuf", "gpu_quota_mb", "0");
	EXPECT_EQ(user, 0);
	gpu_test_end(&s);
}

static void export_and_send(void *arg)
{
	int gpu = mockgpu_open(), ctx = gdm_open();
	uint64_t va = mockgpu_alloc(gpu, LENGTH, 0);
	struct gdm_export e;

	pattern_fill(bytes, LENGTH);
	mockgpu_write(gpu, va, bytes, LENGTH);
	if (gdm_export_gpu(ctx, va, LENGTH, 0, &e))
		_exit(1);
	send_fd(((int *)arg)[0], e.fd);
}

TEST(gpu_owner_exits, "A dma-buf outlives the owner, and the last close frees the memory.")
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
	EVENTUALLY(mockgpu_stats(s.gpu).pages_used == used);
	close(sockets[0]);
	close(sockets[1]);
	gpu_test_end(&s);
}
