/* SPDX-License-Identifier: Apache-2.0 */
#include "selftest.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "import/log.h"
#include "layer.h"

#define PAGE 4096
#define ROUNDS 3 /* the first use is special in drivers that copy lazily */

static const char source[] =
	"__kernel void climport_selftest(volatile __global uchar *a, volatile "
	"__global uchar *b, uint value)\n"
	"{\n"
	"	a[0] = value;\n"
	"	a[1] = b[0];\n"
	"	a[2] = b[3];\n"
	"}\n"
	"__kernel void climport_selftest_write(volatile __global uchar *a, uint value)\n"
	"{\n"
	"	a[0] = value;\n"
	"}\n"
	"__kernel void climport_selftest_read(volatile __global uchar *b)\n"
	"{\n"
	"	b[1] = b[0];\n"
	"	b[2] = b[3];\n"
	"}\n";

/* The strictest alignment first: what passes only there is refused elsewhere. */
static const struct {
	size_t align, offset, size;
} classes[] = {
	{ PAGE, 0, PAGE },
	{ 64, 64, 192 },
	{ 1, 129, 77 },
};

#define CLASSES (sizeof(classes) / sizeof(classes[0]))

/*
 * Memory that objects are made over.  They hold it until the driver has
 * destroyed them: after an error a command may still be running.
 */
struct scratch {
	atomic_uint refs;
	unsigned char *bytes; /* two pages */
};

static struct scratch *scratch_create(void)
{
	struct scratch *s = malloc(sizeof(*s));

	if (!s)
		return NULL;
	s->refs = 1;
	s->bytes = aligned_alloc(PAGE, 2 * PAGE);
	if (s->bytes)
		return s;
	free(s);
	return NULL;
}

static void scratch_put(struct scratch *s)
{
	if (!s || atomic_fetch_sub(&s->refs, 1) != 1)
		return;
	free(s->bytes);
	free(s);
}

static void CL_CALLBACK scratch_unused(cl_mem mem, void *scratch)
{
	(void)mem;
	scratch_put(scratch);
}

/* @mem is over the scratch memory; it is released if it cannot be watched. */
static cl_mem scratch_watch(struct scratch *s, cl_mem mem, cl_int *err)
{
	if (!mem)
		return NULL;
	atomic_fetch_add(&s->refs, 1);
	*err = next.clSetMemObjectDestructorCallback(mem, scratch_unused, s);
	if (!*err)
		return mem;
	scratch_put(s);
	next.clReleaseMemObject(mem);
	return NULL;
}

struct selftest {
	cl_device_id device;
	cl_context context;
	cl_command_queue queue;
	cl_program program;
	cl_kernel kernel, write, read;
	struct scratch *scratch;
};

/* Errors of the moment say nothing about the device. */
bool selftest_is_passing(cl_int err)
{
	return err == CL_OUT_OF_HOST_MEMORY || err == CL_OUT_OF_RESOURCES ||
	       err == CL_MEM_OBJECT_ALLOCATION_FAILURE;
}

static void teardown(struct selftest *t)
{
	if (t->kernel)
		next.clReleaseKernel(t->kernel);
	if (t->write)
		next.clReleaseKernel(t->write);
	if (t->read)
		next.clReleaseKernel(t->read);
	if (t->program)
		next.clReleaseProgram(t->program);
	if (t->queue)
		next.clReleaseCommandQueue(t->queue);
	if (t->context)
		next.clReleaseContext(t->context);
	scratch_put(t->scratch);
}

static cl_int build(struct selftest *t)
{
	const char *text = source;
	cl_int err;

	t->program = next.clCreateProgramWithSource(t->context, 1, &text, NULL, &err);
	if (!err)
		err = next.clBuildProgram(t->program, 1, &t->device, "", NULL, NULL);
	if (!err)
		t->kernel = next.clCreateKernel(t->program, "climport_selftest", &err);
	if (!err)
		t->write = next.clCreateKernel(t->program, "climport_selftest_write", &err);
	if (!err)
		t->read = next.clCreateKernel(t->program, "climport_selftest_read", &err);
	return err;
}

