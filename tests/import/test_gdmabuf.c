/* SPDX-License-Identifier: Apache-2.0 */
/* The library's side of the kernel module, on a fake /dev/gdmabuf; tests/kmod tests the module. */
#include "fake_gdmabuf.h"
#include "harness.h"
#include "process.h"

#include "import/export/export.h"
#include "import/export/gdmabuf.h"
#include "util/log.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE ((size_t)sysconf(_SC_PAGESIZE))

static void export_page(void)
{
	struct export_range range;

	EXPECT_EQ(gdmabuf_export(GDMABUF_MEMORY_HOST, PAGE, PAGE, false, &range), 0);
	close(range.fd);
}

static struct gdmabuf_watch watch_page(void)
{
	struct gdmabuf_watch watch;

	EXPECT_EQ(gdmabuf_watch_begin(PAGE, PAGE, &watch), 0);
	EXPECT(gdmabuf_watch_is_current(&watch));
	return watch;
}

TEST(whole_pages, "An export is a dma-buf of the whole pages around the range.")
{
	struct export_range range;

	EXPECT_EQ(gdmabuf_export(GDMABUF_MEMORY_HOST, 2 * PAGE + 5, PAGE, false, &range), 0);
	EXPECT_EQ(range.offset, 5);
	EXPECT_EQ(range.whole, 2 * PAGE);
	EXPECT_EQ(lseek(range.fd, 0, SEEK_END), 2 * PAGE);
	EXPECT(fcntl(range.fd, F_GETFD) & FD_CLOEXEC);
	close(range.fd);
}

TEST(one_context, "A single context serves all exports, and a failed export leaves nothing behind.")
{
	struct export_range range;
	int before, fds;

	export_page();
	before = fake_gdmabuf.opens;
	fds = process_count_descriptors();
	export_page();
	EXPECT_EQ(fake_gdmabuf.opens, before);
	fake_gdmabuf.error = EINTR;
	EXPECT_EQ(gdmabuf_export(GDMABUF_MEMORY_HOST, PAGE, PAGE, false, &range), -EINTR);
	fake_gdmabuf.error = 0;
	EXPECT_EQ(process_count_descriptors(), fds);
}

static const struct limit_error {
	const char *name;
	enum gdmabuf_memory memory;
	int error;
	const char *says; /* after the range */
} limit_errors[] = {
	{ "memlock", GDMABUF_MEMORY_HOST, EDQUOT,
	  "the limit of locked memory, "
	  "RLIMIT_MEMLOCK (ulimit -l), is reached: it is 3 MiB for all processes of the user "
	  "together" },
	{ "quota", GDMABUF_MEMORY_GPU, EDQUOT,
	  "the user's quota of GPU memory, the "
	  "parameter gpu_quota_mb of gdmabuf, is used up" },
	{ "bar", GDMABUF_MEMORY_GPU, ENOSPC, "no room is left in the GPU's BAR" },
	{ "other", GDMABUF_MEMORY_HOST, EFAULT, "Bad address" },
};

static const struct limit_error *limit_error;

static void limit_is_reached(void)
{
	const struct rlimit limit = { 3 << 20, 3 << 20 };
	struct export_range range;
	char says[256];

	fake_gdmabuf_child();
	fake_gdmabuf.has_gpu = true;
	EXPECT(!setrlimit(RLIMIT_MEMLOCK, &limit));
	fake_gdmabuf.error = limit_error->error;
	EXPECT_EQ(gdmabuf_export(limit_error->memory, PAGE, PAGE, false, &range),
		  -limit_error->error);
	snprintf(says, sizeof(says), "export of %zu bytes of %s memory at %#zx: %s", PAGE,
		 limit_error->memory == GDMABUF_MEMORY_HOST ? "host" : "GPU", PAGE,
		 limit_error->says);
	EXPECT(!strcmp(log_last(), says));
}

TEST_EACH(limit, struct limit_error, limit_errors, "A refused export names the limit.")
{
	limit_error = row;
	test_in_child(limit_is_reached);
}

static void memlock_is_odd(void)
{
	const struct rlimit limit = { 65 << 10, 65 << 10 };
	struct export_range range;

	fake_gdmabuf_child();
	EXPECT(!setrlimit(RLIMIT_MEMLOCK, &limit));
	fake_gdmabuf.error = EDQUOT;
	EXPECT_EQ(gdmabuf_export(GDMABUF_MEMORY_HOST, PAGE, PAGE, false, &range), -EDQUOT);
	EXPECT(strstr(log_last(), "it is 65 KiB for"));
}

TEST(memlock_kib, "A limit of locked memory that is no whole MiB is told in KiB.")
{
	test_in_child(memlock_is_odd);
}

/* A status for waitpid(). */
static int child_exports(struct gdmabuf_watch *parents)
{
	int before = fake_gdmabuf.watches;
	struct gdmabuf_watch own;

	export_page();
	own = watch_page();
	if (own.slot != parents->slot || own.generation != parents->generation)
		return 1;
	gdmabuf_watch_end(parents);
	if (!gdmabuf_watch_is_current(&own) || fake_gdmabuf.watches != before + 1)
		return 2;
	gdmabuf_watch_end(&own);
	return 0;
}

