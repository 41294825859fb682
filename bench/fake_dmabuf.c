/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A preloaded library: every memfd is a dma-buf whose fences are signalled.  DMA_BUF_IOCTL_SYNC
 * costs a system call and does no work, as with most exporters if the CPU's caches are coherent.
 */
#include <fcntl.h>
#include <linux/dma-buf.h>
#include <linux/magic.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#ifndef DMA_BUF_MAGIC
#define DMA_BUF_MAGIC 0x444d4142
#endif

#define EXPORT __attribute__((visibility("default")))

EXPORT int fstatfs(int fd, struct statfs *fs)
{
	int ret = (int)syscall(SYS_fstatfs, fd, fs);

	if (!ret && fs->f_type == TMPFS_MAGIC)
		fs->f_type = DMA_BUF_MAGIC;
	return ret;
}

EXPORT int ioctl(int fd, unsigned long request, ...)
{
	va_list args;
	void *arg;

	va_start(args, request);
	arg = va_arg(args, void *);
	va_end(args);
	if (request == DMA_BUF_IOCTL_SYNC)
		return fcntl(fd, F_GETFD) < 0 ? -1 : 0;
	return (int)syscall(SYS_ioctl, fd, request, arg);
}
