/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which memory of the host goes into a device by RM, in which places and sizes.  Each range is read
 * and written by the host and by kernels in turns, and the bytes around stay.
 */
#include "opaque_rm_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <linux/magic.h>

#define HUGE ((size_t)2 << 20)
#define SIZE (4 * HUGE)
#define BOTH (PROT_READ | PROT_WRITE)

/* A kind of memory: MAP_ flags, and the file or MAP_ANONYMOUS. */
struct memory {
	const char *name;
	int flags;
	int (*open)(void);
	int advice;   /* of madvise(), or 0 */
	bool is_heap; /* of malloc() */
};

static int memory_resize(int fd)
{
	if (fd >= 0 && ftruncate(fd, (off_t)SIZE)) {
		close(fd);
		return -1;
	}
	return fd;
}

static int memory_open_memfd(void)
{
	return memory_resize(memfd_create("frame", MFD_CLOEXEC));
}

static int memory_open_huge(void)
{
	return memory_resize(memfd_create("frame", MFD_CLOEXEC | MFD_HUGETLB));
}

static int memory_open_in(const char *folder, unsigned long magic, bool is_on)
{
	char path[64];
	struct statfs fs;
	int fd;

	snprintf(path, sizeof(path), "%s/climport-test-XXXXXX", folder);
	fd = mkstemp(path);
	if (fd < 0)
		return -1;
	unlink(path);
	if (fstatfs(fd, &fs) || ((unsigned long)fs.f_type == magic) != is_on) {
		close(fd);
		return -1;
	}
	return memory_resize(fd);
}

static int memory_open_tmpfs(void)
{
	return memory_open_in("/dev/shm", TMPFS_MAGIC, true);
}

static int memory_open_disk(void)
{
	return memory_open_in(".", TMPFS_MAGIC, false);
}

static const struct memory memories[] = {
	{ "anonymous", MAP_PRIVATE | MAP_ANONYMOUS, NULL, 0, false },
	{ "anonymous_shared", MAP_SHARED | MAP_ANONYMOUS, NULL, 0, false },
	{ "transparent_huge", MAP_PRIVATE | MAP_ANONYMOUS, NULL, MADV_HUGEPAGE, false },
	{ "mergeable", MAP_PRIVATE | MAP_ANONYMOUS, NULL, MADV_MERGEABLE, false },
	{ "heap", 0, NULL, 0, true },
	{ "memfd", MAP_SHARED, memory_open_memfd, 0, false },
	{ "memfd_private", MAP_PRIVATE, memory_open_memfd, 0, false },
	{ "tmpfs", MAP_SHARED, memory_open_tmpfs, 0, false },
	{ "tmpfs_private", MAP_PRIVATE, memory_open_tmpfs, 0, false },
	{ "huge", MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, NULL, 0, false },
	{ "huge_memfd", MAP_SHARED, memory_open_huge, 0, false },
	{ "file_private", MAP_PRIVATE, memory_open_disk, 0, false },
};

/* Skips the test if the machine has no such memory. */
static unsigned char *memory_map(const struct memory *memory)
{
	int fd = memory->open ? memory->open() : -1;
	unsigned char *p;

	if (memory->is_heap)
		return aligned_alloc(PAGE, SIZE);
	if (memory->open && fd < 0)
		test_skip("no file of the kind: %s", strerror(errno));
	p = mmap(NULL, SIZE, BOTH, memory->flags, fd, 0);
	if (fd >= 0)
		close(fd);
	if (p == MAP_FAILED)
		test_skip("no memory of the kind: %s", strerror(errno));
	if (memory->advice && madvise(p, SIZE, memory->advice))
		test_skip("the kernel does not take the advice: %s", strerror(errno));
	return p;
}

static void memory_unmap(const struct memory *memory, unsigned char *p)
{
	if (memory->is_heap)
		free(p);
	else
		munmap(p, SIZE);
}

/* An import of @size bytes at @p: kernels see the range's first byte alone. */
static void memory_use(unsigned char *p, size_t size)
{
	cl_mem mem = fixture_import_host(0, p, size);

	opaque_rm_expect_coherent(mem, p);
	cl.clReleaseMemObject(mem);
}

TEST_EACH(memory, struct memory, memories,
	  "Kernels work in place on host memory of each kind that can be pinned.")
{
	unsigned char *p;

	p = memory_map(row);
	opaque_rm_reset();
	opaque_begin();
	memory_use(p, SIZE);
	opaque_rm_close();
	memory_unmap(row, p);
}

