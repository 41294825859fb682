/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts: who may use one, and what it costs.  Mappings of dma-bufs and of the status page. */
#include "host_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* Returns 0 if every call on @ctx fails with EACCES. */
static int context_is_refused(int ctx)
{
	unsigned char *page = pages_new(PAGE, 0);
	struct gdmabuf_caps caps = { .size = sizeof(caps) };
	struct gdm_watch watch = { 0 };

	if (gdm_call(ctx, GDMABUF_CAPS, &caps) != -EACCES)
		return 1;
	if (gdm_export_host(ctx, page, PAGE, 0, NULL) != -EACCES)
		return 2;
	if (gdm_export_gpu(ctx, 0x7f4000000000, GPU_PAGE, 0, NULL) != -EACCES)
		return 3;
	if (gdm_watch_host(ctx, page, PAGE, &watch) != -EACCES)
		return 4;
	if (gdm_unwatch(ctx, &watch) != -EACCES)
		return 5;
	if (mmap(NULL, PAGE, PROT_READ, MAP_SHARED, ctx, 0) != MAP_FAILED || errno != EACCES)
		return 6;
	return 0;
}

static void other_process(void *arg)
{
	_exit(context_is_refused(*(int *)arg));
}

TEST(host_context_inherited, "Every call on a context inherited by fork() fails with EACCES.")
{
	int ctx = gdm_open();

	EXPECT_EQ(in_child(other_process, &ctx), 0);
	close(ctx);
}

/* Runs in the program that exec_self() executes. */
__attribute__((constructor)) static void context_after_exec(void)
{
	const char *ctx = getenv("GDM_CONTEXT");

	if (ctx)
		_exit(context_is_refused(atoi(ctx)));
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
	_exit(98);
}

TEST(host_context_exec, "Every call on a context kept over execve() fails with EACCES.")
{
	EXPECT_EQ(in_child(exec_self, NULL), 0);
}

TEST(host_context_same_memory,
     "A child that shares its parent's memory, after vfork(), can use the parent's context.")
{
	unsigned char *p = pages_new(PAGE, 1);
	int ctx = gdm_open(), status;
	pid_t pid = vfork();

	if (!pid)
		_exit(gdm_export_host(ctx, p, PAGE, 0, NULL) ? 1 : 0);
	EXPECT(pid > 0);
	EXPECT_EQ(waitpid(pid, &status, 0), pid);
	EXPECT_EQ(status, 0);
	close(ctx);
	munmap(p, PAGE);
}

static void receive_and_check(void *arg)
{
	int *sockets = arg, fd = receive_fd(sockets[1]);
	unsigned char *view = dmabuf_map(fd, LENGTH, PROT_READ | PROT_WRITE);

	if (!view || pattern_mismatches(view, LENGTH))
		_exit(1);
	view[0] = 33;
}

TEST(host_other_process, "A dma-buf works in the process that receives the descriptor.")
{
	struct setup s = host_test_begin(1, 0);
	int sockets[2];

	EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
	send_fd(sockets[0], s.fd);
	EXPECT_EQ(in_child(receive_and_check, sockets), 0);
	EXPECT_EQ(s.p[0], 33);
	close(sockets[0]);
	close(sockets[1]);
	host_test_end(&s);
}

/* ---- what contexts cost ---- */

static long long context_memory_kib(void)
{
	FILE *f = fopen("/proc/meminfo", "re");
	long long free_kib = -1;
	char line[128];

	EXPECT(f);
	while (free_kib < 0 && fgets(line, sizeof(line), f))
		sscanf(line, "MemFree: %lld", &free_kib);
	fclose(f);
	return free_kib;
}

enum { CONTEXTS = 4000, MOST_BYTES = 2048 };

/* How many KiB of memory CONTEXTS open files of @path take. */
static long long context_files_take(const char *path)
{
	static int fds[CONTEXTS];
	long long before = context_memory_kib(), took;

	for (int i = 0; i < CONTEXTS; i++) {
		fds[i] = open(path, O_RDWR | O_CLOEXEC);
		if (fds[i] < 0)
			_exit(99);
	}
	took = before - context_memory_kib();
	for (int i = 0; i < CONTEXTS; i++)
		close(fds[i]);
	return took;
}

static void context_compare(void)
{
	struct rlimit limit = { CONTEXTS + 100, CONTEXTS + 100 };
	long long plain, ours;

	if (!access("/sys/kernel/debug/kmemleak", F_OK))
		test_skip("the debug kernel keeps notes of each allocation");
	EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
	context_files_take("/dev/null"); /* the table of descriptors grows only once */
	plain = context_files_take("/dev/null");
	ours = context_files_take("/dev/gdmabuf");
	printf("# %d open files take %lld KiB, contexts %lld KiB\n", CONTEXTS, plain, ours);
	EXPECT((ours - plain) * 1024 < CONTEXTS * MOST_BYTES);
}

TEST(host_context_small, "A context without watches takes less than 2 KiB more than an open file.")
{
	close(gdm_open());
	test_in_child(context_compare);
}

/* ---- mappings ---- */

