/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What brackets cost: small kernels on a dma-buf, over equal kernels on a buffer of the driver; and kernels between an
 * acquire and a release (cl_khr_external_memory_dma_buf), over equal kernels on an import, each with its bracket.
 * The kernels run in a separate process, in which a preloaded library makes a memfd look like a
 * dma-buf.  A SYNC of the memfd costs a system call, as with a real dma-buf.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench.h"

#define KERNELS 1000
#define ROUNDS 15
#define ITEMS 64
#define SIZE (ITEMS * 16L)
#define KINDS 6

static const struct kind {
	const char *name, *goal;
	cl_command_queue_properties properties;
	int event;    /* an event for each kernel */
	int finish;   /* a clFinish after each kernel */
	int external; /* each kernel is acquired and released */
} kinds[KINDS] = {
	{ "1,000 kernels, in order", "at most 1.3", 0, 0, 0, 0 },
	{ "1,000 kernels, in order, an event each", NULL, 0, 1, 0, 0 },
	{ "1,000 kernels, out of order", NULL, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, 0, 0, 0 },
	{ "1,000 kernels, a clFinish each", NULL, 0, 0, 1, 0 },
	{ "1,000 kernels, each acquired and released, an event each", "at most 1.1", 0, 1, 0, 1 },
	{ "1,000 kernels, each acquired and released, a clFinish each", "at most 1.1", 0, 0, 1, 1 },
};

static clEnqueueAcquireExternalMemObjectsKHR_fn kernels_acquire;
static clEnqueueReleaseExternalMemObjectsKHR_fn kernels_release;
static cl_mem kernels_external; /* the one that is acquired; NULL: an older layer has none */

static cl_command_queue queue_create(struct bench *b, cl_command_queue_properties properties)
{
	const cl_queue_properties list[] = { CL_QUEUE_PROPERTIES, properties, 0 };

	return clCreateCommandQueueWithProperties(b->context, b->device, list, NULL);
}

static void kernels_enqueue(struct bench *b, const struct kind *kind, cl_command_queue queue,
			    cl_mem mem)
{
	const size_t items = ITEMS;
	cl_event event = NULL, *done = kind->event ? &event : NULL;

	if (mem != kernels_external) {
		clEnqueueNDRangeKernel(queue, b->kernel, 1, NULL, &items, NULL, 0, NULL, done);
	} else {
		kernels_acquire(queue, 1, &mem, 0, NULL, NULL);
		clEnqueueNDRangeKernel(queue, b->kernel, 1, NULL, &items, NULL, 0, NULL, NULL);
		kernels_release(queue, 1, &mem, 0, NULL, done);
	}
	if (event)
		clReleaseEvent(event);
	if (kind->finish)
		clFinish(queue);
}

static double time_kernels(struct bench *b, const struct kind *kind, cl_command_queue queue,
			   cl_mem mem)
{
	double start;

	clSetKernelArg(b->kernel, 0, sizeof(mem), &mem);
	start = now_ns();
	for (int i = 0; i < KERNELS; i++)
		kernels_enqueue(b, kind, queue, mem);
	clFinish(queue);
	return (now_ns() - start) / KERNELS;
}

static int kernels_create_memfd(void)
{
	int fd = memfd_create("bench", MFD_CLOEXEC);

	return fd >= 0 && !ftruncate(fd, SIZE) ? fd : -1;
}

static cl_mem import_memfd(struct bench *b)
{
	const cl_import_properties_arm dma_buf[] = { CL_IMPORT_TYPE_ARM, CL_IMPORT_TYPE_DMA_BUF_ARM,
						     0 };
	int fd = kernels_create_memfd();
	cl_int err = CL_INVALID_OPERATION;
	cl_mem mem = NULL;

	if (b->import && fd >= 0)
		mem = b->import(b->context, CL_MEM_READ_WRITE, dma_buf, &fd, SIZE, &err);
	return err ? NULL : mem;
}

static void kernels_create_external(struct bench *b)
{
	const cl_mem_properties dma_buf[] = { CL_EXTERNAL_MEMORY_HANDLE_DMA_BUF_KHR,
					      (cl_mem_properties)kernels_create_memfd(), 0 };

	kernels_acquire = (__typeof__(kernels_acquire))clGetExtensionFunctionAddressForPlatform(
		b->platform, "clEnqueueAcquireExternalMemObjectsKHR");
	kernels_release = (__typeof__(kernels_release))clGetExtensionFunctionAddressForPlatform(
		b->platform, "clEnqueueReleaseExternalMemObjectsKHR");
	if (kernels_acquire && kernels_release)
		kernels_external = clCreateBufferWithProperties(
			b->context, dma_buf, CL_MEM_READ_WRITE, SIZE, NULL, NULL);
}

/* Prints a line "kind nanoseconds nanoseconds" for each kind: what it is compared with, and itself. */
int bench_kernels_child(const char *platform)
{
	struct bench b;
	cl_mem native, dma_buf;

	bench_device_open(&b, platform);
	native = clCreateBuffer(b.context, CL_MEM_READ_WRITE, SIZE, NULL, NULL);
	dma_buf = import_memfd(&b);
	kernels_create_external(&b);
	for (int kind = 0; dma_buf && kind < KINDS; kind++) {
		const bool external = kinds[kind].external;
		cl_mem mems[] = { external ? dma_buf : native,
				  external ? kernels_external : dma_buf };
		cl_command_queue queue = queue_create(&b, kinds[kind].properties);
		double best[2] = { 1e12, 1e12 };

		for (int round = 0; mems[1] && round < 2 * ROUNDS; round++) {
			double each = time_kernels(&b, &kinds[kind], queue, mems[round & 1]);

			if (each < best[round & 1])
				best[round & 1] = each;
		}
		if (mems[1])
			printf("%d %.1f %.1f\n", kind, best[0], best[1]);
		clReleaseCommandQueue(queue);
	}
	return 0;
}

void bench_kernels(const char *self, const char *layer, const char *platform)
{
	char command[8192];
	double native, dma_buf;
	int kind, count = 0;
	FILE *out;

	snprintf(command, sizeof(command),
		 "OPENCL_LAYERS='%s' LD_PRELOAD=\"$(dirname '%s')/libbench_fakedmabuf.so\" '%s' "
		 "--kernels '%s'",
		 layer, self, self, platform);
	out = popen(command, "r");
	while (out && fscanf(out, "%d %lf %lf", &kind, &native, &dma_buf) == 3 && kind < KINDS) {
		bench_figure("kernels", kinds[kind].name, dma_buf / native,
			     kinds[kind].external ? "x import" : "x native buffer",
			     kinds[kind].goal);
		count++;
	}
	if (!out || pclose(out) || !count)
		printf("kernels: not measured: no import of a fake dma-buf on %s\n", platform);
}
