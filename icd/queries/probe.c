/* SPDX-License-Identifier: Apache-2.0 */
/*
 * posix_spawn() would give the application a child: a SIGCHLD when it ends, and something for its
 * wait() to find.  An orphan would be given to init, or to a subreaper, which need not expect it:
 * PID 1 of most containers reaps its own children alone.
 *
 * So there is a process between, made by clone() without a signal for its end, which wait() does
 * not see.  It spawns the probe, reads its answer, and waits for its end.  It shares the caller's
 * memory, as vfork() does: a copy, as fork() makes it, would part pinned memory from its device
 * at the caller's next write.  A thread, the caller's job, is stopped meanwhile in its stead.
 *
 *	caller -- job's thread -- process between -- climport-probe
 *
 * The pipe is the process between's, whose other descriptors are closed.  If the application
 * ends, the process between is killed, as it would keep the application's memory.
 */
#include "icd/queries/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "icd/queries/describe.h"
#include "icd/place.h"
#include "icd/selftest/job.h"
#include "util/log.h"

#define PATIENCE_MS 2000
#define STACK_SIZE 65536
#define MAX_DESCRIPTORS 65536 /* that are closed one by one, where there is no close_range() */
#define PIPE_WRITE 1	      /* the second descriptor of a process that has none */

#define NOT_SANITIZED __attribute__((no_sanitize("address", "thread", "undefined")))

/* clone() by its name past the thread sanitizer, which takes that for fork(). */
int __clone(int (*function)(void *), void *stack, int flags, void *arg, ...);

struct probe {
	struct job job;
	char key[PROBE_KEY_SIZE], program[2 * PATH_MAX], layers[2 * PATH_MAX + 16];
	char *argv[3], **env;
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;

	/* Set by the process between. */
	char line[PROBE_LINE_SIZE];
	atomic_bool answered; /* the line is whole */
	atomic_bool started;  /* the probe runs, so its time is the driver's doing */
	int error;
	pid_t pid;  /* of the probe */
	int status; /* its end, -1 if that is not known */
	_Alignas(16) char stack[STACK_SIZE];
};

/* In the build's folders, or installed. */
static bool probe_find_beside(struct probe *p, const char *layer)
{
	static const char *const places[] = { "../tools/climport-probe",
					      LIBEXECDIR_FROM_LIB "/climport/climport-probe" };
	const char *end = strrchr(layer, '/');

	for (int i = 0; end && i < 2; i++) {
		snprintf(p->program, sizeof(p->program), "%.*s/%s", (int)(end - layer), layer,
			 places[i]);
		if (!access(p->program, X_OK))
			return true;
	}
	return false;
}

/* The name of the layer may be that of a link. */
static bool probe_find_by_link(struct probe *p)
{
	char *layer = realpath(place_of_layer(), NULL);
	bool found = layer && probe_find_beside(p, layer);

	free(layer);
	return found;
}

/* What is run has the caller's rights: it is nothing that others could have put there. */
static bool probe_find(struct probe *p)
{
	if (!place_is_same() || (!probe_find_beside(p, place_of_layer()) && !probe_find_by_link(p)))
		p->error = ENOENT;
	else if (!place_is_as_safe(p->program))
		p->error = EPERM;
	return !p->error;
}

static bool is_dropped(const char *variable)
{
	return !strncmp(variable, "OPENCL_LAYERS=", 14) ||
	       !strncmp(variable, "CLIMPORT_PROBE=", 15) || !strncmp(variable, "LD_PRELOAD=", 11);
}

/* The caller's environment, with no layer above this one, which is to do the tests itself. */
static bool probe_create_environment(struct probe *p)
{
	static char here[] = "CLIMPORT_PROBE=here";
	size_t count = 0, used = 0;

	while (environ && environ[count])
		count++;
	p->env = calloc(count + 3, sizeof(*p->env));
	if (!p->env)
		return false;
	for (size_t i = 0; i < count; i++)
		if (!is_dropped(environ[i]))
			p->env[used++] = environ[i];
	snprintf(p->layers, sizeof(p->layers), "OPENCL_LAYERS=%s%s", place_layers_below(),
		 place_of_layer());
	p->env[used++] = p->layers;
	p->env[used] = here;
	return true;
}

/* Nothing but the pipe; no terminal, no signals. */
static bool probe_create_attributes(struct probe *p)
{
	sigset_t all, none;
	bool ready;

	sigfillset(&all);
	sigemptyset(&none);
	ready = !posix_spawn_file_actions_adddup2(&p->actions, PIPE_WRITE, PROBE_FD);
	for (int fd = 0; fd < PROBE_FD; fd++)
		ready = ready &&
			!posix_spawn_file_actions_addopen(&p->actions, fd, "/dev/null", O_RDWR, 0);
	return ready && !posix_spawn_file_actions_addclosefrom_np(&p->actions, PROBE_FD + 1) &&
	       !posix_spawnattr_setsigdefault(&p->attr, &all) &&
	       !posix_spawnattr_setsigmask(&p->attr, &none) &&
	       !posix_spawnattr_setflags(&p->attr, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK |
							   POSIX_SPAWN_SETSID);
}

/* A line, however many reads it takes. */
static NOT_SANITIZED void between_read(struct probe *p)
{
	size_t used = 0;
	long n;

	do {
		n = syscall(SYS_read, 0, p->line + used, sizeof(p->line) - used);
		if (n <= 0)
			return;
		used += (size_t)n;
	} while (p->line[used - 1] != '\n');
	p->line[used - 1] = '\0';
	atomic_store(&p->answered, true);
}

