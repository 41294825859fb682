/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exports by udmabuf, and memory of climport's for such exports, on a fake of /dev/udmabuf.  The real
 * device is tested in a guest (tests/lib/test_climport_udmabuf.c).
 */
#include "fake_udmabuf.h"
#include "harness.h"
#include "import/alloc/memory.h"
#include "import/export/export.h"
#include "process.h"
#include "util/log.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE ((size_t)sysconf(_SC_PAGESIZE))
#define MIB ((size_t)1 << 20)
#define SIZE (16 * PAGE)

static int udmabuf_memfd(unsigned int seals)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	EXPECT(fd >= 0 && !ftruncate(fd, SIZE));
	EXPECT(!seals || !fcntl(fd, F_ADD_SEALS, seals));
	return fd;
}

static uintptr_t udmabuf_map(int fd, int flags, int protection)
{
	void *p = mmap(NULL, SIZE, protection, flags, fd, 0);

	EXPECT(p != MAP_FAILED);
	return (uintptr_t)p;
}

static struct export_range udmabuf_export(uintptr_t address, size_t size, unsigned int options)
{
	struct export_range range = { -7, 7, 7 };

	EXPECT_EQ(export_dmabuf(address, size, options, &range), 0);
	EXPECT(fcntl(range.fd, F_GETFD) & FD_CLOEXEC);
	return range;
}

static int udmabuf_export_error(uintptr_t address, size_t size, unsigned int options)
{
	struct export_range range = { -7, 7, 7 };
	int fds = process_count_descriptors(), ret = export_dmabuf(address, size, options, &range);

	EXPECT_EQ(range.fd, -7);
	EXPECT_EQ(process_count_descriptors(), fds);
	return ret;
}

/* The first export opens /proc/self/maps for the process. */
static void udmabuf_begin(void)
{
	struct export_range range;

	fake_udmabuf_reset();
	EXPECT(export_dmabuf(PAGE, PAGE, 0, &range) < 0);
	log_clear();
}

TEST(memfd, "Without the module, a shared mapping of a sealed memfd is exported by udmabuf, and "
	    "nothing but the dma-buf is left.")
{
	struct export_range range;
	uintptr_t p;
	int fd, fds;

	udmabuf_begin();
	fd = udmabuf_memfd(F_SEAL_SHRINK);
	p = udmabuf_map(fd, MAP_SHARED, PROT_READ | PROT_WRITE);
	fds = process_count_descriptors();
	range = udmabuf_export(p + 2 * PAGE + 5, 100, EXPORT_KEEP | EXPORT_MAPPABLE);
	EXPECT_EQ(process_count_descriptors(), fds + 1);
	EXPECT_EQ(range.offset, 5);
	EXPECT_EQ(range.whole, PAGE);
	EXPECT_EQ(fake_udmabuf.offset, 2 * PAGE);
	EXPECT_EQ(fake_udmabuf.size, PAGE);
	EXPECT(!*log_last());
	close(range.fd);
	close(fd);
	munmap((void *)p, SIZE);
}

TEST(part_mapped, "The offset in the memfd counts from the beginning of the file.")
{
	int fd = udmabuf_memfd(F_SEAL_SHRINK);
	void *p = mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 4 * PAGE);

	udmabuf_begin();
	EXPECT(p != MAP_FAILED);
	close(udmabuf_export((uintptr_t)p + PAGE - 1, 2, 0).fd);
	EXPECT_EQ(fake_udmabuf.offset, 4 * PAGE);
	EXPECT_EQ(fake_udmabuf.size, 2 * PAGE);
	close(fd);
	munmap(p, 8 * PAGE);
}

TEST(split,
     "A range of several mappings of a memfd is exported if the file goes on from mapping to "
     "mapping.")
{
	int fd = udmabuf_memfd(F_SEAL_SHRINK);
	uintptr_t p = udmabuf_map(fd, MAP_SHARED, PROT_READ | PROT_WRITE);

	udmabuf_begin();
	EXPECT(!madvise((void *)(p + 4 * PAGE), PAGE, MADV_DONTFORK));
	close(udmabuf_export(p, SIZE, 0).fd);
	EXPECT_EQ(fake_udmabuf.size, SIZE);
	EXPECT(mmap((void *)(p + PAGE), PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
		    0) != MAP_FAILED);
	EXPECT_EQ(udmabuf_export_error(p, SIZE, 0), -ENXIO);
	EXPECT_EQ(fake_udmabuf.creates, 1);
	close(fd);
	munmap((void *)p, SIZE);
}

