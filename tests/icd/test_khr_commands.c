/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each command on dma-bufs by cl_khr_external_memory, in version 1.1.0: an acquire before, a release
 * behind, and what is left where the driver fails at one of the three.
 */
#include "access.h"

#include <sys/mman.h>
#include <unistd.h>

#define BEFORE 5 /* the first bytes of the imports */
#define HOST 7	 /* the first bytes of the host's memory */

/* Two imports of dma-bufs, and an image on the first. */
static struct commands {
	int fds[2];
	unsigned char *bytes[2];
	cl_mem mems[2], image, plain, plain_image;
	cl_kernel kernel;
	unsigned char host[64];
	cl_command_queue queue; /* of the commands, with their wait list */
	cl_uint num_wait;
	cl_event wait;
} set;

static void commands_open_buffer(int i, const char *name)
{
	set.fds[i] = fake_dmabuf_create(name, PAGE);
	set.bytes[i] = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, set.fds[i], 0);
	EXPECT(set.bytes[i] != MAP_FAILED);
	set.mems[i] = fixture_import_dmabuf(set.fds[i], PAGE);
}

static void commands_fill(void)
{
	memset(set.bytes[0], BEFORE, 64);
	memset(set.bytes[1], BEFORE, 64);
	memset(set.host, HOST, sizeof(set.host));
	EXPECT_EQ(cl.clEnqueueWriteBuffer(fix.queue, set.plain, CL_TRUE, 0, sizeof(set.host),
					  set.host, 0, NULL, NULL),
		  CL_SUCCESS);
	stub_trace_clear();
}

static void commands_open(void)
{
	cl_int err;

	fixture_reset();
	setenv("CLIMPORT_VERSION", "1.1.0", 1);
	fake_dmabuf_set_udmabuf(FAKE_UDMABUF);
	stub_set(STUB_COPYING, 1);
	stub_set(STUB_GPU, 1);
	stub_set(STUB_NO_NATIVE_KERNEL, 1);
	stub_set(STUB_KHR_DMABUF, STUB_KHR_WORKS);
	stub_set(STUB_IMAGE2D_FROM_BUFFER, 1);
	fixture_open();
	memset(&set, 0, sizeof(set));
	set.queue = fix.queue;
	commands_open_buffer(0, "a");
	commands_open_buffer(1, "b");
	set.image = fixture_try_image(0, set.mems[0], &err);
	EXPECT_EQ(err, CL_SUCCESS);
	set.plain = cl.clCreateBuffer(fix.context, 0, PAGE, NULL, &err);
	set.plain_image = fixture_create_image(CL_MEM_OBJECT_IMAGE2D, NULL, 4, 4, 0);
	set.kernel = fixture_create_increment(set.mems[0]);
	stub_set(STUB_NO_NATIVE_KERNEL, 0);
	commands_fill();
}

static void commands_close(void)
{
	stub_fail(NULL, 0, CL_SUCCESS);
	cl.clReleaseKernel(set.kernel);
	cl.clReleaseMemObject(set.plain_image);
	cl.clReleaseMemObject(set.plain);
	cl.clReleaseMemObject(set.image);
	for (int i = 0; i < 2; i++) {
		cl.clReleaseMemObject(set.mems[i]);
		munmap(set.bytes[i], PAGE);
		close(set.fds[i]);
	}
	fixture_close();
}

static const size_t origin[3], pixel[3] = { 1, 1, 1 }, four[3] = { 4, 1, 1 };

#define WAIT_LIST set.num_wait, set.num_wait ? &set.wait : NULL

static cl_int commands_run_kernel(cl_event *event)
{
	return fixture_enqueue(set.queue, set.kernel, WAIT_LIST, event);
}

static cl_int commands_run_task(cl_event *event)
{
	return cl.clEnqueueTask(set.queue, set.kernel, WAIT_LIST, event);
}

static cl_int commands_run_count_kernel(cl_event *event)
{
	const size_t one = 1;

	return access_find_count_function()(set.queue, set.kernel, 1, NULL, &one, &one, WAIT_LIST,
					    event);
}

static void CL_CALLBACK commands_increment(void *args)
{
	(**(unsigned char **)args)++;
}

static cl_int commands_run_native(cl_event *event)
{
	void *args[1] = { NULL };
	const void *where = &args[0];

	return cl.clEnqueueNativeKernel(set.queue, commands_increment, args, sizeof(args), 1,
					&set.mems[0], &where, WAIT_LIST, event);
}

