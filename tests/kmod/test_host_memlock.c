/* SPDX-License-Identifier: Apache-2.0 */
/* Exports of host memory and RLIMIT_MEMLOCK: how pages are charged to the user. */
#include "host_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/io_uring.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- the limit ---- */

static void export_beyond_limit(void *arg)
{
	unsigned char *p = pages_new(LENGTH, 1);
	int ctx = gdm_open(), other = gdm_open(), fd;

	(void)arg;
	become_user(LENGTH / 2);
	if (gdm_export_host(ctx, p, LENGTH, 0, NULL) != -EDQUOT)
		_exit(1);
	if (gdm_export_host(ctx, p, LENGTH / 2, 0, &fd))
		_exit(2);
	if (gdm_export_host(other, p + LENGTH / 2, PAGE, GDMABUF_READ_ONLY, NULL) != -EDQUOT)
		_exit(3);
	close(fd);
	if (gdm_export_host(other, p + LENGTH / 2, LENGTH / 2, 0, NULL))
		_exit(4);
}

TEST(host_memlock, "An export beyond RLIMIT_MEMLOCK fails with EDQUOT; all of the user's count.")
{
	EXPECT_EQ(in_child(export_beyond_limit, NULL), 0);
}

static void fail_within_limit(void *arg)
{
	unsigned char *p = pages_new(LENGTH + PAGE, 1);
	int ctx = gdm_open();

	(void)arg;
	become_user(LENGTH);
	munmap(p + LENGTH - PAGE, PAGE);
	for (int i = 0; i < 3; i++)
		if (gdm_export_host(ctx, p, LENGTH, 0, NULL) != -EFAULT)
			_exit(1);
	if (gdm_export_host(ctx, (void *)0x10000000, LENGTH + PAGE, 0, NULL) != -EDQUOT)
		_exit(2);
}

TEST(host_memlock_failed,
     "A failed export charges nothing, and the limit is looked at before the memory.")
{
	EXPECT_EQ(in_child(fail_within_limit, NULL), 0);
}

/* Raises or lowers CAP_IPC_LOCK in the effective set; the permitted set keeps the capability. */
static void raise_ipc_lock(int raised)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &header, data))
		_exit(98);
	data[0].effective &= ~(1U << CAP_IPC_LOCK);
	data[0].effective |= (unsigned int)raised << CAP_IPC_LOCK;
	if (syscall(SYS_capset, &header, data))
		_exit(98);
}

static void lower_ipc_lock(void *arg)
{
	unsigned char *p = pages_new(LENGTH, 1);
	struct rlimit limit = { LENGTH / 2, LENGTH / 2 };
	int ctx = gdm_open();

	(void)arg;
	if (setrlimit(RLIMIT_MEMLOCK, &limit) || gdm_export_host(ctx, p, LENGTH, 0, NULL))
		_exit(1);
	raise_ipc_lock(0);
	if (gdm_export_host(ctx, p, LENGTH, 0, NULL) != -EDQUOT)
		_exit(2);
	raise_ipc_lock(1);
	if (gdm_export_host(ctx, p, LENGTH, 0, NULL))
		_exit(3);
}

TEST(host_memlock_capability,
     "RLIMIT_MEMLOCK applies while the process lacks CAP_IPC_LOCK, even if the process opened "
     "the device with the capability.")
{
	EXPECT_EQ(in_child(lower_ipc_lock, NULL), 0);
}

/* Changes the user and loses all capabilities; the saved uid 0 permits the next change. */
static int host_become(uid_t uid)
{
	return setresuid((uid_t)-1, 0, (uid_t)-1) || setresuid(uid, uid, 0);
}

static void pin_as_two_users(void *arg)
{
	unsigned char *p = pages_new(3 * LENGTH, 1);
	struct rlimit limit = { LENGTH, LENGTH };
	int ctx = gdm_open(), a, b, c;

	(void)arg;
	if (setrlimit(RLIMIT_MEMLOCK, &limit) || host_become(1000) ||
	    gdm_export_host(ctx, p, LENGTH, 0, &a))
		_exit(1);
	if (gdm_export_host(ctx, p + LENGTH, LENGTH, 0, NULL) != -EDQUOT)
		_exit(2);
	if (host_become(1001) || gdm_export_host(ctx, p + LENGTH, LENGTH, 0, &b))
		_exit(3);
	close(a);
	if (gdm_export_host(ctx, p + 2 * LENGTH, LENGTH, 0, NULL) != -EDQUOT)
		_exit(4);
	if (host_become(1000) || gdm_export_host(ctx, p + 2 * LENGTH, LENGTH, 0, &c))
		_exit(5);
}

TEST(host_memlock_setuid,
     "An export is charged to the user of the caller, and the charge of that user ends with the "
     "export.")
{
	EXPECT_EQ(in_child(pin_as_two_users, NULL), 0);
}

/* ---- how long pages count ---- */

