/* SPDX-License-Identifier: Apache-2.0 */
/* The END of a row of kernels comes before the application can see a kernel's completion. */
#include "row.h"

static void observe_wait(cl_event event)
{
	EXPECT_EQ(cl.clWaitForEvents(1, &event), CL_SUCCESS);
	cl.clReleaseEvent(event);
}

static void observe_by_finish(struct run *r)
{
	EXPECT_EQ(cl.clFinish(r->queue), CL_SUCCESS);
}

static void observe_by_own_event(struct run *r)
{
	cl_event event;

	EXPECT_EQ(fixture_enqueue(r->queue, r->kernel, 0, NULL, &event), CL_SUCCESS);
	observe_wait(event);
}

static void observe_by_task(struct run *r)
{
	cl_event event;

	EXPECT_EQ(cl.clEnqueueTask(r->queue, r->kernel, 0, NULL, &event), CL_SUCCESS);
	observe_wait(event);
}

static void observe_by_other_kernel(struct run *r)
{
	cl_kernel kernel = fixture_create_increment(row_plain);
	cl_event event;

	EXPECT_EQ(fixture_enqueue(r->queue, kernel, 0, NULL, &event), CL_SUCCESS);
	observe_wait(event);
	cl.clReleaseKernel(kernel);
}

static void observe_by_marker(struct run *r)
{
	cl_event event;

	EXPECT_EQ(cl.clEnqueueMarker(r->queue, &event), CL_SUCCESS);
	observe_wait(event);
}

static void observe_by_marker_list(struct run *r)
{
	cl_event event;

	EXPECT_EQ(cl.clEnqueueMarkerWithWaitList(r->queue, 0, NULL, &event), CL_SUCCESS);
	observe_wait(event);
}

static void observe_by_barrier(struct run *r)
{
	cl_event event;

	EXPECT_EQ(cl.clEnqueueBarrierWithWaitList(r->queue, 0, NULL, &event), CL_SUCCESS);
	observe_wait(event);
}

static void observe_by_old_barrier(struct run *r)
{
	EXPECT_EQ(cl.clEnqueueBarrier(r->queue), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(r->queue), CL_SUCCESS);
}

static void observe_by_wait_for_events(struct run *r)
{
	cl_event go = user_event_create();

	EXPECT_EQ(cl.clEnqueueWaitForEvents(r->queue, 1, &go), CL_SUCCESS);
	EXPECT(process_settles(row_has_ended, NULL));
	fixture_complete_event(go, CL_COMPLETE);
	cl.clReleaseEvent(go);
}

static void observe_by_migration(struct run *r)
{
	cl_event event;

	EXPECT_EQ(cl.clEnqueueMigrateMemObjects(r->queue, 1, &row_plain, 0, 0, NULL, &event),
		  CL_SUCCESS);
	observe_wait(event);
}

static void observe_by_read(struct run *r)
{
	unsigned char byte;

	EXPECT_EQ(cl.clEnqueueReadBuffer(r->queue, row_plain, CL_TRUE, 0, 1, &byte, 0, NULL, NULL),
		  CL_SUCCESS);
}

static void observe_by_write(struct run *r)
{
	unsigned char byte = 0;
	cl_event event;

	EXPECT_EQ(cl.clEnqueueWriteBuffer(r->queue, row_plain, CL_FALSE, 0, 1, &byte, 0, NULL,
					  &event),
		  CL_SUCCESS);
	observe_wait(event);
}

static void observe_by_read_rect(struct run *r)
{
	const size_t origin[3] = { 0 }, region[3] = { 1, 1, 1 };
	unsigned char byte;

	EXPECT_EQ(cl.clEnqueueReadBufferRect(r->queue, row_plain, CL_TRUE, origin, origin, region,
					     0, 0, 0, 0, &byte, 0, NULL, NULL),
		  CL_SUCCESS);
}

static void observe_by_copy(struct run *r)
{
	cl_event event;

	EXPECT_EQ(cl.clEnqueueCopyBuffer(r->queue, row_plain, row_plain, 0, 64, 1, 0, NULL, &event),
		  CL_SUCCESS);
	observe_wait(event);
}

static void observe_by_fill(struct run *r)
{
	const unsigned char byte = 1;
	cl_event event;

	EXPECT_EQ(cl.clEnqueueFillBuffer(r->queue, row_plain, &byte, 1, 0, 4, 0, NULL, &event),
		  CL_SUCCESS);
	observe_wait(event);
}

static void observe_by_map(struct run *r)
{
	cl_event event;
	cl_int err;
	void *mapped = cl.clEnqueueMapBuffer(r->queue, row_plain, CL_TRUE, CL_MAP_READ, 0, 64, 0,
					     NULL, NULL, &err);

	EXPECT_EQ(err, CL_SUCCESS);
	EXPECT(row_has_ended(NULL));
	EXPECT_EQ(cl.clEnqueueUnmapMemObject(r->queue, row_plain, mapped, 0, NULL, &event),
		  CL_SUCCESS);
	observe_wait(event);
}

static void CL_CALLBACK trace_host_sees(void *unused)
{
	(void)unused;
	stub_trace("seen by the host: %d", row_has_ended(NULL));
}

static void observe_by_native_kernel(struct run *r)
{
	EXPECT_EQ(cl.clEnqueueNativeKernel(r->queue, trace_host_sees, NULL, 0, 0, NULL, NULL, 0,
					   NULL, NULL),
		  CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(r->queue), CL_SUCCESS);
	expect_count("seen by the host: 1", 1);
}