/*
 * The probe's end is not taken by a SIGCHLD that the application ignores, and its crash leaves no
 * core file where the application is.  In real time a driver that spins would keep the application
 * from its processor, and from its limit for the wait.
 */
static NOT_SANITIZED void between_prepare(void)
{
	static const unsigned long by_default[16]; /* the kernel's struct sigaction, and more */
	static const struct rlimit none;
	static const struct sched_param ordinary;
	long policy = syscall(SYS_sched_getscheduler, 0) & ~SCHED_RESET_ON_FORK;

	syscall(SYS_rt_sigaction, SIGCHLD, by_default, NULL, _NSIG / 8);
	syscall(SYS_prlimit64, 0, RLIMIT_CORE, &none, NULL);
	if (policy == SCHED_FIFO || policy == SCHED_RR)
		syscall(SYS_sched_setscheduler, 0, SCHED_OTHER, &ordinary);
}

/* closefrom() may abort().  What is above the limit stays open here, not in the probe. */
static NOT_SANITIZED void between_close(void)
{
	struct rlimit limit = { MAX_DESCRIPTORS, MAX_DESCRIPTORS };

	if (!syscall(SYS_close_range, 0, ~0U, 0))
		return;
	syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, NULL, &limit);
	for (rlim_t fd = 0; fd < limit.rlim_cur && fd < MAX_DESCRIPTORS; fd++)
		syscall(SYS_close, fd);
}

/*
 * The memory and the C library's locks are the application's, and so are handlers of signals: no
 * function is called here that may take a lock, raise a signal or abort(); posix_spawn() does not.
 * System calls go past the sanitizers' tables, which are the application's as well.
 */
static NOT_SANITIZED int probe_between(void *arg)
{
	struct probe *p = arg;
	int fds[2];

	syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	between_prepare();
	between_close();
	if (syscall(SYS_pipe2, fds, O_CLOEXEC))
		p->error = errno;
	else
		p->error = posix_spawn(&p->pid, p->program, &p->actions, &p->attr, p->argv, p->env);
	if (!p->error) {
		atomic_store(&p->started, true);
		syscall(SYS_close, PIPE_WRITE);
		between_read(p);
		syscall(SYS_wait4, p->pid, &p->status, 0, NULL);
	}
	syscall(SYS_exit_group, 0);
	return 0;
}

static void probe_spawn(struct probe *p)
{
	pid_t pid = __clone(probe_between, p->stack + STACK_SIZE, CLONE_VM | CLONE_VFORK, p);

	if (pid < 0)
		p->error = errno;
	while (pid > 0 && waitpid(pid, NULL, __WCLONE) < 0 && errno == EINTR)
		;
}

static void probe_job(struct job *job)
{
	struct probe *p = (struct probe *)job;

	if (posix_spawn_file_actions_init(&p->actions)) {
		p->error = ENOMEM;
		return;
	}
	posix_spawnattr_init(&p->attr);
	p->argv[0] = p->program;
	p->argv[1] = p->key;
	if (!probe_create_environment(p) || !probe_create_attributes(p))
		p->error = ENOMEM;
	else if (probe_find(p))
		probe_spawn(p);
	posix_spawnattr_destroy(&p->attr);
	posix_spawn_file_actions_destroy(&p->actions);
	free(p->env);
}

/*
 * Why there is no answer.  A signal that somebody sent says nothing about the driver, nor does
 * SIGSYS, by which a filter of system calls kills: the filter is this process's.
 */
static enum probe_end probe_judge(const struct probe *p, char *why)
{
	int status = p->status, signal = status >= 0 && WIFSIGNALED(status) ? WTERMSIG(status) : 0;

	if (p->error || !p->pid || status < 0) {
		snprintf(why, PROBE_LINE_SIZE, "climport-probe cannot be run: %s",
			 log_strerror(p->error ? p->error : ECHILD));
		return PROBE_NOT_MADE;
	}
	if (signal)
		snprintf(why, PROBE_LINE_SIZE, "climport-probe was ended by signal %d", signal);
	else
		snprintf(why, PROBE_LINE_SIZE, "climport-probe ended with status %d",
			 WEXITSTATUS(status));
	if (signal == SIGKILL || signal == SIGTERM || signal == SIGSYS ||
	    (!signal && WEXITSTATUS(status) > 125))
		return PROBE_NOT_MADE;
	return PROBE_FAILED;
}

enum probe_end probe_run(const char *key, char line[PROBE_LINE_SIZE])
{
	struct probe *p = calloc(1, sizeof(*p));
	enum probe_end end;
	int saved = errno;
	enum job_end job;

	snprintf(line, PROBE_LINE_SIZE, "there is no memory or no thread for climport-probe");
	if (!p) {
		errno = saved;
		return PROBE_NOT_MADE;
	}
	p->job.run = probe_job;
	p->status = -1;
	snprintf(p->key, sizeof(p->key), "%s", key);
	job = job_run(&p->job, PATIENCE_MS);
	if (job != JOB_NOT_STARTED && atomic_load(&p->answered)) {
		memcpy(line, p->line, PROBE_LINE_SIZE);
		end = PROBE_ANSWERED;
	} else if (job == JOB_ABANDONED) {
		end = atomic_load(&p->started) ? PROBE_FAILED : PROBE_NOT_MADE;
		snprintf(line, PROBE_LINE_SIZE, "climport-probe does not %s in %d seconds",
			 end == PROBE_FAILED ? "answer" : "start", PATIENCE_MS / 1000);
	} else {
		end = job == JOB_ENDED ? probe_judge(p, line) : PROBE_NOT_MADE;
	}
	job_put(&p->job);
	errno = saved;
	return end;
}
