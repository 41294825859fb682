/* SPDX-License-Identifier: Apache-2.0 */
/* The sixteen calls on imported memory, which are forbidden before version 1.1.0. */
#include "fixture.h"

#define SIZE 8192
#define UNTOUCHED ((cl_event)(uintptr_t)0x5a5a)

static const size_t origin[3], one_pixel[3] = { 1, 1, 1 }, four_bytes[3] = { 4, 1, 1 };
static unsigned char scratch[256];
static cl_mem plain, plain_image; /* the other side of copies */
static void *mapped;		  /* the pointer for an unmap */

typedef cl_int call_fn(cl_command_queue queue, cl_mem mem, cl_event *event);

static cl_int call_read_buffer(cl_command_queue queue, cl_mem mem, cl_event *event)
{
	return cl.clEnqueueReadBuffer(queue, mem, CL_TRUE, 0, 4, scratch, 0, NULL, event);
}

static cl_int call_read_rect(cl_command_queue queue, cl_mem mem, cl_event *event)
{
	return cl.clEnqueueReadBufferRect(queue, mem, CL_TRUE, origin, origin, four_bytes, 0, 0, 0,
					  0, scratch, 0, NULL, event);
}

static cl_int call_write_buffer(cl_command_queue queue, cl_mem mem, cl_event *event)
{
	return cl.clEnqueueWriteBuffer(queue, mem, CL_TRUE, 0, 4, scratch, 0, NULL, event);
}

static cl_int call_write_rect(cl_command_queue queue, cl_mem mem, cl_event *event)
{
	return cl.clEnqueueWriteBufferRect(queue, mem, CL_TRUE, origin, origin, four_bytes, 0, 0, 0,
					   0, scratch, 0, NULL, event);
}

static cl_int call_copy_from(cl_command_queue queue, cl_mem mem, cl_event *event)
{
	return cl.clEnqueueCopyBuffer(queue, mem, plain, 0, 0, 4, 0, NULL, event);
}

static cl_int call_copy_to(cl_command_queue queue, cl_mem mem, cl_event *event)
{
	return cl.clEnqueueCopyBuffer(queue, plain, mem, 0, 0, 4, 0, NULL, event);
}

static cl_int call_rect_from(cl_command_queue queue, cl_mem mem, cl_event *event)
{
	return cl.clEnqueueCopyBufferRect(queue, mem, plain, origin, origin, four_bytes, 0, 0, 0, 0,
					  0, NULL, event);
}

static cl_int call_rect_to(cl_command_queue queue, cl_mem mem, cl_event *event)
{
	return cl.clEnqueueCopyBufferRect(queue, plain, mem, origin, origin, four_bytes, 0, 0, 0, 0,
					  0, NULL, event);
}

static cl_int call_fill_buffer(cl_command_queue queue, cl_mem mem, cl_event *event)
{
	return cl.clEnqueueFillBuffer(queue, mem, scratch, 4, 0, 4, 0, NULL, event);
}

static cl_int call_map_buffer(cl_command_queue queue, cl_mem mem, cl_event *event)
{
	cl_int err = 1;

	mapped =
		cl.clEnqueueMapBuffer(queue, mem, CL_TRUE, CL_MAP_READ, 0, 4, 0, NULL, event, &err);
	EXPECT(!mapped == !!err);
	if (err)
		EXPECT(!cl.clEnqueueMapBuffer(queue, mem, CL_TRUE, CL_MAP_READ, 0, 4, 0, NULL,
					      event, NULL));
	return err;
}

static cl_int call_unmap(cl_command_queue queue, cl_mem mem, cl_event *event)
{
	return cl.clEnqueueUnmapMemObject(queue, mem, mapped ? mapped : scratch, 0, NULL, event);
}

static cl_int call_buffer_to_image(cl_command_queue queue, cl_mem mem, cl_event *event)
{
	return cl.clEnqueueCopyBufferToImage(queue, mem, plain_image, 0, origin, one_pixel, 0, NULL,
					     event);
}

static cl_int call_image_to_buffer(cl_command_queue queue, cl_mem mem, cl_event *event)
{
	return cl.clEnqueueCopyImageToBuffer(queue, plain_image, mem, origin, one_pixel, 0, 0, NULL,
					     event);
}

