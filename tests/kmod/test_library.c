/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libclimport on the real module: descriptors of the library and of the program, and memory that the
 * library keeps exported.
 */
#include "gdm.h"
#include "harness.h"
#include "mockgpu.h"

#include <CL/climport.h>

#include <errno.h>
#include <fake_cuda.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LENGTH = 4 * GPU_PAGE, LAST_FD = 64 };

static struct climport_dmabuf library_export(const void *address, size_t size, unsigned int flags)
{
	struct climport_dmabuf d;

	EXPECT_EQ(climport_export_dmabuf(address, size, flags, &d, sizeof(d)), 0);
	return d;
}

/* The dma-buf that is kept. */
static ino_t library_keep(const void *address, size_t size)
{
	struct climport_dmabuf d = library_export(address, size, CLIMPORT_KEEP);
	struct stat st;

	EXPECT_EQ(fstat(d.fd, &st), 0);
	close(d.fd);
	return st.st_ino;
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

/* Of a context; -1: no context. */
static long count_watches(int fd)
{
	char path[64], line[128];
	long watches = -1;
	FILE *info;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	info = fopen(path, "re");
	while (info && fgets(line, sizeof(line), info))
		if (sscanf(line, "gdmabuf-watches: %ld", &watches) == 1)
			break;
	if (info)
		fclose(info);
	return watches;
}

static void expect_descriptors(const int *own)
{
	for (int i = 3; i < LAST_FD; i++)
		EXPECT_EQ(i % 2 ? count_watches(own[i]) : fcntl(own[i], F_GETFD) < 0, 0);
}

static void export_as_daemon(void *memory)
{
	int own[LAST_FD];

	take_descriptors(own);
	close(library_export(memory, PAGE, 0).fd);
	library_keep(memory, PAGE);
	expect_descriptors(own);
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

TEST(library_kept, "Kept host memory is one dma-buf, and climport_invalidate() unpins the memory.")
{
	unsigned char *p = library_map_host(LENGTH);
	struct climport_stats before = library_read_stats(), after;
	long long watches = gdm_read_total("watches");
	ino_t kept;

	EXPECT_EQ(before.bytes_pinned, 0);
	kept = library_keep(p, LENGTH);
	EXPECT_EQ(library_keep(p + PAGE, PAGE), kept);
	after = library_read_stats();
	EXPECT_EQ(after.bytes_pinned, LENGTH);
	EXPECT_EQ(after.bytes_idle, LENGTH);
	EXPECT_EQ(after.misses - before.misses, 1);
	EXPECT_EQ(after.hits - before.hits, 1);
	EXPECT_EQ(gdm_read_total("host-bytes"), LENGTH);
	EXPECT_EQ(gdm_read_total("watches"), watches + 1);
	climport_invalidate(p + 2 * PAGE, 1);
	EXPECT_EQ(library_read_stats().bytes_pinned, 0);
	EXPECT_EQ(gdm_read_total("watches"), watches);
	EVENTUALLY(!gdm_read_total("host-bytes"));
}

TEST(library_invalidated_in_use, "Memory invalidated during use is unpinned with the last use.")
{
	unsigned char *p = library_map_host(LENGTH);
	struct climport_dmabuf d = library_export(p, LENGTH, CLIMPORT_KEEP);

	climport_invalidate(p, LENGTH);
	EXPECT_EQ(library_read_stats().bytes_pinned, 0);
	EXPECT_EQ(gdm_read_total("host-bytes"), LENGTH);
	close(d.fd);
	EVENTUALLY(!gdm_read_total("host-bytes"));
}

static bool library_unmap(unsigned char *p)
{
	munmap(p, LENGTH);
	return mmap(p, LENGTH, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == p;
}

static bool library_map_over(unsigned char *p)
{
	return mmap(p, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		    0) == p;
}

static bool library_empty(unsigned char *p)
{
	return !madvise(p, PAGE, MADV_DONTNEED);
}

static const struct library_change {
	const char *name;
	bool (*make)(unsigned char *p);
} library_changes[] = {
	{ "unmap", library_unmap },
	{ "map_over", library_map_over },
	{ "empty", library_empty },
};

TEST_EACH(library_changed, struct library_change, library_changes,
	  "Kept host memory whose address gets other pages is exported anew, and the old pages go.")
{
	unsigned char *p = library_map_host(LENGTH), *view;
	ino_t old = library_keep(p, LENGTH);
	struct climport_dmabuf d;
	struct stat st;

	EXPECT(row->make(p));
	p[0] = 77;
	d = library_export(p, LENGTH, CLIMPORT_KEEP);
	EXPECT(!fstat(d.fd, &st) && st.st_ino != old);
	view = dmabuf_map(d.fd, LENGTH, PROT_READ);
	EXPECT(view && view[0] == 77);
	munmap(view, LENGTH);
	close(d.fd);
	EVENTUALLY(gdm_read_total("host-bytes") == LENGTH);
	climport_invalidate(p, LENGTH);
	munmap(p, LENGTH);
}

TEST(library_kept_copies, "A private mapping of a file, of which the export makes copies, is kept.")
{
	int file = memfd_create("file", MFD_CLOEXEC);
	unsigned char *p;
	ino_t kept;

	close(gdm_open());
	EXPECT(!ftruncate(file, LENGTH));
	p = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
	EXPECT(p != MAP_FAILED);
	close(file);
	for (size_t at = 0; at < LENGTH; at += PAGE)
		EXPECT_EQ(*(volatile unsigned char *)(p + at), 0); /* the file's pages */
	kept = library_keep(p, LENGTH);
	p[PAGE] = 1;
	EXPECT_EQ(library_keep(p, LENGTH), kept);
	climport_invalidate(p, LENGTH);
	munmap(p, LENGTH);
}

static void keep_within_memlock(void *memory)
{
	unsigned char *p = memory;
	struct climport_dmabuf d, none = { .fd = -7 };

	become_user(LENGTH);
	library_keep(p, LENGTH);
	d = library_export(p + LENGTH, LENGTH, 0);
	EXPECT_EQ(library_read_stats().bytes_pinned, 0);
	EXPECT_EQ(climport_export_dmabuf(p, PAGE, CLIMPORT_KEEP, &none, sizeof(none)), -EDQUOT);
	EXPECT(strstr(climport_last_error(), "RLIMIT_MEMLOCK (ulimit -l), is reached: it is 256 "
					     "KiB"));
	EXPECT_EQ(none.fd, -7);
	close(d.fd);
	library_keep(p, LENGTH);
}

TEST(library_memlock, "At the limit of locked memory kept memory is given up; if none is kept, the "
		      "error is EDQUOT, with a sentence.")
{
	unsigned char *p = library_map_host(2 * LENGTH);

	EXPECT_EQ(chmod("/dev/gdmabuf", 0666), 0);
	EXPECT_EQ(in_child(keep_within_memlock, p), 0);
	EXPECT_EQ(chmod("/dev/gdmabuf", 0660), 0);
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

TEST(library_pinned_once,
     "The driver pins CUDA memory once for an export, and a kept export shares the pin.")
{
	int gpu = mockgpu_open();
	struct climport_dmabuf d;
	void *p;

	close(gdm_open());
	fake_cuda_reset(1);
	p = library_cuda_alloc(gpu);
	d = library_export(p, LENGTH, CLIMPORT_MAPPABLE);
	EXPECT_EQ(mockgpu_stats(gpu).pins, 1);
	close(d.fd);
	EVENTUALLY(!mockgpu_stats(gpu).pins);
	d = library_export(p, LENGTH, CLIMPORT_MAPPABLE | CLIMPORT_KEEP);
	close(library_export(p, LENGTH, CLIMPORT_MAPPABLE | CLIMPORT_KEEP).fd);
	EXPECT_EQ(mockgpu_stats(gpu).pins, 1);
	close(d.fd);
	EXPECT_EQ(mockgpu_stats(gpu).pins, 1);
	climport_invalidate(p, LENGTH);
	EVENTUALLY(!mockgpu_stats(gpu).pins);
	close(gpu);
}
