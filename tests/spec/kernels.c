/* SPDX-License-Identifier: Apache-2.0 */
/* Every kernel has a single work item: the tests are about memory, and compile once. */
#include "kernels.h"
#include "substitute.h"
#include "text.h"

static const char *const buffer_source =
	"kernel void add(global uchar *p, uint size, uint stride, uint value)"
	"{ for (uint i = 0; i < size; i += stride) p[i] += (uchar)value; }"
	"kernel void copy(global const uchar *from, global uchar *to, uint size)"
	"{ for (uint i = 0; i < size; i++) to[i] = from[i]; }"
	"kernel void copy_around(global const uchar *from, uint below, global uchar *to, uint size)"
	"{ global const uchar *start = from - below;"
	"	for (uint i = 0; i < size; i++) to[i] = start[i]; }"
	/* Ends when the host writes flag[0], or after many tries; says which. */
	"kernel void watch(volatile global uchar *flag, uint tries)"
	"{ uint i = 0; while (!flag[0] && i < tries) i++; flag[1] = i < tries ? 1 : 2; }";

static const char *const image_source =
	"constant sampler_t nearest = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_NONE |"
	"	CLK_FILTER_NEAREST;"
	"kernel void image_to_buffer(read_only image2d_t from, global uchar *to, uint w, uint h)"
	"{ for (uint y = 0; y < h; y++) for (uint x = 0; x < w; x++)"
	"	vstore4(convert_uchar4(read_imageui(from, nearest, (int2)(x, y))), y * w + x, to);"
	"}"
	"kernel void buffer_to_image(global const uchar *from, write_only image2d_t to,"
	"	uint w, uint h)"
	"{ for (uint y = 0; y < h; y++) for (uint x = 0; x < w; x++)"
	"	write_imageui(to, (int2)(x, y), convert_uint4(vload4(y * w + x, from))); }"
	"kernel void image1d_to_buffer(read_only image1d_buffer_t from, global uchar *to, uint w)"
	"{ for (uint x = 0; x < w; x++)"
	"	vstore4(convert_uchar4(read_imageui(from, (int)x)), x, to); }"
	"kernel void buffer_to_image1d(global const uchar *from, write_only image1d_buffer_t to,"
	"	uint w)"
	"{ for (uint x = 0; x < w; x++)"
	"	write_imageui(to, (int)x, convert_uint4(vload4(x, from))); }";

static struct program {
	const char *const *source;
	const char *kernels;
	cl_program program; /* of spec.context, NULL until the first use */
} programs[] = {
	{ &buffer_source, "add copy copy_around watch", NULL },
	{ &image_source, "image_to_buffer buffer_to_image image1d_to_buffer buffer_to_image1d",
	  NULL },
};

static struct program *program_of(const char *name)
{
	return text_count_word(programs[0].kernels, name) ? &programs[0] : &programs[1];
}

/* A program for all devices of the context; the caller releases the program. */
static cl_program program_build_source(cl_context context, const char *source)
{
	char log[2048] = "";
	cl_int error;
	cl_program program;

	if (!device_number(CL_DEVICE_COMPILER_AVAILABLE))
		test_skip("device has no compiler");
	program = clCreateProgramWithSource(context, 1, &source, NULL, &error);
	EXPECT_EQ(error, CL_SUCCESS);
	error = clBuildProgram(program, 0, NULL, "", NULL, NULL);
	if (!error)
		return program;
	clGetProgramBuildInfo(program, spec.device, CL_PROGRAM_BUILD_LOG, sizeof(log) - 1, log,
			      NULL);
	spec_note("build log: %s", log);
	clReleaseProgram(program);
	EXPECT_EQ(error, CL_SUCCESS);
	return NULL;
}

cl_kernel kernels_create_plain(const char *name)
{
	return clCreateKernel(program_of(name)->program, name, NULL);
}

static void release_kernel(void *arg)
{
	clReleaseKernel(arg);
}

static cl_kernel released_kernel(cl_kernel k)
{
	EXPECT(k != NULL);
	spec_undo_later(release_kernel, k);
	return k;
}

