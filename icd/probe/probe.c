/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process between the application and climport-probe.
 *
 * posix_spawn() would give the application a child: a SIGCHLD at the child's end, and a child for
 * the application's wait() to find.  An orphaned probe would be given to init, or to a
 * subreaper, which need not expect orphans: PID 1 of most containers reaps its own children alone.
 *
 * So clone() makes a process between, without a signal for its end; wait() does not see such a
 * process.  It spawns the probe, waits for the probe's end, and reads the answer from a file without a name.
 * It shares the caller's memory, as after vfork(): a copy, as after fork(), would
 * part pinned memory from the device at the caller's next write.  Instead of the application's, a thread
 * of climport's is stopped meanwhile.
 *
 *	climport's thread -- process between -- climport-probe -- worker
 *
 * If the application ends, the process between is killed, because it would keep the application's memory.
 */
#include "icd/probe/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "icd/place.h"
#include "icd/probe/identity.h"
#include "icd/probe/interface.h"
#include "util/log.h"

#define PROBE_STACK_SIZE 65536
#define MAX_DESCRIPTORS 65536 /* to close singly, if the kernel has no close_range() */

#define NOT_SANITIZED __attribute__((no_sanitize("address", "thread", "undefined")))

/* clone() by the name past the thread sanitizer, which takes clone() for fork(). */
int __clone(int (*function)(void *), void *stack, int flags, void *arg, ...);

struct probe {
	char key[20], program[PATH_MAX], layers[2 * PATH_MAX + 16];
	const char *argv[6];
	char **env;
	posix_spawnattr_t attr;
	void *answer;
	size_t size; /* bytes: of the room for the answer */

	/* Set by the process between. */
	size_t used; /* bytes: of the answer, if the probe has ended with success */
	int error;
	const char *lacks; /* a part of the error's sentence */
	pid_t pid;	   /* of the probe */
	int status;	   /* of the probe's end; -1: unknown, as the application ignores SIGCHLD */
	_Alignas(16) char stack[PROBE_STACK_SIZE];
};

/*
 * A crash of the probe leaves no core file in the application's folder.  The process
 * between leaves real time: a spinning driver in real time would keep the application from the
 * processor, and from the limit for the wait.
 */
static NOT_SANITIZED void between_prepare(void)
{
	static const struct rlimit none;
	static const struct sched_param ordinary;
	long policy = syscall(SYS_sched_getscheduler, 0) & ~SCHED_RESET_ON_FORK;

	syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	syscall(SYS_prlimit64, 0, RLIMIT_CORE, &none, NULL);
	if (policy == SCHED_FIFO || policy == SCHED_RR)
		syscall(SYS_sched_setscheduler, 0, SCHED_OTHER, &ordinary);
}

/* closefrom() may abort().  Descriptors above the limit stay open. */
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
 * The memory, the C library's locks and the handlers of signals belong to the application.  So the
 * process calls no function with a lock, a signal or abort(); posix_spawn() has none of the three.
 * System calls go past the sanitizers' tables, which belong to the application as well.
 */
static NOT_SANITIZED int between_main(void *arg)
{
	struct probe *p = arg;
	long n;

	between_prepare();
	between_close();
	for (int fd = 0; fd < PROBE_FD && !p->error; fd++)
		if (syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR, 0) < 0) {
			p->error = errno;
			p->lacks = "/dev/null: ";
		}
	if (!p->error && syscall(SYS_memfd_create, "climport facts", 0) < 0)
		p->error = errno;
	if (!p->error)
		p->error = posix_spawn(&p->pid, p->program, NULL, &p->attr, (char *const *)p->argv,
				       p->env);
	if (!p->error)
		syscall(SYS_wait4, p->pid, &p->status, 0, NULL);
	if (p->status <= 0) {
		n = syscall(SYS_pread64, PROBE_FD, p->answer, p->size, 0L);
		p->used = n > 0 ? (size_t)n : 0;
	}
	syscall(SYS_exit_group, 0);
	return 0;
}

