/* SPDX-License-Identifier: Apache-2.0 */
#include "import/monitor/threads.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "util/restricted.h"
#include "util/thread.h"

#define THREADS_STACK ((size_t)256 << 10)
#define THREADS_CPUS 8192 /* the most that Linux can have on x86-64 */

/* A thread that inherits its policy makes no system call for the policy. */
static void threads_choose_policy(pthread_attr_t *attr)
{
	const struct sched_param none = { 0 };

	if (sched_getscheduler(0) == SCHED_OTHER || restricted_filters())
		return;
	pthread_attr_setinheritsched(attr, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(attr, SCHED_OTHER);
	pthread_attr_setschedparam(attr, &none);
}

static int threads_create_small(pthread_t *thread, void *(*run)(void *), void *arg)
{
	pthread_attr_t attr;
	int ret;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, THREADS_STACK);
	threads_choose_policy(&attr);
	ret = pthread_create(thread, &attr, run, arg);
	pthread_attr_destroy(&attr);
	return ret;
}

/* With much thread-local data, or where the policy is not to be chosen, as threads are. */
static int threads_create_any(pthread_t *thread, void *(*run)(void *), void *arg)
{
	int ret = threads_create_small(thread, run, arg);

	return ret == EINVAL || ret == EPERM ? pthread_create(thread, NULL, run, arg) : ret;
}

int threads_create(pthread_t *thread, void *(*run)(void *), void *arg)
{
	sigset_t blocked, before;
	int ret;

	thread_blocked_signals(&blocked);
	pthread_sigmask(SIG_SETMASK, &blocked, &before);
	ret = threads_create_any(thread, run, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return ret == EAGAIN ? -ENOMEM : -ret;
}

void threads_unbind(void)
{
	cpu_set_t all[THREADS_CPUS / CPU_SETSIZE];

	if (restricted_filters())
		return;
	memset(all, 0xff, sizeof(all));
	sched_setaffinity(0, sizeof(all), all);
	if (getpriority(PRIO_PROCESS, 0) > 0)
		setpriority(PRIO_PROCESS, 0, 0);
}

/* "PID (NAME) STATE": the state of the first thread is Z once the thread has ended. */
bool threads_has_first_ended(void)
{
	FILE *file = restricted_is_entered() ? NULL : fopen("/proc/self/stat", "re");
	char line[256] = "", *end;

	if (!file)
		return false;
	end = fgets(line, sizeof(line), file) ? strrchr(line, ')') : NULL;
	fclose(file);
	return end && end[1] && end[2] == 'Z';
}

static bool threads_is_own(int tasks, const char *task)
{
	char path[32], name[16] = "";
	int file;

	snprintf(path, sizeof(path), "%.16s/comm", task);
	file = openat(tasks, path, O_RDONLY | O_CLOEXEC);
	if (file < 0)
		return false;
	if (read(file, name, sizeof(name)) < 0)
		name[0] = '\0';
	close(file);
	return !strncmp(name, "climport-", 9);
}

/* The first thread's name tells nothing. */
static bool threads_are_own(DIR *tasks)
{
	struct dirent *entry;
	char first[16];

	snprintf(first, sizeof(first), "%d", (int)getpid());
	while ((entry = readdir(tasks)))
		if (entry->d_name[0] != '.' && strcmp(entry->d_name, first) != 0 &&
		    !threads_is_own(dirfd(tasks), entry->d_name))
			return false;
	return true;
}

bool threads_are_alone(void)
{
	bool are_own;
	DIR *tasks;

	if (restricted_is_entered())
		return false;
	tasks = opendir("/proc/self/task");
	if (!tasks)
		return false;
	are_own = threads_are_own(tasks);
	closedir(tasks);
	return are_own;
}
