/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kinds of the host's memory that a driver pins: data in place, any size at any aligned place,
 * and what happens to pinned pages that the program unmaps.
 */
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "gpu.h"

#define SIZE ((size_t)4 << 20) /* two huge pages */
#define ROUNDS 20
#define BOTH (PROT_READ | PROT_WRITE)

struct kind {
	const char *name;
	int flags;	   /* of mmap() */
	int (*open)(void); /* NULL: of no file.  -1: the machine has no such file */
	int advice;	   /* of madvise(), or 0 */
};

static int kind_resize(int fd)
{
	if (fd < 0 || !ftruncate(fd, (off_t)SIZE))
		return fd;
	close(fd);
	return -1;
}

static int kind_open_memfd(void)
{
	return kind_resize(memfd_create("climport-test", MFD_CLOEXEC));
}

static int kind_open_huge(void)
{
	return kind_resize(memfd_create("climport-test", MFD_CLOEXEC | MFD_HUGETLB));
}

/* A file of a tmpfs, or of another file system. */
static int kind_open_in(const char *folder, bool is_tmpfs)
{
	struct statfs fs;
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/climport-test-XXXXXX", folder);
	fd = mkstemp(path);
	if (fd < 0)
		return -1;
	unlink(path);
	if (!fstatfs(fd, &fs) && (fs.f_type == TMPFS_MAGIC) == is_tmpfs)
		return kind_resize(fd);
	close(fd);
	return -1;
}

static int kind_open_tmpfs(void)
{
	return kind_open_in("/dev/shm", true);
}

static int kind_open_disk(void)
{
	return kind_open_in(getenv("DISK") ? getenv("DISK") : ".", false);
}

static const struct kind pinned_kinds[] = {
	{ "anonymous", MAP_PRIVATE | MAP_ANONYMOUS, NULL, 0 },
	{ "anonymous_shared", MAP_SHARED | MAP_ANONYMOUS, NULL, 0 },
	{ "transparent_huge", MAP_PRIVATE | MAP_ANONYMOUS, NULL, MADV_HUGEPAGE },
	{ "small_pages", MAP_PRIVATE | MAP_ANONYMOUS, NULL, MADV_NOHUGEPAGE },
	{ "memfd", MAP_SHARED, kind_open_memfd, 0 },
	{ "memfd_private", MAP_PRIVATE, kind_open_memfd, 0 },
	{ "tmpfs", MAP_SHARED, kind_open_tmpfs, 0 },
	{ "huge", MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, NULL, 0 },
	{ "huge_memfd", MAP_SHARED, kind_open_huge, 0 },
	{ "file_private", MAP_PRIVATE, kind_open_disk, 0 },
};

/* Skips the test if the machine has no such memory.  @at: NULL or the place. */
static unsigned char *kind_map_at(const struct kind *kind, int fd, void *at)
{
	void *p;

	if (kind->open && fd < 0)
		test_skip("no file of the kind: %m");
	p = mmap(at, SIZE, BOTH, kind->flags | (at ? MAP_FIXED : 0), fd, 0);
	if (p == MAP_FAILED)
		test_skip("no memory of the kind: %m");
	if (kind->advice && madvise(p, SIZE, kind->advice))
		test_skip("the kernel does not take the advice: %m");
	return p;
}

static unsigned char *kind_map(const struct kind *kind)
{
	int fd = kind->open ? kind->open() : -1;
	unsigned char *p = kind_map_at(kind, fd, NULL);

	if (fd >= 0)
		close(fd);
	return p;
}

static void kind_need_pins(void)
{
	if (!gpu.is_opaque)
		test_skip("this device takes host memory by the address");
}

/* The host writes @size bytes at @p, a kernel increments the bytes, the host reads; again. */
static void kind_check_data(unsigned char *p, size_t size)
{
	unsigned char *before = malloc(size), around[2];
	cl_mem mem = gpu_import_host(&ours, p, size);

	EXPECT(before);
	around[0] = p[-1] = 0x3c;
	around[1] = p[size] = 0xc3;
	for (int i = 0; i < ROUNDS; i++) {
		random_fill(p, size);
		memcpy(before, p, size);
		gpu_increment(&ours, ours.queue, mem, size, AT_ONCE, NULL);
		EXPECT_EQ(clFinish(ours.queue), CL_SUCCESS);
		EXPECT(is_added(p, before, size, 1));
		EXPECT_EQ(p[-1], around[0]);
		EXPECT_EQ(p[size], around[1]);
	}
	clReleaseMemObject(mem);
	free(before);
}

