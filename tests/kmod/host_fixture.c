/* SPDX-License-Identifier: Apache-2.0 */
#include "host_fixture.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

struct setup host_test_begin(int fill, uint32_t flags)
{
	struct setup s = { .ctx = gdm_open(), .p = pages_new(LENGTH, fill) };

	EXPECT_EQ(gdm_export_host(s.ctx, s.p, LENGTH, flags, &s.fd), 0);
	return s;
}

void host_test_end(struct setup *s)
{
	close(s->fd);
	close(s->ctx);
	munmap(s->p, LENGTH);
}

void pin_and_pass(void *arg)
{
	const struct pinner *pinner = arg;
	unsigned char *p = pages_new(pinner->length, 1);
	int ctx = gdm_open(), err, fd;

	become_user(pinner->limit);
	err = gdm_export_host(ctx, p, pinner->length, 0, &fd);
	if (err)
		_exit(err == -EDQUOT ? 1 : 2);
	send_fd(pinner->sockets[0], fd);
}

struct pinner pinner_new(size_t length, size_t limit)
{
	struct pinner pinner = { .length = length, .limit = limit };

	EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pinner.sockets), 0);
	return pinner;
}

void pinner_free(struct pinner *pinner)
{
	close(pinner->sockets[0]);
	close(pinner->sockets[1]);
}

/* ---- a process that remaps ---- */

enum { REMAPPERS = 16 };
static const size_t REMAPPED = (size_t)16 << 30;

/* The remapping threads take most of the two processors, so the limit on a hang is a minute. */
#define WITHIN_A_MINUTE(condition)                                             \
	({                                                                     \
		for (int i_ = 0; !(condition) && i_ < 6000; i_++)              \
			usleep(10000); /* time: between two looks, a minute */ \
		condition;                                                     \
	})

struct remapper {
	atomic_ulong remapped; /* times */
	pid_t pid;
	unsigned char *range;
};

static void *remapper_thread(void *arg)
{
	struct remapper *remapper = arg;

	for (;;) {
		madvise(remapper->range, REMAPPED, MADV_DONTNEED);
		atomic_fetch_add(&remapper->remapped, 1);
	}
	return NULL;
}

int remapper_goes_on(const struct remapper *remapper, unsigned long times)
{
	unsigned long wanted = atomic_load(&remapper->remapped) + times;

	return WITHIN_A_MINUTE(atomic_load(&remapper->remapped) >= wanted);
}

/*
 * A sparse range: one page in each page table makes the kernel walk many page tables, and takes
 * little memory.
 */
static unsigned char *sparse_pages_new(void)
{
	unsigned char *range = mmap(NULL, REMAPPED, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (range == MAP_FAILED || madvise(range, REMAPPED, MADV_NOHUGEPAGE))
		_exit(1);
	for (size_t at = 0; at < REMAPPED; at += HUGE_PAGE)
		range[at] = 1;
	return range;
}

static _Noreturn void remapper_run(struct remapper *remapper, int (*make)(void), int socket)
{
	int fd = make();
	pthread_t thread;

	become_user(0);
	remapper->range = sparse_pages_new();
	for (int i = 0; i < REMAPPERS; i++)
		if (pthread_create(&thread, NULL, remapper_thread, remapper))
			_exit(2);
	if (!remapper_goes_on(remapper, REMAPPERS))
		_exit(3);
	send_fd(socket, fd);
	close(fd);
	for (;;)
		pause();
}

struct remapper *remapper_start(int (*make)(void), int *fd)
{
	struct remapper *remapper =
		mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int sockets[2];
	pid_t pid;

	EXPECT((void *)remapper != MAP_FAILED);
	EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
	pid = fork();
	if (!pid)
		remapper_run(remapper, make, sockets[0]);
	EXPECT(pid > 0);
	remapper->pid = pid;
	close(sockets[0]);
	*fd = receive_fd(sockets[1]);
	close(sockets[1]);
	return remapper;
}

void remapper_stop(struct remapper *remapper)
{
	EXPECT_EQ(kill(remapper->pid, SIGKILL), 0);
	EXPECT_EQ(waitpid(remapper->pid, NULL, 0), remapper->pid);
	munmap(remapper, PAGE);
}

/* Whether the child has ended.  The child remains a zombie for a later waitpid(). */
static int has_ended(pid_t child)
{
	siginfo_t info = { 0 };

	EXPECT_EQ(waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT), 0);
	return info.si_pid == child;
}

int close_elsewhere_ends(int fd)
{
	int wake[2], ended;
	pid_t closer;
	char byte;

	EXPECT_EQ(pipe(wake), 0);
	closer = fork();
	if (!closer)
		_exit(read(wake[0], &byte, 1) != 1 || close(fd));
	close(fd);
	EXPECT_EQ(write(wake[1], "", 1), 1); /* now the closer has the only descriptor */
	ended = WITHIN_A_MINUTE(has_ended(closer));
	if (ended)
		EXPECT_EQ(waitpid(closer, NULL, 0), closer);
	close(wake[0]);
	close(wake[1]);
	return ended;
}
