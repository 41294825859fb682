/* SPDX-License-Identifier: Apache-2.0 */
#include "util/thread.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util/restricted.h"

#define THREAD_CPUS 8192 /* the most that Linux can have on x86-64 */
#define THREAD_CPU_WORDS (THREAD_CPUS / CHAR_BIT / sizeof(unsigned long))

struct thread_scheduling {
	int policy, nice;
};

static pid_t thread_loader, thread_process; /* loaded climport */

/* The calling thread is climport's, and its creator had a scheduling of its own. */
static _Thread_local bool thread_leaves;

/* Field @number of proc_pid_stat(5), behind the second, which may have spaces. */
static int thread_field(const char *line, int number)
{
	const char *at = strrchr(line, ')');

	for (int i = 2; at && i < number; i++)
		at = strchr(at + 1, ' ');
	return at ? atoi(at) : 0;
}

/*
 * By a file: getpriority() and sched_getscheduler() are rarer than open() in the filters of system calls
 * with which services begin.
 */
static bool thread_read_scheduling(const char *stat, struct thread_scheduling *out)
{
	FILE *file = fopen(stat, "re");
	char line[512];
	bool is_read;

	if (!file)
		return false;
	is_read = fgets(line, sizeof(line), file);
	fclose(file);
	if (is_read)
		*out = (struct thread_scheduling){
			.policy = thread_field(line, 41),
			.nice = thread_field(line, 19),
		};
	return is_read;
}

/* A file of a thread of this process. */
static bool thread_read(pid_t thread, struct thread_scheduling *out)
{
	char stat[64];

	snprintf(stat, sizeof(stat), "/proc/self/task/%d/stat", (int)thread);
	return thread_read_scheduling(stat, out);
}

/* The policy comes with a flag that threads do not pass on: SCHED_RESET_ON_FORK. */
static bool thread_ask(pid_t thread, struct thread_scheduling *out)
{
	out->policy = sched_getscheduler(thread) & ~SCHED_RESET_ON_FORK;
	out->nice = getpriority(PRIO_PROCESS, (id_t)thread);
	return out->policy >= 0;
}

__attribute__((constructor)) static void thread_note_loader(void)
{
	thread_loader = gettid();
	thread_process = getpid();
}

/* A thread that has ended leaves its number to threads of other processes. */
static bool thread_is_own(pid_t thread)
{
	return thread == getpid() || !syscall(SYS_tgkill, getpid(), thread, 0);
}

/* The first thread stands for a loader that has ended, and for the parent's. */
static pid_t thread_get_loader(void)
{
	return getpid() == thread_process && thread_is_own(thread_loader) ? thread_loader
									  : getpid();
}

/* Real time is the last: a program that was started in real time stays so. */
static int thread_rank(int policy)
{
	static const int policies[] = { SCHED_OTHER, SCHED_BATCH, SCHED_IDLE };
	int rank = 0;

	while (rank < 3 && policies[rank] != policy)
		rank++;
	return rank;
}

/* Whether the thread has something better, which @best gets. */
static bool thread_improve(struct thread_scheduling *best, const struct thread_scheduling *its)
{
	bool is_better = false;

	if (thread_rank(its->policy) < thread_rank(best->policy)) {
		best->policy = its->policy;
		is_better = true;
	}
	if (its->nice < best->nice) {
		best->nice = its->nice;
		is_better = true;
	}
	return is_better;
}

/*
 * What the program has: the first of the policies, the best nice value and all processors of the calling
 * thread, of the first thread and of the loader, as they are now.  Whether the calling thread lacks a
 * part.
 */
static bool thread_lacks_scheduling(bool (*read)(pid_t thread, struct thread_scheduling *out),
				    struct thread_scheduling *best)
{
	const pid_t others[] = { getpid(), thread_get_loader() };
	struct thread_scheduling its;
	bool lacks = false;

	if (!read(gettid(), best))
		return false;
	for (int i = 0; i < 2; i++)
		lacks |= read(others[i], &its) && thread_improve(best, &its);
	return lacks;
}

struct thread_processors {
	unsigned long mine[THREAD_CPU_WORDS], its[THREAD_CPU_WORDS];
};

