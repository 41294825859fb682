/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libclimport on the real module: descriptors of the library and of the program, and the life of
 * kept pins.
 */
#include "gdm.h"
#include "harness.h"
#include "mockgpu.h"

#include <CL/climport.h>

#include <errno.h>
#include <fake_cuda.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LENGTH = 4 * GPU_PAGE, LAST_FD = 64 };

static struct climport_dmabuf library_export(const void *address, size_t size, unsigned int flags)
{
	struct climport_dmabuf d;

	EXPECT_EQ(climport_export_dmabuf(address, size, flags, &d, sizeof(d)), 0);
	return d;
}

static void library_keep(const void *address, size_t size)
{
	close(library_export(address, size, CLIMPORT_KEEP).fd);
}

static struct climport_stats library_read_stats(void)
{
	struct climport_stats s;

	climport_get_stats(&s, sizeof(s));
	return s;
}

/* New pages.  The export before makes the library open a context. */
static unsigned char *library_map_host(size_t size)
{
	unsigned char *p = pages_new(size, 1);

	close(gdm_open());
	close(library_export(p, PAGE, 0).fd);
	return p;
}

/*
 * Closes all descriptors, the library's included, and opens the numbers again: every second number
 * is a context of the program.
 */
static void take_descriptors(int *own)
{
	for (int fd = 3; fd < LAST_FD; fd++)
		close(fd);
	for (int i = 3; i < LAST_FD; i++)
		own[i] = i % 2 ? gdm_open() : open("/dev/null", O_RDWR | O_CLOEXEC);
}

static void expect_descriptors(const int *own)
{
	for (int i = 3; i < LAST_FD; i++)
		EXPECT_EQ(i % 2 ? gdm_stats(own[i]).out_exports : fcntl(own[i], F_GETFD) < 0, 0);
}

static void export_as_daemon(void *memory)
{
	int own[LAST_FD];

	take_descriptors(own);
	close(library_export(memory, PAGE, 0).fd);
	library_keep(memory, PAGE);
	climport_invalidate(memory, PAGE);
	EXPECT_EQ(library_read_stats().bytes_pinned, 0);
	expect_descriptors(own);
	for (int i = 3; i < LAST_FD; i++)
		close(own[i]);
	close(library_export(memory, PAGE, 0).fd);
}

TEST(library_daemon,
     "A daemon that has closed all descriptors can export, and its new descriptors stay open.")
{
	EXPECT_EQ(in_child(export_as_daemon, library_map_host(LENGTH)), 0);
}

static void export_first(void *memory)
{
	int status = -1;
	pid_t child;

	if (getpid() != 1 || unshare(CLONE_NEWPID))
		_exit(2);
	close(library_export(memory, PAGE, 0).fd);
	child = fork();
	if (!child) {
		struct climport_dmabuf d;

		_exit(getpid() == 1 && !climport_export_dmabuf(memory, PAGE, 0, &d, sizeof(d)) ? 0
											       : 3);
	}
	EXPECT_EQ(waitpid(child, &status, 0), child);
	EXPECT_EQ(status, 0);
}

enum { NO_NAMESPACES = 77 };

static void export_in_namespace(void *memory)
{
	if (unshare(CLONE_NEWPID))
		_exit(errno == EINVAL ? NO_NAMESPACES : 4);
	_exit(in_child(export_first, memory));
}

TEST(library_same_pid, "A child with the pid of its parent, in a new PID namespace, can export.")
{
	int status = in_child(export_in_namespace, library_map_host(LENGTH));

	if (status == NO_NAMESPACES)
		test_skip("the kernel has no PID namespaces");
	EXPECT_EQ(status, 0);
}

TEST(library_kept, "Kept host memory is counted, and climport_invalidate() unpins the memory.")
{
	unsigned char *p = library_map_host(LENGTH);
	struct climport_stats before = library_read_stats(), after;

	EXPECT_EQ(before.bytes_pinned, 0);
	library_keep(p, LENGTH);
	library_keep(p + PAGE, PAGE);
	after = library_read_stats();
	EXPECT_EQ(after.bytes_pinned, LENGTH);
	EXPECT_EQ(after.bytes_idle, LENGTH);
	EXPECT_EQ(after.misses - before.misses, 1);
	EXPECT_EQ(after.hits - before.hits, 1);
	EXPECT_EQ(gdm_read_total("host-bytes"), LENGTH);
	climport_invalidate(p + 2 * PAGE, 1);
	EXPECT_EQ(library_read_stats().bytes_pinned, 0);
	EVENTUALLY(!gdm_read_total("host-bytes"));
}

