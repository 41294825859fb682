/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames a second of a program for integrated GPUs: gpu_stream [--platform NAME] [--seconds N]
 *
 * The program knows CL_MEM_USE_HOST_PTR, and no extension.  A frame is written into a buffer's memory
 * under a map, a kernel reads the frame, and the result is mapped.  tests/gpu/run starts the program
 * with and without CLIMPORT_HOST_PTR=1, and compares.  A line for each case: its name, frames a second,
 * and the sum of all results, which has to be equal.
 *
 * In some cases a kernel reads each byte many times, which is what loses in place.  The time in which the
 * CPU draws a frame does not count: a camera writes frames without the CPU.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include <CL/cl.h>

enum { RING = 4, WARM = 3, ITEMS = 16384, FRAMES = 24 };

/* A frame is read @passes times; a case with new buffers creates and releases them for each frame. */
static const struct stream_case {
	const char *name;
	size_t size;
	cl_uint passes;
	int is_new;
} stream_cases[] = {
	{ "1080p, each byte read once", (size_t)1920 * 1080 * 2, 1, 0 },
	{ "4K, each byte read once", (size_t)3840 * 2160 * 2, 1, 0 },
	{ "1080p, each byte read 4 times", (size_t)1920 * 1080 * 2, 4, 0 },
	{ "1080p, each byte read 64 times", (size_t)1920 * 1080 * 2, 64, 0 },
	{ "1080p, once, new buffers for each frame", (size_t)1920 * 1080 * 2, 1, 1 },
	{ "16 KiB, once, new buffers for each frame", (size_t)16 << 10, 1, 1 },
};

static const char stream_source[] =
	"kernel void sum(global const uint *frame, global uint *sums, uint words, uint passes)\n"
	"{\n"
	"	uint total = 0;\n"
	"	for (uint pass = 0; pass < passes; pass++)\n"
	"		for (uint i = get_global_id(0); i < words; i += get_global_size(0))\n"
	"			total = total * 3 + frame[(i + pass * 977) % words];\n"
	"	sums[get_global_id(0)] = total;\n"
	"}\n";

static cl_context context;
static cl_command_queue queue;
static cl_kernel kernel;

static void stream_check(cl_int err, const char *what)
{
	if (!err)
		return;
	fprintf(stderr, "%s: error %d\n", what, err);
	exit(1);
}

static double stream_now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static cl_device_id stream_find_device(const char *name)
{
	cl_platform_id platforms[16];
	cl_uint count = 0;
	cl_device_id device;

	clGetPlatformIDs(16, platforms, &count);
	for (cl_uint i = 0; i < count && i < 16; i++) {
		char text[256] = "";

		clGetPlatformInfo(platforms[i], CL_PLATFORM_NAME, sizeof(text), text, NULL);
		if (strstr(text, name) &&
		    !clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_ALL, 1, &device, NULL))
			return device;
	}
	fprintf(stderr, "no platform has '%s' in its name\n", name);
	exit(1);
}

static void stream_open(cl_device_id device)
{
	const char *text = stream_source;
	cl_program program;
	cl_int err;

	context = clCreateContext(NULL, 1, &device, NULL, NULL, &err);
	stream_check(err, "clCreateContext");
	queue = clCreateCommandQueue(context, device, 0, &err);
	stream_check(err, "clCreateCommandQueue");
	program = clCreateProgramWithSource(context, 1, &text, NULL, &err);
	stream_check(err, "clCreateProgramWithSource");
	stream_check(clBuildProgram(program, 1, &device, "", NULL, NULL), "clBuildProgram");
	kernel = clCreateKernel(program, "sum", &err);
	stream_check(err, "clCreateKernel");
	clReleaseProgram(program);
}

/* Memory of the program, and the buffer on the memory. */
struct stream_buffer {
	void *memory;
	size_t size;
	cl_mem_flags flags;
	cl_mem mem;
};

static void stream_create(struct stream_buffer *b)
{
	cl_int err;

	b->mem = clCreateBuffer(context, b->flags | CL_MEM_USE_HOST_PTR, b->size, b->memory, &err);
	stream_check(err, "clCreateBuffer");
}

static void stream_allocate(struct stream_buffer *b, cl_mem_flags flags, size_t size)
{
	b->size = size;
	b->flags = flags;
	b->memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (b->memory == MAP_FAILED)
		stream_check(CL_OUT_OF_HOST_MEMORY, "mmap");
	stream_create(b);
}

static void stream_free(struct stream_buffer *b)
{
	clReleaseMemObject(b->mem);
	clFinish(queue);
	munmap(b->memory, b->size);
}

