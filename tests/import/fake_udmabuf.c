/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_udmabuf.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/udmabuf.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE ((size_t)sysconf(_SC_PAGESIZE))
#define MIB ((uint64_t)1 << 20)

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __real_ioctl(int fd, unsigned long request, void *arg);
int __wrap_ioctl(int fd, unsigned long request, void *arg);

struct fake_udmabuf fake_udmabuf;

void fake_udmabuf_reset(void)
{
	fake_udmabuf = (struct fake_udmabuf){
		.is_there = true,
		.gdmabuf_error = ENOENT,
		.limit = 64 * MIB,
	};
}

static int fake_udmabuf_fail(int error)
{
	errno = error;
	return -1;
}

int __wrap_open(const char *path, int flags, ...)
{
	if (!strcmp(path, "/dev/gdmabuf"))
		return fake_udmabuf_fail(fake_udmabuf.gdmabuf_error);
	if (strcmp(path, "/dev/udmabuf"))
		return __real_open(path, flags, 0600);
	return fake_udmabuf.is_there ? memfd_create("udmabuf-device", MFD_CLOEXEC)
				     : fake_udmabuf_fail(ENOENT);
}

/* udmabuf_create() of the kernel. */
static int fake_udmabuf_check(const struct udmabuf_create *create)
{
	int seals = fcntl((int)create->memfd, F_GET_SEALS);
	struct stat st;

	if (create->offset % PAGE || create->size % PAGE || create->size > fake_udmabuf.limit)
		return EINVAL;
	if (seals < 0)
		return EBADFD;
	if (!(seals & F_SEAL_SHRINK) || seals & F_SEAL_WRITE)
		return EINVAL;
	if (fstat((int)create->memfd, &st) || create->offset + create->size > (uint64_t)st.st_size)
		return EINVAL;
	return fake_udmabuf.error;
}

static int fake_udmabuf_create(const struct udmabuf_create *create)
{
	int error = fake_udmabuf_check(create);

	if (error)
		return fake_udmabuf_fail(error);
	fake_udmabuf.creates++;
	fake_udmabuf.offset = create->offset;
	fake_udmabuf.size = create->size;
	return fcntl((int)create->memfd,
		     create->flags & UDMABUF_FLAGS_CLOEXEC ? F_DUPFD_CLOEXEC : F_DUPFD, 3);
}

int __wrap_ioctl(int fd, unsigned long request, void *arg)
{
	return request == UDMABUF_CREATE ? fake_udmabuf_create(arg)
					 : __real_ioctl(fd, request, arg);
}