cl_kernel kernels_create(const char *name)
{
	struct program *p = program_of(name);

	if (!p->program)
		p->program = program_build_source(spec.context, *p->source);
	return released_kernel(kernels_create_plain(name));
}

static void release_program(void *arg)
{
	clReleaseProgram(arg);
}

cl_kernel kernels_create_in(cl_context context, const char *name)
{
	cl_program program = program_build_source(context, *program_of(name)->source);

	spec_undo_later(release_program, program);
	return released_kernel(clCreateKernel(program, name, NULL));
}

void kernels_close(void)
{
	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++)
		if (programs[i].program)
			clReleaseProgram(programs[i].program);
}

static void set_mem(cl_kernel k, cl_uint i, cl_mem mem)
{
	EXPECT_EQ(clSetKernelArg(k, i, sizeof(mem), &mem), CL_SUCCESS);
}

static void set_number(cl_kernel k, cl_uint i, size_t number)
{
	cl_uint value = number;

	EXPECT_EQ(clSetKernelArg(k, i, sizeof(value), &value), CL_SUCCESS);
}

static void kernels_enqueue_one(cl_command_queue queue, cl_kernel k, cl_event wait, cl_event *done)
{
	const size_t one = 1;

	EXPECT_EQ(clEnqueueNDRangeKernel(queue, k, 1, NULL, &one, &one, wait ? 1 : 0,
					 wait ? &wait : NULL, done),
		  CL_SUCCESS);
}

/* Runs a kernel to the end; the arguments are two objects, the second perhaps NULL. */
static void kernels_run(cl_command_queue queue, cl_kernel k, cl_mem first, cl_mem second)
{
	opencl_begin_aside();
	substitute_give(queue, first);
	substitute_give(queue, second);
	kernels_enqueue_one(queue, k, NULL, NULL);
	EXPECT_EQ(clFinish(queue), CL_SUCCESS);
	substitute_take(queue, first);
	substitute_take(queue, second);
	opencl_end_aside();
}

static cl_kernel set_add(cl_kernel k, cl_mem mem, size_t size, size_t stride, cl_uint value)
{
	set_mem(k, 0, mem);
	set_number(k, 1, size);
	set_number(k, 2, stride);
	set_number(k, 3, value);
	return k;
}

void kernels_add(cl_mem mem, size_t size, size_t stride, cl_uint value)
{
	kernels_run(spec.queue, set_add(kernels_create("add"), mem, size, stride, value), mem,
		    NULL);
}

void kernels_try_add(cl_mem mem, size_t size, cl_uint value)
{
	const size_t one = 1;

	clEnqueueNDRangeKernel(spec.queue, set_add(kernels_create("add"), mem, size, 1, value), 1,
			       NULL, &one, &one, 0, NULL, NULL);
	clFinish(spec.queue);
}

void kernels_add_after(cl_mem mem, size_t size, cl_uint value, cl_event wait, cl_event *done)
{
	kernels_enqueue_one(spec.queue, set_add(kernels_create("add"), mem, size, 1, value), wait,
			    done);
}

void kernels_add_with(cl_kernel add, cl_command_queue queue, cl_mem mem, size_t size, cl_uint value)
{
	kernels_run(queue, set_add(add, mem, size, 1, value), mem, NULL);
}

static cl_kernel kernels_create_copy(cl_mem from, cl_mem to, size_t size)
{
	cl_kernel k = kernels_create("copy");

	set_mem(k, 0, from);
	set_mem(k, 1, to);
	set_number(k, 2, size);
	return k;
}

void kernels_copy(cl_mem from, cl_mem to, size_t size)
{
	kernels_run(spec.queue, kernels_create_copy(from, to, size), from, to);
}

void kernels_copy_after(cl_mem from, cl_mem to, size_t size, cl_event wait, cl_event *done)
{
	kernels_enqueue_one(spec.queue, kernels_create_copy(from, to, size), wait, done);
}

