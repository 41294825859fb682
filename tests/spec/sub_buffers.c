/* SPDX-License-Identifier: Apache-2.0 */
/* Sub-buffers of imports. */
#include "kernels.h"
#include "object.h"

static void expect_shared_object(enum shape shape, enum memory_type type)
{
	struct object o;

	object_make(&o, shape, type, CL_MEM_READ_WRITE);
	for (unsigned int turn = 1; turn < 4; turn++) {
		object_fill(&o, turn);
		kernels_add(o.mem, BYTES, 1, 10);
		EXPECT(object_is(&o, turn + 10));
	}
	EXPECT(object_padding_is_intact(&o));
}

TEST(sub_buffer_is_the_imported_memory, R6_62)
{
	expect_shared_object(SUB_BUFFER, HOST_MEMORY);
}

TEST(sub_buffer_of_a_dma_buf, R6_62)
{
	expect_shared_object(SUB_BUFFER, DMA_BUF_MEMORY);
}

TEST(sub_buffer_and_parent_see_each_other, R6_62)
{
	struct object o;

	object_make(&o, SUB_BUFFER, HOST_MEMORY, CL_MEM_READ_WRITE);
	object_fill(&o, 1);
	kernels_add(o.import, o.origin + BYTES, 1, 1);
	EXPECT(object_is(&o, 2));
	kernels_add(o.mem, BYTES, 1, 5);
	kernels_add(o.import, o.origin + BYTES, 1, 1);
	EXPECT(object_is(&o, 8));
	for (size_t i = 0; i < o.origin; i++)
		EXPECT_EQ(o.memory[i], 0xf0);
}

TEST(sub_buffer_queries, R6_62)
{
	struct object o;

	object_make(&o, SUB_BUFFER, HOST_MEMORY, CL_MEM_READ_WRITE);
	QUERY(clGetMemObjectInfo, o.mem, CL_MEM_ASSOCIATED_MEMOBJECT, cl_mem, o.import);
	QUERY(clGetMemObjectInfo, o.mem, CL_MEM_OFFSET, size_t, o.origin);
	QUERY(clGetMemObjectInfo, o.mem, CL_MEM_SIZE, size_t, o.size - o.origin);
	QUERY(clGetMemObjectInfo, o.mem, CL_MEM_TYPE, cl_mem_object_type, CL_MEM_OBJECT_BUFFER);
	if (spec.exact) {
		QUERY(clGetMemObjectInfo, o.mem, CL_MEM_HOST_PTR, void *, NULL);
		QUERY(clGetMemObjectInfo, o.mem, CL_MEM_FLAGS, cl_mem_flags, CL_MEM_READ_WRITE);
	}
}

static cl_mem sub_buffers_create(cl_mem mem, cl_mem_flags flags, size_t origin, size_t size,
				 cl_int *error)
{
	const cl_buffer_region region = { origin, size };

	return released_later(
		clCreateSubBuffer(mem, flags, CL_BUFFER_CREATE_TYPE_REGION, &region, error));
}

TEST(read_only_sub_buffer, R6_62)
{
	unsigned char *memory = spec_map_pages(2);
	cl_mem mem = spec_import_host(CL_MEM_READ_WRITE, memory, 2 * spec.page);
	cl_int error = 1;
	cl_mem sub = sub_buffers_create(mem, CL_MEM_READ_ONLY, 0, spec.page, &error);

	EXPECT_EQ(error, CL_SUCCESS);
	expect_read_by_device(sub, memory, spec.page);
}

/* The standard's rule, as for the sub-buffer of any buffer. */
TEST(sub_buffer_with_more_access, R6_62)
{
	cl_mem mem = spec_import_host(CL_MEM_READ_ONLY, spec_map_pages(2), 2 * spec.page);
	cl_int error = 1;

	sub_buffers_create(mem, CL_MEM_READ_WRITE, 0, spec.page, &error);
	EXPECT_EQ(error, CL_INVALID_VALUE);
}