static uint32_t *stream_map(const struct stream_buffer *b, cl_map_flags flags)
{
	cl_int err;
	void *p =
		clEnqueueMapBuffer(queue, b->mem, CL_TRUE, flags, 0, b->size, 0, NULL, NULL, &err);

	stream_check(err, "clEnqueueMapBuffer");
	return p;
}

static void stream_unmap(const struct stream_buffer *b, void *p)
{
	stream_check(clEnqueueUnmapMemObject(queue, b->mem, p, 0, NULL, NULL),
		     "clEnqueueUnmapMemObject");
}

/* The camera: every word differs between frames. */
static void stream_write_frame(uint32_t *frame, size_t words, uint32_t number)
{
	for (size_t i = 0; i < words; i++)
		frame[i] = (uint32_t)i * 2654435761u + number;
}

static void stream_run_kernel(const struct stream_buffer *frame, const struct stream_buffer *sums,
			      cl_uint passes)
{
	const cl_uint words = (cl_uint)(frame->size / 4);
	const size_t items = ITEMS;

	clSetKernelArg(kernel, 0, sizeof(cl_mem), &frame->mem);
	clSetKernelArg(kernel, 1, sizeof(cl_mem), &sums->mem);
	clSetKernelArg(kernel, 2, sizeof(words), &words);
	clSetKernelArg(kernel, 3, sizeof(passes), &passes);
	stream_check(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL),
		     "clEnqueueNDRangeKernel");
}

static uint32_t stream_take_result(const struct stream_buffer *sums)
{
	uint32_t *p = stream_map(sums, CL_MAP_READ), total = 0;

	for (size_t i = 0; i < ITEMS; i++)
		total = total * 31 + p[i];
	stream_unmap(sums, p);
	return total;
}

/* @drawing: the time that the CPU has drawn is added. */
static uint32_t stream_process(const struct stream_case *row, struct stream_buffer *frame,
			       struct stream_buffer *sums, uint32_t number, double *drawing)
{
	uint32_t *p, result;
	double begin;

	if (row->is_new) {
		stream_create(frame);
		stream_create(sums);
	}
	p = stream_map(frame, CL_MAP_WRITE_INVALIDATE_REGION);
	begin = stream_now();
	stream_write_frame(p, frame->size / 4, number);
	*drawing += stream_now() - begin;
	stream_unmap(frame, p);
	stream_run_kernel(frame, sums, row->passes);
	result = stream_take_result(sums);
	if (row->is_new) {
		clReleaseMemObject(frame->mem);
		clReleaseMemObject(sums->mem);
	}
	return result;
}

/* For @seconds at least, and for FRAMES frames, whose results are summed. */
static void stream_measure(const struct stream_case *row, double seconds)
{
	struct stream_buffer frames[RING], sums;
	uint32_t total = 0, number = 0;
	double begin = 0, drawing = 0, counted = 0;

	for (int i = 0; i < RING; i++)
		stream_allocate(&frames[i], CL_MEM_READ_ONLY, row->size);
	stream_allocate(&sums, CL_MEM_WRITE_ONLY, ITEMS * sizeof(uint32_t));
	for (int i = 0; i < RING && row->is_new; i++)
		clReleaseMemObject(frames[i].mem);
	if (row->is_new)
		clReleaseMemObject(sums.mem);
	do {
		uint32_t result =
			stream_process(row, &frames[number % RING], &sums, number, &drawing);

		if (number < FRAMES)
			total = total * 17 + result;
		if (++number == WARM) {
			begin = stream_now();
			drawing = 0;
		}
		counted = stream_now() - begin - drawing;
	} while (number < FRAMES || counted < seconds);
	printf("%s: %.1f frames a second, sum %08x\n", row->name, (number - WARM) / counted, total);
	clFinish(queue);
	for (int i = 0; i < RING && row->is_new; i++)
		stream_create(&frames[i]);
	if (row->is_new)
		stream_create(&sums);
	for (int i = 0; i < RING; i++)
		stream_free(&frames[i]);
	stream_free(&sums);
}

int main(int argc, char **argv)
{
	const char *platform = "";
	double seconds = 1;

	for (int i = 1; i + 1 < argc; i += 2) {
		if (!strcmp(argv[i], "--platform"))
			platform = argv[i + 1];
		else if (!strcmp(argv[i], "--seconds"))
			seconds = atof(argv[i + 1]);
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	stream_open(stream_find_device(platform));
	for (size_t i = 0; i < sizeof(stream_cases) / sizeof(stream_cases[0]); i++)
		stream_measure(&stream_cases[i], seconds);
	clReleaseKernel(kernel);
	clReleaseCommandQueue(queue);
	clReleaseContext(context);
	return 0;
}