static cl_int call_read_image(cl_command_queue queue, cl_mem mem, cl_event *event)
{
	return cl.clEnqueueReadImage(queue, mem, CL_TRUE, origin, one_pixel, 0, 0, scratch, 0, NULL,
				     event);
}

static cl_int call_write_image(cl_command_queue queue, cl_mem mem, cl_event *event)
{
	return cl.clEnqueueWriteImage(queue, mem, CL_TRUE, origin, one_pixel, 0, 0, scratch, 0,
				      NULL, event);
}

static cl_int call_image_from(cl_command_queue queue, cl_mem mem, cl_event *event)
{
	return cl.clEnqueueCopyImage(queue, mem, plain_image, origin, origin, one_pixel, 0, NULL,
				     event);
}

static cl_int call_image_to(cl_command_queue queue, cl_mem mem, cl_event *event)
{
	return cl.clEnqueueCopyImage(queue, plain_image, mem, origin, origin, one_pixel, 0, NULL,
				     event);
}

static cl_int call_copy_from_image(cl_command_queue queue, cl_mem mem, cl_event *event)
{
	return cl.clEnqueueCopyImageToBuffer(queue, mem, plain, origin, one_pixel, 0, 0, NULL,
					     event);
}

static cl_int call_copy_to_image(cl_command_queue queue, cl_mem mem, cl_event *event)
{
	return cl.clEnqueueCopyBufferToImage(queue, plain, mem, 0, origin, one_pixel, 0, NULL,
					     event);
}

static cl_int call_fill_image(cl_command_queue queue, cl_mem mem, cl_event *event)
{
	return cl.clEnqueueFillImage(queue, mem, scratch, origin, one_pixel, 0, NULL, event);
}

static cl_int call_map_image(cl_command_queue queue, cl_mem mem, cl_event *event)
{
	size_t pitch = 0x5a, slice = 0x5a;
	cl_int err = 1;

	mapped = cl.clEnqueueMapImage(queue, mem, CL_TRUE, CL_MAP_READ, origin, one_pixel, &pitch,
				      &slice, 0, NULL, event, &err);
	EXPECT(!mapped == !!err);
	EXPECT_EQ(pitch == 0x5a && slice == 0x5a, !!err);
	return err;
}

static const struct call {
	const char *name, *function;
	call_fn *run;
} on_buffers[] = {
	{ "read_buffer", "clEnqueueReadBuffer", call_read_buffer },
	{ "read_rect", "clEnqueueReadBufferRect", call_read_rect },
	{ "write_buffer", "clEnqueueWriteBuffer", call_write_buffer },
	{ "write_rect", "clEnqueueWriteBufferRect", call_write_rect },
	{ "copy_from", "clEnqueueCopyBuffer", call_copy_from },
	{ "copy_to", "clEnqueueCopyBuffer", call_copy_to },
	{ "rect_from", "clEnqueueCopyBufferRect", call_rect_from },
	{ "rect_to", "clEnqueueCopyBufferRect", call_rect_to },
	{ "fill_buffer", "clEnqueueFillBuffer", call_fill_buffer },
	{ "buffer_to_image", "clEnqueueCopyBufferToImage", call_buffer_to_image },
	{ "image_to_buffer", "clEnqueueCopyImageToBuffer", call_image_to_buffer },
	{ "map_buffer", "clEnqueueMapBuffer", call_map_buffer },
	{ "unmap", "clEnqueueUnmapMemObject", call_unmap },
}, on_images[] = {
	{ "read_image", "clEnqueueReadImage", call_read_image },
	{ "write_image", "clEnqueueWriteImage", call_write_image },
	{ "image_from", "clEnqueueCopyImage", call_image_from },
	{ "image_to", "clEnqueueCopyImage", call_image_to },
	{ "copy_from_image", "clEnqueueCopyImageToBuffer", call_copy_from_image },
	{ "copy_to_image", "clEnqueueCopyBufferToImage", call_copy_to_image },
	{ "fill_image", "clEnqueueFillImage", call_fill_image },
	{ "map_image", "clEnqueueMapImage", call_map_image },
	{ "unmap", "clEnqueueUnmapMemObject", call_unmap },
};

static cl_mem image_on(cl_mem_object_type type, cl_mem buffer)
{
	return fixture_create_image(type, buffer, 16, 1, 0);
}

/* An import, a sub-buffer of the import, and images on both. */
static struct objects {
	cl_mem buffer[2], image[3];
} imports;