/* Ranges of three pages. */
static const struct place {
	const char *name;
	struct pages start, size;
} places[] = {
	{ "page", { 0, 0 }, { 1, 0 } },
	{ "byte", { 0, 0 }, { 0, 1 } },
	{ "odd", { 0, 0 }, { 1, -1 } },
	{ "over_a_page", { 0, 0 }, { 1, 1 } },
	{ "inside", { 0, ALIGN }, { 0, 1 } },
	{ "inside_odd", { 0, 3 * ALIGN }, { 0, 77 } },
	{ "to_the_end", { 1, -ALIGN }, { 0, ALIGN } },
	{ "across", { 1, -ALIGN }, { 0, ALIGN + 1 } },
	{ "across_two", { 0, 5 * ALIGN }, { 2, 1 } },
};

TEST_EACH_PAIR(place, struct memory, memories, struct place, places,
	       "An aligned address within a page and any size are imported, and bytes around the "
	       "range stay.")
{
	const size_t size = pages_bytes(column->size);
	unsigned char *p, *first;

	p = memory_map(row);
	first = p + HUGE + pages_bytes(column->start);
	memset(p, 0x5a, 2 * HUGE);
	opaque_rm_reset();
	opaque_begin();
	memory_use(first, size);
	EXPECT_EQ(first[-1], 0x5a);
	EXPECT_EQ(first[size], 0x5a);
	opaque_rm_close();
	memory_unmap(row, p);
}

/* Memory that is refused before RM is asked. */
static const struct refused_memory {
	const char *name;
	int protection, flags;
	int (*open)(void);
	const char *says;
} refused_memories[] = {
	{ "file_shared", BOTH, MAP_SHARED, memory_open_disk, "which this device cannot pin" },
	{ "read_only", PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, NULL,
	  "map the memory writable, with MAP_PRIVATE if the file must not change" },
	{ "read_only_file", PROT_READ, MAP_PRIVATE, memory_open_disk,
	  "map the memory writable, with MAP_PRIVATE if the file must not change" },
	{ "read_only_file_shared", PROT_READ, MAP_SHARED, memory_open_disk,
	  "map the memory writable, with MAP_PRIVATE if the file must not change" },
	{ "read_only_memfd", PROT_READ, MAP_SHARED, memory_open_memfd,
	  "map the memory writable, with MAP_PRIVATE if the file must not change" },
};

TEST_EACH(
	refused, struct refused_memory, refused_memories,
	"Memory that cannot be pinned for writing is refused without a call of RM, with a sentence "
	"that tells the cause or what to do.")
{
	const int fd = row->open ? row->open() : -1;
	unsigned int pins;
	void *p;

	if (row->open && fd < 0)
		test_skip("no file of the kind: %s", strerror(errno));
	p = mmap(NULL, SIZE, row->protection, row->flags, fd, 0);
	EXPECT(p != MAP_FAILED);
	opaque_rm_reset();
	opaque_begin();
	pins = fake_rm.pins_made;
	EXPECT_EQ(fixture_import_error(fix.context, CL_MEM_READ_ONLY, NULL, p, PAGE),
		  CL_INVALID_OPERATION);
	EXPECT(strstr(fix.notice, row->says));
	EXPECT_EQ(fake_rm.pins_made, pins);
	opaque_rm_close();
	munmap(p, SIZE);
	if (fd >= 0)
		close(fd);
}

TEST(unaligned, "An address below the device's alignment is refused, with the alignment.")
{
	unsigned char *p;

	opaque_rm_reset();
	opaque_begin();
	p = pages_map(1);
	EXPECT_EQ(fixture_import_error(fix.context, 0, NULL, p + ALIGN / 2, PAGE / 2),
		  CL_INVALID_OPERATION);
	EXPECT(strstr(fix.notice, "multiples of 128 bytes"));
	opaque_rm_close();
}

TEST(several_mappings, "A range over mappings of several kinds is imported as one buffer.")
{
	unsigned char *p;
	int fd;

	fd = memory_open_memfd();
	EXPECT(fd >= 0);
	opaque_rm_reset();
	opaque_begin();
	p = pages_map(4);
	EXPECT(mmap(p + 2 * PAGE, PAGE, BOTH, MAP_SHARED | MAP_FIXED, fd, 0) == p + 2 * PAGE);
	memory_use(p + ALIGN, 4 * PAGE - ALIGN);
	close(fd);
	opaque_rm_close();
}
