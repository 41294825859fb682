/* SPDX-License-Identifier: Apache-2.0 */
/* The device, and the kernels that read and write memory at its full speed. */
#include "arguments.h"
#include "bench.h"
#include "kernel_cache.h"
#include "paths.h"
#include "terminal.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "icd/queries/describe.h"
#include "util/cl_names.h"

#define MAX_PLATFORMS 64
#define MAX_DEVICES 256
#define ITEMS_PER_UNIT 2048
#define POISON 0xdeadbeefu

/*
 * On a GPU neighbouring work-items read neighbouring words.  On a CPU work-items run one after the
 * other, so each work-item reads a block.  Sums are modulo 2^32, so the order does not matter.
 */
static const char source[] =
	"#ifdef BLOCKS\n"
	"#define EACH(i, n) \\\n"
	"	for (ulong block = (n + get_global_size(0) - 1) / get_global_size(0), \\\n"
	"		   i = get_global_id(0) * block, end = min(n, i + block); i < end; i++)\n"
	"#else\n"
	"#define EACH(i, n) \\\n"
	"	for (ulong i = get_global_id(0); i < n; i += get_global_size(0))\n"
	"#endif\n"
	"__kernel void sum(__global const uint4 *data, ulong n, __global uint *partial,\n"
	"		   __local uint *part)\n"
	"{\n"
	"	const uint id = get_local_id(0);\n"
	"	uint4 s = 0;\n"
	"	EACH(i, n)\n"
	"		s += data[i];\n"
	"	part[id] = s.x + s.y + s.z + s.w;\n"
	"	for (uint step = get_local_size(0) / 2; step; step /= 2) {\n"
	"		barrier(CLK_LOCAL_MEM_FENCE);\n"
	"		if (id < step)\n"
	"			part[id] += part[id + step];\n"
	"	}\n"
	"	if (!id)\n"
	"		partial[get_group_id(0)] = part[0];\n"
	"}\n"
	"__kernel void fill(__global uint4 *data, ulong n, uint seed)\n"
	"{\n"
	"	EACH(i, n)\n"
	"		data[i] = (uint4)(seed ^ (uint)i);\n"
	"}\n"
	"__kernel void copy(__global uint4 *to, __global const uint4 *from, ulong n)\n"
	"{\n"
	"	EACH(i, n)\n"
	"		to[i] = from[i];\n"
	"}\n"
	"__kernel void touch(__global const uint *data, __global uint *result)\n"
	"{\n"
	"	result[0] = data[0];\n"
	"}\n"
	"__kernel void nothing(__global uint *data)\n"
	"{\n"
	"}\n";

static void bench_cl_complain(const char *format, va_list args)
{
	struct terminal_text t;

	terminal_begin(&t, stderr, 4);
	terminal_add(&t, COLOUR_NONE, "climport: bench: ");
	terminal_add_args(&t, COLOUR_NONE, format, args);
	terminal_end(&t);
}

void bench_fatal(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	bench_cl_complain(format, args);
	va_end(args);
	exit(1);
}

void bench_leave_out(const struct bench *b, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	bench_cl_complain(format, args);
	va_end(args);
	exit(b->options->part ? BENCH_LEFT_OUT : 1);
}

void bench_check(cl_int err, const char *what)
{
	if (err)
		bench_fatal("%s: %s", what, cl_error_name(err));
}

static describe_device_fn describe_of(cl_platform_id platform)
{
	describe_device_fn describe = (describe_device_fn)clGetExtensionFunctionAddressForPlatform(
		platform, DESCRIBE_FUNCTION);

	if (!describe)
		bench_fatal("%s", why_no_layer());
	return describe;
}

static struct device_description bench_cl_describe(cl_platform_id platform, cl_device_id device,
						   cl_uint type)
{
	struct device_description d = { .why = "the device's properties cannot be read" };

	describe_of(platform)(device, type, &d);
	return d;
}

