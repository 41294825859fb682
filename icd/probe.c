/* SPDX-License-Identifier: Apache-2.0 */
/*
 * posix_spawn() would give the application a child: a SIGCHLD when it ends, and something for its
 * wait() to find.  So a process in between, made by clone() without a signal for its end, spawns
 * the probe and ends: wait() without __WCLONE does not see such a child, and its own child goes
 * to init.  As posix_spawn()'s, it shares the memory while the caller is stopped.
 *
 * A program that is init itself, in a container, or a subreaper gets the probe for a child, as it
 * gets any orphan.  There the probe is waited for.
 */
#include "probe.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "describe.h"
#include "import/log.h"

#define PATIENCE_MS 2000
#define STACK_SIZE 65536

#define NOT_SANITIZED __attribute__((no_sanitize("address", "thread", "undefined")))

/* clone() by its name past the thread sanitizer, which takes that for fork(). */
int __clone(int (*function)(void *), void *stack, int flags, void *arg, ...);

struct spawn {
	char layer[PATH_MAX], program[2 * PATH_MAX];
	const char *argv[3];
	char **env;
	char layers[PATH_MAX + 16];
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	pid_t pid; /* of the probe */
	int error;
};

/* In the build's folders, or installed. */
static bool probe_find(struct spawn *s)
{
	static const char *const places[] = { "../tools/climport-probe",
					      LIBEXECDIR_FROM_LIB "/climport/climport-probe" };
	Dl_info info;
	char *end;

	if (!dladdr((void *)probe_run, &info) || !info.dli_fname ||
	    !realpath(info.dli_fname, s->layer))
		return false;
	end = strrchr(s->layer, '/');
	for (int i = 0; i < 2; i++) {
		snprintf(s->program, sizeof(s->program), "%.*s/%s", (int)(end - s->layer), s->layer,
			 places[i]);
		if (!access(s->program, X_OK))
			return true;
	}
	log_debug("climport-probe is not beside %s", s->layer);
	return false;
}

static bool is_dropped(const char *variable)
{
	return !strncmp(variable, "OPENCL_LAYERS=", 14) ||
	       !strncmp(variable, "CLIMPORT_PROBE=", 15) || !strncmp(variable, "LD_PRELOAD=", 11);
}

/* The caller's environment, with this layer alone, which is to do the tests itself. */
static bool environment_create(struct spawn *s)
{
	static char here[] = "CLIMPORT_PROBE=here";
	size_t count = 0, used = 0;

	while (environ && environ[count])
		count++;
	s->env = calloc(count + 3, sizeof(*s->env));
	if (!s->env)
		return false;
	for (size_t i = 0; i < count; i++)
		if (!is_dropped(environ[i]))
			s->env[used++] = environ[i];
	snprintf(s->layers, sizeof(s->layers), "OPENCL_LAYERS=%s", s->layer);
	s->env[used++] = s->layers;
	s->env[used] = here;
	return true;
}

/* Nothing of the caller's but a pipe; no terminal, no signals. */
static bool attributes_create(struct spawn *s, int answer)
{
	sigset_t all, none;
	bool ready;

	sigfillset(&all);
	sigemptyset(&none);
	ready = !posix_spawn_file_actions_adddup2(&s->actions, answer, PROBE_FD);
	for (int fd = 0; fd < PROBE_FD; fd++)
		ready = ready &&
			!posix_spawn_file_actions_addopen(&s->actions, fd, "/dev/null", O_RDWR, 0);
	return ready && !posix_spawn_file_actions_addclosefrom_np(&s->actions, PROBE_FD + 1) &&
	       !posix_spawnattr_setsigdefault(&s->attr, &all) &&
	       !posix_spawnattr_setsigmask(&s->attr, &none) &&
	       !posix_spawnattr_setflags(&s->attr, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK |
							   POSIX_SPAWN_SETSID);
}

static NOT_SANITIZED int between(void *arg)
{
	struct spawn *s = arg;

	s->error =
		posix_spawn(&s->pid, s->program, &s->actions, &s->attr, (char **)s->argv, s->env);
	_exit(0);
}

/* No handler of the application's may run in the process between. */
static bool spawn_between(struct spawn *s)
{
	char *stack = malloc(STACK_SIZE);
	sigset_t all, before;
	pid_t pid = -1;

	if (!stack)
		return false;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pid = __clone(between, stack + STACK_SIZE, CLONE_VM | CLONE_VFORK, s);
	if (pid > 0)
		while (waitpid(pid, NULL, __WCLONE) < 0 && errno == EINTR)
			;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	free(stack);
	if (pid > 0 && !s->error)
		return true;
	log_debug("%s: %s", s->program, strerror(pid > 0 ? s->error : errno));
	return false;
}

static bool spawn_probe(const char *key, int answer, pid_t *pid)
{
	struct spawn *s = calloc(1, sizeof(*s));
	bool spawned = false;

	if (!s)
		return false;
	if (posix_spawn_file_actions_init(&s->actions)) {
		free(s);
		return false;
	}
	posix_spawnattr_init(&s->attr);
	s->argv[0] = s->program;
	s->argv[1] = key;
	if (probe_find(s) && environment_create(s) && attributes_create(s, answer))
		spawned = spawn_between(s);
	*pid = s->pid;
	posix_spawnattr_destroy(&s->attr);
	posix_spawn_file_actions_destroy(&s->actions);
	free(s->env);
	free(s);
	return spawned;
}

static int ms_until(const struct timespec *end)
{
	struct timespec now;
	long long ms;

	clock_gettime(CLOCK_MONOTONIC, &now);
	ms = (end->tv_sec - now.tv_sec) * 1000LL + (end->tv_nsec - now.tv_nsec) / 1000000;
	return ms > 0 ? (int)ms : 0;
}

/* A whole line, within the time. */
static bool read_answer(int fd, char *line, size_t size)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
	struct timespec end;
	size_t used = 0;

	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += PATIENCE_MS / 1000;
	while (used < size) {
		int ready = poll(&poll_fd, 1, ms_until(&end));
		ssize_t n;

		if (ready < 0 && errno == EINTR)
			continue;
		if (ready <= 0)
			return false;
		n = read(fd, line + used, size - used);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		used += (size_t)n;
		if (line[used - 1] == '\n') {
			line[used - 1] = '\0';
			return true;
		}
	}
	return false;
}

/* Orphans are this process's children. */
static bool is_init(void)
{
	int subreaper = 0;

	return getpid() == 1 || (!prctl(PR_GET_CHILD_SUBREAPER, &subreaper) && subreaper);
}

bool probe_run(const char *key, char *line, size_t size)
{
	bool answered = false;
	int saved = errno, fds[2];
	pid_t pid = 0;

	if (pipe2(fds, O_CLOEXEC)) {
		errno = saved;
		return false;
	}
	if (spawn_probe(key, fds[1], &pid)) {
		close(fds[1]);
		answered = read_answer(fds[0], line, size);
		if (answered && is_init())
			while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
				;
	} else {
		close(fds[1]);
	}
	close(fds[0]);
	errno = saved;
	return answered;
}
