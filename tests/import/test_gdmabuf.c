/* SPDX-License-Identifier: Apache-2.0 */
/* The library's side of the kernel module, on a fake /dev/gdmabuf; tests/kmod has the real one. */
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

TEST(one_context, "One context serves all exports; a failed one leaves nothing behind.")
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

TEST(parents, "A parent's export is none of a child's exports, though it has the same slot.")
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
	/* Now the numbers are free, and the next context gets that of the old one. */
	export_page();
	export_page();
	return gdmabuf_is_current(parents) ? 6 : 0;
}

TEST(daemon, "A child that closed all descriptors closes none that it opened since.")
{
	struct gdmabuf_range first = export_page();

	expect_child(in_daemon, &first);
}

/* The program's own descriptor of the device, where the parent's was. */
static int with_own_device(struct gdmabuf_range *unused)
{
	int device = 3;

	(void)unused;
	while (!fake_gdmabuf_is_device(device))
		device++;
	fake_gdmabuf_set_own(device); /* as if it were closed and opened */
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
     "A device that a child has opened itself, where its parent's was, stays open.")
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

TEST(device_of_parent, "A child that opens a context does not hold its parent's open any more.")
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

/* Process 1 of a namespace, whose child is process 1 of another. */
static int namespace_within(struct gdmabuf_range *unused)
{
	struct gdmabuf_range first = export_page();

	(void)unused;
	if (getpid() != 1 || unshare(CLONE_NEWPID))
		return 6;
	expect_child(in_namespace, &first);
	return 0;
}

/* A child, as this process cannot start threads any more when it has unshared. */
static int child_unshare(struct gdmabuf_range *unused)
{
	if (unshare(CLONE_NEWPID) && unshare(CLONE_NEWUSER | CLONE_NEWPID))
		return 77;
	expect_child(namespace_within, unused);
	return 0;
}

TEST(same_pid, "A parent's export is none of a child's exports if the child has the same number in "
	       "its namespace.")
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

TEST(raw_clone, "A parent's export is none of a child's exports if no handler of fork() was called "
		"for the child.")
{
	expect_child(clone_within, NULL);
}

TEST(closed, "A process that closed the context's descriptor gets another context.")
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

TEST(no_descriptor, "-EMFILE where /dev/gdmabuf cannot be opened for want of a descriptor.")
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

TEST(dropped, "Dropping a range drops every pin that touches the range, and no other pin.")
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

TEST(limit, "A limit holds for what is kept already, for what will be, and for contexts to come.")
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

/* Called once, when this thread finds that a descriptor is closed. */
static _Thread_local void (*found_closed)(void);

int __real_fstat(int fd, struct stat *st);
int __wrap_fstat(int fd, struct stat *st);

int __wrap_fstat(int fd, struct stat *st)
{
	int ret = __real_fstat(fd, st), error = errno;
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

/* To its end, or for a second: it may need a lock that this thread has. */
static void other_thread_exports(void)
{
	struct timespec end;

	EXPECT_EQ(pthread_create(&exporter.thread, NULL, thread_export_page, NULL), 0);
	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec++;
	exporter.ended = !pthread_timedjoin_np(exporter.thread, NULL, &end);
}

static void close_device(void)
{
	for (int fd = 3; fd < 64; fd++)
		if (fake_gdmabuf_is_device(fd))
			close(fd);
}

TEST(limit_while_opened,
     "A limit holds for a context that another thread opens while the limit is set.")
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

TEST(parents_kept, "A child neither drops nor counts what its parent keeps.")
{
	export_kept_range(16 * PAGE, 4 * PAGE);
	expect_child(parents_kept, NULL);
	EXPECT_EQ(counts_read_idle(), 4 * PAGE);
	gdmabuf_drop(0, SIZE_MAX);
}
