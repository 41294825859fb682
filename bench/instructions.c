/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of one kind in a loop, for callgrind.py, which counts what counted_calls() and its callees
 * run.  Kernels work on a dma-buf (fake_dmabuf.c), and without the layer on a buffer of the driver.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench.h"

#define SIZE (1 << 20)

enum counted_kind {
	IMPORT,
	IMPORT_HOST,
	IMPORT_DMA_BUF,
	HOST_PTR,
	RETAIN,
	INFO,
	FIRST,
	JOINED,
	ACQUIRED
};

static const struct {
	const char *name;
	int at_once; /* 0: all */
} counted_kinds[] = {
	[IMPORT] = { "import", 0 },
	[IMPORT_HOST] = { "import-host", 1 },
	[IMPORT_DMA_BUF] = { "import-dma-buf", 1 },
	[HOST_PTR] = { "host-ptr", 0 },
	[RETAIN] = { "retain", 0 },
	[INFO] = { "info", 0 },
	[FIRST] = { "first", 1 },
	[JOINED] = { "joined", 20 },
	[ACQUIRED] = { "acquired", 1 },
};

struct counted {
	cl_context context;
	cl_command_queue queue;
	cl_kernel kernel;
	cl_mem plain, mem; /* mem: the last that was made */
	cl_event go;	   /* holds a row back */
	__typeof__(&clImportMemoryARM) import;
	clEnqueueAcquireExternalMemObjectsKHR_fn acquire;
	clEnqueueReleaseExternalMemObjectsKHR_fn release;
	unsigned char *memory;
	int fd;
	cl_int err;
};

static const size_t one = 1;
static const cl_import_properties_arm dma_buf[] = { CL_IMPORT_TYPE_ARM, CL_IMPORT_TYPE_DMA_BUF_ARM,
						    0 };

static __attribute__((noinline)) void counted_calls(struct counted *c, enum counted_kind kind,
						    int count)
{
	size_t size;

	for (int i = 0; i < count; i++)
		switch (kind) {
		case IMPORT:
			clReleaseMemObject(c->import(c->context, CL_MEM_READ_WRITE, NULL, c->memory,
						     SIZE, &c->err));
			break;
		case IMPORT_HOST:
			c->mem = c->import(c->context, CL_MEM_READ_WRITE, NULL, c->memory, SIZE,
					   &c->err);
			break;
		case IMPORT_DMA_BUF:
			c->mem = c->import(c->context, CL_MEM_READ_WRITE, dma_buf, &c->fd, SIZE,
					   &c->err);
			break;
		case HOST_PTR:
			clReleaseMemObject(clCreateBuffer(c->context,
							  CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR,
							  SIZE, c->memory, &c->err));
			break;
		case RETAIN:
			clRetainMemObject(c->plain);
			clReleaseMemObject(c->plain);
			break;
		case INFO:
			clGetMemObjectInfo(c->plain, CL_MEM_SIZE, sizeof(size), &size, NULL);
			break;
		case FIRST:
		case JOINED:
			c->err |= clEnqueueNDRangeKernel(c->queue, c->kernel, 1, NULL, &one, NULL,
							 0, NULL, NULL);
			break;
		case ACQUIRED:
			c->err |= c->acquire(c->queue, 1, &c->mem, 0, NULL, NULL);
			c->err |= c->release(c->queue, 1, &c->mem, 0, NULL, NULL);
			break;
		}
}

/* A row that cannot end before all kernels are in it. */
static void instructions_before(struct counted *c, enum counted_kind kind)
{
	if (kind != JOINED)
		return;
	c->go = clCreateUserEvent(c->context, &c->err);
	c->err |= clEnqueueMarkerWithWaitList(c->queue, 1, &c->go, NULL);
	c->err |= clEnqueueNDRangeKernel(c->queue, c->kernel, 1, NULL, &one, NULL, 0, NULL, NULL);
}

static void instructions_after(struct counted *c, enum counted_kind kind)
{
	if (kind == IMPORT_HOST || kind == IMPORT_DMA_BUF)
		c->err |= clReleaseMemObject(c->mem);
	if (kind == JOINED) {
		c->err |= clSetUserEventStatus(c->go, CL_COMPLETE);
		c->err |= clReleaseEvent(c->go);
	}
	c->err |= clFinish(c->queue);
}

