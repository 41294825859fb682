/* SPDX-License-Identifier: Apache-2.0 */
/* Zero copy by the kind of mapping: files, shared memory, dma-bufs, several mappings. */
#include "zero_copy.h"

#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "folder.h"

static bool takes_dmabuf(void)
{
	int fd = fake_dmabuf_create("a", PAGE);
	unsigned char *bytes = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	bool taken = zero_copy_takes_import(CL_MEM_READ_WRITE, fixture_dma_buf, &fd, PAGE, bytes);

	munmap(bytes, PAGE);
	close(fd);
	return taken;
}

static const struct mapping {
	const char *name;
	int flags;
} mappings[] = { { "private", MAP_PRIVATE }, { "shared", MAP_SHARED } };

TEST_EACH_PAIR(file, struct mapping, mappings, struct habit, habits,
	       "If a driver copies mappings of files, imports of private and shared mappings are "
	       "refused.")
{
	zero_copy_open(STUB_COPYING_FILES, column->copies);
	EXPECT_EQ(zero_copy_takes(CL_MEM_READ_WRITE,
				  zero_copy_map_file(zero_copy_create_file(), PAGE, row->flags),
				  PAGE),
		  !column->copies);
	EXPECT(zero_copy_takes(CL_MEM_READ_WRITE, pages_map(1), PAGE));
	zero_copy_unmap();
	fixture_close();
}

TEST(shared, "If a driver copies shared memory, imports of shared memory are refused.")
{
	zero_copy_open(STUB_COPYING_SHARED, 1);
	EXPECT(!zero_copy_takes(CL_MEM_READ_WRITE,
				zero_copy_map_file(memfd_create("test", 0), PAGE, MAP_SHARED),
				PAGE));
	EXPECT(strstr(fix.notice, "shared memory"));
	zero_copy_unmap();
	EXPECT(zero_copy_takes(CL_MEM_READ_WRITE, pages_map(1), PAGE));
	fixture_close();
}

TEST(several_mappings, "If an import has several kinds of mappings, each kind has to be zero copy.")
{
	unsigned char *memory;
	int fd;

	zero_copy_open(STUB_COPYING_SHARED, 1);
	memory = pages_map(2);
	fd = memfd_create("test", 0);
	EXPECT_EQ(ftruncate(fd, PAGE), 0);
	EXPECT(mmap(memory + PAGE, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) ==
	       memory + PAGE);
	close(fd);
	EXPECT(!zero_copy_takes(CL_MEM_READ_WRITE, memory, 2 * PAGE));
	fixture_close();
}

TEST_EACH(unwritable, struct habit, habits,
	  "If a driver copies memory that is mapped read-only, imports of such memory are refused.")
{
	unsigned char *memory;

	zero_copy_open(STUB_COPYING_UNWRITABLE, row->copies);
	memory = pages_map(1);
	EXPECT_EQ(mprotect(memory, PAGE, PROT_READ), 0);
	EXPECT_EQ(zero_copy_takes(CL_MEM_READ_ONLY, memory, PAGE), !row->copies);
	fixture_close();
}

/* Two pages of anonymous memory, in two mappings. */
static unsigned char *two_mappings(void)
{
	unsigned char *memory = pages_map(2);

	EXPECT_EQ(madvise(memory + PAGE, PAGE, MADV_DONTFORK), 0);
	return memory;
}

TEST_EACH(split, struct habit, habits,
	  "If a driver copies memory of several mappings, imports of several mappings are refused.")
{
	zero_copy_open(STUB_COPYING_SEVERAL, row->copies);
	EXPECT_EQ(zero_copy_takes(CL_MEM_READ_WRITE, two_mappings(), 2 * PAGE), !row->copies);
	EXPECT(zero_copy_takes(CL_MEM_READ_WRITE, pages_map(2), 2 * PAGE));
	fixture_close();
}

TEST_EACH(
	split_gpu, struct habit, habits,
	"A device that is no CPU takes memory of several mappings if it was tried and not copied.")
{
	zero_copy_open_gpu();
	stub_set(STUB_COPYING_SEVERAL, row->copies);
	EXPECT_EQ(zero_copy_takes(CL_MEM_READ_WRITE, two_mappings(), 2 * PAGE), !row->copies);
	EXPECT(!row->copies || strstr(fix.notice, "several mappings"));
	fixture_close();
}

TEST(unwritable_gpu, "A device that is no CPU takes no memory without write permission, with which "
		     "no self-test can work.")
{
	unsigned char *memory;

	zero_copy_open_gpu();
	memory = pages_map(1);
	EXPECT_EQ(mprotect(memory, PAGE, PROT_READ), 0);
	EXPECT(!zero_copy_takes(CL_MEM_READ_ONLY, memory, PAGE));
	EXPECT(strstr(fix.notice, "without write permission"));
	fixture_close();
}

