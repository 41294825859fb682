/* SPDX-License-Identifier: Apache-2.0 */
/* DMA_BUF_IOCTL_SYNC around kernels: when something fails. */
#include "access.h"

#include <errno.h>

TEST(wait_list_fails, "When the wait list fails there is no START, no kernel, and the event fails.")
{
	for (int i = 0; i < 4; i++) {
		struct run r = run_open(kinds_of_queue[i & 1]);
		cl_event go = user_event(), done;

		stub_set(STUB_CALLBACK_COMPLETE, i & 2); /* PoCL 7 */
		EXPECT_EQ(enqueue(r.queue, r.kernel, 1, &go, &done), CL_SUCCESS);
		complete(go, -5);
		EXPECT_EQ(cl.clWaitForEvents(1, &done),
			  CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
		EXPECT(event_status(done) < 0);
		EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
		expect_no_sync("a");
		expect_count("kernel increment", 0);
		EXPECT_EQ(enqueue(r.queue, r.kernel, 0, NULL, NULL), CL_SUCCESS);
		EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
		expect_bracket("a", "increment");
		cl.clReleaseEvent(go);
		cl.clReleaseEvent(done);
		run_close(&r);
	}
}

TEST(no_callback_for_failures, "Where the driver does not call back for failed commands, the same.")
{
	for (int i = 0; i < 2; i++) {
		struct run r = run_open(kinds_of_queue[i]);
		cl_event go = user_event(), done;

		stub_set(STUB_NO_FAILURE_CALLBACK, 1); /* PoCL 3.1 */
		EXPECT_EQ(enqueue(r.queue, r.kernel, 1, &go, &done), CL_SUCCESS);
		complete(go, -5);
		EXPECT_EQ(cl.clWaitForEvents(1, &done),
			  CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
		EXPECT(event_status(done) < 0);
		EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
		expect_no_sync("a");
		expect_count("kernel increment", 0);
		cl.clReleaseEvent(go);
		cl.clReleaseEvent(done);
		run_release(&r);
		fixture_release(); /* nobody tells the layer when to give the bracket up */
	}
}

TEST(kernel_fails, "When the kernel fails there is an END, and the event fails.")
{
	for (int i = 0; i < 4; i++) {
		struct run r = run_open(kinds_of_queue[i & 1]);
		cl_event done;

		stub_set(STUB_CALLBACK_COMPLETE, i & 2);
		stub_set(STUB_KERNEL_FAIL, -5);
		EXPECT_EQ(enqueue(r.queue, r.kernel, 0, NULL, &done), CL_SUCCESS);
		EXPECT_EQ(cl.clWaitForEvents(1, &done),
			  CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
		EXPECT(event_status(done) < 0);
		expect_count("sync START a", 1);
		expect_count("sync END a", 1);
		cl.clReleaseEvent(done);
		run_close(&r);
	}
}

TEST(interrupted, "EINTR and EAGAIN are tried again.")
{
	static const char *const edges[] = { "START", "END" };

	for (int i = 0; i < 4; i++) {
		struct run r = run_open(0);

		fake_dmabuf_fail(edges[i & 1], i & 2 ? EAGAIN : EINTR, 3);
		EXPECT_EQ(enqueue(r.queue, r.kernel, 0, NULL, NULL), CL_SUCCESS);
		EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
		expect_count("failed", 3);
		expect_bracket("a", "increment");
		run_close(&r);
	}
}

TEST(start_fails, "When START fails the kernel does not run, and the event fails.")
{
	struct run r = run_open(0);
	cl_event done;

	fake_dmabuf_fail("START", EIO, 1);
	EXPECT_EQ(enqueue(r.queue, r.kernel, 0, NULL, &done), CL_SUCCESS);
	EXPECT_EQ(cl.clWaitForEvents(1, &done), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
	EXPECT(event_status(done) < 0);
	expect_count("kernel increment", 0);
	expect_no_sync("a");
	cl.clReleaseEvent(done);
	run_close(&r);
}

TEST(end_fails, "When END fails the event fails.")
{
	struct run r = run_open(0);
	cl_event done;

	fake_dmabuf_fail("END", EIO, 1);
	EXPECT_EQ(enqueue(r.queue, r.kernel, 0, NULL, &done), CL_SUCCESS);
	EXPECT_EQ(cl.clWaitForEvents(1, &done), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
	EXPECT(event_status(done) < 0);
	expect_count("kernel increment end", 1);
	cl.clReleaseEvent(done);
	fake_dmabuf_reset(); /* the bracket that was left open was the test's doing */
	run_close(&r);
}

TEST(enqueue_fails,
     "When the driver refuses the kernel nothing stays begun, and the event is untouched.")
{
	for (int i = 0; i < 4; i++) {
		struct run r = run_open(kinds_of_queue[i & 1]);
		cl_event done = (cl_event)(uintptr_t)0x5a5a;

		stub_set(STUB_FAULT_DELAY, i & 2 ? 20 : 0); /* begun when it fails, or not yet */
		stub_fail("clEnqueueNDRangeKernel", 1, CL_OUT_OF_RESOURCES);
		EXPECT_EQ(enqueue(r.queue, r.kernel, 0, NULL, &done), CL_OUT_OF_RESOURCES);
		EXPECT(done == (cl_event)(uintptr_t)0x5a5a);
		EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
		expect_count("kernel increment", 0);
		run_close(&r);
		EXPECT_EQ(stub_trace_count("sync START a"), stub_trace_count("sync END a"));
	}
}