static bool thread_add_processors(struct thread_processors *p, pid_t thread)
{
	unsigned long more = 0;

	memset(p->its, 0, sizeof(p->its));
	if (syscall(SYS_sched_getaffinity, thread, sizeof(p->its), p->its) < 0)
		return false;
	for (size_t i = 0; i < THREAD_CPU_WORDS; i++) {
		more |= p->its[i] & ~p->mine[i];
		p->mine[i] |= p->its[i];
	}
	return more;
}

static bool thread_lacks_processors(struct thread_processors *p)
{
	bool lacks;

	memset(p->mine, 0, sizeof(p->mine));
	thread_add_processors(p, 0);
	lacks = thread_add_processors(p, getpid());
	return thread_add_processors(p, thread_get_loader()) || lacks;
}

/* Without memory the thread stays as its creator. */
static bool thread_has_scheduling_of_its_own(void)
{
	struct thread_processors *p = malloc(sizeof(*p));
	struct thread_scheduling best;
	bool lacks = p &&
		     (thread_lacks_processors(p) || thread_lacks_scheduling(thread_read, &best));

	free(p);
	return lacks;
}

/*
 * On the creator, as climport's threads open no files, whose descriptors a program might close.
 *
 * A filter with which the process began may end the process for calls about scheduling.  Where the
 * creator has another scheduling than the first thread, such calls have been made.  A filter that was
 * entered later says nothing of calls that were made before.
 */
static bool thread_looks_at_creator(void)
{
	THREAD_NO_CANCEL();

	return !restricted_is_entered() && thread_has_scheduling_of_its_own();
}

static void thread_leave_creator(void)
{
	const struct sched_param none = { 0 };
	struct thread_processors *p = malloc(sizeof(*p));
	struct thread_scheduling best;

	if (thread_lacks_scheduling(thread_ask, &best)) {
		sched_setscheduler(0, best.policy, &none);
		setpriority(PRIO_PROCESS, 0, best.nice);
	}
	if (p && thread_lacks_processors(p))
		sched_setaffinity(0, sizeof(p->mine), (cpu_set_t *)p->mine);
	free(p);
}

void thread_begin(const char *name)
{
	pthread_setname_np(pthread_self(), name);
	if (thread_leaves)
		thread_leave_creator();
}

/* What a thread begins with; the thread frees the record. */
struct thread_start {
	void *(*run)(void *);
	void *arg;
	bool leaves;
};

static void *thread_main(void *arg)
{
	const struct thread_start start = *(const struct thread_start *)arg;

	free(arg);
	thread_leaves = start.leaves;
	return start.run(start.arg);
}

/* EINVAL: much thread-local data needs more than the stack. */
static int thread_create_with_stack(pthread_t *thread, size_t stack, struct thread_start *start)
{
	pthread_attr_t attr;
	int ret;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, stack);
	ret = pthread_create(thread, &attr, thread_main, start);
	pthread_attr_destroy(&attr);
	return ret;
}

static int thread_create_quietly(pthread_t *thread, size_t stack, struct thread_start *start)
{
	sigset_t blocked, before;
	int ret = EINVAL;

	thread_blocked_signals(&blocked);
	pthread_sigmask(SIG_SETMASK, &blocked, &before);
	if (stack)
		ret = thread_create_with_stack(thread, stack, start);
	if (ret == EINVAL)
		ret = pthread_create(thread, NULL, thread_main, start);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return ret;
}

int thread_create(pthread_t *thread, size_t stack, void *(*run)(void *), void *arg)
{
	struct thread_start *start = malloc(sizeof(*start));
	int ret;

	if (!start)
		return -EAGAIN;
	*start = (struct thread_start){ run, arg, thread_looks_at_creator() };
	ret = thread_create_quietly(thread, stack, start);
	if (ret)
		free(start);
	return -ret;
}

int thread_start(void *(*run)(void *), void *arg)
{
	pthread_t thread;
	int ret = thread_create(&thread, 0, run, arg);

	if (!ret)
		pthread_detach(thread);
	return ret;
}