/* GPUs first, then devices that can import, then the loader's order. */
static int bench_cl_rank(cl_platform_id platform, cl_device_id device)
{
	cl_device_type type = 0;

	clGetDeviceInfo(device, CL_DEVICE_TYPE, sizeof(type), &type, NULL);
	if (!bench_cl_describe(platform, device, CL_IMPORT_TYPE_HOST_ARM).method)
		return 1;
	return type & CL_DEVICE_TYPE_GPU ? 3 : 2;
}

static void choose_of(struct bench *b, cl_platform_id platform, const char *wanted, int *best)
{
	cl_device_id devices[MAX_DEVICES];
	cl_uint count = 0;

	clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, MAX_DEVICES, devices, &count);
	for (cl_uint i = 0; i < count && i < MAX_DEVICES; i++) {
		char name[256] = "?";
		int r;

		clGetDeviceInfo(devices[i], CL_DEVICE_NAME, sizeof(name), name, NULL);
		r = option_names(wanted, i, name) ? bench_cl_rank(platform, devices[i]) : 0;
		if (r <= *best)
			continue;
		*best = r;
		b->platform = platform;
		b->device = devices[i];
		b->number = (int)i;
	}
}

void bench_choose(struct bench *b)
{
	const struct bench_options *options = b->options;
	cl_platform_id platforms[MAX_PLATFORMS];
	struct device_description host, dmabuf;
	char name[256];
	cl_uint count = 0;
	int best = 0;

	clGetPlatformIDs(MAX_PLATFORMS, platforms, &count);
	for (cl_uint i = 0; i < count && i < MAX_PLATFORMS; i++)
		if (!clGetPlatformInfo(platforms[i], CL_PLATFORM_NAME, sizeof(name), name, NULL) &&
		    option_names(options->platform, i, name))
			choose_of(b, platforms[i], options->device, &best);
	if (!best)
		bench_fatal("there is no such OpenCL platform or device; see climport info");
	host = bench_cl_describe(b->platform, b->device, CL_IMPORT_TYPE_HOST_ARM);
	if (!host.method)
		bench_fatal("this device imports no host memory: %s", host.why);
	dmabuf = bench_cl_describe(b->platform, b->device, CL_IMPORT_TYPE_DMA_BUF_ARM);
	b->way = host.method;
	b->why = host.why;
	b->way_dmabuf = dmabuf.method ? dmabuf.method : "refused";
	b->is_cuda = host.by_uuid && !clGetDeviceInfo(b->device, CL_DEVICE_UUID_KHR,
						      sizeof(b->uuid), b->uuid, NULL);
}

static cl_kernel bench_cl_kernel(cl_program program, const char *name)
{
	cl_int err;
	cl_kernel k = clCreateKernel(program, name, &err);

	bench_check(err, name);
	return k;
}

static void bench_cl_build(struct bench *b)
{
	const char *text = source;
	cl_device_type type = 0;
	cl_program program;
	const char *why;
	cl_int err;

	program = clCreateProgramWithSource(b->context, 1, &text, NULL, &err);
	bench_check(err, "clCreateProgramWithSource");
	clGetDeviceInfo(b->device, CL_DEVICE_TYPE, sizeof(type), &type, NULL);
	err = clBuildProgram(program, 1, &b->device, type & CL_DEVICE_TYPE_CPU ? "-DBLOCKS" : "",
			     NULL, NULL);
	why = err ? kernel_cache_why(b->platform) : NULL;
	if (why)
		bench_fatal("clBuildProgram: %s: %s", cl_error_name(err), why);
	bench_check(err, "clBuildProgram");
	b->sum = bench_cl_kernel(program, "sum");
	b->fill = bench_cl_kernel(program, "fill");
	b->copy = bench_cl_kernel(program, "copy");
	b->touch = bench_cl_kernel(program, "touch");
	b->nothing = bench_cl_kernel(program, "nothing");
	clReleaseProgram(program);
}

