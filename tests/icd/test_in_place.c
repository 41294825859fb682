/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that never heard of the extension: buffers with CL_MEM_USE_HOST_PTR that are imports, and
 * what such programs see of them.
 */
#include "in_place.h"

#include <string.h>

#include "process.h"

static cl_command_type in_place_event_type(cl_event event)
{
	cl_command_type type = 0;

	EXPECT_EQ(cl.clGetEventInfo(event, CL_EVENT_COMMAND_TYPE, sizeof(type), &type, NULL),
		  CL_SUCCESS);
	return type;
}

/* A blocking map of @size bytes at @offset. */
static unsigned char *test_in_place_map(cl_mem mem, cl_map_flags flags, size_t offset, size_t size)
{
	cl_int err = 1;
	unsigned char *pointer = cl.clEnqueueMapBuffer(fix.queue, mem, CL_TRUE, flags, offset, size,
						       0, NULL, NULL, &err);

	EXPECT_EQ(err, CL_SUCCESS);
	return pointer;
}

static cl_int in_place_map_error(cl_mem mem, cl_map_flags flags, size_t offset, size_t size)
{
	cl_int err = 1;

	EXPECT(!cl.clEnqueueMapBuffer(fix.queue, mem, CL_TRUE, flags, offset, size, 0, NULL, NULL,
				      &err));
	return err;
}

