/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_dmabuf.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/dma-buf.h>
#include <linux/magic.h>
#include <linux/udmabuf.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "fork_safe.h"
#include "stub.h"

#define PREFIX "fake-dmabuf-"

#ifndef DMA_BUF_MAGIC
#define DMA_BUF_MAGIC 0x444d4142
#endif

/*
 * stub_trace() is absent if the library is preloaded into a program that has the stub only as an
 * ICD.
 */
#pragma weak stub_trace

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all variables below */
FORK_SAFE(lock, 102);
static const char *fail_edge = "";
static int fail_error;
static unsigned fail_times, fail_after;
static long delay_ms;
static fake_dmabuf_observer *observer;
static char busy_name[64];
static int idle_fd = -1; /* readable while no buffer is busy */
static int depth;
static enum fake_udmabuf udmabuf_now;
static ino_t udmabufs[64]; /* memfds of which udmabuf made a dma-buf; the oldest is forgotten */
static unsigned num_udmabufs;

static bool is_udmabuf(int fd)
{
	struct stat st;
	bool found = false;
	int saved = errno;

	if (!fstat(fd, &st)) {
		pthread_mutex_lock(&lock);
		for (size_t i = 0; i < 64; i++)
			found |= udmabufs[i] && udmabufs[i] == st.st_ino;
		pthread_mutex_unlock(&lock);
	}
	errno = saved;
	return found;
}

static bool name_of(int fd, char *name, size_t room)
{
	static const char prefix[] = "/memfd:" PREFIX;
	char path[64], target[256];
	size_t end;
	ssize_t length;
	int saved = errno;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	length = readlink(path, target, sizeof(target) - 1);
	errno = saved;
	if (length < 0)
		return false;
	target[length] = 0;
	if (strncmp(target, prefix, sizeof(prefix) - 1)) {
		snprintf(name, room, "udmabuf");
		return is_udmabuf(fd);
	}
	end = strcspn(target + sizeof(prefix) - 1, " "); /* "name (deleted)" */
	end = end < room ? end : room - 1;
	memcpy(name, target + sizeof(prefix) - 1, end);
	name[end] = 0;
	return true;
}

void fake_dmabuf_set_udmabuf(enum fake_udmabuf udmabuf)
{
	pthread_mutex_lock(&lock);
	udmabuf_now = udmabuf;
	pthread_mutex_unlock(&lock);
}

static enum fake_udmabuf udmabuf_get(void)
{
	enum fake_udmabuf udmabuf;

	pthread_mutex_lock(&lock);
	udmabuf = udmabuf_now;
	pthread_mutex_unlock(&lock);
	return udmabuf;
}

/* The same pages by a new open file. */
static int fake_udmabuf_create(const struct udmabuf_create *create)
{
	struct stat st;
	int fd = fake_dmabuf_reopen((int)create->memfd, O_RDWR);

	if (fd < 0)
		return -1;
	if (create->offset || create->size % (uint64_t)sysconf(_SC_PAGESIZE) || fstat(fd, &st) ||
	    create->size > (uint64_t)st.st_size) {
		close(fd);
		errno = EINVAL;
		return -1;
	}
	pthread_mutex_lock(&lock);
	udmabufs[num_udmabufs++ % 64] = st.st_ino;
	pthread_mutex_unlock(&lock);
	return fd;
}

int fake_dmabuf_create(const char *name, size_t size)
{
	char full[128];
	int fd;

	snprintf(full, sizeof(full), PREFIX "%s", name);
	fd = memfd_create(full, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd >= 0 && ftruncate(fd, (off_t)size)) {
		close(fd);
		return -1;
	}
	return fd;
}

int fake_dmabuf_reopen(int fd, int mode)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, mode | O_CLOEXEC);
}

void fake_dmabuf_fail(const char *edge, int error, unsigned times)
{
	pthread_mutex_lock(&lock);
	fail_edge = edge;
	fail_error = error;
	fail_times = times;
	fail_after = 0;
	pthread_mutex_unlock(&lock);
}

void fake_dmabuf_fail_nth(const char *edge, int error, unsigned nth)
{
	fake_dmabuf_fail(edge, error, 1);
	pthread_mutex_lock(&lock);
	fail_after = nth - 1;
	pthread_mutex_unlock(&lock);
}

bool fake_dmabuf_failed(void)
{
	bool failed;

	pthread_mutex_lock(&lock);
	failed = !fail_times;
	pthread_mutex_unlock(&lock);
	return failed;
}

void fake_dmabuf_delay(long ms)
{
	pthread_mutex_lock(&lock);
	delay_ms = ms;
	pthread_mutex_unlock(&lock);
}

void fake_dmabuf_observe(fake_dmabuf_observer *wanted)
{
	pthread_mutex_lock(&lock);
	observer = wanted;
	pthread_mutex_unlock(&lock);
}

/* Without the lock: the observer may ask this file. */
static void sync_observed(const char *edge, const char *name)
{
	fake_dmabuf_observer *call;

	pthread_mutex_lock(&lock);
	call = observer;
	pthread_mutex_unlock(&lock);
	if (call)
		call(edge, name);
}

void fake_dmabuf_busy(const char *name)
{
	uint64_t count = 1;

	pthread_mutex_lock(&lock);
	if (idle_fd < 0)
		idle_fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
	snprintf(busy_name, sizeof(busy_name), "%s", name ? name : "");
	if (name ? read(idle_fd, &count, sizeof(count)) : write(idle_fd, &count, sizeof(count)))
		errno = 0; /* the buffer was already busy or idle */
	pthread_mutex_unlock(&lock);
}

