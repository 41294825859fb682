/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kernel that reads and writes every byte of a buffer of the driver, and of imported memory.
 * For a fair comparison neither memory has huge pages, which depend on the address, and both
 * memories are touched before.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "bench.h"

#define ROUNDS 25

static void bandwidth_touch(void *p, size_t size)
{
	madvise((void *)(((size_t)p + 4095) & ~(size_t)4095), size - 4096, MADV_NOHUGEPAGE);
	memset(p, 1, size);
}

static void *map_memory(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED) {
		fprintf(stderr, "bench: no memory for %zu bytes: %m\n", size);
		exit(1);
	}
	bandwidth_touch(p, size);
	return p;
}

static double bandwidth_run(struct bench *b, cl_mem mem, size_t size)
{
	size_t global = size / 16, local = 256;
	double start = now_ns();

	clSetKernelArg(b->kernel, 0, sizeof(mem), &mem);
	if (clEnqueueNDRangeKernel(b->queue, b->kernel, 1, NULL, &global, &local, 0, NULL, NULL) ||
	    clFinish(b->queue)) {
		fprintf(stderr, "bench: the kernel failed\n");
		exit(1);
	}
	return now_ns() - start;
}

/* PoCL's own memory is malloc'ed, and not touched before the map. */
static cl_mem create_native(struct bench *b, size_t size)
{
	cl_int err;
	cl_mem mem = clCreateBuffer(b->context, CL_MEM_READ_WRITE, size, NULL, &err);
	void *p = clEnqueueMapBuffer(b->queue, mem, CL_TRUE, CL_MAP_WRITE, 0, size, 0, NULL, NULL,
				     &err);

	bandwidth_touch(p, size);
	clEnqueueUnmapMemObject(b->queue, mem, p, 0, NULL, NULL);
	clFinish(b->queue);
	return mem;
}

static void bandwidth_measure(struct bench *b, size_t size)
{
	double native = 1e18, imported = 1e18, t;
	cl_int err;
	cl_mem a = create_native(b, size);
	cl_mem c = b->import(b->context, CL_MEM_READ_WRITE, NULL, map_memory(size), size, &err);
	char name[64];

	if (err) {
		fprintf(stderr, "bench: the import failed with %d\n", err);
		exit(1);
	}
	for (int round = 0; round < ROUNDS; round++) {
		t = bandwidth_run(b, a, size);
		native = t < native ? t : native;
		t = bandwidth_run(b, c, size);
		imported = t < imported ? t : imported;
	}
	snprintf(name, sizeof(name), "kernel on an import, %zu MiB", size >> 20);
	bench_figure("bandwidth", name, native / imported, "x a native buffer", "at least 0.98");
	clReleaseMemObject(a);
	clReleaseMemObject(c);
}

void bench_bandwidth_layer(struct bench *b)
{
	bandwidth_measure(b, (size_t)16 << 20);
	bandwidth_measure(b, (size_t)64 << 20);
	bandwidth_measure(b, (size_t)256 << 20);
}
