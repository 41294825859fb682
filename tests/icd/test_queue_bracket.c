/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels in a row share a DMA_BUF_IOCTL_SYNC START and an END, unseen by the application.  The
 * tests below tell which kernels form a row.
 */
#include "row.h"

TEST(in_order,
     "Kernels that are enqueued before START share one START, and one END after the last kernel.")
{
	int starts = 0;

	for (int i = 0; i < 100 && starts != 1; i++) {
		struct run r = run_open(0);
		cl_event go = row_hold_back(&r);

		r.a.seen[0] = 1;
		row_enqueue(&r, ROW);
		row_let_go(go);
		EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
		starts = stub_trace_count("sync START a");
		row_expect_all_inside(ROW);
		EXPECT_EQ(r.a.seen[0], ROW + 1);
		run_close(&r);
	}
	EXPECT_EQ(starts, 1);
}

TEST(counted, "A kernel of clEnqueueNDCountKernelINTEL joins the row.")
{
	int starts = 0;

	for (int i = 0; i < 100 && starts != 1; i++) {
		struct run r = run_open(0);
		enqueue_count_fn enqueue_count = access_find_count_function();
		const size_t one = 1;
		cl_event go = row_hold_back(&r);

		row_enqueue(&r, 2);
		EXPECT_EQ(enqueue_count(r.queue, r.kernel, 1, NULL, &one, NULL, 0, NULL, NULL),
			  CL_SUCCESS);
		row_enqueue(&r, 2);
		row_let_go(go);
		EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
		starts = stub_trace_count("sync START a");
		row_expect_all_inside(5);
		run_close(&r);
	}
	EXPECT_EQ(starts, 1);
}

TEST(out_of_order, "Each kernel of an out-of-order queue has a START and an END.")
{
	struct run r = run_open(OUT_OF_ORDER);

	row_enqueue(&r, ROW);
	EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
	expect_count("sync START a", ROW);
	expect_count("sync END a", ROW);
	run_close(&r);
}

