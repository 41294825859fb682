/* SPDX-License-Identifier: Apache-2.0 */
#include "row.h"

void row_enqueue(struct run *r, int count)
{
	for (int i = 0; i < count; i++)
		EXPECT_EQ(fixture_enqueue(r->queue, r->kernel, 0, NULL, NULL), CL_SUCCESS);
}

cl_event row_hold_back(struct run *r)
{
	cl_event go = user_event_create();

	EXPECT_EQ(cl.clEnqueueMarkerWithWaitList(r->queue, 1, &go, NULL), CL_SUCCESS);
	return go;
}

void row_let_go(cl_event go)
{
	fixture_complete_event(go, CL_COMPLETE);
	cl.clReleaseEvent(go);
}

void row_expect_all_inside(int kernels)
{
	int depth = 0, found = 0;

	for (int i = 0; stub_trace_find("", i) == i; i++) {
		depth += stub_trace_find("sync START a", i) == i;
		depth -= stub_trace_find("sync END a", i) == i;
		if (stub_trace_find("kernel increment", i) != i)
			continue;
		if (!depth)
			stub_trace_print();
		EXPECT(depth);
		found += stub_trace_find("kernel increment end", i) == i;
	}
	EXPECT_EQ(depth, 0);
	EXPECT_EQ(found, kernels);
}

bool row_has_ended(void *unused)
{
	int ends = stub_trace_count("sync END a");

	(void)unused;
	return stub_trace_count("kernel increment end") >= 3 && ends &&
	       stub_trace_count("sync START a") == ends;
}

cl_mem row_plain;
