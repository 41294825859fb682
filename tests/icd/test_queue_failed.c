/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of kernels with failing calls and slow drivers, and the end of queues, imports and threads.
 */
#include "row.h"

#include <errno.h>
#include <pthread.h>
#include <unistd.h>

TEST(null_queue, "The driver refuses a kernel without a queue, and later kernels work.")
{
	struct run r = run_open(0);

	for (int i = 0; i < ROW; i++)
		EXPECT_EQ(fixture_enqueue(NULL, r.kernel, 0, NULL, NULL), CL_INVALID_COMMAND_QUEUE);
	row_enqueue(&r, ROW);
	EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
	row_expect_all_inside(ROW);
	run_close(&r);
}

TEST(refused_is_not_begun,
     "A kernel that the driver refuses gets no START, even if START would come late.")
{
	struct run r = run_open(0);
	cl_event go = user_event_create();

	EXPECT_EQ(cl.clEnqueueMarkerWithWaitList(r.queue, 1, &go, NULL), CL_SUCCESS);
	stub_fail("clEnqueueNDRangeKernel", 1, CL_OUT_OF_RESOURCES);
	EXPECT_EQ(fixture_enqueue(r.queue, r.kernel, 0, NULL, NULL), CL_OUT_OF_RESOURCES);
	fixture_complete_event(go, CL_COMPLETE);
	EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
	let_others_run();
	expect_no_sync("a");
	cl.clReleaseEvent(go);
	run_close(&r);
}

/* When START fails: while kernels are being enqueued, or after all kernels are enqueued. */
static const struct failure_time {
	const char *name;
	const char *busy;
} failure_times[] = { { "early", NULL }, { "late", "a" } };

TEST_EACH(start_fails, struct failure_time, failure_times,
	  "If START fails, no kernel of the row runs, and the next row has a new START.")
{
	struct run r = run_open(0);

	alarm(TEST_HANG_S);
	stub_set(STUB_NO_FAILURE_BEHIND, 1);
	fake_dmabuf_busy(row->busy);
	fake_dmabuf_fail("START", EIO, 1000);
	row_enqueue(&r, ROW);
	fake_dmabuf_busy(NULL);
	EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
	expect_count("kernel increment", 0);
	fake_dmabuf_reset();
	row_enqueue(&r, ROW);
	EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
	row_expect_all_inside(ROW);
	alarm(0);
	run_close(&r);
}

static const struct refused_kernel {
	const char *name;
	unsigned long nth;
} refused_kernels[] = { { "first", 1 }, { "second", 2 }, { "third", 3 } };

