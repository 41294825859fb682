/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sixteen calls in cases that a driver may have forgotten: each test makes all of the calls, in one
 * case.  Before version 1.1.0 they fail; from 1.1.0 on the calls on buffers move their bytes.
 */
#include <pthread.h>

#include "calls.h"
#include "kernels.h"

#define R6_30 "R6-30 (they can't be used with imported memory objects)"

#define R12_35                                                                                   \
	"R12-35 Version 1.1.0 of cl_arm_import_memory adds support for host access to imported " \
	"memory for all memory types."

enum { CALLS = sizeof(call_rows.all) / sizeof(call_rows.all[0]) };

/* A call in the case of the test; the result is the error. */
typedef cl_int case_function(const struct call_row *row, struct call *c);

static cl_int case_run(const struct call_row *row, struct call *c)
{
	return row->run(c);
}

static void case_check(const struct call_row *row, struct call *c, cl_int error)
{
	bool is_allowed = spec.version >= VERSION_1_1_0;

	if (error != (is_allowed ? CL_SUCCESS : CL_INVALID_OPERATION))
		spec_note("%s", row->name);
	EXPECT_EQ(error, is_allowed ? CL_SUCCESS : CL_INVALID_OPERATION);
	if (c->mapped)
		EXPECT_EQ(call_use_mapped(c), CL_SUCCESS);
	EXPECT_EQ(clFinish(spec.queue), CL_SUCCESS);
	if (is_allowed)
		EXPECT(call_has_moved(c, row));
	else
		EXPECT(object_is(c->object, OBJECT_SEED));
}

static void case_try(const struct call_row *row, const struct object_form *made, case_function *run)
{
	static const struct call_form form = { .name = "all bytes" };
	struct object o;
	struct call c;
	cl_int error;

	object_make_form(&o, made);
	call_prepare(&c, row, &o, &form);
	error = run(row, &c);
	case_check(row, &c, error);
	undo_all();
}

static void case_expect_forbidden(struct object_form form, case_function *run)
{
	need_prior_to_1_1();
	need_host();
	for (size_t i = 0; i < CALLS; i++) {
		form.shape = call_rows.all[i].shape;
		if (!object_why_no_form(&form))
			case_try(&call_rows.all[i], &form, run);
	}
}

/* In PoCL 3.1 other calls end the program, on plain sub-buffers too. */
static bool case_is_simple(const struct call_row *row)
{
	return row->run != call_clEnqueueCopyBufferRect && row->partner != PLAIN_IMAGE &&
	       (row->shape == BUFFER || row->shape == SUB_BUFFER);
}

static void case_expect_allowed(struct object_form form, case_function *run)
{
	need_1_1();
	need_host();
	for (size_t i = 0; i < CALLS; i++) {
		form.shape = call_rows.all[i].shape;
		if (case_is_simple(&call_rows.all[i]))
			case_try(&call_rows.all[i], &form, run);
	}
}

static const struct case_flags {
	const char *name;
	cl_mem_flags flags;
} case_flags[] = {
	{ "none", 0 },
	{ "read_only", CL_MEM_READ_ONLY },
	{ "write_only", CL_MEM_WRITE_ONLY },
	{ "host_read_only", CL_MEM_HOST_READ_ONLY },
	{ "host_write_only", CL_MEM_HOST_WRITE_ONLY },
	{ "host_no_access", CL_MEM_HOST_NO_ACCESS },
	{ "use_host_ptr", CL_MEM_USE_HOST_PTR },
};

TEST_EACH(forbidden_for_flags, struct case_flags, case_flags, R6_30)
{
	case_expect_forbidden((struct object_form){ .flags = row->flags }, case_run);
}

TEST(forbidden_on_large_imports, R6_30)
{
	case_expect_forbidden((struct object_form){ .is_large = true }, case_run);
}

static cl_int case_retained(const struct call_row *row, struct call *c)
{
	cl_int error;

	EXPECT_EQ(clRetainMemObject(c->object->mem), CL_SUCCESS);
	error = row->run(c);
	EXPECT_EQ(clReleaseMemObject(c->object->mem), CL_SUCCESS);
	return error;
}

TEST(allowed_on_large_imports, R12_35)
{
	case_expect_allowed((struct object_form){ .is_large = true }, case_run);
}

TEST(forbidden_on_retained_objects, R6_30)
{
	case_expect_forbidden((struct object_form){ 0 }, case_retained);
}

/* The application has released the import, and the object lives. */
static cl_int case_orphaned(const struct call_row *row, struct call *c)
{
	const struct object *o = c->object;

	if (o->mem == o->import)
		return row->run(c);
	spec_release_now(o->import);
	return row->run(c);
}

TEST(forbidden_on_objects_without_their_import, R6_30)
{
	case_expect_forbidden((struct object_form){ 0 }, case_orphaned);
}

TEST(allowed_on_objects_without_their_import, R12_35)
{
	case_expect_allowed((struct object_form){ 0 }, case_orphaned);
}

/* A kernel has used the import. */
static cl_int case_used(const struct call_row *row, struct call *c)
{
	cl_kernel add = kernels_create_plain("add");

	kernels_add_with(add, spec.queue, c->object->import, 1, 0);
	EXPECT_EQ(clReleaseKernel(add), CL_SUCCESS);
	return row->run(c);
}

TEST(forbidden_after_a_kernel, R6_30)
{
	need_prior_to_1_1();
	kernels_create("add"); /* compiles */
	case_expect_forbidden((struct object_form){ 0 }, case_used);
}

