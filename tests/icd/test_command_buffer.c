/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cl_khr_command_buffer: permitted copies and fills, and brackets around command buffers with
 * dma-bufs.
 */
#include "access.h"

static const size_t origin[3], pixel[3] = { 1, 1, 1 }, bytes[3] = { 4, 1, 1 };

/* The extension's functions, as an application gets their addresses. */
static struct {
	__typeof__(&clCreateCommandBufferKHR) create;
	__typeof__(&clFinalizeCommandBufferKHR) finalize;
	__typeof__(&clReleaseCommandBufferKHR) release;
	__typeof__(&clRetainCommandBufferKHR) retain;
	__typeof__(&clRemapCommandBufferKHR) remap;
	__typeof__(&clEnqueueCommandBufferKHR) enqueue;
	__typeof__(&clCommandNDRangeKernelKHR) kernel;
	__typeof__(&clCommandCopyBufferKHR) copy;
	__typeof__(&clCommandCopyBufferRectKHR) rect;
	__typeof__(&clCommandCopyBufferToImageKHR) to_image;
	__typeof__(&clCommandCopyImageKHR) image;
	__typeof__(&clCommandCopyImageToBufferKHR) from_image;
	__typeof__(&clCommandFillBufferKHR) fill;
	__typeof__(&clCommandFillImageKHR) fill_image;
	__typeof__(&clUpdateMutableCommandsKHR) update;
} khr;

/*
 * The types of the recording functions if a driver's recording functions take a list of properties.
 * The addresses do not differ.
 */
#define BEHIND_PROPERTIES cl_command_buffer_khr, cl_command_queue, const cl_properties *, cl_mem
#define BEFORE_SYNC \
	cl_uint, const cl_sync_point_khr *, cl_sync_point_khr *, cl_mutable_command_khr *
typedef cl_int copy_fn(BEHIND_PROPERTIES, cl_mem, size_t, size_t, size_t, BEFORE_SYNC);
typedef cl_int rect_fn(BEHIND_PROPERTIES, cl_mem, const size_t *, const size_t *, const size_t *,
		       size_t, size_t, size_t, size_t, BEFORE_SYNC);
typedef cl_int to_image_fn(BEHIND_PROPERTIES, cl_mem, size_t, const size_t *, const size_t *,
			   BEFORE_SYNC);
typedef cl_int image_fn(BEHIND_PROPERTIES, cl_mem, const size_t *, const size_t *, const size_t *,
			BEFORE_SYNC);
typedef cl_int from_image_fn(BEHIND_PROPERTIES, cl_mem, const size_t *, const size_t *, size_t,
			     BEFORE_SYNC);
typedef cl_int fill_fn(BEHIND_PROPERTIES, const void *, size_t, size_t, size_t, BEFORE_SYNC);
typedef cl_int fill_image_fn(BEHIND_PROPERTIES, const void *, const size_t *, const size_t *,
			     BEFORE_SYNC);
#define WITH_PROPERTIES(form, f) ((form *)(void *)khr.f)

#define ADDRESS(f) ((__typeof__(&(f)))cl.clGetExtensionFunctionAddressForPlatform(fix.platform, #f))

static void khr_get_functions(void)
{
	khr.create = ADDRESS(clCreateCommandBufferKHR);
	khr.finalize = ADDRESS(clFinalizeCommandBufferKHR);
	khr.release = ADDRESS(clReleaseCommandBufferKHR);
	khr.retain = ADDRESS(clRetainCommandBufferKHR);
	khr.remap = ADDRESS(clRemapCommandBufferKHR);
	khr.enqueue = ADDRESS(clEnqueueCommandBufferKHR);
	khr.kernel = ADDRESS(clCommandNDRangeKernelKHR);
	khr.copy = ADDRESS(clCommandCopyBufferKHR);
	khr.rect = ADDRESS(clCommandCopyBufferRectKHR);
	khr.to_image = ADDRESS(clCommandCopyBufferToImageKHR);
	khr.image = ADDRESS(clCommandCopyImageKHR);
	khr.from_image = ADDRESS(clCommandCopyImageToBufferKHR);
	khr.fill = ADDRESS(clCommandFillBufferKHR);
	khr.fill_image = ADDRESS(clCommandFillImageKHR);
	khr.update = ADDRESS(clUpdateMutableCommandsKHR);
}

/* A buffer and an image: imports, or the other side of copies. */
struct pair {
	cl_mem buffer, image;
};

