/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel older than 6.11, which has no PROCMAP_QUERY: linked with --wrap=ioctl. */
#include <errno.h>

int __wrap_ioctl(int fd, unsigned long request, void *arg);

int __wrap_ioctl(int fd, unsigned long request, void *arg)
{
	(void)fd;
	(void)request;
	(void)arg;
	errno = ENOTTY;
	return -1;
}
