/* SPDX-License-Identifier: Apache-2.0 */
/* Exports of mappings of files: shared and private, small pages and huge pages. */
#include "host_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

/*
 * Maps a file of LENGTH bytes, shared.  The file's file system writes pages back, so long-term
 * writable pins are refused; tmpfs would permit such pins.
 */
static unsigned char *file_map(int prot, char *path)
{
	int file = mkstemp(path);
	unsigned char *p;

	EXPECT(file >= 0);
	for (int i = 0; i < PAGES; i++)
		EXPECT_EQ(pwrite(file, &(char){ (char)i }, 1, (off_t)i * PAGE), 1);
	EXPECT_EQ(ftruncate(file, LENGTH), 0);
	p = mmap(NULL, LENGTH, prot, MAP_SHARED, file, 0);
	close(file);
	if (p == MAP_FAILED) {
		unlink(path);
		test_skip("this file system has no shared mappings");
	}
	return p;
}

static void export_file(int prot)
{
	char path[] = "gdmabuf-XXXXXX";
	unsigned char *p = file_map(prot, path), *view;
	int ctx = gdm_open(), err, fd;

	err = gdm_export_host(ctx, p, LENGTH, GDMABUF_READ_ONLY, &fd);
	unlink(path);
	EXPECT_EQ(err, 0);
	view = dmabuf_map(fd, LENGTH, PROT_READ);
	for (int i = 0; i < PAGES; i++)
		EXPECT_EQ(view[i * PAGE], i);
	if (prot & PROT_WRITE) {
		p[1] = 0x5a;
		EXPECT_EQ(view[1], 0x5a);
	}
	munmap(view, LENGTH);
	close(fd);
	close(ctx);
	munmap(p, LENGTH);
}

TEST(host_read_only_file, "A read-only export of a file's mapping shows the bytes of the file.")
{
	export_file(PROT_READ);
}

TEST(host_read_only_writable_file,
     "A read-only export of a writable shared mapping of a file shows later writes to the mapping.")
{
	export_file(PROT_READ | PROT_WRITE);
}

TEST(host_writable_file,
     "A writable export of a shared file mapping fails with EFAULT: the file system would miss "
     "the writes.")
{
	char path[] = "gdmabuf-XXXXXX";
	unsigned char *p = file_map(PROT_READ | PROT_WRITE, path);
	int ctx = gdm_open(), err;

	err = gdm_export_host(ctx, p, LENGTH, 0, NULL);
	unlink(path);
	EXPECT_EQ(err, -EFAULT);
	close(ctx);
	munmap(p, LENGTH);
}

TEST(host_private_copies,
     "An export of a private mapping of a file first gives the process copies of the file's pages.")
{
	int file = memfd_create("private", MFD_CLOEXEC), ctx = gdm_open(), fd;
	unsigned char *shared, *p, *view;

	EXPECT_EQ(ftruncate(file, LENGTH), 0);
	shared = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	p = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
	EXPECT(shared != MAP_FAILED && p != MAP_FAILED);
	pattern_fill(shared, LENGTH);
	EXPECT_EQ(pattern_mismatches(p, LENGTH), 0);
	EXPECT_EQ(gdm_export_host(ctx, p, LENGTH, 0, &fd), 0);
	view = dmabuf_map(fd, LENGTH, PROT_READ | PROT_WRITE);
	memset(shared, 0x5a, LENGTH);
	EXPECT_EQ(pattern_mismatches(view, LENGTH), 0);
	view[PAGE] = 7;
	EXPECT_EQ(p[PAGE], 7);
	EXPECT_EQ(shared[PAGE], 0x5a);
	munmap(view, LENGTH);
	munmap(p, LENGTH);
	munmap(shared, LENGTH);
	close(fd);
	close(ctx);
	close(file);
}

/* ---- private mappings without PROT_WRITE ---- */

/* With pages of 64 KiB, tests of huge pages skip. */
#define PRIVATE_LENGTH (PAGE < GPU_PAGE ? 2 * HUGE_PAGE : 64 * PAGE)

/* Prints to a file of the kernel. */
static void host_file_set(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		test_skip("%s: %s", path, strerror(errno));
	close(fd);
}

