/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Nth call of the driver fails, for every N until a program's sequence of calls succeeds.  Each
 * call must either succeed, or return an error and leave the outputs unchanged.  Afterwards no
 * object, descriptor or mapping may be left.
 */
#include "access.h"

#include <unistd.h>

#define UNTOUCHED ((cl_event)(uintptr_t)0x5a5a)

static int fd;
static unsigned char *memory;

/* The objects of a run, and whether a call failed. */
struct attempt {
	cl_mem mem, sub, image, line;
	cl_kernel kernel;
	cl_event event[2];
	bool failed;
};

/* A driver may give a handle together with an error. */
static bool is_object(const void *handle)
{
	return handle && handle != stub_dead_handle();
}

static void attempt_add_object(struct attempt *r, const void *object, cl_int err)
{
	EXPECT_EQ(is_object(object), err == CL_SUCCESS);
	EXPECT(err <= 0);
	r->failed |= err != CL_SUCCESS;
}

static void attempt_add_error(struct attempt *r, cl_int err)
{
	EXPECT(err <= 0);
	r->failed |= err != CL_SUCCESS;
}

static void do_import(struct attempt *r, bool of_dmabuf)
{
	cl_int err = 1;

	if (of_dmabuf)
		r->mem = fix.import(fix.context, 0, fixture_dma_buf, &fd, SIZE, &err);
	else
		r->mem = fix.import(fix.context, 0, NULL, memory, SIZE, &err);
	attempt_add_object(r, r->mem, err);
}

static void do_derive(struct attempt *r)
{
	const cl_image_format format = { CL_RGBA, CL_UNSIGNED_INT8 };
	const cl_buffer_region region = { 4096, 4096 };
	cl_image_desc desc = { .image_type = CL_MEM_OBJECT_IMAGE2D,
			       .image_width = 4,
			       .image_height = 4,
			       .image_row_pitch = 64 };
	cl_int err = 1;

	r->sub = cl.clCreateSubBuffer(r->mem, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &err);
	attempt_add_object(r, r->sub, err);
	if (r->failed)
		return;
	desc.mem_object = r->sub;
	r->image = cl.clCreateImage(fix.context, 0, &format, &desc, NULL, &err);
	attempt_add_object(r, r->image, err);
	desc = (cl_image_desc){ .image_type = CL_MEM_OBJECT_IMAGE1D_BUFFER,
				.image_width = 4,
				.mem_object = r->sub };
	r->line = cl.clCreateImage(fix.context, 0, &format, &desc, NULL, &err);
	attempt_add_object(r, r->line, err);
}

/* Runs a kernel on the sub-buffer, and a second kernel after the first. */
static void do_enqueue(struct attempt *r)
{
	cl_int err = 1;

	r->kernel = cl.clCreateKernel(fix.program, "increment", &err);
	attempt_add_object(r, r->kernel, err);
	if (r->failed)
		return;
	attempt_add_error(r, cl.clSetKernelArg(r->kernel, 0, sizeof(r->sub), &r->sub));
	if (r->failed)
		return;
	for (int i = 0; i < 2 && !r->failed; i++) {
		r->event[i] = UNTOUCHED;
		err = fixture_enqueue(fix.queue, r->kernel, i ? 1 : 0, i ? &r->event[0] : NULL,
				      &r->event[i]);
		attempt_add_error(r, err);
		EXPECT_EQ(r->event[i] == UNTOUCHED, err != CL_SUCCESS);
		if (err)
			r->event[i] = NULL;
	}
	if (r->event[1])
		attempt_add_error(r, cl.clWaitForEvents(1, &r->event[1]));
	attempt_add_error(r, cl.clFinish(fix.queue));
}

static void clean_up(struct attempt *r)
{
	cl.clFinish(fix.queue);
	for (int i = 0; i < 2; i++)
		if (r->event[i])
			EXPECT_EQ(cl.clReleaseEvent(r->event[i]), CL_SUCCESS);
	if (is_object(r->kernel))
		EXPECT_EQ(cl.clReleaseKernel(r->kernel), CL_SUCCESS);
	if (is_object(r->line))
		EXPECT_EQ(cl.clReleaseMemObject(r->line), CL_SUCCESS);
	if (is_object(r->image))
		EXPECT_EQ(cl.clReleaseMemObject(r->image), CL_SUCCESS);
	if (is_object(r->sub))
		EXPECT_EQ(cl.clReleaseMemObject(r->sub), CL_SUCCESS);
	if (is_object(r->mem))
		EXPECT_EQ(cl.clReleaseMemObject(r->mem), CL_SUCCESS);
}

static bool fds_are(void *count)
{
	return process_count_descriptors() == *(int *)count;
}

static bool brackets_closed(void *arg)
{
	(void)arg;
	return !fake_dmabuf_open_brackets();
}

static void expect_nothing_left(long alive, int fds)
{
	EXPECT(stub_live_settles(alive));
	EXPECT_EQ(stub_live_all(), alive);
	EXPECT(process_settles(fds_are, &fds));
	EXPECT(process_settles(fixture_is_unmapped, NULL));
	EXPECT(process_settles(brackets_closed, NULL));
}

