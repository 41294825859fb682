/* SPDX-License-Identifier: Apache-2.0 */
/* The library's side of the kernel module, on a fake /dev/gdmabuf; tests/kmod tests the module. */
#include "fake_gdmabuf.h"
#include "harness.h"
#include "process.h"

#include "import/export/gdmabuf.h"
#include "util/log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096
static struct gdmabuf_range export_page(void)
{
	struct gdmabuf_range range;

	EXPECT_EQ(gdmabuf_export(GDMABUF_MEMORY_HOST, PAGE, PAGE, 0, &range), 0);
	close(range.fd);
	return range;
}

TEST(one_context, "A single context serves all exports, and a failed export leaves nothing behind.")
{
	struct gdmabuf_range a = export_page(), b;
	int before = fake_gdmabuf.opens, fds = process_count_descriptors();

	b = export_page();
	EXPECT_EQ(fake_gdmabuf.opens, before);
	EXPECT(gdmabuf_is_current(&a) && gdmabuf_is_current(&b));
	fake_gdmabuf.error = EINTR;
	EXPECT_EQ(gdmabuf_export(GDMABUF_MEMORY_HOST, PAGE, PAGE, 0, &b), -EINTR);
	fake_gdmabuf.error = 0;
	EXPECT_EQ(process_count_descriptors(), fds);
}

/* A status for waitpid(). */
static int child_check_parents(struct gdmabuf_range *parents)
{
	struct gdmabuf_range own;

	if (gdmabuf_is_current(parents))
		return 1;
	own = export_page();
	if (own.slot != parents->slot || own.generation != parents->generation)
		return 2;
	return gdmabuf_is_current(parents) ? 3 : gdmabuf_is_current(&own) ? 0 : 4;
}

static void expect_child(int (*run)(struct gdmabuf_range *), struct gdmabuf_range *parents)
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

static int first_export(struct gdmabuf_range *unused)
{
	struct gdmabuf_range first = export_page();

	(void)unused;
	expect_child(child_check_parents, &first);
	return 0;
}

TEST(parents, "A parent's export is not current in a child, even if a child's export has the slot.")
{
	expect_child(first_export, NULL);
}

/* All descriptors are closed; their numbers are other files'. */
static int in_daemon(struct gdmabuf_range *parents)
{
	int others[64];

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
	return gdmabuf_is_current(parents) ? 6 : 0;
}

TEST(daemon, "A child that closed all descriptors closes no descriptor opened since.")
{
	struct gdmabuf_range first = export_page();

	expect_child(in_daemon, &first);
}

/* The program opens the device at the number of the parent's descriptor. */
static int with_own_device(struct gdmabuf_range *unused)
{
	int device = 3;

	(void)unused;
	while (!fake_gdmabuf_is_device(device))
		device++;
	fake_gdmabuf_set_own(device); /* as after close() and open() */
	export_page();
	return fake_gdmabuf_is_device(device) && fake_gdmabuf_is_own(device) ? 0 : 1;
}

static int own_device_within(struct gdmabuf_range *unused)
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

static int without_device(struct gdmabuf_range *unused)
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
	struct gdmabuf_range first = export_page();

	expect_child(without_device, &first);
}

static int in_namespace(struct gdmabuf_range *parents)
{
	if (getpid() != 1)
		return 5;
	return child_check_parents(parents);
}

/* Process 1 of a namespace; the child is process 1 of a second namespace. */
static int namespace_within(struct gdmabuf_range *unused)
{
	struct gdmabuf_range first = export_page();

	(void)unused;
	if (getpid() != 1 || unshare(CLONE_NEWPID))
		return 6;
	expect_child(in_namespace, &first);
	return 0;
}

/* Runs in a child, because a process cannot start threads after unshare(). */
static int child_unshare(struct gdmabuf_range *unused)
{
	if (unshare(CLONE_NEWPID) && unshare(CLONE_NEWUSER | CLONE_NEWPID))
		return 77;
	expect_child(namespace_within, unused);
	return 0;
}