static cl_int setup(struct selftest *t, cl_device_id device)
{
	cl_int err;

	memset(t, 0, sizeof(*t));
	t->device = device;
	t->scratch = scratch_create();
	if (!t->scratch)
		return CL_OUT_OF_HOST_MEMORY;
	t->context = next.clCreateContext(NULL, 1, &device, NULL, NULL, &err);
	if (!err)
		t->queue = next.clCreateCommandQueue(t->context, device, 0, &err);
	if (!err)
		err = build(t);
	return err;
}

static cl_int run_kernel(struct selftest *t, cl_mem a, cl_mem b, cl_uint value)
{
	const size_t one = 1;
	cl_int err = next.clSetKernelArg(t->kernel, 0, sizeof(a), &a);

	if (!err)
		err = next.clSetKernelArg(t->kernel, 1, sizeof(b), &b);
	if (!err)
		err = next.clSetKernelArg(t->kernel, 2, sizeof(value), &value);
	if (!err)
		err = next.clEnqueueNDRangeKernel(t->queue, t->kernel, 1, NULL, &one, &one, 0, NULL,
						  NULL);
	return err ? err : next.clFinish(t->queue);
}

/* The same by two kernels, one after the other. */
static cl_int run_kernels(struct selftest *t, cl_mem a, cl_mem b, cl_uint value)
{
	const size_t one = 1;
	cl_int err = next.clSetKernelArg(t->write, 0, sizeof(a), &a);

	if (!err)
		err = next.clSetKernelArg(t->write, 1, sizeof(value), &value);
	if (!err)
		err = next.clSetKernelArg(t->read, 0, sizeof(b), &b);
	if (!err)
		err = next.clEnqueueNDRangeKernel(t->queue, t->write, 1, NULL, &one, &one, 0, NULL,
						  NULL);
	if (!err)
		err = next.clEnqueueNDRangeKernel(t->queue, t->read, 1, NULL, &one, &one, 0, NULL,
						  NULL);
	return err ? err : next.clFinish(t->queue);
}

/* One round: 1 passed, 0 failed, or an error of OpenCL. */
static cl_int run_round(struct selftest *t, const struct selftest_memory *memory, cl_mem a,
			cl_mem b, unsigned char seed)
{
	const unsigned char value = seed + 1, host = seed + 2;
	volatile unsigned char *p = memory->bytes;
	cl_int err;

	p[0] = p[1] = p[2] = seed;
	p[3] = host;
	err = memory->refresh ? memory->refresh(t->context, memory->arg) : CL_SUCCESS;
	if (!err)
		err = memory->apart ? run_kernels(t, a, b, value) : run_kernel(t, a, b, value);
	return err ? err : p[0] == value && p[1] == value && p[2] == host;
}

static cl_int run_memory(struct selftest *t, const struct selftest_memory *memory)
{
	cl_mem a, b;
	cl_int err, result;

	a = memory->create(t->context, memory->arg, &err);
	if (!a)
		return err;
	b = memory->create(t->context, memory->arg, &result);
	if (b) {
		result = 1;
		for (unsigned int round = 0; round < memory->rounds && result == 1; round++)
			result = run_round(t, memory, a, b, 0x11 + 0x30 * round);
		next.clReleaseMemObject(b);
	}
	next.clReleaseMemObject(a);
	return result;
}

cl_int selftest_memory(cl_device_id device, const struct selftest_memory *memory)
{
	struct selftest t;
	cl_int result = setup(&t, device);

	if (!result)
		result = run_memory(&t, memory);
	if (t.context && memory->finish)
		memory->finish(t.context);
	teardown(&t);
	return result;
}

struct host_ptr {
	struct scratch *scratch;
	unsigned char *bytes;
	size_t size;
};

static cl_mem host_ptr_create(cl_context context, void *arg, cl_int *err)
{
	const struct host_ptr *h = arg;
	cl_mem mem = next.clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, h->size,
					 h->bytes, err);

	return scratch_watch(h->scratch, mem, err);
}

static cl_int run_class(struct selftest *t, unsigned char *p, size_t size)
{
	struct host_ptr h = { t->scratch, p, size };
	const struct selftest_memory memory = {
		.bytes = p,
		.create = host_ptr_create,
		.rounds = ROUNDS,
		.arg = &h,
	};

	return run_memory(t, &memory);
}

/* The loosest class that passed with all stricter ones; a driver may refuse the loose ones. */
static enum tested run_classes(struct selftest *t, size_t *align, char *why, size_t size)
{
	cl_int result = 1;