TEST(sub_buffer_beyond_the_import, R6_62)
{
	cl_mem mem = spec_import_host(CL_MEM_READ_WRITE, spec_map_pages(2), 2 * spec.page);
	cl_int error = 1;

	sub_buffers_create(mem, 0, 0, 2 * spec.page + 1, &error);
	EXPECT_EQ(error, CL_INVALID_VALUE);
}

TEST(sub_buffer_outlives_the_import, R6_62)
{
	unsigned char *memory = spec_map_pages(2);
	cl_int error = 1;
	cl_mem mem, sub;

	need_host();
	mem = spec.import(spec.context, CL_MEM_READ_WRITE, NULL, memory, 2 * spec.page, &error);
	EXPECT_EQ(error, CL_SUCCESS);
	sub = sub_buffers_create(mem, 0, object_origin(), BYTES, &error);
	EXPECT_EQ(clReleaseMemObject(mem), CL_SUCCESS);
	EXPECT_EQ(error, CL_SUCCESS);
	expect_shared(sub, memory + object_origin(), BYTES);
}

TEST(many_sub_buffers, R6_62)
{
	size_t step = object_origin(), count = 16;
	unsigned char *memory = spec_map_pages((count * step + spec.page - 1) / spec.page);
	cl_mem mem = spec_import_host(CL_MEM_READ_WRITE, memory, count * step);

	for (size_t i = 0; i < count; i++) {
		cl_int error = 1;
		cl_mem sub = sub_buffers_create(mem, 0, i * step, step, &error);

		EXPECT_EQ(error, CL_SUCCESS);
		kernels_add(sub, step, 1, i + 1);
	}
	for (size_t i = 0; i < count * step; i++)
		EXPECT_BYTE(memory[i], i / step + 1);
}

TEST(sub_buffer_inside_of_a_page, R6_62)
{
	const struct object_form form = { .shape = SUB_BUFFER,
					  .flags = CL_MEM_READ_WRITE,
					  .in_page = true };
	struct object o;

	object_make_form(&o, &form);
	for (unsigned int turn = 1; turn < 4; turn++) {
		object_fill(&o, turn);
		kernels_add(o.mem, BYTES, 1, 10);
		EXPECT(object_is(&o, turn + 10));
	}
	EXPECT(object_padding_is_intact(&o));
}

/* The end of an import that ends inside of a page. */
TEST(sub_buffer_at_the_end_of_the_import, R6_62)
{
	const struct object_form form = { .flags = CL_MEM_READ_WRITE, .in_page = true };
	struct object o;
	cl_int error = 1;
	cl_mem sub;

	object_make_form(&o, &form);
	sub = sub_buffers_create(o.mem, 0, object_origin(), o.size - object_origin(), &error);
	EXPECT_EQ(error, CL_SUCCESS);
	kernels_add(sub, o.size - object_origin(), 1, 1);
	for (size_t i = 0; i < o.memory_size; i++)
		EXPECT_EQ(o.memory[i],
			  i < o.offset + object_origin() || i >= o.offset + o.size ? 0xee : 0xef);
	sub_buffers_create(o.mem, 0, object_origin(), o.size - object_origin() + 1, &error);
	EXPECT_EQ(error, CL_INVALID_VALUE);
}

TEST(sub_buffer_of_all_of_the_import, R6_62)
{
	unsigned char *memory = spec_map_pages(2);
	cl_mem mem = spec_import_host(CL_MEM_READ_WRITE, memory, 2 * spec.page);
	cl_int error = 1;
	cl_mem sub = sub_buffers_create(mem, CL_MEM_READ_WRITE, 0, 2 * spec.page, &error);

	EXPECT_EQ(error, CL_SUCCESS);
	expect_shared(sub, memory, 2 * spec.page);
}

/* The standard's errors, as of the sub-buffer of any buffer. */
static const struct sub_buffer_error {
	const char *name;
	cl_buffer_region region; /* origin 0 stands for object_origin() */
	cl_int error;
} sub_buffer_errors[] = {
	{ "size_0", { 0, 0 }, CL_INVALID_BUFFER_SIZE },
	{ "origin_1", { 1, 1 }, CL_MISALIGNED_SUB_BUFFER_OFFSET },
	{ "origin_beyond_the_import", { SIZE_MAX & ~(size_t)0xffff, 1 }, CL_INVALID_VALUE },
	{ "size_max", { 0, SIZE_MAX }, CL_INVALID_VALUE },
};