TEST(same_pid, "If a child in a namespace has the parent's process number, the parent's export is "
	       "not current.")
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

static int clone_within(struct gdmabuf_range *unused)
{
	struct gdmabuf_range first = export_page();
	int status = -1;
	pid_t child = syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, 0);

	(void)unused;
	if (!child) {
		fake_gdmabuf_child();
		_exit(child_check_parents(&first));
	}
	return waitpid(child, &status, 0) == child ? WEXITSTATUS(status) : 6;
}

TEST(raw_clone,
     "If no fork handler ran for a child, the parent's export is not current in the child.")
{
	expect_child(clone_within, NULL);
}

TEST(closed, "A process that closed the context's descriptor gets a new context.")
{
	struct gdmabuf_range before = export_page(), after;
	int device = 3, opened = fake_gdmabuf.opens;

	while (!fake_gdmabuf_is_device(device))
		device++;
	close(device);
	after = export_page();
	EXPECT_EQ(fake_gdmabuf.opens, opened + 1);
	EXPECT(gdmabuf_is_current(&after));
	EXPECT(!gdmabuf_is_current(&before));
}

static int child_without_descriptors(struct gdmabuf_range *parents)
{
	const struct rlimit none = { 3, 64 };
	struct gdmabuf_range range;

	(void)parents;
	setrlimit(RLIMIT_NOFILE, &none);
	return gdmabuf_export(GDMABUF_MEMORY_HOST, PAGE, PAGE, 0, &range) == -EMFILE ? 0 : 1;
}

TEST(no_descriptor, "If no descriptor is left for /dev/gdmabuf, an export is -EMFILE.")
{
	struct gdmabuf_range first = export_page();

	expect_child(child_without_descriptors, &first);
}

static uint64_t counts_read_idle(void)
{
	struct gdmabuf_counts counts;

	gdmabuf_counts(&counts);
	return counts.bytes_idle;
}

static void export_kept_range(uintptr_t address, size_t size)
{
	struct gdmabuf_range range;

	EXPECT_EQ(gdmabuf_export(GDMABUF_MEMORY_HOST, address, size, GDMABUF_OPTION_KEEP, &range),
		  0);
	close(range.fd);
}

TEST(dropped, "A drop of a range drops every pin that touches the range, and no other pin.")
{
	export_kept_range(16 * PAGE, 4 * PAGE);
	export_kept_range(24 * PAGE, 4 * PAGE);
	export_kept_range(17 * PAGE, PAGE); /* of the first */
	EXPECT_EQ(counts_read_idle(), 8 * PAGE);
	gdmabuf_drop(20 * PAGE, 4 * PAGE);
	EXPECT_EQ(counts_read_idle(), 8 * PAGE);
	gdmabuf_drop(19 * PAGE, 1);
	EXPECT_EQ(counts_read_idle(), 4 * PAGE);
	gdmabuf_drop(0, 25 * PAGE);
	EXPECT_EQ(counts_read_idle(), 0);
	export_kept_range(16 * PAGE, 4 * PAGE);
	gdmabuf_drop(16 * PAGE, 1);
	EXPECT_EQ(counts_read_idle(), 0);
}

static int limited_child(struct gdmabuf_range *unused)
{
	(void)unused;
	export_kept_range(16 * PAGE, 4 * PAGE);
	export_kept_range(24 * PAGE, 4 * PAGE);
	return counts_read_idle() == 4 * PAGE ? 0 : 1;
}

TEST(limit, "A limit applies to pins already kept, to later pins and to later contexts.")
{
	export_kept_range(16 * PAGE, 4 * PAGE);
	export_kept_range(24 * PAGE, 4 * PAGE);
	gdmabuf_set_limit(GDMABUF_MEMORY_HOST, 6 * PAGE);
	EXPECT_EQ(counts_read_idle(), 4 * PAGE);
	export_kept_range(32 * PAGE, 2 * PAGE);
	EXPECT_EQ(counts_read_idle(), 6 * PAGE);
	expect_child(limited_child, NULL);
	gdmabuf_set_limit(GDMABUF_MEMORY_HOST, UINT64_MAX);
	gdmabuf_drop(0, SIZE_MAX);
	EXPECT_EQ(counts_read_idle(), 0);
}

