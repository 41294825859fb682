/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Proofs of drivers' faults: what OpenCL promises for a driver's own objects, without any layer.  A
 * test that fails here explains failures of `climport conform` on the driver: drivers.py.
 */
#include <CL/cl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "harness.h"

enum {
	PAGE = 4096,
	SIZE = 16 * PAGE,
	WIDTH = 64,
	HEIGHT = 4,
	PITCH = 512,
	ROW = WIDTH * 4,
	ORIGIN = 4096,
	PLANE_ROWS = 48,
	FLUSH_SECONDS = 30
};

static const char source[] =
	"kernel void add(global uchar *a, uchar n) { a[get_global_id(0)] += n; }\n"
	"kernel void loop(global uchar *a, uint size, uint stride, uint value)\n"
	"{ for (uint i = 0; i < size; i += stride) a[i] += (uchar)value; }\n"
	"kernel void nothing(void) {}\n"
	"kernel void row(read_only image2d_t from, global uint4 *to)\n"
	"{ to[get_global_id(0)] = read_imageui(from, (int2)(get_global_id(0), 0)); }\n"
	"kernel void plane(read_only image2d_t from, global uchar *to)\n"
	"{ int2 at = (int2)(get_global_id(0), get_global_id(1));\n"
	"  to[at.y * get_global_size(0) + at.x] =\n"
	"	convert_uchar_sat_rte(read_imagef(from, at).x * 255.0f); }\n"
	"kernel void through(global uchar *a, read_only image2d_t from, global uint4 *to)\n"
	"{ a[0] = 7;\n"
	"  barrier(CLK_GLOBAL_MEM_FENCE);\n"
	"  to[0] = read_imageui(from, (int2)(0, 0)); }\n"
	"kernel void row1(read_only image1d_buffer_t from, global uint4 *to)\n"
	"{ to[get_global_id(0)] = read_imageui(from, (int)get_global_id(0)); }\n";

static cl_device_id device;
static cl_context context;
static cl_command_queue queue;
static cl_program program;

static void proof_open(void)
{
	const char *text = source;
	cl_platform_id platform;
	cl_int err;

	EXPECT_EQ(clGetPlatformIDs(1, &platform, NULL), CL_SUCCESS);
	EXPECT_EQ(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL), CL_SUCCESS);
	context = clCreateContext(NULL, 1, &device, NULL, NULL, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	queue = clCreateCommandQueue(context, device, 0, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	program = clCreateProgramWithSource(context, 1, &text, NULL, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	EXPECT_EQ(clBuildProgram(program, 0, NULL, NULL, NULL, NULL), CL_SUCCESS);
}

static cl_kernel proof_kernel(const char *name)
{
	cl_int err;
	cl_kernel kernel = clCreateKernel(program, name, &err);

	EXPECT_EQ(err, CL_SUCCESS);
	return kernel;
}

static cl_mem proof_host_buffer(void *memory, size_t size)
{
	cl_int err;
	cl_mem mem = clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, size, memory,
				    &err);

	EXPECT_EQ(err, CL_SUCCESS);
	return mem;
}

static void proof_enqueue_add(cl_mem mem, size_t size, cl_uint waits, const cl_event *wait)
{
	const cl_uchar one = 1;
	cl_kernel kernel = proof_kernel("add");

	EXPECT_EQ(clSetKernelArg(kernel, 0, sizeof(mem), &mem), CL_SUCCESS);
	EXPECT_EQ(clSetKernelArg(kernel, 1, sizeof(one), &one), CL_SUCCESS);
	EXPECT_EQ(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &size, NULL, waits, wait, NULL),
		  CL_SUCCESS);
}

/* Reads SIZE bytes. */
static void proof_read(cl_mem mem, unsigned char *to, size_t size)
{
	EXPECT_EQ(clEnqueueReadBuffer(queue, mem, CL_TRUE, 0, size, to, 0, NULL, NULL), CL_SUCCESS);
}

TEST(start, "A program starts, reads a device's extensions, and creates a context.")
{
	char extensions[16384];
	cl_platform_id platform;
	cl_int err;

	EXPECT_EQ(clGetPlatformIDs(1, &platform, NULL), CL_SUCCESS);
	EXPECT_EQ(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL), CL_SUCCESS);
	EXPECT_EQ(
		clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS, sizeof(extensions), extensions, NULL),
		CL_SUCCESS);
	context = clCreateContext(NULL, 1, &device, NULL, NULL, &err);
	EXPECT_EQ(err, CL_SUCCESS);
}

