/* SPDX-License-Identifier: Apache-2.0 */
/* Images of buffers in place: the driver makes images of other memory, and commands copy. */
#include "in_place.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

static const struct image_kind {
	const char *name;
	cl_image_desc desc;
	size_t offset; /* of the buffer in a page */
} image_kinds[] = {
	{ "1d", { .image_type = CL_MEM_OBJECT_IMAGE1D_BUFFER, .image_width = 16 }, 0 },
	{ "1d_within", { .image_type = CL_MEM_OBJECT_IMAGE1D_BUFFER, .image_width = 16 }, ALIGN },
	{ "2d",
	  { .image_type = CL_MEM_OBJECT_IMAGE2D,
	    .image_width = 4,
	    .image_height = 4,
	    .image_row_pitch = 64 },
	  0 },
};

static const size_t image_origin[3], image_pixel[3] = { 1, 1, 1 };

/* A buffer in place of 1000 bytes, and an image of the buffer. */
static struct image_set {
	unsigned char *p;
	cl_mem mem, image;
} set;

static cl_mem in_place_image_try(const struct image_kind *kind, cl_mem_flags flags, cl_mem mem,
				 cl_int *err)
{
	const cl_image_format format = { CL_RGBA, CL_UNSIGNED_INT8 };
	cl_image_desc desc = kind->desc;

	desc.mem_object = mem;
	return cl.clCreateImage(fix.context, flags, &format, &desc, NULL, err);
}

