/* SPDX-License-Identifier: Apache-2.0 */
#include "util/thread.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdatomic.h>
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

/*
 * What the program has, by a look at some of its threads: each processor, the policies, and the best
 * nice value.  A program that was started on some of the machine's processors, as a nice program or in
 * real time stays so.  Threads of the program look: climport's open no files, whose descriptors a
 * program might close.
 */
static atomic_ulong thread_cpus[THREAD_CPU_WORDS];
static atomic_uint thread_policies; /* bits */
static atomic_int thread_nice = PRIO_MAX;

static atomic_bool thread_leaves; /* the creator of the last thread had a scheduling of its own */

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

/* False: the system does not tell. */
static bool thread_look_at_scheduling(const char *stat, struct thread_scheduling *its)
{
	int nice = atomic_load(&thread_nice);

	if (!thread_read_scheduling(stat, its))
		return false;
	while (its->nice < nice && !atomic_compare_exchange_weak(&thread_nice, &nice, its->nice))
		;
	atomic_fetch_or(&thread_policies, 1u << its->policy);
	return true;
}

/* Whether the thread has all processors that are known. */
static bool thread_look_at_processors(pid_t thread)
{
	unsigned long its[THREAD_CPU_WORDS] = { 0 };
	bool has_all = true;

	if (syscall(SYS_sched_getaffinity, thread, sizeof(its), its) < 0)
		return true;
	for (size_t i = 0; i < THREAD_CPU_WORDS; i++)
		has_all &= !(atomic_fetch_or(&thread_cpus[i], its[i]) & ~its[i]);
	return has_all;
}

/* The thread that loads climport. */
__attribute__((constructor)) static void thread_look_at_loader(void)
{
	struct thread_scheduling its;

	thread_look_at_scheduling("/proc/thread-self/stat", &its);
	thread_look_at_processors(0);
}

/* The first of these that one of the threads has; @policy, in real time, if all are. */
static int thread_choose_policy(int policy)
{
	static const int choices[] = { SCHED_OTHER, SCHED_BATCH, SCHED_IDLE };

	for (size_t i = 0; i < sizeof(choices) / sizeof(*choices); i++)
		if (atomic_load(&thread_policies) & 1u << choices[i])
			return choices[i];
	return policy;
}

static void thread_set_processors(void)
{
	unsigned long cpus[THREAD_CPU_WORDS];

	for (size_t i = 0; i < THREAD_CPU_WORDS; i++)
		cpus[i] = atomic_load(&thread_cpus[i]);
	sched_setaffinity(0, sizeof(cpus), (cpu_set_t *)cpus);
}

static bool thread_has_scheduling_of_its_own(void)
{
	struct thread_scheduling mine, first;

	thread_look_at_processors(getpid());
	if (!thread_look_at_processors(0))
		return true;
	if (!thread_look_at_scheduling("/proc/thread-self/stat", &mine))
		return false;
	thread_look_at_scheduling("/proc/self/stat", &first);
	return mine.policy != thread_choose_policy(mine.policy) ||
	       mine.nice > atomic_load(&thread_nice);
}

/*
 * A filter with which the process began may end the process for calls about scheduling.  Where the
 * creator has a scheduling of its own, such calls have been made.  A filter that was entered later says
 * nothing of calls that were made before.
 */
static void thread_look_at_creator(void)
{
	THREAD_NO_CANCEL();

	atomic_store(&thread_leaves,
		     !restricted_is_entered() && thread_has_scheduling_of_its_own());
}

static void thread_leave_creator(void)
{
	const struct sched_param none = { 0 };
	int policy = sched_getscheduler(0), choice = thread_choose_policy(policy);

	if (policy != choice)
		sched_setscheduler(0, choice, &none);
	if (getpriority(PRIO_PROCESS, 0) > atomic_load(&thread_nice))
		setpriority(PRIO_PROCESS, 0, atomic_load(&thread_nice));
	thread_set_processors();
}

void thread_begin(const char *name)
{
	pthread_setname_np(pthread_self(), name);
	if (atomic_load(&thread_leaves))
		thread_leave_creator();
}

/* EINVAL: much thread-local data needs more than the stack. */
static int thread_create_with_stack(pthread_t *thread, size_t stack, void *(*run)(void *),
				    void *arg)
{
	pthread_attr_t attr;
	int ret;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, stack);
	ret = pthread_create(thread, &attr, run, arg);
	pthread_attr_destroy(&attr);
	return ret;
}

int thread_create(pthread_t *thread, size_t stack, void *(*run)(void *), void *arg)
{
	sigset_t blocked, before;
	int ret = EINVAL;

	thread_look_at_creator();
	thread_blocked_signals(&blocked);
	pthread_sigmask(SIG_SETMASK, &blocked, &before);
	if (stack)
		ret = thread_create_with_stack(thread, stack, run, arg);
	if (ret == EINVAL)
		ret = pthread_create(thread, NULL, run, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
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