/*
 * Runs the sequence while the @nth call fails; 0 lets all calls succeed.  Returns whether a call
 * failed.
 */
static bool run_with_fault(unsigned long nth, bool of_dmabuf)
{
	struct attempt r = { 0 };
	bool happened;

	stub_fail(NULL, nth, CL_OUT_OF_RESOURCES);
	do_import(&r, of_dmabuf);
	if (!r.failed)
		do_derive(&r);
	if (!r.failed)
		do_enqueue(&r);
	happened = stub_failed();
	stub_fail(NULL, 0, CL_SUCCESS);
	if (!happened)
		EXPECT(!r.failed);
	clean_up(&r);
	return happened;
}

/* The number of open descriptors once the layer's thread has closed all released descriptors. */
static int settled_fds(void)
{
	EXPECT(process_settles(fixture_is_unmapped, NULL));
	let_others_run();
	return process_count_descriptors();
}

/* The memory of an import. */
static const struct memory_kind {
	const char *name;
	bool is_dmabuf;
} memory_kinds[] = { { "host", false }, { "dma_buf", true } };

TEST_EACH(every_call, struct memory_kind, memory_kinds,
	  "Each driver call of an import, its derived objects and its kernels fails once.")
{
	unsigned long nth = 1;
	long alive;
	int fds;

	fixture_reset();
	fixture_open();
	fd = fake_dmabuf_create("a", SIZE);
	memory = pages_map(2);
	alive = stub_live_all();
	run_with_fault(0, row->is_dmabuf); /* starts threads and opens descriptors for good */
	EXPECT(stub_live_settles(alive));
	fds = settled_fds();
	while (run_with_fault(nth, row->is_dmabuf)) {
		expect_nothing_left(alive, fds);
		EXPECT(++nth < 1000);
	}
	EXPECT(nth > 8);
	expect_nothing_left(alive, fds);
	printf("# %lu calls that can fail\n", nth - 1);
	close(fd);
	fixture_close();
}

/* The test of images makes the same calls many times, 21 for an image: each 23rd is in another place. */
static unsigned long first_use_next_fault(unsigned long nth)
{
	EXPECT(nth < 2000);
	return nth + (nth < 350 ? 1 : 23);
}

/* The first use of a fresh layer, self-tests included. */
static bool first_use_with_fault(unsigned long nth, bool of_dmabuf, bool gives_handle)
{
	bool happened;

	fixture_reset();
	fixture_open();
	stub_set(STUB_FAILED_HANDLE, gives_handle);
	fd = fake_dmabuf_create("a", SIZE);
	memory = pages_map(2);
	happened = run_with_fault(nth, of_dmabuf);
	EXPECT(process_settles(fixture_is_unmapped, NULL));
	close(fd);
	expect_count("dead handle", 0);
	fixture_close();
	return happened;
}

static void first_use_with_faults(bool gives_handle)
{
	unsigned long nth = 1;

	while (first_use_with_fault(nth, nth & 1, gives_handle) ||
	       first_use_with_fault(nth, !(nth & 1), gives_handle))
		nth = first_use_next_fault(nth);
	EXPECT(nth > 400);
	printf("# about %lu calls that can fail\n", nth);
}

TEST(first_use,
     "Each driver call of a process's first import, which tests the devices, fails once.")
{
	first_use_with_faults(false);
}

TEST(failed_handles, "The layer never uses a handle that the driver returned with an error.")
{
	first_use_with_faults(true);
}

/* A driver may run short of memory once, and still be zero copy. */
TEST(fault_is_not_for_ever, "After a fault in the self-test, a later import works.")
{
	cl_mem mem;

	fixture_reset();
	stub_set(STUB_NO_NATIVE_KERNEL, 1);
	fixture_open();
	memory = pages_map(2);
	stub_fail("clCreateProgramWithSource", 1, CL_OUT_OF_HOST_MEMORY);
	/* The layer may have tried again. */
	mem = fix.import(fix.context, 0, NULL, memory, SIZE, NULL);
	EXPECT(stub_failed());
	if (mem)
		cl.clReleaseMemObject(mem);
	cl.clReleaseMemObject(fixture_import_host(0, memory, SIZE));
	fixture_close();
}

TEST(query_is_not_for_ever, "After a failed query of a device, a later import works.")
{
	bool happened = true;

	for (unsigned long nth = 1; happened; nth++) {
		cl_mem mem;

		fixture_reset();
		fixture_open();
		memory = pages_map(2);
		stub_fail("clGetDeviceInfo", nth, CL_OUT_OF_HOST_MEMORY);
		mem = fix.import(fix.context, 0, NULL, memory, SIZE, NULL);
		happened = stub_failed();
		stub_fail(NULL, 0, 0);
		if (mem)
			cl.clReleaseMemObject(mem);
		cl.clReleaseMemObject(fixture_import_host(0, memory, SIZE));
		fixture_close();
		EXPECT(nth < 1000);
	}
}
