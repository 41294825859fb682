/* SPDX-License-Identifier: Apache-2.0 */
/* Before version 1.1.0, sixteen calls fail with CL_INVALID_OPERATION and have no effect. */
#include "calls.h"
#include "kernels.h"

/* climport does not touch the outputs; a driver may clear outputs without a value. */
static void expect_untouched(const struct call *c, cl_event event, size_t pitch)
{
	EXPECT_EXACT(c->event == event, 1);
	EXPECT(c->event == event || !c->event);
	EXPECT(!c->mapped);
	EXPECT_EXACT(c->row_pitch, pitch);
	EXPECT_EXACT(c->slice_pitch, pitch);
}

static void forbidden_expect(const struct call_row *row, enum memory_type type)
{
	cl_event nobody = (cl_event)(uintptr_t)0x5a5a5a5a;
	struct object o;
	struct call c;

	need_prior_to_1_1();
	object_make(&o, row->shape, type, CL_MEM_READ_WRITE);
	call_prepare(&c, row, &o);
	c.event = nobody;
	c.row_pitch = c.slice_pitch = 4711;
	EXPECT_EQ(row->run(&c), CL_INVALID_OPERATION);
	expect_untouched(&c, nobody, 4711);
	EXPECT_EQ(clFinish(spec.queue), CL_SUCCESS);
	EXPECT(object_is(&o, OBJECT_SEED));
	EXPECT(object_padding_is_intact(&o));
	if (row->role == SOURCE || row->partner != NONE)
		EXPECT(call_other_is(&c, row, OTHER_SEED));
}

TEST_EACH_AS(
	forbidden_map_buffer_rows, "forbidden", struct call_row, call_rows.map_buffer,
	"R6-29:clEnqueueMapBuffer CL_INVALID_OPERATION when an imported memory object has been "
	"passed to one of the following API functions: clEnqueueMapBuffer")
{
	forbidden_expect(row, HOST_MEMORY);
}

TEST_EACH_AS(forbidden_map_image_rows, "forbidden", struct call_row, call_rows.map_image,
	     "R6-29:clEnqueueMapImage CL_INVALID_OPERATION when an imported memory object has been "
	     "passed to one of the following API functions: clEnqueueMapImage")
{
	forbidden_expect(row, HOST_MEMORY);
}

TEST_EACH_AS(
	forbidden_unmap_mem_object_rows, "forbidden", struct call_row, call_rows.unmap_mem_object,
	"R6-29:clEnqueueUnmapMemObject CL_INVALID_OPERATION when an imported memory object has "
	"been passed to one of the following API functions: clEnqueueUnmapMemObject")
{
	forbidden_expect(row, HOST_MEMORY);
}

TEST_EACH_AS(
	forbidden_read_image_rows, "forbidden", struct call_row, call_rows.read_image,
	"R6-29:clEnqueueReadImage CL_INVALID_OPERATION when an imported memory object has been "
	"passed to one of the following API functions: clEnqueueReadImage")
{
	forbidden_expect(row, HOST_MEMORY);
}

TEST_EACH_AS(forbidden_write_image_rows, "forbidden", struct call_row, call_rows.write_image,
	     "R6-29:clEnqueueWriteImage CL_INVALID_OPERATION when an imported memory object has "
	     "been passed to one of the following API functions: clEnqueueWriteImage")
{
	forbidden_expect(row, HOST_MEMORY);
}

TEST_EACH_AS(forbidden_read_buffer_rows, "forbidden", struct call_row, call_rows.read_buffer,
	     "R6-29:clEnqueueReadBuffer CL_INVALID_OPERATION when an imported memory object has "
	     "been passed to one of the following API functions: clEnqueueReadBuffer")
{
	forbidden_expect(row, HOST_MEMORY);
}

TEST_EACH_AS(
	forbidden_read_buffer_rect_rows, "forbidden", struct call_row, call_rows.read_buffer_rect,
	"R6-29:clEnqueueReadBufferRect CL_INVALID_OPERATION when an imported memory object has "
	"been passed to one of the following API functions: clEnqueueReadBufferRect")
{
	forbidden_expect(row, HOST_MEMORY);
}

TEST_EACH_AS(forbidden_write_buffer_rows, "forbidden", struct call_row, call_rows.write_buffer,
	     "R6-29:clEnqueueWriteBuffer CL_INVALID_OPERATION when an imported memory object has "
	     "been passed to one of the following API functions: clEnqueueWriteBuffer")
{
	forbidden_expect(row, HOST_MEMORY);
}