/*
 * The environment, without the layers above and without libraries that watch the caller, and with the order to test
 * in the process.
 */
static char **probe_create_environment(struct probe *p)
{
	static char here[] = "CLIMPORT_PROBE=here";
	size_t count = 0, used = 0;
	char **env;

	while (environ && environ[count])
		count++;
	env = calloc(count + 3, sizeof(*env));
	if (!env)
		return NULL;
	for (size_t i = 0; i < count && environ[i]; i++)
		if (!identity_drops(environ[i]))
			env[used++] = environ[i];
	snprintf(p->layers, sizeof(p->layers), "OPENCL_LAYERS=%s%s", place.below, place.layer);
	env[used++] = p->layers;
	env[used] = here;
	return env;
}

/* A session of its own: no terminal's signals. */
static void probe_run(struct probe *p)
{
	sigset_t all, none;
	pid_t pid;

	sigfillset(&all);
	sigemptyset(&none);
	posix_spawnattr_init(&p->attr);
	posix_spawnattr_setsigdefault(&p->attr, &all);
	posix_spawnattr_setsigmask(&p->attr, &none);
	posix_spawnattr_setflags(&p->attr, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK |
						   POSIX_SPAWN_SETSID);
	pid = __clone(between_main, p->stack + PROBE_STACK_SIZE, CLONE_VM | CLONE_VFORK, p);
	if (pid < 0)
		p->error = errno;
	while (pid > 0 && waitpid(pid, NULL, __WCLONE) < 0 && errno == EINTR)
		;
	posix_spawnattr_destroy(&p->attr);
}

/* A worker's signal may be the driver's, or another's: of who stops a service, or of the kernel that lacks memory. */
static void probe_explain(const struct probe *p, char *why, size_t size)
{
	const int status = p->status > 0 ? WEXITSTATUS(p->status) : 0;
	const char *signal =
		status > PROBE_STATUS_SIGNAL ? sigdescr_np(status - PROBE_STATUS_SIGNAL) : NULL;

	if (p->error)
		snprintf(why, size, "climport-probe cannot be run: %s%s", p->lacks,
			 log_strerror(p->error));
	else if (WIFSIGNALED(p->status))
		snprintf(why, size, "climport-probe was ended by signal %d", WTERMSIG(p->status));
	else if (status == WEXITSTATUS(PROBE_STATUS_HANGS))
		snprintf(why, size, "the driver hangs when it starts");
	else if (status == PROBE_STATUS_LOST)
		snprintf(why, size,
			 "climport-probe did not find the platform again, or had no memory");
	else if (signal)
		snprintf(why, size,
			 "the process that tests the driver died as the driver started: %s",
			 signal);
	else if (status)
		snprintf(why, size, "climport-probe ended with status %d", status);
	else
		snprintf(why, size, "climport-probe gave no result: climport info runs it again");
}

size_t probe_ask(cl_platform_id platform, bool with_images, void *answer, size_t size, char *why,
		 size_t why_size)
{
	struct probe *p = calloc(1, sizeof(*p));
	unsigned long long key;
	bool is_kept;
	size_t used = 0;

	snprintf(why, why_size, "no process may be started to test the driver");
	if (p && !getauxval(AT_SECURE) && identity_platform(platform, &key, &is_kept) &&
	    place_of_probe(p->program, sizeof(p->program)) &&
	    (p->env = probe_create_environment(p))) {
		snprintf(p->key, sizeof(p->key), "%016llx", key);
		p->argv[0] = p->program;
		p->argv[1] = place.loader;
		p->argv[2] = identity_driver(platform);
		p->argv[3] = p->key;
		p->argv[4] = with_images ? PROBE_WITH_IMAGES : NULL;
		p->answer = answer;
		p->size = size;
		p->lacks = "";
		p->status = -1;
		probe_run(p);
		used = p->used;
		if (!used)
			probe_explain(p, why, why_size);
		free(p->env);
	}
	free(p);
	return used;
}