void kernels_copy_around(cl_mem from, size_t below, cl_mem to, size_t size)
{
	cl_kernel k = kernels_create("copy_around");

	set_mem(k, 0, from);
	set_number(k, 1, below);
	set_mem(k, 2, to);
	set_number(k, 3, size);
	kernels_run(spec.queue, k, from, to);
}

static cl_kernel kernels_create_for_image(const char *name, cl_mem from, cl_mem to, size_t width,
					  size_t height)
{
	cl_kernel k = kernels_create(name);

	set_mem(k, 0, from);
	set_mem(k, 1, to);
	set_number(k, 2, width);
	if (height)
		set_number(k, 3, height);
	return k;
}

static void kernels_run_image(const char *name, cl_mem from, cl_mem to, size_t width, size_t height)
{
	kernels_run(spec.queue, kernels_create_for_image(name, from, to, width, height), from, to);
}

void kernels_pixel_after(cl_mem image, cl_mem buffer, cl_event wait)
{
	kernels_enqueue_one(spec.queue,
			    kernels_create_for_image("image_to_buffer", image, buffer, 1, 1), wait,
			    NULL);
}

void kernels_image_to_buffer(cl_mem image, cl_mem buffer, size_t width, size_t height)
{
	kernels_run_image("image_to_buffer", image, buffer, width, height);
}

void kernels_buffer_to_image(cl_mem buffer, cl_mem image, size_t width, size_t height)
{
	kernels_run_image("buffer_to_image", buffer, image, width, height);
}

void kernels_image1d_to_buffer(cl_mem image, cl_mem buffer, size_t width)
{
	kernels_run_image("image1d_to_buffer", image, buffer, width, 0);
}

void kernels_buffer_to_image1d(cl_mem buffer, cl_mem image, size_t width)
{
	kernels_run_image("buffer_to_image1d", buffer, image, width, 0);
}

cl_mem plain_buffer(size_t size)
{
	cl_int error;
	cl_mem mem = clCreateBuffer(spec.context, CL_MEM_READ_WRITE, size, NULL, &error);

	EXPECT_EQ(error, CL_SUCCESS);
	return released_later(mem);
}

void plain_write(cl_mem buffer, const void *from, size_t size)
{
	opencl_begin_aside();
	EXPECT_EQ(clEnqueueWriteBuffer(spec.queue, buffer, CL_TRUE, 0, size, from, 0, NULL, NULL),
		  CL_SUCCESS);
	opencl_end_aside();
}

void plain_read(cl_mem buffer, void *to, size_t size)
{
	opencl_begin_aside();
	EXPECT_EQ(clEnqueueReadBuffer(spec.queue, buffer, CL_TRUE, 0, size, to, 0, NULL, NULL),
		  CL_SUCCESS);
	opencl_end_aside();
}

void expect_shared(cl_mem mem, unsigned char *memory, size_t size)
{
	for (unsigned int turn = 1; turn < 4; turn++) {
		spec_fill_memory(memory, size, turn);
		kernels_add(mem, size, 1, 10);
		EXPECT(spec_memory_is(memory, size, turn + 10));
		kernels_add(mem, size, 1, 5);
		EXPECT(spec_memory_is(memory, size, turn + 15));
	}
}

void expect_read_by_device(cl_mem mem, unsigned char *memory, size_t size)
{
	unsigned char *seen = malloc(size);
	cl_mem out = plain_buffer(size);

	spec_undo_later(free, seen);
	for (unsigned int turn = 1; turn < 4; turn++) {
		spec_fill_memory(memory, size, turn);
		kernels_copy(mem, out, size);
		plain_read(out, seen, size);
		EXPECT(spec_memory_is(seen, size, turn));
	}
}

void expect_written_by_device(cl_mem mem, const unsigned char *memory, size_t size)
{
	unsigned char *sent = malloc(size);
	cl_mem in = plain_buffer(size);

	spec_undo_later(free, sent);
	for (unsigned int turn = 1; turn < 4; turn++) {
		spec_fill_memory(sent, size, turn);
		plain_write(in, sent, size);
		kernels_copy(in, mem, size);
		EXPECT(spec_memory_is(memory, size, turn));
	}
}
