/* SPDX-License-Identifier: Apache-2.0 */
/* The library's side of the kernel module, on a fake /dev/gdmabuf; tests/kmod has the real one. */
#include "harness.h"

#include "import/gdmabuf.h"
#include "import/log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/gdmabuf.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096
#define DEVICE "gdmabuf-device"

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __real_ioctl(int fd, unsigned long request, void *arg);
int __wrap_ioctl(int fd, unsigned long request, void *arg);

#define OWNER (PAGE - 4) /* where in the device's file is which process opened it */

static int opens, export_error;
static uint32_t slots;	     /* of the context that was opened last */
static uint32_t process = 1; /* counted by the test: its children are further on */

static bool is_device(int fd)
{
	char path[64], target[128] = "";

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return readlink(path, target, sizeof(target) - 1) > 0 && strstr(target, DEVICE);
}

int __wrap_open(const char *path, int flags, ...)
{
	int fd;

	if (strcmp(path, "/dev/gdmabuf"))
		return __real_open(path, flags, 0);
	fd = memfd_create(DEVICE, MFD_CLOEXEC);
	if (fd >= 0 && (ftruncate(fd, PAGE) || pwrite(fd, &process, 4, OWNER) != 4))
		abort();
	opens += fd >= 0;
	slots = 0;
	return fd;
}

/* The first export of each context has slot 0 and generation 1. */
static int export(int device, struct gdmabuf_export *e)
{
	const uint32_t one = 1;

	if (export_error) {
		errno = export_error;
		return -1;
	}
	e->out_fd = memfd_create("gdmabuf-export", MFD_CLOEXEC);
	if (e->out_fd < 0)
		return -1;
	e->out_slot = slots++;
	e->out_generation = 1;
	if (pwrite(device, &one, sizeof(one), e->out_slot * 4) != sizeof(one))
		abort();
	return 0;
}

int __wrap_ioctl(int fd, unsigned long request, void *arg)
{
	struct gdmabuf_caps *caps = arg;
	uint32_t owner;

	if (request != GDMABUF_CAPS && request != GDMABUF_EXPORT_HOST)
		return __real_ioctl(fd, request, arg);
	if (!is_device(fd)) {
		errno = ENOTTY;
		return -1;
	}
	if (pread(fd, &owner, 4, OWNER) != 4 || owner != process) {
		errno = EACCES;
		return -1;
	}
	if (request == GDMABUF_EXPORT_HOST)
		return export(fd, arg);
	caps->out_host_page_size = PAGE;
	caps->out_slots = 16;
	return 0;
}

static int count_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static struct gdmabuf_range exported(void)
{
	struct gdmabuf_range range;

	EXPECT_EQ(gdmabuf_export(GDMABUF_MEMORY_HOST, PAGE, PAGE, 0, &range), 0);
	close(range.fd);
	return range;
}

TEST(one_context, "One context serves all exports; a failed one leaves nothing behind.")
{
	struct gdmabuf_range a = exported(), b;
	int before = opens, fds = count_fds();

	b = exported();
	EXPECT_EQ(opens, before);
	EXPECT(gdmabuf_is_current(&a) && gdmabuf_is_current(&b));
	export_error = EINTR;
	EXPECT_EQ(gdmabuf_export(GDMABUF_MEMORY_HOST, PAGE, PAGE, 0, &b), -EINTR);
	export_error = 0;
	EXPECT_EQ(count_fds(), fds);
}

/* A status for waitpid(). */
static int child_of(struct gdmabuf_range *parents)
{
	struct gdmabuf_range own;

	if (gdmabuf_is_current(parents))
		return 1;
	own = exported();
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
		process++;
		_exit(run(parents));
	}
	EXPECT_EQ(waitpid(child, &status, 0), child);
	EXPECT_EQ(status, 0);
}

static int first_export(struct gdmabuf_range *unused)
{
	struct gdmabuf_range first = exported();

	(void)unused;
	expect_child(child_of, &first);
	return 0;
}