TEST_EACH(kind, struct kind, pinned_kinds,
	  "Kernels and the host see each other's bytes in host memory of each kind.")
{
	unsigned char *p = kind_map(row);

	gpu_session_open(&ours);
	kind_check_data(p + PAGE, SIZE - 2 * PAGE);
	gpu_session_close(&ours);
	munmap(p, SIZE);
}

/* From @units of the device's alignment. */
static const struct place {
	size_t units, size;
} places[] = {
	{ 0, 1 },   { 0, 4095 }, { 0, 4097 }, { 1, 77 },
	{ 7, 512 }, { 7, 513 },	 { 3, 9001 }, { 5, 1234567 },
};

TEST_EACH(places, struct kind, pinned_kinds,
	  "An aligned address within a page and any size are imported, and the bytes around stay.")
{
	unsigned char *p = kind_map(row);

	gpu_session_open(&ours);
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++)
		kind_check_data(p + PAGE + places[i].units * gpu.align, places[i].size);
	gpu_session_close(&ours);
	munmap(p, SIZE);
}

/* The bytes that the device has, by a kernel that adds the import and zeros. */
static void kind_read_device(cl_mem mem, uint32_t *bytes)
{
	cl_mem all[3] = { gpu_create_native(&ours, SIZE), mem, gpu_create_native(&ours, SIZE) };
	const uint32_t zero = 0;

	EXPECT_EQ(clEnqueueFillBuffer(ours.queue, all[2], &zero, sizeof(zero), 0, SIZE, 0, NULL,
				      NULL),
		  CL_SUCCESS);
	gpu_add(&ours, ours.queue, all, SIZE / sizeof(uint32_t), AT_ONCE, NULL);
	EXPECT_EQ(clEnqueueReadBuffer(ours.queue, all[0], CL_TRUE, 0, SIZE, bytes, 0, NULL, NULL),
		  CL_SUCCESS);
	clReleaseMemObject(all[0]);
	clReleaseMemObject(all[2]);
}

TEST_EACH(remapped, struct kind, pinned_kinds,
	  "If memory is unmapped under a live import and other memory is mapped at the address, "
	  "kernels read and write the pinned pages, and the other memory is left alone.")
{
	unsigned char *p, *old = malloc(SIZE), *now = malloc(SIZE);
	const struct kind *other = &pinned_kinds[0];
	cl_mem mem;

	kind_need_pins();
	EXPECT(old && now);
	gpu_session_open(&ours);
	for (int i = 0; i < ROUNDS; i++) {
		p = kind_map(row);
		random_fill(p, SIZE);
		memcpy(old, p, SIZE);
		mem = gpu_import_host(&ours, p, SIZE);
		EXPECT_EQ(munmap(p, SIZE), 0);
		EXPECT(kind_map_at(other, -1, p) == p);
		memset(p, 0x5a, SIZE);
		kind_read_device(mem, (uint32_t *)now);
		EXPECT(is_added(now, old, SIZE, 0));
		gpu_increment(&ours, ours.queue, mem, SIZE, AT_ONCE, NULL);
		EXPECT_EQ(clFinish(ours.queue), CL_SUCCESS);
		kind_read_device(mem, (uint32_t *)now);
		EXPECT(is_added(now, old, SIZE, 1));
		for (size_t at = 0; at < SIZE; at++)
			EXPECT_EQ(p[at], 0x5a);
		clReleaseMemObject(mem);
		mem = gpu_import_host(&ours, p, SIZE);
		memset(old, 0x5a, SIZE);
		kind_read_device(mem, (uint32_t *)now);
		EXPECT(is_added(now, old, SIZE, 0));
		clReleaseMemObject(mem);
		munmap(p, SIZE);
	}
	gpu_session_close(&ours);
	free(old);
	free(now);
}