static const struct unsuitable_row {
	const char *name;
	int map, protection;
	unsigned int seals, options;
	const char *sentence;
} unsuitable[] = {
	{ "private", MAP_PRIVATE, PROT_READ | PROT_WRITE, F_SEAL_SHRINK, 0, "/dev/gdmabuf" },
	{ "not_written", MAP_SHARED, PROT_READ, F_SEAL_SHRINK, 0, "/dev/gdmabuf" },
	{ "anonymous", MAP_SHARED | MAP_ANONYMOUS, PROT_READ | PROT_WRITE, F_SEAL_SHRINK, 0,
	  "/dev/gdmabuf" },
	{ "read_only_export", MAP_SHARED, PROT_READ | PROT_WRITE, F_SEAL_SHRINK, EXPORT_READ_ONLY,
	  "/dev/gdmabuf" },
	{ "unsealed", MAP_SHARED, PROT_READ | PROT_WRITE, 0, 0, "F_SEAL_SHRINK" },
};

TEST_EACH(unsuitable, struct unsuitable_row, unsuitable,
	  "Memory that udmabuf cannot export is -ENXIO as without udmabuf, and a memfd is not "
	  "sealed.")
{
	int fd = udmabuf_memfd(row->seals), anonymous = row->map & MAP_ANONYMOUS;
	uintptr_t p = udmabuf_map(anonymous ? -1 : fd, row->map, row->protection);

	udmabuf_begin();
	EXPECT_EQ(udmabuf_export_error(p, SIZE, row->options), -ENXIO);
	EXPECT(strstr(log_last(), row->sentence));
	EXPECT_EQ(fake_udmabuf.creates, 0);
	EXPECT_EQ(fcntl(fd, F_GET_SEALS), (int)row->seals);
	close(fd);
	munmap((void *)p, SIZE);
}

TEST(too_large, "A range larger than udmabuf's limit is -ENXIO, and the sentence names the limit.")
{
	int fd = udmabuf_memfd(F_SEAL_SHRINK);
	uintptr_t p = udmabuf_map(fd, MAP_SHARED, PROT_READ | PROT_WRITE);

	udmabuf_begin();
	fake_udmabuf.limit = SIZE - PAGE;
	EXPECT_EQ(udmabuf_export_error(p, SIZE, 0), -ENXIO);
	EXPECT(strstr(log_last(), "size_limit_mb"));
	close(fd);
	munmap((void *)p, SIZE);
}

TEST(no_memory, "A lack of memory in udmabuf is -ENOMEM.")
{
	int fd = udmabuf_memfd(F_SEAL_SHRINK);
	uintptr_t p = udmabuf_map(fd, MAP_SHARED, PROT_READ | PROT_WRITE);

	udmabuf_begin();
	fake_udmabuf.error = ENOMEM;
	EXPECT_EQ(udmabuf_export_error(p, SIZE, 0), -ENOMEM);
	close(fd);
	munmap((void *)p, SIZE);
}

TEST(closed, "A memfd without a descriptor is -ENXIO.")
{
	int fd = udmabuf_memfd(F_SEAL_SHRINK);
	uintptr_t p = udmabuf_map(fd, MAP_SHARED, PROT_READ | PROT_WRITE);

	udmabuf_begin();
	close(fd);
	EXPECT_EQ(udmabuf_export_error(p, SIZE, 0), -ENXIO);
	munmap((void *)p, SIZE);
}

TEST(allocated,
     "Where udmabuf alone exports, memory of climport's is a sealed memfd, whose parts are "
     "exported.")
{
	uintptr_t a, b;
	struct export_range range;
	int fds;

	udmabuf_begin();
	fds = process_count_descriptors();
	EXPECT_EQ(memory_alloc(MEMORY_HOST, PAGE, 0, NULL, &a), 0);
	EXPECT_EQ(memory_alloc(MEMORY_HOST, PAGE, 0, NULL, &b), 0);
	EXPECT_EQ(process_count_descriptors(), fds + 1);
	*(unsigned char *)b = 5;
	range = udmabuf_export(b, PAGE, 0);
	EXPECT_EQ(fake_udmabuf.size, PAGE);
	EXPECT_EQ(range.offset, 0);
	EXPECT(fcntl(range.fd, F_GET_SEALS) & F_SEAL_SHRINK);
	EXPECT(memory_free(a) && memory_free(b));
	EXPECT_EQ(process_count_descriptors(), fds + 1);
	close(range.fd);
	EXPECT_EQ(memory_bytes(), 0);
}