static void expect_child(int (*run)(struct gdmabuf_watch *), struct gdmabuf_watch *parents)
{
	int status = -1;
	pid_t child;

	fflush(stdout);
	child = fork();
	if (!child) {
		fake_gdmabuf_child();
		_exit(run(parents));
	}
	EXPECT_EQ(waitpid(child, &status, 0), child);
	EXPECT_EQ(status, 0);
}

static int first_watch(struct gdmabuf_watch *unused)
{
	struct gdmabuf_watch first = watch_page();

	(void)unused;
	expect_child(child_exports, &first);
	return 0;
}

TEST(parents, "A child exports and watches by a context of its own, and ends no watch of its "
	      "parent's, even if a watch of the child's has the slot.")
{
	expect_child(first_watch, NULL);
}

/* All descriptors are closed; their numbers are other files'. */
static int in_daemon(struct gdmabuf_watch *parents)
{
	int others[64];

	(void)parents;
	for (int fd = 3; fd < 64; fd++)
		close(fd);
	for (int fd = 3; fd < 64; fd++)
		others[fd] = memfd_create("other", MFD_CLOEXEC);
	export_page();
	for (int fd = 3; fd < 64; fd++)
		if (close(others[fd]))
			return 5;
	/* Now the numbers are free, and the next context gets the number of the old context. */
	export_page();
	export_page();
	return 0;
}

TEST(daemon, "A child that closed all descriptors closes no descriptor opened since.")
{
	export_page();
	expect_child(in_daemon, NULL);
}

/* The program opens the device at the number of the parent's descriptor. */
static int with_own_device(struct gdmabuf_watch *unused)
{
	int device = 3;

	(void)unused;
	while (!fake_gdmabuf_is_device(device))
		device++;
	fake_gdmabuf_set_own(device); /* as after close() and open() */
	export_page();
	return fake_gdmabuf_is_device(device) && fake_gdmabuf_is_own(device) ? 0 : 1;
}

static int own_device_within(struct gdmabuf_watch *unused)
{
	export_page();
	expect_child(with_own_device, unused);
	return 0;
}

TEST(device_of_child,
     "A device that a child opens at the number of the parent's descriptor stays open.")
{
	expect_child(own_device_within, NULL);
}

static int without_device(struct gdmabuf_watch *unused)
{
	(void)unused;
	export_page();
	for (int fd = 3; fd < 64; fd++)
		if (fake_gdmabuf_is_device(fd) && !fake_gdmabuf_is_own(fd))
			return 1;
	return 0;
}

TEST(device_of_parent, "A child that opens a context no longer holds the parent's context open.")
{
	export_page();
	expect_child(without_device, NULL);
}

static int in_namespace(struct gdmabuf_watch *parents)
{
	if (getpid() != 1)
		return 5;
	return child_exports(parents);
}

/* Process 1 of a namespace; the child is process 1 of a second namespace. */
static int namespace_within(struct gdmabuf_watch *unused)
{
	struct gdmabuf_watch first = watch_page();

	(void)unused;
	if (getpid() != 1 || unshare(CLONE_NEWPID))
		return 6;
	expect_child(in_namespace, &first);
	return 0;
}

/* Runs in a child, because a process cannot start threads after unshare(). */
static int child_unshare(struct gdmabuf_watch *unused)
{
	if (unshare(CLONE_NEWPID) && unshare(CLONE_NEWUSER | CLONE_NEWPID))
		return 77;
	expect_child(namespace_within, unused);
	return 0;
}

TEST(same_pid, "If a child in a namespace has the parent's process number, the child exports by a "
	       "context of its own.")
{
	int status = -1;
	pid_t child;

	fflush(stdout);
	child = fork();
	if (!child) {
		fake_gdmabuf_child();
		_exit(child_unshare(NULL));
	}
	EXPECT_EQ(waitpid(child, &status, 0), child);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		test_skip("unshare() gives no PID namespace here");
	EXPECT_EQ(status, 0);
}

static int clone_within(struct gdmabuf_watch *unused)
{
	struct gdmabuf_watch first = watch_page();
	int status = -1;
	pid_t child = syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, 0);

	(void)unused;
	if (!child) {
		fake_gdmabuf_child();
		_exit(child_exports(&first));
	}
	return waitpid(child, &status, 0) == child ? WEXITSTATUS(status) : 6;
}

TEST(raw_clone, "If no fork handler ran for a child, the child exports by a context of its own.")
{
	if (!strcmp(SANITIZER, "thread"))
		test_skip("the thread sanitizer does not know such a child");
	expect_child(clone_within, NULL);
}

TEST(closed, "A process that closed the context's descriptor gets a new context.")
{
	int device = 3, opened;

	export_page();
	opened = fake_gdmabuf.opens;
	while (!fake_gdmabuf_is_device(device))
		device++;
	close(device);
	export_page();
	EXPECT_EQ(fake_gdmabuf.opens, opened + 1);
	export_page();
	EXPECT_EQ(fake_gdmabuf.opens, opened + 1);
}

static int child_without_descriptors(struct gdmabuf_watch *unused)
{
	const struct rlimit none = { 3, 64 };
	struct export_range range;

	(void)unused;
	setrlimit(RLIMIT_NOFILE, &none);
	return gdmabuf_export(GDMABUF_MEMORY_HOST, PAGE, PAGE, false, &range) == -EMFILE ? 0 : 1;
}

TEST(no_descriptor, "If no descriptor is left for /dev/gdmabuf, an export is -EMFILE.")
{
	export_page();
	expect_child(child_without_descriptors, NULL);
}
