/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver refuses to retain or to release an object, which then is as before: so are the layer's
 * records.
 */
#include "command_list.h"

#define PAGE 4096

/* The application's references when the driver refuses. */
static const struct references {
	const char *name;
	int count;
} references[] = { { "last", 1 }, { "one_of_two", 2 } };

static void refused_by_driver(const char *function)
{
	stub_fail(function, 1, CL_OUT_OF_RESOURCES);
}

TEST_EACH(
	import, struct references, references,
	"After a release that the driver refuses, an import is an import, until the last release.")
{
	cl_mem mem;

	fixture_reset();
	fixture_open();
	mem = fixture_import_host(0, pages_map(1), PAGE);
	for (int i = 1; i < row->count; i++)
		EXPECT_EQ(cl.clRetainMemObject(mem), CL_SUCCESS);
	refused_by_driver("clReleaseMemObject");
	EXPECT_EQ(cl.clReleaseMemObject(mem), CL_OUT_OF_RESOURCES);
	for (int i = 0; i < row->count; i++) {
		EXPECT(fixture_is_import(mem));
		EXPECT_EQ(cl.clReleaseMemObject(mem), CL_SUCCESS);
	}
	fixture_close();
}

TEST(part, "If the driver refuses the release of the last part of an import, both are imports.")
{
	cl_mem mem, sub, parent = NULL;

	fixture_reset();
	fixture_open();
	mem = fixture_import_host(0, pages_map(1), PAGE);
	sub = fixture_create_sub_buffer(mem, 0, 256);
	EXPECT_EQ(cl.clReleaseMemObject(mem), CL_SUCCESS);
	refused_by_driver("clReleaseMemObject");
	EXPECT_EQ(cl.clReleaseMemObject(sub), CL_OUT_OF_RESOURCES);
	EXPECT(fixture_is_import(sub));
	EXPECT_EQ(cl.clGetMemObjectInfo(sub, CL_MEM_ASSOCIATED_MEMOBJECT, sizeof(parent), &parent,
					NULL),
		  CL_SUCCESS);
	EXPECT(fixture_is_import(parent));
	EXPECT_EQ(cl.clReleaseMemObject(sub), CL_SUCCESS);
	fixture_close();
}

TEST(retain, "A reference that the driver refuses does not count: the release ends the import.")
{
	unsigned char *p;
	cl_mem mem;

	fixture_reset();
	fixture_open();
	p = pages_map(1);
	mem = fixture_import_host(CL_MEM_READ_ONLY, p + 1, 100);
	refused_by_driver("clRetainMemObject");
	EXPECT_EQ(cl.clRetainMemObject(mem), CL_OUT_OF_RESOURCES);
	EXPECT_EQ(cl.clReleaseMemObject(mem), CL_SUCCESS);
	/* Imports of a page that live at the same time have the same access. */
	mem = fixture_import_host(CL_MEM_READ_WRITE, p + 1, 100);
	cl.clReleaseMemObject(mem);
	fixture_close();
}

