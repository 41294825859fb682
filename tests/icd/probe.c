/* SPDX-License-Identifier: Apache-2.0 */
#include "probe.h"

#include "process.h"
#include "timed_wait.h"

#include <dirent.h>
#include <errno.h>
#include <glob.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

char probe_cache[64];
bool probe_on_pocl;

static int probe_count_entries(const char *directory)
{
	DIR *dir = opendir(directory);
	int count = 0;

	while (dir && readdir(dir))
		count++;
	if (dir)
		closedir(dir);
	return count;
}

static void probe_remove_cache(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", probe_cache);
	if (*probe_cache && system(command))
		printf("# %s is left\n", probe_cache);
	*probe_cache = '\0';
}

void probe_create_cache(void)
{
	static bool registered;

	if (!registered)
		atexit(probe_remove_cache);
	registered = true;
	probe_remove_cache();
	strcpy(probe_cache, "/tmp/climport-probe-XXXXXX");
	EXPECT(mkdtemp(probe_cache));
	probe_on_pocl = false;
}

void probe_create_cache_for_pocl(void)
{
	probe_create_cache();
	probe_on_pocl = true;
}

/* How the program's time passes. */
static bool probe_is_slow;	    /* ten seconds are five minutes */
static bool (*probe_is_time)(void); /* if set: not at all, and then at once */
static atomic_int probe_waits;	    /* for so many times the program has waited */
static atomic_int probe_longest;    /* seconds */

static bool probe_child_is_awake(const char *stat)
{
	FILE *file = fopen(stat, "re");
	int parent = 0;
	char state = 0;

	if (file && fscanf(file, "%*d (%*[^)]) %c %d", &state, &parent) != 2)
		parent = 0;
	if (file)
		fclose(file);
	return parent == getpid() && state != 'S' && state != 'Z';
}

/* The layer's process between the program and the probe has started the probe, and reads. */
static bool probe_children_sleep(void)
{
	glob_t found = { 0 };
	bool asleep = true;

	glob("/proc/[0-9]*/stat", GLOB_NOSORT, NULL, &found);
	for (size_t i = 0; i < found.gl_pathc && asleep; i++)
		asleep = !probe_child_is_awake(found.gl_pathv[i]);
	globfree(&found);
	return asleep;
}

static struct timespec probe_time(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time); /* time: between two looks at probe_is_time */
	return time;
}

/* Several waits until one time are one. */
static void probe_note_wait(const struct timespec *until)
{
	static struct timespec last;
	const struct timespec now = probe_time();
	const int seconds = (int)(until->tv_sec - now.tv_sec + (until->tv_nsec > now.tv_nsec));

	if (last.tv_sec != until->tv_sec || last.tv_nsec != until->tv_nsec)
		atomic_fetch_add(&probe_waits, 1);
	last = *until;
	if (seconds > atomic_load(&probe_longest))
		atomic_store(&probe_longest, seconds);
}

static int probe_wait(pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *until)
{
	struct timespec end = *until;
	int ret;

	probe_note_wait(until);
	if (!probe_is_time) {
		end.tv_sec += probe_is_slow ? 300 : 0;
		return timed_wait_real(cond, mutex, &end);
	}
	if (probe_is_time() && probe_children_sleep())
		return ETIMEDOUT;
	end = probe_time();
	end.tv_nsec += 10000000;
	end.tv_sec += end.tv_nsec / 1000000000;
	end.tv_nsec %= 1000000000;
	ret = timed_wait_real(cond, mutex, &end);
	return ret == ETIMEDOUT ? 0 : ret;
}

int probe_run_program(int (*program)(void))
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		timed_wait_hook = probe_wait;
		setenv("XDG_CACHE_HOME", probe_cache, 1);
		if (!probe_on_pocl)
			setenv("OCL_ICD_VENDORS", STUB_VENDORS, 1);
		setenv("OPENCL_LAYERS", LAYER_PATH, 1);
		alarm(TEST_HANG_S);
		_exit(program());
	}
	EXPECT(pid > 0);
	EXPECT_EQ(waitpid(pid, &status, 0), pid);
	if (WIFSIGNALED(status))
		printf("# signal %d\n", WTERMSIG(status));
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int probe_run_answered(int (*program)(void))
{
	int result;

	probe_is_slow = true;
	result = probe_run_program(program);
	probe_is_slow = false;
	return result;
}

int probe_run_given_up(int (*program)(void), bool (*is_time)(void))
{
	int result;

	probe_is_time = is_time;
	result = probe_run_program(program);
	probe_is_time = NULL;
	return result;
}

bool probe_has_run(void)
{
	return probe_count_runs() > 0;
}

