/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_dmabuf.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/dma-buf.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define NAME "fake-dma-buf"

struct fake_dmabuf_state fake_dmabuf = { .fence_fd = -1 };

int __real_fstatfs(int fd, struct statfs *fs);
int __wrap_fstatfs(int fd, struct statfs *fs);
int __real_ioctl(int fd, unsigned long request, void *arg);
int __wrap_ioctl(int fd, unsigned long request, void *arg);
int __real_poll(struct pollfd *fds, nfds_t count, int timeout);
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout);
void *__real_mmap(void *addr, size_t size, int prot, int flags, int fd, off_t offset);
void *__wrap_mmap(void *addr, size_t size, int prot, int flags, int fd, off_t offset);

int fake_dmabuf_open(size_t size, int flags)
{
	int fd = memfd_create(NAME, MFD_CLOEXEC), reopened;
	char path[64];

	if (fd < 0 || ftruncate(fd, size))
		return -1;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	reopened = open(path, flags | O_CLOEXEC);
	close(fd);
	return reopened;
}

static bool is_fake(int fd)
{
	char path[64], target[128];
	ssize_t length;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	length = readlink(path, target, sizeof(target) - 1);
	if (length < 0)
		return false;
	target[length] = '\0';
	return strstr(target, NAME);
}

static bool same_file(int a, int b)
{
	struct stat x, y;

	return !fstat(a, &x) && !fstat(b, &y) && x.st_ino == y.st_ino && x.st_dev == y.st_dev;
}

int __wrap_fstatfs(int fd, struct statfs *fs)
{
	int ret = __real_fstatfs(fd, fs);

	if (!ret && is_fake(fd))
		fs->f_type = 0x444d4142;
	return ret;
}

int __wrap_ioctl(int fd, unsigned long request, void *arg)
{
	if (request != DMA_BUF_IOCTL_SYNC)
		return __real_ioctl(fd, request, arg);
	if (fake_dmabuf.interrupts > 0) {
		fake_dmabuf.interrupts--;
		errno = EINTR;
		return -1;
	}
	fake_dmabuf.last_flags = ((struct dma_buf_sync *)arg)->flags;
	if (fake_dmabuf.last_flags == (DMA_BUF_SYNC_END | DMA_BUF_SYNC_WRITE)) {
		fake_dmabuf.cleans++;
		errno = EINVAL; /* as of udmabuf, before START */
		return -1;
	}
	if (fake_dmabuf.error && fake_dmabuf.successes-- <= 0) {
		errno = fake_dmabuf.error;
		fake_dmabuf.error = 0;
		return -1;
	}
	if (fake_dmabuf.last_flags & DMA_BUF_SYNC_END)
		fake_dmabuf.ends++;
	else
		fake_dmabuf.starts++;
	return 0;
}

/* Hides the descriptor of the unsignalled fence from the real poll(). */
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout)
{
	int ready = 0, others;

	for (nfds_t i = 0; i < count; i++)
		if (is_fake(fds[i].fd) && fake_dmabuf.fence_fd >= 0 &&
		    same_file(fds[i].fd, fake_dmabuf.fence_fd))
			fds[i].fd = -1 - fds[i].fd;
	others = __real_poll(fds, count, timeout < 0 || timeout > 10 ? 10 : timeout);
	for (nfds_t i = 0; i < count; i++) {
		if (fds[i].fd < 0)
			fds[i].fd = -1 - fds[i].fd;
		ready += fds[i].revents != 0;
	}
	return others < 0 ? others : ready;
}

void *__wrap_mmap(void *addr, size_t size, int prot, int flags, int fd, off_t offset)
{
	if (fake_dmabuf.mmap_error && fd >= 0 && is_fake(fd)) {
		errno = fake_dmabuf.mmap_error;
		return MAP_FAILED;
	}
	if (fake_dmabuf.mmap_write_error && prot & PROT_WRITE && fd >= 0 && is_fake(fd)) {
		errno = fake_dmabuf.mmap_write_error;
		return MAP_FAILED;
	}
	return __real_mmap(addr, size, prot, flags, fd, offset);
}
