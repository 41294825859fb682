/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <linux/io_uring.h>
#include <linux/magic.h>
#include <linux/perf_event.h>

#include "harness.h"
#include "process.h"
#include "import/nvidia/pinnable.h"
#include "util/log.h"

#define PAGE ((size_t)sysconf(_SC_PAGESIZE))
#define BOTH (PROT_READ | PROT_WRITE)

static char *pinnable_map(int prot, int flags, int fd, size_t size)
{
	char *p = mmap(NULL, size, prot, flags, fd, 0);

	EXPECT(p != MAP_FAILED);
	return p;
}

/* The answer for a mapping of @fd, which is closed. */
static int pinnable_check_mapping(int fd, int flags)
{
	char *p = pinnable_map(BOTH, flags, fd, 2 * PAGE);
	int ret = pinnable_check(p, 2 * PAGE, PINNABLE_MEMORY);

	munmap(p, 2 * PAGE);
	close(fd);
	return ret;
}

static int pinnable_resize(int fd)
{
	EXPECT(fd >= 0);
	EXPECT_EQ(ftruncate(fd, 2 * PAGE), 0);
	return fd;
}

TEST(anonymous, "Anonymous memory can be pinned, touched or not.")
{
	char *p = pinnable_map(BOTH, MAP_PRIVATE | MAP_ANONYMOUS, -1, 4 * PAGE);

	EXPECT_EQ(pinnable_check(p, 4 * PAGE, PINNABLE_MEMORY), 0);
	memset(p, 1, 4 * PAGE);
	EXPECT_EQ(pinnable_check(p, 4 * PAGE, PINNABLE_MEMORY), 0);
	munmap(p, 4 * PAGE);
}

TEST(heap_and_stack, "Memory of the heap and of the stack can be pinned.")
{
	char *brk = sbrk(2 * PAGE), *heap = malloc(100), local[100];

	EXPECT_EQ(pinnable_check(brk, 2 * PAGE, PINNABLE_MEMORY), 0);
	EXPECT_EQ(pinnable_check(heap, 100, PINNABLE_MEMORY), 0);
	EXPECT_EQ(pinnable_check(local, sizeof(local), PINNABLE_MEMORY), 0);
	free(heap);
}

TEST(named_anonymous, "A name given to anonymous memory changes nothing.")
{
	char *p = pinnable_map(BOTH, MAP_PRIVATE | MAP_ANONYMOUS, -1, PAGE);

	prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, p, PAGE, "/a file? no");
	EXPECT_EQ(pinnable_check(p, PAGE, PINNABLE_MEMORY), 0);
	munmap(p, PAGE);
}

TEST(shared_anonymous, "Shared anonymous memory can be pinned.")
{
	EXPECT_EQ(pinnable_check_mapping(-1, MAP_SHARED | MAP_ANONYMOUS), 0);
}

TEST(memfd, "A memfd can be pinned, shared or private.")
{
	EXPECT_EQ(pinnable_check_mapping(pinnable_resize(memfd_create("m", 0)), MAP_SHARED), 0);
	EXPECT_EQ(pinnable_check_mapping(pinnable_resize(memfd_create("m", 0)), MAP_PRIVATE), 0);
}

TEST(sysv, "SysV shared memory can be pinned.")
{
	int id = shmget(IPC_PRIVATE, 2 * PAGE, IPC_CREAT | 0600), ret;
	void *p;

	if (id < 0)
		test_skip("no SysV shared memory");
	p = shmat(id, NULL, 0);
	shmctl(id, IPC_RMID, NULL);
	EXPECT(p != (void *)-1);
	ret = pinnable_check(p, 2 * PAGE, PINNABLE_MEMORY);
	shmdt(p);
	EXPECT_EQ(ret, 0);
}

static void check_first_sysv(void)
{
	void *p;
	int id;

	if (unshare(CLONE_NEWIPC))
		test_skip("unshare: %s", strerror(errno));
	id = shmget(IPC_PRIVATE, 2 * PAGE, IPC_CREAT | 0600);
	EXPECT_EQ(id, 0);
	p = shmat(id, NULL, 0);
	shmctl(id, IPC_RMID, NULL);
	EXPECT(p != (void *)-1);
	EXPECT_EQ(pinnable_check(p, 2 * PAGE, PINNABLE_MEMORY), 0);
	shmdt(p);
}

TEST(first_sysv,
     "The first SysV segment of a machine, whose inode has the number 0, can be pinned.")
{
	test_in_child(check_first_sysv);
}

