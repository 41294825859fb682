/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/queries/between.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_DESCRIPTORS 65536 /* to close one by one, if the kernel has no close_range() */

#define NOT_SANITIZED __attribute__((no_sanitize("address", "thread", "undefined")))

/* clone() by its name past the thread sanitizer, which takes that for fork(). */
int __clone(int (*function)(void *), void *stack, int flags, void *arg, ...);

/* A line, however many reads it takes. */
static NOT_SANITIZED void between_read(struct between *b)
{
	size_t used = 0;
	long n;

	do {
		n = syscall(SYS_read, 0, b->line + used, sizeof(b->line) - used);
		if (n <= 0)
			return;
		used += (size_t)n;
	} while (b->line[used - 1] != '\n');
	b->line[used - 1] = '\0';
	atomic_store(&b->answered, true);
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
static NOT_SANITIZED int between_main(void *arg)
{
	struct between *b = arg;
	int fds[2];

	syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	between_prepare();
	between_close();
	if (syscall(SYS_pipe2, fds, O_CLOEXEC))
		b->error = errno;
	else
		b->error = posix_spawn(&b->pid, b->program, &b->actions, &b->attr, b->argv, b->env);
	if (!b->error) {
		atomic_store(&b->started, true);
		syscall(SYS_close, BETWEEN_PIPE);
		between_read(b);
		syscall(SYS_wait4, b->pid, &b->status, 0, NULL);
	}
	syscall(SYS_exit_group, 0);
	return 0;
}

void between_run(struct between *b)
{
	pid_t pid = __clone(between_main, b->stack + BETWEEN_STACK_SIZE, CLONE_VM | CLONE_VFORK, b);

	if (pid < 0)
		b->error = errno;
	while (pid > 0 && waitpid(pid, NULL, __WCLONE) < 0 && errno == EINTR)
		;
}