TEST_EACH_AS(forbidden_write_buffer_rect_rows, "forbidden", struct call_row,
	     call_rows.write_buffer_rect,
	     "R6-29:clEnqueueWriteBufferRect CL_INVALID_OPERATION when an imported memory object "
	     "has been passed to one of the following API functions: clEnqueueWriteBufferRect")
{
	forbidden_expect(row, HOST_MEMORY);
}

TEST_EACH_AS(forbidden_copy_buffer_rows, "forbidden", struct call_row, call_rows.copy_buffer,
	     "R6-29:clEnqueueCopyBuffer CL_INVALID_OPERATION when an imported memory object has "
	     "been passed to one of the following API functions: clEnqueueCopyBuffer")
{
	forbidden_expect(row, HOST_MEMORY);
}

TEST_EACH_AS(
	forbidden_copy_buffer_rect_rows, "forbidden", struct call_row, call_rows.copy_buffer_rect,
	"R6-29:clEnqueueCopyBufferRect CL_INVALID_OPERATION when an imported memory object has "
	"been passed to one of the following API functions: clEnqueueCopyBufferRect")
{
	forbidden_expect(row, HOST_MEMORY);
}

TEST_EACH_AS(forbidden_copy_buffer_to_image_rows, "forbidden", struct call_row,
	     call_rows.copy_buffer_to_image,
	     "R6-29:clEnqueueCopyBufferToImage CL_INVALID_OPERATION when an imported memory object "
	     "has been passed to one of the following API functions: clEnqueueCopyBufferToImage")
{
	forbidden_expect(row, HOST_MEMORY);
}

TEST_EACH_AS(forbidden_copy_image_to_buffer_rows, "forbidden", struct call_row,
	     call_rows.copy_image_to_buffer,
	     "R6-29:clEnqueueCopyImageToBuffer CL_INVALID_OPERATION when an imported memory object "
	     "has been passed to one of the following API functions: clEnqueueCopyImageToBuffer")
{
	forbidden_expect(row, HOST_MEMORY);
}

TEST_EACH_AS(
	forbidden_copy_image_rows, "forbidden", struct call_row, call_rows.copy_image,
	"R6-29:clEnqueueCopyImage CL_INVALID_OPERATION when an imported memory object has been "
	"passed to one of the following API functions: clEnqueueCopyImage")
{
	forbidden_expect(row, HOST_MEMORY);
}

TEST_EACH_AS(forbidden_fill_buffer_rows, "forbidden", struct call_row, call_rows.fill_buffer,
	     "R6-29:clEnqueueFillBuffer CL_INVALID_OPERATION when an imported memory object has "
	     "been passed to one of the following API functions: clEnqueueFillBuffer")
{
	forbidden_expect(row, HOST_MEMORY);
}

TEST_EACH_AS(
	forbidden_fill_image_rows, "forbidden", struct call_row, call_rows.fill_image,
	"R6-29:clEnqueueFillImage CL_INVALID_OPERATION when an imported memory object has been "
	"passed to one of the following API functions: clEnqueueFillImage")
{
	forbidden_expect(row, HOST_MEMORY);
}

TEST(forbidden_between_two_imports, "R6-30 (they can't be used with imported memory objects)")
{
	unsigned char *memory = spec_map_pages(2);
	cl_mem one, two;

	need_prior_to_1_1();
	one = spec_import_host(CL_MEM_READ_WRITE, memory, spec.page);
	two = spec_import_host(CL_MEM_READ_WRITE, memory + spec.page, spec.page);
	spec_fill_memory(memory, 2 * spec.page, 1);
	EXPECT_EQ(clEnqueueCopyBuffer(spec.queue, one, two, 0, 0, 64, 0, NULL, NULL),
		  CL_INVALID_OPERATION);
	EXPECT_EQ(clFinish(spec.queue), CL_SUCCESS);
	EXPECT(spec_memory_is(memory, 2 * spec.page, 1));
}

static const struct forbidden_flags {
	const char *name;
	cl_mem_flags flags;
} forbidden_flags[] = {
	{ "none", 0 },
	{ "read_only", CL_MEM_READ_ONLY },
	{ "write_only", CL_MEM_WRITE_ONLY },
	{ "host_read_only", CL_MEM_HOST_READ_ONLY },
	{ "host_write_only", CL_MEM_HOST_WRITE_ONLY },
	{ "host_no_access", CL_MEM_HOST_NO_ACCESS },
	{ "use_host_ptr", CL_MEM_USE_HOST_PTR },
};