static int shm_file(void)
{
	char path[] = "/dev/shm/climport-XXXXXX";
	struct statfs fs;
	int fd;

	if (statfs("/dev/shm", &fs) || fs.f_type != TMPFS_MAGIC)
		test_skip("/dev/shm is no tmpfs");
	fd = mkstemp(path);
	EXPECT(fd >= 0);
	unlink(path);
	return pinnable_resize(fd);
}

TEST(dev_shm, "POSIX shared memory can be pinned, removed or not.")
{
	char path[] = "/dev/shm/climport-XXXXXX";
	int fd, ret;

	EXPECT_EQ(pinnable_check_mapping(shm_file(), MAP_SHARED), 0);
	fd = pinnable_resize(mkstemp(path));
	ret = pinnable_check_mapping(fd, MAP_SHARED);
	unlink(path);
	EXPECT_EQ(ret, 0);
}

TEST(dev_zero, "Mappings of /dev/zero can be pinned, shared or private.")
{
	EXPECT_EQ(pinnable_check_mapping(open("/dev/zero", O_RDWR), MAP_SHARED), 0);
	EXPECT_EQ(pinnable_check_mapping(open("/dev/zero", O_RDWR), MAP_PRIVATE), 0);
}

TEST(huge_pages, "Huge pages can be pinned.")
{
	size_t size = 2 << 20;
	void *p = mmap(NULL, size, BOTH, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | MAP_NORESERVE,
		       -1, 0);

	if (p == MAP_FAILED)
		test_skip("no huge pages: %s", strerror(errno));
	EXPECT_EQ(pinnable_check(p, size, PINNABLE_MEMORY), 0);
	munmap(p, size);
}

/* A file on a disk, in the current directory of the test. */
static int disk_file(char *path)
{
	struct statfs fs;
	int fd;

	strcpy(path, "climport-test-XXXXXX");
	fd = mkstemp(path);
	EXPECT(fd >= 0);
	EXPECT_EQ(fstatfs(fd, &fs), 0);
	if (fs.f_type == TMPFS_MAGIC || (unsigned long)fs.f_type == RAMFS_MAGIC) {
		unlink(path);
		test_skip("no disk here");
	}
	return pinnable_resize(fd);
}

static void refuse_disk_file(int flags)
{
	char path[32];
	int fd = disk_file(path), ret = pinnable_check_mapping(fd, flags);

	unlink(path);
	EXPECT_EQ(ret, -EOPNOTSUPP);
	EXPECT(strstr(log_last(), path));
}

TEST(file_shared, "A file on a disk cannot be pinned, and is named.")
{
	refuse_disk_file(MAP_SHARED);
}

TEST(file_private, "A private mapping of a file on a disk cannot be pinned.")
{
	refuse_disk_file(MAP_PRIVATE);
}

TEST(read_only, "Memory without write access cannot be pinned.")
{
	char *p = pinnable_map(PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, PAGE);

	EXPECT_EQ(pinnable_check(p, PAGE, PINNABLE_MEMORY), -EOPNOTSUPP);
	EXPECT(strstr(log_last(), "(anonymous) is mapped without write access"));
	mprotect(p, PAGE, PROT_NONE);
	EXPECT_EQ(pinnable_check(p, PAGE, PINNABLE_MEMORY), -EOPNOTSUPP);
	munmap(p, PAGE);
}

TEST(read_only_memfd, "A memfd mapping without write access is refused, and the mapping is named.")
{
	char *p =
		pinnable_map(PROT_READ, MAP_SHARED, pinnable_resize(memfd_create("mine", 0)), PAGE);

	EXPECT_EQ(pinnable_check(p, PAGE, PINNABLE_MEMORY), -EOPNOTSUPP);
	EXPECT(strstr(log_last(), "/memfd:mine"));
	munmap(p, PAGE);
}

TEST(kernel_mapping, "Pages that a device or the kernel maps cannot be pinned.")
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
		.exclude_kernel = 1,
	};
	int fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);

	if (fd < 0)
		test_skip("no perf events: %s", strerror(errno));
	EXPECT_EQ(pinnable_check_mapping(fd, MAP_SHARED), -EOPNOTSUPP);
	EXPECT(strstr(log_last(), "perf_event"));
}