TEST_EACH(enqueue_fails, struct refused_kernel, refused_kernels,
	  "If the driver refuses a kernel of a row, the row's other kernels run.")
{
	struct run r = run_open(0);

	stub_fail("clEnqueueNDRangeKernel", row->nth, CL_OUT_OF_RESOURCES);
	for (unsigned long i = 1; i < 4; i++)
		EXPECT_EQ(fixture_enqueue(r.queue, r.kernel, 0, NULL, NULL),
			  i == row->nth ? CL_OUT_OF_RESOURCES : CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
	run_close(&r); /* a refused kernel's END may come after clFinish() */
	row_expect_all_inside(2);
}

TEST(lazy_driver, "If the driver starts nothing before a flush, an idle row is still ended.")
{
	struct run r = run_open(0);

	stub_set(STUB_LAZY, 1);
	row_enqueue(&r, ROW);
	EXPECT_EQ(cl.clFlush(r.queue), CL_SUCCESS);
	EXPECT(process_settles(row_has_ended, NULL));
	row_expect_all_inside(ROW);
	run_close(&r);
}

TEST(slow_driver, "If the driver is slow to enqueue, an idle row is still ended.")
{
	struct run r = run_open(0);

	stub_set(STUB_ENQUEUE_DELAY, 20); /* meanwhile the idle thread looks at the queue */
	row_enqueue(&r, 3);
	stub_set(STUB_ENQUEUE_DELAY, 0);
	EXPECT(process_settles(row_has_ended, NULL));
	row_expect_all_inside(3);
	run_close(&r);
}

static bool queue_is_gone(void *queue)
{
	return !stub_is_live(queue, STUB_QUEUE);
}

static bool has_flushed(void *unused)
{
	(void)unused;
	return stub_calls("clFlush") > 0;
}

TEST(flush_blocks,
     "If the driver blocks in the flush of an idle queue, enqueues on the queue do not block.")
{
	struct run r = run_open(0);

	alarm(TEST_HANG_S);
	stub_set(STUB_HANG_FLUSH, 1);
	row_enqueue(&r, 3);
	EXPECT(process_settles(has_flushed, NULL));
	row_enqueue(&r, 3);
	stub_set(STUB_HANG_FLUSH, 0);
	EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
	row_expect_all_inside(6);
	run_close(&r);
	alarm(0);
}

static bool has_ended_once(void *unused)
{
	(void)unused;
	return stub_trace_count("sync END a") == 1;
}

/* A row of one kernel: between two the idle thread might end a row, and block before the next one. */
TEST(released_in_flush,
     "A queue that is released while a flush blocks is destroyed when the flush returns.")
{
	struct run r = run_open(0);

	alarm(TEST_HANG_S);
	stub_set(STUB_HANG_FLUSH, 1);
	row_enqueue(&r, 1);
	EXPECT(process_settles(has_flushed, NULL));
	EXPECT(process_settles(has_ended_once, NULL));
	EXPECT_EQ(cl.clReleaseCommandQueue(r.queue), CL_SUCCESS);
	EXPECT(stub_is_live(r.queue, STUB_QUEUE));
	stub_set(STUB_HANG_FLUSH, 0);
	EXPECT(process_settles(queue_is_gone, r.queue));
	r.queue = fixture_create_queue(0);
	run_close(&r);
	alarm(0);
}

/* Creates a queue at the address of the released queue @freed. */
static cl_command_queue queue_create_at(cl_command_queue freed,
					cl_command_queue_properties properties)
{
	cl_command_queue found, others[64];
	int count = 0;

	stub_set(STUB_ADDRESS_REUSE, 1);
	while ((found = fixture_create_queue(properties)) != freed && count < 64)
		others[count++] = found;
	stub_set(STUB_ADDRESS_REUSE, 0);
	EXPECT(found == freed); /* the test's premise */
	while (count)
		cl.clReleaseCommandQueue(others[--count]);
	return found;
}

/* Releases a busy queue of @properties, and creates a queue of @next at the freed address. */
static struct run run_at_address(cl_command_queue_properties properties,
				 cl_command_queue_properties next)
{
	struct run r = run_open(properties);
	cl_event go = row_hold_back(&r);

	row_enqueue(&r, 3);
	EXPECT_EQ(cl.clReleaseCommandQueue(r.queue), CL_SUCCESS);
	row_let_go(go);
	EXPECT(process_settles(queue_is_gone, r.queue));
	r.queue = queue_create_at(r.queue, next);
	stub_trace_clear();
	return r;
}

TEST(address_out_of_order,
     "An out-of-order queue at the address of a released in-order queue has no rows.")
{
	struct run r = run_at_address(0, OUT_OF_ORDER);

	row_enqueue(&r, ROW);
	EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
	expect_count("sync START a", ROW);
	run_close(&r);
}

TEST(address_in_order,
     "An in-order queue at the address of a released out-of-order queue has rows.")
{
	int starts = 0;

	for (int i = 0; i < 100 && starts != 1; i++) {
		struct run r = run_at_address(OUT_OF_ORDER, 0);
		cl_event go = row_hold_back(&r);

		row_enqueue(&r, ROW);
		row_let_go(go);
		EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
		starts = stub_trace_count("sync START a");
		row_expect_all_inside(ROW);
		run_close(&r);
	}
	EXPECT_EQ(starts, 1);
}

TEST(released_import,
     "The last release of the import ends the row, and unmaps the import's memory.")
{
	struct run r = run_open(0);

	row_enqueue(&r, ROW);
	cl.clReleaseKernel(r.kernel);
	buffer_close(&r.a);
	EXPECT(process_settles(row_has_ended, NULL));
	EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
	EXPECT(process_settles(fixture_is_unmapped, NULL));
	row_expect_all_inside(ROW);
	cl.clReleaseCommandQueue(r.queue);
	fixture_close();
}

static const struct unknown_function {
	const char *name;
} unknown_functions[] = { { "clEnqueueSomethingSTUB" }, { "clMemBlockingFreeINTEL" } };

TEST_EACH(
	unknown_function, struct unknown_function, unknown_functions,
	"After a program asks for a function that enqueues, or waits, and that the layer does not "
	"know, there are no more rows.")
{
	struct run r = run_open(0);

	row_enqueue(&r, 3);
	EXPECT(cl.clGetExtensionFunctionAddressForPlatform(fix.platform, row->name));
	EXPECT(process_settles(row_has_ended, NULL));
	stub_trace_clear();
	row_enqueue(&r, ROW);
	EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
	expect_count("sync START a", ROW);
	run_close(&r);
}

static void CL_CALLBACK notice_destruction(cl_mem mem, void *unused)
{
	(void)mem;
	(void)unused;
}

TEST(destructor_callback,
     "After a program registers a destructor callback on a memory object, there are no more rows.")
{
	struct run r = run_open(0);
	cl_event go;

	row_plain = cl.clCreateBuffer(fix.context, 0, SIZE, NULL, NULL);
	row_enqueue(&r, 3);
	EXPECT_EQ(cl.clSetMemObjectDestructorCallback(row_plain, notice_destruction, NULL),
		  CL_SUCCESS);
	EXPECT(process_settles(row_has_ended, NULL));
	stub_trace_clear();
	go = row_hold_back(&r);
	row_enqueue(&r, ROW);
	row_let_go(go);
	EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
	expect_count("sync START a", ROW);
	cl.clReleaseMemObject(row_plain);
	run_close(&r);
}

/* The idle thread is in the driver, in the call to observe the row's END. */
static bool is_closing(void *calls)
{
	return stub_calls("clSetEventCallback") >= *(unsigned long *)calls;
}

TEST(finish_while_closing, "clFinish waits for the END of an idle row that the layer is ending.")
{
	struct run r = run_open(0);
	unsigned long calls = stub_calls("clSetEventCallback") + 2; /* the first is for START */

	stub_set(STUB_CALLBACK_DELAY, 100);
	stub_set(STUB_ENQUEUE_DELAY, 300);
	row_enqueue(&r, 1);
	EXPECT(process_settles(is_closing, &calls));
	EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
	expect_count("sync END a", 1);
	run_close(&r);
}

struct work {
	struct run *r;
	bool finishes;
};

static void *enqueue_many(void *arg)
{
	struct work *work = arg;
	struct run mine = *work->r;

	mine.kernel = fixture_create_increment(mine.a.mem);
	for (int i = 0; i < 100; i++) {
		cl_event event = NULL;

		if (fixture_enqueue(mine.queue, mine.kernel, 0, NULL, i % 17 == 3 ? &event : NULL))
			return (void *)1;
		if (event && (cl.clWaitForEvents(1, &event) || cl.clReleaseEvent(event)))
			return (void *)1;
		if (work->finishes && i % 10 == 5 && cl.clFinish(mine.queue))
			return (void *)1;
	}
	cl.clReleaseKernel(mine.kernel);
	return NULL;
}

TEST(threads, "If four threads enqueue on one queue, every kernel runs inside a bracket.")
{
	for (int i = 0; i < 5; i++) {
		struct run r = run_open(0);
		pthread_t thread[4];
		struct work work[4];
		void *failed;

		for (int t = 0; t < 4; t++) {
			work[t] = (struct work){ &r, t & 1 };
			pthread_create(&thread[t], NULL, enqueue_many, &work[t]);
		}
		for (int t = 0; t < 4; t++) {
			pthread_join(thread[t], &failed);
			EXPECT(!failed);
		}
		EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
		row_expect_all_inside(400);
		run_close(&r);
	}
}