TEST_EACH(kernel, struct queue_kind, queue_kinds,
	  "After a release that the driver refuses, commands of a kernel are bracketed.")
{
	struct run r = run_open(row->properties);

	refused_by_driver("clReleaseKernel");
	EXPECT_EQ(cl.clReleaseKernel(r.kernel), CL_OUT_OF_RESOURCES);
	EXPECT_EQ(fixture_enqueue(r.queue, r.kernel, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
	expect_bracket("a", "increment");
	run_close(&r);
}

static cl_uint refused_event_info(cl_event event, cl_event_info name)
{
	cl_uint value = 0;

	EXPECT_EQ(cl.clGetEventInfo(event, name, sizeof(value), &value, NULL), CL_SUCCESS);
	return value;
}

TEST_EACH(event, struct references, references,
	  "After a release that the driver refuses, an event answers for its command.")
{
	struct run r = run_open(0);
	cl_event event;

	EXPECT_EQ(fixture_enqueue(r.queue, r.kernel, 0, NULL, &event), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
	for (int i = 1; i < row->count; i++)
		EXPECT_EQ(cl.clRetainEvent(event), CL_SUCCESS);
	refused_by_driver("clReleaseEvent");
	EXPECT_EQ(cl.clReleaseEvent(event), CL_OUT_OF_RESOURCES);
	for (int i = row->count; i; i--) {
		EXPECT_EQ(refused_event_info(event, CL_EVENT_COMMAND_TYPE),
			  CL_COMMAND_NDRANGE_KERNEL);
		EXPECT_EQ(refused_event_info(event, CL_EVENT_REFERENCE_COUNT), (cl_uint)i);
		EXPECT_EQ(cl.clReleaseEvent(event), CL_SUCCESS);
	}
	run_close(&r);
}

TEST(event_retain, "A reference to an event that the driver refuses does not count.")
{
	struct run r = run_open(0);
	cl_event event;

	EXPECT_EQ(fixture_enqueue(r.queue, r.kernel, 0, NULL, &event), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(r.queue), CL_SUCCESS);
	refused_by_driver("clRetainEvent");
	EXPECT_EQ(cl.clRetainEvent(event), CL_OUT_OF_RESOURCES);
	EXPECT_EQ(refused_event_info(event, CL_EVENT_REFERENCE_COUNT), 1);
	EXPECT_EQ(cl.clReleaseEvent(event), CL_SUCCESS);
	run_close(&r);
}

/* A command buffer with the kernel. */
static cl_command_buffer_khr refused_record(const struct run *r)
{
	cl_command_buffer_khr list;
	const size_t one = 1;

	khr_get_functions();
	list = list_create();
	EXPECT_EQ(khr.kernel(list, NULL, NULL, r->kernel, 1, NULL, &one, NULL, 0, NULL, NULL, NULL),
		  CL_SUCCESS);
	EXPECT_EQ(khr.finalize(list), CL_SUCCESS);
	return list;
}

TEST_EACH(command_buffer, struct references, references,
	  "After a release that the driver refuses, runs of a command buffer are bracketed.")
{
	struct run r = run_open(0);
	cl_command_buffer_khr list = refused_record(&r);

	for (int i = 1; i < row->count; i++)
		EXPECT_EQ(khr.retain(list), CL_SUCCESS);
	refused_by_driver("clReleaseCommandBufferKHR");
	EXPECT_EQ(khr.release(list), CL_OUT_OF_RESOURCES);
	for (int i = 0; i < row->count; i++) {
		stub_trace_clear();
		EXPECT_EQ(khr.enqueue(0, NULL, list, 0, NULL, NULL), CL_SUCCESS);
		EXPECT_EQ(cl.clFinish(fix.queue), CL_SUCCESS);
		expect_count("sync START ", 1);
		expect_count("sync END ", 1);
		EXPECT_EQ(khr.release(list), CL_SUCCESS);
	}
	run_close(&r);
}

TEST(command_buffer_retain, "A reference to a command buffer that the driver refuses does not "
			    "count: the release gives the "
			    "dma-bufs up.")
{
	struct run r = run_open(0);
	cl_command_buffer_khr list = refused_record(&r);
	int mapped = r.mapped_before;

	refused_by_driver("clRetainCommandBufferKHR");
	EXPECT_EQ(khr.retain(list), CL_OUT_OF_RESOURCES);
	EXPECT_EQ(khr.release(list), CL_SUCCESS);
	run_close(&r);
	EXPECT(process_settles(fixture_mapped_at_most, &mapped));
}

/* Whether the driver says when a context is gone. */
static const struct context_kind {
	const char *name;
	bool is_old;
} context_kinds[] = { { "opencl_3_0", false }, { "opencl_1_2", true } };

static int refused_notices;

static void CL_CALLBACK refused_count_notice(const char *message, const void *data, size_t size,
					     void *unused)
{
	(void)message, (void)data, (void)size, (void)unused;
	refused_notices++;
}

TEST_EACH(context, struct context_kind, context_kinds,
	  "After a release that the driver refuses, a context takes imports, and its callback is "
	  "told.")
{
	cl_context context;
	cl_int err = 1;
	cl_mem mem;

	fixture_reset();
	stub_set(STUB_CL12, row->is_old);
	fixture_open();
	context = cl.clCreateContext(NULL, 1, fix.device, refused_count_notice, NULL, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	refused_notices = 0;
	refused_by_driver("clReleaseContext");
	EXPECT_EQ(cl.clReleaseContext(context), CL_OUT_OF_RESOURCES);
	mem = fix.import(context, 0, NULL, pages_map(1), PAGE, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	cl.clReleaseMemObject(mem);
	EXPECT(!fix.import(context, 0, NULL, NULL, PAGE, &err));
	EXPECT_EQ(refused_notices, 1);
	EXPECT_EQ(cl.clReleaseContext(context), CL_SUCCESS);
	fixture_close();
}