static void observe_by_image(struct run *r)
{
	const size_t origin[3] = { 0 }, region[3] = { 1, 1, 1 };
	cl_mem made = fixture_create_image(CL_MEM_OBJECT_IMAGE2D, NULL, 4, 4, 0);
	cl_uint pixel;

	EXPECT_EQ(cl.clEnqueueReadImage(r->queue, made, CL_TRUE, origin, region, 0, 0, &pixel, 0,
					NULL, NULL),
		  CL_SUCCESS);
	cl.clReleaseMemObject(made);
}

static void observe_by_other_queue(struct run *r)
{
	cl_kernel kernel = fixture_create_increment(row_plain);
	cl_event event;

	EXPECT_EQ(cl.clEnqueueMarkerWithWaitList(r->queue, 0, NULL, &event), CL_SUCCESS);
	EXPECT_EQ(cl.clFlush(r->queue), CL_SUCCESS);
	EXPECT_EQ(fixture_enqueue(fix.queue, kernel, 1, &event, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(fix.queue), CL_SUCCESS);
	cl.clReleaseEvent(event);
	cl.clReleaseKernel(kernel);
}

static void observe_by_idling(struct run *r)
{
	(void)r;
	EXPECT(process_settles(row_has_ended, NULL));
}

static void observe_by_release(struct run *r)
{
	cl.clReleaseCommandQueue(r->queue);
	EXPECT(process_settles(row_has_ended, NULL));
	r->queue = fixture_create_queue(0);
}

static void observe_by_other_buffer(struct run *r)
{
	struct buffer b = buffer_open("b", NULL);
	cl_kernel kernel = fixture_create_increment(b.mem);

	stub_trace_clear(); /* buffer_open() cleared the trace as well */
	row_enqueue(r, ROW);
	EXPECT_EQ(fixture_enqueue(r->queue, kernel, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(r->queue), CL_SUCCESS);
	expect_order("sync END a", "sync END b");
	cl.clReleaseKernel(kernel);
	buffer_close(&b);
}

static void observe_by_command_buffer(struct run *r)
{
	__typeof__(&clCreateCommandBufferKHR) create =
		(__typeof__(create))cl.clGetExtensionFunctionAddressForPlatform(
			fix.platform, "clCreateCommandBufferKHR");
	__typeof__(&clFinalizeCommandBufferKHR) finalize =
		(__typeof__(finalize))cl.clGetExtensionFunctionAddressForPlatform(
			fix.platform, "clFinalizeCommandBufferKHR");
	__typeof__(&clEnqueueCommandBufferKHR) run =
		(__typeof__(run))cl.clGetExtensionFunctionAddressForPlatform(
			fix.platform, "clEnqueueCommandBufferKHR");
	__typeof__(&clReleaseCommandBufferKHR) release =
		(__typeof__(release))cl.clGetExtensionFunctionAddressForPlatform(
			fix.platform, "clReleaseCommandBufferKHR");
	cl_command_buffer_khr buffer;
	cl_event event;
	cl_int err;

	EXPECT(create && finalize && run && release);
	buffer = create(1, &r->queue, NULL, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	EXPECT_EQ(finalize(buffer), CL_SUCCESS);
	EXPECT_EQ(run(0, NULL, buffer, 0, NULL, &event), CL_SUCCESS);
	observe_wait(event);
	release(buffer);
}

static void observe_by_count_kernel(struct run *r)
{
	enqueue_count_fn enqueue_count = access_find_count_function();
	const size_t one = 1;
	cl_event event;

	EXPECT_EQ(enqueue_count(r->queue, r->kernel, 1, NULL, &one, &one, 0, NULL, &event),
		  CL_SUCCESS);
	observe_wait(event);
}

static const struct observation {
	const char *name;
	void (*observe)(struct run *r);
} observations[] = {
	{ "finish", observe_by_finish },
	{ "own_event", observe_by_own_event },
	{ "task", observe_by_task },
	{ "other_kernel", observe_by_other_kernel },
	{ "marker", observe_by_marker },
	{ "marker_list", observe_by_marker_list },
	{ "barrier", observe_by_barrier },
	{ "old_barrier", observe_by_old_barrier },
	{ "wait_for_events", observe_by_wait_for_events },
	{ "migration", observe_by_migration },
	{ "read", observe_by_read },
	{ "write", observe_by_write },
	{ "read_rect", observe_by_read_rect },
	{ "copy", observe_by_copy },
	{ "fill", observe_by_fill },
	{ "map", observe_by_map },
	{ "native_kernel", observe_by_native_kernel },
	{ "image", observe_by_image },
	{ "other_queue", observe_by_other_queue },
	{ "idling", observe_by_idling },
	{ "release", observe_by_release },
	{ "other_buffer", observe_by_other_buffer },
	{ "command_buffer", observe_by_command_buffer },
	{ "count_kernel", observe_by_count_kernel },
};

TEST_EACH(observed, struct observation, observations,
	  "END comes before a call by which the application can see that a kernel is complete.")
{
	struct run r = run_open(0);

	row_plain = cl.clCreateBuffer(fix.context, 0, SIZE, NULL, NULL);
	fake_dmabuf_delay(3);
	if (row->observe != observe_by_other_buffer)
		row_enqueue(&r, 3);
	row->observe(&r);
	EXPECT(row_has_ended(NULL));
	stub_trace_clear();
	row_enqueue(&r, 1);
	EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
	expect_bracket("a", "increment");
	cl.clReleaseMemObject(row_plain);
	run_close(&r);
}
