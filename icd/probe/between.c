/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/probe/between.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_DESCRIPTORS 65536 /* to close singly, if the kernel has no close_range() */

#define NOT_SANITIZED __attribute__((no_sanitize("address", "thread", "undefined")))

/* clone() by the name past the thread sanitizer, which takes clone() for fork(). */
int __clone(int (*function)(void *), void *stack, int flags, void *arg, ...);

/*
 * SIGCHLD gets the default action: if the application ignores SIGCHLD, the status of the probe
 * would be lost.  A crash of the probe leaves no core file in the application's folder.  The process
 * between leaves real time: a spinning driver in real time would keep the application from the
 * processor, and from the limit for the wait.
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

/* closefrom() may abort().  Descriptors above the limit stay open here, not in the probe. */
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
	struct between *b = arg;
	long n;

	syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	between_prepare();
	between_close();
	if (syscall(SYS_memfd_create, "climport facts", 0) != BETWEEN_FILE)
		b->error = ENOSYS;
	else
		b->error = posix_spawn(&b->pid, b->program, &b->actions, &b->attr, b->argv, b->env);
	if (!b->error && syscall(SYS_wait4, b->pid, &b->status, 0, NULL) == b->pid && !b->status) {
		n = syscall(SYS_pread64, BETWEEN_FILE, b->answer, b->size, 0L);
		b->used = n > 0 ? (size_t)n : 0;
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