/* The first mapping with a name; NULL: none. */
static char *find_mapping(const char *name)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long start = 0;
	char line[4352];

	EXPECT(maps);
	while (!start && fgets(line, sizeof(line), maps))
		if (strstr(line, name))
			sscanf(line, "%lx-", &start);
	fclose(maps);
	return (char *)start;
}

TEST(pfnmap, "A VM_PFNMAP mapping, which has no pages to pin, is refused.")
{
	char *vvar = find_mapping("[vvar]");

	if (!vvar || !process_mapping_is(vvar, "pf"))
		test_skip("the kernel maps no [vvar] as VM_PFNMAP");
	EXPECT_EQ(pinnable_check(vvar, PAGE, PINNABLE_MEMORY | PINNABLE_COPIES), -EOPNOTSUPP);
	EXPECT(strstr(log_last(), "[vvar]"));
}

TEST(io_uring, "Pages of a ring that the kernel shares are refused.")
{
	struct io_uring_params params = { 0 };
	int fd = (int)syscall(SYS_io_uring_setup, 1, &params);

	if (fd < 0)
		test_skip("io_uring_setup: %s", strerror(errno));
	EXPECT_EQ(pinnable_check_mapping(fd, MAP_SHARED | MAP_POPULATE), -EOPNOTSUPP);
	EXPECT(strstr(log_last(), "io_uring"));
}

#ifdef SYS_memfd_secret
TEST(secret, "Secret memory cannot be pinned.")
{
	int fd = syscall(SYS_memfd_secret, 0);

	if (fd < 0)
		test_skip("no memfd_secret: %s", strerror(errno));
	EXPECT_EQ(pinnable_check_mapping(pinnable_resize(fd), MAP_SHARED), -EOPNOTSUPP);
}
#endif

TEST(node_in_tmpfs, "A device node cannot be pinned, even in a tmpfs.")
{
	const char *path = "/dev/shm/climport-node";
	int fd, ret;

	close(shm_file());
	if (mknod(path, S_IFCHR | 0600, makedev(1, 5)))
		test_skip("mknod: %s", strerror(errno));
	fd = open(path, O_RDWR);
	if (fd < 0) {
		unlink(path);
		test_skip("device nodes do not work in /dev/shm: %s", strerror(errno));
	}
	ret = pinnable_check_mapping(fd, MAP_PRIVATE);
	unlink(path);
	EXPECT_EQ(ret, -EOPNOTSUPP);
}

TEST(one_of_many, "If a single mapping cannot be pinned, the whole range cannot be pinned.")
{
	char *p = pinnable_map(BOTH, MAP_PRIVATE | MAP_ANONYMOUS, -1, 6 * PAGE), path[32];
	int fd = disk_file(path);

	unlink(path);
	EXPECT(mmap(p + 3 * PAGE, PAGE, BOTH, MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED);
	close(fd);
	EXPECT_EQ(pinnable_check(p, 3 * PAGE, PINNABLE_MEMORY), 0);
	EXPECT_EQ(pinnable_check(p + 4 * PAGE, 2 * PAGE, PINNABLE_MEMORY), 0);
	EXPECT_EQ(pinnable_check(p, 6 * PAGE, PINNABLE_MEMORY), -EOPNOTSUPP);
	EXPECT_EQ(pinnable_check(p, 3 * PAGE + 1, PINNABLE_MEMORY), -EOPNOTSUPP);
	munmap(p, 6 * PAGE);
}

TEST(hole, "A hole is -EFAULT.")
{
	char *p = pinnable_map(BOTH, MAP_PRIVATE | MAP_ANONYMOUS, -1, 3 * PAGE);

	EXPECT_EQ(pinnable_check(p, 3 * PAGE, PINNABLE_MEMORY), 0);
	munmap(p + PAGE, PAGE);
	EXPECT_EQ(pinnable_check(p, 3 * PAGE, PINNABLE_MEMORY), -EFAULT);
	munmap(p, 3 * PAGE);
}

TEST(wraps, "A range that leaves the address space is -ERANGE.")
{
	EXPECT_EQ(pinnable_check((void *)(UINTPTR_MAX - 10), 100, PINNABLE_MEMORY), -ERANGE);
}

TEST(descriptors, "A check leaves no descriptor open.")
{
	int before;

	pinnable_check_mapping(shm_file(), MAP_SHARED);
	before = process_count_descriptors();
	pinnable_check_mapping(shm_file(), MAP_SHARED);
	pinnable_check_mapping(open("/dev/zero", O_RDWR), MAP_PRIVATE);
	EXPECT_EQ(process_count_descriptors(), before);
}