static void in_place_image_open(const struct image_kind *kind, cl_mem_flags flags)
{
	cl_int err = 1;

	in_place_reset();
	stub_set(STUB_IMAGE2D_FROM_BUFFER, 1);
	fixture_open();
	set.p = pages_map(1) + kind->offset;
	set.mem = test_in_place_create(CL_MEM_READ_WRITE, set.p, 1000);
	EXPECT(test_in_place_is(set.mem, set.p));
	set.image = in_place_image_try(kind, flags, set.mem, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	EXPECT_EQ(fix.notices, 0);
	memset(set.p, 5, 1000);
}

static void in_place_image_close(void)
{
	cl.clReleaseMemObject(set.image);
	cl.clReleaseMemObject(set.mem);
	in_place_close();
}

TEST_EACH(image_kernels, struct image_kind, image_kinds,
	  "A kernel on an image of a buffer in place reads and writes the program's memory.")
{
	in_place_image_open(row, CL_MEM_READ_WRITE);
	fixture_increment(set.image);
	EXPECT_EQ(set.p[0], 6);
	EXPECT_EQ(set.p[1], 5);
	EXPECT_EQ(set.p[999], 5);
	fixture_increment(set.mem);
	fixture_increment(set.image);
	EXPECT_EQ(set.p[0], 8);
	in_place_image_close();
}

static cl_int in_place_image_read(void *bytes, cl_event *event)
{
	return cl.clEnqueueReadImage(fix.queue, set.image, !event, image_origin, image_pixel, 0, 0,
				     bytes, 0, NULL, event);
}

static cl_int in_place_image_write(void *bytes, cl_event *event)
{
	return cl.clEnqueueWriteImage(fix.queue, set.image, !event, image_origin, image_pixel, 0, 0,
				      bytes, 0, NULL, event);
}

static cl_int in_place_image_fill(void *bytes, cl_event *event)
{
	const unsigned char *b = bytes;
	const cl_uint color[4] = { b[0], b[1], b[2], b[3] };

	return cl.clEnqueueFillImage(fix.queue, set.image, color, image_origin, image_pixel, 0,
				     NULL, event);
}

static const struct image_command {
	const char *name, *function;
	cl_int (*run)(void *bytes, cl_event *event);
	unsigned char memory, bytes; /* afterwards */
} image_commands[] = {
	{ "read", "clEnqueueReadImage", in_place_image_read, 5, 5 },
	{ "write", "clEnqueueWriteImage", in_place_image_write, 9, 9 },
	{ "fill", "clEnqueueFillImage", in_place_image_fill, 9, 9 },
};

static cl_command_type in_place_image_event_type(cl_event event)
{
	cl_command_type type = 0;

	EXPECT_EQ(cl.clGetEventInfo(event, CL_EVENT_COMMAND_TYPE, sizeof(type), &type, NULL),
		  CL_SUCCESS);
	return type;
}

TEST_EACH_PAIR(image_commands, struct image_kind, image_kinds, struct image_command, image_commands,
	       "The host's commands on an image work on the program's memory, before their events, "
	       "which have the commands' types.")
{
	unsigned char bytes[4] = { 9, 9, 9, 9 };
	cl_event event = NULL;

	in_place_image_open(row, 0);
	EXPECT_EQ(column->run(bytes, &event), CL_SUCCESS);
	EXPECT_EQ(cl.clWaitForEvents(1, &event), CL_SUCCESS);
	EXPECT_EQ(set.p[0], column->memory);
	EXPECT_EQ(set.p[4], 5);
	EXPECT_EQ(bytes[0], column->bytes);
	EXPECT(in_place_image_event_type(event) != CL_COMMAND_COPY_BUFFER);
	cl.clReleaseEvent(event);
	EXPECT_EQ(column->run(bytes, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(fix.queue), CL_SUCCESS);
	EXPECT_EQ(set.p[0], column->memory);
	in_place_image_close();
}

TEST_EACH(image_command_fails, struct image_command, image_commands,
	  "If the driver refuses a command on an image, the memory is as before, and the next "
	  "command "
	  "works.")
{
	unsigned char bytes[4] = { 9, 9, 9, 9 };

	in_place_image_open(&image_kinds[0], 0);
	stub_fail(row->function, 1, CL_OUT_OF_RESOURCES);
	EXPECT_EQ(row->run(bytes, NULL), CL_OUT_OF_RESOURCES);
	EXPECT_EQ(cl.clFinish(fix.queue), CL_SUCCESS);
	EXPECT_EQ(set.p[0], 5);
	EXPECT_EQ(row->run(bytes, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(fix.queue), CL_SUCCESS);
	EXPECT_EQ(set.p[0], row->memory);
	in_place_image_close();
}

static const struct image_flags {
	const char *name;
	cl_mem_flags flags;
} image_flags[] = { { "read_only", CL_MEM_READ_ONLY }, { "read_write", 0 } };

TEST_EACH(image_reads, struct image_flags, image_flags,
	  "A read of an image copies nothing to the program's memory.")
{
	unsigned char bytes[4] = { 0 };
	unsigned long before;

	in_place_image_open(&image_kinds[0], row->flags);
	before = stub_calls("clEnqueueCopyBuffer");
	EXPECT_EQ(in_place_image_read(bytes, NULL), CL_SUCCESS);
	EXPECT_EQ(bytes[0], 5);
	EXPECT_EQ(stub_calls("clEnqueueCopyBuffer"), before + 1);
	in_place_image_close();
}

TEST(image_read_only, "A kernel on a read-only image copies nothing to the program's memory.")
{
	unsigned long before;

	in_place_image_open(&image_kinds[0], CL_MEM_READ_ONLY);
	before = stub_calls("clEnqueueCopyBuffer");
	fixture_increment(set.image);
	EXPECT_EQ(stub_calls("clEnqueueCopyBuffer"), before + 1);
	EXPECT_EQ(set.p[0], 5);
	in_place_image_close();
}

/* A buffer of the driver's with @value in each byte. */
static cl_mem in_place_image_partner(unsigned char value)
{
	cl_int err = 1;
	cl_mem mem = cl.clCreateBuffer(fix.context, 0, 64, NULL, &err);

	EXPECT_EQ(err, CL_SUCCESS);
	EXPECT_EQ(cl.clEnqueueFillBuffer(fix.queue, mem, &value, 1, 0, 64, 0, NULL, NULL),
		  CL_SUCCESS);
	return mem;
}

static cl_int in_place_image_copy_from_buffer(void *bytes, cl_event *event)
{
	cl_mem partner = in_place_image_partner(*(unsigned char *)bytes);
	cl_int err = cl.clEnqueueCopyBufferToImage(fix.queue, partner, set.image, 0, image_origin,
						   image_pixel, 0, NULL, event);

	cl.clReleaseMemObject(partner);
	return err;
}

/* "CL_MEM_READ_ONLY [...] a read-only memory object when used inside a kernel". */
static const struct image_command image_writes[] = {
	{ "write", "clEnqueueWriteImage", in_place_image_write, 9, 9 },
	{ "fill", "clEnqueueFillImage", in_place_image_fill, 9, 9 },
	{ "copy", "clEnqueueCopyBufferToImage", in_place_image_copy_from_buffer, 9, 9 },
};

TEST_EACH(image_read_only_written, struct image_command, image_writes,
	  "What the host or a copy writes to a read-only image is in the program's memory, and in "
	  "the "
	  "image.")
{
	unsigned char bytes[4] = { 9, 9, 9, 9 };

	in_place_image_open(&image_kinds[0], CL_MEM_READ_ONLY);
	EXPECT_EQ(row->run(bytes, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(fix.queue), CL_SUCCESS);
	EXPECT_EQ(set.p[0], row->memory);
	memset(bytes, 0, sizeof(bytes));
	EXPECT_EQ(in_place_image_read(bytes, NULL), CL_SUCCESS);
	EXPECT_EQ(bytes[0], row->bytes);
	in_place_image_close();
}

/* The copy that the driver refuses. */
static const struct image_fault {
	const char *name;
	unsigned long nth;
} image_faults[] = { { "before", 1 }, { "behind", 2 } };

TEST_EACH_PAIR(
	image_copy_fails, struct image_fault, image_faults, struct image_command, image_writes,
	"If the driver refuses a copy before or behind a command, the command is an error, and "
	"the next command works.")
{
	unsigned char bytes[4] = { 9, 9, 9, 9 };
	cl_event event = NULL;

	in_place_image_open(&image_kinds[0], 0);
	stub_fail("clEnqueueCopyBuffer", row->nth, CL_OUT_OF_RESOURCES);
	EXPECT_EQ(column->run(bytes, &event), CL_OUT_OF_RESOURCES);
	EXPECT(!event);
	EXPECT_EQ(cl.clFinish(fix.queue), CL_SUCCESS);
	EXPECT_EQ(set.p[0], 5);
	memset(bytes, 9, sizeof(bytes));
	EXPECT_EQ(column->run(bytes, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(fix.queue), CL_SUCCESS);
	EXPECT_EQ(set.p[0], column->memory);
	in_place_image_close();
}

TEST(image_read_copy_fails, "If the driver refuses the copy before a read, the read is an error.")
{
	unsigned char bytes[4] = { 9, 9, 9, 9 };

	in_place_image_open(&image_kinds[0], 0);
	stub_fail("clEnqueueCopyBuffer", 1, CL_OUT_OF_RESOURCES);
	EXPECT_EQ(in_place_image_read(bytes, NULL), CL_OUT_OF_RESOURCES);
	EXPECT_EQ(bytes[0], 9);
	EXPECT_EQ(in_place_image_read(bytes, NULL), CL_SUCCESS);
	EXPECT_EQ(bytes[0], 5);
	in_place_image_close();
}

TEST_EACH(image_own_buffer, struct image_kind, image_kinds,
	  "A copy between a 1D image and its own buffer is CL_INVALID_MEM_OBJECT, as in OpenCL.")
{
	const cl_int expected =
		row->desc.image_type == CL_MEM_OBJECT_IMAGE2D ? CL_SUCCESS : CL_INVALID_MEM_OBJECT;

	in_place_image_open(row, 0);
	EXPECT_EQ(cl.clEnqueueCopyImageToBuffer(fix.queue, set.image, set.mem, image_origin,
						image_pixel, 512, 0, NULL, NULL),
		  expected);
	EXPECT_EQ(cl.clEnqueueCopyBufferToImage(fix.queue, set.mem, set.image, 512, image_origin,
						image_pixel, 0, NULL, NULL),
		  expected);
	EXPECT_EQ(cl.clFinish(fix.queue), CL_SUCCESS);
	EXPECT_EQ(set.p[0], 5);
	in_place_image_close();
}

static atomic_int image_status; /* of the callback; 0: none yet */

static void CL_CALLBACK in_place_image_told(cl_event event, cl_int status, void *unused)
{
	(void)event, (void)unused;
	atomic_store(&image_status, status);
}

TEST(image_kernel_fails,
     "The event of a kernel that fails on an image has the kernel's status, and so has the event's "
     "callback.")
{
	cl_kernel kernel;
	cl_event event = NULL;

	in_place_image_open(&image_kinds[0], 0);
	kernel = fixture_create_increment(set.image);
	stub_set(STUB_KERNEL_FAIL, CL_OUT_OF_RESOURCES);
	EXPECT_EQ(fixture_enqueue(fix.queue, kernel, 0, NULL, &event), CL_SUCCESS);
	atomic_store(&image_status, 0);
	EXPECT_EQ(cl.clSetEventCallback(event, CL_COMPLETE, in_place_image_told, NULL), CL_SUCCESS);
	EXPECT(cl.clWaitForEvents(1, &event));
	EXPECT_EQ(fixture_event_status(event), CL_OUT_OF_RESOURCES);
	while (!atomic_load(&image_status))
		sched_yield();
	EXPECT_EQ(atomic_load(&image_status), CL_OUT_OF_RESOURCES);
	cl.clReleaseEvent(event);
	cl.clReleaseKernel(kernel);
	in_place_image_close();
}

TEST(image_events,
     "Kernels on an image and a buffer in place leave no event, also where a GPU's cache is "
     "invalidated before kernels.")
{
	const cl_uint width = 16;
	cl_kernel kernel;
	unsigned char *p;
	cl_mem mem;

	in_place_reset();
	stub_set(STUB_OPAQUE_CACHED, 1);
	fixture_open();
	p = pages_map(2);
	set.mem = test_in_place_create(CL_MEM_READ_WRITE, p, 1000);
	mem = test_in_place_create(CL_MEM_READ_WRITE, p + PAGE, 1000);
	set.image = in_place_image_try(&image_kinds[0], 0, set.mem, &(cl_int){ 0 });
	kernel = fixture_create_kernel("image1d_to_buffer");
	EXPECT_EQ(cl.clSetKernelArg(kernel, 0, sizeof(set.image), &set.image), CL_SUCCESS);
	EXPECT_EQ(cl.clSetKernelArg(kernel, 1, sizeof(mem), &mem), CL_SUCCESS);
	EXPECT_EQ(cl.clSetKernelArg(kernel, 2, sizeof(width), &width), CL_SUCCESS);
	for (int i = 0; i < 10; i++) {
		cl_event event = NULL;

		EXPECT_EQ(fixture_enqueue(fix.queue, kernel, 0, NULL, i % 2 ? &event : NULL),
			  CL_SUCCESS);
		if (event)
			EXPECT_EQ(in_place_image_event_type(event), CL_COMMAND_NDRANGE_KERNEL);
		if (event)
			cl.clReleaseEvent(event);
	}
	EXPECT_EQ(cl.clFinish(fix.queue), CL_SUCCESS);
	cl.clReleaseKernel(kernel);
	cl.clReleaseMemObject(mem);
	in_place_image_close(); /* no object is left */
}

/* Not blocking: a cancelled thread may keep a driver's locks while the thread waits in the driver. */
static void *in_place_image_write_in_thread(void *bytes)
{
	cl_event event = NULL;

	EXPECT_EQ(in_place_image_write(bytes, &event), CL_SUCCESS);
	cl.clReleaseEvent(event);
	return NULL;
}

TEST(image_cancelled,
     "A thread that is cancelled while the driver enqueues a command on an image holds up no other "
     "thread.")
{
	unsigned char bytes[4] = { 9, 9, 9, 9 };
	pthread_t thread;

	in_place_image_open(&image_kinds[0], 0);
	stub_set(STUB_HANG_WRITE_IMAGE, 1);
	EXPECT_EQ(pthread_create(&thread, NULL, in_place_image_write_in_thread, bytes), 0);
	while (!stub_calls("clEnqueueWriteImage"))
		sched_yield();
	EXPECT_EQ(pthread_cancel(thread), 0);
	stub_set(STUB_HANG_WRITE_IMAGE, 0);
	EXPECT_EQ(pthread_join(thread, NULL), 0);
	EXPECT_EQ(in_place_image_fill(bytes, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(fix.queue), CL_SUCCESS);
	EXPECT_EQ(set.p[0], 9);
	in_place_image_close();
}

TEST(image_blocked,
     "A thread that the driver blocks in an enqueue on an image holds up no thread with another "
     "image, or with another queue.")
{
	unsigned char bytes[4] = { 9, 9, 9, 9 }, *p;
	cl_mem mem, image, first;
	cl_command_queue queue;
	pthread_t thread;
	cl_int err = 1;

#if defined(__clang__)
#if __has_feature(thread_sanitizer)
	test_skip("two queues use an image at once, which the thread sanitizer sees");
#endif
#endif
	in_place_image_open(&image_kinds[0], 0);
	p = pages_map(1);
	mem = test_in_place_create(CL_MEM_READ_WRITE, p, 1000);
	image = in_place_image_try(&image_kinds[0], 0, mem, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	queue = cl.clCreateCommandQueue(fix.context, fix.device[0], 0, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	stub_set(STUB_HANG_WRITE_IMAGE, 1);
	EXPECT_EQ(pthread_create(&thread, NULL, in_place_image_write_in_thread, bytes), 0);
	while (!stub_calls("clEnqueueWriteImage"))
		sched_yield();
	first = set.image;
	EXPECT_EQ(cl.clEnqueueReadImage(queue, first, CL_TRUE, image_origin, image_pixel, 0, 0,
					bytes, 0, NULL, NULL),
		  CL_SUCCESS);
	set.image = image;
	EXPECT_EQ(in_place_image_fill(bytes, NULL), CL_SUCCESS);
	set.image = first;
	stub_set(STUB_HANG_WRITE_IMAGE, 0);
	EXPECT_EQ(pthread_join(thread, NULL), 0);
	EXPECT_EQ(cl.clFinish(fix.queue), CL_SUCCESS);
	cl.clReleaseCommandQueue(queue);
	cl.clReleaseMemObject(image);
	cl.clReleaseMemObject(mem);
	in_place_image_close();
}

TEST(image_two, "Two images of a buffer see one another's writes, also in one kernel's arguments.")
{
	unsigned char bytes[4] = { 9, 9, 9, 9 };
	cl_int err = 1;
	cl_mem second;

	in_place_image_open(&image_kinds[0], 0);
	second = in_place_image_try(&image_kinds[2], 0, set.mem, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	EXPECT_EQ(in_place_image_write(bytes, NULL), CL_SUCCESS);
	fixture_increment(second);
	EXPECT_EQ(set.p[0], 10);
	EXPECT_EQ(cl.clEnqueueCopyImage(fix.queue, second, set.image, image_origin,
					(const size_t[]){ 5, 0, 0 }, image_pixel, 0, NULL, NULL),
		  CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(fix.queue), CL_SUCCESS);
	EXPECT_EQ(set.p[20], 10);
	cl.clReleaseMemObject(second);
	in_place_image_close();
}

static void *in_place_image_write_second(void *round)
{
	const unsigned char bytes[4] = { *(unsigned char *)round };
	const size_t second[3] = { 1, 0, 0 };

	EXPECT_EQ(cl.clEnqueueWriteImage(fix.queue, set.image, CL_TRUE, second, image_pixel, 0, 0,
					 bytes, 0, NULL, NULL),
		  CL_SUCCESS);
	return NULL;
}

TEST(image_threads, "Two threads write to an image on one queue, and no write is lost.")
{
	unsigned char round, bytes[4] = { 0 };
	pthread_t thread;

	in_place_image_open(&image_kinds[0], 0);
	for (round = 1; round < 200; round++) {
		EXPECT_EQ(pthread_create(&thread, NULL, in_place_image_write_second, &round), 0);
		bytes[0] = round;
		EXPECT_EQ(in_place_image_write(bytes, NULL), CL_SUCCESS);
		EXPECT_EQ(pthread_join(thread, NULL), 0);
		EXPECT_EQ(set.p[0], round);
		EXPECT_EQ(set.p[4], round);
	}
	in_place_image_close();
}

static atomic_bool image_goes;

/* The user event that the blocked command waits for, set by another thread. */
static void *in_place_image_go(void *go)
{
	EXPECT(process_settles(process_is_quiet, NULL)); /* the blocking write waits */
	atomic_store(&image_goes, true);
	EXPECT_EQ(cl.clSetUserEventStatus(go, CL_COMPLETE), CL_SUCCESS);
	return NULL;
}

TEST(image_blocking_fails, "A blocking write whose copy behind is refused returns when nothing "
			   "reads the program's memory "
			   "any more.")
{
	unsigned char bytes[4] = { 9, 9, 9, 9 };
	pthread_t thread;
	cl_event go;

	in_place_image_open(&image_kinds[0], 0);
	atomic_store(&image_goes, false);
	go = cl.clCreateUserEvent(fix.context, NULL);
	EXPECT_EQ(pthread_create(&thread, NULL, in_place_image_go, go), 0);
	stub_fail("clEnqueueCopyBuffer", 2, CL_OUT_OF_RESOURCES);
	EXPECT_EQ(cl.clEnqueueWriteImage(fix.queue, set.image, CL_TRUE, image_origin, image_pixel,
					 0, 0, bytes, 1, &go, NULL),
		  CL_OUT_OF_RESOURCES);
	EXPECT(atomic_load(&image_goes));
	EXPECT_EQ(pthread_join(thread, NULL), 0);
	cl.clReleaseEvent(go);
	EXPECT_EQ(cl.clFinish(fix.queue), CL_SUCCESS);
	in_place_image_close();
}

TEST_EACH(image_waits, struct image_kind, image_kinds,
	  "On an out-of-order queue the copies wait with the command for the command's list.")
{
	unsigned char bytes[4] = { 9, 9, 9, 9 };
	cl_command_queue queue;
	cl_event go, done;

	in_place_image_open(row, 0);
	queue = fixture_create_queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
	go = cl.clCreateUserEvent(fix.context, NULL);
	EXPECT_EQ(cl.clEnqueueWriteImage(queue, set.image, CL_FALSE, image_origin, image_pixel, 0,
					 0, bytes, 1, &go, &done),
		  CL_SUCCESS);
	EXPECT_EQ(cl.clFlush(queue), CL_SUCCESS);
	set.p[4] = 7; /* before the list is complete */
	EXPECT_EQ(set.p[0], 5);
	EXPECT_EQ(cl.clSetUserEventStatus(go, CL_COMPLETE), CL_SUCCESS);
	EXPECT_EQ(cl.clWaitForEvents(1, &done), CL_SUCCESS);
	EXPECT_EQ(set.p[0], 9);
	EXPECT_EQ(set.p[4], 7);
	cl.clReleaseEvent(go);
	cl.clReleaseEvent(done);
	cl.clReleaseCommandQueue(queue);
	in_place_image_close();
}

TEST_EACH(image_mapped, struct image_kind, image_kinds,
	  "A map of an image is the program's memory, behind the commands before, and an unmap "
	  "leaves "
	  "what the program wrote.")
{
	const size_t origin[3] = { 1, row->desc.image_height ? 2 : 0, 0 };
	const size_t outside[3] = { row->desc.image_width, 0, 0 };
	size_t pitch = 0;
	unsigned char *pointer;
	cl_event event = NULL;
	cl_int err = 1;

	in_place_image_open(row, 0);
	fixture_increment(set.image);
	pointer = cl.clEnqueueMapImage(fix.queue, set.image, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE,
				       origin, image_pixel, &pitch, NULL, 0, NULL, &event, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	EXPECT_EQ(in_place_image_event_type(event), CL_COMMAND_MAP_IMAGE);
	cl.clReleaseEvent(event);
	EXPECT_EQ((size_t)pointer, (size_t)(set.p + 4 + (origin[1] ? 128 : 0)));
	EXPECT_EQ(pitch, 64);
	EXPECT_EQ(set.p[0], 6);
	*pointer = 77;
	EXPECT_EQ(cl.clEnqueueUnmapMemObject(fix.queue, set.image, pointer, 0, NULL, NULL),
		  CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(fix.queue), CL_SUCCESS);
	fixture_increment(set.image);
	EXPECT_EQ(*pointer, 77);
	EXPECT_EQ(set.p[0], 7);
	EXPECT(!cl.clEnqueueMapImage(fix.queue, set.image, CL_TRUE, CL_MAP_READ, outside,
				     image_pixel, &pitch, NULL, 0, NULL, NULL, &err));
	EXPECT_EQ(err, CL_INVALID_VALUE);
	in_place_image_close();
}

TEST_EACH(image_mapped_as_buffer, struct image_kind, image_kinds,
	  "clEnqueueMapBuffer takes no image: the error is the driver's, there is no pointer, and "
	  "the image has no map.")
{
	cl_uint count = 1;
	cl_int err = 1;

	in_place_image_open(row, 0);
	EXPECT(!cl.clEnqueueMapBuffer(fix.queue, set.image, CL_TRUE, CL_MAP_READ, 0, 16, 0, NULL,
				      NULL, &err));
	EXPECT_EQ(err, CL_INVALID_MEM_OBJECT);
	EXPECT_EQ(cl.clGetMemObjectInfo(set.image, CL_MEM_MAP_COUNT, sizeof(count), &count, NULL),
		  CL_SUCCESS);
	EXPECT_EQ(count, 0);
	EXPECT_EQ(cl.clEnqueueUnmapMemObject(fix.queue, set.image, set.p, 0, NULL, NULL),
		  CL_INVALID_VALUE);
	in_place_image_close();
}

TEST_EACH(image_queries, struct image_kind, image_kinds,
	  "Queries show the image's buffer, with the program's pointer and the buffer's flags.")
{
	cl_mem parent = NULL;

	in_place_image_open(row, CL_MEM_READ_ONLY);
	EXPECT_EQ(opaque_query_size(set.image, CL_MEM_FLAGS),
		  CL_MEM_READ_ONLY | CL_MEM_USE_HOST_PTR);
	EXPECT_EQ(opaque_query_size(set.image, CL_MEM_HOST_PTR), (size_t)set.p);
	EXPECT_EQ(opaque_query_size(set.image, CL_MEM_ASSOCIATED_MEMOBJECT), (size_t)set.mem);
	EXPECT_EQ(opaque_query_size(set.image, CL_MEM_OFFSET), 0);
	EXPECT_EQ(cl.clGetImageInfo(set.image, CL_IMAGE_BUFFER, sizeof(parent), &parent, NULL),
		  CL_SUCCESS);
	EXPECT_EQ((size_t)parent, (size_t)set.mem);
	in_place_image_close();
}

TEST(image_properties, "An image that was made with an empty list of properties has the list.")
{
	const cl_image_format format = { CL_RGBA, CL_UNSIGNED_INT8 };
	const cl_mem_properties none[] = { 0 };
	cl_image_desc desc = image_kinds[0].desc;
	cl_mem_properties found = 1;
	size_t size = 0;
	cl_mem image;

	in_place_image_open(&image_kinds[0], 0);
	desc.mem_object = set.mem;
	image = cl.clCreateImageWithProperties(fix.context, none, 0, &format, &desc, NULL, NULL);
	EXPECT(image);
	EXPECT_EQ(cl.clGetMemObjectInfo(image, CL_MEM_PROPERTIES, sizeof(found), &found, &size),
		  CL_SUCCESS);
	EXPECT_EQ(size, sizeof(found));
	EXPECT_EQ(found, 0);
	EXPECT_EQ(cl.clGetMemObjectInfo(set.image, CL_MEM_PROPERTIES, 0, NULL, &size), CL_SUCCESS);
	EXPECT_EQ(size, 0);
	cl.clReleaseMemObject(image);
	in_place_image_close();
}

TEST_EACH(image_outlives, struct image_kind, image_kinds,
	  "An image works after the program has released the buffer.")
{
	in_place_image_open(row, 0);
	EXPECT_EQ(cl.clReleaseMemObject(set.mem), CL_SUCCESS);
	fixture_increment(set.image);
	EXPECT_EQ(set.p[0], 6);
	EXPECT_EQ(cl.clReleaseMemObject(set.image), CL_SUCCESS);
	in_place_close();
}

TEST_EACH(image_of_part, struct image_kind, image_kinds,
	  "An image of a sub-buffer is an image of the sub-buffer's bytes.")
{
	const cl_buffer_region region = { ALIGN, 256 };
	cl_mem sub, image;
	cl_int err = 1;

	in_place_image_open(row, 0);
	sub = cl.clCreateSubBuffer(set.mem, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &err);
	image = in_place_image_try(row, 0, sub, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	cl.clReleaseMemObject(sub);
	fixture_increment(image);
	EXPECT_EQ(set.p[ALIGN], 6);
	EXPECT_EQ(set.p[0], 5);
	cl.clReleaseMemObject(image);
	in_place_image_close();
}

/* What the driver refuses. */
static const struct image_refusal {
	const char *name;
} image_refusals[] = { { "clGetMemObjectInfo" },
		       { "clCreateBuffer" },
		       { "clRetainMemObject" },
		       { "clCreateImage" } };

TEST_EACH(image_fails, struct image_refusal, image_refusals,
	  "If the driver refuses the image, or its memory, the error is the driver's, nothing is "
	  "left, "
	  "and the next image works.")
{
	cl_int err = 1;
	cl_mem image;
	long objects;

	in_place_image_open(&image_kinds[0], 0);
	cl.clReleaseMemObject(set.image);
	cl.clReleaseMemObject(set.mem);
	set.mem = test_in_place_create(CL_MEM_READ_WRITE, set.p, 1000);
	objects = stub_live(STUB_MEM);
	stub_fail(row->name, 1, CL_OUT_OF_RESOURCES);
	image = in_place_image_try(&image_kinds[0], 0, set.mem, &err);
	EXPECT(!image);
	EXPECT_EQ(err, CL_OUT_OF_RESOURCES);
	EXPECT_EQ(stub_live(STUB_MEM), objects);
	set.image = in_place_image_try(&image_kinds[0], 0, set.mem, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	fixture_increment(set.image);
	EXPECT_EQ(set.p[0], 6);
	in_place_image_close();
}

TEST(image_arguments, "An image that its buffer's flags or context exclude has OpenCL's error.")
{
	const cl_image_format format = { CL_RGBA, CL_UNSIGNED_INT8 };
	cl_image_desc desc = image_kinds[0].desc;
	cl_context context;
	cl_int err = 1;

	in_place_image_open(&image_kinds[0], 0);
	EXPECT(!in_place_image_try(&image_kinds[0], CL_MEM_USE_HOST_PTR, set.mem, &err));
	EXPECT_EQ(err, CL_INVALID_VALUE);
	context = cl.clCreateContext(NULL, 1, fix.device, NULL, NULL, &err);
	desc.mem_object = set.mem;
	EXPECT(!cl.clCreateImage(context, 0, &format, &desc, NULL, &err));
	EXPECT_EQ(err, CL_INVALID_CONTEXT);
	cl.clReleaseContext(context);
	in_place_image_close();
}
