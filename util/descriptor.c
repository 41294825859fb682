/* SPDX-License-Identifier: Apache-2.0 */
#include "util/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/fork.h"
#include "util/log.h"
#include "util/shortage.h"

static bool descriptor_is_shortage(int error)
{
	return error == EMFILE || error == ENFILE;
}

int descriptor_errno(void)
{
	int fd = eventfd(0, EFD_CLOEXEC), error = errno;

	if (fd < 0)
		return descriptor_is_shortage(error) ? error : 0;
	close(fd);
	return 0;
}

uint32_t descriptor_share(uint32_t part, uint32_t most)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur / part >= most)
		return most;
	return (uint32_t)(limit.rlim_cur / part);
}

int descriptor_identify(int fd, struct descriptor_id *id)
{
	struct stat st;

	if (fstat(fd, &st))
		return log_errno(EBADF, "descriptor %d: %m", fd);
	*id = (struct descriptor_id){ st.st_dev, st.st_ino, st.st_rdev };
	return 0;
}

bool descriptor_is(int fd, const struct descriptor_id *id)
{
	struct stat st;

	/* Not fstat(): if the number is another file's by now, the thread sanitizer would see a race. */
	return !fstatat(fd, "", &st, AT_EMPTY_PATH) && st.st_dev == id->device &&
	       st.st_ino == id->inode && st.st_rdev == id->node;
}

void descriptor_close(int fd, const struct descriptor_id *id)
{
	if (descriptor_is(fd, id))
		close(fd);
}

/*
 * All open files of a device node have one identity.  A program that closes climport's file may
 * open the node itself, at the same number.  The mark tells the two files apart: the signal of
 * asynchronous I/O, which climport's files never have.
 */
static int descriptor_mark(int fd)
{
	fcntl(fd, F_SETSIG, SIGURG);
	return fcntl(fd, F_GETSIG);
}

static bool descriptor_is_marked(const struct descriptor_own *own)
{
	return descriptor_is(own->fd, &own->id) && fcntl(own->fd, F_GETSIG) == own->mark;
}

int descriptor_own(struct descriptor_own *own, int fd)
{
	own->fd = fd;
	own->process = fork_generation();
	own->mark = descriptor_mark(fd);
	own->is_gone = false;
	return descriptor_identify(fd, &own->id);
}

/*
 * A thread that finds the descriptor gone may then make another at the same number.  So the look at
 * the number comes before the answer, which is what any thread has found.
 */
bool descriptor_is_own(struct descriptor_own *own)
{
	if (!atomic_load(&own->is_gone) &&
	    (own->fd < 0 || own->process != fork_generation() || !descriptor_is_marked(own)))
		atomic_store(&own->is_gone, true);
	return !atomic_load(&own->is_gone);
}

void descriptor_own_close(const struct descriptor_own *own)
{
	if (descriptor_is_marked(own))
		close(own->fd);
}

int descriptor_duplicate(int fd)
{
	struct shortage_retry retry = { 0 };
	int own;

	do {
		own = fcntl(fd, F_DUPFD_CLOEXEC, 3);
		if (own < 0)
			own = log_errno(errno, "duplicate of descriptor %d: %m", fd);
	} while (own < 0 && shortage_retry(&retry, own));
	return own;
}
