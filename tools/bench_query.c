/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first query of extensions in a process, after the driver has started: on a machine that
 * knows nothing of the device (an empty XDG_CACHE_HOME), and with the results of that query.
 *
 * The part "queries" owns the folder: a process that SIGKILL alone ends before the folder is gone, and
 * that waits for all processes below it.  So nothing is left of a bench that was stopped.
 */
#include "bench.h"

#include <errno.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "arguments.h"

#define GROUP "query"
#define LATER 5
#define MOST_SECONDS 10 /* for a probe whose program is gone */
#define MOST_PLATFORMS 64
#define MOST_DEVICES 256

static cl_platform_id bench_query_platform(const char *wanted)
{
	cl_platform_id platforms[MOST_PLATFORMS];
	cl_uint count = 0;
	char name[256];

	clGetPlatformIDs(MOST_PLATFORMS, platforms, &count);
	for (cl_uint i = 0; i < count && i < MOST_PLATFORMS; i++)
		if (!clGetPlatformInfo(platforms[i], CL_PLATFORM_NAME, sizeof(name), name, NULL) &&
		    option_names(wanted, i, name))
			return platforms[i];
	bench_fatal("there is no such OpenCL platform");
}

static cl_device_id bench_query_device(cl_platform_id platform, const char *wanted)
{
	cl_device_id devices[MOST_DEVICES];
	cl_uint count = 0;
	char name[256];

	clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, MOST_DEVICES, devices, &count);
	for (cl_uint i = 0; i < count && i < MOST_DEVICES; i++)
		if (!clGetDeviceInfo(devices[i], CL_DEVICE_NAME, sizeof(name), name, NULL) &&
		    option_names(wanted, i, name))
			return devices[i];
	bench_fatal("there is no such OpenCL device");
}

void bench_query_part(struct bench *b)
{
	static char of_platform[1 << 16], of_device[1 << 16];
	cl_platform_id platform = bench_query_platform(b->options->platform);
	cl_device_id device = bench_query_device(platform, b->options->device);
	double start = bench_now();

	clGetPlatformInfo(platform, CL_PLATFORM_EXTENSIONS, sizeof(of_platform), of_platform, NULL);
	clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS, sizeof(of_device), of_device, NULL);
	bench_part_print(bench_now() - start);
	if (!strstr(of_device, "cl_arm_import_memory"))
		bench_leave_out(b, "the device does not report cl_arm_import_memory");
}

static char bench_query_cache[512];

static int bench_query_remove_one(const char *path, const struct stat *status, int type,
				  struct FTW *walk)
{
	(void)status;
	(void)type;
	(void)walk;
	return remove(path);
}

/* A probe outlives the program that asked, and its driver makes folders for compiled kernels. */
static void bench_query_wait(void)
{
	const struct timespec pause = { .tv_nsec = 10000000 };

	for (double end = bench_now() + MOST_SECONDS; bench_now() < end; nanosleep(&pause, NULL))
		while (waitpid(-1, NULL, WNOHANG))
			if (errno == ECHILD)
				return;
}

static void bench_query_remove(void)
{
	bench_query_wait();
	nftw(bench_query_cache, bench_query_remove_one, 8, FTW_DEPTH | FTW_PHYS);
	sigprocmask(SIG_UNBLOCK, bench_part_ends(), NULL);
}

/* A signal that would end this process waits until the folder is gone.  Orphans become children. */
static void bench_query_hold(void)
{
	sigprocmask(SIG_BLOCK, bench_part_ends(), NULL);
	prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
}

static void bench_query_create_cache(struct bench *b)
{
	const char *folder = getenv("TMPDIR");

	snprintf(bench_query_cache, sizeof(bench_query_cache), "%s/climport-bench-XXXXXX",
		 folder ? folder : "/tmp");
	if (!mkdtemp(bench_query_cache))
		bench_leave_out(b, "no folder for a cache can be made: %s: %m", bench_query_cache);
	atexit(bench_query_remove);
}

void bench_queries_part(struct bench *b)
{
	const pid_t parent = getppid();
	struct bench_figure later;
	double seconds[LATER];
	char set[544];

	bench_query_hold();
	bench_query_create_cache(b);
	snprintf(set, sizeof(set), "XDG_CACHE_HOME=%s", bench_query_cache);
	if (!bench_part_run(b, "query", set, seconds, 1))
		exit(BENCH_LEFT_OUT);
	bench_part_print(seconds[0]);
	for (size_t i = 0; i < LATER; i++)
		if (getppid() != parent || !bench_part_run(b, "query", set, &seconds[i], 1))
			return;
	later = bench_figure_of(seconds, LATER);
	bench_part_print_figure(&later);
}

void bench_query(struct bench *b)
{
	double numbers[1 + BENCH_FIGURE_NUMBERS];
	struct bench_figure first, later;
	size_t got = bench_part_run(b, "queries", "CLIMPORT_LOG=off", numbers,
				    sizeof(numbers) / sizeof(numbers[0]));

	if (!got)
		return;
	first = bench_figure_of(numbers, 1);
	bench_report(b, GROUP, "first query of extensions, empty cache", 0,
		     bench_figure_times(first, 1e3), "ms", "<= 600");
	if (got < sizeof(numbers) / sizeof(numbers[0]))
		return;
	later = bench_part_figure(numbers + 1);
	bench_report(b, GROUP, "first query of extensions, results kept", 0,
		     bench_figure_times(later, 1e3), "ms", "<= 5");
}