int probe_run_to_end(int (*program)(void), bool (*is_time)(void))
{
	int result;

	EXPECT(!prctl(PR_SET_CHILD_SUBREAPER, 1));
	result = is_time ? probe_run_given_up(program, is_time) : probe_run_answered(program);
	while (waitpid(-1, NULL, __WALL) > 0 || errno == EINTR)
		;
	prctl(PR_SET_CHILD_SUBREAPER, 0);
	return result;
}

cl_platform_id probe_get_platform(void)
{
	cl_platform_id platform = NULL;

	return clGetPlatformIDs(1, &platform, NULL) ? NULL : platform;
}

bool probe_platform_reports(void)
{
	char text[4096] = "";

	clGetPlatformInfo(probe_get_platform(), CL_PLATFORM_EXTENSIONS, sizeof(text), text, NULL);
	return strstr(text, "cl_arm_import_memory_host");
}

bool probe_device_reports(void)
{
	char text[4096] = "";
	cl_device_id device;

	if (clGetDeviceIDs(probe_get_platform(), CL_DEVICE_TYPE_ALL, 1, &device, NULL))
		return false;
	clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS, sizeof(text), text, NULL);
	return strstr(text, "cl_arm_import_memory_host");
}

static void *do_nothing(void *arg)
{
	return arg;
}

/* The thread sanitizer starts a thread when a program starts the program's first thread. */
static void probe_start_sanitizer(void)
{
	pthread_t thread;

	if (!strcmp(SANITIZER, "thread") && !pthread_create(&thread, NULL, do_nothing, NULL))
		pthread_join(thread, NULL);
}

int probe_query_platform(void)
{
	int fds, threads;

	probe_get_platform();
	probe_start_sanitizer();
	fds = process_count_descriptors();
	threads = process_count_threads();
	if (!probe_platform_reports())
		return 1;
	/* A joined thread stays in /proc for a moment after pthread_join(). */
	if (!process_settles(process_threads_at_most, &threads))
		return 2;
	if (process_count_descriptors() != fds)
		return 3;
	return waitpid(-1, NULL, __WALL | WNOHANG) < 0 && errno == ECHILD ? 0 : 4;
}

int probe_is_silent(void)
{
	return probe_platform_reports() ? 1 : 0;
}

int probe_count_kept(void)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/climport/results", probe_cache);
	return probe_count_entries(path);
}

int probe_query_kept(void)
{
	setenv("CLIMPORT_PROBE", "off", 1);
	return probe_query_platform();
}

int probe_query_device(void)
{
	return probe_device_reports() ? 0 : 1;
}

int probe_device_is_silent(void)
{
	return probe_device_reports() ? 1 : 0;
}

int probe_has_platform(void)
{
	return probe_get_platform() ? 0 : 1;
}

static int probe_count_lines(const char *path)
{
	FILE *file = fopen(path, "re");
	int lines = 0, c;

	while (file && (c = fgetc(file)) != EOF)
		lines += c == '\n';
	if (file)
		fclose(file);
	return lines;
}

static char other_layer[256];

void probe_install_layer(const char *script)
{
	char command[2048];

	snprintf(other_layer, sizeof(other_layer), "%s/lib/icd/libCLImportMemoryLayer.so",
		 probe_cache);
	snprintf(
		command, sizeof(command),
		"mkdir -p %s/lib/icd %s/lib/tools && cp %s %s && cat > %s/lib/tools/climport-probe "
		"<<'EOF'\n#!/bin/sh\n%s\nEOF\nchmod +x %s/lib/tools/climport-probe",
		probe_cache, probe_cache, LAYER_PATH, other_layer, probe_cache, script,
		probe_cache);
	EXPECT_EQ(system(command), 0);
}

void probe_use_installed_layer(void)
{
	setenv("OPENCL_LAYERS", other_layer, 1);
}

int probe_count_waits(void)
{
	return atomic_load(&probe_waits);
}

int probe_longest_wait(void)
{
	return atomic_load(&probe_longest);
}

int probe_silent_with_installed(void)
{
	int ret, waits;

	probe_use_installed_layer();
	probe_get_platform();
	ret = probe_is_silent();
	waits = atomic_load(&probe_waits);
	for (int i = 1; i < 100 && !ret; i++)
		ret = probe_is_silent();
	return ret || waits == atomic_load(&probe_waits) ? ret : 5;
}

int probe_query_with_installed(void)
{
	probe_use_installed_layer();
	return probe_query_platform();
}

int probe_count_runs(void)
{
	char ran[128];

	snprintf(ran, sizeof(ran), "%s/ran", probe_cache);
	return probe_count_lines(ran);
}