TEST(library_kept_part,
     "A kept part keeps the pin of the whole range, and climport_invalidate() of another part "
     "unpins the range.")
{
	unsigned char *p = library_map_host(LENGTH);
	struct climport_dmabuf whole = library_export(p, LENGTH, 0);

	library_keep(p + PAGE, PAGE);
	close(whole.fd);
	EXPECT_EQ(library_read_stats().bytes_idle, LENGTH);
	climport_invalidate(p + LENGTH - PAGE, PAGE);
	EXPECT_EQ(library_read_stats().bytes_pinned, 0);
}

TEST(library_invalidated_in_use, "A pin invalidated during use is unpinned with the last use.")
{
	unsigned char *p = library_map_host(LENGTH);
	struct climport_dmabuf d = library_export(p, LENGTH, CLIMPORT_KEEP);

	climport_invalidate(p, LENGTH);
	EXPECT_EQ(library_read_stats().bytes_pinned, LENGTH);
	EXPECT_EQ(library_read_stats().bytes_idle, 0);
	close(d.fd);
	EVENTUALLY(!library_read_stats().bytes_pinned);
}

TEST(library_limit, "Idle pins never exceed the limit of climport_set_limits().")
{
	unsigned char *p = library_map_host(LENGTH);

	for (int i = 0; i < 4; i++)
		library_keep(p + i * GPU_PAGE, PAGE);
	EXPECT_EQ(library_read_stats().bytes_idle, 4 * PAGE);
	EXPECT_EQ(climport_set_limits(CLIMPORT_HOST, 3 * PAGE, UINT64_MAX), 0);
	EXPECT_EQ(library_read_stats().bytes_idle, 3 * PAGE);
	EXPECT_EQ(climport_set_limits(CLIMPORT_HOST, 0, UINT64_MAX), 0);
	library_keep(p, PAGE);
	EVENTUALLY(!library_read_stats().bytes_pinned);
	EXPECT_EQ(climport_set_limits(CLIMPORT_HOST, UINT64_MAX, UINT64_MAX), 0);
}

static void *library_cuda_alloc(int gpu)
{
	uintptr_t va = mockgpu_alloc(gpu, LENGTH, 0);

	EXPECT_EQ(fake_cuda_alloc_at(0, LENGTH, va), va);
	return (void *)va;
}

TEST(library_unwatched,
     "The driver pins CUDA memory once for an export, and twice for a kept export.")
{
	int gpu = mockgpu_open();
	struct climport_dmabuf d;
	void *p;

	close(gdm_open());
	fake_cuda_reset(1);
	p = library_cuda_alloc(gpu);
	d = library_export(p, LENGTH, CLIMPORT_MAPPABLE);
	EXPECT_EQ(mockgpu_stats(gpu).persistent, 1);
	EXPECT_EQ(mockgpu_stats(gpu).pins, 0);
	close(d.fd);
	EVENTUALLY(!mockgpu_stats(gpu).persistent);
	d = library_export(p, LENGTH, CLIMPORT_MAPPABLE | CLIMPORT_KEEP);
	EXPECT_EQ(mockgpu_stats(gpu).persistent, 1);
	EXPECT_EQ(mockgpu_stats(gpu).pins, 1);
	close(d.fd);
	climport_invalidate(p, LENGTH);
	EVENTUALLY(!mockgpu_stats(gpu).persistent && !mockgpu_stats(gpu).pins);
	close(gpu);
}

/* Whether a page can be read.  The kernel reads the page for the process: SIGBUS becomes EFAULT. */
static int can_be_read(const void *memory)
{
	int ends[2], ret;

	EXPECT_EQ(pipe(ends), 0);
	ret = write(ends[1], memory, 1) == 1;
	EXPECT(ret || errno == EFAULT);
	close(ends[0]);
	close(ends[1]);
	return ret;
}

TEST(library_revocable, "After a free, an old mapping of revocable memory cannot be read.")
{
	int gpu = mockgpu_open();
	uint64_t va = mockgpu_alloc(gpu, LENGTH, 0);
	struct climport_dmabuf d;
	unsigned char *view;

	close(gdm_open());
	fake_cuda_reset(1);
	mockgpu_write(gpu, va, "x", 1);
	d = library_export((void *)(uintptr_t)va, LENGTH, CLIMPORT_REVOCABLE);
	view = dmabuf_map(d.fd, LENGTH, PROT_READ);
	EXPECT_EQ(can_be_read(view), 1);
	mockgpu_free(gpu, va);
	EXPECT_EQ(can_be_read(view), 0);
	munmap(view, LENGTH);
	close(d.fd);
	close(gpu);
}

TEST(library_revocable_host, "A revocable export of host memory fails with EFAULT.")
{
	struct climport_dmabuf d = { .fd = -7 };

	EXPECT_EQ(climport_export_dmabuf(library_map_host(PAGE), PAGE, CLIMPORT_REVOCABLE, &d,
					 sizeof(d)),
		  -EFAULT);
	EXPECT_EQ(d.fd, -7);
}