#define NO_SYNC 0, NULL, point, NULL
#define NUM_FORMS 12

/* list_record() for a driver whose recording functions have a list of properties. */
static cl_int record_with_properties(unsigned which, cl_command_buffer_khr list, struct pair m,
				     struct pair other, cl_sync_point_khr *point)
{
	static const cl_uint zero[4];
	const struct pair from = which & 1 ? other : m, to = which & 1 ? m : other;

	switch (which) {
	case 0:
	case 1:
		return WITH_PROPERTIES(copy_fn, copy)(list, NULL, NULL, from.buffer, to.buffer, 0,
						      0, 4, NO_SYNC);
	case 2:
	case 3:
		return WITH_PROPERTIES(rect_fn, rect)(list, NULL, NULL, from.buffer, to.buffer,
						      origin, origin, bytes, 0, 0, 0, 0, NO_SYNC);
	case 4:
	case 5:
		return WITH_PROPERTIES(to_image_fn, to_image)(list, NULL, NULL, from.buffer,
							      to.image, 0, origin, pixel, NO_SYNC);
	case 6:
	case 7:
		return WITH_PROPERTIES(image_fn, image)(list, NULL, NULL, from.image, to.image,
							origin, origin, pixel, NO_SYNC);
	case 8:
	case 9:
		return WITH_PROPERTIES(from_image_fn, from_image)(
			list, NULL, NULL, from.image, to.buffer, origin, pixel, 0, NO_SYNC);
	case 10:
		return WITH_PROPERTIES(fill_fn, fill)(list, NULL, NULL, m.buffer, zero, 4, 0, 4,
						      NO_SYNC);
	}
	return WITH_PROPERTIES(fill_image_fn, fill_image)(list, NULL, NULL, m.image, zero, origin,
							  pixel, NO_SYNC);
}

/* Records form @which of a copy or fill of @m's objects. */
static cl_int list_record(unsigned which, cl_command_buffer_khr list, struct pair m,
			  struct pair other, cl_sync_point_khr *point)
{
	static const cl_uint zero[4];

	if (stub_get(STUB_COMMAND_PROPERTIES))
		return record_with_properties(which, list, m, other, point);
	switch (which) {
	case 0:
		return khr.copy(list, NULL, m.buffer, other.buffer, 0, 0, 4, NO_SYNC);
	case 1:
		return khr.copy(list, NULL, other.buffer, m.buffer, 0, 0, 4, NO_SYNC);
	case 2:
		return khr.rect(list, NULL, m.buffer, other.buffer, origin, origin, bytes, 0, 0, 0,
				0, NO_SYNC);
	case 3:
		return khr.rect(list, NULL, other.buffer, m.buffer, origin, origin, bytes, 0, 0, 0,
				0, NO_SYNC);
	case 4:
		return khr.to_image(list, NULL, m.buffer, other.image, 0, origin, pixel, NO_SYNC);
	case 5:
		return khr.to_image(list, NULL, other.buffer, m.image, 0, origin, pixel, NO_SYNC);
	case 6:
		return khr.image(list, NULL, m.image, other.image, origin, origin, pixel, NO_SYNC);
	case 7:
		return khr.image(list, NULL, other.image, m.image, origin, origin, pixel, NO_SYNC);
	case 8:
		return khr.from_image(list, NULL, m.image, other.buffer, origin, pixel, 0, NO_SYNC);
	case 9:
		return khr.from_image(list, NULL, other.image, m.buffer, origin, pixel, 0, NO_SYNC);
	case 10:
		return khr.fill(list, NULL, m.buffer, zero, 4, 0, 4, NO_SYNC);
	}
	return khr.fill_image(list, NULL, m.image, zero, origin, pixel, NO_SYNC);
}

static cl_command_buffer_khr list_create(void)
{
	cl_int err = 1;
	cl_command_buffer_khr list = khr.create(1, &fix.queue, NULL, &err);

	EXPECT_EQ(err, CL_SUCCESS);
	return list;
}

/*
 * Every form returns @wanted.  A refused form calls the context's callback and writes no sync
 * point.
 */
static void expect_recording(cl_int wanted, struct pair m, struct pair other)
{
	cl_command_buffer_khr list = list_create();

	for (unsigned which = 0; which < NUM_FORMS; which++) {
		cl_sync_point_khr point = 0x5a5a;
		unsigned notices = fix.notices;

		EXPECT_EQ(list_record(which, list, m, other, &point), wanted);
		EXPECT_EQ(point == 0x5a5a, wanted != CL_SUCCESS);
		EXPECT_EQ(fix.notices - notices, wanted != CL_SUCCESS);
	}
	EXPECT_EQ(khr.release(list), CL_SUCCESS);
}

