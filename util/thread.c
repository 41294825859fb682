/* SPDX-License-Identifier: Apache-2.0 */
#include "util/thread.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <unistd.h>

#include "util/restricted.h"

#define THREAD_CPUS 8192 /* the most that Linux can have on x86-64 */
#define THREAD_CPU_WORDS (THREAD_CPUS / CHAR_BIT / sizeof(unsigned long))

/*
 * What the program has, by a look at some of its threads: each processor, and the best nice value.
 * A program that was started on some of the machine's processors, or as a nice one, stays so.
 */
static atomic_ulong thread_cpus[THREAD_CPU_WORDS];
static atomic_int thread_nice = PRIO_MAX;

static void thread_look_at(pid_t thread)
{
	unsigned long cpus[THREAD_CPU_WORDS];
	int its_nice = getpriority(PRIO_PROCESS, (id_t)thread), nice = atomic_load(&thread_nice);

	while (its_nice < nice && !atomic_compare_exchange_weak(&thread_nice, &nice, its_nice))
		;
	if (sched_getaffinity(thread, sizeof(cpus), (cpu_set_t *)cpus))
		return;
	for (size_t i = 0; i < THREAD_CPU_WORDS; i++)
		if (cpus[i])
			atomic_fetch_or(&thread_cpus[i], cpus[i]);
}

/* The thread that loads climport. */
__attribute__((constructor)) static void thread_look_at_loader(void)
{
	if (!restricted_is_filtered())
		thread_look_at(0);
}

static void thread_set_processors(void)
{
	unsigned long cpus[THREAD_CPU_WORDS];

	for (size_t i = 0; i < THREAD_CPU_WORDS; i++)
		cpus[i] = atomic_load(&thread_cpus[i]);
	sched_setaffinity(0, sizeof(cpus), (cpu_set_t *)cpus);
}

/*
 * As far as the system permits.  A filter may end the process for such system calls: there, the thread
 * stays as its creator.
 */
static void thread_leave_creator(void)
{
	const struct sched_param none = { 0 };

	if (restricted_is_filtered())
		return;
	thread_look_at(0); /* as the creator */
	thread_look_at(getpid());
	if (sched_getscheduler(0) != SCHED_OTHER)
		sched_setscheduler(0, SCHED_OTHER, &none);
	if (getpriority(PRIO_PROCESS, 0) > atomic_load(&thread_nice))
		setpriority(PRIO_PROCESS, 0, atomic_load(&thread_nice));
	thread_set_processors();
}

void thread_begin(const char *name)
{
	pthread_setname_np(pthread_self(), name);
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