static cl_int commands_read(cl_bool blocking, cl_event *event)
{
	return cl.clEnqueueReadBuffer(set.queue, set.mems[0], blocking, 0, 4, set.host, WAIT_LIST,
				      event);
}

static cl_int commands_run_read(cl_event *event)
{
	return commands_read(CL_FALSE, event);
}

static cl_int commands_run_read_blocking(cl_event *event)
{
	return commands_read(CL_TRUE, event);
}

static cl_int commands_run_read_rect(cl_event *event)
{
	return cl.clEnqueueReadBufferRect(set.queue, set.mems[0], CL_FALSE, origin, origin, four, 0,
					  0, 0, 0, set.host, WAIT_LIST, event);
}

static cl_int commands_write(cl_bool blocking, cl_event *event)
{
	return cl.clEnqueueWriteBuffer(set.queue, set.mems[0], blocking, 0, 4, set.host, WAIT_LIST,
				       event);
}

static cl_int commands_run_write(cl_event *event)
{
	return commands_write(CL_FALSE, event);
}

static cl_int commands_run_write_blocking(cl_event *event)
{
	return commands_write(CL_TRUE, event);
}

static cl_int commands_run_write_rect(cl_event *event)
{
	return cl.clEnqueueWriteBufferRect(set.queue, set.mems[0], CL_FALSE, origin, origin, four,
					   0, 0, 0, 0, set.host, WAIT_LIST, event);
}

static cl_int commands_run_fill(cl_event *event)
{
	return cl.clEnqueueFillBuffer(set.queue, set.mems[0], set.host, 1, 0, 4, WAIT_LIST, event);
}

static cl_int commands_copy(cl_mem from, cl_mem to, cl_event *event)
{
	return cl.clEnqueueCopyBuffer(set.queue, from, to, 0, 0, 4, WAIT_LIST, event);
}

static cl_int commands_run_copy_to(cl_event *event)
{
	return commands_copy(set.plain, set.mems[0], event);
}

static cl_int commands_run_copy_from(cl_event *event)
{
	return commands_copy(set.mems[0], set.plain, event);
}

static cl_int commands_run_copy_both(cl_event *event)
{
	return commands_copy(set.mems[0], set.mems[1], event);
}

static cl_int commands_run_copy_rect(cl_event *event)
{
	return cl.clEnqueueCopyBufferRect(set.queue, set.plain, set.mems[0], origin, origin, four,
					  0, 0, 0, 0, WAIT_LIST, event);
}

static cl_int commands_run_read_image(cl_event *event)
{
	return cl.clEnqueueReadImage(set.queue, set.image, CL_FALSE, origin, pixel, 0, 0, set.host,
				     WAIT_LIST, event);
}

static cl_int commands_run_write_image(cl_event *event)
{
	return cl.clEnqueueWriteImage(set.queue, set.image, CL_FALSE, origin, pixel, 0, 0, set.host,
				      WAIT_LIST, event);
}

static cl_int commands_run_fill_image(cl_event *event)
{
	const cl_uint color[4] = { HOST, HOST, HOST, HOST };

	return cl.clEnqueueFillImage(set.queue, set.image, color, origin, pixel, WAIT_LIST, event);
}

static cl_int commands_run_copy_image(cl_event *event)
{
	return cl.clEnqueueCopyImage(set.queue, set.image, set.plain_image, origin, origin, pixel,
				     WAIT_LIST, event);
}

static cl_int commands_run_copy_to_image(cl_event *event)
{
	return cl.clEnqueueCopyBufferToImage(set.queue, set.plain, set.image, 0, origin, pixel,
					     WAIT_LIST, event);
}

static cl_int commands_run_copy_from_image(cl_event *event)
{
	return cl.clEnqueueCopyImageToBuffer(set.queue, set.image, set.plain, origin, pixel, 0,
					     WAIT_LIST, event);
}

