/* SPDX-License-Identifier: Apache-2.0 */
#include "import/monitor/threads.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "util/restricted.h"
#include "util/thread.h"

#define THREADS_STACK ((size_t)256 << 10)

int threads_create(pthread_t *thread, void *(*run)(void *), void *arg)
{
	int ret = thread_create(thread, THREADS_STACK, run, arg);

	return ret == -EAGAIN ? -ENOMEM : ret;
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