static cl_command_queue bench_cl_queue(struct bench *b, cl_command_queue_properties properties)
{
	const cl_queue_properties list[] = { CL_QUEUE_PROPERTIES, properties, 0 };
	cl_int err;
	cl_command_queue q = clCreateCommandQueueWithProperties(b->context, b->device, list, &err);

	bench_check(err, "clCreateCommandQueueWithProperties");
	return q;
}

/* A power of two, as the sum needs. */
static void size_groups(struct bench *b)
{
	size_t most = 1;
	cl_uint units = 1;

	clGetKernelWorkGroupInfo(b->sum, b->device, CL_KERNEL_WORK_GROUP_SIZE, sizeof(most), &most,
				 NULL);
	clGetDeviceInfo(b->device, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof(units), &units, NULL);
	for (b->local = 256; b->local > most;)
		b->local /= 2;
	b->items = (size_t)units * ITEMS_PER_UNIT;
}

void bench_open(struct bench *b)
{
	const cl_context_properties properties[] = { CL_CONTEXT_PLATFORM,
						     (cl_context_properties)b->platform, 0 };
	cl_int err;

	b->context = clCreateContext(properties, 1, &b->device, NULL, NULL, &err);
	bench_check(err, "clCreateContext");
	b->queue = bench_cl_queue(b, 0);
	b->timed = bench_cl_queue(b, CL_QUEUE_PROFILING_ENABLE);
	bench_cl_build(b);
	size_groups(b);
	b->partial = clCreateBuffer(b->context, CL_MEM_READ_WRITE,
				    b->items / b->local * sizeof(cl_uint), NULL, &err);
	bench_check(err, "clCreateBuffer");
	b->import = (__typeof__(b->import))clGetExtensionFunctionAddressForPlatform(
		b->platform, "clImportMemoryARM");
	if (!b->import)
		bench_fatal("the platform has no clImportMemoryARM");
}

void bench_close(struct bench *b)
{
	cl_kernel kernels[] = { b->sum, b->fill, b->copy, b->touch, b->nothing };

	for (size_t i = 0; i < sizeof(kernels) / sizeof(kernels[0]); i++)
		clReleaseKernel(kernels[i]);
	clReleaseMemObject(b->partial);
	clReleaseCommandQueue(b->timed);
	clReleaseCommandQueue(b->queue);
	clReleaseContext(b->context);
}

size_t bench_items(const struct bench *b, size_t size)
{
	size_t items = (size / sizeof(cl_uint4) + b->local - 1) / b->local * b->local;

	return items < b->items ? items : b->items;
}

void bench_poison(struct bench *b)
{
	const cl_uint poison = POISON;

	bench_check(clEnqueueFillBuffer(b->queue, b->partial, &poison, sizeof(poison), 0,
					b->items / b->local * sizeof(poison), 0, NULL, NULL),
		    "clEnqueueFillBuffer");
	bench_check(clFinish(b->queue), "clFinish");
}

void bench_sum_start(struct bench *b, cl_mem mem, size_t size, cl_command_queue q, cl_event *event)
{
	const cl_ulong n = size / sizeof(cl_uint4);
	const size_t items = bench_items(b, size);

	clSetKernelArg(b->sum, 0, sizeof(mem), &mem);
	clSetKernelArg(b->sum, 1, sizeof(n), &n);
	clSetKernelArg(b->sum, 2, sizeof(b->partial), &b->partial);
	clSetKernelArg(b->sum, 3, b->local * sizeof(cl_uint), NULL);
	bench_check(clEnqueueNDRangeKernel(q, b->sum, 1, NULL, &items, &b->local, 0, NULL, event),
		    "the kernel that reads");
}

uint32_t bench_sum_result(struct bench *b, size_t size)
{
	static uint32_t partial[1 << 16];
	size_t groups = bench_items(b, size) / b->local;
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
