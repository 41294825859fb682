/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A system that refuses what the monitor needs, and that has no module gdmabuf: linked with
 * --wrap=syscall, --wrap=ioctl, --wrap=pthread_create and --wrap=open.
 */
#include "refused_userfaultfd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>

struct refused_call refused_call;
atomic_long refused_held = -1;
atomic_bool refused_is_waiting;
int refused_thread;
uint64_t refused_features;

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);

long __wrap_syscall(long number, ...)
{
	long arg[6];
	va_list args;

	va_start(args, number);
	for (int i = 0; i < 6; i++)
		arg[i] = va_arg(args, long);
	va_end(args);
	while (number == atomic_load(&refused_held)) {
		atomic_store(&refused_is_waiting, true);
		sched_yield();
	}
	if (refused_call.error && number == refused_call.number) {
		refused_call.count++;
		errno = refused_call.error;
		return -1;
	}
	return __real_syscall(number, arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]);
}

int __real_ioctl(int fd, unsigned long request, void *arg);
int __wrap_ioctl(int fd, unsigned long request, void *arg);

int __wrap_ioctl(int fd, unsigned long request, void *arg)
{
	int ret = __real_ioctl(fd, request, arg);

	if (request == UFFDIO_API)
		((struct uffdio_api *)arg)->features &= ~refused_features;
	return ret;
}

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);

int __wrap_open(const char *path, int flags, ...)
{
	va_list args;
	mode_t mode;

	va_start(args, flags);
	mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
	va_end(args);
	if (strcmp(path, "/dev/gdmabuf"))
		return __real_open(path, flags, mode);
	errno = ENOENT;
	return -1;
}

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
			  void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
			  void *arg);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
			  void *arg)
{
	if (refused_thread && !--refused_thread)
		return EAGAIN;
	return __real_pthread_create(thread, attr, run, arg);
}
