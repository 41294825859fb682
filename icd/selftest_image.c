/* SPDX-License-Identifier: Apache-2.0 */
/*
 * 2D images over host memory: a kernel uses two images over the same memory, so that a driver
 * which copies around each kernel loses what went through the other.  Always compiled.
 */
#include <stdio.h>
#include <stdlib.h>

#include "import/log.h"
#include "job.h"
#include "layer.h"
#include "selftest.h"

#define PAGE 4096
#define ROUNDS 3 /* the first use is special in drivers that copy lazily */
#define PITCH 16
#define FIRST (PITCH + 4)  /* byte of the pixel (1, 1) */
#define SECOND (PITCH + 8) /* of (2, 1) */

static const char source[] =
	"const sampler_t s = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_NONE | CLK_FILTER_NEAREST;\n"
	"__kernel void climport_selftest_image(__write_only image2d_t a, __read_only image2d_t b,\n"
	"	__global uint *out, uint value)\n"
	"{\n"
	"	write_imageui(a, (int2)(1, 1), (uint4)(value));\n"
	"	barrier(CLK_GLOBAL_MEM_FENCE);\n"
	"	out[0] = read_imageui(b, s, (int2)(1, 1)).x;\n"
	"	out[1] = read_imageui(b, s, (int2)(2, 1)).x;\n"
	"}\n"
	"__kernel void climport_selftest_images(__write_only image2d_t a, __write_only image2d_t "
	"b,\n"
	"	__global uint *out, uint value)\n"
	"{\n"
	"	write_imageui(a, (int2)(1, 1), (uint4)(value));\n"
	"	write_imageui(b, (int2)(2, 1), (uint4)(value));\n"
	"	out[0] = out[1] = 0;\n"
	"}\n";

struct image_job {
	struct job job;
	cl_device_id device;
	enum import_kind kind;
	unsigned int access;
	bool has_sample;
	cl_int result; /* 1: zero copy, 0: not, or an error */
};

/* Objects of one test; the ones that could not be made are NULL. */
struct image_test {
	struct import_region *region;
	bool write_only;
	cl_context context;
	cl_command_queue queue;
	cl_program program;
	cl_kernel kernel;
	cl_mem a, b, out;
};

static void CL_CALLBACK image_unused(cl_mem mem, void *region)
{
	(void)mem;
	import_put(region);
}

static cl_mem image_over(struct image_test *t, cl_mem_flags flags, cl_int *err)
{
	const cl_image_format format = { CL_RGBA, CL_UNSIGNED_INT8 };
	const cl_image_desc desc = {
		.image_type = CL_MEM_OBJECT_IMAGE2D,
		.image_width = 3,
		.image_height = 2,
		.image_row_pitch = PITCH,
	};
	cl_mem image = created_or_null(next.clCreateImage(t->context, flags | CL_MEM_USE_HOST_PTR,
							  &format, &desc, t->region->addr, err),
				       err);

	if (*err)
		return NULL;
	import_hold(t->region);
	*err = next.clSetMemObjectDestructorCallback(image, image_unused, t->region);
	if (!*err)
		return image;
	import_put(t->region);
	next.clReleaseMemObject(image);
	return NULL;
}

static cl_int image_build(struct image_test *t, cl_device_id device)
{
	const char *text = source;
	cl_int err;

	t->program = created_or_null(
		next.clCreateProgramWithSource(t->context, 1, &text, NULL, &err), &err);
	if (!err)
		err = next.clBuildProgram(t->program, 1, &device, "", NULL, NULL);
	if (!err)
		t->kernel = created_or_null(next.clCreateKernel(t->program,
								t->write_only
									? "climport_selftest_images"
									: "climport_selftest_image",
								&err),
					    &err);
	return err;
}

