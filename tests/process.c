/* SPDX-License-Identifier: Apache-2.0 */
#include "process.h"

#include "harness.h"

#include <dirent.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* The entries of a folder, of those @counts. */
static int process_count_entries(const char *path, bool (*counts)(const char *name))
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	int count = 0;

	EXPECT(dir);
	while ((entry = readdir(dir)))
		count += *entry->d_name != '.' && (!counts || counts(entry->d_name));
	closedir(dir);
	return count;
}

int process_count_descriptors(void)
{
	return process_count_entries("/proc/self/fd", NULL);
}

/* The kernel lists a thread for a moment after pthread_join(), with PF_EXITING among its flags. */
static bool process_thread_runs(const char *thread)
{
	char path[64], stat[512] = "";
	unsigned int flags = 4;
	const char *at;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%.16s/stat", thread);
	file = fopen(path, "re");
	at = file && fgets(stat, sizeof(stat), file) ? strrchr(stat, ')') : NULL;
	if (at)
		sscanf(at, ") %*c %*d %*d %*d %*d %*d %u", &flags);
	if (file)
		fclose(file);
	return !(flags & 4);
}

int process_count_threads(void)
{
	return process_count_entries("/proc/self/task", process_thread_runs);
}

pid_t process_find_thread(const char *name)
{
	DIR *directory = opendir("/proc/self/task");
	struct dirent *entry;
	pid_t found = 0;

	EXPECT(directory);
	while (!found && (entry = readdir(directory))) {
		char path[64], line[64] = "";
		FILE *file;

		snprintf(path, sizeof(path), "/proc/self/task/%.16s/comm", entry->d_name);
		file = fopen(path, "re");
		if (!file)
			continue;
		if (fgets(line, sizeof(line), file) && !strncmp(line, name, strlen(name)))
			found = atoi(entry->d_name);
		fclose(file);
	}
	closedir(directory);
	return found;
}

int process_count_mappings(const char *text)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[4352];
	int count = 0;

	EXPECT(maps);
	while (fgets(line, sizeof(line), maps))
		count += strstr(line, text) != NULL;
	fclose(maps);
	return count;
}

bool process_mapping_is(const void *addr, const char *flag)
{
	FILE *smaps = fopen("/proc/self/smaps", "re");
	char line[4352], want[8];
	unsigned long start, end;
	bool is_here = false, found = false;

	EXPECT(smaps);
	snprintf(want, sizeof(want), " %s ", flag);
	while (!found && fgets(line, sizeof(line), smaps)) {
		if (sscanf(line, "%lx-%lx ", &start, &end) == 2)
			is_here = start <= (unsigned long)addr && (unsigned long)addr < end;
		found = is_here && !strncmp(line, "VmFlags:", 8) && strstr(line, want);
	}
	fclose(smaps);
	return found;
}

bool process_descriptors_at_most(void *count)
{
	return process_count_descriptors() <= *(int *)count;
}

bool process_has_no_thread(void *name)
{
	return !process_find_thread(name);
}

bool process_threads_at_most(void *count)
{
	return process_count_threads() <= *(int *)count;
}

bool process_settles(bool (*condition)(void *), void *arg)
{
	const struct timespec ms = { 0, 1000000 };

	for (int i = 0; i < 10000; i++) {
		if (condition(arg))
			return true;
		nanosleep(&ms, NULL); /* time: between two looks at the condition */
	}
	return false;
}

/* False: the thread is awake.  Adds how often the thread has gone to sleep or lost the processor. */
static bool process_thread_sleeps(const char *id, unsigned long *switches)
{
	char path[64], line[128], state = 0;
	unsigned long count;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%.16s/status", id);
	file = fopen(path, "re");
	if (!file)
		return true; /* has ended */
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "State: %c", &state) != 1 &&
		    strstr(line, "voluntary_ctxt_switches:") &&
		    sscanf(line, "%*[^:]: %lu", &count) == 1)
			*switches += count;
	fclose(file);
	return state == 'S' || state == 'Z' || state == 'X';
}

static bool process_others_sleep(unsigned long *switches)
{
	DIR *directory = opendir("/proc/self/task");
	struct dirent *entry;
	bool asleep = true;

	EXPECT(directory);
	*switches = 0;
	while (asleep && (entry = readdir(directory)))
		if (*entry->d_name != '.' && atoi(entry->d_name) != gettid())
			asleep = process_thread_sleeps(entry->d_name, switches);
	closedir(directory);
	return asleep;
}

/* Threads that sleep twice, and have not been awake meanwhile, slept at the same time. */
bool process_is_quiet(void *unused)
{
	unsigned long first, second;

	(void)unused;
	return process_others_sleep(&first) && process_others_sleep(&second) && first == second;
}

void process_limit_descriptors(rlim_t count, struct rlimit *before)
{
	struct rlimit limit;

	EXPECT(!getrlimit(RLIMIT_NOFILE, before));
	limit = *before;
	limit.rlim_cur = count < limit.rlim_max ? count : limit.rlim_max;
	EXPECT(!setrlimit(RLIMIT_NOFILE, &limit));
}

void process_run_threads(int count, void *(*run)(void *number))
{
	pthread_t threads[64];

	EXPECT(count <= 64);
	for (intptr_t i = 0; i < count; i++)
		EXPECT_EQ(pthread_create(&threads[i], NULL, run, (void *)i), 0);
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
}