TEST(reordered, "If a queue is changed to out-of-order, each later kernel has a START and an END.")
{
	struct run r = run_open(0);

	EXPECT_EQ(fixture_enqueue(r.queue, r.kernel, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clSetCommandQueueProperty(r.queue, OUT_OF_ORDER, CL_TRUE, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
	stub_trace_clear();
	row_enqueue(&r, ROW);
	EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
	expect_count("sync START a", ROW);
	expect_count("sync END a", ROW);
	run_close(&r);
}

static int starts_with_others(void)
{
	struct run r = run_open(0);
	cl_kernel other;
	cl_event go;
	int starts;

	row_plain = cl.clCreateBuffer(fix.context, 0, SIZE, NULL, NULL);
	other = fixture_create_increment(row_plain);
	go = row_hold_back(&r);
	row_enqueue(&r, 2);
	EXPECT_EQ(fixture_enqueue(r.queue, other, 0, NULL, NULL), CL_SUCCESS);
	row_enqueue(&r, 2);
	row_let_go(go);
	EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
	starts = stub_trace_count("sync START a");
	EXPECT_EQ(stub_trace_count("sync END a"), starts);
	cl.clReleaseKernel(other);
	cl.clReleaseMemObject(row_plain);
	run_close(&r);
	return starts;
}

TEST(silent, "A kernel without an import and without an event does not end the row.")
{
	int starts = 0;

	for (int i = 0; i < 100 && starts != 1; i++)
		starts = starts_with_others();
	EXPECT_EQ(starts, 1);
}

static int starts_with_subset(void)
{
	struct run r = run_open(0);
	struct buffer b = buffer_open("b", NULL);
	cl_kernel both = fixture_create_kernel("vector_add");
	cl_event go;
	int starts;

	for (cl_uint i = 0; i < 3; i++)
		EXPECT_EQ(cl.clSetKernelArg(both, i, sizeof(cl_mem), i ? &b.mem : &r.a.mem),
			  CL_SUCCESS);
	go = row_hold_back(&r);
	EXPECT_EQ(fixture_enqueue(r.queue, both, 0, NULL, NULL), CL_SUCCESS);
	row_enqueue(&r, 2);
	row_let_go(go);
	EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
	starts = stub_trace_count("sync START a");
	EXPECT_EQ(stub_trace_count("sync END a"), starts);
	EXPECT_EQ(stub_trace_count("sync START b"), stub_trace_count("sync END b"));
	cl.clReleaseKernel(both);
	buffer_close(&b);
	run_close(&r);
	return starts;
}

TEST(subset, "A kernel that uses a part of the row's dma-bufs joins the row.")
{
	int starts = 0;

	for (int i = 0; i < 100 && starts != 1; i++)
		starts = starts_with_subset();
	EXPECT_EQ(starts, 1);
}

TEST(host_writes, "Host writes after clFinish are between an END and a START.")
{
	struct run r = run_open(0);

	row_enqueue(&r, 3);
	EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
	stub_trace("host writes");
	r.a.seen[0] = 100;
	row_enqueue(&r, 3);
	EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
	expect_order("sync END a", "host writes");
	EXPECT(stub_trace_find("sync START a", stub_trace_find("host writes", 0)) >= 0);
	EXPECT_EQ(r.a.seen[0], 103);
	row_expect_all_inside(6);
	run_close(&r);
}

static bool has_started(void *unused)
{
	(void)unused;
	return stub_trace_find("sync START a", 0) >= 0;
}

TEST(producer_writes,
     "A kernel that is enqueued after START gets a START of its own, since another device may have "
     "written.")
{
	for (int i = 0; i < 20; i++) {
		struct run r = run_open(0);

		row_enqueue(&r, 1);
		EXPECT(process_settles(has_started, NULL));
		stub_trace("another device writes");
		row_enqueue(&r, 1);
		EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
		expect_count("sync START a", 2);
		EXPECT(stub_trace_find("sync START a",
				       stub_trace_find("another device writes", 0)) >= 0);
		row_expect_all_inside(2);
		run_close(&r);
	}
}

TEST(fences, "A kernel that is enqueued after START waits for fences that were added after START.")
{
	for (int i = 0; i < 5; i++) {
		struct run r = run_open(0);

		row_enqueue(&r, 1);
		EXPECT(process_settles(has_started, NULL));
		fake_dmabuf_busy("a");
		row_enqueue(&r, 1);
		EXPECT_EQ(cl.clFlush(r.queue), CL_SUCCESS);
		let_others_run();
		EXPECT(stub_trace_count("kernel increment begin") < 2);
		fake_dmabuf_busy(NULL);
		EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
		row_expect_all_inside(2);
		run_close(&r);
	}
}

TEST(user_event_splits,
     "A kernel with a wait list gets a START of its own, after the wait list is complete.")
{
	struct run r = run_open(0);
	cl_event go = user_event_create();

	row_enqueue(&r, 3);
	EXPECT_EQ(fixture_enqueue(r.queue, r.kernel, 1, &go, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clFlush(r.queue), CL_SUCCESS);
	EXPECT(process_settles(row_has_ended, NULL));
	fixture_complete_event(go, CL_COMPLETE);
	EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
	expect_order("sync END a", "completed by the application");
	EXPECT(stub_trace_find("sync START a",
			       stub_trace_find("completed by the application", 0)) >= 0);
	row_expect_all_inside(4);
	cl.clReleaseEvent(go);
	run_close(&r);
}

TEST(held_back, "If a user event holds a row back, START comes after the event is complete.")
{
	struct run r = run_open(0);
	cl_event go = user_event_create();

	EXPECT_EQ(cl.clEnqueueMarkerWithWaitList(r.queue, 1, &go, NULL), CL_SUCCESS);
	row_enqueue(&r, 100);
	EXPECT_EQ(cl.clFlush(r.queue), CL_SUCCESS);
	let_others_run();
	expect_no_sync("a");
	fixture_complete_event(go, CL_COMPLETE);
	EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
	expect_order("completed by the application", "sync START a");
	row_expect_all_inside(100);
	cl.clReleaseEvent(go);
	run_close(&r);
}

TEST_EACH(list_of_none, struct driver_kind, driver_kinds,
	  "A kernel with an event list of length 0 is enqueued like a kernel without a list.")
{
	cl_event none = NULL;
	struct run r = run_open(row->properties);
	cl_event event = NULL;

	for (int kernel = 0; kernel < 2; kernel++) {
		EXPECT_EQ(cl.clEnqueueTask(r.queue, r.kernel, 0, &none, row->quirk ? &event : NULL),
			  CL_SUCCESS);
		if (event)
			cl.clReleaseEvent(event);
	}
	EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
	expect_count("kernel increment end", 2);
	run_close(&r);
}
