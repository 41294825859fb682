/* SPDX-License-Identifier: Apache-2.0 */
/* Imports are used as any other memory object: queries, references, queues, commands. */
#include <time.h>

#include "kernels.h"
#include "object.h"
#include "queues.h"

TEST(input_and_output, R6_55)
{
	unsigned char *from = spec_map_pages(2), *to = spec_map_pages(2);
	cl_mem in = spec_import_host(CL_MEM_READ_ONLY, from, 2 * spec.page);
	cl_mem out = spec_import_host(CL_MEM_WRITE_ONLY, to, 2 * spec.page);

	spec_fill_memory(from, 2 * spec.page, 7);
	kernels_copy(in, out, 2 * spec.page);
	EXPECT(spec_memory_is(to, 2 * spec.page, 7));
}

TEST(thousand_imports_at_once, R6_55)
{
	enum { COUNT = 1000 };
	unsigned char *memory = spec_map_pages(COUNT);
	static cl_mem mems[COUNT];

	for (size_t i = 0; i < COUNT; i++)
		mems[i] = spec_import_host(CL_MEM_READ_WRITE, memory + i * spec.page, spec.page);
	for (size_t i = 0; i < COUNT; i += 37) {
		kernels_add(mems[i], spec.page, spec.page, 1 + i % 200);
		EXPECT_BYTE(memory[i * spec.page], 1 + i % 200);
	}
	for (size_t i = 0; i < COUNT; i++)
		EXPECT_BYTE(memory[i * spec.page], i % 37 ? 0 : 1 + i % 200);
}

TEST(migration, R6_55)
{
	unsigned char *memory = spec_map_pages(1);
	cl_mem mem = spec_import_host(CL_MEM_READ_WRITE, memory, spec.page);

	if (spec.device_version < CL_MAKE_VERSION(1, 2, 0))
		test_skip("device is older than OpenCL 1.2");
	spec_fill_memory(memory, spec.page, 4);
	EXPECT_EQ(clEnqueueMigrateMemObjects(spec.queue, 1, &mem, 0, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(clFinish(spec.queue), CL_SUCCESS);
	EXPECT(spec_memory_is(memory, spec.page, 4));
	EXPECT_EQ(clEnqueueMigrateMemObjects(spec.queue, 1, &mem, CL_MIGRATE_MEM_OBJECT_HOST, 0,
					     NULL, NULL),
		  CL_SUCCESS);
	EXPECT_EQ(clFinish(spec.queue), CL_SUCCESS);
	expect_shared(mem, memory, spec.page);
}

struct native_args {
	void *mem;
	size_t size;
};

static void CL_CALLBACK interactions_run_native(void *arg)
{
	struct native_args *args = arg;
	unsigned char *bytes = args->mem;

	for (size_t i = 0; i < args->size; i++)
		bytes[i] += 2;
}

TEST(native_kernel, R6_55)
{
	unsigned char *memory = spec_map_pages(1);
	cl_mem mem = spec_import_host(CL_MEM_READ_WRITE, memory, spec.page);
	struct native_args args = { NULL, spec.page };
	const void *where = &args.mem;

	if (!(device_number(CL_DEVICE_EXECUTION_CAPABILITIES) & CL_EXEC_NATIVE_KERNEL))
		test_skip("device has no native kernels");
	spec_fill_memory(memory, spec.page, 1);
	EXPECT_EQ(clEnqueueNativeKernel(spec.queue, interactions_run_native, &args, sizeof(args), 1,
					&mem, &where, 0, NULL, NULL),
		  CL_SUCCESS);
	EXPECT_EQ(clFinish(spec.queue), CL_SUCCESS);
	EXPECT(spec_memory_is(memory, spec.page, 3));
}

/* Runs a part of the test on @queue. */
static void expect_shared_on(cl_command_queue queue, cl_mem mem, unsigned char *memory)
{
	cl_command_queue own = spec.queue;

	spec.queue = queue;
	kernels_add(mem, spec.page, 1, 1);
	spec.queue = own;
	EXPECT(spec_memory_is(memory, spec.page, 2));
}

static void expect_works_on(cl_command_queue_properties properties)
{
	unsigned char *memory = spec_map_pages(1);
	cl_mem mem = spec_import_host(CL_MEM_READ_WRITE, memory, spec.page);

	spec_fill_memory(memory, spec.page, 1);
	expect_shared_on(queues_create(spec.context, properties), mem, memory);
}

TEST(second_queue, R6_55)
{
	expect_works_on(0);
}

TEST(queue_with_profiling, R6_55)
{
	expect_works_on(CL_QUEUE_PROFILING_ENABLE);
}

TEST(queue_out_of_order, R6_55)
{
	if (!(device_number(CL_DEVICE_QUEUE_PROPERTIES) & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE))
		test_skip("device has no such queues");
	expect_works_on(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
}

/* Two contexts, an import in each, of the same memory. */
TEST(two_contexts, R6_55)
{
	unsigned char *memory = spec_map_pages(1);
	cl_mem mem = spec_import_host(CL_MEM_READ_WRITE, memory, spec.page), second;
	cl_int error = 1;
	cl_context context = clCreateContext(NULL, 1, &spec.device, NULL, NULL, &error);

	EXPECT_EQ(error, CL_SUCCESS);
	spec_undo_later(spec_release_context, context);
	second = released_later(
		spec.import(context, CL_MEM_READ_WRITE, NULL, memory, spec.page, &error));
	EXPECT_EQ(error, CL_SUCCESS);
	QUERY(clGetMemObjectInfo, second, CL_MEM_CONTEXT, cl_context, context);
	expect_shared(mem, memory, spec.page);
}

/* Each device of the context in turn adds 1 to the bytes of the device before. */
static void expect_shared_by(cl_context context, const cl_device_id *devices, cl_uint count,
			     cl_mem mem, unsigned char *memory)
{
	cl_device_id own = spec.device;
	cl_kernel add = kernels_create_in(context, "add");

	spec_fill_memory(memory, spec.page, 1);
	for (cl_uint i = 0; i < count; i++) {
		spec.device = devices[i];
		kernels_add_with(add, queues_create(context, 0), mem, spec.page, 1);
		spec.device = own;
		EXPECT(spec_memory_is(memory, spec.page, 2 + i));
	}
}

/* If a device of the context cannot import, the whole context refuses. */
TEST(context_of_all_devices, R6_55)
{
	cl_device_id devices[64];
	unsigned char *memory = spec_map_pages(1);
	cl_uint count = 0;
	cl_int error = 1;
	cl_context context;
	cl_mem mem;

	need_host();
	EXPECT_EQ(clGetDeviceIDs(spec.platform, CL_DEVICE_TYPE_ALL, 64, devices, &count),
		  CL_SUCCESS);
	if (count < 2 || count > 64)
		test_skip("the platform has one device");
	context = clCreateContext(NULL, count, devices, NULL, NULL, &error);
	if (error)
		test_skip("no context has all devices of the platform");
	spec_undo_later(spec_release_context, context);
	mem = released_later(
		spec.import(context, CL_MEM_READ_WRITE, NULL, memory, spec.page, &error));
	EXPECT(mem ? error == CL_SUCCESS : error < 0);
	if (mem)
		expect_shared_by(context, devices, count, mem, memory);
}