TEST(drop_idle, "All idle pins are given up at once, and later pins are kept within the limit.")
{
	gdmabuf_set_limit(GDMABUF_MEMORY_HOST, 6 * PAGE);
	export_kept_range(16 * PAGE, 2 * PAGE);
	export_kept_range(24 * PAGE, 4 * PAGE);
	EXPECT_EQ(counts_read_idle(), 6 * PAGE);
	gdmabuf_drop_idle();
	EXPECT_EQ(counts_read_idle(), 0);
	export_kept_range(24 * PAGE, 4 * PAGE);
	export_kept_range(16 * PAGE, 4 * PAGE);
	EXPECT_EQ(counts_read_idle(), 4 * PAGE);
	gdmabuf_set_limit(GDMABUF_MEMORY_HOST, UINT64_MAX);
	gdmabuf_drop_idle();
	EXPECT_EQ(counts_read_idle(), 0);
}

/* Called once, when fstatat() on the thread finds a closed descriptor. */
static _Thread_local void (*found_closed)(void);

int __real_fstatat(int fd, const char *path, struct stat *st, int flags);
int __wrap_fstatat(int fd, const char *path, struct stat *st, int flags);

int __wrap_fstatat(int fd, const char *path, struct stat *st, int flags)
{
	int ret = __real_fstatat(fd, path, st, flags), error = errno;
	void (*call)(void) = found_closed;

	if (ret && call) {
		found_closed = NULL;
		call();
	}
	errno = error;
	return ret;
}

static struct {
	pthread_t thread;
	bool ended;
} exporter;

static void *thread_export_page(void *unused)
{
	export_page();
	return unused;
}

static bool exporter_has_ended_or_waits(void *unused)
{
	exporter.ended = !pthread_tryjoin_np(exporter.thread, NULL);
	return exporter.ended || process_is_quiet(unused);
}

/* The exporting thread may need a lock of the waiting thread. */
static void other_thread_exports(void)
{
	EXPECT_EQ(pthread_create(&exporter.thread, NULL, thread_export_page, NULL), 0);
	EXPECT(process_settles(exporter_has_ended_or_waits, NULL));
}

static void close_device(void)
{
	for (int fd = 3; fd < 64; fd++)
		if (fake_gdmabuf_is_device(fd))
			close(fd);
}

TEST(limit_while_opened, "A limit applies to a context that a thread opens while the limit is set.")
{
	export_page();
	close_device();
	found_closed = other_thread_exports;
	gdmabuf_set_limit(GDMABUF_MEMORY_HOST, 6 * PAGE);
	EXPECT(!found_closed);
	if (!exporter.ended)
		EXPECT_EQ(pthread_join(exporter.thread, NULL), 0);
	EXPECT_EQ(fake_gdmabuf.budget[0], 6 * PAGE);
	gdmabuf_set_limit(GDMABUF_MEMORY_HOST, UINT64_MAX);
}

static int parents_kept(struct gdmabuf_range *unused)
{
	struct gdmabuf_counts counts;

	(void)unused;
	gdmabuf_drop(0, SIZE_MAX);
	gdmabuf_counts(&counts);
	return counts.bytes_pinned || counts.exports ? 1 : 0;
}

TEST(parents_kept, "A child neither drops nor counts the pins that the parent keeps.")
{
	export_kept_range(16 * PAGE, 4 * PAGE);
	expect_child(parents_kept, NULL);
	EXPECT_EQ(counts_read_idle(), 4 * PAGE);
	gdmabuf_drop(0, SIZE_MAX);
}
