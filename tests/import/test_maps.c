/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"
#include "import/import.h"
#include "import/kinds/maps.h"
#include "util/log.h"

#define PAGE ((size_t)sysconf(_SC_PAGESIZE))
#define BOTH (IMPORT_READ | IMPORT_WRITE)

static char *maps_map_pages(size_t pages, int prot)
{
	char *p = mmap(NULL, pages * PAGE, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	EXPECT(p != MAP_FAILED);
	return p;
}

static int maps_check_access(const void *addr, size_t size, unsigned int need)
{
	unsigned int have;

	return maps_check(addr, size, need, &have, NULL);
}

/* mmap() reuses the address of the last mapping, if no mapping was made between. */
TEST(first_check, "A hole is found by the first check of a process, and by later checks.")
{
	char *p = maps_map_pages(1, PROT_READ | PROT_WRITE);

	if (!strcmp(SANITIZER, "thread"))
		test_skip("the thread sanitizer maps memory of its own, into the hole, too");
	munmap(p, PAGE);
	EXPECT_EQ(maps_check_access(p, PAGE, IMPORT_READ), -EFAULT);
	EXPECT(maps_map_pages(1, PROT_READ) == p);
	munmap(p, PAGE);
}

TEST(whole_mapping, "A mapped range has the permissions of the mapping.")
{
	char *p = maps_map_pages(4, PROT_READ | PROT_WRITE);
	unsigned int have = 0;

	EXPECT_EQ(maps_check(p, 4 * PAGE, BOTH, &have, NULL), 0);
	EXPECT_EQ(have, BOTH);
	munmap(p, 4 * PAGE);
}

TEST(odd_bytes, "A range need not start or end with a page.")
{
	char *p = maps_map_pages(2, PROT_READ | PROT_WRITE);

	EXPECT_EQ(maps_check_access(p + 1, 1, BOTH), 0);
	EXPECT_EQ(maps_check_access(p + PAGE - 1, 2, BOTH), 0);
	EXPECT_EQ(maps_check_access(p + PAGE + 1, PAGE - 1, BOTH), 0);
	munmap(p, 2 * PAGE);
}

TEST(one_byte_too_many, "A byte behind the last mapping is a hole.")
{
	char *p = maps_map_pages(3, PROT_READ | PROT_WRITE);

	munmap(p + 2 * PAGE, PAGE);
	EXPECT_EQ(maps_check_access(p, 2 * PAGE, BOTH), 0);
	EXPECT_EQ(maps_check_access(p, 2 * PAGE + 1, BOTH), -EFAULT);
	munmap(p, 2 * PAGE);
}

TEST(hole_inside, "A hole anywhere in the range is found and named.")
{
	char *p = maps_map_pages(9, PROT_READ | PROT_WRITE), expected[64];

	munmap(p + 5 * PAGE, PAGE);
	EXPECT_EQ(maps_check_access(p, 9 * PAGE, IMPORT_READ), -EFAULT);
	snprintf(expected, sizeof(expected), "%#lx is not mapped",
		 (unsigned long)(uintptr_t)(p + 5 * PAGE));
	EXPECT(strstr(log_last(), expected));
	munmap(p, 9 * PAGE);
}

TEST(several_mappings,
     "Neighbouring mappings form a single range, with the permissions common to all.")
{
	char *p = maps_map_pages(6, PROT_READ | PROT_WRITE);
	unsigned int have = 0;

	mprotect(p + 2 * PAGE, PAGE, PROT_READ);
	EXPECT_EQ(maps_check(p, 6 * PAGE, IMPORT_READ, &have, NULL), 0);
	EXPECT_EQ(have, IMPORT_READ);
	EXPECT_EQ(maps_check_access(p, 6 * PAGE, BOTH), -EACCES);
	EXPECT_EQ(maps_check_access(p, 2 * PAGE, BOTH), 0);
	munmap(p, 6 * PAGE);
}

TEST(no_access, "A PROT_NONE mapping is mapped, but neither readable nor writable.")
{
	char *p = maps_map_pages(1, PROT_NONE);

	EXPECT_EQ(maps_check_access(p, PAGE, IMPORT_READ), -EACCES);
	EXPECT_EQ(maps_check_access(p, PAGE, IMPORT_WRITE), -EACCES);
	munmap(p, PAGE);
}

TEST(wraps, "A range that leaves the address space is out of range.")
{
	char *p = maps_map_pages(1, PROT_READ | PROT_WRITE);

	EXPECT_EQ(maps_check_access(p, SIZE_MAX, IMPORT_READ), -ERANGE);
	EXPECT_EQ(maps_check_access((void *)(UINTPTR_MAX - 10), 100, IMPORT_READ), -ERANGE);
	munmap(p, PAGE);
}

TEST(wild, "A wild pointer is a hole.")
{
	EXPECT_EQ(maps_check_access((void *)1, 1, IMPORT_READ), -EFAULT);
	EXPECT_EQ(maps_check_access((void *)(UINTPTR_MAX / 2), 100, IMPORT_READ), -EFAULT);
	EXPECT_EQ(maps_check_access((void *)(UINTPTR_MAX - 100), 50, IMPORT_READ), -EFAULT);
}

TEST(changes_are_seen, "If a mapping changes after a check, the next check sees the change.")
{
	char *p = maps_map_pages(1, PROT_READ | PROT_WRITE);

	EXPECT_EQ(maps_check_access(p, PAGE, BOTH), 0);
	mprotect(p, PAGE, PROT_READ);
	EXPECT_EQ(maps_check_access(p, PAGE, BOTH), -EACCES);
	munmap(p, PAGE);
	EXPECT_EQ(maps_check_access(p, PAGE, IMPORT_READ), -EFAULT);
}

TEST(child, "A child is checked against the child's mappings, and not the parent's.")
{
	char *p = maps_map_pages(1, PROT_READ | PROT_WRITE);
	int status;
	pid_t pid;

	EXPECT_EQ(maps_check_access(p, PAGE, BOTH), 0);
	pid = fork();
	if (!pid) {
		munmap(p, PAGE);
		_exit(maps_check_access(p, PAGE, IMPORT_READ) == -EFAULT ? 0 : 1);
	}
	EXPECT_EQ(waitpid(pid, &status, 0), pid);
	EXPECT_EQ(status, 0);
	munmap(p, PAGE);
}

TEST(descriptor_taken_away,
     "A program that closes unknown descriptors loses no descriptor of its own.")
{
	char *p = maps_map_pages(1, PROT_READ | PROT_WRITE);
	int mine;

	EXPECT_EQ(maps_check_access(p, PAGE, BOTH), 0);
	for (int fd = 3; fd < 64; fd++)
		close(fd);
	mine = open("/dev/null", O_RDONLY);
	for (int fd = mine; fd < 16; fd = dup(mine))
		;
	EXPECT_EQ(maps_check_access(p, PAGE, BOTH), 0);
	for (int fd = mine; fd < 16; fd++)
		EXPECT(fcntl(fd, F_GETFD) >= 0);
	munmap(p, PAGE);
}

/* The descriptor of /proc/self/maps kept by checks, or -1. */
static int maps_descriptor(void)
{
	char path[64], name[256];

	for (int fd = 0; fd < 256; fd++) {
		ssize_t length;

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		length = readlink(path, name, sizeof(name) - 1);
		if (length > 5 && !memcmp(name + length - 5, "/maps", 5))
			return fd;
	}
	return -1;
}

/* A child with a page at @at.  The child lives until a signal, or 60 seconds. */
static pid_t child_with_page(void *at)
{
	int ready[2];
	pid_t child;
	char byte;

	EXPECT_EQ(pipe(ready), 0);
	child = fork();
	if (!child) {
		void *p = mmap(at, PAGE, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

		alarm(TEST_HANG_S);
		if (p == at && write(ready[1], "", 1) == 1)
			pause();
		_exit(1);
	}
	close(ready[1]);
	EXPECT_EQ(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return child;
}

TEST(maps_of_another_process, "If the program replaces the descriptor by another process's maps, "
			      "the replacement is not used.")
{
	char *p = maps_map_pages(1, PROT_READ | PROT_WRITE), path[64];
	int theirs, kept;
	pid_t child;

	EXPECT_EQ(maps_check_access(p, PAGE, BOTH), 0);
	kept = maps_descriptor();
	if (kept < 0)
		test_skip("this kernel has no PROCMAP_QUERY: no descriptor is kept");
	munmap(p, PAGE);
	child = child_with_page(p);
	snprintf(path, sizeof(path), "/proc/%d/maps", child);
	theirs = open(path, O_RDONLY);
	EXPECT_EQ(dup2(theirs, kept), kept);
	EXPECT_EQ(maps_check_access(p, PAGE, BOTH), -EFAULT);
	EXPECT(fcntl(kept, F_GETFD) >= 0);
	kill(child, SIGKILL);
	EXPECT_EQ(waitpid(child, NULL, 0), child);
	close(kept);
	close(theirs);
}

TEST(descriptors_run_out, "A check without a free descriptor does not make later checks slow.")
{
	struct rlimit before = { 0 }, none;
	int fd;

	EXPECT_EQ(maps_check_access(&before, 1, IMPORT_READ), 0);
	fd = maps_descriptor();
	if (fd >= 0)
		close(fd);
	EXPECT_EQ(maps_check_access(&before, 1, IMPORT_READ), 0);
	fd = maps_descriptor();
	if (fd < 0)
		test_skip("this kernel has no PROCMAP_QUERY: a descriptor is of no use");
	close(fd);
	getrlimit(RLIMIT_NOFILE, &before);
	none = (struct rlimit){ 0, before.rlim_max };
	setrlimit(RLIMIT_NOFILE, &none);
	EXPECT_EQ(maps_check_access(&before, 1, IMPORT_READ), -EMFILE);
	setrlimit(RLIMIT_NOFILE, &before);
	EXPECT_EQ(maps_check_access(&before, 1, IMPORT_READ), 0);
	EXPECT(maps_descriptor() >= 0);
}