	*align = 0;
	for (size_t i = 0; i < CLASSES && result == 1; i++) {
		result = run_class(t, t->scratch->bytes + classes[i].offset, classes[i].size);
		if (result == 1)
			*align = classes[i].align;
	}
	if (selftest_is_passing(result))
		snprintf(why, size, "the self-test of CL_MEM_USE_HOST_PTR failed with error %d",
			 result);
	else if (*align)
		snprintf(why, size, "CL_MEM_USE_HOST_PTR is zero copy by self-test, alignment %zu",
			 *align);
	else if (result)
		snprintf(why, size, "the self-test of CL_MEM_USE_HOST_PTR failed with error %d",
			 result);
	else
		snprintf(why, size, "CL_MEM_USE_HOST_PTR copies on this device");
	if (selftest_is_passing(result))
		return UNTESTED;
	return *align ? PASSED : FAILED;
}

enum tested selftest_host_ptr(cl_device_id device, size_t *align, char *why, size_t size)
{
	struct selftest t;
	cl_int err = setup(&t, device);
	enum tested found;

	if (err) {
		snprintf(why, size, "the self-test of CL_MEM_USE_HOST_PTR cannot run: error %d",
			 err);
		found = selftest_is_passing(err) ? UNTESTED : FAILED;
	} else {
		found = run_classes(&t, align, why, size);
	}
	teardown(&t);
	return found;
}

/* Reads, lets the host change the memory, reads again; then writes and looks at the memory. */
static enum tested image_round(cl_command_queue queue, cl_mem image, volatile unsigned char *p)
{
	const size_t origin[3] = { 1, 1, 0 }, region[3] = { 1, 1, 1 };
	unsigned char pixel[4] = { 0 };

	for (int round = 0; round < ROUNDS; round++) {
		p[20] = 0x21 + round;
		if (next.clEnqueueReadImage(queue, image, CL_TRUE, origin, region, 0, 0, pixel, 0,
					    NULL, NULL))
			return UNTESTED;
		if (pixel[0] != 0x21 + round)
			return FAILED;
		pixel[0] = 0x71 + round;
		if (next.clEnqueueWriteImage(queue, image, CL_TRUE, origin, region, 0, 0, pixel, 0,
					     NULL, NULL))
			return UNTESTED;
		if (p[20] != 0x71 + round)
			return FAILED;
	}
	return PASSED;
}

static enum tested image_test_over(cl_context context, cl_command_queue queue, struct scratch *s)
{
	const cl_image_format format = { CL_RGBA, CL_UNSIGNED_INT8 };
	const cl_image_desc desc = {
		.image_type = CL_MEM_OBJECT_IMAGE2D,
		.image_width = 3,
		.image_height = 2,
		.image_row_pitch = 16,
	};
	enum tested found;
	cl_mem image;
	cl_int err;

	image = next.clCreateImage(context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, &format, &desc,
				   s->bytes, &err);
	image = scratch_watch(s, image, &err);
	if (!image)
		return selftest_is_passing(err) ? UNTESTED : FAILED;
	found = image_round(queue, image, s->bytes);
	next.clReleaseMemObject(image);
	return found;
}

static enum tested image_test(cl_context context, cl_device_id device)
{
	struct scratch *s = scratch_create();
	enum tested found = UNTESTED;
	cl_command_queue queue;
	cl_int err;

	if (!s)
		return UNTESTED;
	queue = next.clCreateCommandQueue(context, device, 0, &err);
	if (!err) {
		found = image_test_over(context, queue, s);
		next.clReleaseCommandQueue(queue);
	}
	scratch_put(s);
	return found;
}

enum tested selftest_image_host_ptr(cl_context context)
{
	cl_device_id devices[64];
	enum tested found = PASSED;
	size_t size;

	if (next.clGetContextInfo(context, CL_CONTEXT_DEVICES, sizeof(devices), devices, &size))
		return UNTESTED;
	for (size_t i = 0; i < size / sizeof(devices[0]) && found == PASSED; i++)
		found = image_test(context, devices[i]);
	if (found != PASSED)
		log_error(
			"2D images over CL_MEM_USE_HOST_PTR %s zero copy on the context's devices",
			found == FAILED ? "are not" : "could not be proved to be");
	return found;
}