/* Indexes of imports.buffer and imports.image. */
static const struct object {
	const char *name;
	int index;
} buffers[] = { { "import", 0 }, { "sub_buffer", 1 } },
  images[] = { { "2d", 0 }, { "1d", 1 }, { "2d_on_sub_buffer", 2 } };

static void forbid_open(const char *version)
{
	fixture_reset();
	if (version)
		setenv("CLIMPORT_VERSION", version, 1);
	fixture_open();
	mapped = NULL;
	plain = cl.clCreateBuffer(fix.context, 0, SIZE, NULL, NULL);
	plain_image = image_on(CL_MEM_OBJECT_IMAGE2D, NULL);
	imports.buffer[0] = fixture_import_host(0, pages_map(2), SIZE);
	imports.buffer[1] = fixture_create_sub_buffer(imports.buffer[0], 4096, 4096);
	imports.image[0] = image_on(CL_MEM_OBJECT_IMAGE2D, imports.buffer[0]);
	imports.image[1] = image_on(CL_MEM_OBJECT_IMAGE1D_BUFFER, imports.buffer[0]);
	imports.image[2] = image_on(CL_MEM_OBJECT_IMAGE2D, imports.buffer[1]);
	fix.notices = 0;
}

static void forbid_close(void)
{
	for (int i = 2; i >= 0; i--)
		cl.clReleaseMemObject(imports.image[i]);
	cl.clReleaseMemObject(imports.buffer[1]);
	cl.clReleaseMemObject(imports.buffer[0]);
	cl.clReleaseMemObject(plain);
	cl.clReleaseMemObject(plain_image);
	fixture_close();
}

/*
 * The layer refuses the call and calls the context's callback.  The driver is not called, and no
 * memory changes.
 */
static void forbid_expect(const struct call *call, cl_mem mem)
{
	unsigned long reached = stub_calls(call->function);
	cl_event event = UNTOUCHED;
	unsigned notices = fix.notices;

	memset(scratch, 0xa5, sizeof(scratch));
	mapped = NULL;
	EXPECT_EQ(call->run(fix.queue, mem, &event), CL_INVALID_OPERATION);
	EXPECT(event == UNTOUCHED);
	EXPECT_EQ(stub_calls(call->function), reached);
	EXPECT(fix.notices > notices);
	EXPECT(strstr(fix.notice, call->function));
	for (size_t i = 0; i < sizeof(scratch); i++)
		EXPECT_EQ(scratch[i], 0xa5);
	EXPECT_EQ(call->run(fix.queue, mem, NULL), CL_INVALID_OPERATION);
}

TEST_EACH_PAIR(forbidden_buffer, struct call, on_buffers, struct object, buffers,
	       "An import and a sub-buffer of an import get CL_INVALID_OPERATION from a forbidden "
	       "call.")
{
	forbid_open(NULL);
	forbid_expect(row, imports.buffer[column->index]);
	forbid_close();
}

TEST_EACH_PAIR(forbidden_image, struct call, on_images, struct object, images,
	       "An image on an import gets CL_INVALID_OPERATION from a forbidden call.")
{
	forbid_open(NULL);
	forbid_expect(row, imports.image[column->index]);
	forbid_close();
}

static void expect_passes(const struct call *call, cl_mem mem)
{
	unsigned long reached = stub_calls(call->function);
	cl_event event = NULL;
	cl_int err = call->run(fix.queue, mem, &event);

	if (err)
		printf("# %s\n", call->function);
	EXPECT_EQ(err, CL_SUCCESS);
	EXPECT_EQ(stub_calls(call->function), reached + 1);
	EXPECT(event);
	EXPECT_EQ(cl.clWaitForEvents(1, &event), CL_SUCCESS);
	EXPECT_EQ(cl.clReleaseEvent(event), CL_SUCCESS);
}

/* An unmap needs a map before, and gets the pointer of the map. */
static void pass_after_map(const struct call *call, const struct call *map, cl_mem mem)
{
	if (call->run == call_unmap)
		expect_passes(map, mem);
	expect_passes(call, mem);
	EXPECT_EQ(fix.notices, 0);
}

static const struct call map_a_buffer = { "map_buffer", "clEnqueueMapBuffer", call_map_buffer },
			 map_an_image = { "map_image", "clEnqueueMapImage", call_map_image };

