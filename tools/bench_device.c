/* SPDX-License-Identifier: Apache-2.0 */
/* The device, and the kernel that reads memory at its full speed. */
#include "bench.h"

#include <stdarg.h>
#include <stdlib.h>

#include "arguments.h"
#include "terminal.h"
#include "util/cl_names.h"

#define MAX_PLATFORMS 64
#define MAX_DEVICES 256
#define ITEMS_PER_UNIT 2048

/*
 * On a GPU neighbouring work-items read neighbouring words.  On a CPU work-items run one after the
 * other, so each work-item reads a block.  Sums are modulo 2^32, so the order does not matter.
 */
static const char source[] =
	"__kernel void sum(__global const uint4 *data, ulong n, __global uint *partial,\n"
	"		   __local uint *part)\n"
	"{\n"
	"	const uint id = get_local_id(0);\n"
	"	uint4 s = 0;\n"
	"#ifdef BLOCKS\n"
	"	const ulong block = (n + get_global_size(0) - 1) / get_global_size(0);\n"
	"	const ulong from = get_global_id(0) * block, end = min(n, from + block);\n"
	"	for (ulong i = from; i < end; i++)\n"
	"#else\n"
	"	for (ulong i = get_global_id(0); i < n; i += get_global_size(0))\n"
	"#endif\n"
	"		s += data[i];\n"
	"	part[id] = s.x + s.y + s.z + s.w;\n"
	"	for (uint step = get_local_size(0) / 2; step; step /= 2) {\n"
	"		barrier(CLK_LOCAL_MEM_FENCE);\n"
	"		if (id < step)\n"
	"			part[id] += part[id + step];\n"
	"	}\n"
	"	if (!id)\n"
	"		partial[get_group_id(0)] = part[0];\n"
	"}\n";

static const char *bench_on; /* the device's name */

void bench_fatal(const char *format, ...)
{
	struct terminal_text t;
	va_list args;

	terminal_begin(&t, stderr, 4);
	terminal_add(&t, COLOUR_NONE, "climport: bench: %s%s", bench_on ? bench_on : "",
		     bench_on ? ": " : "");
	va_start(args, format);
	terminal_add_args(&t, COLOUR_NONE, format, args);
	va_end(args);
	terminal_end(&t);
	exit(1);
}

void bench_check(cl_int err, const char *what)
{
	if (err)
		bench_fatal("%s: %s", what, cl_error_name(err));
}

static struct climport_import_info bench_import_info(cl_device_id device, cl_uint type)
{
	struct climport_import_info info = { .why = "the device's properties cannot be read" };

	climport_get_import_info(device, type, &info, sizeof(info));
	return info;
}

/* GPUs that can import first, then other devices that can, then the loader's order. */
static int bench_choose_rank(cl_device_id device)
{
	cl_device_type type = 0;

	clGetDeviceInfo(device, CL_DEVICE_TYPE, sizeof(type), &type, NULL);
	if (!bench_import_info(device, CL_IMPORT_TYPE_HOST_ARM).method)
		return 1;
	return type & CL_DEVICE_TYPE_GPU ? 3 : 2;
}

static void bench_choose_of(struct bench *b, cl_platform_id platform, int *best)
{
	cl_device_id devices[MAX_DEVICES];
	cl_uint count = 0;

	clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, MAX_DEVICES, devices, &count);
	for (cl_uint i = 0; i < count && i < MAX_DEVICES; i++) {
		char name[256] = "?";
		int rank;

		clGetDeviceInfo(devices[i], CL_DEVICE_NAME, sizeof(name), name, NULL);
		if (!option_names(b->options.device, i, name))
			continue;
		rank = bench_choose_rank(devices[i]);
		if (rank <= *best)
			continue;
		*best = rank;
		b->platform = platform;
		b->device = devices[i];
	}
}

void bench_choose(struct bench *b)
{
	const char *platform = b->options.platform, *device = b->options.device;
	cl_platform_id platforms[MAX_PLATFORMS];
	cl_uint count = 0;
	char name[256];
	int best = 0;

	clGetPlatformIDs(MAX_PLATFORMS, platforms, &count);
	for (cl_uint i = 0; i < count && i < MAX_PLATFORMS; i++)
		if (!clGetPlatformInfo(platforms[i], CL_PLATFORM_NAME, sizeof(name), name, NULL) &&
		    option_names(platform, i, name))
			bench_choose_of(b, platforms[i], &best);
	if (!best && !platform && !device)
		bench_fatal("there is no OpenCL device; see climport info");
	if (!best)
		bench_fatal("no device matches%s%s%s%s; see climport info",
			    platform ? " --platform " : "", platform ? platform : "",
			    device ? " --device " : "", device ? device : "");
	b->host = bench_import_info(b->device, CL_IMPORT_TYPE_HOST_ARM);
	b->dma_buf = bench_import_info(b->device, CL_IMPORT_TYPE_DMA_BUF_ARM);
	if (!b->host.method)
		bench_fatal("this device imports no host memory: %s", b->host.why);
	clGetPlatformInfo(b->platform, CL_PLATFORM_NAME, sizeof(b->platform_name), b->platform_name,
			  NULL);
	clGetDeviceInfo(b->device, CL_DEVICE_NAME, sizeof(b->device_name), b->device_name, NULL);
	bench_on = b->device_name;
	clGetDeviceInfo(b->device, CL_DRIVER_VERSION, sizeof(b->driver), b->driver, NULL);
}

