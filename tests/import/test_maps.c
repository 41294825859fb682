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

#define PAGE 4096
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

/* The next mapping of a page is where the last one was, if nothing came between. */
TEST(first_check, "A hole is a hole after the first check of a process, too.")
{
	char *p = maps_map_pages(1, PROT_READ | PROT_WRITE);

	if (!strcmp(SANITIZER, "thread"))
		test_skip("the thread sanitizer maps memory of its own, into the hole, too");
	munmap(p, PAGE);
	EXPECT_EQ(maps_check_access(p, PAGE, IMPORT_READ), -EFAULT);
	EXPECT(maps_map_pages(1, PROT_READ) == p);
	munmap(p, PAGE);
}

TEST(whole_mapping, "A mapped range permits what its mapping permits.")
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
	EXPECT_EQ(maps_check_access(p + 4095, 2, BOTH), 0);
	EXPECT_EQ(maps_check_access(p + 4097, 4095, BOTH), 0);
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

TEST(hole_inside, "A hole anywhere is found, and named.")
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
     "Neighbouring mappings of other protection are one range, of what all permit.")
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

TEST(no_access, "PROT_NONE is mapped, but neither readable nor writable.")
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

TEST(wild, "Wild pointers are holes.")
{
	EXPECT_EQ(maps_check_access((void *)1, 1, IMPORT_READ), -EFAULT);
	EXPECT_EQ(maps_check_access((void *)(UINTPTR_MAX / 2), 100, IMPORT_READ), -EFAULT);
	EXPECT_EQ(maps_check_access((void *)(UINTPTR_MAX - 100), 50, IMPORT_READ), -EFAULT);
}

TEST(changes_are_seen, "A mapping that was checked before and changed since is checked anew.")
{
	char *p = maps_map_pages(1, PROT_READ | PROT_WRITE);

	EXPECT_EQ(maps_check_access(p, PAGE, BOTH), 0);
	mprotect(p, PAGE, PROT_READ);
	EXPECT_EQ(maps_check_access(p, PAGE, BOTH), -EACCES);
	munmap(p, PAGE);
	EXPECT_EQ(maps_check_access(p, PAGE, IMPORT_READ), -EFAULT);
}

TEST(child, "A child sees its own mappings, not its parent's.")
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
     "A program that closes descriptors it does not know loses none of its own.")
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

/* The descriptor of /proc/self/maps that checks keep, or -1. */
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

/* A child that has a page at @at, until it is killed; or by itself if its test failed. */
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

		alarm(60);
		if (p == at && write(ready[1], "", 1) == 1)
			pause();
		_exit(1);
	}
	close(ready[1]);
	EXPECT_EQ(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return child;
}

TEST(maps_of_another_process,
     "A descriptor of another process's maps, which the program has put there, is not asked.")
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

TEST(descriptors_run_out,
     "A check for which there was no descriptor is no reason to check slowly ever after.")
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
