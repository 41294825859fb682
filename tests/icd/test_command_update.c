/* SPDX-License-Identifier: Apache-2.0 */
/* Brackets around command buffers that use dma-bufs, also after updates of their arguments. */
#include "command_list.h"

/* The dma-bufs "a" and "b", a kernel on "a", and a command buffer with the kernel. */
struct recorded {
	struct buffer a, b;
	cl_kernel kernel;
	cl_command_buffer_khr list;
};

static struct recorded recorded_open(void)
{
	const size_t one = 1;
	struct recorded r;

	fixture_reset();
	fixture_open();
	khr_get_functions();
	r.a = buffer_open("a", NULL);
	r.b = buffer_open("b", NULL);
	r.kernel = fixture_create_increment(r.a.mem);
	r.list = list_create();
	EXPECT_EQ(
		khr.kernel(r.list, NULL, NULL, r.kernel, 1, NULL, &one, NULL, 0, NULL, NULL, NULL),
		CL_SUCCESS);
	EXPECT_EQ(khr.finalize(r.list), CL_SUCCESS);
	return r;
}

static void recorded_close(struct recorded *r)
{
	EXPECT_EQ(khr.release(r->list), CL_SUCCESS);
	cl.clReleaseKernel(r->kernel);
	buffer_close(&r->a);
	buffer_close(&r->b);
	fixture_close();
}

static void run_recorded(cl_command_buffer_khr list)
{
	stub_trace_clear();
	EXPECT_EQ(khr.enqueue(0, NULL, list, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(fix.queue), CL_SUCCESS);
	expect_bracket("a", "increment");
	expect_no_sync("b");
}

TEST(recorded,
     "Each run of a command buffer is bracketed, by the arguments at the time of recording.")
{
	struct recorded r = recorded_open();

	EXPECT_EQ(cl.clSetKernelArg(r.kernel, 0, sizeof(r.b.mem), &r.b.mem), CL_SUCCESS);
	run_recorded(r.list);
	run_recorded(r.list);
	EXPECT_EQ(r.a.seen[0], 2);
	recorded_close(&r);
}

TEST(recorded_and_released,
     "A command buffer keeps an import alive that is released after the recording.")
{
	struct recorded r = recorded_open();

	cl.clReleaseMemObject(r.a.mem);
	run_recorded(r.list);
	EXPECT_EQ(r.a.seen[0], 1);
	r.a.mem = cl.clCreateBuffer(fix.context, 0, SIZE, NULL, NULL); /* for buffer_close() */
	recorded_close(&r);
}

TEST(retained_list, "A command buffer that is retained and released once keeps its imports.")
{
	struct recorded r = recorded_open();

	EXPECT_EQ(khr.retain(r.list), CL_SUCCESS);
	EXPECT_EQ(khr.release(r.list), CL_SUCCESS);
	run_recorded(r.list);
	recorded_close(&r);
}

/* A kernel on "a" whose arguments can be replaced. */
struct changing {
	struct buffer a, b;
	cl_kernel kernel;
	cl_command_buffer_khr list;
	cl_mutable_command_khr command;
};

/* The command's handle is stored in *@handle unless @handle is NULL. */
static void record_kernel(const struct changing *c, cl_mutable_command_khr *handle)
{
	const size_t one = 1;

	EXPECT_EQ(khr.kernel(c->list, NULL, NULL, c->kernel, 1, NULL, &one, NULL, 0, NULL, NULL,
			     handle),
		  CL_SUCCESS);
}

/* The form of a driver's updates, and the reporters of the extension. */
static const struct update_form {
	const char *name;
	long arrays, named;
} update_forms[] = { { "chain", 0, 3 },
		     { "arrays", 1, 3 },
		     { "chain_device", 0, 1 },
		     { "arrays_device", 1, 1 } };

/* Leaves the command buffer open for more commands. */
static struct changing changing_open(const struct update_form *form)
{
	struct changing c;

	fixture_reset();
	stub_set(STUB_COMMAND_ARRAYS, form->arrays);
	stub_set(STUB_COMMAND_NAMED, form->named);
	fixture_open();
	khr_get_functions();
	c.a = buffer_open("a", NULL);
	c.b = buffer_open("b", NULL);
	c.kernel = fixture_create_increment(c.a.mem);
	c.list = list_create();
	record_kernel(&c, &c.command);
	return c;
}

static void changing_close(struct changing *c)
{
	EXPECT_EQ(khr.release(c->list), CL_SUCCESS);
	cl.clReleaseKernel(c->kernel);
	buffer_close(&c->a);
	buffer_close(&c->b);
	fixture_close();
}

TEST_EACH(updated, struct update_form, update_forms,
	  "A dma-buf cannot become an argument of a recorded kernel: CL_INVALID_OPERATION, and "
	  "nothing "
	  "changes.")
{
	struct changing c = changing_open(row);

	EXPECT_EQ(khr.finalize(c.list), CL_SUCCESS);
	EXPECT_EQ(list_update(c.list, c.command, &c.b.mem), CL_INVALID_OPERATION);
	EXPECT(strstr(fix.notice,
		      "clUpdateMutableCommandsKHR: a dma-buf cannot become an argument"));
	run_recorded(c.list);
	EXPECT_EQ(c.a.seen[0], 1);
	EXPECT_EQ(list_update(NULL, c.command, &c.b.mem), CL_INVALID_COMMAND_BUFFER_KHR);
	changing_close(&c);
}

TEST_EACH(replaced, struct update_form, update_forms,
	  "A buffer can replace a dma-buf as the argument of a recorded kernel.")
{
	struct changing c = changing_open(row);
	cl_mem plain = cl.clCreateBuffer(fix.context, 0, SIZE, NULL, NULL);

	EXPECT_EQ(khr.finalize(c.list), CL_SUCCESS);
	EXPECT_EQ(list_update(c.list, c.command, &plain), CL_SUCCESS);
	EXPECT_EQ(khr.enqueue(0, NULL, c.list, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(fix.queue), CL_SUCCESS);
	EXPECT_EQ(c.a.seen[0], 0);
	cl.clReleaseMemObject(plain);
	changing_close(&c);
}

TEST_EACH(update_fails, struct update_form, update_forms,
	  "An update that the driver refuses is the driver's error.")
{
	struct changing c = changing_open(row);
	cl_mem plain = cl.clCreateBuffer(fix.context, 0, SIZE, NULL, NULL);

	EXPECT_EQ(khr.finalize(c.list), CL_SUCCESS);
	stub_fail("clUpdateMutableCommandsKHR", 1, CL_OUT_OF_RESOURCES);
	EXPECT_EQ(list_update(c.list, c.command, &plain), CL_OUT_OF_RESOURCES);
	run_recorded(c.list);
	cl.clReleaseMemObject(plain);
	changing_close(&c);
}

TEST_EACH(remapped, struct update_form, update_forms,
	  "A remapped command buffer is bracketed like its source.")
{
	struct changing c = changing_open(row);
	cl_mutable_command_khr command = NULL;
	cl_command_buffer_khr copy;
	cl_int err = 1;

	EXPECT_EQ(khr.finalize(c.list), CL_SUCCESS);
	copy = khr.remap(c.list, CL_FALSE, 1, &fix.queue, 1, &c.command, &command, &err);
	EXPECT(copy && !err);
	run_recorded(copy);
	run_recorded(c.list);
	EXPECT_EQ(khr.release(copy), CL_SUCCESS);
	changing_close(&c);
}