static void bench_build(struct bench *b)
{
	const char *text = source;
	cl_device_type type = 0;
	cl_program program;
	cl_int err;

	program = clCreateProgramWithSource(b->context, 1, &text, NULL, &err);
	bench_check(err, "clCreateProgramWithSource");
	clGetDeviceInfo(b->device, CL_DEVICE_TYPE, sizeof(type), &type, NULL);
	err = clBuildProgram(program, 1, &b->device, type & CL_DEVICE_TYPE_CPU ? "-DBLOCKS" : "",
			     NULL, NULL);
	bench_check(err, "clBuildProgram");
	b->kernel = clCreateKernel(program, "sum", &err);
	bench_check(err, "clCreateKernel");
	clReleaseProgram(program);
}

/* A power of two, as the sum needs. */
static void bench_size_groups(struct bench *b)
{
	size_t most = 1;
	cl_uint units = 1;

	clGetKernelWorkGroupInfo(b->kernel, b->device, CL_KERNEL_WORK_GROUP_SIZE, sizeof(most),
				 &most, NULL);
	clGetDeviceInfo(b->device, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof(units), &units, NULL);
	for (b->local = 256; b->local > most;)
		b->local /= 2;
	b->items = (size_t)units * ITEMS_PER_UNIT;
}

void bench_open(struct bench *b)
{
	cl_int err;

	b->context = clCreateContext(NULL, 1, &b->device, NULL, NULL, &err);
	bench_check(err, "clCreateContext");
	b->queue = clCreateCommandQueueWithProperties(b->context, b->device, NULL, &err);
	bench_check(err, "clCreateCommandQueueWithProperties");
	bench_build(b);
	bench_size_groups(b);
	b->partial = clCreateBuffer(b->context, CL_MEM_READ_WRITE,
				    b->items / b->local * sizeof(cl_uint), NULL, &err);
	bench_check(err, "clCreateBuffer");
	/* PoCL compiles a kernel when it is first started: a quarter of a minute under emulation. */
	bench_sum_start(b, b->partial, sizeof(cl_uint4));
	bench_sum_result(b, sizeof(cl_uint4));
}

void bench_close(struct bench *b)
{
	clReleaseMemObject(b->partial);
	clReleaseKernel(b->kernel);
	clReleaseCommandQueue(b->queue);
	clReleaseContext(b->context);
}

void bench_poison(struct bench *b)
{
	const cl_uint poison = 0xdeadbeef;

	bench_check(clEnqueueFillBuffer(b->queue, b->partial, &poison, sizeof(poison), 0,
					b->items / b->local * sizeof(poison), 0, NULL, NULL),
		    "clEnqueueFillBuffer");
	bench_check(clFinish(b->queue), "clFinish");
}

static size_t bench_groups(const struct bench *b, size_t size)
{
	const size_t groups = (size / sizeof(cl_uint4) + b->local - 1) / b->local;

	return groups < b->items / b->local ? groups : b->items / b->local;
}

void bench_sum_start(struct bench *b, cl_mem mem, size_t size)
{
	const cl_ulong n = size / sizeof(cl_uint4);
	const size_t items = bench_groups(b, size) * b->local;

	clSetKernelArg(b->kernel, 0, sizeof(mem), &mem);
	clSetKernelArg(b->kernel, 1, sizeof(n), &n);
	clSetKernelArg(b->kernel, 2, sizeof(b->partial), &b->partial);
	clSetKernelArg(b->kernel, 3, b->local * sizeof(cl_uint), NULL);
	bench_check(clEnqueueNDRangeKernel(b->queue, b->kernel, 1, NULL, &items, &b->local, 0, NULL,
					   NULL),
		    "the kernel that reads");
}

uint32_t bench_sum_result(struct bench *b, size_t size)
{
	static uint32_t partial[1 << 16];
	const size_t groups = bench_groups(b, size);
	uint32_t sum = 0;

	if (groups > sizeof(partial) / sizeof(partial[0]))
		bench_fatal("the device has too many compute units");
	bench_check(clEnqueueReadBuffer(b->queue, b->partial, CL_TRUE, 0,
					groups * sizeof(partial[0]), partial, 0, NULL, NULL),
		    "clEnqueueReadBuffer");
	for (size_t i = 0; i < groups; i++)
		sum += partial[i];
	return sum;
}