TEST(host_memlock_of_exited,
     "RLIMIT_MEMLOCK counts dma-bufs that outlive the user's process that exported the memory.")
{
	struct pinner pinner = pinner_new(LENGTH, 2 * LENGTH);
	int a, b;

	EXPECT_EQ(in_child(pin_and_pass, &pinner), 0);
	a = receive_fd(pinner.sockets[1]);
	EXPECT_EQ(in_child(pin_and_pass, &pinner), 0);
	b = receive_fd(pinner.sockets[1]);
	EXPECT_EQ(in_child(pin_and_pass, &pinner), 1);
	close(a);
	EXPECT_EQ(in_child(pin_and_pass, &pinner), 0);
	close(b);
	close(receive_fd(pinner.sockets[1]));
	pinner_free(&pinner);
}

TEST(host_memlock_mapped,
     "RLIMIT_MEMLOCK counts the pages of a closed dma-buf until the last mapping is gone.")
{
	struct pinner pinner = pinner_new(LENGTH, LENGTH);
	unsigned char *view;
	int fd;

	EXPECT_EQ(in_child(pin_and_pass, &pinner), 0);
	fd = receive_fd(pinner.sockets[1]);
	view = dmabuf_map(fd, LENGTH, PROT_READ);
	EXPECT(view);
	close(fd);
	EXPECT_EQ(in_child(pin_and_pass, &pinner), 1);
	munmap(view, LENGTH);
	EXPECT_EQ(in_child(pin_and_pass, &pinner), 0);
	close(receive_fd(pinner.sockets[1]));
	pinner_free(&pinner);
}

/* Exports, and executes cat, which inherits the dma-buf and ends when the socket is closed. */
static void pin_and_exec(const struct pinner *pinner)
{
	unsigned char *p = pages_new(pinner->length, 1);
	int ctx = gdm_open(), fd;

	become_user(pinner->limit);
	if (gdm_export_host(ctx, p, pinner->length, 0, &fd) || fcntl(fd, F_SETFD, 0) ||
	    dup2(pinner->sockets[0], 0) || dup2(pinner->sockets[0], 1) != 1)
		_exit(1);
	execlp("cat", "cat", "-", NULL);
	_exit(2);
}

TEST(host_memlock_exec,
     "RLIMIT_MEMLOCK counts an export across execve(), until the new program closes the dma-buf.")
{
	struct pinner pinner = pinner_new(LENGTH, LENGTH);
	pid_t child = fork();
	int status;
	char byte;

	if (!child)
		pin_and_exec(&pinner);
	close(pinner.sockets[0]);
	EXPECT_EQ(write(pinner.sockets[1], "x", 1), 1);
	EXPECT_EQ(read(pinner.sockets[1], &byte, 1), 1); /* cat runs */
	EXPECT_EQ(in_child(pin_and_pass, &pinner), 1);
	EXPECT_EQ(shutdown(pinner.sockets[1], SHUT_WR), 0);
	EXPECT_EQ(waitpid(child, &status, 0), child);
	EXPECT_EQ(status, 0);
	close(pinner.sockets[1]);
	pinner = pinner_new(LENGTH, LENGTH);
	EXPECT_EQ(in_child(pin_and_pass, &pinner), 0);
	pinner_free(&pinner);
}

/* ---- pages that are pinned more than once ---- */

enum { NO_HUGE_PAGES = 77 };

static void export_again_and_again(unsigned char *p, size_t length)
{
	enum { TIMES = 4 };
	int ctx = gdm_open(), fds[TIMES];

	become_user(TIMES * length);
	for (int i = 0; i < TIMES; i++)
		if (gdm_export_host(ctx, p, length, 0, &fds[i]))
			_exit(1);
	for (int i = 0; i < TIMES; i++) {
		if (gdm_export_host(ctx, p, PAGE, 0, NULL) != -EDQUOT)
			_exit(2);
		close(fds[i]);
		if (gdm_export_host(ctx, p, length, 0, &fds[i]))
			_exit(3);
	}
	_exit(0);
}

static void export_range_again(void *arg)
{
	(void)arg;
	export_again_and_again(pages_new(LENGTH, 1), LENGTH);
}

TEST(host_memlock_again, "A page counts once for each export of the page.")
{
	EXPECT_EQ(in_child(export_range_again, NULL), 0);
}

static void export_huge_again(void *arg)
{
	unsigned char *huge = huge_pages_new(1, 0);

	(void)arg;
	if (!huge)
		_exit(NO_HUGE_PAGES);
	export_again_and_again(huge + 5 * PAGE, 3 * PAGE);
}

TEST(host_memlock_huge, "Of a huge page the exported pages count, once for each export.")
{
	int status;

	gdm_need_huge_pages();
	status = in_child(export_huge_again, NULL);
	if (status == NO_HUGE_PAGES)
		test_skip("no huge pages");
	EXPECT_EQ(status, 0);
}

/* ---- one sum with io_uring ---- */

enum { NO_IO_URING = 77 };

static int host_ring_new(void)
{
	struct io_uring_params params = { 0 };

	return (int)syscall(SYS_io_uring_setup, 1, &params);
}

