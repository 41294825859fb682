/* SPDX-License-Identifier: Apache-2.0 */
/* Imports as arguments of kernels, and the commands that run kernels. */
#include "kernels.h"
#include "object.h"
#include "queues.h"

/* A kernel takes one import, and then another. */
TEST(one_argument_after_the_other, R6_55)
{
	unsigned char *first = spec_map_pages(1), *second = spec_map_pages(1);
	cl_mem one = spec_import_host(CL_MEM_READ_WRITE, first, spec.page);
	cl_mem two = spec_import_host(CL_MEM_READ_WRITE, second, spec.page);
	cl_kernel add = kernels_create("add");

	kernels_add_with(add, spec.queue, one, spec.page, 1);
	kernels_add_with(add, spec.queue, two, spec.page, 2);
	kernels_add_with(add, spec.queue, one, spec.page, 4);
	for (size_t i = 0; i < spec.page; i++)
		EXPECT(first[i] == 5 && second[i] == 2);
}

/* The arguments count that a kernel has at the enqueue. */
TEST(argument_changed_after_the_enqueue, R6_55)
{
	unsigned char *first = spec_map_pages(1), *second = spec_map_pages(1);
	cl_mem one = spec_import_host(CL_MEM_READ_WRITE, first, spec.page);
	cl_mem two = spec_import_host(CL_MEM_READ_WRITE, second, spec.page);
	const cl_uint numbers[] = { spec.page, 1, 1 };
	cl_kernel add = kernels_create("add");
	cl_event gate = queues_create_gate();
	const size_t once = 1;

	EXPECT_EQ(clSetKernelArg(add, 0, sizeof(one), &one), CL_SUCCESS);
	for (cl_uint i = 0; i < 3; i++)
		EXPECT_EQ(clSetKernelArg(add, i + 1, sizeof(numbers[i]), &numbers[i]), CL_SUCCESS);
	EXPECT_EQ(clEnqueueNDRangeKernel(spec.queue, add, 1, NULL, &once, &once, 1, &gate, NULL),
		  CL_SUCCESS);
	EXPECT_EQ(clSetKernelArg(add, 0, sizeof(two), &two), CL_SUCCESS);
	queues_open_gate(gate);
	EXPECT_EQ(clFinish(spec.queue), CL_SUCCESS);
	EXPECT(first[0] == 1 && second[0] == 0);
}

TEST(cloned_kernel, R6_55)
{
	unsigned char *memory = spec_map_pages(1);
	cl_mem mem = spec_import_host(CL_MEM_READ_WRITE, memory, spec.page);
	cl_kernel add = kernels_create("add"), clone;
	const size_t once = 1;
	cl_int error = 1;

	if (spec.device_version < CL_MAKE_VERSION(2, 1, 0))
		test_skip("device is older than OpenCL 2.1");
	kernels_add_with(add, spec.queue, mem, spec.page, 1);
	clone = clCloneKernel(add, &error);
	EXPECT_EQ(error, CL_SUCCESS);
	EXPECT_EQ(clEnqueueNDRangeKernel(spec.queue, clone, 1, NULL, &once, &once, 0, NULL, NULL),
		  CL_SUCCESS);
	EXPECT_EQ(clFinish(spec.queue), CL_SUCCESS);
	EXPECT_BYTE(memory[0], 2);
	EXPECT_EQ(clReleaseKernel(clone), CL_SUCCESS);
}