static int tmpfs_file(void)
{
	char name[64];

	folder_path("tm/XXXXXX", name, sizeof(name));
	return mkostemp(name, O_CLOEXEC);
}

static void tmpfs_mount(void)
{
	char at[64], command[256];

	folder_path("tm", at, sizeof(at));
	snprintf(command, sizeof(command),
		 "mkdir %s && mount --make-rprivate / && mount -t tmpfs tmpfs %s", at, at);
	if (unshare(CLONE_NEWNS) || system(command))
		test_skip("no file system can be mounted");
}

static void tmpfs_expect(const struct mapping *mapping, const struct habit *habit)
{
	zero_copy_open_gpu();
	stub_set(STUB_COPYING_TMPFS, habit->copies);
	EXPECT_EQ(zero_copy_takes(CL_MEM_READ_WRITE,
				  zero_copy_map_file(tmpfs_file(), PAGE, mapping->flags), PAGE),
		  !habit->copies);
	zero_copy_unmap();
	EXPECT(zero_copy_takes(CL_MEM_READ_WRITE,
			       zero_copy_map_file(zero_copy_create_file(), PAGE, MAP_SHARED),
			       PAGE));
	zero_copy_unmap();
	fixture_close();
}

static void tmpfs_body(void)
{
	tmpfs_mount();
	for (size_t m = 0; m < sizeof(mappings) / sizeof(*mappings); m++)
		for (size_t h = 0; h < sizeof(habits) / sizeof(*habits); h++)
			tmpfs_expect(&mappings[m], &habits[h]);
}

TEST(tmpfs, "A file of a tmpfs is shared memory, wherever the tmpfs is mounted.")
{
	test_in_child(tmpfs_body);
}

TEST(zeros, "A private mapping of /dev/zero is anonymous memory.")
{
	void *mapped;
	int fd;

	zero_copy_open_gpu();
	fd = open("/dev/zero", O_RDWR | O_CLOEXEC);
	mapped = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	close(fd);
	EXPECT(mapped != MAP_FAILED);
	EXPECT(zero_copy_takes(CL_MEM_READ_WRITE, mapped, PAGE));
	munmap(mapped, PAGE);
	fixture_close();
}

TEST(huge_pages, "Huge pages are tried with huge pages.")
{
	const size_t size = 4 << 20;
	unsigned char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);

	if (memory == MAP_FAILED)
		test_skip("no huge pages");
	zero_copy_open_gpu();
	EXPECT(zero_copy_takes(CL_MEM_READ_WRITE, memory + PAGE, 3 * PAGE));
	fixture_close();
	munmap(memory, size);
}

/* Creates a full disk, for the cache; the application's file lies on a different disk. */
static void fill_disk(void)
{
	char at[64], command[512];

	folder_path(".", at, sizeof(at));
	snprintf(command, sizeof(command),
		 "exec >/dev/null 2>&1; cd %s && mkdir full && mount --make-rprivate / && "
		 "dd if=/dev/zero of=image bs=1M count=4 && mkfs.ext4 -q image && "
		 "mount -o loop image full; rm -f image; mountpoint -q full",
		 at);
	if (unshare(CLONE_NEWNS) || system(command))
		test_skip("no file system can be mounted");
	snprintf(command, sizeof(command), "dd if=/dev/zero of=%s/full/fill 2>/dev/null", at);
	EXPECT(system(command) != 0);
}

static void full_disk_body(void)
{
	char cache[64];

	fill_disk();
	zero_copy_open(STUB_NUM_OPTIONS, 0);
	folder_path("full", cache, sizeof(cache));
	setenv("XDG_CACHE_HOME", cache, 1);
	EXPECT(zero_copy_takes(CL_MEM_READ_WRITE,
			       zero_copy_map_file(zero_copy_create_file(), 4 * PAGE, MAP_SHARED),
			       4 * PAGE));
	zero_copy_unmap();
	fixture_close();
}

TEST(full_disk, "If the cache's disk is full, a program can import a file.")
{
	test_in_child(full_disk_body);
}

static const struct proof {
	const char *name;
	bool is_compiled;
} proofs[] = { { "native", false }, { "compiled", true } };

TEST_EACH_PAIR(
	dmabuf_verified, struct proof, proofs, struct habit, habits,
	"Where no dma-buf can be made to try, CLIMPORT_VERIFY=1 finds a driver that copies them.")
{
	fixture_reset();
	setenv("CLIMPORT_VERIFY", "1", 1);
	stub_set(STUB_NO_NATIVE_KERNEL, row->is_compiled);
	stub_set(STUB_COPYING_DMABUFS, column->copies);
	fixture_open();
	EXPECT_EQ(takes_dmabuf(), !column->copies);
	fixture_close();
	unsetenv("CLIMPORT_VERIFY");
}