/* Maps @file at an address at which the kernel can map huge pages. */
static unsigned char *host_file_map(int file, int prot, int flags)
{
	uintptr_t space = (uintptr_t)mmap(NULL, PRIVATE_LENGTH + HUGE_PAGE, PROT_NONE,
					  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *at = (void *)((space + HUGE_PAGE - 1) & -(uintptr_t)HUGE_PAGE);

	EXPECT((void *)space != MAP_FAILED);
	EXPECT(mmap(at, PRIVATE_LENGTH, prot, flags | MAP_FIXED, file, 0) == at);
	return at;
}

/* Fills @file, a new file, with the bytes of pattern_at(). */
static int host_file_fill(int file, int advice)
{
	unsigned char *p;

	if (file < 0 || ftruncate(file, PRIVATE_LENGTH))
		test_skip("no such file: %s", strerror(errno));
	p = host_file_map(file, PROT_READ | PROT_WRITE, MAP_SHARED);
	madvise(p, PRIVATE_LENGTH, advice);
	pattern_fill(p, PRIVATE_LENGTH);
	munmap(p, PRIVATE_LENGTH);
	return file;
}

static int host_file_small(void)
{
	return host_file_fill(memfd_create("small", MFD_CLOEXEC), MADV_NOHUGEPAGE);
}

static int host_file_huge(void)
{
	gdm_need_huge_pages();
	host_file_set("/sys/kernel/mm/transparent_hugepage/shmem_enabled", "advise");
	return host_file_fill(memfd_create("huge", MFD_CLOEXEC), MADV_HUGEPAGE);
}

static int host_file_hugetlb(void)
{
	gdm_need_huge_pages();
	host_file_set("/proc/sys/vm/nr_hugepages", "4");
	return host_file_fill(memfd_create("hugetlb", MFD_CLOEXEC | MFD_HUGETLB), MADV_NORMAL);
}

static int host_file_disk(void)
{
	unsigned char *bytes = pages_new(PRIVATE_LENGTH, 1);
	char path[] = "gdmabuf-XXXXXX";
	int file = mkstemp(path);

	EXPECT(file >= 0);
	unlink(path);
	EXPECT_EQ(write(file, bytes, PRIVATE_LENGTH), PRIVATE_LENGTH);
	munmap(bytes, PRIVATE_LENGTH);
	return file;
}

/* How much of the process's memory huge pages of files are mapped to at once. */
static long host_file_huge_kib(void)
{
	FILE *f = fopen("/proc/self/smaps_rollup", "re");
	char line[128];
	long kib = 0;

	EXPECT(f);
	while (fgets(line, sizeof(line), f) && sscanf(line, "ShmemPmdMapped: %ld", &kib) != 1)
		;
	fclose(f);
	return kib;
}

static void host_file_leave(unsigned char *p)
{
	(void)p;
}

static void host_file_read(unsigned char *p)
{
	EXPECT_EQ(pattern_mismatches(p, PRIVATE_LENGTH), 0);
}

static void host_file_read_huge(unsigned char *p)
{
	host_file_read(p);
	EXPECT_EQ(host_file_huge_kib(), PRIVATE_LENGTH >> 10);
}

/* One page is the process's copy. */
static void host_file_write(unsigned char *p)
{
	EXPECT_EQ(mprotect(p, PRIVATE_LENGTH, PROT_READ | PROT_WRITE), 0);
	*(volatile unsigned char *)&p[4 * PAGE] = pattern_at(4 * PAGE);
	EXPECT_EQ(mprotect(p, PRIVATE_LENGTH, PROT_READ), 0);
}

static void host_file_fork(unsigned char *p)
{
	host_file_write(p);
	if (fork())
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	pause();
}

static const struct private_file {
	const char *name;
	int (*make)(void);
	int prot;
	void (*use)(unsigned char *p);
	enum { WHOLE, INNER, ACROSS } part; /* of the file: what is exported */
} private_files[] = {
	{ "small", host_file_small, PROT_READ, host_file_read, WHOLE },
	{ "small_untouched", host_file_small, PROT_READ, host_file_leave, WHOLE },
	{ "disk", host_file_disk, PROT_READ, host_file_read, WHOLE },
	{ "hugetlb", host_file_hugetlb, PROT_READ, host_file_read, WHOLE },
	{ "huge", host_file_huge, PROT_READ, host_file_read_huge, WHOLE },
	{ "huge_untouched", host_file_huge, PROT_READ, host_file_leave, WHOLE },
	{ "huge_part", host_file_huge, PROT_READ, host_file_read_huge, INNER },
	{ "huge_across", host_file_huge, PROT_READ, host_file_read, ACROSS },
	{ "huge_code", host_file_huge, PROT_READ | PROT_EXEC, host_file_read, WHOLE },
	{ "huge_written", host_file_huge, PROT_READ, host_file_write, WHOLE },
	{ "huge_forked", host_file_huge, PROT_READ, host_file_fork, WHOLE },
};

static const struct private_file *private_file;

/* The process is killed if the kernel never ends the pin. */
static void host_file_export(void)
{
	const struct private_file *row = private_file;
	int ctx = gdm_open(), file = row->make(), fd, again;
	unsigned char *p = host_file_map(file, row->prot, MAP_PRIVATE), *at = p, *view;
	size_t length = PRIVATE_LENGTH;
	struct gdm_watch watch;

	if (row->part == INNER) {
		at += 3 * PAGE;
		length = 5 * PAGE;
	} else if (row->part == ACROSS) {
		at += HUGE_PAGE - PAGE;
		length = 2 * PAGE;
	}
	row->use(p);
	alarm(TEST_HANG_S);
	EXPECT_EQ(gdm_export_host(ctx, at, length, 0, NULL), -EACCES);
	EXPECT_EQ(gdm_export_host(ctx, at, length, GDMABUF_READ_ONLY, &fd), 0);
	view = dmabuf_map(fd, length, PROT_READ);
	EXPECT(view);
	EXPECT_EQ(memcmp(view, at, length), 0);
	EXPECT_EQ(pattern_mismatches(p, PRIVATE_LENGTH), 0);
	EXPECT_EQ(gdm_watch_host(ctx, at, length, &watch), 0);
	EXPECT_EQ(gdm_export_host(ctx, at, length, GDMABUF_READ_ONLY, &again), 0);
	EXPECT(gdm_is_current(gdm_status(ctx), &watch));
}

TEST_EACH(
	host_private_file, struct private_file, private_files,
	"A read-only export of a private mapping of a file that may not be written ends, and shows "
	"the bytes of the file; a second export leaves a watch current.")
{
	private_file = row;
	test_in_child(host_file_export);
}