/* One item increments a byte of each @stride of @size bytes. */
static void proof_loop(cl_mem mem, cl_uint size, cl_uint stride)
{
	const cl_uint one_more = 1;
	const size_t one = 1;
	cl_kernel kernel = proof_kernel("loop");

	EXPECT_EQ(clSetKernelArg(kernel, 0, sizeof(mem), &mem), CL_SUCCESS);
	EXPECT_EQ(clSetKernelArg(kernel, 1, sizeof(size), &size), CL_SUCCESS);
	EXPECT_EQ(clSetKernelArg(kernel, 2, sizeof(stride), &stride), CL_SUCCESS);
	EXPECT_EQ(clSetKernelArg(kernel, 3, sizeof(one_more), &one_more), CL_SUCCESS);
	EXPECT_EQ(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &one, NULL, 0, NULL, NULL),
		  CL_SUCCESS);
	EXPECT_EQ(clFinish(queue), CL_SUCCESS);
}

TEST(long_loop, "A loop of a kernel has as many turns as the kernel says.")
{
	static unsigned char seen[SIZE];
	cl_mem mem;

	proof_open();
	memset(seen, 0, sizeof(seen));
	mem = proof_host_buffer(seen, SIZE);
	proof_loop(mem, SIZE, 1);
	proof_read(mem, seen, SIZE);
	for (int i = 0; i < SIZE; i++)
		EXPECT_EQ(seen[i], 1);
}

TEST(hole_behind, "A kernel on a host pointer reads nothing behind the buffer's last byte.")
{
	unsigned char *pages =
		mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	cl_mem mem;

	EXPECT(pages != MAP_FAILED && !mprotect(pages + 3 * PAGE, PAGE, PROT_NONE));
	proof_open();
	mem = proof_host_buffer(pages, 3 * PAGE);
	proof_loop(mem, 3 * PAGE, PAGE);
	proof_read(mem, pages, 3 * PAGE);
	EXPECT_EQ(pages[2 * PAGE], 1);
}

