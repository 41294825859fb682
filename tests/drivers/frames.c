/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frames: video frames without the layer, as `climport bench` measures frames with the layer.
 *
 * The host writes a ring of buffers in turns, and a kernel reads the buffer that was written longest ago:
 * a buffer on a host pointer.  Beside that, the same frame written to a buffer of the device, which a
 * kernel reads then.  A line for each size: the name, the time of the write and its kernel relative to
 * the kernel on the host pointer, and the time of that kernel relative to the same kernel directly
 * behind, when the frame is in the processor's caches.
 */
#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BUFFERS = 4, ROUNDS = 41, ITEMS = 8192, LOCAL = 256 };

static const struct frame {
	const char *name;
	size_t size;
} frames[] = {
	{ "1080p", (size_t)1920 * 1080 * 2 },
	{ "4K", (size_t)3840 * 2160 * 2 },
};

/* Each item reads a block, or items read beside each other: as `climport bench` does on CPUs and GPUs. */
static const char source[] =
	"kernel void sum(global const uint4 *a, ulong n, global uint *sums)\n"
	"{ const ulong block = (n + get_global_size(0) - 1) / get_global_size(0);\n"
	"  const ulong from = get_global_id(0) * block, end = min(n, from + block);\n"
	"  uint4 s = 0;\n"
	"  for (ulong i = from; i < end; i++) s += a[i];\n"
	"  sums[get_global_id(0)] = s.x + s.y + s.z + s.w; }\n";

static cl_context context;
static cl_command_queue queue;
static cl_kernel kernel;

static void frames_check(cl_int err, const char *what)
{
	if (!err)
		return;
	fprintf(stderr, "frames: %s: error %d\n", what, err);
	exit(1);
}

static void frames_open(void)
{
	const char *text = source;
	cl_platform_id platform;
	cl_device_id device;
	cl_program program;
	cl_mem sums;
	cl_int err;

	frames_check(clGetPlatformIDs(1, &platform, NULL), "clGetPlatformIDs");
	frames_check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL),
		     "clGetDeviceIDs");
	context = clCreateContext(NULL, 1, &device, NULL, NULL, &err);
	frames_check(err, "clCreateContext");
	queue = clCreateCommandQueue(context, device, 0, &err);
	frames_check(err, "clCreateCommandQueue");
	program = clCreateProgramWithSource(context, 1, &text, NULL, &err);
	frames_check(err, "clCreateProgramWithSource");
	frames_check(clBuildProgram(program, 0, NULL, NULL, NULL, NULL), "clBuildProgram");
	kernel = clCreateKernel(program, "sum", &err);
	frames_check(err, "clCreateKernel");
	sums = clCreateBuffer(context, CL_MEM_WRITE_ONLY, ITEMS * sizeof(cl_uint), NULL, &err);
	frames_check(err, "clCreateBuffer");
	frames_check(clSetKernelArg(kernel, 2, sizeof(sums), &sums), "clSetKernelArg");
}

static double frames_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t); /* time: figures */
	return t.tv_sec + t.tv_nsec * 1e-9;
}

/* Seconds of the kernel on @mem, behind a write of @from to @mem if that is not NULL. */
static double frames_run(cl_mem mem, size_t size, const void *from)
{
	const size_t items = ITEMS, local = LOCAL;
	const cl_ulong n = size / sizeof(cl_uint4);
	double start;

	frames_check(clSetKernelArg(kernel, 0, sizeof(mem), &mem), "clSetKernelArg");
	frames_check(clSetKernelArg(kernel, 1, sizeof(n), &n), "clSetKernelArg");
	start = frames_now();
	if (from)
		frames_check(
			clEnqueueWriteBuffer(queue, mem, CL_FALSE, 0, size, from, 0, NULL, NULL),
			"clEnqueueWriteBuffer");
	frames_check(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, &local, 0, NULL, NULL),
		     "clEnqueueNDRangeKernel");
	frames_check(clFinish(queue), "clFinish");
	return frames_now() - start;
}

static int frames_compare(const void *a, const void *b)
{
	const double *left = a, *right = b;

	return (*left > *right) - (*left < *right);
}

static double frames_median(double *seconds)
{
	qsort(seconds, ROUNDS, sizeof(*seconds), frames_compare);
	return seconds[ROUNDS / 2];
}

/* The host writes the buffer that is read BUFFERS - 1 turns later. */
static unsigned char *frames_turn(unsigned char *const *memory, int turn, size_t size)
{
	memset(memory[(turn + BUFFERS - 1) % BUFFERS], turn, size);
	return memory[turn % BUFFERS];
}

static void frames_measure(const struct frame *frame)
{
	static double written[ROUNDS], read[ROUNDS], again[ROUNDS];
	unsigned char *memory[BUFFERS], *now;
	cl_mem mem[BUFFERS], target;
	cl_int err;

	for (int i = 0; i < BUFFERS; i++) {
		memory[i] = aligned_alloc(4096, (frame->size + 4095) / 4096 * 4096);
		if (!memory[i])
			frames_check(CL_OUT_OF_HOST_MEMORY, "aligned_alloc");
		memset(memory[i], i, frame->size);
		mem[i] = clCreateBuffer(context, CL_MEM_READ_ONLY | CL_MEM_USE_HOST_PTR,
					frame->size, memory[i], &err);
		frames_check(err, "clCreateBuffer");
	}
	target = clCreateBuffer(context, CL_MEM_READ_ONLY, frame->size, NULL, &err);
	frames_check(err, "clCreateBuffer");
	for (int i = 0; i < ROUNDS; i++) {
		now = frames_turn(memory, 2 * i, frame->size);
		written[i] = frames_run(target, frame->size, now);
		frames_turn(memory, 2 * i + 1, frame->size);
		read[i] = frames_run(mem[(2 * i + 1) % BUFFERS], frame->size, NULL);
		again[i] = frames_run(mem[(2 * i + 1) % BUFFERS], frame->size, NULL);
	}
	printf("%s %.2f %.2f\n", frame->name, frames_median(written) / frames_median(read),
	       frames_median(read) / frames_median(again));
	for (int i = 0; i < BUFFERS; i++)
		clReleaseMemObject(mem[i]);
	clReleaseMemObject(target);
}

int main(void)
{
	frames_open();
	for (size_t i = 0; i < sizeof(frames) / sizeof(frames[0]); i++)
		frames_measure(&frames[i]);
	return 0;
}