static cl_int image_begin(struct image_test *t, const struct image_job *j)
{
	cl_mem_flags a = t->write_only ? CL_MEM_WRITE_ONLY : CL_MEM_READ_WRITE, b = a;
	cl_int err;

	if (j->access == IMPORT_READ)
		b = CL_MEM_READ_ONLY;
	t->context =
		created_or_null(next.clCreateContext(NULL, 1, &j->device, NULL, NULL, &err), &err);
	if (!err)
		t->queue = created_or_null(
			next.clCreateCommandQueue(t->context, j->device, 0, &err), &err);
	if (!err)
		err = image_build(t, j->device);
	if (!err)
		t->a = image_over(t, a, &err);
	if (!err)
		t->b = image_over(t, b, &err);
	if (!err)
		t->out = created_or_null(next.clCreateBuffer(t->context, CL_MEM_READ_WRITE,
							     2 * sizeof(cl_uint), NULL, &err),
					 &err);
	return err;
}

static void image_end(struct image_test *t)
{
	if (t->out)
		next.clReleaseMemObject(t->out);
	if (t->b)
		next.clReleaseMemObject(t->b);
	if (t->a)
		next.clReleaseMemObject(t->a);
	if (t->kernel)
		next.clReleaseKernel(t->kernel);
	if (t->program)
		next.clReleaseProgram(t->program);
	if (t->queue)
		next.clReleaseCommandQueue(t->queue);
	if (t->context)
		next.clReleaseContext(t->context);
}

static cl_int image_launch(struct image_test *t, cl_uint value, cl_uint out[2])
{
	const size_t one = 1;
	cl_int err = next.clSetKernelArg(t->kernel, 0, sizeof(t->a), &t->a);

	if (!err)
		err = next.clSetKernelArg(t->kernel, 1, sizeof(t->b), &t->b);
	if (!err)
		err = next.clSetKernelArg(t->kernel, 2, sizeof(t->out), &t->out);
	if (!err)
		err = next.clSetKernelArg(t->kernel, 3, sizeof(value), &value);
	if (!err)
		err = next.clEnqueueNDRangeKernel(t->queue, t->kernel, 1, NULL, &one, &one, 0, NULL,
						  NULL);
	if (!err)
		err = next.clEnqueueReadBuffer(t->queue, t->out, CL_TRUE, 0, 2 * sizeof(cl_uint),
					       out, 0, NULL, NULL);
	return err ? err : next.clFinish(t->queue);
}

static cl_int image_round(struct image_test *t, unsigned char seed)
{
	volatile unsigned char *p = t->region->addr;
	const unsigned char value = seed + 1, host = seed + 2;
	cl_uint out[2];
	cl_int err;

	p[FIRST] = seed;
	p[SECOND] = host;
	err = image_launch(t, value, out);
	if (err)
		return err;
	if (t->write_only)
		return p[FIRST] == value && p[SECOND] == value;
	return p[FIRST] == value && out[0] == value && out[1] == host;
}

static void image_run(struct job *job)
{
	struct image_job *j = (struct image_job *)job;
	struct image_test t = { .write_only = j->access == IMPORT_WRITE };
	const struct import_sample_want want = {
		.kind = j->kind,
		.size = PAGE,
		.is_sparse = true,
	};

	j->has_sample = !import_sample_kind(&want, &t.region);
	if (!j->has_sample)
		return;
	j->result = image_begin(&t, j);
	if (!j->result)
		j->result = 1;
	for (int round = 0; round < ROUNDS && j->result == 1; round++)
		j->result = image_round(&t, 0x11 + 0x30 * round);
	image_end(&t);
	import_put(t.region);
}

static enum tested image_judge(cl_int result)
{
	if (result == 1)
		return PASSED;
	if (!result)
		return FAILED;
	return selftest_is_transient(result) ? UNTESTED : BROKEN;
}

enum tested selftest_image(cl_device_id device, enum import_kind kind, unsigned int access)
{
	struct image_job *j = calloc(1, sizeof(*j));
	enum tested found = UNTESTED;

	if (!j)
		return UNTESTED;
	j->job.run = image_run;
	j->device = device;
	j->kind = kind;
	j->access = access;
	switch (job_run(&j->job, JOB_COMPILE_LIMIT_MS)) {
	case JOB_ENDED:
		found = j->has_sample ? image_judge(j->result) : NO_SAMPLE;
		break;
	case JOB_ABANDONED:
		found = HUNG;
		break;
	case JOB_NOT_STARTED:
		break;
	}
	job_put(&j->job);
	return found;
}