TEST(task, R6_55)
{
	unsigned char *memory = spec_map_pages(1);
	cl_mem mem = spec_import_host(CL_MEM_READ_WRITE, memory, spec.page);
	cl_kernel add = kernels_create("add");

	kernels_add_with(add, spec.queue, mem, spec.page, 1);
	EXPECT_EQ(clEnqueueTask(spec.queue, add, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(clFinish(spec.queue), CL_SUCCESS);
	EXPECT_BYTE(memory[spec.page - 1], 2);
}

/* The kernel takes some time, which clFinish() waits. */
TEST(finish_waits_for_the_kernel, R6_55)
{
	enum { SIZE = 8 << 20 };
	unsigned char *memory = spec_map_pages(SIZE / spec.page);
	cl_mem mem = spec_import_host(CL_MEM_READ_WRITE, memory, SIZE);

	kernels_add(mem, SIZE, 1, 7);
	EXPECT_BYTE(memory[SIZE - 1], 7);
}

TEST(marker_and_barrier, R6_55)
{
	unsigned char *memory = spec_map_pages(1);
	cl_mem mem = spec_import_host(CL_MEM_READ_WRITE, memory, spec.page);
	cl_event done, marker = NULL;

	if (spec.device_version < CL_MAKE_VERSION(1, 2, 0))
		test_skip("device is older than OpenCL 1.2");
	kernels_add_after(mem, spec.page, 1, NULL, &done);
	EXPECT_EQ(clEnqueueMarkerWithWaitList(spec.queue, 1, &done, &marker), CL_SUCCESS);
	EXPECT_EQ(clEnqueueBarrierWithWaitList(spec.queue, 1, &marker, NULL), CL_SUCCESS);
	EXPECT_EQ(clWaitForEvents(1, &marker), CL_SUCCESS);
	EXPECT_BYTE(memory[spec.page - 1], 1);
	EXPECT_EQ(clReleaseEvent(done), CL_SUCCESS);
	EXPECT_EQ(clReleaseEvent(marker), CL_SUCCESS);
	EXPECT_EQ(clFinish(spec.queue), CL_SUCCESS);
}

TEST(migration_of_a_sub_buffer, R6_55)
{
	struct object o;

	if (spec.device_version < CL_MAKE_VERSION(1, 2, 0))
		test_skip("device is older than OpenCL 1.2");
	object_make(&o, SUB_BUFFER, HOST_MEMORY, CL_MEM_READ_WRITE);
	object_fill(&o, 4);
	EXPECT_EQ(clEnqueueMigrateMemObjects(spec.queue, 1, &o.mem, 0, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(clFinish(spec.queue), CL_SUCCESS);
	EXPECT(object_is(&o, 4));
}

/* Each context has a kernel that uses the import of the context. */
TEST(kernel_in_a_second_context, R6_55)
{
	unsigned char *memory = spec_map_pages(1);
	cl_mem first = spec_import_host(CL_MEM_READ_WRITE, memory, spec.page), mem;
	cl_int error = 1;
	cl_context context = clCreateContext(NULL, 1, &spec.device, NULL, NULL, &error);
	cl_command_queue queue;
	cl_kernel add;

	EXPECT_EQ(error, CL_SUCCESS);
	spec_undo_later(spec_release_context, context);
	mem = released_later(
		spec.import(context, CL_MEM_READ_WRITE, NULL, memory, spec.page, &error));
	EXPECT_EQ(error, CL_SUCCESS);
	queue = queues_create(context, 0);
	add = kernels_create_in(context, "add");
	for (unsigned int turn = 1; turn < 4; turn++) {
		spec_fill_memory(memory, spec.page, turn);
		kernels_add_with(add, queue, mem, spec.page, 10);
		EXPECT(spec_memory_is(memory, spec.page, turn + 10));
		kernels_add(first, spec.page, 1, 5);
		EXPECT(spec_memory_is(memory, spec.page, turn + 15));
	}
}

/* The kernel writes one byte of the import. */
TEST(write_only_keeps_the_other_bytes,
     "R6-12 Valid <flags> are: CL_MEM_READ_WRITE, CL_MEM_WRITE_ONLY, CL_MEM_READ_ONLY")
{
	unsigned char *memory = spec_map_pages(2), one = 1;
	cl_mem mem = spec_import_host(CL_MEM_WRITE_ONLY, memory, 2 * spec.page);
	cl_mem in = plain_buffer(1);

	spec_fill_memory(memory, 2 * spec.page, 5);
	plain_write(in, &one, 1);
	kernels_copy(in, mem, 1);
	EXPECT_BYTE(memory[0], 1);
	memory[0] = spec_pattern_byte(0, 5);
	EXPECT(spec_memory_is(memory, 2 * spec.page, 5));
}
