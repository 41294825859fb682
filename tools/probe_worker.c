/* SPDX-License-Identifier: Apache-2.0 */
#include "probe_worker.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "icd/probe/interface.h"

static bool probe_worker_spawn(struct worker *w, char *const argv[], int socket)
{
	posix_spawn_file_actions_t actions;
	bool is_started;

	if (posix_spawn_file_actions_init(&actions))
		return false;
	is_started = !posix_spawn_file_actions_adddup2(&actions, socket, PROBE_FD) &&
		     !posix_spawn(&w->pid, "/proc/self/exe", &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	return is_started;
}

bool probe_worker_start(struct worker *w, char *const argv[])
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return false;
	if (!probe_worker_spawn(w, argv, ends[1])) {
		close(ends[0]);
		close(ends[1]);
		return false;
	}
	close(ends[1]);
	w->socket = ends[0];
	w->pidfd = (int)syscall(SYS_pidfd_open, w->pid, 0);
	w->status = 0;
	return true;
}

void probe_worker_dismiss(struct worker *w)
{
	close(w->socket);
	w->socket = -1;
}

void probe_worker_reap(struct worker *w)
{
	if (!w->pid)
		return;
	waitpid(w->pid, &w->status, 0);
	w->pid = 0;
	close(w->pidfd);
	probe_worker_dismiss(w);
}

void probe_worker_end(struct worker *w)
{
	kill(w->pid, SIGKILL); /* a driver may handle other signals */
	probe_worker_reap(w);
	w->status = SIGALRM;
}

ssize_t probe_worker_receive(struct worker *w, char *message, size_t size)
{
	struct pollfd ends[] = { { .fd = w->socket, .events = POLLIN },
				 { .fd = w->pidfd, .events = POLLIN } };
	ssize_t n;

	while (poll(ends, 2, -1) < 0 && errno == EINTR)
		;
	n = recv(w->socket, message, size - 1, MSG_DONTWAIT);
	if (n <= 0)
		return -1;
	message[n] = '\0';
	return n;
}