TEST(unmapped_file, "Bytes that kernels write after a memfd is unmapped are the file's.")
{
	unsigned char *p, *seen, *before = malloc(SIZE);
	int fd = kind_open_memfd();
	cl_mem mem;

	kind_need_pins();
	EXPECT(fd >= 0 && before);
	p = mmap(NULL, SIZE, BOTH, MAP_SHARED, fd, 0);
	seen = mmap(NULL, SIZE, BOTH, MAP_SHARED, fd, 0);
	EXPECT(p != MAP_FAILED && seen != MAP_FAILED);
	gpu_session_open(&ours);
	random_fill(seen, SIZE);
	memcpy(before, seen, SIZE);
	mem = gpu_import_host(&ours, p, SIZE);
	munmap(p, SIZE);
	gpu_increment(&ours, ours.queue, mem, SIZE, AT_ONCE, NULL);
	EXPECT_EQ(clFinish(ours.queue), CL_SUCCESS);
	EXPECT(is_added(seen, before, SIZE, 1));
	clReleaseMemObject(mem);
	gpu_session_close(&ours);
	munmap(seen, SIZE);
	close(fd);
	free(before);
}

TEST(private_file, "Kernels on a private mapping of a file leave the file as it was.")
{
	unsigned char *p, byte = 0;
	int fd = kind_open_disk();
	cl_mem mem;

	kind_need_pins();
	p = kind_map_at(&(struct kind){ "file", MAP_PRIVATE, kind_open_disk, 0 }, fd, NULL);
	EXPECT_EQ(pwrite(fd, "\x5a", 1, 0), 1);
	gpu_session_open(&ours);
	mem = gpu_import_host(&ours, p, SIZE);
	gpu_increment(&ours, ours.queue, mem, SIZE, AT_ONCE, NULL);
	EXPECT_EQ(clFinish(ours.queue), CL_SUCCESS);
	EXPECT_EQ(p[0], 0x5b);
	EXPECT_EQ(pread(fd, &byte, 1, 0), 1);
	EXPECT_EQ(byte, 0x5a);
	clReleaseMemObject(mem);
	gpu_session_close(&ours);
	munmap(p, SIZE);
	close(fd);
}

TEST(read_only_file, "A read-only mapping of a file is refused, with what to do instead.")
{
	int fd = kind_open_disk();
	void *p;

	kind_need_pins();
	if (fd < 0)
		test_skip("no disk here");
	p = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, fd, 0);
	EXPECT(p != MAP_FAILED);
	gpu_session_open(&ours);
	EXPECT_EQ(gpu_import_error(CL_MEM_READ_ONLY, NULL, p, PAGE), CL_INVALID_OPERATION);
	EXPECT(gpu_notice_has("map the memory writable, with MAP_PRIVATE if the file must not "
			      "change"));
	gpu_import_good();
	gpu_session_close(&ours);
	munmap(p, SIZE);
	close(fd);
}

/* The thread's capabilities, of which the limit of locked memory knows CAP_IPC_LOCK. */
static void kind_drop_ipc_lock(struct __user_cap_data_struct before[2])
{
	struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct data[2];

	EXPECT_EQ(syscall(SYS_capget, &header, before), 0);
	memcpy(data, before, sizeof(data));
	data[0].effective &= ~(1u << CAP_IPC_LOCK);
	EXPECT_EQ(syscall(SYS_capset, &header, data), 0);
}

static void kind_restore_capabilities(const struct __user_cap_data_struct before[2])
{
	struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };

	EXPECT_EQ(syscall(SYS_capset, &header, before), 0);
}

TEST(memlock, "A low RLIMIT_MEMLOCK, which refuses mlock(2), refuses no import.")
{
	struct __user_cap_data_struct capabilities[2];
	struct rlimit before, low = { 64 << 10, 64 << 10 };
	unsigned char *p;

	kind_need_pins();
	p = kind_map(&pinned_kinds[0]);
	gpu_session_open(&ours);
	EXPECT_EQ(getrlimit(RLIMIT_MEMLOCK, &before), 0);
	low.rlim_max = before.rlim_max;
	EXPECT_EQ(setrlimit(RLIMIT_MEMLOCK, &low), 0);
	kind_drop_ipc_lock(capabilities);
	EXPECT(mlock(p, SIZE)); /* the limit works */
	kind_check_data(p + PAGE, SIZE - 2 * PAGE);
	kind_restore_capabilities(capabilities);
	EXPECT_EQ(setrlimit(RLIMIT_MEMLOCK, &before), 0);
	gpu_session_close(&ours);
	munmap(p, SIZE);
}
