/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first query of extensions in a process, after the driver has started: on a machine that
 * knows nothing of the device (an empty XDG_CACHE_HOME), and with the results of that query.
 */
#include "bench.h"

#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GROUP "query"
#define LATER 5
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
		    (!wanted || strstr(name, wanted)))
			return platforms[i];
	bench_fatal("there is no such OpenCL platform");
}

static cl_device_id bench_query_device(cl_platform_id platform, int number)
{
	cl_device_id devices[MOST_DEVICES];
	cl_uint count = 0;

	clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, MOST_DEVICES, devices, &count);
	if (number >= (int)count || number >= MOST_DEVICES)
		bench_fatal("there is no such OpenCL device");
	return devices[number < 0 ? 0 : number];
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

static int bench_query_remove_one(const char *path, const struct stat *status, int type,
				  struct FTW *walk)
{
	(void)status;
	(void)type;
	(void)walk;
	return remove(path);
}

static void bench_query_measure(struct bench *b, const char *set)
{
	double first, later[LATER];
	size_t got = bench_part_run(b, "query", set, &first, 1);

	if (!got)
		return;
	bench_report(b, GROUP, "first query of extensions, empty cache", 0, first * 1e3, "ms",
		     "<= 600");
	for (size_t i = 0; i < LATER && got; i++)
		got = bench_part_run(b, "query", set, &later[i], 1);
	if (got)
		bench_report(b, GROUP, "first query of extensions, results kept", 0,
			     bench_race_median(later, LATER) * 1e3, "ms", "<= 5");
}

void bench_query(struct bench *b)
{
	const char *folder = getenv("TMPDIR");
	char cache[512], set[544];

	snprintf(cache, sizeof(cache), "%s/climport-bench-XXXXXX", folder ? folder : "/tmp");
	if (!mkdtemp(cache)) {
		bench_skip(GROUP, "queries of extensions", "no folder for a cache can be made");
		return;
	}
	snprintf(set, sizeof(set), "XDG_CACHE_HOME=%s", cache);
	bench_query_measure(b, set);
	nftw(cache, bench_query_remove_one, 8, FTW_DEPTH | FTW_PHYS);
}
