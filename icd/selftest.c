/* SPDX-License-Identifier: Apache-2.0 */
#include "selftest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "import/log.h"
#include "layer.h"

#define PAGE 4096
#define ROUNDS 3	/* the first use is special in drivers that copy lazily */

static const char source[] =
	"__kernel void climport_selftest(volatile __global uchar *a, volatile __global uchar *b, uint value)\n"
	"{\n"
	"	a[0] = value;\n"
	"	a[1] = b[0];\n"
	"	a[2] = b[3];\n"
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

struct selftest {
	cl_device_id device;
	cl_context context;
	cl_command_queue queue;
	cl_program program;
	cl_kernel kernel;
	unsigned char *memory;	/* two pages */
};

static void teardown(struct selftest *t)
{
	if (t->kernel)
		next.clReleaseKernel(t->kernel);
	if (t->program)
		next.clReleaseProgram(t->program);
	if (t->queue)
		next.clReleaseCommandQueue(t->queue);
	if (t->context)
		next.clReleaseContext(t->context);
	free(t->memory);
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
	return err;
}

static cl_int setup(struct selftest *t, cl_device_id device)
{
	cl_int err;

	memset(t, 0, sizeof(*t));
	t->device = device;
	t->memory = aligned_alloc(PAGE, 2 * PAGE);
	if (!t->memory)
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
		err = next.clEnqueueNDRangeKernel(t->queue, t->kernel, 1, NULL, &one, &one, 0, NULL, NULL);
	return err ? err : next.clFinish(t->queue);
}

/* One round: 1 passed, 0 failed, or an error of OpenCL. */
static cl_int run_round(struct selftest *t, cl_mem a, cl_mem b, volatile unsigned char *p, unsigned char seed)
{
	const unsigned char value = seed + 1, host = seed + 2;
	cl_int err;

	p[0] = p[1] = p[2] = seed;
	p[3] = host;
	err = run_kernel(t, a, b, value);
	return err ? err : p[0] == value && p[1] == value && p[2] == host;
}

static cl_int run_class(struct selftest *t, unsigned char *p, size_t size)
{
	cl_mem a, b;
	cl_int err, result;

	a = next.clCreateBuffer(t->context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, size, p, &err);
	if (err)
		return err;
	b = next.clCreateBuffer(t->context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, size, p, &result);
	if (!result) {
		result = 1;
		for (int round = 0; round < ROUNDS && result == 1; round++)
			result = run_round(t, a, b, p, 0x11 + 0x30 * round);
		next.clReleaseMemObject(b);
	}
	next.clReleaseMemObject(a);
	return result;
}

/* The loosest class that passed with all stricter ones; a driver may refuse the loose ones. */
static size_t run_classes(struct selftest *t, char *why, size_t size)
{
	size_t align = 0;
	cl_int result = 1;

	for (size_t i = 0; i < CLASSES && result == 1; i++) {
		result = run_class(t, t->memory + classes[i].offset, classes[i].size);
		if (result == 1)
			align = classes[i].align;
	}
	if (align)
		snprintf(why, size, "CL_MEM_USE_HOST_PTR is zero copy by self-test, alignment %zu", align);
	else if (result)
		snprintf(why, size, "the self-test of CL_MEM_USE_HOST_PTR failed with error %d", result);
	else
		snprintf(why, size, "CL_MEM_USE_HOST_PTR copies on this device");
	return align;
}

size_t selftest_host_ptr(cl_device_id device, char *why, size_t size)
{
	struct selftest t;
	cl_int err = setup(&t, device);
	size_t align = 0;

	if (err)
		snprintf(why, size, "the self-test of CL_MEM_USE_HOST_PTR cannot run: error %d", err);
	else
		align = run_classes(&t, why, size);
	teardown(&t);
	return align;
}

/* Reads, lets the host change the memory, reads again; then writes and looks at the memory. */
static bool image_round(cl_command_queue queue, cl_mem image, volatile unsigned char *p)
{
	const size_t origin[3] = { 1, 1, 0 }, region[3] = { 1, 1, 1 };
	unsigned char pixel[4] = { 0 };

	for (int round = 0; round < ROUNDS; round++) {
		p[20] = 0x21 + round;
		if (next.clEnqueueReadImage(queue, image, CL_TRUE, origin, region, 0, 0, pixel, 0, NULL, NULL) ||
		    pixel[0] != 0x21 + round)
			return false;
		pixel[0] = 0x71 + round;
		if (next.clEnqueueWriteImage(queue, image, CL_TRUE, origin, region, 0, 0, pixel, 0, NULL, NULL) ||
		    p[20] != 0x71 + round)
			return false;
	}
	return true;
}

static bool image_test(cl_context context, cl_device_id device)
{
	const cl_image_format format = { CL_RGBA, CL_UNSIGNED_INT8 };
	const cl_image_desc desc = {
		.image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = 3, .image_height = 2, .image_row_pitch = 16,
	};
	unsigned char memory[48] = { 0 };
	cl_command_queue queue;
	bool passed = false;
	cl_mem image;
	cl_int err;

	queue = next.clCreateCommandQueue(context, device, 0, &err);
	if (err)
		return false;
	image = next.clCreateImage(context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, &format, &desc,
				   memory, &err);
	if (!err) {
		passed = image_round(queue, image, memory);
		next.clReleaseMemObject(image);
	}
	next.clReleaseCommandQueue(queue);
	return passed;
}

bool selftest_image_host_ptr(cl_context context)
{
	cl_device_id devices[64];
	size_t size;

	if (next.clGetContextInfo(context, CL_CONTEXT_DEVICES, sizeof(devices), devices, &size))
		return false;
	for (size_t i = 0; i < size / sizeof(devices[0]); i++)
		if (!image_test(context, devices[i])) {
			log_error("2D images over CL_MEM_USE_HOST_PTR are not zero copy on this device");
			return false;
		}
	return true;
}