TEST(user_event, "A kernel that waits for a user event runs when the event is set.")
{
	static unsigned char seen[PAGE];
	cl_event event;
	cl_mem mem;
	cl_int err;

	proof_open();
	memset(seen, 0, sizeof(seen));
	mem = proof_host_buffer(seen, PAGE);
	event = clCreateUserEvent(context, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	proof_enqueue_add(mem, PAGE, 1, &event);
	EXPECT_EQ(clFlush(queue), CL_SUCCESS);
	EXPECT_EQ(clSetUserEventStatus(event, CL_COMPLETE), CL_SUCCESS);
	proof_read(mem, seen, PAGE);
	EXPECT_EQ(seen[PAGE - 1], 1);
}

TEST(flush_with_gate, "clFlush returns while a kernel waits for a user event.")
{
	static unsigned char seen[PAGE];
	cl_event event;
	cl_int err;

	proof_open();
	event = clCreateUserEvent(context, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	proof_enqueue_add(proof_host_buffer(seen, PAGE), PAGE, 1, &event);
	alarm(FLUSH_SECONDS); /* time: a hang ends the process, and with it the test */
	EXPECT_EQ(clFlush(queue), CL_SUCCESS);
	alarm(0);
	EXPECT_EQ(clSetUserEventStatus(event, CL_COMPLETE), CL_SUCCESS);
	EXPECT_EQ(clFinish(queue), CL_SUCCESS);
}

TEST(failed_wait, "The event of a kernel that waits for a failed event has an error.")
{
	const size_t one = 1;
	cl_event gate, done;
	cl_int err, status = CL_QUEUED;

	proof_open();
	gate = clCreateUserEvent(context, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	EXPECT_EQ(clEnqueueNDRangeKernel(queue, proof_kernel("nothing"), 1, NULL, &one, NULL, 1,
					 &gate, &done),
		  CL_SUCCESS);
	EXPECT_EQ(clSetUserEventStatus(gate, -1), CL_SUCCESS);
	EXPECT_EQ(clWaitForEvents(1, &done), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
	EXPECT_EQ(clGetEventInfo(done, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status,
				 NULL),
		  CL_SUCCESS);
	EXPECT(status < 0);
}

TEST(queue_after_failed_wait, "A queue works on after a kernel that waited for a failed event.")
{
	const size_t one = 1;
	cl_event gate, done;
	cl_int err;

	proof_open();
	gate = clCreateUserEvent(context, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	EXPECT_EQ(clEnqueueNDRangeKernel(queue, proof_kernel("nothing"), 1, NULL, &one, NULL, 1,
					 &gate, &done),
		  CL_SUCCESS);
	EXPECT_EQ(clSetUserEventStatus(gate, -1), CL_SUCCESS);
	clWaitForEvents(1, &done);
	EXPECT_EQ(clEnqueueNDRangeKernel(queue, proof_kernel("nothing"), 1, NULL, &one, NULL, 0,
					 NULL, &done),
		  CL_SUCCESS);
	EXPECT_EQ(clWaitForEvents(1, &done), CL_SUCCESS);
	EXPECT_EQ(clFinish(queue), CL_SUCCESS);
}

/* The four times of @event, of a queue that has ended, are in order. */
static void proof_expect_times(cl_event event)
{
	static const cl_profiling_info names[] = { CL_PROFILING_COMMAND_QUEUED,
						   CL_PROFILING_COMMAND_SUBMIT,
						   CL_PROFILING_COMMAND_START,
						   CL_PROFILING_COMMAND_END };
	cl_ulong before = 1, now;

	for (int i = 0; i < 4; i++) {
		EXPECT_EQ(clGetEventProfilingInfo(event, names[i], sizeof(now), &now, NULL),
			  CL_SUCCESS);
		EXPECT(before <= now);
		before = now;
	}
}

static void proof_open_with_times(void)
{
	cl_int err;

	proof_open();
	queue = clCreateCommandQueue(context, device, CL_QUEUE_PROFILING_ENABLE, &err);
	EXPECT_EQ(err, CL_SUCCESS);
}

TEST(event_times, "A kernel is queued, submitted, started and ended, in this order.")
{
	const size_t one = 1;
	cl_event event;
	cl_kernel kernel;

	proof_open_with_times();
	kernel = proof_kernel("nothing");
	EXPECT_EQ(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &one, NULL, 0, NULL, &event),
		  CL_SUCCESS);
	EXPECT_EQ(clFinish(queue), CL_SUCCESS);
	proof_expect_times(event);
}

TEST(marker_times, "A marker is queued, submitted, started and ended, in this order.")
{
	cl_event event;

	proof_open_with_times();
	EXPECT_EQ(clEnqueueMarkerWithWaitList(queue, 0, NULL, &event), CL_SUCCESS);
	EXPECT_EQ(clFinish(queue), CL_SUCCESS);
	proof_expect_times(event);
}

TEST(sub_buffer_origin, "A sub-buffer whose origin is misaligned is an error.")
{
	const cl_buffer_region region = { 1, PAGE };
	cl_int err;
	cl_mem mem;

	proof_open();
	mem = clCreateBuffer(context, CL_MEM_READ_WRITE, SIZE, NULL, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	clCreateSubBuffer(mem, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &err);
	EXPECT_EQ(err, CL_MISALIGNED_SUB_BUFFER_OFFSET);
}

TEST(sub_buffer_size_0, "A sub-buffer of size 0 is an error, CL_INVALID_BUFFER_SIZE.")
{
	const cl_buffer_region region = { 0, 0 };
	cl_int err;
	cl_mem mem;

	proof_open();
	mem = clCreateBuffer(context, CL_MEM_READ_WRITE, SIZE, NULL, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	clCreateSubBuffer(mem, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &err);
	EXPECT_EQ(err, CL_INVALID_BUFFER_SIZE);
}

TEST(sub_buffer_access, "A sub-buffer that may be written, of a buffer that may not, is an error.")
{
	const cl_buffer_region region = { 0, PAGE };
	cl_int err;
	cl_mem mem;

	proof_open();
	mem = clCreateBuffer(context, CL_MEM_READ_ONLY, SIZE, NULL, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	clCreateSubBuffer(mem, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &region, &err);
	EXPECT_EQ(err, CL_INVALID_VALUE);
}

/* A row of the image has one value, as rows of planes of video frames may. */
TEST(plane, "A pixel of an image of one channel is read as it is, at each place.")
{
	static unsigned char memory[PLANE_ROWS][WIDTH], seen[PLANE_ROWS][WIDTH];
	const cl_image_format format = { CL_R, CL_UNORM_INT8 };
	const cl_image_desc desc = { .image_type = CL_MEM_OBJECT_IMAGE2D,
				     .image_width = WIDTH,
				     .image_height = PLANE_ROWS };
	const size_t items[] = { WIDTH, PLANE_ROWS };
	cl_mem image, out;
	cl_kernel kernel;
	cl_int err;

	proof_open();
	for (int y = 0; y < PLANE_ROWS; y++)
		memset(memory[y], 3 * y, WIDTH);
	image = clCreateImage(context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, &format, &desc,
			      memory, &err);
	if (err)
		test_skip("the driver has no such image: error %d", err);
	out = clCreateBuffer(context, CL_MEM_WRITE_ONLY, sizeof(seen), NULL, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	kernel = proof_kernel("plane");
	EXPECT_EQ(clSetKernelArg(kernel, 0, sizeof(image), &image), CL_SUCCESS);
	EXPECT_EQ(clSetKernelArg(kernel, 1, sizeof(out), &out), CL_SUCCESS);
	EXPECT_EQ(clEnqueueNDRangeKernel(queue, kernel, 2, NULL, items, NULL, 0, NULL, NULL),
		  CL_SUCCESS);
	proof_read(out, seen[0], sizeof(seen));
	EXPECT(!memcmp(seen, memory, sizeof(seen)));
}

static cl_mem proof_image(cl_mem buffer, cl_mem_object_type type, size_t pitch, cl_int *err)
{
	const cl_image_format format = { CL_RGBA, CL_UNSIGNED_INT8 };
	const cl_image_desc desc = { .image_type = type,
				     .image_width = WIDTH,
				     .image_height = type == CL_MEM_OBJECT_IMAGE2D ? HEIGHT : 0,
				     .image_row_pitch = pitch,
				     .mem_object = buffer };

	return clCreateImage(context, CL_MEM_READ_ONLY, &format, &desc, NULL, err);
}

/* Bytes of memory that the process has, from the second field of statm. */
static size_t proof_resident(void)
{
	FILE *file = fopen("/proc/self/statm", "re");
	size_t pages = 0;

	EXPECT(file != NULL);
	EXPECT_EQ(fscanf(file, "%*u %zu", &pages), 1);
	fclose(file);
	return pages * PAGE;
}

/* The bytes that a buffer of a page takes, on a host pointer, with what @finish does. */
static size_t proof_memory_of_buffer(void (*finish)(cl_mem mem))
{
	enum { COUNT = 4096 };
	static unsigned char memory[PAGE];
	size_t before;

	proof_open();
	before = proof_resident();
	for (size_t i = 0; i < COUNT; i++)
		finish(proof_host_buffer(memory, PAGE));
	return (proof_resident() - before) / COUNT;
}

static void proof_keep(cl_mem mem)
{
	(void)mem;
}

TEST(object_memory, "A buffer on a host pointer takes less than 1888 bytes of memory.")
{
	EXPECT(proof_memory_of_buffer(proof_keep) < 1888);
}

static void CL_CALLBACK proof_forget(cl_mem mem, void *unused)
{
	(void)mem;
	(void)unused;
}

static void proof_set_callback(cl_mem mem)
{
	EXPECT_EQ(clSetMemObjectDestructorCallback(mem, proof_forget, NULL), CL_SUCCESS);
}

TEST(callback_memory,
     "A destructor callback of a memory object and the object take less than 4 KiB of memory.")
{
	EXPECT(proof_memory_of_buffer(proof_set_callback) < 4096);
}

static cl_mem destroyed[2];
static atomic_uint destroyed_count;

static void CL_CALLBACK proof_note_destroyed(cl_mem mem, void *unused)
{
	(void)unused;
	destroyed[atomic_fetch_add(&destroyed_count, 1) & 1] = mem;
}

TEST(callback_order, "The destructor callback of a sub-buffer comes before that of its buffer.")
{
	const cl_buffer_region region = { 0, PAGE };
	const struct timespec ms = { 0, 1000000 };
	cl_mem whole, part;
	cl_int err;

	proof_open();
	whole = clCreateBuffer(context, CL_MEM_READ_WRITE, SIZE, NULL, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	part = clCreateSubBuffer(whole, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	EXPECT_EQ(clSetMemObjectDestructorCallback(whole, proof_note_destroyed, NULL), CL_SUCCESS);
	EXPECT_EQ(clSetMemObjectDestructorCallback(part, proof_note_destroyed, NULL), CL_SUCCESS);
	EXPECT_EQ(clReleaseMemObject(whole), CL_SUCCESS);
	EXPECT_EQ(atomic_load(&destroyed_count), 0);
	EXPECT_EQ(clReleaseMemObject(part), CL_SUCCESS);
	while (atomic_load(&destroyed_count) < 2)
		nanosleep(&ms, NULL); /* time: between two looks */
	EXPECT(destroyed[0] == part && destroyed[1] == whole);
}

TEST(image_1d_flags, "A read-only 1D image of a buffer that can be written is read-only.")
{
	const cl_image_format format = { CL_RGBA, CL_UNSIGNED_INT8 };
	cl_image_desc desc = { .image_type = CL_MEM_OBJECT_IMAGE1D_BUFFER, .image_width = WIDTH };
	cl_mem_flags flags = 0;
	cl_mem image;
	cl_int err;

	proof_open();
	desc.buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, SIZE, NULL, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	image = clCreateImage(context, CL_MEM_READ_ONLY, &format, &desc, NULL, &err);
	if (err)
		test_skip("the driver makes no 1D image of a buffer: error %d", err);
	EXPECT_EQ(clGetMemObjectInfo(image, CL_MEM_FLAGS, sizeof(flags), &flags, NULL), CL_SUCCESS);
	EXPECT_EQ(flags, CL_MEM_READ_ONLY);
}

TEST(image_1d_length, "A 1D image of a buffer that is longer than the buffer is an error.")
{
	const cl_image_format format = { CL_RGBA, CL_UNSIGNED_INT8 };
	cl_image_desc desc = { .image_type = CL_MEM_OBJECT_IMAGE1D_BUFFER,
			       .image_width = PAGE / 4 };
	cl_int err;

	proof_open();
	desc.buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, PAGE, NULL, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	clCreateImage(context, CL_MEM_READ_ONLY, &format, &desc, NULL, &err);
	if (err)
		test_skip("the driver makes no 1D image of a buffer: error %d", err);
	desc.image_width++;
	clCreateImage(context, CL_MEM_READ_ONLY, &format, &desc, NULL, &err);
	EXPECT(err < 0);
}

/* HEIGHT rows of a buffer, from ORIGIN on. */
static cl_mem proof_part(cl_mem whole)
{
	const cl_buffer_region region = { ORIGIN, HEIGHT * PITCH };
	cl_int err;
	cl_mem part = clCreateSubBuffer(whole, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &err);

	EXPECT_EQ(err, CL_SUCCESS);
	return part;
}

/* The first byte of the first pixel of an image on a sub-buffer whose bytes are @value. */
static void proof_expect_sub_buffer_image(cl_mem_object_type type, const char *name)
{
	static unsigned char memory[SIZE];
	const size_t items = WIDTH;
	cl_kernel kernel;
	cl_uint seen[WIDTH][4];
	cl_mem image, out;
	cl_int err;

	proof_open();
	memset(memory, 1, sizeof(memory));
	memset(memory + ORIGIN, 2, HEIGHT * PITCH);
	image = proof_image(proof_part(proof_host_buffer(memory, SIZE)), type,
			    type == CL_MEM_OBJECT_IMAGE2D ? PITCH : 0, &err);
	if (err)
		test_skip("the driver makes no image of a sub-buffer: error %d", err);
	out = clCreateBuffer(context, CL_MEM_WRITE_ONLY, sizeof(seen), NULL, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	kernel = proof_kernel(name);
	EXPECT_EQ(clSetKernelArg(kernel, 0, sizeof(image), &image), CL_SUCCESS);
	EXPECT_EQ(clSetKernelArg(kernel, 1, sizeof(out), &out), CL_SUCCESS);
	EXPECT_EQ(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL),
		  CL_SUCCESS);
	EXPECT_EQ(clEnqueueReadBuffer(queue, out, CL_TRUE, 0, sizeof(seen), seen, 0, NULL, NULL),
		  CL_SUCCESS);
	EXPECT_EQ(seen[0][0], 2);
}

/* Bytes of a row: at least a pixel more than the width, in units of the device's alignment. */
static size_t proof_row_pitch(void)
{
	cl_uint pixels = 0;

	clGetDeviceInfo(device, CL_DEVICE_IMAGE_PITCH_ALIGNMENT, sizeof(pixels), &pixels, NULL);
	if (!pixels)
		pixels = 1;
	return (WIDTH / pixels + 1) * pixels * 4;
}

/* A driver may abort. */
TEST(image_of_buffer, "A kernel can read a 2D image of a buffer.")
{
	const size_t items = WIDTH;
	cl_kernel kernel;
	cl_mem image, out;
	cl_int err;

	proof_open();
	image = proof_image(clCreateBuffer(context, CL_MEM_READ_ONLY, SIZE, NULL, NULL),
			    CL_MEM_OBJECT_IMAGE2D, proof_row_pitch(), &err);
	if (err)
		test_skip("the driver makes no image of a buffer: error %d", err);
	out = clCreateBuffer(context, CL_MEM_WRITE_ONLY, SIZE, NULL, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	kernel = proof_kernel("row");
	EXPECT_EQ(clSetKernelArg(kernel, 0, sizeof(image), &image), CL_SUCCESS);
	EXPECT_EQ(clSetKernelArg(kernel, 1, sizeof(out), &out), CL_SUCCESS);
	EXPECT_EQ(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL),
		  CL_SUCCESS);
	EXPECT_EQ(clFinish(queue), CL_SUCCESS);
}

TEST(image_shows_writes, "A kernel sees in a 2D image of a buffer what is written to the buffer.")
{
	const cl_uint before = 0x01010101, after = 0x02020202;
	const size_t items = WIDTH;
	cl_uint seen[WIDTH][4];
	cl_mem buffer, image, out;
	cl_kernel kernel;
	cl_int err;

	proof_open();
	buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, SIZE, NULL, NULL);
	image = proof_image(buffer, CL_MEM_OBJECT_IMAGE2D, proof_row_pitch(), &err);
	if (err)
		test_skip("the driver makes no image of a buffer: error %d", err);
	out = clCreateBuffer(context, CL_MEM_WRITE_ONLY, sizeof(seen), NULL, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	kernel = proof_kernel("row");
	EXPECT_EQ(clSetKernelArg(kernel, 0, sizeof(image), &image), CL_SUCCESS);
	EXPECT_EQ(clSetKernelArg(kernel, 1, sizeof(out), &out), CL_SUCCESS);
	for (int turn = 0; turn < 2; turn++) {
		EXPECT_EQ(clEnqueueFillBuffer(queue, buffer, turn ? &after : &before, 4, 0, SIZE, 0,
					      NULL, NULL),
			  CL_SUCCESS);
		EXPECT_EQ(
			clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL),
			CL_SUCCESS);
		EXPECT_EQ(clEnqueueReadBuffer(queue, out, CL_TRUE, 0, sizeof(seen), seen, 0, NULL,
					      NULL),
			  CL_SUCCESS);
		EXPECT_EQ(seen[0][0], turn + 1);
		EXPECT_EQ(seen[WIDTH - 1][3], turn + 1);
	}
}

/* The first byte that a kernel reads of an image of a read-only buffer, and writes through another buffer before. */
static cl_uint proof_read_through(void *memory)
{
	const cl_mem_flags flags = CL_MEM_READ_ONLY | CL_MEM_USE_HOST_PTR;
	cl_mem buffer = proof_host_buffer(memory, SIZE), image, out;
	cl_kernel kernel = proof_kernel("through");
	cl_uint seen[4] = { 0 };
	const size_t one = 1;
	cl_int err;

	image = proof_image(clCreateBuffer(context, flags, SIZE, memory, NULL),
			    CL_MEM_OBJECT_IMAGE2D, proof_row_pitch(), &err);
	if (err)
		test_skip("the driver makes no image of such a buffer: error %d", err);
	out = clCreateBuffer(context, CL_MEM_WRITE_ONLY, sizeof(seen), NULL, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	EXPECT_EQ(clSetKernelArg(kernel, 0, sizeof(buffer), &buffer), CL_SUCCESS);
	EXPECT_EQ(clSetKernelArg(kernel, 1, sizeof(image), &image), CL_SUCCESS);
	EXPECT_EQ(clSetKernelArg(kernel, 2, sizeof(out), &out), CL_SUCCESS);
	EXPECT_EQ(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &one, &one, 0, NULL, NULL),
		  CL_SUCCESS);
	EXPECT_EQ(clEnqueueReadBuffer(queue, out, CL_TRUE, 0, sizeof(seen), seen, 0, NULL, NULL),
		  CL_SUCCESS);
	return seen[0];
}

TEST(read_only_image,
     "An image of a read-only buffer within a page has the memory itself, as one at a page has.")
{
	static unsigned char memory[2][PAGE + SIZE] __attribute__((aligned(PAGE)));

	proof_open();
	if (proof_read_through(memory[0]) != 7)
		test_skip("the device does not show in an image what the kernel writes");
	EXPECT_EQ(proof_read_through(memory[1] + 64), 7);
}

TEST(image_of_sub_buffer, "A 2D image on a sub-buffer begins at the sub-buffer's origin.")
{
	proof_expect_sub_buffer_image(CL_MEM_OBJECT_IMAGE2D, "row");
}

TEST(image_1d_of_sub_buffer, "A 1D image on a sub-buffer begins at the sub-buffer's origin.")
{
	proof_expect_sub_buffer_image(CL_MEM_OBJECT_IMAGE1D_BUFFER, "row1");
}

TEST(tight_rows, "An image of a buffer has rows without gaps.")
{
	cl_int err;
	cl_mem mem;

	proof_open();
	mem = clCreateBuffer(context, CL_MEM_READ_ONLY, SIZE, NULL, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	proof_image(mem, CL_MEM_OBJECT_IMAGE2D, 0, &err);
	EXPECT_EQ(err, CL_SUCCESS);
}

TEST(short_rows, "An image on a buffer with rows shorter than the width is an error.")
{
	cl_int err;
	cl_mem mem;

	proof_open();
	mem = clCreateBuffer(context, CL_MEM_READ_ONLY, SIZE, NULL, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	proof_image(mem, CL_MEM_OBJECT_IMAGE2D, WIDTH * 2, &err);
	EXPECT(err != CL_SUCCESS);
}

/* Copies of all pixels of an image, and of as many bytes of a buffer. */
static const size_t origin[3], pixels[3] = { WIDTH, HEIGHT, 1 }, bytes[3] = { ROW, HEIGHT, 1 };

/* The bytes of each buffer that a copy reads.  Those of buffers that are written are 0 before. */
static unsigned char proof_bytes[SIZE];

static cl_mem proof_source(void)
{
	for (size_t i = 0; i < SIZE; i++)
		proof_bytes[i] = (unsigned char)(1 + i % 251);
	return proof_host_buffer(proof_bytes, SIZE);
}

static cl_mem proof_target(void)
{
	static unsigned char memory[SIZE];

	return proof_host_buffer(memory, SIZE);
}

static cl_mem proof_image_2d(cl_mem buffer)
{
	cl_int err;
	cl_mem image = proof_image(buffer, CL_MEM_OBJECT_IMAGE2D, buffer ? PITCH : 0, &err);

	if (err)
		test_skip("the driver makes no such image: error %d", err);
	return image;
}

/* A plain image with the bytes of proof_source(). */
static cl_mem proof_image_source(void)
{
	cl_mem image = proof_image_2d(NULL);

	proof_source();
	EXPECT_EQ(clEnqueueWriteImage(queue, image, CL_TRUE, origin, pixels, PITCH, 0, proof_bytes,
				      0, NULL, NULL),
		  CL_SUCCESS);
	return image;
}

/* Rows of @pitch bytes hold the rows of @from_pitch bytes that begin with @from. */
static void proof_expect_rows(const unsigned char *rows, size_t pitch, size_t from,
			      size_t from_pitch)
{
	for (int y = 0; y < HEIGHT; y++)
		EXPECT(!memcmp(rows + y * pitch, proof_bytes + from + y * from_pitch, ROW));
}

static void proof_expect_in_buffer(cl_mem to, size_t at, size_t pitch, size_t from,
				   size_t from_pitch)
{
	static unsigned char seen[SIZE];

	proof_read(to, seen, SIZE);
	proof_expect_rows(seen + at, pitch, from, from_pitch);
}

static void proof_expect_in_image(cl_mem to, size_t from, size_t from_pitch)
{
	static unsigned char seen[HEIGHT * ROW];

	EXPECT_EQ(clEnqueueReadImage(queue, to, CL_TRUE, origin, pixels, 0, 0, seen, 0, NULL, NULL),
		  CL_SUCCESS);
	proof_expect_rows(seen, ROW, from, from_pitch);
}

TEST(copy_rect_of_sub_buffer, "A copy of rows of a sub-buffer goes where the program says.")
{
	cl_mem to;

	proof_open();
	to = proof_target();
	EXPECT_EQ(clEnqueueCopyBufferRect(queue, proof_part(proof_source()), to, origin, origin,
					  bytes, PITCH, 0, PITCH, 0, 0, NULL, NULL),
		  CL_SUCCESS);
	proof_expect_in_buffer(to, 0, PITCH, ORIGIN, PITCH);
}

TEST(copy_sub_buffer_to_image, "A copy to an image begins at the origin of the sub-buffer.")
{
	cl_mem to;

	proof_open();
	to = proof_image_2d(NULL);
	EXPECT_EQ(clEnqueueCopyBufferToImage(queue, proof_part(proof_source()), to, 0, origin,
					     pixels, 0, NULL, NULL),
		  CL_SUCCESS);
	proof_expect_in_image(to, ORIGIN, ROW);
}

TEST(copy_to_image_of_buffer, "A copy of a buffer to an image of a buffer writes all pixels.")
{
	cl_mem to;

	proof_open();
	to = proof_target();
	EXPECT_EQ(clEnqueueCopyBufferToImage(queue, proof_source(), proof_image_2d(to), 0, origin,
					     pixels, 0, NULL, NULL),
		  CL_SUCCESS);
	proof_expect_in_buffer(to, 0, PITCH, 0, ROW);
}

TEST(copy_image_of_sub_buffer, "A copy of an image of a sub-buffer goes where the program says.")
{
	cl_mem to;

	proof_open();
	to = proof_target();
	EXPECT_EQ(clEnqueueCopyImageToBuffer(queue, proof_image_2d(proof_part(proof_source())), to,
					     origin, pixels, 0, 0, NULL, NULL),
		  CL_SUCCESS);
	proof_expect_in_buffer(to, 0, ROW, ORIGIN, PITCH);
}

TEST(copy_image_to_offset, "A copy of an image to a buffer begins at the byte that is named.")
{
	cl_mem to;

	proof_open();
	to = proof_target();
	EXPECT_EQ(clEnqueueCopyImageToBuffer(queue, proof_image_source(), to, origin, pixels,
					     ORIGIN, 0, NULL, NULL),
		  CL_SUCCESS);
	proof_expect_in_buffer(to, ORIGIN, ROW, 0, PITCH);
}

TEST(copy_image_of_buffer, "A copy of an image of a buffer has the image's rows.")
{
	cl_mem to;

	proof_open();
	to = proof_image_2d(NULL);
	EXPECT_EQ(clEnqueueCopyImage(queue, proof_image_2d(proof_source()), to, origin, origin,
				     pixels, 0, NULL, NULL),
		  CL_SUCCESS);
	proof_expect_in_image(to, 0, PITCH);
}

TEST(copy_image_to_image_of_buffer, "A copy to an image of a buffer goes to the image's rows.")
{
	cl_mem to;

	proof_open();
	to = proof_target();
	EXPECT_EQ(clEnqueueCopyImage(queue, proof_image_source(), proof_image_2d(to), origin,
				     origin, pixels, 0, NULL, NULL),
		  CL_SUCCESS);
	proof_expect_in_buffer(to, 0, PITCH, 0, PITCH);
}

enum { THREADS = 8, TURNS = 100, ROUNDS = 10 };

struct proof_thread {
	pthread_t thread;
	cl_command_queue queue;
	cl_kernel kernel;
	unsigned char *memory; /* a page */
};

static void *proof_use_buffers(void *arg)
{
	const struct proof_thread *t = arg;
	const cl_uchar one = 1;
	const size_t items = 256;

	for (int turn = 0; turn < TURNS; turn++) {
		cl_mem mem = proof_host_buffer(t->memory, PAGE);

		EXPECT_EQ(clSetKernelArg(t->kernel, 0, sizeof(mem), &mem), CL_SUCCESS);
		EXPECT_EQ(clSetKernelArg(t->kernel, 1, sizeof(one), &one), CL_SUCCESS);
		EXPECT_EQ(clEnqueueNDRangeKernel(t->queue, t->kernel, 1, NULL, &items, NULL, 0,
						 NULL, NULL),
			  CL_SUCCESS);
		EXPECT_EQ(clFinish(t->queue), CL_SUCCESS);
		EXPECT_EQ(clReleaseMemObject(mem), CL_SUCCESS);
	}
	return NULL;
}

TEST(threads, "Eight threads make buffers and run kernels, each in a queue of its own.")
{
	static unsigned char memory[THREADS][PAGE] __attribute__((aligned(PAGE)));
	struct proof_thread threads[THREADS];
	cl_int err;

	proof_open();
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < THREADS; i++) {
			struct proof_thread *t = &threads[i];

			*t = (struct proof_thread){ .kernel = proof_kernel("add"),
						    .memory = memory[i] };
			t->queue = clCreateCommandQueue(context, device, 0, &err);
			EXPECT_EQ(err, CL_SUCCESS);
			EXPECT_EQ(pthread_create(&t->thread, NULL, proof_use_buffers, t), 0);
		}
		for (int i = 0; i < THREADS; i++) {
			EXPECT_EQ(pthread_join(threads[i].thread, NULL), 0);
			clReleaseKernel(threads[i].kernel);
			clReleaseCommandQueue(threads[i].queue);
		}
	}
}
