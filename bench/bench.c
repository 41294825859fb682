/* SPDX-License-Identifier: Apache-2.0 */
#include "bench.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static FILE *json;
static int reported;

void bench_figure(const char *group, const char *name, double value, const char *unit,
		  const char *goal)
{
	printf("%-10s %-48s %8.2f %-20s %s\n", group, name, value, unit, goal ? goal : "");
	fflush(stdout);
	if (json)
		fprintf(json,
			"%s\n\t{ \"group\": \"%s\", \"name\": \"%s\", \"value\": %.4f, \"unit\": "
			"\"%s\" }",
			reported++ ? "," : "", group, name, value, unit);
}

static void bench_fail(const char *what, cl_int err)
{
	fprintf(stderr, "bench: %s: error %d\n", what, err);
	exit(1);
}

cl_platform_id bench_platform(const char *name)
{
	cl_platform_id platforms[64];
	cl_uint count = 0;
	char text[256];

	clGetPlatformIDs(64, platforms, &count);
	for (cl_uint i = 0; i < count; i++)
		if (!clGetPlatformInfo(platforms[i], CL_PLATFORM_NAME, sizeof(text), text, NULL) &&
		    strstr(text, name))
			return platforms[i];
	bench_fail("no such platform", CL_INVALID_PLATFORM);
	return NULL;
}

static cl_kernel bench_build_kernel(struct bench *b)
{
	const char *source =
		"__kernel void add(__global uint4 *data) { data[get_global_id(0)] += 1; }";
	cl_program program;
	cl_kernel kernel;
	cl_int err;

	program = clCreateProgramWithSource(b->context, 1, &source, NULL, &err);
	if (!err)
		err = clBuildProgram(program, 1, &b->device, "", NULL, NULL);
	if (err)
		bench_fail("clBuildProgram", err);
	kernel = clCreateKernel(program, "add", &err);
	if (err)
		bench_fail("clCreateKernel", err);
	clReleaseProgram(program);
	return kernel;
}

void bench_device_open(struct bench *b, const char *platform)
{
	cl_int err;

	b->platform = bench_platform(platform);
	err = clGetDeviceIDs(b->platform, CL_DEVICE_TYPE_ALL, 1, &b->device, NULL);
	if (err)
		bench_fail("clGetDeviceIDs", err);
	b->context = clCreateContext(NULL, 1, &b->device, NULL, NULL, &err);
	if (err)
		bench_fail("clCreateContext", err);
	b->queue = clCreateCommandQueueWithProperties(b->context, b->device, NULL, &err);
	if (err)
		bench_fail("clCreateCommandQueueWithProperties", err);
	b->kernel = bench_build_kernel(b);
	b->import = (__typeof__(b->import))clGetExtensionFunctionAddressForPlatform(
		b->platform, "clImportMemoryARM");
}

void bench_device_close(struct bench *b)
{
	clReleaseKernel(b->kernel);
	clReleaseCommandQueue(b->queue);
	clReleaseContext(b->context);
}

static void bench_print_device(const struct bench *b)
{
	char platform[256], device[256];

	clGetPlatformInfo(b->platform, CL_PLATFORM_VERSION, sizeof(platform), platform, NULL);
	clGetDeviceInfo(b->device, CL_DEVICE_NAME, sizeof(device), device, NULL);
	printf("%s\n%s\n\n%-10s %-48s %8s %-20s %s\n", platform, device, "group", "what", "", "",
	       "goal");
	if (json)
		fprintf(json, "{ \"platform\": \"%s\", \"device\": \"%s\", \"figures\": [",
			platform, device);
}

int main(int argc, char **argv)
{
	const char *platform = "Portable Computing Language", *layer = getenv("OPENCL_LAYERS");
	const char *only = "";
	char self[PATH_MAX];
	struct bench b;

	if (!realpath("/proc/self/exe", self))
		bench_fail("/proc/self/exe cannot be read", 0);
	for (int i = 1; i + 1 < argc; i += 2) {
		if (!strcmp(argv[i], "--platform"))
			platform = argv[i + 1];
		else if (!strcmp(argv[i], "--json"))
			json = fopen(argv[i + 1], "w");
		else if (!strcmp(argv[i], "--child"))
			return bench_calls_child(platform, atoi(argv[i + 1]));
		else if (!strcmp(argv[i], "--query"))
			return bench_queries_child(platform, atoi(argv[i + 1]));
		else if (!strcmp(argv[i], "--only"))
			only = argv[i + 1];
		else if (!strcmp(argv[i], "--kernels"))
			return bench_kernels_child(argv[i + 1]);
		else if (!strcmp(argv[i], "--instructions"))
			return bench_instructions_child(platform, argv[i + 1]);
	}
	bench_device_open(&b, platform);
	if (!b.import || !layer) {
		fprintf(stderr, "bench: the layer is not loaded; start this with bench/run\n");
		return 1;
	}
	bench_print_device(&b);
	if (!*only || !strcmp(only, "query"))
		bench_queries(self, layer, platform);
	if (!*only || !strcmp(only, "kernels"))
		bench_kernels(self, layer, platform);
	if (!*only)
		bench_calls(self, layer, platform);
	if (!*only || !strcmp(only, "import"))
		bench_import(&b);
	bench_device_close(&b);
	if (json && (fprintf(json, "\n] }\n") < 0 || fclose(json)))
		bench_fail("the JSON file cannot be written", 0);
	return 0;
}