/* The stub knows the kernel by its name. */
static void instructions_prepare_kernel(struct counted *c)
{
	const char *source = "kernel void increment(global uchar *a) { a[get_global_id(0)]++; }";
	cl_program program = clCreateProgramWithSource(c->context, 1, &source, NULL, &c->err);
	cl_mem mem = c->plain;

	c->err |= clBuildProgram(program, 0, NULL, NULL, NULL, NULL);
	if (!c->err)
		c->kernel = clCreateKernel(program, "increment", &c->err);
	if (!c->err && c->import)
		mem = c->import(c->context, CL_MEM_READ_WRITE, dma_buf, &c->fd, SIZE, &c->err);
	if (!c->err)
		c->err = clSetKernelArg(c->kernel, 0, sizeof(mem), &mem);
}

static void instructions_prepare_external(struct counted *c, cl_platform_id platform)
{
	const cl_mem_properties properties[] = { CL_EXTERNAL_MEMORY_HANDLE_DMA_BUF_KHR,
						 (cl_mem_properties)c->fd, 0 };

	c->acquire = (__typeof__(c->acquire))clGetExtensionFunctionAddressForPlatform(
		platform, "clEnqueueAcquireExternalMemObjectsKHR");
	c->release = (__typeof__(c->release))clGetExtensionFunctionAddressForPlatform(
		platform, "clEnqueueReleaseExternalMemObjectsKHR");
	c->mem = clCreateBufferWithProperties(c->context, properties, CL_MEM_READ_WRITE, SIZE, NULL,
					      &c->err);
	if (!c->err && (!c->acquire || !c->release))
		c->err = CL_INVALID_OPERATION;
}

static void instructions_prepare(struct counted *c, cl_platform_id platform)
{
	cl_device_id device;

	c->err = clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL);
	if (!c->err)
		c->context = clCreateContext(NULL, 1, &device, NULL, NULL, &c->err);
	if (c->err)
		return;
	c->queue = clCreateCommandQueueWithProperties(c->context, device, NULL, &c->err);
	c->plain = clCreateBuffer(c->context, CL_MEM_READ_WRITE, SIZE, NULL, &c->err);
	c->import = (__typeof__(c->import))clGetExtensionFunctionAddressForPlatform(
		platform, "clImportMemoryARM");
	c->memory = aligned_alloc(4096, SIZE);
	c->fd = memfd_create("fake-dmabuf-bench", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (!c->memory || c->fd < 0 || ftruncate(c->fd, SIZE))
		c->err = CL_OUT_OF_HOST_MEMORY;
	else
		memset(c->memory, 1, SIZE);
}

/* @what: a kind, a colon and a count.  Prints the driver's version. */
int bench_instructions_child(const char *platform, const char *what)
{
	const char *colon = what + strcspn(what, ":");
	cl_platform_id id = bench_platform(platform);
	enum counted_kind kind = IMPORT;
	struct counted c = { 0 };
	char version[256] = "";
	int count = atoi(colon + !!*colon), at_once;

	while (kind < ACQUIRED && strncmp(what, counted_kinds[kind].name, (size_t)(colon - what)))
		kind++;
	at_once = counted_kinds[kind].at_once ? counted_kinds[kind].at_once : count;
	instructions_prepare(&c, id);
	if (!c.err && kind == ACQUIRED)
		instructions_prepare_external(&c, id);
	else if (!c.err && kind >= FIRST)
		instructions_prepare_kernel(&c);
	for (int done = 0; done < count && !c.err; done += at_once) {
		instructions_before(&c, kind);
		counted_calls(&c, kind, at_once);
		instructions_after(&c, kind);
	}
	clGetPlatformInfo(id, CL_PLATFORM_VERSION, sizeof(version), version, NULL);
	puts(version);
	if (c.err)
		fprintf(stderr, "bench: %s: error %d\n", what, c.err);
	return c.err != 0;
}