/* @uses: of imports.  @value: of the first import's first byte afterwards; @host: of the host's. */
static const struct command {
	const char *name, *function;
	cl_int (*run)(cl_event *event);
	int uses;
	unsigned char value, host;
} commands[] = {
	{ "kernel", "clEnqueueNDRangeKernel", commands_run_kernel, 1, BEFORE + 1, HOST },
	{ "task", "clEnqueueTask", commands_run_task, 1, BEFORE + 1, HOST },
	{ "count_kernel", "clEnqueueNDCountKernelINTEL", commands_run_count_kernel, 1, BEFORE + 1,
	  HOST },
	{ "native", "clEnqueueNativeKernel", commands_run_native, 1, BEFORE + 1, HOST },
	{ "read", "clEnqueueReadBuffer", commands_run_read, 1, BEFORE, BEFORE },
	{ "read_blocking", "clEnqueueReadBuffer", commands_run_read_blocking, 1, BEFORE, BEFORE },
	{ "read_rect", "clEnqueueReadBufferRect", commands_run_read_rect, 1, BEFORE, BEFORE },
	{ "write", "clEnqueueWriteBuffer", commands_run_write, 1, HOST, HOST },
	{ "write_blocking", "clEnqueueWriteBuffer", commands_run_write_blocking, 1, HOST, HOST },
	{ "write_rect", "clEnqueueWriteBufferRect", commands_run_write_rect, 1, HOST, HOST },
	{ "fill", "clEnqueueFillBuffer", commands_run_fill, 1, HOST, HOST },
	{ "copy_to", "clEnqueueCopyBuffer", commands_run_copy_to, 1, HOST, HOST },
	{ "copy_from", "clEnqueueCopyBuffer", commands_run_copy_from, 1, BEFORE, HOST },
	{ "copy_both", "clEnqueueCopyBuffer", commands_run_copy_both, 2, BEFORE, HOST },
	{ "copy_rect", "clEnqueueCopyBufferRect", commands_run_copy_rect, 1, HOST, HOST },
	{ "read_image", "clEnqueueReadImage", commands_run_read_image, 1, BEFORE, BEFORE },
	{ "write_image", "clEnqueueWriteImage", commands_run_write_image, 1, HOST, HOST },
	{ "fill_image", "clEnqueueFillImage", commands_run_fill_image, 1, HOST, HOST },
	{ "copy_image", "clEnqueueCopyImage", commands_run_copy_image, 1, BEFORE, HOST },
	{ "copy_to_image", "clEnqueueCopyBufferToImage", commands_run_copy_to_image, 1, HOST,
	  HOST },
	{ "copy_from_image", "clEnqueueCopyImageToBuffer", commands_run_copy_from_image, 1, BEFORE,
	  HOST },
};

/* The command runs, with its work done and its event complete behind the release. */
static void commands_expect_run(const struct command *command)
{
	cl_event done = NULL;

	commands_fill();
	EXPECT_EQ(command->run(&done), CL_SUCCESS);
	EXPECT_EQ(cl.clWaitForEvents(1, &done), CL_SUCCESS);
	expect_acquires(command->uses);
	EXPECT_EQ(set.bytes[0][0], command->value);
	EXPECT_EQ(set.host[0], command->host);
	cl.clReleaseEvent(done);
}