TEST_EACH(sub_buffer_with, struct sub_buffer_error, sub_buffer_errors, R6_62)
{
	cl_mem mem = spec_import_host(CL_MEM_READ_WRITE, spec_map_pages(2), 2 * spec.page);
	size_t origin = row->region.origin ? row->region.origin : object_origin();
	cl_int error = 1;

	if (row->error == CL_MISALIGNED_SUB_BUFFER_OFFSET &&
	    device_number(CL_DEVICE_MEM_BASE_ADDR_ALIGN) <= 8)
		test_skip("device takes sub-buffers at any byte");
	EXPECT_OF_DRIVER(!sub_buffers_create(mem, 0, origin, row->region.size, &error));
	EXPECT_EQ(error, row->error);
	EXPECT(!sub_buffers_create(mem, 0, origin, row->region.size, NULL));
}

TEST(sub_buffer_without_a_region, R6_62)
{
	const cl_buffer_region region = { 0, spec.page };
	cl_mem mem = spec_import_host(CL_MEM_READ_WRITE, spec_map_pages(1), spec.page);
	cl_int error = 1;
	cl_mem sub = clCreateSubBuffer(mem, 0, CL_BUFFER_CREATE_TYPE_REGION, NULL, &error);

	EXPECT(!sub);
	EXPECT_EQ(error, CL_INVALID_VALUE);
	sub = clCreateSubBuffer(mem, 0, CL_BUFFER_CREATE_TYPE_REGION + 1, &region, &error);
	EXPECT(!sub);
	EXPECT_EQ(error, CL_INVALID_VALUE);
}

TEST(sub_buffer_without_errcode_ret, R6_62)
{
	unsigned char *memory = spec_map_pages(1);
	cl_mem mem = spec_import_host(CL_MEM_READ_WRITE, memory, spec.page);
	cl_mem sub = sub_buffers_create(mem, 0, 0, spec.page, NULL);

	EXPECT(sub != NULL);
	expect_shared(sub, memory, spec.page);
}

/* OpenCL: CL_INVALID_MEM_OBJECT if the buffer is a sub-buffer. */
TEST(sub_buffer_of_a_sub_buffer, R6_62)
{
	cl_mem mem = spec_import_host(CL_MEM_READ_WRITE, spec_map_pages(2), 2 * spec.page);
	cl_int error = 1;
	cl_mem sub = sub_buffers_create(mem, 0, 0, spec.page, &error);

	EXPECT_EQ(error, CL_SUCCESS);
	EXPECT(!sub_buffers_create(sub, 0, 0, BYTES, &error));
	EXPECT_EQ(error, CL_INVALID_MEM_OBJECT);
}

/* A kernel reads a sub-buffer and writes another; the rest of the import stays. */
TEST(from_sub_buffer_to_sub_buffer, R6_62)
{
	size_t step = object_origin(), pages = (3 * step + BYTES + spec.page - 1) / spec.page;
	unsigned char *memory = spec_map_pages(pages);
	cl_mem mem = spec_import_host(CL_MEM_READ_WRITE, memory, pages * spec.page);
	cl_int error = 1;
	cl_mem from = sub_buffers_create(mem, CL_MEM_READ_ONLY, step, BYTES, &error);
	cl_mem to = sub_buffers_create(mem, CL_MEM_WRITE_ONLY, 2 * step, BYTES, &error);

	EXPECT_EQ(error, CL_SUCCESS);
	spec_fill_memory(memory + step, BYTES, 5);
	kernels_copy(from, to, BYTES);
	EXPECT(spec_memory_is(memory + 2 * step, BYTES, 5));
	EXPECT(spec_memory_is(memory + step, BYTES, 5));
	EXPECT_BYTE(memory[2 * step + BYTES], 0);
}