TEST(allocated_large, "A large allocation is a memfd of its own, aligned to 2 MiB.")
{
	uintptr_t p;
	int fds;

	udmabuf_begin();
	fds = process_count_descriptors();
	EXPECT_EQ(memory_alloc(MEMORY_HOST, 5 * MIB, 0, NULL, &p), 0);
	EXPECT_EQ(p % (2 * MIB), 0);
	memset((void *)p, 1, 5 * MIB);
	close(udmabuf_export(p, 5 * MIB, 0).fd);
	EXPECT_EQ(fake_udmabuf.offset, 0);
	EXPECT_EQ(fake_udmabuf.size, 5 * MIB);
	EXPECT(memory_free(p));
	EXPECT_EQ(process_count_descriptors(), fds);
}

static const struct anonymous_row {
	const char *name;
	bool has_udmabuf;
	int gdmabuf_error;
} anonymous_rows[] = {
	{ "no_udmabuf", false, ENOENT },
	{ "gdmabuf", true, EMFILE }, /* there, and not to be opened at the moment */
};

TEST_EACH(allocated_anonymous, struct anonymous_row, anonymous_rows,
	  "Where the module exports, or nobody, memory of climport's is anonymous and takes no "
	  "descriptor.")
{
	uintptr_t p;
	int fds;

	udmabuf_begin();
	fake_udmabuf.is_there = row->has_udmabuf;
	fake_udmabuf.gdmabuf_error = row->gdmabuf_error;
	fds = process_count_descriptors();
	EXPECT_EQ(memory_alloc(MEMORY_HOST, PAGE, 0, NULL, &p), 0);
	EXPECT_EQ(process_count_descriptors(), fds);
	memset((void *)p, 1, PAGE);
	EXPECT(memory_free(p));
}

static unsigned char *udmabuf_forked; /* memory of the parent's */

static void udmabuf_write_and_free(void)
{
	int fds = process_count_descriptors();

	udmabuf_forked[0] = 7;
	EXPECT(memory_free((uintptr_t)udmabuf_forked));
	EXPECT_EQ(process_count_descriptors(), fds - 1);
}

TEST(allocated_forked,
     "A child shares the memfd with the parent, and frees the child's own mapping.")
{
	uintptr_t p;

	udmabuf_begin();
	EXPECT_EQ(memory_alloc(MEMORY_HOST, 3 * MIB, 0, NULL, &p), 0);
	udmabuf_forked = (unsigned char *)p;
	test_in_child(udmabuf_write_and_free);
	EXPECT_EQ(udmabuf_forked[0], 7);
	close(udmabuf_export(p, PAGE, 0).fd);
	EXPECT(memory_free(p));
}

/* The device cannot be opened either, so the limit leaves room for the device alone. */
static void udmabuf_alloc_without_descriptor(void)
{
	struct rlimit limit = { 0 };
	uintptr_t p;

	limit.rlim_cur = limit.rlim_max = (rlim_t)dup(0);
	close((int)limit.rlim_cur);
	EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
	EXPECT_EQ(memory_alloc(MEMORY_HOST, 3 * MIB, 0, NULL, &p), 0);
	memset((void *)p, 1, 3 * MIB);
	EXPECT(memory_free(p));
}

TEST(allocated_no_descriptor,
     "Without a descriptor for a memfd, memory of climport's is anonymous.")
{
	udmabuf_begin();
	test_in_child(udmabuf_alloc_without_descriptor);
}

TEST(allocated_closed, "If the program closes the memfd and opens a file at the number, a free "
		       "leaves the file open.")
{
	struct stat before, after;
	int last = dup(0), fd;
	uintptr_t p;

	udmabuf_begin();
	close(last);
	EXPECT_EQ(memory_alloc(MEMORY_HOST, 3 * MIB, 0, NULL, &p), 0);
	EXPECT(fcntl(last, F_GET_SEALS) >= 0);
	fd = udmabuf_memfd(0);
	EXPECT_EQ(dup2(fd, last), last);
	EXPECT(!fstat(last, &before));
	EXPECT(memory_free(p));
	EXPECT(!fstat(last, &after) && after.st_ino == before.st_ino);
	close(last);
	close(fd);
}