TEST_EACH(runs, struct command, commands,
	  "A command works on the dma-buf itself, between an acquire and a release.")
{
	commands_open();
	commands_expect_run(row);
	EXPECT_EQ(row->run(NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(fix.queue), CL_SUCCESS);
	expect_acquires(2 * row->uses);
	commands_close();
}

/* Blocking commands cannot wait for an event that the test completes behind. */
static void out_of_order_complete(const struct command *command, bool is_blocking)
{
	if (is_blocking == !!strstr(command->name, "blocking"))
		EXPECT_EQ(cl.clSetUserEventStatus(set.wait, CL_COMPLETE), CL_SUCCESS);
}

TEST_EACH(out_of_order, struct command, commands,
	  "On an out-of-order queue the acquire waits for the command's wait list, the command for "
	  "the acquire, and the release for the command.")
{
	cl_event done = NULL;

	commands_open();
	stub_set(STUB_LAST_FIRST, 1);
	set.queue = fixture_create_queue(OUT_OF_ORDER);
	set.wait = user_event_create();
	set.num_wait = 1;
	out_of_order_complete(row, true);
	EXPECT_EQ(row->run(&done), CL_SUCCESS);
	EXPECT_EQ(cl.clFlush(set.queue), CL_SUCCESS);
	if (!strstr(row->name, "blocking")) {
		let_others_run();
		expect_acquires(0);
		EXPECT_EQ(set.bytes[0][0], BEFORE);
		EXPECT_EQ(set.host[0], HOST);
	}
	out_of_order_complete(row, false);
	EXPECT_EQ(cl.clWaitForEvents(1, &done), CL_SUCCESS);
	expect_acquires(row->uses);
	EXPECT_EQ(set.bytes[0][0], row->value);
	EXPECT_EQ(set.host[0], row->host);
	cl.clReleaseEvent(done);
	cl.clReleaseEvent(set.wait);
	cl.clReleaseCommandQueue(set.queue);
	commands_close();
}

/* Of two kernels on one import, in two queues, the one that waits for the program. */
static const struct waiting {
	const char *name;
	bool is_first;
} waitings[] = { { "first", true }, { "second", false } };

TEST_EACH(
	two_queues, struct waiting, waitings,
	"A kernel of one queue ends, with its release, while a kernel of another queue on the same "
	"import waits for an event that the program sets after the end of the first.")
{
	cl_command_queue other;
	cl_event go, done = NULL;

	commands_open();
	other = fixture_create_queue(0);
	go = user_event_create();
	if (row->is_first)
		EXPECT_EQ(fixture_enqueue(other, set.kernel, 1, &go, NULL), CL_SUCCESS);
	EXPECT_EQ(fixture_enqueue(fix.queue, set.kernel, 0, NULL, &done), CL_SUCCESS);
	if (!row->is_first)
		EXPECT_EQ(fixture_enqueue(other, set.kernel, 1, &go, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clFlush(other), CL_SUCCESS);
	EXPECT_EQ(cl.clWaitForEvents(1, &done), CL_SUCCESS);
	expect_acquires(1);
	EXPECT_EQ(cl.clSetUserEventStatus(go, CL_COMPLETE), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(other), CL_SUCCESS);
	expect_acquires(2);
	EXPECT_EQ(set.bytes[0][0], BEFORE + 2);
	cl.clReleaseEvent(go);
	cl.clReleaseEvent(done);
	cl.clReleaseCommandQueue(other);
	commands_close();
}

TEST_EACH(acquire_fails, struct command, commands,
	  "If the driver refuses the acquire, the command does not run, and the next one does.")
{
	cl_event done = NULL;

	commands_open();
	stub_fail("clEnqueueAcquireExternalMemObjectsKHR", 1, CL_OUT_OF_RESOURCES);
	EXPECT_EQ(row->run(&done), CL_OUT_OF_RESOURCES);
	EXPECT(stub_failed() && !done);
	EXPECT_EQ(cl.clFinish(fix.queue), CL_SUCCESS);
	expect_acquires(0);
	EXPECT_EQ(set.bytes[0][0], BEFORE);
	EXPECT_EQ(set.host[0], HOST);
	commands_expect_run(row);
	commands_close();
}

TEST_EACH(
	fails_after_acquire, struct command, commands,
	"If the driver refuses the command behind the acquire, what was acquired is released, and "
	"the next command runs.")
{
	cl_event done = NULL;

	commands_open();
	stub_fail(row->function, 1, CL_OUT_OF_RESOURCES);
	EXPECT_EQ(row->run(&done), CL_OUT_OF_RESOURCES);
	EXPECT(stub_failed() && !done);
	EXPECT_EQ(cl.clFinish(fix.queue), CL_SUCCESS);
	expect_acquires(row->uses);
	EXPECT_EQ(set.bytes[0][0], BEFORE);
	EXPECT_EQ(set.host[0], HOST);
	commands_expect_run(row);
	commands_close();
}

TEST_EACH(release_fails, struct command, commands,
	  "If the driver refuses the release, the command has run, and its event completes.")
{
	cl_event done = NULL;

	commands_open();
	stub_fail("clEnqueueReleaseExternalMemObjectsKHR", 1, CL_OUT_OF_RESOURCES);
	EXPECT_EQ(row->run(&done), CL_SUCCESS);
	EXPECT(stub_failed() && done);
	EXPECT_EQ(cl.clWaitForEvents(1, &done), CL_SUCCESS);
	EXPECT_EQ(fixture_event_status(done), CL_COMPLETE);
	EXPECT_EQ(set.bytes[0][0], row->value);
	EXPECT_EQ(set.host[0], row->host);
	expect_count("release", 0);
	cl.clReleaseEvent(done);
	commands_close();
}

TEST_EACH(fails_behind_event, struct command, commands,
	  "A command behind a failed event does not run, and the next command does.")
{
	cl_event go, done = NULL;
	cl_int err;

	commands_open();
	go = user_event_create();
	EXPECT_EQ(cl.clEnqueueBarrierWithWaitList(fix.queue, 1, &go, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clSetUserEventStatus(go, -9999), CL_SUCCESS);
	err = row->run(&done);
	EXPECT(err == CL_SUCCESS || err == CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
	cl.clFinish(fix.queue);
	cl.clReleaseEvent(go);
	if (done)
		cl.clReleaseEvent(done);
	commands_expect_run(row);
	commands_close();
}

/* A map of the first import: of the buffer or of the image. */
static const struct map_form {
	const char *name, *function;
	bool is_image;
} map_forms[] = {
	{ "buffer", "clEnqueueMapBuffer", false },
	{ "image", "clEnqueueMapImage", true },
};

static unsigned char *map_form_map(const struct map_form *form, cl_int *err)
{
	size_t pitch = 0;

	if (!form->is_image)
		return cl.clEnqueueMapBuffer(fix.queue, set.mems[0], CL_TRUE,
					     CL_MAP_READ | CL_MAP_WRITE, 0, 64, 0, NULL, NULL, err);
	return cl.clEnqueueMapImage(fix.queue, set.image, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE,
				    origin, pixel, &pitch, NULL, 0, NULL, NULL, err);
}

static cl_int map_form_unmap(const struct map_form *form, void *mapped)
{
	return cl.clEnqueueUnmapMemObject(fix.queue, form->is_image ? set.image : set.mems[0],
					  mapped, 0, NULL, NULL);
}

static void commands_expect_map(const struct map_form *form)
{
	unsigned char *mapped;
	cl_int err = 1;

	commands_fill();
	mapped = map_form_map(form, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	EXPECT_EQ(mapped[0], BEFORE);
	expect_acquires(1);
	mapped[0] = 9;
	EXPECT_EQ(map_form_unmap(form, mapped), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(fix.queue), CL_SUCCESS);
	expect_acquires(2);
	EXPECT_EQ(set.bytes[0][0], 9);
}

TEST_EACH(maps, struct map_form, map_forms,
	  "A map and an unmap each have an acquire and a release, and work on the dma-buf itself.")
{
	commands_open();
	commands_expect_map(row);
	commands_close();
}

/* What the driver refuses, and the count of releases behind. */
static const struct map_fault {
	const char *name;
	bool of_acquire;
} map_faults[] = { { "acquire", true }, { "command", false } };

TEST_EACH_PAIR(map_fails, struct map_form, map_forms, struct map_fault, map_faults,
	       "If a map fails, before or behind its acquire, there is no pointer, nothing stays "
	       "acquired, and the next map works.")
{
	cl_int err = 1;

	commands_open();
	stub_fail(column->of_acquire ? "clEnqueueAcquireExternalMemObjectsKHR" : row->function, 1,
		  CL_OUT_OF_RESOURCES);
	EXPECT(!map_form_map(row, &err));
	EXPECT_EQ(err, CL_OUT_OF_RESOURCES);
	EXPECT_EQ(cl.clFinish(fix.queue), CL_SUCCESS);
	expect_acquires(!column->of_acquire);
	commands_expect_map(row);
	commands_close();
}

TEST_EACH_PAIR(unmap_fails, struct map_form, map_forms, struct map_fault, map_faults,
	       "If an unmap fails, before or behind its acquire, nothing stays acquired, and the "
	       "next unmap of the pointer works.")
{
	unsigned char *mapped;
	cl_int err = 1;

	commands_open();
	mapped = map_form_map(row, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	mapped[0] = 9;
	stub_fail(column->of_acquire ? "clEnqueueAcquireExternalMemObjectsKHR"
				     : "clEnqueueUnmapMemObject",
		  1, CL_OUT_OF_RESOURCES);
	EXPECT_EQ(map_form_unmap(row, mapped), CL_OUT_OF_RESOURCES);
	EXPECT_EQ(cl.clFinish(fix.queue), CL_SUCCESS);
	expect_acquires(1 + !column->of_acquire);
	EXPECT_EQ(map_form_unmap(row, mapped), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(fix.queue), CL_SUCCESS);
	EXPECT_EQ(set.bytes[0][0], 9);
	commands_close();
}
