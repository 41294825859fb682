/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Speed of the layer, as ratios within one run.  Every figure is the best of several
 * repetitions, in which the compared cases alternate.
 */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include <stddef.h>
#include <time.h>

#include <CL/cl.h>
#include <CL/cl_ext.h>

struct bench {
	cl_platform_id platform;
	cl_device_id device;
	cl_context context;
	cl_command_queue queue;
	cl_kernel kernel; /* add(__global uint4 *data): every element plus one */
	__typeof__(&clImportMemoryARM) import; /* NULL without the layer */
};

/* Opens the first device of the platform whose name contains @platform, or exits with a message. */
void bench_device_open(struct bench *b, const char *platform);
void bench_device_close(struct bench *b);

/* The platform that bench_open() chose. */
cl_platform_id bench_platform(const char *name);

/* Reports a figure: a line of the table, and a line of the JSON file. */
void bench_figure(const char *group, const char *name, double value, const char *unit,
		  const char *goal);

static inline double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

/* The groups: a file for each. */
void bench_calls(const char *self, const char *layer, const char *platform);
void bench_queries(const char *self, const char *layer, const char *platform);
int bench_queries_child(const char *platform, int query);
int bench_calls_child(const char *platform, int imports);
void bench_kernels(const char *self, const char *layer, const char *platform);
int bench_kernels_child(const char *platform);
int bench_instructions_child(const char *platform, const char *what);
void bench_import(struct bench *b);

#endif
