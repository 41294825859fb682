/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Puts the fake of the kernel module in front of libc's functions and of the fake of RM, for the
 * layer and libclimport, which are libraries.
 */
#include "tests/import/fake_gdmabuf.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/types.h>

typedef int (*open_fn)(const char *path, int flags, ...);
typedef int (*ioctl_fn)(int fd, unsigned long request, ...);

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __real_ioctl(int fd, unsigned long request, void *arg);
int __wrap_ioctl(int fd, unsigned long request, void *arg);

/* For another file than the module's device. */
int __real_open(const char *path, int flags, ...)
{
	va_list args;
	mode_t mode;

	va_start(args, flags);
	mode = va_arg(args, mode_t);
	va_end(args);
	return ((open_fn)dlsym(RTLD_NEXT, "open"))(path, flags, mode);
}

__attribute__((visibility("default"))) int open(const char *path, int flags, ...)
{
	va_list args;
	mode_t mode;

	if (!strcmp(path, "/dev/gdmabuf"))
		return __wrap_open(path, flags);
	va_start(args, flags);
	mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(args, mode_t) : 0;
	va_end(args);
	return __real_open(path, flags, mode);
}

int __real_ioctl(int fd, unsigned long request, void *arg)
{
	return ((ioctl_fn)dlsym(RTLD_NEXT, "ioctl"))(fd, request, arg);
}

__attribute__((visibility("default"))) int ioctl(int fd, unsigned long request, ...)
{
	va_list args;
	void *arg;

	va_start(args, request);
	arg = va_arg(args, void *);
	va_end(args);
	return __wrap_ioctl(fd, request, arg);
}