static void test_in_place_unmap(cl_mem mem, void *pointer)
{
	EXPECT_EQ(cl.clEnqueueUnmapMemObject(fix.queue, mem, pointer, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(fix.queue), CL_SUCCESS);
}

static cl_uint test_in_place_count(cl_mem mem, cl_mem_info name)
{
	cl_uint count = 77;

	EXPECT_EQ(cl.clGetMemObjectInfo(mem, name, sizeof(count), &count, NULL), CL_SUCCESS);
	return count;
}

static cl_uint test_in_place_map_count(cl_mem mem)
{
	return test_in_place_count(mem, CL_MEM_MAP_COUNT);
}

struct references {
	cl_mem mem;
	cl_uint count;
};

static bool test_in_place_are_references(void *expected)
{
	const struct references *e = expected;

	return test_in_place_count(e->mem, CL_MEM_REFERENCE_COUNT) == e->count;
}

/* A command that is complete may have a reference for a while. */
static void expect_references(cl_mem mem, cl_uint count)
{
	struct references expected = { mem, count };

	EXPECT(process_settles(test_in_place_are_references, &expected));
}

TEST(in_place, "Kernels work in place on the memory of a buffer with a host pointer.")
{
	unsigned char *p;
	cl_mem mem;

	in_place_open();
	p = pages_map(3);
	p[0] = 7;
	mem = test_in_place_create(CL_MEM_READ_WRITE, p, 3 * PAGE);
	p[0] = 9; /* a program that breaks the rules, to see that nothing is cached */
	fixture_increment(mem);
	EXPECT_EQ(p[0], 10);
	EXPECT_EQ(fix.notices, 0);
	cl.clReleaseMemObject(mem);
	in_place_close();
}

static const struct variable {
	const char *name, *value;
} variables[] = { { "unset", NULL }, { "0", "0" }, { "yes", "yes" } };

TEST_EACH(off, struct variable, variables,
	  "Unless CLIMPORT_HOST_PTR is 1, the driver makes the buffer, and no test runs.")
{
	unsigned char *p;
	cl_mem mem;

	in_place_reset();
	unsetenv("CLIMPORT_HOST_PTR");
	if (row->value)
		setenv("CLIMPORT_HOST_PTR", row->value, 1);
	fixture_open();
	p = pages_map(1);
	mem = test_in_place_create_own(0, p, PAGE);
	EXPECT_EQ(stub_calls("clCreateBufferWithProperties"), 0);
	EXPECT(!test_in_place_is(mem, p));
	cl.clReleaseMemObject(mem);
	in_place_close();
}

TEST(other_buffers, "Buffers without a host pointer, and copies of memory, are the driver's.")
{
	unsigned char *p;
	unsigned long before;
	cl_mem a, b;

	in_place_open();
	p = pages_map(1);
	before = stub_calls("clCreateBufferWithProperties");
	a = cl.clCreateBuffer(fix.context, 0, PAGE, NULL, NULL);
	b = cl.clCreateBuffer(fix.context, CL_MEM_COPY_HOST_PTR, PAGE, p, NULL);
	EXPECT_EQ(stub_calls("clCreateBufferWithProperties"), before);
	EXPECT(!test_in_place_is(b, p));
	cl.clReleaseMemObject(a);
	cl.clReleaseMemObject(b);
	in_place_close();
}

static const struct list {
	const char *name;
	bool has_list;
	size_t size; /* of the answer to CL_MEM_PROPERTIES */
} lists[] = { { "null", false, 0 }, { "empty", true, sizeof(cl_mem_properties) } };

TEST_EACH(with_properties, struct list, lists,
	  "clCreateBufferWithProperties makes such buffers, and the list of properties is answered "
	  "as "
	  "given.")
{
	static const cl_mem_properties empty[] = { 0 };
	cl_mem_properties value = 5;
	unsigned char *p;
	size_t size = 77;
	cl_int err = 1;
	cl_mem mem;

	in_place_open();
	p = pages_map(1);
	mem = cl.clCreateBufferWithProperties(fix.context, row->has_list ? empty : NULL,
					      CL_MEM_USE_HOST_PTR, PAGE, p, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	EXPECT(test_in_place_is(mem, p));
	EXPECT_EQ(cl.clGetMemObjectInfo(mem, CL_MEM_PROPERTIES, sizeof(value), &value, &size),
		  CL_SUCCESS);
	EXPECT_EQ(size, row->size);
	EXPECT_EQ(value, row->size ? 0 : 5);
	cl.clReleaseMemObject(mem);
	in_place_close();
}

static const struct place {
	const char *name;
	size_t offset, size;
} places[] = { { "pages", 0, 2 * PAGE }, { "within", 3 * ALIGN, 1000 } };

static bool test_in_place_has_one_reference(void *mem)
{
	return opaque_query_size(mem, CL_MEM_REFERENCE_COUNT) == 1;
}

TEST_EACH(queries, struct place, places,
	  "Queries give flags and pointer of the program, and show no parent and no offset.")
{
	const cl_mem_flags flags = CL_MEM_READ_WRITE | CL_MEM_HOST_WRITE_ONLY;
	cl_bool is_svm = CL_TRUE;
	unsigned char *p;
	cl_mem mem;

	in_place_open();
	p = pages_map(2);
	mem = test_in_place_create(flags, p + row->offset, row->size);
	EXPECT(test_in_place_is(mem, p + row->offset));
	EXPECT_EQ(opaque_query_size(mem, CL_MEM_FLAGS), flags | CL_MEM_USE_HOST_PTR);
	EXPECT_EQ(opaque_query_size(mem, CL_MEM_HOST_PTR), (size_t)(p + row->offset));
	EXPECT_EQ(opaque_query_size(mem, CL_MEM_SIZE), row->size);
	EXPECT_EQ(opaque_query_size(mem, CL_MEM_OFFSET), 0);
	EXPECT_EQ(opaque_query_size(mem, CL_MEM_ASSOCIATED_MEMOBJECT), 0);
	EXPECT_EQ(
		cl.clGetMemObjectInfo(mem, CL_MEM_USES_SVM_POINTER, sizeof(is_svm), &is_svm, NULL),
		CL_SUCCESS);
	EXPECT_EQ(is_svm, CL_FALSE);
	/* The kernel gives its reference back when the driver has time. */
	EXPECT(process_settles(test_in_place_has_one_reference, mem));
	cl.clReleaseMemObject(mem);
	in_place_close();
}

TEST_EACH(
	sub_buffer, struct place, places,
	"A sub-buffer has pointer, offset and parent, inherits flags, is mapped at its place, and "
	"outlives its parent.")
{
	const cl_buffer_region region = { 2 * ALIGN, 100 };
	unsigned char *p, *part;
	cl_mem mem, sub;
	cl_int err = 1;

	in_place_open();
	p = pages_map(2);
	part = p + row->offset + region.origin;
	mem = test_in_place_create(CL_MEM_READ_WRITE | CL_MEM_HOST_WRITE_ONLY, p + row->offset,
				   row->size);
	sub = cl.clCreateSubBuffer(mem, CL_MEM_READ_ONLY, CL_BUFFER_CREATE_TYPE_REGION, &region,
				   &err);
	EXPECT_EQ(err, CL_SUCCESS);
	EXPECT_EQ(opaque_query_size(sub, CL_MEM_FLAGS),
		  CL_MEM_READ_ONLY | CL_MEM_HOST_WRITE_ONLY | CL_MEM_USE_HOST_PTR);
	EXPECT_EQ(opaque_query_size(sub, CL_MEM_HOST_PTR), (size_t)part);
	EXPECT_EQ(opaque_query_size(sub, CL_MEM_OFFSET), region.origin);
	EXPECT_EQ(opaque_query_size(sub, CL_MEM_ASSOCIATED_MEMOBJECT), (size_t)mem);
	EXPECT_EQ(opaque_query_size(sub, CL_MEM_PROPERTIES), 0);
	cl.clReleaseMemObject(mem);
	EXPECT_EQ(in_place_map_error(sub, CL_MAP_READ, 0, 1), CL_INVALID_OPERATION);
	EXPECT_EQ((size_t)test_in_place_map(sub, CL_MAP_WRITE, 10, 90), (size_t)(part + 10));
	EXPECT_EQ(in_place_map_error(sub, CL_MAP_WRITE, 10, 91), CL_INVALID_VALUE);
	test_in_place_unmap(sub, part + 10);
	EXPECT(test_in_place_is(sub, part));
	cl.clReleaseMemObject(sub);
	in_place_close();
}

TEST(sub_buffer_flags, "A sub-buffer with flags that its buffer excludes is CL_INVALID_VALUE.")
{
	static const cl_mem_flags wrong[] = { CL_MEM_READ_WRITE, CL_MEM_USE_HOST_PTR,
					      CL_MEM_HOST_READ_ONLY };
	const cl_buffer_region region = { 0, 100 };
	cl_mem mem;
	cl_int err;

	in_place_open();
	mem = test_in_place_create(CL_MEM_READ_ONLY | CL_MEM_HOST_WRITE_ONLY, pages_map(1), PAGE);
	for (int i = 0; i < 3; i++) {
		EXPECT(!cl.clCreateSubBuffer(mem, wrong[i], CL_BUFFER_CREATE_TYPE_REGION, &region,
					     &err));
		EXPECT_EQ(err, CL_INVALID_VALUE);
	}
	cl.clReleaseMemObject(mem);
	in_place_close();
}

TEST_EACH(map_count, struct place, places, "A buffer counts its own maps.")
{
	unsigned char *p, *pointer;
	cl_mem mem;

	in_place_open();
	p = pages_map(2) + row->offset;
	mem = test_in_place_create(0, p, row->size);
	pointer = test_in_place_map(mem, CL_MAP_READ, 0, row->size);
	EXPECT_EQ(test_in_place_map_count(mem), 1);
	test_in_place_unmap(mem, pointer);
	EXPECT_EQ(test_in_place_map_count(mem), 0);
	cl.clReleaseMemObject(mem);
	in_place_close();
}

TEST_EACH(map_references, struct place, places, "A map is no reference to the buffer.")
{
	unsigned char *p, *pointer;
	cl_mem mem;

	in_place_open();
	p = pages_map(2) + row->offset;
	mem = test_in_place_create(0, p, row->size);
	pointer = test_in_place_map(mem, CL_MAP_READ, 0, row->size);
	expect_references(mem, 1);
	test_in_place_unmap(mem, pointer);
	cl.clReleaseMemObject(mem);
	in_place_close();
}

TEST_EACH(
	mapped, struct place, places,
	"A map gives the host pointer plus the offset, and an unmap leaves what the program wrote.")
{
	unsigned char *p, *pointer;
	cl_mem mem;

	in_place_open();
	p = pages_map(2) + row->offset;
	mem = test_in_place_create(0, p, row->size);
	fixture_increment(mem);
	pointer = test_in_place_map(mem, CL_MAP_READ | CL_MAP_WRITE, 0, row->size);
	EXPECT_EQ((size_t)pointer, (size_t)p);
	EXPECT_EQ(test_in_place_map_count(mem), 1);
	EXPECT_EQ(p[0], 1);
	p[0] = 40;
	test_in_place_unmap(mem, pointer);
	EXPECT_EQ(test_in_place_map_count(mem), 0);
	EXPECT_EQ(p[0], 40);
	fixture_increment(mem);
	EXPECT_EQ(p[0], 41);
	pointer = test_in_place_map(mem, CL_MAP_WRITE_INVALIDATE_REGION, 5, 7);
	EXPECT_EQ((size_t)pointer, (size_t)(p + 5));
	p[5] = 60;
	test_in_place_unmap(mem, pointer);
	EXPECT_EQ(p[5], 60);
	EXPECT_EQ(stub_calls("clEnqueueMapBuffer"), 0); /* memory of the driver's for the map */
	EXPECT_EQ(stub_calls("clEnqueueUnmapMemObject"), 0);
	cl.clReleaseMemObject(mem);
	in_place_close();
}

TEST(map_events, "A map waits for its list, and completes behind the kernels before; map and unmap "
		 "have events of "
		 "their types.")
{
	cl_event go, mapped, unmapped;
	unsigned char *p, *pointer;
	cl_kernel kernel;
	cl_int err = 1;
	cl_mem mem;

	in_place_open();
	p = pages_map(1);
	mem = test_in_place_create(0, p, PAGE);
	kernel = fixture_create_increment(mem);
	go = cl.clCreateUserEvent(fix.context, NULL);
	EXPECT_EQ(fixture_enqueue(fix.queue, kernel, 0, NULL, NULL), CL_SUCCESS);
	pointer = cl.clEnqueueMapBuffer(fix.queue, mem, CL_FALSE, CL_MAP_WRITE, 0, PAGE, 1, &go,
					&mapped, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	EXPECT_EQ((size_t)pointer, (size_t)p);
	EXPECT(fixture_event_status(mapped) > CL_COMPLETE);
	EXPECT_EQ(in_place_event_type(mapped), CL_COMMAND_MAP_BUFFER);
	EXPECT_EQ(cl.clSetUserEventStatus(go, CL_COMPLETE), CL_SUCCESS);
	EXPECT_EQ(cl.clWaitForEvents(1, &mapped), CL_SUCCESS);
	EXPECT_EQ(p[0], 1);
	p[0] = 50;
	EXPECT_EQ(cl.clEnqueueUnmapMemObject(fix.queue, mem, pointer, 1, &mapped, &unmapped),
		  CL_SUCCESS);
	EXPECT_EQ(in_place_event_type(unmapped), CL_COMMAND_UNMAP_MEM_OBJECT);
	EXPECT_EQ(fixture_enqueue(fix.queue, kernel, 1, &unmapped, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(fix.queue), CL_SUCCESS);
	EXPECT_EQ(p[0], 51);
	cl.clReleaseEvent(go);
	cl.clReleaseEvent(mapped);
	cl.clReleaseEvent(unmapped);
	cl.clReleaseKernel(kernel);
	cl.clReleaseMemObject(mem);
	in_place_close();
}

TEST(map_out_of_order,
     "On an out-of-order queue a map without a list does not wait for a command that waits for the "
     "program.")
{
	cl_command_queue queue;
	unsigned char *p;
	cl_kernel kernel;
	cl_int err = 1;
	cl_mem mem, other;
	cl_event go;

	in_place_open();
	queue = fixture_create_queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
	p = pages_map(2);
	mem = test_in_place_create(0, p, PAGE);
	other = test_in_place_create(0, p + PAGE, PAGE);
	kernel = fixture_create_increment(other);
	go = cl.clCreateUserEvent(fix.context, NULL);
	EXPECT_EQ(fixture_enqueue(queue, kernel, 1, &go, NULL), CL_SUCCESS);
	EXPECT_EQ((size_t)cl.clEnqueueMapBuffer(queue, mem, CL_TRUE, CL_MAP_READ, 0, PAGE, 0, NULL,
						NULL, &err),
		  (size_t)p);
	EXPECT_EQ(err, CL_SUCCESS);
	EXPECT_EQ(cl.clSetUserEventStatus(go, CL_COMPLETE), CL_SUCCESS);
	EXPECT_EQ(cl.clEnqueueUnmapMemObject(queue, mem, p, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(queue), CL_SUCCESS);
	EXPECT_EQ(p[PAGE], 1);
	cl.clReleaseEvent(go);
	cl.clReleaseKernel(kernel);
	cl.clReleaseMemObject(mem);
	cl.clReleaseMemObject(other);
	cl.clReleaseCommandQueue(queue);
	in_place_close();
}

static void CL_CALLBACK in_place_note_event(cl_event event, cl_int status, void *seen)
{
	(void)event;
	__atomic_store_n((cl_int *)seen, status, __ATOMIC_RELEASE);
}

static bool in_place_is_noted(void *seen)
{
	return __atomic_load_n((cl_int *)seen, __ATOMIC_ACQUIRE) == CL_COMPLETE;
}

TEST(map_event_queries, "The event of a map has times of profiling, and calls back.")
{
	cl_ulong start = 0, end = 0;
	cl_int err = 1, seen = 77;
	unsigned char *p;
	cl_event event;
	cl_mem mem;

	in_place_open();
	p = pages_map(1);
	mem = test_in_place_create(0, p, PAGE);
	EXPECT_EQ((size_t)cl.clEnqueueMapBuffer(fix.queue, mem, CL_FALSE, CL_MAP_READ, 0, PAGE, 0,
						NULL, &event, &err),
		  (size_t)p);
	EXPECT_EQ(cl.clSetEventCallback(event, CL_COMPLETE, in_place_note_event, &seen),
		  CL_SUCCESS);
	EXPECT_EQ(cl.clWaitForEvents(1, &event), CL_SUCCESS);
	EXPECT(process_settles(in_place_is_noted, &seen));
	EXPECT_EQ(cl.clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, sizeof(start),
					     &start, NULL),
		  CL_SUCCESS);
	EXPECT_EQ(cl.clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof(end), &end,
					     NULL),
		  CL_SUCCESS);
	EXPECT(start <= end);
	test_in_place_unmap(mem, p);
	cl.clReleaseEvent(event);
	cl.clReleaseMemObject(mem);
	in_place_close();
}

TEST(map_behind_failure, "A blocking map behind a failed event fails, and leaves no map.")
{
	cl_int err = 1;
	cl_event go;
	cl_mem mem;

	in_place_open();
	mem = test_in_place_create(0, pages_map(1), PAGE);
	go = cl.clCreateUserEvent(fix.context, NULL);
	EXPECT_EQ(cl.clSetUserEventStatus(go, -5), CL_SUCCESS);
	EXPECT(!cl.clEnqueueMapBuffer(fix.queue, mem, CL_TRUE, CL_MAP_READ, 0, PAGE, 1, &go, NULL,
				      &err));
	EXPECT_EQ(err, CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
	EXPECT_EQ(test_in_place_map_count(mem), 0);
	cl.clReleaseEvent(go);
	cl.clReleaseMemObject(mem);
	in_place_close();
}

TEST(mapped_twice, "Each map of a pointer has an unmap, and a pointer without a map is refused.")
{
	unsigned char *p;
	cl_mem mem;

	in_place_open();
	p = pages_map(1);
	mem = test_in_place_create(0, p, PAGE);
	EXPECT_EQ((size_t)test_in_place_map(mem, CL_MAP_READ, 0, PAGE), (size_t)p);
	EXPECT_EQ((size_t)test_in_place_map(mem, CL_MAP_READ, 0, PAGE), (size_t)p);
	EXPECT_EQ(test_in_place_map_count(mem), 2);
	EXPECT_EQ(cl.clEnqueueUnmapMemObject(fix.queue, mem, p + 1, 0, NULL, NULL),
		  CL_INVALID_VALUE);
	test_in_place_unmap(mem, p);
	test_in_place_unmap(mem, p);
	EXPECT_EQ(test_in_place_map_count(mem), 0);
	EXPECT_EQ(cl.clEnqueueUnmapMemObject(fix.queue, mem, p, 0, NULL, NULL), CL_INVALID_VALUE);
	cl.clReleaseMemObject(mem);
	in_place_close();
}

TEST(map_fails, "If the driver refuses the command of a map, there is no map.")
{
	cl_mem mem;

	in_place_open();
	mem = test_in_place_create(0, pages_map(1), PAGE);
	stub_fail("clEnqueueMarkerWithWaitList", 1, CL_OUT_OF_RESOURCES);
	EXPECT_EQ(in_place_map_error(mem, CL_MAP_READ, 0, PAGE), CL_OUT_OF_RESOURCES);
	stub_fail("clWaitForEvents", 1, CL_OUT_OF_HOST_MEMORY);
	EXPECT_EQ(in_place_map_error(mem, CL_MAP_READ, 0, PAGE), CL_OUT_OF_HOST_MEMORY);
	EXPECT_EQ(test_in_place_map_count(mem), 0);
	cl.clReleaseMemObject(mem);
	in_place_close();
}

TEST(map_other_context, "A queue of another context maps and unmaps nothing.")
{
	cl_command_queue queue;
	cl_context context;
	unsigned char *p;
	cl_int err = 1;
	cl_mem mem;

	in_place_open();
	p = pages_map(1);
	mem = test_in_place_create(0, p, PAGE);
	context = cl.clCreateContext(NULL, 1, fix.device, NULL, NULL, NULL);
	queue = cl.clCreateCommandQueueWithProperties(context, fix.device[0], NULL, NULL);
	EXPECT(!cl.clEnqueueMapBuffer(queue, mem, CL_TRUE, CL_MAP_READ, 0, PAGE, 0, NULL, NULL,
				      &err));
	EXPECT_EQ(err, CL_INVALID_CONTEXT);
	test_in_place_map(mem, CL_MAP_READ, 0, PAGE);
	EXPECT_EQ(cl.clEnqueueUnmapMemObject(queue, mem, p, 0, NULL, NULL), CL_INVALID_CONTEXT);
	test_in_place_unmap(mem, p);
	cl.clReleaseCommandQueue(queue);
	cl.clReleaseContext(context);
	cl.clReleaseMemObject(mem);
	in_place_close();
}

TEST(unmap_fails, "If the driver refuses the command of an unmap, the program may unmap again.")
{
	unsigned char *p;
	cl_mem mem;

	in_place_open();
	p = pages_map(1);
	mem = test_in_place_create(0, p, PAGE);
	test_in_place_map(mem, CL_MAP_READ, 0, PAGE);
	stub_fail("clEnqueueMarkerWithWaitList", 1, CL_OUT_OF_RESOURCES);
	EXPECT_EQ(cl.clEnqueueUnmapMemObject(fix.queue, mem, p, 0, NULL, NULL),
		  CL_OUT_OF_RESOURCES);
	test_in_place_unmap(mem, p);
	test_in_place_map(mem, CL_MAP_READ, 0,
			  PAGE); /* left mapped: nothing is lost at the release */
	EXPECT_EQ(cl.clFinish(fix.queue), CL_SUCCESS);
	cl.clReleaseMemObject(mem);
	in_place_close();
}

TEST(release_fails, "A buffer whose last release the driver refuses keeps its maps.")
{
	unsigned char *p;
	cl_mem mem;

	in_place_open();
	p = pages_map(1);
	mem = test_in_place_create(0, p, PAGE);
	test_in_place_map(mem, CL_MAP_READ, 0, PAGE);
	stub_fail("clReleaseMemObject", 1, CL_OUT_OF_RESOURCES);
	EXPECT_EQ(cl.clReleaseMemObject(mem), CL_OUT_OF_RESOURCES);
	EXPECT_EQ(test_in_place_map_count(mem), 1);
	test_in_place_unmap(mem, p);
	EXPECT_EQ(test_in_place_map_count(mem), 0);
	cl.clReleaseMemObject(mem);
	in_place_close();
}

static const struct wrong_map {
	const char *name;
	cl_mem_flags mem;
	cl_map_flags flags;
	size_t offset, size;
	cl_int err;
} wrong_maps[] = {
	{ "empty", 0, CL_MAP_READ, 0, 0, CL_INVALID_VALUE },
	{ "beyond", 0, CL_MAP_READ, 1, PAGE, CL_INVALID_VALUE },
	{ "far_beyond", 0, CL_MAP_READ, 2 * PAGE, 1, CL_INVALID_VALUE },
	{ "overflow", 0, CL_MAP_READ, 2, SIZE_MAX, CL_INVALID_VALUE },
	{ "unknown_flag", 0, 1 << 20, 0, 1, CL_INVALID_VALUE },
	{ "both_writes", 0, CL_MAP_WRITE | CL_MAP_WRITE_INVALIDATE_REGION, 0, 1, CL_INVALID_VALUE },
	{ "write_only", CL_MEM_HOST_WRITE_ONLY, CL_MAP_READ, 0, 1, CL_INVALID_OPERATION },
	{ "read_only", CL_MEM_HOST_READ_ONLY, CL_MAP_WRITE, 0, 1, CL_INVALID_OPERATION },
	{ "read_only_invalidated", CL_MEM_HOST_READ_ONLY, CL_MAP_WRITE_INVALIDATE_REGION, 0, 1,
	  CL_INVALID_OPERATION },
	{ "read_only_both", CL_MEM_HOST_READ_ONLY, CL_MAP_READ | CL_MAP_WRITE, 0, 1,
	  CL_INVALID_OPERATION },
	{ "write_only_both", CL_MEM_HOST_WRITE_ONLY, CL_MAP_READ | CL_MAP_WRITE, 0, 1,
	  CL_INVALID_OPERATION },
	{ "no_access", CL_MEM_HOST_NO_ACCESS, CL_MAP_READ, 0, 1, CL_INVALID_OPERATION },
};

TEST_EACH(map_wrong, struct wrong_map, wrong_maps, "A map with wrong arguments has its error.")
{
	cl_mem mem;

	in_place_open();
	mem = test_in_place_create(row->mem, pages_map(1), PAGE);
	EXPECT_EQ(in_place_map_error(mem, row->flags, row->offset, row->size), row->err);
	EXPECT(!cl.clEnqueueMapBuffer(fix.queue, mem, CL_TRUE, row->flags, row->offset, row->size,
				      0, NULL, NULL, NULL));
	EXPECT_EQ(test_in_place_map_count(mem), 0);
	cl.clReleaseMemObject(mem);
	in_place_close();
}

static const struct version {
	const char *name, *version;
} versions[] = { { "1_0_0", "1.0.0" }, { "1_1_0", "1.1.0" } };

/* Each command moves 4 bytes between a buffer in place and a plain buffer, or the host. */
static void in_place_move_bytes(cl_mem mem, cl_mem plain)
{
	static const size_t origin[3] = { 8, 0, 0 }, to[3] = { 0, 0, 0 }, box[3] = { 4, 1, 1 };
	unsigned char got[8] = { 0 };

	EXPECT_EQ(cl.clEnqueueFillBuffer(fix.queue, mem, "abcd", 4, 0, 4, 0, NULL, NULL), 0);
	EXPECT_EQ(cl.clEnqueueCopyBuffer(fix.queue, mem, plain, 0, 4, 4, 0, NULL, NULL), 0);
	EXPECT_EQ(cl.clEnqueueCopyBuffer(fix.queue, plain, mem, 4, 8, 4, 0, NULL, NULL), 0);
	EXPECT_EQ(cl.clEnqueueReadBufferRect(fix.queue, mem, CL_TRUE, origin, to, box, 0, 0, 0, 0,
					     got, 0, NULL, NULL),
		  0);
	EXPECT(!memcmp(got, "abcd", 4));
	EXPECT_EQ(cl.clEnqueueWriteBufferRect(fix.queue, mem, CL_TRUE, to, origin, box, 0, 0, 0, 0,
					      "........wxyz", 0, NULL, NULL),
		  0);
	EXPECT_EQ(cl.clEnqueueCopyBufferRect(fix.queue, mem, mem, to, origin, box, 0, 0, 0, 0, 0,
					     NULL, NULL),
		  0);
	EXPECT_EQ(cl.clEnqueueReadBuffer(fix.queue, mem, CL_TRUE, 8, 4, got, 0, NULL, NULL), 0);
	EXPECT(!memcmp(got, "wxyz", 4));
	EXPECT_EQ(cl.clEnqueueWriteBuffer(fix.queue, mem, CL_TRUE, 12, 4, "1234", 0, NULL, NULL),
		  0);
}

TEST_EACH(host_accesses, struct version, versions,
	  "Reads, writes, copies and fills work on such buffers in each version of the extension, "
	  "and "
	  "the host sees the bytes.")
{
	cl_mem mem, plain;
	unsigned char *p;

	in_place_reset();
	setenv("CLIMPORT_VERSION", row->version, 1);
	fixture_open();
	p = pages_map(1);
	mem = test_in_place_create(0, p, PAGE);
	plain = cl.clCreateBuffer(fix.context, 0, 64, NULL, NULL);
	in_place_move_bytes(mem, plain);
	EXPECT(!memcmp(p, "wxyz", 4) && !memcmp(p + 8, "wxyz1234", 8));
	EXPECT_EQ(fix.notices, 0);
	cl.clReleaseMemObject(mem);
	cl.clReleaseMemObject(plain);
	in_place_close();
}

TEST(beside_imports, "A copy between such a buffer and an import is refused in version 1.0.0.")
{
	cl_mem mem, import;

	in_place_open();
	mem = test_in_place_create(0, pages_map(1), PAGE);
	import = fixture_import_host(0, pages_map(1), PAGE);
	EXPECT_EQ(cl.clEnqueueCopyBuffer(fix.queue, mem, import, 0, 0, 4, 0, NULL, NULL),
		  CL_INVALID_OPERATION);
	EXPECT_EQ(cl.clEnqueueCopyBuffer(fix.queue, import, mem, 0, 0, 4, 0, NULL, NULL),
		  CL_INVALID_OPERATION);
	EXPECT_EQ(opaque_query_size(import, CL_MEM_HOST_PTR), 0);
	cl.clReleaseMemObject(mem);
	cl.clReleaseMemObject(import);
	in_place_close();
}

TEST(own_place,
     "A read to, and a write from, the buffer's own memory moves a byte; the bytes are there.")
{
	unsigned char *p, got[4];
	cl_event event;
	cl_mem mem;

	in_place_open();
	p = pages_map(2);
	mem = test_in_place_create(0, p + ALIGN, PAGE);
	fixture_increment(mem);
	EXPECT_EQ(cl.clEnqueueReadBuffer(fix.queue, mem, CL_TRUE, 0, PAGE, p + ALIGN, 0, NULL,
					 &event),
		  CL_SUCCESS);
	EXPECT_EQ(stub_arg("clEnqueueReadBuffer", 4), 1);
	EXPECT_EQ(in_place_event_type(event), CL_COMMAND_READ_BUFFER);
	EXPECT_EQ(p[ALIGN], 1);
	memset(p + ALIGN + 100, 'a', 4);
	EXPECT_EQ(cl.clEnqueueWriteBuffer(fix.queue, mem, CL_TRUE, 100, 50, p + ALIGN + 100, 0,
					  NULL, NULL),
		  CL_SUCCESS);
	EXPECT_EQ(stub_arg("clEnqueueWriteBuffer", 4), 1);
	EXPECT_EQ(cl.clEnqueueReadBuffer(fix.queue, mem, CL_TRUE, 100, 4, got, 0, NULL, NULL),
		  CL_SUCCESS);
	EXPECT_EQ(stub_arg("clEnqueueReadBuffer", 4), 4);
	EXPECT(!memcmp(got, "aaaa", 4));
	EXPECT_EQ(cl.clEnqueueReadBuffer(fix.queue, mem, CL_TRUE, 1, PAGE, p + ALIGN + 1, 0, NULL,
					 NULL),
		  CL_INVALID_VALUE);
	cl.clReleaseEvent(event);
	cl.clReleaseMemObject(mem);
	in_place_close();
}

static const struct forbidden {
	const char *name;
	cl_mem_flags flags;
	cl_int read, write;
} forbidden[] = {
	{ "write_only", CL_MEM_HOST_WRITE_ONLY, CL_INVALID_OPERATION, CL_SUCCESS },
	{ "read_only", CL_MEM_HOST_READ_ONLY, CL_SUCCESS, CL_INVALID_OPERATION },
	{ "no_access", CL_MEM_HOST_NO_ACCESS, CL_INVALID_OPERATION, CL_INVALID_OPERATION },
};

TEST_EACH(host_flags, struct forbidden, forbidden,
	  "Reads and writes that CL_MEM_HOST_* flags exclude are CL_INVALID_OPERATION.")
{
	static const size_t zero[3], box[3] = { 4, 1, 1 };
	unsigned char bytes[4] = { 0 };
	cl_mem mem;

	in_place_open();
	mem = test_in_place_create(row->flags, pages_map(1), PAGE);
	EXPECT_EQ(cl.clEnqueueReadBuffer(fix.queue, mem, CL_TRUE, 0, 4, bytes, 0, NULL, NULL),
		  row->read);
	EXPECT_EQ(cl.clEnqueueReadBufferRect(fix.queue, mem, CL_TRUE, zero, zero, box, 0, 0, 0, 0,
					     bytes, 0, NULL, NULL),
		  row->read);
	EXPECT_EQ(cl.clEnqueueWriteBuffer(fix.queue, mem, CL_TRUE, 0, 4, bytes, 0, NULL, NULL),
		  row->write);
	EXPECT_EQ(cl.clEnqueueWriteBufferRect(fix.queue, mem, CL_TRUE, zero, zero, box, 0, 0, 0, 0,
					      bytes, 0, NULL, NULL),
		  row->write);
	cl.clReleaseMemObject(mem);
	in_place_close();
}

TEST(kernel_only_reads, "The host writes to a buffer that kernels only read.")
{
	unsigned char *p, *pointer;
	cl_mem mem;

	in_place_open();
	p = pages_map(1);
	mem = test_in_place_create(CL_MEM_READ_ONLY, p, PAGE);
	EXPECT_EQ(cl.clEnqueueWriteBuffer(fix.queue, mem, CL_TRUE, 0, 4, "abcd", 0, NULL, NULL),
		  CL_SUCCESS);
	EXPECT(!memcmp(p, "abcd", 4));
	pointer = test_in_place_map(mem, CL_MAP_WRITE, 0, 4);
	test_in_place_unmap(mem, pointer);
	cl.clReleaseMemObject(mem);
	in_place_close();
}
