/* SPDX-License-Identifier: Apache-2.0 */
/* DMA_BUF_IOCTL_SYNC around kernels: failures of START, END, kernels and wait lists. */
#include "access.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

TEST_EACH(wait_list_fails, struct driver_kind, driver_kinds,
	  "If the wait list fails, there is no START and no kernel, and the event fails.")
{
	struct run r = run_open(row->properties);
	cl_event go = user_event_create(), done;

	stub_set(STUB_CALLBACK_COMPLETE, row->quirk); /* like PoCL 7 */
	EXPECT_EQ(fixture_enqueue(r.queue, r.kernel, 1, &go, &done), CL_SUCCESS);
	fixture_complete_event(go, -5);
	EXPECT_EQ(cl.clWaitForEvents(1, &done), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
	EXPECT(fixture_event_status(done) < 0);
	EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
	expect_no_sync("a");
	expect_count("kernel increment", 0);
	EXPECT_EQ(fixture_enqueue(r.queue, r.kernel, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
	expect_bracket("a", "increment");
	cl.clReleaseEvent(go);
	cl.clReleaseEvent(done);
	run_close(&r);
}

TEST_EACH(no_callback_for_failures, struct queue_kind, queue_kinds,
	  "If the driver does not call back for failed commands, the event still fails and the "
	  "layer frees all that the command used.")
{
	struct run r = run_open(row->properties);
	cl_event go = user_event_create(), done;

	stub_set(STUB_NO_FAILURE_CALLBACK, 1); /* like PoCL 3.1 */
	EXPECT_EQ(fixture_enqueue(r.queue, r.kernel, 1, &go, &done), CL_SUCCESS);
	fixture_complete_event(go, -5);
	EXPECT_EQ(cl.clWaitForEvents(1, &done), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
	EXPECT(fixture_event_status(done) < 0);
	EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
	expect_no_sync("a");
	expect_count("kernel increment", 0);
	cl.clReleaseEvent(go);
	cl.clReleaseEvent(done);
	run_release(&r);
	EXPECT(process_settles(fixture_is_unmapped, NULL));
	fixture_close();
}

/* What fails: the wait list with @list, or a SYNC, or the kernel. */
static const struct failing_part {
	const char *name, *edge;
	cl_int list, kernel;
} failing_parts[] = {
	{ "list", NULL, -5, CL_COMPLETE },
	{ "START", "START", CL_COMPLETE, CL_COMPLETE },
	{ "kernel", NULL, CL_COMPLETE, -5 },
	{ "END", "END", CL_COMPLETE, CL_COMPLETE },
};

TEST_EACH_PAIR(
	one_failure, struct failing_part, failing_parts, struct queue_kind, queue_kinds,
	"No command of a bracket waits for two events that fail: Intel's CPU runtime dies of "
	"such a command.")
{
	struct run r = run_open(column->properties);
	cl_event go = user_event_create(), done;

	stub_set(STUB_TWO_FAILURES_ABORT, 1);
	stub_set(STUB_KERNEL_FAIL, row->kernel);
	if (row->edge)
		fake_dmabuf_fail(row->edge, EIO, 1);
	EXPECT_EQ(fixture_enqueue(r.queue, r.kernel, 1, &go, &done), CL_SUCCESS);
	fixture_complete_event(go, row->list);
	EXPECT_EQ(cl.clWaitForEvents(1, &done), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
	EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
	cl.clReleaseEvent(go);
	cl.clReleaseEvent(done);
	fake_dmabuf_reset(); /* a failed END has left the bracket open on purpose */
	run_close(&r);
}

TEST_EACH(failed_complete, struct queue_kind, queue_kinds,
	  "If the driver says CL_COMPLETE of a failed command and does not call back, a kernel "
	  "whose wait "
	  "list fails does not run.")
{
	struct run r = run_open(row->properties);
	cl_event go = user_event_create(), done;

	stub_set(STUB_FAILED_COMPLETE, 1); /* like Intel's CPU runtime */
	stub_set(STUB_NO_FAILURE_CALLBACK, 1);
	EXPECT_EQ(fixture_enqueue(r.queue, r.kernel, 1, &go, &done), CL_SUCCESS);
	fixture_complete_event(go, -5);
	EXPECT_EQ(cl.clWaitForEvents(1, &done), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
	EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
	expect_no_sync("a");
	expect_count("kernel increment", 0);
	cl.clReleaseEvent(go);
	cl.clReleaseEvent(done);
	run_close(&r);
}

static void CL_CALLBACK note_status(cl_event event, cl_int status, void *seen)
{
	(void)event;
	atomic_store((atomic_int *)seen, status);
}

static bool status_is_told(void *seen)
{
	return atomic_load((atomic_int *)seen) != CL_QUEUED;
}

TEST_EACH(failure_of_list, struct queue_kind, queue_kinds,
	  "A callback on a command's event gets the status with which the wait list failed, also "
	  "if the list failed before the enqueue.")
{
	struct run r = run_open(row->properties);
	cl_event go = user_event_create(), done;
	static atomic_int seen;

	atomic_store(&seen, CL_QUEUED);
	stub_set(STUB_FAILED_COMPLETE, 1); /* like Intel's CPU runtime */
	stub_set(STUB_ENQUEUE_DELAY, 10);
	stub_set(STUB_CALLBACK_DELAY, 1);
	fixture_complete_event(go, -5);
	EXPECT_EQ(fixture_enqueue(r.queue, r.kernel, 1, &go, &done), CL_SUCCESS);
	EXPECT_EQ(cl.clSetEventCallback(done, CL_COMPLETE, note_status, &seen), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
	EXPECT(process_settles(status_is_told, &seen));
	EXPECT_EQ(atomic_load(&seen), -5);
	cl.clReleaseEvent(go);
	cl.clReleaseEvent(done);
	run_close(&r);
}

TEST_EACH(kernel_fails, struct driver_kind, driver_kinds,
	  "If the kernel fails, there is an END, and the event fails.")
{
	struct run r = run_open(row->properties);
	cl_event done;

	stub_set(STUB_CALLBACK_COMPLETE, row->quirk);
	stub_set(STUB_KERNEL_FAIL, -5);
	EXPECT_EQ(fixture_enqueue(r.queue, r.kernel, 0, NULL, &done), CL_SUCCESS);
	EXPECT_EQ(cl.clWaitForEvents(1, &done), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
	EXPECT(fixture_event_status(done) < 0);
	expect_count("sync START a", 1);
	expect_count("sync END a", 1);
	cl.clReleaseEvent(done);
	run_close(&r);
}

/* Errors after which the ioctl is repeated. */
static const struct transient {
	const char *name;
	int error;
} transients[] = { { "EINTR", EINTR }, { "EAGAIN", EAGAIN } };

TEST_EACH_PAIR(interrupted, struct sync_edge, sync_edges, struct transient, transients,
	       "After EINTR or EAGAIN a SYNC is tried again.")
{
	struct run r = run_open(0);

	fake_dmabuf_fail(row->name, column->error, 3);
	EXPECT_EQ(fixture_enqueue(r.queue, r.kernel, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
	expect_count("failed", 3);
	expect_bracket("a", "increment");
	run_close(&r);
}

/* The failing SYNC, and the number of kernels that still run. */
static const struct failing_sync {
	const char *name;
	int kernels;
} failing_syncs[] = { { "START", 0 }, { "END", 1 } };

TEST_EACH(sync_fails, struct failing_sync, failing_syncs,
	  "If START fails, the kernel does not run; if START or END fails, the event fails.")
{
	struct run r = run_open(0);
	cl_event done;

	fake_dmabuf_fail(row->name, EIO, 1);
	EXPECT_EQ(fixture_enqueue(r.queue, r.kernel, 0, NULL, &done), CL_SUCCESS);
	EXPECT_EQ(cl.clWaitForEvents(1, &done), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
	EXPECT(fixture_event_status(done) < 0);
	expect_count("sync START a ", row->kernels);
	expect_count("kernel increment end", row->kernels);
	expect_count("sync END a ", 0);
	cl.clReleaseEvent(done);
	fake_dmabuf_reset(); /* a failed END has left the bracket open on purpose */
	run_close(&r);
}

TEST_EACH(failures_in_row, struct failing_sync, failing_syncs,
	  "Failed accesses keep no descriptor: more may fail in a row than a process has "
	  "descriptors.")
{
	const struct rlimit few = { 128, 128 };
	struct run r = run_open(0);

	EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
	for (rlim_t i = 0; i < 2 * few.rlim_cur; i++) {
		struct buffer b = buffer_open("b", NULL);
		cl_kernel kernel = fixture_create_increment(b.mem);
		cl_event done;

		fake_dmabuf_fail(row->name, EIO, 1);
		EXPECT_EQ(fixture_enqueue(r.queue, kernel, 0, NULL, &done), CL_SUCCESS);
		EXPECT(cl.clWaitForEvents(1, &done) != CL_SUCCESS);
		cl.clReleaseEvent(done);
		cl.clReleaseKernel(kernel);
		buffer_close(&b);
	}
	fake_dmabuf_reset(); /* failed ENDs have left the brackets open on purpose */
	run_close(&r);
}

TEST_EACH(enqueue_fails, struct driver_kind, driver_kinds,
	  "If the driver refuses the kernel, no access stays begun, and the event is untouched.")
{
	struct run r = run_open(row->properties);
	cl_event done = (cl_event)(uintptr_t)0x5a5a;

	/* With the quirk, the driver refuses after START. */
	stub_set(STUB_FAULT_DELAY, row->quirk ? 20 : 0);
	stub_fail("clEnqueueNDRangeKernel", 1, CL_OUT_OF_RESOURCES);
	EXPECT_EQ(fixture_enqueue(r.queue, r.kernel, 0, NULL, &done), CL_OUT_OF_RESOURCES);
	EXPECT(done == (cl_event)(uintptr_t)0x5a5a);
	EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
	expect_count("kernel increment", 0);
	run_close(&r);
	EXPECT_EQ(stub_trace_count("sync START a"), stub_trace_count("sync END a"));
}

/*
 * A driver like PoCL 3.1, and a thread with pauses between enqueues.  The alarm kills a hanging
 * test.
 */
static struct run run_slowly(const struct driver_kind *row)
{
	struct run r = run_open(row->properties);

	alarm(TEST_HANG_S);
	stub_set(STUB_NO_FAILURE_BEHIND, 1);
	stub_set(STUB_NO_FAILURE_CALLBACK, row->quirk);
	stub_set(STUB_ENQUEUE_DELAY, 10);
	return r;
}

/* A driver without callbacks for failures keeps the events, so the fixture's check is left out. */
static void close_slowly(struct run *r, const struct driver_kind *row)
{
	run_release(r);
	EXPECT(process_settles(fixture_mapped_at_most, &r->mapped_before));
	if (row->quirk)
		fixture_release();
	else
		fixture_close();
	alarm(0);
}

/*
 * On a slow machine the failure may come after the driver's enqueue, and a driver with the quirk
 * then reports the failure to no callback.  Mappings may stay.
 */
static void close_untold(struct run *r, const struct driver_kind *row)
{
	if (!row->quirk) {
		close_slowly(r, row);
		return;
	}
	run_release(r);
	fixture_release();
	alarm(0);
}

TEST_EACH_PAIR(sync_fails_early, struct failing_sync, failing_syncs, struct driver_kind,
	       driver_kinds,
	       "A START that fails before the kernel is enqueued, or an END that fails before the "
	       "bracket's marker is enqueued, fails the event.")
{
	struct run r = run_slowly(column);
	cl_event done;

	fake_dmabuf_fail(row->name, EIO, 1);
	EXPECT_EQ(fixture_enqueue(r.queue, r.kernel, 0, NULL, &done), CL_SUCCESS);
	EXPECT_EQ(cl.clWaitForEvents(1, &done), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
	EXPECT(fixture_event_status(done) < 0);
	EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
	expect_count("kernel increment end", row->kernels);
	cl.clReleaseEvent(done);
	fake_dmabuf_reset();
	close_slowly(&r, column);
}

TEST_EACH(start_fails_unseen, struct driver_kind, driver_kinds,
	  "A START that fails for a kernel without an event does not stop clFinish.")
{
	struct run r = run_slowly(row);

	fake_dmabuf_fail("START", EIO, 1);
	EXPECT_EQ(fixture_enqueue(r.queue, r.kernel, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
	expect_count("kernel increment", 0);
	close_slowly(&r, row);
}

TEST_EACH(kernel_fails_early, struct driver_kind, driver_kinds,
	  "A kernel that fails before the bracket's marker is enqueued fails the event.")
{
	struct run r = run_slowly(row);
	cl_event done;

	stub_set(STUB_KERNEL_FAIL, -5);
	EXPECT_EQ(fixture_enqueue(r.queue, r.kernel, 0, NULL, &done), CL_SUCCESS);
	EXPECT_EQ(cl.clWaitForEvents(1, &done), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
	EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
	cl.clReleaseEvent(done);
	close_untold(&r, row);
}

/* Whether the command has a wait list. */
static const struct list_kind {
	const char *name;
	cl_uint num_events;
} list_kinds[] = { { "without_list", 0 }, { "with_list", 1 } };

TEST_EACH_PAIR(marker_fails, struct driver_kind, driver_kinds, struct list_kind, list_kinds,
	       "A command fails, and does not hang, if the marker of its bracket fails.")
{
	struct run r = run_slowly(row);
	cl_event go = user_event_create(), done;

	stub_set(STUB_NOTHING_FAIL, -5);
	EXPECT_EQ(fixture_enqueue(r.queue, r.kernel, column->num_events,
				  column->num_events ? &go : NULL, &done),
		  CL_SUCCESS);
	fixture_complete_event(go, CL_COMPLETE);
	EXPECT_EQ(cl.clWaitForEvents(1, &done), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
	EXPECT(fixture_event_status(done) < 0);
	/* The second kernel may join the row. */
	EXPECT_EQ(fixture_enqueue(r.queue, r.kernel, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
	expect_count("kernel increment", 0);
	expect_no_sync("a");
	cl.clReleaseEvent(go);
	cl.clReleaseEvent(done);
	close_untold(&r, row);
}

TEST_EACH(callback_refused, struct driver_kind, driver_kinds,
	  "If the driver refuses a bracket's callback, the bracket's marker keeps its event until "
	  "the marker is done.")
{
	struct run r = run_open(row->properties);
	cl_event go = user_event_create();

	stub_set(STUB_NO_FAILURE_CALLBACK, row->quirk);
	stub_fail("clSetEventCallback", 1, CL_OUT_OF_HOST_MEMORY);
	EXPECT_EQ(fixture_enqueue(r.queue, r.kernel, 1, &go, NULL), CL_OUT_OF_HOST_MEMORY);
	let_others_run();
	fixture_complete_event(go, -5);
	EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
	expect_count("an event fails that nobody holds", 0);
	cl.clReleaseEvent(go);
	run_close(&r);
}

/* Fails the wait list once the command, but not the bracket's marker, is being enqueued. */
static void *fail_in_between(void *event)
{
	while (!stub_calls("clEnqueueNDRangeKernel") && !stub_calls("clEnqueueReadBuffer"))
		usleep(100); /* time: between two looks */
	EXPECT_EQ(cl.clSetUserEventStatus(*(cl_event *)event, -5), CL_SUCCESS);
	return NULL;
}

TEST_EACH(end_callback_refused, struct driver_kind, driver_kinds,
	  "If the driver refuses the callback for a command's end, the command fails, and does not "
	  "run.")
{
	struct run r = run_open(row->properties);
	cl_event go = user_event_create(), done;

	stub_set(STUB_NO_FAILURE_CALLBACK, row->quirk);
	stub_fail("clSetEventCallback", 2, CL_OUT_OF_HOST_MEMORY);
	EXPECT_EQ(fixture_enqueue(r.queue, r.kernel, 1, &go, &done), CL_SUCCESS);
	fixture_complete_event(go, CL_COMPLETE);
	EXPECT_EQ(cl.clWaitForEvents(1, &done), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
	EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
	expect_count("kernel increment", 0);
	expect_count("sync START a", stub_trace_count("sync END a"));
	cl.clReleaseEvent(go);
	cl.clReleaseEvent(done);
	run_close(&r);
}

TEST_EACH(wait_list_fails_early, struct driver_kind, driver_kinds,
	  "A wait list that fails in the middle of the enqueue fails the event.")
{
	struct run r = run_slowly(row);
	cl_event go = user_event_create(), done;
	pthread_t thread;

	stub_reset();
	stub_set(STUB_NO_FAILURE_BEHIND, 1);
	stub_set(STUB_NO_FAILURE_CALLBACK, row->quirk);
	stub_set(STUB_ENQUEUE_DELAY, 10);
	pthread_create(&thread, NULL, fail_in_between, &go);
	EXPECT_EQ(fixture_enqueue(r.queue, r.kernel, 1, &go, &done), CL_SUCCESS);
	EXPECT_EQ(cl.clWaitForEvents(1, &done), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
	EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
	expect_count("kernel increment", 0);
	expect_no_sync("a");
	pthread_join(thread, NULL);
	cl.clReleaseEvent(go);
	cl.clReleaseEvent(done);
	close_untold(&r, row);
}

/*
 * An import for version 1.1.0 whose consistency the runtime keeps, on a driver with a delay of
 * @delay milliseconds in each enqueue.
 */
static struct run run_host_access(const struct driver_kind *row, int delay)
{
	struct run r = run_open_for_host(row->properties);

	alarm(TEST_HANG_S);
	stub_reset();
	stub_set(STUB_NO_FAILURE_BEHIND, 1);
	stub_set(STUB_NO_FAILURE_CALLBACK, row->quirk);
	stub_set(STUB_ENQUEUE_DELAY, delay);
	return r;
}

/* The failing SYNC, on a driver with a delay of @delay milliseconds in each enqueue. */
static const struct delayed_sync {
	const char *name, *edge;
	int delay;
} delayed_syncs[] = { { "START", "START", 0 },
		      { "START_slow", "START", 10 },
		      { "END", "END", 0 },
		      { "END_slow", "END", 10 } };

TEST_EACH_PAIR(blocking_read_fails, struct driver_kind, driver_kinds, struct delayed_sync,
	       delayed_syncs,
	       "If START or END of a blocking read fails, the read returns an error.")
{
	struct run r = run_host_access(row, column->delay);
	cl_event done = (cl_event)(uintptr_t)0x5a5a;
	unsigned char byte;

	fake_dmabuf_fail(column->edge, EIO, 1);
	EXPECT_EQ(cl.clEnqueueReadBuffer(r.queue, r.a.mem, CL_TRUE, 0, 1, &byte, 0, NULL, &done),
		  CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
	EXPECT(done == (cl_event)(uintptr_t)0x5a5a);
	EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
	fake_dmabuf_reset();
	close_slowly(&r, row);
}

/* Fails the wait list once a thread waits for the list. */
static void *fail_in_wait(void *event)
{
	while (!stub_calls("clWaitForEvents"))
		usleep(100); /* time: between two looks */
	EXPECT_EQ(cl.clSetUserEventStatus(*(cl_event *)event, -5), CL_SUCCESS);
	return NULL;
}

TEST_EACH(blocking_read_of_failed, struct driver_kind, driver_kinds,
	  "A blocking read whose wait list has already failed returns, with an error.")
{
	struct run r = run_host_access(row, 10);
	cl_event go = user_event_create();
	unsigned char byte;

	alarm(TEST_HANG_S);
	stub_set(STUB_NO_FAILURE_BEHIND, 1);
	fixture_complete_event(go, -5);
	EXPECT_EQ(cl.clEnqueueReadBuffer(r.queue, r.a.mem, CL_TRUE, 0, 1, &byte, 1, &go, NULL),
		  CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
	alarm(0);
	expect_no_sync("a");
	cl.clReleaseEvent(go);
	close_untold(&r, row);
}

TEST_EACH(blocking_read_wait_list, struct driver_kind, driver_kinds,
	  "A blocking read whose wait list fails returns, with an error.")
{
	struct run r = run_host_access(row, 10);
	cl_event go = user_event_create();
	unsigned char byte;
	pthread_t thread;

	pthread_create(&thread, NULL, fail_in_wait, &go);
	EXPECT_EQ(cl.clEnqueueReadBuffer(r.queue, r.a.mem, CL_TRUE, 0, 1, &byte, 1, &go, NULL),
		  CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
	pthread_join(thread, NULL);
	expect_no_sync("a");
	cl.clReleaseEvent(go);
	close_untold(&r, row);
}

/* Blocking calls with wrong arguments, behind @go, return their errors. */
static void access_fail_expect_refused(const struct run *r, cl_command_queue stranger,
				       const cl_event *go)
{
	unsigned char bytes[64];
	cl_int err = 1;

	EXPECT_EQ(cl.clEnqueueReadBuffer(r->queue, r->a.mem, CL_TRUE, 0, 64, NULL, 1, go, NULL),
		  CL_INVALID_VALUE);
	EXPECT_EQ(cl.clEnqueueReadBuffer(r->queue, r->a.mem, CL_TRUE, SIZE - 2, 64, bytes, 1, go,
					 NULL),
		  CL_INVALID_VALUE);
	EXPECT_EQ(cl.clEnqueueWriteBuffer(r->queue, r->a.mem, CL_TRUE, SIZE - 2, 64, bytes, 1, go,
					  NULL),
		  CL_INVALID_VALUE);
	EXPECT_EQ(cl.clEnqueueReadBuffer(stranger, r->a.mem, CL_TRUE, 0, 64, bytes, 1, go, NULL),
		  CL_INVALID_CONTEXT);
	EXPECT(!cl.clEnqueueMapBuffer(r->queue, r->a.mem, CL_TRUE, CL_MAP_READ, SIZE - 2, 64, 1, go,
				      NULL, &err));
	EXPECT_EQ(err, CL_INVALID_VALUE);
}

TEST_EACH(blocking_wrong, struct driver_kind, driver_kinds,
	  "A blocking call with wrong arguments fails before its wait list is complete.")
{
	struct run r = run_host_access(row, 0);
	cl_event go = user_event_create();
	cl_context other = cl.clCreateContext(NULL, fix.num_devices, fix.device, NULL, NULL, NULL);
	cl_command_queue stranger = cl.clCreateCommandQueue(other, fix.device[0], 0, NULL);

	access_fail_expect_refused(&r, stranger, &go);
	fixture_complete_event(go, CL_COMPLETE);
	EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
	expect_no_sync("a");
	cl.clReleaseCommandQueue(stranger);
	cl.clReleaseContext(other);
	cl.clReleaseEvent(go);
	close_slowly(&r, row);
}

/* The milliseconds of delay in each enqueue of the driver. */
static const struct speed {
	const char *name;
	int delay;
} speeds[] = { { "fast", 0 }, { "slow", 10 } };

TEST_EACH_PAIR(blocking_map_fails, struct driver_kind, driver_kinds, struct speed, speeds,
	       "If START of a blocking map fails, the map returns an error and no pointer.")
{
	struct run r = run_host_access(row, column->delay);
	cl_int err = 1;

	fake_dmabuf_fail("START", EIO, 1);
	EXPECT(!cl.clEnqueueMapBuffer(r.queue, r.a.mem, CL_TRUE, CL_MAP_READ, 0, 64, 0, NULL, NULL,
				      &err));
	EXPECT_EQ(err, CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
	expect_no_sync("a");
	EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
	close_slowly(&r, row);
}

static bool was_told(void *text)
{
	return fix.notices && strstr(fix.notice, text);
}

/* The failing SYNC, and the call named in the sentence. */
static const struct told_sync {
	const char *name, *text;
} told_syncs[] = { { "START", "DMA_BUF_IOCTL_SYNC start" }, { "END", "DMA_BUF_IOCTL_SYNC end" } };

TEST_EACH_PAIR(told, struct told_sync, told_syncs, struct queue_kind, queue_kinds,
	       "If a SYNC fails, the context's callback gets a sentence, even without an event.")
{
	struct run r = run_open(column->properties);

	fake_dmabuf_fail(row->name, EIO, 1);
	EXPECT_EQ(fixture_enqueue(r.queue, r.kernel, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
	EXPECT(process_settles(was_told, (void *)(uintptr_t)row->text));
	EXPECT(strstr(fix.notice, "Input/output error"));
	EXPECT_EQ(fix.notices, 1);
	fake_dmabuf_reset();
	run_close(&r);
}

/*
 * Replaces the import's own descriptor of the buffer by a descriptor of a different file, as a
 * program does after closing too many descriptors.
 */
static int replace_own(int fd)
{
	struct stat wanted, st;
	int own = 3;

	EXPECT_EQ(fstat(fd, &wanted), 0);
	while (own == fd || fstat(own, &st) || st.st_ino != wanted.st_ino ||
	       st.st_dev != wanted.st_dev)
		EXPECT(++own < 1024);
	EXPECT_EQ(dup2(1, own), own);
	return own;
}

TEST_EACH_PAIR(closed_descriptor, struct queue_kind, queue_kinds, struct event_kind, event_kinds,
	       "If the program has closed a dma-buf's descriptor, a kernel on the dma-buf is "
	       "refused and a sentence tells why.")
{
	struct run r = run_open(row->properties);
	int own = replace_own(r.a.fd);
	cl_event event = NULL;

	EXPECT_EQ(fixture_enqueue(r.queue, r.kernel, 0, NULL, column->wanted ? &event : NULL),
		  CL_OUT_OF_RESOURCES);
	EXPECT_EQ(fix.notices, 1);
	EXPECT(strstr(fix.notice, "the program closed descriptor"));
	EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
	expect_count("kernel increment", 0);
	expect_count("sync", 0);
	run_close(&r);
	EXPECT_EQ(close(own), 0);
}

TEST(closed_during_command,
     "If the descriptor of a dma-buf is closed before a command ends, the command fails and a "
     "sentence tells why.")
{
	struct run r = run_open(0);
	cl_event go = user_event_create(), event;
	int own;

	EXPECT_EQ(fixture_enqueue(r.queue, r.kernel, 1, &go, &event), CL_SUCCESS);
	own = replace_own(r.a.fd);
	fixture_complete_event(go, CL_COMPLETE);
	EXPECT(cl.clWaitForEvents(1, &event) != CL_SUCCESS);
	EXPECT(fixture_event_status(event) < 0);
	EXPECT_EQ(fix.notices, 1);
	EXPECT(strstr(fix.notice, "the program closed descriptor"));
	expect_count("sync", 0);
	cl.clReleaseEvent(event);
	cl.clReleaseEvent(go);
	run_close(&r);
	EXPECT_EQ(close(own), 0);
}
