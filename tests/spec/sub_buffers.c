/* SPDX-License-Identifier: Apache-2.0 */
/* Sub-buffers of imports. */
#include "kernels.h"
#include "object.h"

#define QUERY(function, mem, what, type, want)                                             \
	do {                                                                               \
		type value_ = 0;                                                           \
		EXPECT_EQ(function(mem, what, sizeof(value_), &value_, NULL), CL_SUCCESS); \
		EXPECT(value_ == (want));                                                  \
	} while (0)

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

TEST(sub_buffer_is_the_imported_memory,
     "R6-62 Support creating a sub-buffer from an imported buffer.")
{
	expect_shared_object(SUB_BUFFER, HOST_MEMORY);
}

TEST(sub_buffer_of_a_dma_buf, "R6-62 Support creating a sub-buffer from an imported buffer.")
{
	expect_shared_object(SUB_BUFFER, DMA_BUF_MEMORY);
}

TEST(sub_buffer_and_parent_see_each_other,
     "R6-62 Support creating a sub-buffer from an imported buffer.")
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

TEST(sub_buffer_queries, "R6-62 Support creating a sub-buffer from an imported buffer.")
{
	struct object o;

	object_make(&o, SUB_BUFFER, HOST_MEMORY, CL_MEM_READ_WRITE);
	QUERY(clGetMemObjectInfo, o.mem, CL_MEM_ASSOCIATED_MEMOBJECT, cl_mem, o.import);
	QUERY(clGetMemObjectInfo, o.mem, CL_MEM_OFFSET, size_t, o.origin);
	QUERY(clGetMemObjectInfo, o.mem, CL_MEM_SIZE, size_t, o.memory_size - o.origin);
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

TEST(read_only_sub_buffer, "R6-62 Support creating a sub-buffer from an imported buffer.")
{
	unsigned char *memory = spec_map_pages(2);
	cl_mem mem = spec_import_host(CL_MEM_READ_WRITE, memory, 2 * spec.page);
	cl_int error = 1;
	cl_mem sub = sub_buffers_create(mem, CL_MEM_READ_ONLY, 0, spec.page, &error);

	EXPECT_EQ(error, CL_SUCCESS);
	expect_read_by_device(sub, memory, spec.page);
}

/* The standard's rule, as for the sub-buffer of any buffer. */
TEST(sub_buffer_with_more_access, "R6-62 Support creating a sub-buffer from an imported buffer.")
{
	cl_mem mem = spec_import_host(CL_MEM_READ_ONLY, spec_map_pages(2), 2 * spec.page);
	cl_int error = 1;

	sub_buffers_create(mem, CL_MEM_READ_WRITE, 0, spec.page, &error);
	EXPECT_EQ(error, CL_INVALID_VALUE);
}

TEST(sub_buffer_beyond_the_import, "R6-62 Support creating a sub-buffer from an imported buffer.")
{
	cl_mem mem = spec_import_host(CL_MEM_READ_WRITE, spec_map_pages(2), 2 * spec.page);
	cl_int error = 1;

	sub_buffers_create(mem, 0, 0, 2 * spec.page + 1, &error);
	EXPECT_EQ(error, CL_INVALID_VALUE);
}

TEST(sub_buffer_outlives_the_import, "R6-62 Support creating a sub-buffer from an imported buffer.")
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

TEST(many_sub_buffers, "R6-62 Support creating a sub-buffer from an imported buffer.")
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
		EXPECT_EQ(memory[i], i / step + 1);
}
