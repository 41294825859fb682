/* SPDX-License-Identifier: Apache-2.0 */
#include "thread_fixture.h"

#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"
#include "process.h"

#define NICER 5

/* The first of the process's processors alone. */
static int thread_become_bound(void)
{
	cpu_set_t all, one;
	int first = 0;

	EXPECT(!sched_getaffinity(0, sizeof(all), &all));
	while (!CPU_ISSET(first, &all))
		first++;
	CPU_ZERO(&one);
	CPU_SET(first, &one);
	return CPU_COUNT(&all) < 2 || sched_setaffinity(0, sizeof(one), &one);
}

/* A thread with which the nice value can only grow has climport's threads grow with it. */
static int thread_become_nice(void)
{
	int nice = getpriority(PRIO_PROCESS, (id_t)getpid()) + NICER;

	return nice > 18 || setpriority(PRIO_PROCESS, 0, nice + 1) ||
	       setpriority(PRIO_PROCESS, 0, nice);
}

static int thread_become(int policy, int priority)
{
	const struct sched_param param = { .sched_priority = priority };

	return sched_setscheduler(0, policy, &param);
}

static int thread_become_batch(void)
{
	return thread_become(SCHED_BATCH, 0);
}

static int thread_become_idle(void)
{
	return thread_become_nice() || thread_become(SCHED_IDLE, 0);
}

static int thread_become_real_time(void)
{
	return thread_become(SCHED_FIFO, 1);
}

const struct thread_creator thread_creators[5] = {
	{ "bound", thread_become_bound },	  { "nice", thread_become_nice },
	{ "batch", thread_become_batch },	  { "idle", thread_become_idle },
	{ "real_time", thread_become_real_time },
};

struct creation {
	const struct thread_creator *creator;
	void (*start)(void *arg);
	void *arg;
};

/* Not NULL: the system refuses. */
static void *creation_run(void *arg)
{
	const struct creation *creation = arg;

	if (creation->creator->become())
		return arg;
	creation->start(creation->arg);
	return NULL;
}

/* Without the flag SCHED_RESET_ON_FORK. */
static int thread_policy(pid_t thread)
{
	return sched_getscheduler(thread) & ~SCHED_RESET_ON_FORK;
}

static bool thread_is_free(void *name)
{
	pid_t thread = process_find_thread(name);
	cpu_set_t first, its;

	return thread && !sched_getaffinity(getpid(), sizeof(first), &first) &&
	       !sched_getaffinity(thread, sizeof(its), &its) && CPU_EQUAL(&first, &its) &&
	       getpriority(PRIO_PROCESS, (id_t)thread) ==
		       getpriority(PRIO_PROCESS, (id_t)getpid()) &&
	       thread_policy(thread) == thread_policy(getpid());
}

void thread_fixture_expect_free(const char *name)
{
	EXPECT(process_settles(thread_is_free, (void *)(uintptr_t)name));
}

void thread_fixture_check(const struct thread_creator *creator, void (*start)(void *arg), void *arg,
			  const char *name)
{
	struct creation creation = { creator, start, arg };
	pthread_t thread;
	void *refused;

	alarm(TEST_HANG_S);
	EXPECT(!pthread_create(&thread, NULL, creation_run, &creation));
	EXPECT(!pthread_join(thread, &refused));
	if (refused)
		test_skip("the system has no such threads");
	thread_fixture_expect_free(name);
}

/* In a child. */
static _Noreturn void thread_start_program(const char *test, int (*become)(void))
{
	setenv("STARTED", "1", 1);
	dup2(STDERR_FILENO, STDOUT_FILENO);
	if (become())
		_exit(77);
	execl("/proc/self/exe", "started", test, (char *)NULL);
	_exit(126);
}

bool thread_fixture_is_started(const char *name, const char *row, int (*become)(void))
{
	char test[64];
	int status = -1;
	pid_t child;

	if (getenv("STARTED"))
		return true;
	snprintf(test, sizeof(test), "%s_%s", name, row);
	fflush(stdout);
	child = fork();
	if (!child)
		thread_start_program(test, become);
	EXPECT_EQ(waitpid(child, &status, 0), child);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		test_skip("the system starts no such program");
	EXPECT_EQ(status, 0);
	return false;
}