static struct pair pair_plain(void)
{
	const struct pair p = { cl.clCreateBuffer(fix.context, 0, SIZE, NULL, NULL),
				fixture_create_image(CL_MEM_OBJECT_IMAGE2D, NULL, 4, 4, 0) };

	return p;
}

static void pair_release(struct pair p)
{
	EXPECT_EQ(cl.clReleaseMemObject(p.image), CL_SUCCESS);
	EXPECT_EQ(cl.clReleaseMemObject(p.buffer), CL_SUCCESS);
}

/*
 * A driver's version of the extension, and whether the platform, the device or both report the
 * extension.
 */
static const struct reported {
	const char *name;
	long properties, named;
} reported[] = {
	{ "0_9_0", 0, 3 }, { "0_9_0_device", 0, 1 }, { "0_9_0_platform", 0, 2 },
	{ "0_9_5", 1, 3 }, { "0_9_5_device", 1, 1 }, { "0_9_5_platform", 1, 2 },
};

static void open_reported(const struct reported *r)
{
	fixture_reset();
	stub_set(STUB_COMMAND_PROPERTIES, r->properties);
	stub_set(STUB_COMMAND_NAMED, r->named);
}

static void expect_recording_in(const char *version, const struct reported *by, cl_int wanted)
{
	struct pair imported, derived, plain[2];

	open_reported(by);
	setenv("CLIMPORT_VERSION", version, 1);
	fixture_open();
	khr_get_functions();
	plain[0] = pair_plain();
	plain[1] = pair_plain();
	imported.buffer = fixture_import_host(0, pages_map(2), SIZE);
	imported.image = fixture_create_image(CL_MEM_OBJECT_IMAGE2D, imported.buffer, 4, 4, 0);
	derived.buffer = fixture_create_sub_buffer(imported.buffer, 4096, 4096);
	derived.image =
		fixture_create_image(CL_MEM_OBJECT_IMAGE1D_BUFFER, imported.buffer, 16, 0, 0);
	expect_recording(wanted, imported, plain[0]);
	expect_recording(wanted, derived, plain[0]);
	expect_recording(CL_SUCCESS, plain[1], plain[0]);
	pair_release(derived);
	pair_release(imported);
	pair_release(plain[0]);
	pair_release(plain[1]);
	fixture_close();
}

TEST_EACH(recording, struct reported, reported,
	  "In version 1.0.0, recording a copy or fill of an import is forbidden.")
{
	expect_recording_in("1.0.0", row, CL_INVALID_OPERATION);
}

TEST_EACH(recording_in_1_1, struct reported, reported,
	  "From version 1.1.0 on, copies and fills of an import can be recorded.")
{
	expect_recording_in("1.1.0", row, CL_SUCCESS);
}

TEST(wrong_lists, "An object that is not a command buffer gets CL_INVALID_COMMAND_BUFFER_KHR.")
{
	struct pair imported = { NULL, NULL }, plain;
	cl_sync_point_khr point = 0x5a5a;

	fixture_reset();
	fixture_open();
	khr_get_functions();
	plain = pair_plain();
	imported.buffer = fixture_import_host(0, pages_map(2), SIZE);
	EXPECT_EQ(list_record(0, NULL, plain, plain, &point), CL_INVALID_COMMAND_BUFFER_KHR);
	EXPECT_EQ(list_record(0, NULL, imported, plain, &point), CL_INVALID_COMMAND_BUFFER_KHR);
	EXPECT_EQ(khr.enqueue(0, NULL, NULL, 0, NULL, NULL), CL_INVALID_COMMAND_BUFFER_KHR);
	EXPECT_EQ(khr.retain(NULL), CL_INVALID_COMMAND_BUFFER_KHR);
	EXPECT_EQ(khr.release(NULL), CL_INVALID_COMMAND_BUFFER_KHR);
	EXPECT_EQ(khr.create(0, NULL, NULL, NULL), 0);
	EXPECT_EQ(point, 0x5a5a);
	cl.clReleaseMemObject(imported.buffer);
	pair_release(plain);
	fixture_close();
}

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