TEST(host_mmap_private, "A private mapping of a dma-buf is refused.")
{
	struct setup s = host_test_begin(1, 0);

	EXPECT(mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_PRIVATE, s.fd, 0) == MAP_FAILED);
	EXPECT_EQ(errno, EINVAL);
	/* A single page: the kernel itself may refuse a private mapping of several runs. */
	EXPECT(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, s.fd, 0) == MAP_FAILED);
	EXPECT_EQ(errno, EINVAL);
	host_test_end(&s);
}

TEST(host_mmap_part,
     "A mapping with an offset shows a part of the dma-buf; a mapping beyond the end is refused.")
{
	struct setup s = host_test_begin(1, 0);
	unsigned char *view = mmap(NULL, 2 * PAGE, PROT_READ, MAP_SHARED, s.fd, 9 * PAGE);

	EXPECT(view != MAP_FAILED);
	EXPECT_EQ(memcmp(view, s.p + 9 * PAGE, 2 * PAGE), 0);
	EXPECT(mmap(NULL, 2 * PAGE, PROT_READ, MAP_SHARED, s.fd, LENGTH - PAGE) == MAP_FAILED);
	EXPECT(mmap(NULL, PAGE, PROT_READ, MAP_SHARED, s.fd, LONG_MAX & -(long)PAGE) == MAP_FAILED);
	munmap(view, 2 * PAGE);
	host_test_end(&s);
}

TEST(host_mapping_split,
     "A mapping that is split, moved and partly unmapped shows the right pages.")
{
	struct setup s = host_test_begin(1, 0);
	unsigned char *view = dmabuf_map(s.fd, LENGTH, PROT_READ), *moved;

	munmap(view + 4 * PAGE, PAGE);
	moved = mremap(view + 8 * PAGE, 8 * PAGE, 8 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED,
		       pages_new(8 * PAGE, 0));
	EXPECT(moved != MAP_FAILED);
	EXPECT_EQ(memcmp(moved, s.p + 8 * PAGE, 8 * PAGE), 0);
	EXPECT_EQ(memcmp(view, s.p, 4 * PAGE), 0);
	EXPECT(mremap(moved, 8 * PAGE, 16 * PAGE, MREMAP_MAYMOVE) == MAP_FAILED);
	munmap(moved, 8 * PAGE);
	munmap(view, LENGTH);
	host_test_end(&s);
}

TEST(host_mapping_dontneed, "A mapping of a dma-buf cannot lose its pages by MADV_DONTNEED.")
{
	struct setup s = host_test_begin(1, 0);
	unsigned char *view = dmabuf_map(s.fd, LENGTH, PROT_READ);

	EXPECT_EQ(madvise(view, LENGTH, MADV_DONTNEED), -1);
	EXPECT_EQ(errno, EINVAL);
	EXPECT_EQ(pattern_mismatches(view, LENGTH), 0);
	munmap(view, LENGTH);
	host_test_end(&s);
}

TEST(host_status_read_only, "The status page can be neither mapped for writing nor made writable.")
{
	const off_t end = (off_t)((STATUS_BYTES + PAGE - 1) / PAGE * PAGE);
	int ctx = gdm_open();
	void *status = (void *)(uintptr_t)gdm_status(ctx);

	EXPECT(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, ctx, 0) == MAP_FAILED);
	EXPECT_EQ(errno, EACCES);
	EXPECT_EQ(mprotect(status, PAGE, PROT_READ | PROT_WRITE), -1);
	EXPECT_EQ(errno, EACCES);
	EXPECT(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, ctx, 0) == MAP_FAILED);
	EXPECT(mmap(NULL, PAGE, PROT_READ, MAP_SHARED, ctx, end) == MAP_FAILED);
	munmap(status, STATUS_BYTES);
	close(ctx);
}

static void read_status(void *status)
{
	(void)*(const volatile uint32_t *)status;
}

TEST(host_status_not_inherited, "A child has no mapping of its parent's status page.")
{
	int ctx = gdm_open();
	void *status = (void *)(uintptr_t)gdm_status(ctx);

	EXPECT_EQ(in_child(read_status, status), 128 + SIGSEGV);
	munmap(status, STATUS_BYTES);
	close(ctx);
}

TEST(host_rmmod_busy,
     "A context, a dma-buf, a mapping and a status page each keep the module loaded.")
{
	unsigned char *p = pages_new(PAGE, 1), *view;
	int before = gdm_module_users("gdmabuf"), ctx = gdm_open(), fd;
	void *status;

	EXPECT_EQ(gdm_module_users("gdmabuf"), before + 1);
	status = (void *)(uintptr_t)gdm_status(ctx);
	EXPECT_EQ(gdm_export_host(ctx, p, PAGE, 0, &fd), 0);
	close(ctx);
	EXPECT(gdm_module_users("gdmabuf") > before + 1);
	munmap(status, STATUS_BYTES);
	EXPECT_EQ(gdm_module_users("gdmabuf"), before + 1);
	view = dmabuf_map(fd, PAGE, PROT_READ);
	close(fd);
	EXPECT_EQ(gdm_module_users("gdmabuf"), before + 1);
	munmap(view, PAGE);
	EXPECT_EQ(gdm_module_users("gdmabuf"), before);
	munmap(p, PAGE);
}
