/* SPDX-License-Identifier: Apache-2.0 */
/* The Nth call of the driver fails, for every N of what a program does with a buffer in place. */
#include "in_place.h"

#include <string.h>

/* A call of the program's with an error; the rest of a sequence does not run. */
static bool fault_is(cl_int err)
{
	EXPECT(err <= 0);
	return err != CL_SUCCESS;
}

static bool fault_in_map(cl_mem mem, unsigned char *p)
{
	cl_event event = NULL;
	cl_int err = 1;
	unsigned char *mapped = cl.clEnqueueMapBuffer(fix.queue, mem, CL_TRUE,
						      CL_MAP_READ | CL_MAP_WRITE, 0, PAGE, 0, NULL,
						      &event, &err);

	EXPECT_EQ(!mapped, !!err);
	if (fault_is(err))
		return true;
	if (mapped == p) /* else the buffer is the driver's own, as an import of it has failed */
		mapped[0]++;
	EXPECT_EQ(cl.clReleaseEvent(event), CL_SUCCESS);
	err = cl.clEnqueueUnmapMemObject(fix.queue, mem, mapped, 0, NULL, NULL);
	if (err)
		EXPECT_EQ(cl.clEnqueueUnmapMemObject(fix.queue, mem, mapped, 0, NULL, NULL),
			  CL_SUCCESS);
	return fault_is(err);
}

static bool fault_in_commands(cl_mem mem, unsigned char *p)
{
	cl_event event = NULL;
	cl_int err = cl.clEnqueueMigrateMemObjects(fix.queue, 1, &mem, 0, 0, NULL, &event);

	EXPECT_EQ(!event, !!err);
	if (fault_is(err))
		return true;
	cl.clReleaseEvent(event);
	return fault_is(cl.clEnqueueReadBuffer(fix.queue, mem, CL_TRUE, 0, PAGE, p, 0, NULL,
					       NULL)) ||
	       fault_is(cl.clEnqueueFillBuffer(fix.queue, mem, "a", 1, 0, 8, 0, NULL, NULL));
}

static bool fault_in_part(cl_mem mem)
{
	const cl_buffer_region region = { ALIGN, ALIGN };
	cl_int err = 1;
	cl_mem sub = cl.clCreateSubBuffer(mem, CL_MEM_READ_ONLY, CL_BUFFER_CREATE_TYPE_REGION,
					  &region, &err);

	EXPECT_EQ(!sub, !!err);
	if (fault_is(err))
		return true;
	cl.clReleaseMemObject(sub);
	return false;
}

static bool fault_in_image(cl_mem mem)
{
	const size_t origin[3] = { 0 }, region[3] = { 1, 1, 1 };
	const cl_uint color[4] = { 0 };
	size_t pitch;
	void *mapped;
	cl_int err = 1;
	cl_mem image = fixture_try_image(0, mem, &err);
	bool has_failed;

	EXPECT_EQ(!image, !!err);
	if (fault_is(err))
		return true;
	has_failed = fault_is(
		cl.clEnqueueFillImage(fix.queue, image, color, origin, region, 0, NULL, NULL));
	mapped = cl.clEnqueueMapImage(fix.queue, image, CL_TRUE, CL_MAP_READ, origin, region,
				      &pitch, NULL, 0, NULL, NULL, &err);
	EXPECT_EQ(!mapped, !!err);
	has_failed |= fault_is(err);
	if (mapped)
		has_failed |= fault_is(
			cl.clEnqueueUnmapMemObject(fix.queue, image, mapped, 0, NULL, NULL));
	cl.clReleaseMemObject(image);
	return has_failed;
}

/* Returns whether a call of the program's has failed. */
static bool fault_in_sequence(unsigned char *p, size_t size)
{
	bool has_failed;
	cl_int err = 1;
	cl_mem mem = cl.clCreateBuffer(fix.context, CL_MEM_USE_HOST_PTR, size, p, &err);

	EXPECT_EQ(!mem, !!err);
	if (fault_is(err))
		return true;
	has_failed = fault_in_part(mem) || fault_in_image(mem) || fault_in_map(mem, p) ||
		     fault_in_commands(mem, p);
	if (fault_is(cl.clFinish(fix.queue))) {
		has_failed = true;
		EXPECT_EQ(cl.clFinish(fix.queue), CL_SUCCESS);
	}
	cl.clReleaseMemObject(mem);
	return has_failed;
}

static const struct fault_place {
	const char *name;
	size_t offset;
} fault_places[] = { { "pages", 0 }, { "within", 3 * ALIGN } };

TEST_EACH(every_call, struct fault_place, fault_places,
	  "If any call of the driver fails, the program's call succeeds or has an error, and no "
	  "object is "
	  "left. Without a fault each call succeeds.")
{
	unsigned long n = 0;
	unsigned char *p;
	bool has_failed;

	in_place_reset();
	stub_set(STUB_IMAGE2D_FROM_BUFFER, 1);
	fixture_open();
	p = pages_map(2) + row->offset;
	EXPECT(!fault_in_sequence(p, PAGE));
	do {
		stub_fail(NULL, ++n, CL_OUT_OF_RESOURCES);
		has_failed = fault_in_sequence(p, PAGE);
		EXPECT(n < 500);
	} while (stub_failed());
	stub_fail(NULL, 0, 0);
	EXPECT(!has_failed);
	EXPECT(n > 10);
	EXPECT(!fault_in_sequence(p, PAGE));
	in_place_close();
}
