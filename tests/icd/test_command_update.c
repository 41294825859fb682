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

/* Runs the command buffer, which brackets "a" @a times and "b" @b times. */
static void expect_run(cl_command_buffer_khr list, int a, int b)
{
	stub_trace_clear();
	EXPECT_EQ(khr.enqueue(0, NULL, list, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(fix.queue), CL_SUCCESS);
	expect_count("sync START a ", a);
	expect_count("sync END a ", a);
	expect_count("sync START b ", b);
	expect_count("sync END b ", b);
}

TEST_EACH(updated, struct update_form, update_forms,
	  "A dma-buf that becomes an argument of a recorded kernel is bracketed.")
{
	struct changing c = changing_open(row);

	EXPECT_EQ(khr.finalize(c.list), CL_SUCCESS);
	EXPECT_EQ(list_update(c.list, c.command, &c.b.mem), CL_SUCCESS);
	expect_run(c.list, 0, 1);
	expect_bracket("b", "increment");
	EXPECT_EQ(c.b.seen[0], 1);
	EXPECT_EQ(c.a.seen[0], 0);
	EXPECT_EQ(list_update(NULL, c.command, &c.b.mem), CL_INVALID_COMMAND_BUFFER_KHR);
	changing_close(&c);
}

TEST_EACH(remapped, struct update_form, update_forms,
	  "A remapped command buffer is bracketed like its source, and follows its own updates.")
{
	struct changing c = changing_open(row);
	cl_mutable_command_khr command = NULL;
	cl_command_buffer_khr copy;
	cl_int err = 1;

	EXPECT_EQ(khr.finalize(c.list), CL_SUCCESS);
	copy = khr.remap(c.list, CL_FALSE, 1, &fix.queue, 1, &c.command, &command, &err);
	EXPECT(copy && !err);
	expect_run(copy, 1, 0);
	expect_bracket("a", "increment");
	EXPECT_EQ(list_update(copy, command, &c.b.mem), CL_SUCCESS);
	expect_run(copy, 0, 1);
	expect_run(c.list, 1, 0);
	EXPECT_EQ(khr.release(copy), CL_SUCCESS);
	changing_close(&c);
}

TEST_EACH(replaced, struct update_form, update_forms,
	  "A dma-buf that was replaced as argument of a recorded kernel is not bracketed.")
{
	struct changing c = changing_open(row);
	cl_mem plain = cl.clCreateBuffer(fix.context, 0, SIZE, NULL, NULL);

	EXPECT_EQ(khr.finalize(c.list), CL_SUCCESS);
	for (int i = 0; i < 2; i++) {
		EXPECT_EQ(list_update(c.list, c.command, &c.b.mem), CL_SUCCESS);
		expect_run(c.list, 0, 1);
		EXPECT_EQ(list_update(c.list, c.command, &c.a.mem), CL_SUCCESS);
		expect_run(c.list, 1, 0);
	}
	EXPECT_EQ(list_update(c.list, c.command, &plain), CL_SUCCESS);
	expect_run(c.list, 0, 0);
	cl.clReleaseMemObject(plain);
	changing_close(&c);
}

TEST(replaced_by_pointer,
     "A dma-buf that was replaced by a pointer to shared virtual memory is not bracketed.")
{
	struct changing c = changing_open(&update_forms[0]);
	const cl_mutable_dispatch_arg_khr arg = { 0, 0, &c };
	const cl_mutable_dispatch_config_khr config = {
		.type = CL_STRUCTURE_TYPE_MUTABLE_DISPATCH_CONFIG_KHR,
		.command = c.command,
		.num_svm_args = 1,
		.arg_svm_list = &arg,
	};
	const cl_mutable_base_config_khr base = {
		.type = CL_STRUCTURE_TYPE_MUTABLE_BASE_CONFIG_KHR,
		.num_mutable_dispatch = 1,
		.mutable_dispatch_list = &config,
	};

	EXPECT_EQ(khr.finalize(c.list), CL_SUCCESS);
	EXPECT_EQ(khr.update(c.list, &base), CL_SUCCESS);
	expect_run(c.list, 0, 0); /* the stub does not check the pointer */
	changing_close(&c);
}

/* The handle of a command that uses the replaced argument too. */
static const struct other_command {
	const char *name;
	bool has_handle;
} other_commands[] = { { "mutable", true }, { "fixed", false } };

TEST_EACH(replaced_in_one, struct other_command, other_commands,
	  "A dma-buf that is replaced in one recorded command is still bracketed for the other "
	  "commands.")
{
	struct changing c = changing_open(&update_forms[0]);
	cl_mutable_command_khr other;

	record_kernel(&c, row->has_handle ? &other : NULL);
	EXPECT_EQ(khr.finalize(c.list), CL_SUCCESS);
	expect_run(c.list, 1, 0);
	EXPECT_EQ(list_update(c.list, c.command, &c.b.mem), CL_SUCCESS);
	expect_run(c.list, 1, 1);
	if (row->has_handle)
		EXPECT_EQ(list_update(c.list, other, &c.b.mem), CL_SUCCESS);
	expect_run(c.list, !row->has_handle, 1);
	changing_close(&c);
}

TEST_EACH(update_fails, struct update_form, update_forms,
	  "An update that the driver refuses changes nothing.")
{
	struct changing c = changing_open(row);

	EXPECT_EQ(khr.finalize(c.list), CL_SUCCESS);
	stub_fail("clUpdateMutableCommandsKHR", 1, CL_OUT_OF_RESOURCES);
	EXPECT_EQ(list_update(c.list, c.command, &c.b.mem), CL_OUT_OF_RESOURCES);
	expect_run(c.list, 1, 0);
	changing_close(&c);
}

TEST(recording_fails,
     "If the driver refuses to record a kernel, the kernel's dma-bufs are not bracketed.")
{
	struct changing c = changing_open(&update_forms[0]);
	const size_t one = 1;

	EXPECT_EQ(list_update(c.list, c.command, &c.b.mem), CL_SUCCESS);
	stub_fail("clCommandNDRangeKernelKHR", 1, CL_OUT_OF_RESOURCES);
	EXPECT_EQ(
		khr.kernel(c.list, NULL, NULL, c.kernel, 1, NULL, &one, NULL, 0, NULL, NULL, NULL),
		CL_OUT_OF_RESOURCES);
	EXPECT_EQ(khr.finalize(c.list), CL_SUCCESS);
	expect_run(c.list, 0, 1);
	changing_close(&c);
}

TEST_EACH(replaced_and_released, struct update_form, update_forms,
	  "An import that was replaced and released is unmapped at once.")
{
	struct changing c = changing_open(row);
	int without_b = process_count_mappings("fake-dmabuf") - 1;

	EXPECT_EQ(khr.finalize(c.list), CL_SUCCESS);
	EXPECT_EQ(list_update(c.list, c.command, &c.b.mem), CL_SUCCESS);
	EXPECT_EQ(list_update(c.list, c.command, &c.a.mem), CL_SUCCESS);
	cl.clReleaseMemObject(c.b.mem);
	EXPECT(process_settles(fixture_mapped_at_most, &without_b));
	c.b.mem = cl.clCreateBuffer(fix.context, 0, SIZE, NULL, NULL);
	changing_close(&c);
}

TEST(many_updates,
     "After a thousand updates, each with a new import, only the last import is kept.")
{
	struct changing c = changing_open(&update_forms[0]);
	int mapped = process_count_mappings("fake-dmabuf"), fds = process_count_descriptors();

	EXPECT_EQ(khr.finalize(c.list), CL_SUCCESS);
	for (int i = 0; i < 1000; i++) {
		struct buffer frame = buffer_open("frame", NULL);

		EXPECT_EQ(list_update(c.list, c.command, &frame.mem), CL_SUCCESS);
		buffer_close(&frame);
	}
	stub_trace_clear();
	EXPECT_EQ(khr.enqueue(0, NULL, c.list, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(fix.queue), CL_SUCCESS);
	expect_count("sync START frame ", 1);
	EXPECT_EQ(list_update(c.list, c.command, &c.a.mem), CL_SUCCESS);
	EXPECT(process_settles(fixture_mapped_at_most, &mapped));
	EXPECT_EQ(process_count_descriptors(), fds);
	changing_close(&c);
}