static int host_ring_register(int ring, void *p, size_t length)
{
	const struct iovec buffer = { p, length };

	return syscall(SYS_io_uring_register, ring, IORING_REGISTER_BUFFERS, &buffer, 1) ? -errno
											 : 0;
}

static void share_with_io_uring(void *arg)
{
	unsigned char *p = pages_new(2 * LENGTH, 1);
	int ctx = gdm_open(), ring, fd;

	(void)arg;
	become_user(LENGTH + LENGTH / 2);
	ring = host_ring_new();
	if (ring < 0 || host_ring_register(ring, p, LENGTH))
		_exit(NO_IO_URING);
	if (gdm_export_host(ctx, p + LENGTH, LENGTH, 0, NULL) != -EDQUOT)
		_exit(1);
	if (syscall(SYS_io_uring_register, ring, IORING_UNREGISTER_BUFFERS, NULL, 0))
		_exit(2);
	if (gdm_export_host(ctx, p + LENGTH, LENGTH, 0, &fd))
		_exit(3);
	if (host_ring_register(ring, p, LENGTH) != -ENOMEM)
		_exit(4);
	close(fd);
	if (host_ring_register(ring, p, LENGTH))
		_exit(5);
	/* The end of the process would leave the pages to a work item. */
	if (syscall(SYS_io_uring_register, ring, IORING_UNREGISTER_BUFFERS, NULL, 0))
		_exit(6);
}

TEST(host_memlock_io_uring, "RLIMIT_MEMLOCK limits the sum of exports and io_uring's buffers.")
{
	int status = in_child(share_with_io_uring, NULL);

	if (status == NO_IO_URING)
		test_skip("no io_uring for users");
	EXPECT_EQ(status, 0);
}

/* ---- exports that have begun ---- */

enum { STALLED_LENGTH = 2 << 20, STALLED = 4, LIMIT = STALLED * STALLED_LENGTH };

/* Makes the last page of the range one that a process has to bring, which never does. */
static int host_stall_last_page(unsigned char *p)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = {
		.range = { (uintptr_t)p + STALLED_LENGTH - PAGE, PAGE },
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);

	if (fd < 0 || ioctl(fd, UFFDIO_API, &api) || ioctl(fd, UFFDIO_REGISTER, &range))
		_exit(96);
	return fd;
}

static void export_and_stall(void *arg)
{
	unsigned char *p = pages_new(STALLED_LENGTH, 0);
	int ctx = gdm_open(), fault = host_stall_last_page(p), err;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(TEST_HANG_S);
	memset(p, 1, STALLED_LENGTH - PAGE);
	send_fd(*(int *)arg, fault);
	become_user(LIMIT);
	err = gdm_export_host(ctx, p, STALLED_LENGTH, 0, NULL);
	_exit(err == -EDQUOT ? 1 : 2);
}

static void export_within_limit(void *arg)
{
	unsigned char *p = pages_new(LIMIT, 0);
	int ctx = gdm_open(), err;

	(void)arg;
	become_user(LIMIT);
	err = gdm_export_host(ctx, p, LIMIT, 0, NULL);
	_exit(err == -EDQUOT ? 1 : err ? 2 : 0);
}

/*
 * Starts a process whose export waits for its last page, and waits until it does.  Returns 0 if the
 * process ends instead, with the exit status *@status.
 */
static pid_t host_start_stalled(int sockets[2], int *status)
{
	struct pollfd fault = { .events = POLLIN };
	pid_t pid = fork(), ended = 0;

	if (!pid)
		export_and_stall(&sockets[0]);
	EXPECT(pid > 0);
	fault.fd = receive_fd(sockets[1]);
	while (!ended && !poll(&fault, 1, 10))
		ended = waitpid(pid, status, WNOHANG);
	close(fault.fd);
	return ended ? 0 : pid;
}

TEST(host_memlock_before_pin,
     "Pages count before the first of them is pinned: exports that wait for a page of theirs pin "
     "no more than RLIMIT_MEMLOCK, and SIGKILL releases all.")
{
	long long pinned = gdm_pinned_pages();
	int sockets[2], status;
	pid_t pids[STALLED];

	EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
	for (int i = 0; i < STALLED; i++) {
		pids[i] = host_start_stalled(sockets, &status);
		if (!pids[i])
			test_skip("before Linux 6.5 an export does not wait for such a page");
	}
	EXPECT_EQ(host_start_stalled(sockets, &status), 0);
	EXPECT_EQ(WEXITSTATUS(status), 1);
	EXPECT(gdm_pinned_pages() <= pinned + (long long)(LIMIT / PAGE));
	for (int i = 0; i < STALLED; i++) {
		EXPECT_EQ(kill(pids[i], SIGKILL), 0);
		EXPECT_EQ(waitpid(pids[i], NULL, 0), pids[i]);
	}
	EXPECT_EQ(gdm_pinned_pages(), pinned);
	EXPECT_EQ(in_child(export_within_limit, NULL), 0);
	close(sockets[0]);
	close(sockets[1]);
}
