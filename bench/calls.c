/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The time of a call with the layer in front of the driver, over the time without the layer.
 * Processes with and without the layer alternate.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

#define ROUNDS 9
#define CALLS 200000
#define KINDS 5

static const char *const kinds[KINDS] = {
	"clSetKernelArg",
	"clGetMemObjectInfo",
	"clRetain+ReleaseMemObject",
	"clEnqueueReadBuffer, NULL queue",
	"clEnqueueReadBuffer, import refused",
};

/* A call of a kind; @import may be NULL. */
static void calls_once(int kind, struct bench *b, cl_mem plain, cl_mem import)
{
	cl_uint info;

	switch (kind) {
	case 0:
		clSetKernelArg(b->kernel, 0, sizeof(plain), &plain);
		break;
	case 1:
		clGetMemObjectInfo(plain, CL_MEM_REFERENCE_COUNT, sizeof(info), &info, NULL);
		break;
	case 2:
		clRetainMemObject(plain);
		clReleaseMemObject(plain);
		break;
	case 3:
		clEnqueueReadBuffer(NULL, plain, CL_TRUE, 0, sizeof(info), &info, 0, NULL, NULL);
		break;
	case 4:
		clEnqueueReadBuffer(b->queue, import, CL_TRUE, 0, sizeof(info), &info, 0, NULL,
				    NULL);
		break;
	}
}

static double time_calls(int kind, struct bench *b, cl_mem plain, cl_mem import)
{
	double best = 1e9;

	for (int round = 0; round < ROUNDS; round++) {
		double start = now_ns(), each;

		for (int i = 0; i < CALLS; i++)
			calls_once(kind, b, plain, import);
		each = (now_ns() - start) / CALLS;
		best = each < best ? each : best;
	}
	return best;
}

static cl_mem import_many(struct bench *b, int count)
{
	static unsigned char memory[1 << 20];
	cl_mem mem = NULL;
	cl_int err;

	for (int i = 0; i < count; i++)
		mem = b->import(b->context, CL_MEM_READ_WRITE, NULL, memory + 64L * i, 64, &err);
	return mem;
}

/* Prints a line "kind nanoseconds" for each kind. */
int bench_calls_child(const char *platform, int imports)
{
	struct bench b;
	cl_mem plain, import = NULL;
	cl_int err;

	bench_device_open(&b, platform);
	plain = clCreateBuffer(b.context, CL_MEM_READ_WRITE, 4096, NULL, &err);
	if (imports)
		import = import_many(&b, imports);
	for (int kind = 0; kind < KINDS; kind++)
		if (kind < 4 || import)
			printf("%d %.2f\n", kind, time_calls(kind, &b, plain, import));
	return 0;
}

static void run_child(const char *self, const char *layer, const char *platform, int imports,
		      double *best)
{
	char command[8192];
	double value;
	FILE *out;
	int kind;

	snprintf(command, sizeof(command), "OPENCL_LAYERS='%s' '%s' --platform '%s' --child %d",
		 layer, self, platform, imports);
	out = popen(command, "r");
	while (out && fscanf(out, "%d %lf", &kind, &value) == 2)
		if (!best[kind] || value < best[kind])
			best[kind] = value;
	if (!out || pclose(out)) {
		fprintf(stderr, "bench: a measuring process failed\n");
		exit(1);
	}
}

void bench_calls(const char *self, const char *layer, const char *platform)
{
	double bare[KINDS] = { 0 }, idle[KINDS] = { 0 }, many[KINDS] = { 0 };
	char name[128];

	for (int round = 0; round < 3; round++) {
		run_child(self, "", platform, 0, bare);
		run_child(self, layer, platform, 0, idle);
		run_child(self, layer, platform, 1000, many);
	}
	for (int kind = 0; kind < 4; kind++) {
		snprintf(name, sizeof(name), "%s, nothing imported", kinds[kind]);
		bench_figure("calls", name, idle[kind] - bare[kind], "ns over the driver",
			     "at most 2");
	}
	for (int kind = 0; kind < 4; kind++) {
		snprintf(name, sizeof(name), "%s, 1,000 imports", kinds[kind]);
		bench_figure("calls", name, many[kind] - bare[kind], "ns over the driver",
			     "at most 10");
	}
	bench_figure("calls", kinds[4], many[4], "ns in all", NULL);
}
