/* SPDX-License-Identifier: Apache-2.0 */
#include "part.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

pid_t part_start(const char *const *words, int to)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	pid_t child = -1;
	sigset_t none;

	sigemptyset(&none);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, to, STDOUT_FILENO);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
	errno = posix_spawn(&child, "/proc/self/exe", &actions, &attr, (char **)words, environ);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&actions);
	return errno ? -1 : child;
}

FILE *part_divert(void)
{
	const int fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);

	if (fd < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
		return NULL;
	return fdopen(fd, "w");
}

int part_wait(pid_t child)
{
	int status;

	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	return status;
}

void part_describe(int status, char text[PART_DEATH_SIZE])
{
	const int number = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	const char *name = number ? sigabbrev_np(number) : NULL;

	if (name)
		snprintf(text, PART_DEATH_SIZE, "died of SIG%s (%s)", name, sigdescr_np(number));
	else if (number)
		snprintf(text, PART_DEATH_SIZE, "died of signal %d", number);
	else
		snprintf(text, PART_DEATH_SIZE, "exited with status %d", WEXITSTATUS(status));
}