int fake_dmabuf_open_brackets(void)
{
	int open_brackets;

	pthread_mutex_lock(&lock);
	open_brackets = depth;
	pthread_mutex_unlock(&lock);
	return open_brackets;
}

void fake_dmabuf_reset(void)
{
	fake_dmabuf_busy(NULL);
	fake_dmabuf_fail("", 0, 0);
	fake_dmabuf_delay(0);
	fake_dmabuf_observe(NULL);
	pthread_mutex_lock(&lock);
	depth = 0;
	udmabuf_now = FAKE_UDMABUF_NONE;
	memset(udmabufs, 0, sizeof(udmabufs));
	pthread_mutex_unlock(&lock);
}

/* Returns the error to inject now, or 0.  Successful calls are counted. */
static int sync_result(const char *edge, long *delay)
{
	int error = 0;

	pthread_mutex_lock(&lock);
	if (fail_times && !strcmp(edge, fail_edge)) {
		if (fail_after) {
			fail_after--;
		} else {
			fail_times--;
			error = fail_error;
		}
	}
	if (!error)
		depth += !strcmp(edge, "START") - !strcmp(edge, "END");
	*delay = delay_ms;
	pthread_mutex_unlock(&lock);
	return error;
}

static int fake_sync(const char *name, const struct dma_buf_sync *sync)
{
	const char *edge = sync->flags == (DMA_BUF_SYNC_END | DMA_BUF_SYNC_WRITE) ? "CLEAN"
			   : sync->flags & DMA_BUF_SYNC_END			  ? "END"
										  : "START";
	const char *access = sync->flags & DMA_BUF_SYNC_READ
				     ? sync->flags & DMA_BUF_SYNC_WRITE ? "rw" : "r"
			     : sync->flags & DMA_BUF_SYNC_WRITE ? "w"
								: "";
	struct timespec time = { 0, 0 };
	long delay;
	int error;

	if (sync->flags & ~(uint64_t)DMA_BUF_SYNC_VALID_FLAGS_MASK || !*access) {
		errno = EINVAL;
		return -1;
	}
	error = sync_result(edge, &delay);
	time.tv_sec = delay / 1000;
	time.tv_nsec = delay % 1000 * 1000000;
	nanosleep(&time, NULL); /* time: a slow driver, for no check */
	if (stub_trace)
		stub_trace("%s %s %s %s", error ? "failed" : "sync", edge, name, access);
	if (!error) {
		sync_observed(edge, name);
		return 0;
	}
	errno = error;
	return -1;
}

FAKE_API int ioctl(int fd, unsigned long request, ...)
{
	char name[64];
	va_list args;
	void *arg;

	va_start(args, request);
	arg = va_arg(args, void *);
	va_end(args);
	if (request == UDMABUF_CREATE && udmabuf_get() == FAKE_UDMABUF)
		return fake_udmabuf_create(arg);
	if (request == DMA_BUF_IOCTL_SYNC && name_of(fd, name, sizeof(name)))
		return fake_sync(name, arg);
	return (int)syscall(SYS_ioctl, fd, request, arg);
}

FAKE_API int fstatfs(int fd, struct statfs *fs)
{
	char name[64];
	int ret = (int)syscall(SYS_fstatfs, fd, fs);

	if (!ret && name_of(fd, name, sizeof(name)))
		fs->f_type = DMA_BUF_MAGIC;
	return ret;
}

static bool is_busy(int fd)
{
	char name[64];
	bool busy;

	if (fd < 0 || !name_of(fd, name, sizeof(name)))
		return false;
	pthread_mutex_lock(&lock);
	busy = *busy_name && !strcmp(name, busy_name);
	pthread_mutex_unlock(&lock);
	return busy;
}

/* poll() itself is replaced, and arm64 has no such system call. */
static int poll_really(struct pollfd *fds, nfds_t count, int timeout)
{
	struct timespec time = { timeout / 1000, timeout % 1000 * 1000000L };

	return ppoll(fds, count, timeout < 0 ? NULL : &time, NULL);
}

/* A busy buffer becomes ready when idle_fd becomes readable. */
FAKE_API int poll(struct pollfd *fds, nfds_t count, int timeout)
{
	struct pollfd mine[64];
	int ret;

	if (count > 64)
		return poll_really(fds, count, timeout);
	for (nfds_t i = 0; i < count; i++)
		mine[i] = is_busy(fds[i].fd) ? (struct pollfd){ idle_fd, POLLIN, 0 } : fds[i];
	ret = poll_really(mine, count, timeout);
	for (nfds_t i = 0; i < count; i++)
		fds[i].revents = mine[i].fd == fds[i].fd ? mine[i].revents
				 : mine[i].revents	 ? fds[i].events
							 : 0;
	return ret;
}

/* The fake device is any file: the ioctl tells what is meant. */
static int fake_open(const char *path, int flags, mode_t mode)
{
	const enum fake_udmabuf udmabuf = path && !strcmp(path, "/dev/udmabuf") ? udmabuf_get()
										: FAKE_UDMABUF_REAL;

	if (udmabuf == FAKE_UDMABUF)
		path = "/dev/null";
	if (udmabuf != FAKE_UDMABUF_NONE)
		return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
	errno = ENOENT;
	return -1;
}

FAKE_API int open(const char *path, int flags, ...)
{
	va_list args;
	mode_t mode;

	va_start(args, flags);
	mode = va_arg(args, mode_t);
	va_end(args);
	return fake_open(path, flags, mode);
}

#ifndef _FILE_OFFSET_BITS /* open() is no open64() */
FAKE_API int open64(const char *path, int flags, ...)
{
	va_list args;
	mode_t mode;

	va_start(args, flags);
	mode = va_arg(args, mode_t);
	va_end(args);
	return fake_open(path, flags, mode);
}
#endif
