/* SPDX-License-Identifier: Apache-2.0 */
/* Watchers of host memory, on systems with and without userfaultfd(2). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "harness.h"
#include "import/opaque_fd/watcher.h"
#include "monitor_fixture.h"
#include "process.h"
#include "refused_userfaultfd.h"

#define SIZE ((size_t)1 << 20)

static void watcher_told_in_vain(uintptr_t address, size_t size)
{
	(void)address, (void)size;
}

static void watcher_is_refused_once(void)
{
	refused_call = (struct refused_call){ SYS_userfaultfd, EPERM, 0 };
	for (int i = 0; i < 3; i++)
		EXPECT(!watcher_is_possible(SIZE));
	EXPECT_EQ(refused_call.count, 1);
	refused_call.error = 0;
	EXPECT(!watcher_is_possible(SIZE));
}

TEST(refused, "If every row refuses for good, the process asks once.")
{
	test_in_child(watcher_is_refused_once);
}

static void watcher_says_why(void)
{
	refused_call = (struct refused_call){ SYS_userfaultfd, EPERM, 0 };
	EXPECT(!strcmp(watcher_describe(), "the kernel module gdmabuf is not loaded; "
					   "the system refuses userfaultfd(2) (EPERM)"));
}

TEST(describe_refused, "The description of a process without a watcher has the rows' reasons.")
{
	test_in_child(watcher_says_why);
}

static void watcher_turned_off(void)
{
	setenv("CLIMPORT_KEEP_HOST", "0", 1);
	EXPECT(!watcher_is_possible(SIZE));
	EXPECT(!strcmp(watcher_describe(), "CLIMPORT_KEEP_HOST is 0"));
}

TEST(forbidden, "CLIMPORT_KEEP_HOST=0 means that there is no watcher.")
{
	test_in_child(watcher_turned_off);
}

TEST(small, "A range is too small if the range is too small for every row.")
{
	EXPECT(!watcher_is_possible(1));
	EXPECT(!watcher_is_possible(MONITOR_MIN_SIZE - 1));
}

static void watcher_shortage_passes(void)
{
	struct rlimit before;

	refused_call = (struct refused_call){ SYS_userfaultfd, EMFILE, 0 };
	process_limit_descriptors(64, &before);
	while (dup(0) >= 0)
		;
	EXPECT(watcher_is_possible(SIZE));
	setrlimit(RLIMIT_NOFILE, &before);
	refused_call.error = 0;
	EXPECT(watcher_is_possible(SIZE));
}

TEST(shortage, "A lack of descriptors at the first question is not the last answer.")
{
	test_in_child(watcher_shortage_passes);
}

TEST(stale, "A watch is current until the memory is unmapped.")
{
	struct watcher_watch watch;
	char *p;

	monitor_fixture_needed();
	p = monitor_fixture_map(SIZE);
	monitor_fixture_wait(p, SIZE);
	EXPECT(watcher_is_possible(SIZE));
	EXPECT_EQ(watcher_watch((uintptr_t)p, SIZE, watcher_told_in_vain, &watch), 0);
	EXPECT(watcher_is_current(&watch));
	EXPECT(!munmap(p, SIZE));
	EXPECT(!watcher_is_current(&watch));
	watcher_put(&watch);
	EXPECT(!watch.by);
}

TEST(no_watch, "A struct of zeros is a watch that is not current, and may be put.")
{
	struct watcher_watch watch = { 0 };

	EXPECT(!watcher_is_current(&watch));
	watcher_put(&watch);
}
