/* SPDX-License-Identifier: Apache-2.0 */
/* DMA_BUF_IOCTL_SYNC of maps and unmaps, also after failures. */
#include "access.h"

#include <errno.h>
#include <stdlib.h>

static void *mapping_enqueue_map(const struct run *r, cl_bool blocking, const cl_event *go,
				 cl_event *done)
{
	cl_int err;
	void *mapped = cl.clEnqueueMapBuffer(r->queue, r->a.mem, blocking, CL_MAP_READ, 0, 64,
					     go ? 1 : 0, go, done, &err);

	EXPECT_EQ(err, CL_SUCCESS);
	return mapped;
}

static cl_int mapping_enqueue_unmap(const struct run *r, void *mapped, const cl_event *go,
				    cl_event *done)
{
	return cl.clEnqueueUnmapMemObject(r->queue, r->a.mem, mapped, go ? 1 : 0, go, done);
}

static void expect_failure(cl_event event)
{
	EXPECT_EQ(cl.clWaitForEvents(1, &event), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
	EXPECT(fixture_event_status(event) < 0);
	cl.clReleaseEvent(event);
}

static void unmap_and_wait(const struct run *r, void *mapped)
{
	cl_event done;

	EXPECT_EQ(mapping_enqueue_unmap(r, mapped, NULL, &done), CL_SUCCESS);
	EXPECT_EQ(cl.clWaitForEvents(1, &done), CL_SUCCESS);
	cl.clReleaseEvent(done);
}

static bool mapping_has_ended(void *unused)
{
	(void)unused;
	return stub_trace_count("sync END a") && !fake_dmabuf_open_brackets();
}

TEST(list_of_none,
     "A map with an event list of length 0 gets the driver's CL_INVALID_EVENT_WAIT_LIST.")
{
	struct run r = run_open_for_host(0);
	cl_event none = NULL;
	cl_int err = CL_SUCCESS;

	cl.clEnqueueMapBuffer(r.queue, r.a.mem, CL_TRUE, CL_MAP_READ, 0, 64, 0, &none, NULL, &err);
	EXPECT_EQ(err, CL_INVALID_EVENT_WAIT_LIST);
	EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
	expect_no_sync("a");
	run_close(&r);
}

TEST(failed_pointer, "A pointer that comes with an error of the driver's is not unmapped.")
{
	struct run r = run_open_for_host(0);
	cl_int err = CL_SUCCESS;

	stub_set(STUB_FAILED_HANDLE, 1);
	stub_fail("clEnqueueMapBuffer", 1, CL_OUT_OF_RESOURCES);
	EXPECT(!cl.clEnqueueMapBuffer(r.queue, r.a.mem, CL_TRUE, CL_MAP_READ, 0, 64, 0, NULL, NULL,
				      &err));
	EXPECT_EQ(err, CL_OUT_OF_RESOURCES);
	EXPECT_EQ(stub_calls("clEnqueueUnmapMemObject"), 0);
	stub_set(STUB_FAILED_HANDLE, 0);
	run_close(&r);
}

TEST_EACH(start_fails, struct queue_kind, queue_kinds,
	  "If START of a map failed, so has the map's event.")
{
	struct run r = run_open_for_host(row->properties);
	cl_event done;

	fake_dmabuf_fail("START", EIO, 1);
	mapping_enqueue_map(&r, CL_FALSE, NULL, &done);
	expect_failure(done);
	expect_no_sync("a");
	run_close(&r);
}

TEST_EACH(wait_list_fails, struct driver_kind, driver_kinds,
	  "If the wait list of a map failed, the map has no START.")
{
	struct run r = run_open_for_host(row->properties);
	cl_event go = user_event_create(), done;

	stub_set(STUB_NO_FAILURE_CALLBACK, row->quirk); /* like PoCL 3.1 */
	mapping_enqueue_map(&r, CL_FALSE, &go, &done);
	fixture_complete_event(go, -5);
	expect_failure(done);
	expect_no_sync("a");
	cl.clReleaseEvent(go);
	run_release(&r);
	row->quirk ? fixture_release() : fixture_close();
}

TEST(unmap_refused, "If the driver refuses an unmap, the next unmap makes the END.")
{
	struct run r = run_open_for_host(0);
	void *mapped = mapping_enqueue_map(&r, CL_TRUE, NULL, NULL);

	stub_fail("clEnqueueUnmapMemObject", 1, CL_OUT_OF_RESOURCES);
	EXPECT_EQ(mapping_enqueue_unmap(&r, mapped, NULL, NULL), CL_OUT_OF_RESOURCES);
	let_others_run();
	expect_count("sync END a", 0);
	unmap_and_wait(&r, mapped);
	expect_count("sync END a", 1);
	run_close(&r);
}

TEST_EACH(unmap_fails, struct queue_kind, queue_kinds,
	  "If the wait list of an unmap fails, access is ended.")
{
	struct run r = run_open_for_host(row->properties);
	void *mapped = mapping_enqueue_map(&r, CL_TRUE, NULL, NULL);
	cl_event go = user_event_create(), done;

	stub_set(STUB_TWO_FAILURES_ABORT, 1); /* like Intel's CPU runtime */
	EXPECT_EQ(mapping_enqueue_unmap(&r, mapped, &go, &done), CL_SUCCESS);
	fixture_complete_event(go, -5);
	expect_failure(done);
	EXPECT(process_settles(mapping_has_ended, NULL));
	expect_count("sync END a", 1);
	cl.clReleaseEvent(go);
	run_close(&r);
}

TEST(released_before_unmap,
     "If an import is released while its unmap is in the queue, the unmap ends access.")
{
	struct run r = run_open_for_host(0);
	void *mapped = mapping_enqueue_map(&r, CL_TRUE, NULL, NULL);
	cl_event go = user_event_create();

	EXPECT_EQ(mapping_enqueue_unmap(&r, mapped, &go, NULL), CL_SUCCESS);
	cl.clFlush(r.queue);
	run_release(&r);
	expect_count("sync END a", 0);
	fixture_complete_event(go, CL_COMPLETE);
	EXPECT(process_settles(mapping_has_ended, NULL));
	expect_count("sync END a", 1);
	EXPECT(process_settles(fixture_mapped_at_most, &r.mapped_before));
	cl.clReleaseEvent(go);
	fixture_close();
}

TEST(callback_refused, "If the layer cannot observe the end of an unmap, access ends at once.")
{
	struct run r = run_open_for_host(0);
	void *mapped = mapping_enqueue_map(&r, CL_TRUE, NULL, NULL);

	stub_fail("clSetEventCallback", 1, CL_OUT_OF_HOST_MEMORY);
	EXPECT_EQ(mapping_enqueue_unmap(&r, mapped, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
	EXPECT(process_settles(mapping_has_ended, NULL));
	expect_count("sync END a", 1);
	run_close(&r);
}