TEST_EACH_PAIR(allowed_buffer, struct call, on_buffers, struct object, buffers,
	       "From version 1.1.0 on, a call on an import or a sub-buffer reaches the driver.")
{
	forbid_open("1.1.0");
	pass_after_map(row, &map_a_buffer, imports.buffer[column->index]);
	forbid_close();
}

TEST_EACH_PAIR(allowed_image, struct call, on_images, struct object, images,
	       "From version 1.1.0 on, a call on an image on an import reaches the driver.")
{
	forbid_open("1.1.0");
	pass_after_map(row, &map_an_image, imports.image[column->index]);
	forbid_close();
}

TEST_EACH(plain_buffer, struct call, on_buffers,
	  "A call on an ordinary buffer reaches the driver while imports live.")
{
	cl_mem buffer;

	forbid_open(NULL);
	buffer = cl.clCreateBuffer(fix.context, 0, SIZE, NULL, NULL);
	pass_after_map(row, &map_a_buffer, buffer);
	cl.clReleaseMemObject(buffer);
	forbid_close();
}

TEST_EACH(plain_image, struct call, on_images,
	  "A call on an ordinary image reaches the driver while imports live.")
{
	cl_mem picture;

	forbid_open(NULL);
	picture = image_on(CL_MEM_OBJECT_IMAGE2D, NULL);
	pass_after_map(row, &map_an_image, picture);
	cl.clReleaseMemObject(picture);
	forbid_close();
}

static cl_command_queue no_queue(void)
{
	return NULL;
}

static cl_command_queue freed_queue(void)
{
	cl_command_queue freed = fixture_create_queue(0);

	cl.clReleaseCommandQueue(freed);
	return freed;
}

static cl_command_queue other_object(void)
{
	return (cl_command_queue)fix.context;
}

/* Handles that are no queue. */
static const struct wrong_queue {
	const char *name;
	cl_command_queue (*get)(void);
} wrong_queues[] = { { "null", no_queue }, { "freed", freed_queue }, { "context", other_object } };

static void forbid_expect_queue_error(const struct call *call, const struct wrong_queue *queue,
				      cl_mem mem)
{
	cl_event event = UNTOUCHED;

	EXPECT_EQ(call->run(queue->get(), mem, &event), CL_INVALID_COMMAND_QUEUE);
	EXPECT(event == UNTOUCHED);
}

TEST_EACH_PAIR(queue_of_buffer, struct call, on_buffers, struct wrong_queue, wrong_queues,
	       "A call on an import with a wrong queue gets CL_INVALID_COMMAND_QUEUE.")
{
	forbid_open(NULL);
	forbid_expect_queue_error(row, column, imports.buffer[0]);
	forbid_close();
}

TEST_EACH_PAIR(queue_of_image, struct call, on_images, struct wrong_queue, wrong_queues,
	       "A call on an image on an import with a wrong queue gets CL_INVALID_COMMAND_QUEUE.")
{
	forbid_open(NULL);
	forbid_expect_queue_error(row, column, imports.image[0]);
	forbid_close();
}

TEST(no_callback, "In a context without a callback, a forbidden call only returns the error.")
{
	unsigned char *memory;
	cl_command_queue queue;
	cl_context context;
	cl_mem mem;
	cl_int err;

	forbid_open(NULL);
	memory = pages_map(1);
	context = cl.clCreateContext(NULL, 1, fix.device, NULL, NULL, &err);
	queue = cl.clCreateCommandQueue(context, fix.device[0], 0, &err);
	mem = fix.import(context, 0, NULL, memory, 4096, &err);
	EXPECT_EQ(cl.clEnqueueReadBuffer(queue, mem, CL_TRUE, 0, 4, scratch, 0, NULL, NULL),
		  CL_INVALID_OPERATION);
	EXPECT_EQ(fix.notices, 0);
	cl.clReleaseMemObject(mem);
	cl.clReleaseCommandQueue(queue);
	cl.clReleaseContext(context);
	forbid_close();
}

TEST(not_in_the_list, "Kernels, markers and migrations of an import are not forbidden.")
{
	forbid_open(NULL);
	fixture_increment(imports.buffer[0]);
	EXPECT_EQ(cl.clEnqueueMigrateMemObjects(fix.queue, 1, imports.buffer, 0, 0, NULL, NULL),
		  CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(fix.queue), CL_SUCCESS);
	EXPECT_EQ(fix.notices, 0);
	forbid_close();
}