TEST_EACH(forbidden_for_every_flag, struct forbidden_flags, forbidden_flags,
	  "R6-30 (they can't be used with imported memory objects)")
{
	unsigned char byte;
	cl_mem mem;

	need_prior_to_1_1();
	mem = spec_import_host(row->flags, spec_map_pages(1), spec.page);
	EXPECT_EQ(clEnqueueReadBuffer(spec.queue, mem, CL_TRUE, 0, 1, &byte, 0, NULL, NULL),
		  CL_INVALID_OPERATION);
}

TEST(forbidden_after_retain_and_release, "R6-30 (they can't be used with imported memory objects)")
{
	unsigned char byte = 0;
	cl_mem mem;

	need_prior_to_1_1();
	mem = spec_import_host(CL_MEM_READ_WRITE, spec_map_pages(1), spec.page);
	EXPECT_EQ(clRetainMemObject(mem), CL_SUCCESS);
	EXPECT_EQ(clReleaseMemObject(mem), CL_SUCCESS);
	EXPECT_EQ(clEnqueueWriteBuffer(spec.queue, mem, CL_TRUE, 0, 1, &byte, 0, NULL, NULL),
		  CL_INVALID_OPERATION);
}

/* The application has released the import; a sub-buffer of the import is still alive. */
TEST(forbidden_when_the_import_is_released,
     "R6-30 (they can't be used with imported memory objects)")
{
	unsigned char *memory = spec_map_pages(2), byte = 0;
	const cl_buffer_region region = { 0, spec.page };
	cl_int error;
	cl_mem mem, sub;

	need_prior_to_1_1();
	need_host();
	mem = spec.import(spec.context, CL_MEM_READ_WRITE, NULL, memory, 2 * spec.page, &error);
	EXPECT_EQ(error, CL_SUCCESS);
	sub = released_later(
		clCreateSubBuffer(mem, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &error));
	EXPECT_EQ(clReleaseMemObject(mem), CL_SUCCESS);
	EXPECT_EQ(error, CL_SUCCESS);
	EXPECT_EQ(clEnqueueReadBuffer(spec.queue, sub, CL_TRUE, 0, 1, &byte, 0, NULL, NULL),
		  CL_INVALID_OPERATION);
	expect_shared(sub, memory, spec.page);
}

/* The rule is about imports: other buffers in the context work. */
static void forbidden_expect_plain(cl_mem mem)
{
	unsigned char sent[BYTES], seen[BYTES] = { 0 };

	spec_fill_memory(sent, BYTES, 5);
	plain_write(mem, sent, BYTES);
	plain_read(mem, seen, BYTES);
	EXPECT(!memcmp(sent, seen, BYTES));
}

TEST(plain_buffers_stay_allowed, "R6-30 (they can't be used with imported memory objects)")
{
	spec_import_host(CL_MEM_READ_WRITE, spec_map_pages(1), spec.page);
	forbidden_expect_plain(plain_buffer(BYTES));
}

TEST(plain_buffers_over_imported_memory_stay_allowed,
     "R6-30 (they can't be used with imported memory objects)")
{
	unsigned char *memory = spec_map_pages(1);
	cl_int error = 1;
	cl_mem mem;

	spec_import_host(CL_MEM_READ_WRITE, memory, spec.page);
	mem = released_later(clCreateBuffer(spec.context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR,
					    spec.page, memory, &error));
	EXPECT_EQ(error, CL_SUCCESS);
	forbidden_expect_plain(mem);
}

/* A new object often has the address of the object freed last. */
static void expect_forgotten(enum shape shape)
{
	for (int i = 0; i < 50; i++) {
		struct object o;

		object_make(&o, shape, HOST_MEMORY, CL_MEM_READ_WRITE);
		undo_all();
		forbidden_expect_plain(plain_buffer(BYTES));
		undo_all();
	}
}

TEST(released_imports_are_forgotten, "R6-30 (they can't be used with imported memory objects)")
{
	expect_forgotten(BUFFER);
}

TEST(released_sub_buffers_are_forgotten, "R6-30 (they can't be used with imported memory objects)")
{
	expect_forgotten(SUB_BUFFER);
}

TEST(released_images_are_forgotten, "R6-30 (they can't be used with imported memory objects)")
{
	expect_forgotten(IMAGE);
}

TEST(released_1d_images_are_forgotten, "R6-30 (they can't be used with imported memory objects)")
{
	expect_forgotten(IMAGE_1D);
}

TEST_EACH(forbidden_dma_buf, struct call_row, call_rows.all,
	  "R6-30 (they can't be used with imported memory objects)")
{
	forbidden_expect(row, DMA_BUF_MEMORY);
}