TEST(parents, "What a parent exported is none of a child's exports, though it has the same slot.")
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
	exported();
	for (int fd = 3; fd < 64; fd++)
		if (close(others[fd]))
			return 5;
	/* Now the numbers are free, and the next context gets that of the old one. */
	exported();
	exported();
	return gdmabuf_is_current(parents) ? 6 : 0;
}

TEST(daemon, "A child that closed all descriptors closes none that it opened since.")
{
	struct gdmabuf_range first = exported();

	expect_child(in_daemon, &first);
}

/* The program's own descriptor of the device, where the parent's was. */
static int with_own_device(struct gdmabuf_range *unused)
{
	uint32_t owner = 0;
	int device = 3;

	(void)unused;
	while (!is_device(device))
		device++;
	EXPECT_EQ(pwrite(device, &process, 4, OWNER), 4); /* as if it were closed and opened */
	exported();
	EXPECT_EQ(pread(device, &owner, 4, OWNER), 4);
	return is_device(device) && owner == process ? 0 : 1;
}

static int own_device_within(struct gdmabuf_range *unused)
{
	exported();
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
	exported();
	for (int fd = 3; fd < 64; fd++) {
		uint32_t owner = process;

		if (is_device(fd) && pread(fd, &owner, 4, OWNER) == 4 && owner != process)
			return 1;
	}
	return 0;
}

TEST(device_of_parent, "A child that opens a context does not hold its parent's open any more.")
{
	struct gdmabuf_range first = exported();

	expect_child(without_device, &first);
}

static int in_namespace(struct gdmabuf_range *parents)
{
	if (getpid() != 1)
		return 5;
	return child_of(parents);
}

/* Process 1 of a namespace, whose child is process 1 of another. */
static int namespace_within(struct gdmabuf_range *unused)
{
	struct gdmabuf_range first = exported();

	(void)unused;
	if (getpid() != 1 || unshare(CLONE_NEWPID))
		return 6;
	expect_child(in_namespace, &first);
	return 0;
}

/* A child, as this process cannot start threads any more when it has unshared. */
static int namespaces(struct gdmabuf_range *unused)
{
	if (unshare(CLONE_NEWPID) && unshare(CLONE_NEWUSER | CLONE_NEWPID))
		return 77;
	expect_child(namespace_within, unused);
	return 0;
}

TEST(same_pid, "What a parent exported is none of a child's with the same number in its namespace.")
{
	int status = -1;
	pid_t child;

	fflush(stdout);
	child = fork();
	if (!child) {
		process++;
		_exit(namespaces(NULL));
	}
	EXPECT_EQ(waitpid(child, &status, 0), child);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		test_skip("unshare() gives no PID namespace here");
	EXPECT_EQ(status, 0);
}

static int clone_within(struct gdmabuf_range *unused)
{
	struct gdmabuf_range first = exported();
	int status = -1;
	pid_t child = syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, 0);

	(void)unused;
	if (!child) {
		process++;
		_exit(child_of(&first));
	}
	return waitpid(child, &status, 0) == child ? WEXITSTATUS(status) : 6;
}

TEST(raw_clone,
     "What a parent exported is none of a child's for which no handler of fork() was called.")
{
	expect_child(clone_within, NULL);
}

TEST(closed, "A process that closed the context's descriptor gets another context.")
{
	struct gdmabuf_range before = exported(), after;
	int device = 3, opened = opens;

	while (!is_device(device))
		device++;
	close(device);
	after = exported();
	EXPECT_EQ(opens, opened + 1);
	EXPECT(gdmabuf_is_current(&after));
	EXPECT(!gdmabuf_is_current(&before));
}

static int without_descriptors(struct gdmabuf_range *parents)
{
	const struct rlimit none = { 3, 64 };
	struct gdmabuf_range range;

	(void)parents;
	setrlimit(RLIMIT_NOFILE, &none);
	return gdmabuf_export(GDMABUF_MEMORY_HOST, PAGE, PAGE, 0, &range) == -EMFILE ? 0 : 1;
}

TEST(no_descriptor, "-EMFILE where /dev/gdmabuf cannot be opened for want of a descriptor.")
{
	struct gdmabuf_range first = exported();

	expect_child(without_descriptors, &first);
}
