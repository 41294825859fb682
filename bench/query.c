/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost of extension queries for a program that imports no memory: the processor time, user and
 * system, of whole processes with the layer, over the time without the layer.  The time of a probe
 * process counts, because the process between waits for the probe, and the program for the process
 * between.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

#define ROUNDS 21

/* The query of a process. */
enum query { PLATFORM, DEVICES, BOTH, QUERIES };

/* The conditions of a process. */
enum setting {
	BARE,  /* without the layer */
	KEPT,  /* with results of an earlier process */
	FIRST, /* without results */
	SETTINGS,
};

static const char *const query_name[QUERIES] = { "platform's", "devices'", "platform's, devices'" };

int bench_queries_child(const char *platform_name, int query)
{
	static char text[65536];
	cl_platform_id platform = bench_platform(platform_name);
	cl_device_id device;

	if (query != DEVICES &&
	    clGetPlatformInfo(platform, CL_PLATFORM_EXTENSIONS, sizeof(text), text, NULL))
		return 1;
	if (query == PLATFORM)
		return 0;
	return clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL) ||
	       clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS, sizeof(text), text, NULL);
}

static double processor_time(void)
{
	struct rusage usage;

	getrusage(RUSAGE_CHILDREN, &usage);
	return usage.ru_utime.tv_sec + usage.ru_stime.tv_sec +
	       1e-6 * (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static void remove_all(const char *path)
{
	char command[PATH_MAX];

	snprintf(command, sizeof(command), "rm -rf %s", path);
	if (system(command))
		exit(1);
}

static void query_forget(const char *cache)
{
	char path[PATH_MAX - 16];

	snprintf(path, sizeof(path), "%s/climport", cache);
	remove_all(path);
}

/* Runs a process, with a private folder for the layer's results and all other caches shared. */
static void query_start(const char *self, const char *layer, const char *platform, int query,
			enum setting setting)
{
	char number[12];

	snprintf(number, sizeof(number), "%d", query);
	setenv("OPENCL_LAYERS", setting == BARE ? "" : layer, 1);
	execl(self, self, "--platform", platform, "--query", number, NULL);
	_exit(127);
}

static double measure_one(const char *self, const char *layer, const char *platform, int query,
			  enum setting setting)
{
	double before;
	int status;
	pid_t pid;

	if (setting == FIRST)
		query_forget(getenv("XDG_CACHE_HOME"));
	before = processor_time();
	pid = fork();
	if (!pid)
		query_start(self, layer, platform, query, setting);
	if (waitpid(pid, &status, 0) != pid || status) {
		fprintf(stderr, "bench: a measuring process failed\n");
		exit(1);
	}
	return processor_time() - before;
}

static int query_compare(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static double query_median(double *values)
{
	qsort(values, ROUNDS, sizeof(*values), query_compare);
	return values[ROUNDS / 2];
}

/* Makes results before each process, because the process before may have removed the results. */
static void query_measure(const char *self, const char *layer, const char *platform, int query,
			  double *times)
{
	double all[SETTINGS][ROUNDS];

	measure_one(self, layer, platform, query, FIRST);
	for (int round = 0; round < ROUNDS; round++) {
		all[BARE][round] = measure_one(self, layer, platform, query, BARE);
		all[KEPT][round] = measure_one(self, layer, platform, query, KEPT);
		all[FIRST][round] = measure_one(self, layer, platform, query, FIRST);
	}
	for (int setting = 0; setting < SETTINGS; setting++)
		times[setting] = query_median(all[setting]);
}

static void report_query(int query, double value, const char *how, const char *goal)
{
	char name[64];

	snprintf(name, sizeof(name), "%s strings, %s", query_name[query], how);
	bench_figure("query", name, value, "x without the layer", goal);
}

/* The first time a probe's process loads the driver as well: no less than 2 x. */
void bench_queries(const char *self, const char *layer, const char *platform)
{
	const char *user = getenv("XDG_CACHE_HOME");
	char *before = user ? strdup(user) : NULL, cache[] = "/tmp/climport-bench-XXXXXX";

	if (!mkdtemp(cache)) {
		fprintf(stderr, "bench: %s: %m\n", cache);
		exit(1);
	}
	setenv("XDG_CACHE_HOME", cache, 1);
	for (int query = 0; query < QUERIES; query++) {
		double times[SETTINGS];

		query_measure(self, layer, platform, query, times);
		report_query(query, times[KEPT] / times[BARE], "result kept", "at most 1.15");
		report_query(query, times[FIRST] / times[BARE], "first time, with the probe", NULL);
	}
	remove_all(cache);
	if (before)
		setenv("XDG_CACHE_HOME", before, 1);
	else
		unsetenv("XDG_CACHE_HOME");
	setenv("OPENCL_LAYERS", layer, 1);
	free(before);
}