struct case_thread {
	const struct call_row *row;
	struct call *call;
	cl_int error;
};

static void *case_run_in_thread(void *arg)
{
	struct case_thread *thread = arg;

	thread->error = thread->row->run(thread->call);
	return NULL;
}

static cl_int case_threaded(const struct call_row *row, struct call *c)
{
	struct case_thread thread = { row, c, 1 };
	pthread_t id;

	EXPECT_EQ(pthread_create(&id, NULL, case_run_in_thread, &thread), 0);
	pthread_join(id, NULL);
	return thread.error;
}

TEST(forbidden_on_another_thread, R6_30)
{
	case_expect_forbidden((struct object_form){ 0 }, case_threaded);
}

TEST(allowed_on_another_thread, R12_35)
{
	case_expect_allowed((struct object_form){ 0 }, case_threaded);
}

/* Another import is there first, and stays. */
TEST(forbidden_on_the_second_import, R6_30)
{
	unsigned char byte = 0;
	cl_mem first, second;

	need_prior_to_1_1();
	first = spec_import_host(CL_MEM_READ_WRITE, spec_map_pages(1), spec.page);
	second = spec_import_host(CL_MEM_READ_WRITE, spec_map_pages(1), spec.page);
	EXPECT_EQ(clEnqueueWriteBuffer(spec.queue, second, CL_TRUE, 0, 1, &byte, 0, NULL, NULL),
		  CL_INVALID_OPERATION);
	EXPECT_EQ(clEnqueueWriteBuffer(spec.queue, first, CL_TRUE, 0, 1, &byte, 0, NULL, NULL),
		  CL_INVALID_OPERATION);
}

static struct {
	cl_context context;
	cl_command_queue queue;
} case_first;

static void case_switch_back(void *second)
{
	clReleaseCommandQueue(spec.queue);
	clReleaseContext(second);
	spec.context = case_first.context;
	spec.queue = case_first.queue;
}

/* The rest of the test runs in a new context. */
static void case_switch_context(void)
{
	cl_int error = 1;
	cl_context context = clCreateContext(NULL, 1, &spec.device, NULL, NULL, &error);

	EXPECT_EQ(error, CL_SUCCESS);
	case_first.context = spec.context;
	case_first.queue = spec.queue;
	spec.context = context;
	spec.queue = clCreateCommandQueue(context, spec.device, 0, &error);
	EXPECT_EQ(error, CL_SUCCESS);
}

static void case_in_second_context(void (*expect)(struct object_form, case_function *))
{
	cl_context second;

	need_host();
	spec_import_host(CL_MEM_READ_WRITE, spec_map_pages(1), spec.page);
	case_switch_context();
	second = spec.context;
	expect((struct object_form){ 0 }, case_run);
	case_switch_back(second);
}

TEST(forbidden_in_a_second_context, R6_30)
{
	need_prior_to_1_1();
	case_in_second_context(case_expect_forbidden);
}

TEST(allowed_in_a_second_context, R12_35)
{
	need_1_1();
	case_in_second_context(case_expect_allowed);
}

/* Plain buffers and images work as long as an import lives. */
TEST(plain_objects_work_beside_an_import, R6_30)
{
	unsigned char sent[BYTES], *mapped;
	cl_mem one, two;
	cl_int error = 1;

	spec_import_host(CL_MEM_READ_WRITE, spec_map_pages(1), spec.page);
	one = plain_buffer(BYTES);
	two = plain_buffer(BYTES);
	spec_fill_memory(sent, BYTES, 5);
	plain_write(one, sent, BYTES);
	EXPECT_EQ(clEnqueueCopyBuffer(spec.queue, one, two, 0, 0, BYTES, 0, NULL, NULL),
		  CL_SUCCESS);
	mapped = clEnqueueMapBuffer(spec.queue, two, CL_TRUE, CL_MAP_READ, 0, BYTES, 0, NULL, NULL,
				    &error);
	EXPECT_EQ(error, CL_SUCCESS);
	EXPECT(!memcmp(mapped, sent, BYTES));
	EXPECT_EQ(clEnqueueUnmapMemObject(spec.queue, two, mapped, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(clEnqueueFillBuffer(spec.queue, two, sent, 1, 0, BYTES, 0, NULL, NULL),
		  CL_SUCCESS);
	EXPECT_EQ(clFinish(spec.queue), CL_SUCCESS);
}

/* OpenCL: CL_INVALID_VALUE if the pointer was not returned by a map of the object. */
TEST(unmap_of_what_is_not_mapped, R12_35)
{
	unsigned char *memory = spec_map_pages(1), *mapped;
	cl_int error = 1;
	cl_mem mem;

	need_1_1();
	mem = spec_import_host(CL_MEM_READ_WRITE, memory, spec.page);
	EXPECT_EQ(clEnqueueUnmapMemObject(spec.queue, mem, memory + 128, 0, NULL, NULL),
		  CL_INVALID_VALUE);
	mapped = clEnqueueMapBuffer(spec.queue, mem, CL_TRUE, CL_MAP_READ, 64, 64, 0, NULL, NULL,
				    &error);
	EXPECT_EQ(error, CL_SUCCESS);
	EXPECT_EQ(clEnqueueUnmapMemObject(spec.queue, mem, mapped, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(clFinish(spec.queue), CL_SUCCESS);
}
