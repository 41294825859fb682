/* SPDX-License-Identifier: Apache-2.0 */
#include "import/monitor/uffd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define UFFD_BATCH 16

/* The last asks for write protection, and causes nothing. */
#define UFFD_FEATURES                                                                      \
	(UFFD_FEATURE_EVENT_UNMAP | UFFD_FEATURE_EVENT_REMOVE | UFFD_FEATURE_EVENT_REMAP | \
	 UFFD_FEATURE_PAGEFAULT_FLAG_WP)

/*
 * Of Linux 5.19, and not asked for.  From 5.19 on a write never replaces a pinned anonymous page;
 * from 5.15 on the kernel counts changes, where it had a flag that the end of one change cleared for
 * all.
 */
#define UFFD_FEATURE_OF_5_19 UFFD_FEATURE_WP_HUGETLBFS_SHMEM

/* The target of a descriptor's link. */
static bool uffd_is_link(int directory, const char *name)
{
	static const char target[] = "anon_inode:[userfaultfd]";
	char text[sizeof(target)];
	ssize_t length = readlinkat(directory, name, text, sizeof(text));

	return length == (ssize_t)sizeof(target) - 1 && !memcmp(text, target, (size_t)length);
}

bool uffd_is_open(void)
{
	DIR *directory = opendir("/proc/self/fd");
	struct dirent *entry;
	bool found = false;

	if (!directory)
		return false;
	while (!found && (entry = readdir(directory)))
		found = uffd_is_link(dirfd(directory), entry->d_name);
	closedir(directory);
	return found;
}

/* For faults in user mode alone an ordinary user needs no privilege. */
static int uffd_create(void)
{
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY), own;

	if (fd < 0)
		return -errno;
	if (fd > STDERR_FILENO)
		return fd;
	own = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	if (own < 0)
		own = -errno;
	close(fd);
	return own;
}

/* 0 or a negative errno.  The kernel answers with all of its features. */
static int uffd_agree(int fd)
{
	struct uffdio_api api = { .api = UFFD_API, .features = UFFD_FEATURES };

	if (ioctl(fd, UFFDIO_API, &api))
		return -errno;
	return api.features & UFFD_FEATURE_OF_5_19 ? 0 : -EINVAL;
}

int uffd_open(void)
{
	int fd = uffd_create(), ret;

	if (fd < 0)
		return fd;
	ret = uffd_agree(fd);
	if (!ret)
		return fd;
	close(fd);
	return ret;
}

int uffd_register(int fd, uintptr_t start, uintptr_t end)
{
	struct uffdio_register range = {
		.range = { start, end - start },
		.mode = UFFDIO_REGISTER_MODE_WP,
	};

	return ioctl(fd, UFFDIO_REGISTER, &range) ? -errno : 0;
}

void uffd_unregister(int fd, uintptr_t start, uintptr_t end)
{
	struct uffdio_range range = { start, end - start };

	ioctl(fd, UFFDIO_UNREGISTER, &range);
}

/*
 * UFFDIO_CONTINUE is for memory of files.  The kernel looks at its count first, then whether the
 * range is in a registered mapping, and then refuses anonymous memory.
 */
int uffd_look(int fd, uintptr_t start, uintptr_t end)
{
	struct uffdio_continue nothing = {
		.range = { start, end - start },
		.mode = UFFDIO_CONTINUE_MODE_DONTWAKE,
	};

	if (!ioctl(fd, UFFDIO_CONTINUE, &nothing))
		return -EBADF;
	if (errno == EAGAIN)
		return 1;
	if (errno == ENOENT)
		return -ENOENT;
	return errno == EINVAL ? 0 : -EBADF;
}

static struct uffd_change uffd_change_of(const struct uffd_msg *msg)
{
	switch (msg->event) {
	case UFFD_EVENT_UNMAP:
		return (struct uffd_change){ UFFD_UNMAPPED, msg->arg.remove.start,
					     msg->arg.remove.end };
	case UFFD_EVENT_REMOVE:
		return (struct uffd_change){ UFFD_REMOVED, msg->arg.remove.start,
					     msg->arg.remove.end };
	case UFFD_EVENT_REMAP:
		return (struct uffd_change){ UFFD_MOVED, msg->arg.remap.from,
					     msg->arg.remap.from + msg->arg.remap.len };
	default:
		return (struct uffd_change){ UFFD_OTHER, 0, 0 };
	}
}

int uffd_read(int fd, struct uffd_change *changes, int count)
{
	struct uffd_msg messages[UFFD_BATCH];
	size_t most = count < UFFD_BATCH ? (size_t)count : UFFD_BATCH;
	ssize_t got = read(fd, messages, most * sizeof(*messages));
	int n;

	if (got < 0)
		return -errno;
	for (n = 0; n < (int)((size_t)got / sizeof(*messages)); n++)
		changes[n] = uffd_change_of(&messages[n]);
	return n;
}