TEST_EACH(no_imports, struct reported, reported,
	  "A program without imports can record and run copies and fills.")
{
	cl_command_buffer_khr list;
	struct pair from, to;
	cl_sync_point_khr point;
	cl_uint value = 0x12345678;

	open_reported(row);
	fixture_open();
	khr_get_functions();
	from = pair_plain();
	to = pair_plain();
	EXPECT_EQ(cl.clEnqueueWriteBuffer(fix.queue, from.buffer, CL_TRUE, 0, 4, &value, 0, NULL,
					  NULL),
		  CL_SUCCESS);
	list = list_create();
	EXPECT_EQ(list_record(0, list, from, to, &point), CL_SUCCESS);
	EXPECT_EQ(list_record(10, list, from, to, &point), CL_SUCCESS);
	EXPECT_EQ(khr.finalize(list), CL_SUCCESS);
	EXPECT_EQ(khr.enqueue(0, NULL, list, 0, NULL, NULL), CL_SUCCESS);
	value = 0;
	EXPECT_EQ(
		cl.clEnqueueReadBuffer(fix.queue, to.buffer, CL_TRUE, 0, 4, &value, 0, NULL, NULL),
		CL_SUCCESS);
	EXPECT_EQ(value, 0x12345678);
	EXPECT_EQ(cl.clEnqueueReadBuffer(fix.queue, from.buffer, CL_TRUE, 0, 4, &value, 0, NULL,
					 NULL),
		  CL_SUCCESS);
	EXPECT_EQ(value, 0);
	EXPECT_EQ(khr.release(list), CL_SUCCESS);
	pair_release(from);
	pair_release(to);
	fixture_close();
}

/* Arguments of clCreateCommandBufferKHR that name no queue. */
enum named_queues { NO_ARRAY, ARRAY_OF_QUEUE, ARRAY_OF_NULL, ARRAY_OF_CONTEXT };

static const struct wrong_queues {
	const char *name;
	cl_uint num;
	enum named_queues queues;
	cl_int wanted;
} wrong_queues[] = {
	{ "none", 0, NO_ARRAY, CL_INVALID_VALUE },
	{ "no_array", 1, NO_ARRAY, CL_INVALID_VALUE },
	{ "no_count", 0, ARRAY_OF_QUEUE, CL_INVALID_VALUE },
	{ "null", 1, ARRAY_OF_NULL, CL_INVALID_COMMAND_QUEUE },
	{ "context", 1, ARRAY_OF_CONTEXT, CL_INVALID_COMMAND_QUEUE },
};

TEST_EACH(wrong_queues, struct wrong_queues, wrong_queues,
	  "Creating a command buffer with wrong queues returns the extension's error.")
{
	cl_command_queue queues[4] = { NULL };
	const cl_command_queue *array = row->queues == NO_ARRAY ? NULL : &queues[row->queues];
	cl_int err = 1;

	fixture_reset();
	fixture_open();
	khr_get_functions();
	queues[ARRAY_OF_QUEUE] = fix.queue;
	queues[ARRAY_OF_CONTEXT] = (cl_command_queue)fix.context;
	EXPECT(!khr.create(row->num, array, NULL, &err));
	EXPECT_EQ(err, row->wanted);
	EXPECT(!khr.create(row->num, array, NULL, NULL));
	fixture_close();
}

/* Replaces the argument of the recorded kernel, by the driver's form of update. */
static cl_int list_update(cl_command_buffer_khr list, cl_mutable_command_khr command,
			  const cl_mem *mem)
{
	const cl_mutable_dispatch_arg_khr arg = { 0, sizeof(*mem), mem };
	const cl_mutable_dispatch_config_khr chained = {
		.type = CL_STRUCTURE_TYPE_MUTABLE_DISPATCH_CONFIG_KHR,
		.command = command,
		.num_args = 1,
		.arg_list = &arg,
	};
	const cl_mutable_base_config_khr base = {
		.type = CL_STRUCTURE_TYPE_MUTABLE_BASE_CONFIG_KHR,
		.num_mutable_dispatch = 1,
		.mutable_dispatch_list = &chained,
	};
	const void *config = &chained.command; /* from here on, both forms have an equal layout */
	const cl_uint type = 0;
	cl_int (*update_arrays)(cl_command_buffer_khr, cl_uint, const cl_uint *, const void **) =
		(void *)khr.update;

	if (stub_get(STUB_COMMAND_ARRAYS))
		return update_arrays(list, 1, &type, &config);
	return khr.update(list, &base);
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
