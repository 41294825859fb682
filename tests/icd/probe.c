/* SPDX-License-Identifier: Apache-2.0 */
#include "probe.h"

#include "process.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
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

int probe_run_program(int (*program)(void))
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		setenv("XDG_CACHE_HOME", probe_cache, 1);
		if (!probe_on_pocl)
			setenv("OCL_ICD_VENDORS", STUB_VENDORS, 1);
		setenv("OPENCL_LAYERS", LAYER_PATH, 1);
		alarm(60);
		_exit(program());
	}
	EXPECT(pid > 0);
	EXPECT_EQ(waitpid(pid, &status, 0), pid);
	if (WIFSIGNALED(status))
		printf("# signal %d\n", WTERMSIG(status));
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int probe_run_to_end(int (*program)(void))
{
	int result;

	EXPECT(!prctl(PR_SET_CHILD_SUBREAPER, 1));
	result = probe_run_program(program);
	while (waitpid(-1, NULL, __WALL) > 0 || errno == EINTR)
		;
	prctl(PR_SET_CHILD_SUBREAPER, 0);
	return result;
}

double probe_clock(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

int probe_run_answered(int (*program)(void))
{
	char forget[256];
	double start;
	int status;

	snprintf(forget, sizeof(forget), "rm -rf %s/climport %s/ran", probe_cache, probe_cache);
	for (int tries = 0; tries < 10; tries++) {
		start = probe_clock();
		status = probe_run_program(program);
		if (status != 1 || probe_clock() - start < 2)
			return status;
		EXPECT_EQ(system(forget), 0);
	}
	return status;
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

/* A joined thread stays in /proc for a moment after pthread_join(). */
static bool probe_threads_settle(int threads)
{
	for (int i = 0; i < 1000; i++) {
		if (process_count_threads() <= threads)
			return true;
		usleep(10000);
	}
	return false;
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
	if (!probe_threads_settle(threads))
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
	char command[1024];

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

int probe_silent_with_installed(void)
{
	int ret = 0;

	probe_use_installed_layer();
	probe_get_platform();
	for (int i = 0; i < 100 && !ret;
	     i++) /* 100 queries with a wait each would exceed the alarm's 60 seconds */
		ret = probe_is_silent();
	return ret;
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
