/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that each import new memory, run small kernels on it, release and unmap it: by NVIDIA's
 * resource manager, and by Vulkan, as climport exported memory before.
 */
#include "bench.h"

#include <math.h>
#include <pthread.h>

#define GROUP "threads"
#define SHARE 0.03 /* of a process */
#define THREADS 8
#define KERNELS 4
#define SIZE ((size_t)64 << 10)

struct worker {
	struct bench *bench;
	pthread_t thread;
	cl_command_queue queue;
	cl_kernel touch;
	cl_mem result;
	double end;
	unsigned long kernels;
};

/* The host stores another word before each kernel, and the kernel has to read that word. */
static void bench_threads_kernel(struct worker *w, struct memory *m, uint32_t word)
{
	const size_t one = 1;
	uint32_t seen = 0;

	*(volatile uint32_t *)m->address = word;
	clSetKernelArg(w->touch, 0, sizeof(m->mem), &m->mem);
	clSetKernelArg(w->touch, 1, sizeof(w->result), &w->result);
	bench_check(clEnqueueNDRangeKernel(w->queue, w->touch, 1, NULL, &one, NULL, 0, NULL, NULL),
		    "a kernel of a thread");
	bench_check(clEnqueueReadBuffer(w->queue, w->result, CL_TRUE, 0, sizeof(seen), &seen, 0,
					NULL, NULL),
		    "clEnqueueReadBuffer");
	if (seen != word)
		bench_fatal("a kernel of a thread read wrong data");
}

static void bench_threads_cycle(struct worker *w)
{
	struct memory m;

	if (bench_memory_create(w->bench, &m, MEMORY_PLAIN, SIZE))
		bench_fatal("no memory for a thread");
	bench_check(memory_create(w->bench, &m), "clImportMemoryARM");
	for (int i = 0; i < KERNELS; i++)
		bench_threads_kernel(w, &m, (uint32_t)++w->kernels);
	memory_release(&m);
	bench_memory_destroy(&m);
}

static void *bench_threads_work(void *arg)
{
	struct worker *w = arg;

	while (bench_now() < w->end)
		bench_threads_cycle(w);
	return NULL;
}

static void bench_threads_open(struct bench *b, struct worker *w, cl_program program)
{
	cl_int err;

	*w = (struct worker){ .bench = b };
	w->queue = clCreateCommandQueueWithProperties(b->context, b->device, NULL, &err);
	bench_check(err, "clCreateCommandQueueWithProperties");
	w->touch = clCreateKernel(program, "touch", &err);
	bench_check(err, "clCreateKernel");
	w->result = clCreateBuffer(b->context, CL_MEM_READ_WRITE, 64, NULL, &err);
	bench_check(err, "clCreateBuffer");
	bench_threads_cycle(w); /* to warm up */
	w->kernels = 0;
}

static void bench_threads_close(struct worker *w)
{
	clReleaseMemObject(w->result);
	clReleaseKernel(w->touch);
	clReleaseCommandQueue(w->queue);
}

/* Kernels a second, of all threads.  The threads are an application's, and inherit as such. */
static double bench_threads_run(struct bench *b, struct worker *workers)
{
	const double start = bench_now();
	unsigned long kernels = 0;

	for (size_t i = 0; i < THREADS; i++) {
		workers[i].end = start + SHARE * b->seconds;
		if (pthread_create(&workers[i].thread, NULL, bench_threads_work, &workers[i]))
			bench_fatal("no thread: %m");
	}
	for (size_t i = 0; i < THREADS; i++) {
		pthread_join(workers[i].thread, NULL);
		kernels += workers[i].kernels;
	}
	return (double)kernels / (bench_now() - start);
}

/* An import that the exporter of this process refuses, Vulkan for one, leaves the part out. */
static void bench_threads_try(struct bench *b)
{
	struct memory m;

	if (bench_memory_create(b, &m, MEMORY_PLAIN, SIZE))
		bench_fatal("no memory for a thread");
	if (memory_create(b, &m))
		bench_leave_out(b, "imports are refused: %s", bench_memory_why(&m));
	memory_release(&m);
	bench_memory_destroy(&m);
}

void bench_threads_part(struct bench *b)
{
	struct worker workers[THREADS];
	cl_program program;

	bench_threads_try(b);
	bench_check(clGetKernelInfo(b->touch, CL_KERNEL_PROGRAM, sizeof(program), &program, NULL),
		    "clGetKernelInfo");
	for (size_t i = 0; i < THREADS; i++)
		bench_threads_open(b, &workers[i], program);
	bench_part_print(bench_threads_run(b, workers));
	for (size_t i = 0; i < THREADS; i++)
		bench_threads_close(&workers[i]);
}

/* One process.  NAN: left out. */
static double bench_threads_of(struct bench *b, const char *set, const char *name)
{
	double kernels;

	if (!bench_part_run(b, "threads", set, &kernels, 1))
		return NAN;
	bench_report(b, GROUP, name, SIZE, bench_figure_known(kernels), "1/s", NULL);
	return kernels;
}

void bench_threads(struct bench *b)
{
	double rm, vulkan;

	if (!b->is_cuda) {
		bench_skip(GROUP, "kernels of 8 threads", "this device has one exporter");
		return;
	}
	rm = bench_threads_of(b, "CLIMPORT_NVIDIA_BY=rm", "kernels of 8 threads, imports by RM");
	vulkan = bench_threads_of(b, "CLIMPORT_NVIDIA_BY=vulkan",
				  "kernels of 8 threads, imports by Vulkan");
	if (!isnan(rm) && !isnan(vulkan))
		bench_report(b, GROUP, "  RM / Vulkan", SIZE, bench_figure_known(rm / vulkan), "x",
			     ">= 3.5");
}
