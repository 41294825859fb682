/* SPDX-License-Identifier: Apache-2.0 */
/* From version 1.1.0 on, the sixteen calls work.  The tests compare the transferred bytes. */
#include "calls.h"
#include "kernels.h"

static void expect_event(cl_event event)
{
	EXPECT(event != NULL);
	EXPECT_EQ(clWaitForEvents(1, &event), CL_SUCCESS);
	EXPECT_EQ(clReleaseEvent(event), CL_SUCCESS);
}

static void expect_allowed(const struct call_row *row, enum memory_type type)
{
	struct object o;
	struct call c;

	need_1_1();
	object_make(&o, row->shape, type, CL_MEM_READ_WRITE);
	call_prepare(&c, row, &o);
	EXPECT_EQ(row->run(&c), CL_SUCCESS);
	EXPECT_EQ(clFinish(spec.queue), CL_SUCCESS);
	expect_event(c.event);
	if (row->role == SOURCE) {
		EXPECT(call_other_is(&c, row, OBJECT_SEED));
		EXPECT(object_is(&o, OBJECT_SEED));
	} else {
		EXPECT(object_holds(&o, c.host));
	}
	EXPECT(object_padding_is_intact(&o));
}

TEST_EACH_AS(allowed_map_buffer_rows, "allowed", struct call_row, call_rows.map_buffer,
	     "R12-20:clEnqueueMapBuffer Prior to version 1.1.0, CL_INVALID_OPERATION when an "
	     "imported memory object has been passed to one of the following API functions: "
	     "clEnqueueMapBuffer")
{
	expect_allowed(row, HOST_MEMORY);
}

TEST_EACH_AS(allowed_map_image_rows, "allowed", struct call_row, call_rows.map_image,
	     "R12-20:clEnqueueMapImage Prior to version 1.1.0, CL_INVALID_OPERATION when an "
	     "imported memory object has been passed to one of the following API functions: "
	     "clEnqueueMapImage")
{
	expect_allowed(row, HOST_MEMORY);
}

TEST_EACH_AS(allowed_unmap_mem_object_rows, "allowed", struct call_row, call_rows.unmap_mem_object,
	     "R12-20:clEnqueueUnmapMemObject Prior to version 1.1.0, CL_INVALID_OPERATION when an "
	     "imported memory object has been passed to one of the following API functions: "
	     "clEnqueueUnmapMemObject")
{
	expect_allowed(row, HOST_MEMORY);
}

TEST_EACH_AS(allowed_read_image_rows, "allowed", struct call_row, call_rows.read_image,
	     "R12-20:clEnqueueReadImage Prior to version 1.1.0, CL_INVALID_OPERATION when an "
	     "imported memory object has been passed to one of the following API functions: "
	     "clEnqueueReadImage")
{
	expect_allowed(row, HOST_MEMORY);
}

TEST_EACH_AS(allowed_write_image_rows, "allowed", struct call_row, call_rows.write_image,
	     "R12-20:clEnqueueWriteImage Prior to version 1.1.0, CL_INVALID_OPERATION when an "
	     "imported memory object has been passed to one of the following API functions: "
	     "clEnqueueWriteImage")
{
	expect_allowed(row, HOST_MEMORY);
}

TEST_EACH_AS(allowed_read_buffer_rows, "allowed", struct call_row, call_rows.read_buffer,
	     "R12-20:clEnqueueReadBuffer Prior to version 1.1.0, CL_INVALID_OPERATION when an "
	     "imported memory object has been passed to one of the following API functions: "
	     "clEnqueueReadBuffer")
{
	expect_allowed(row, HOST_MEMORY);
}

TEST_EACH_AS(allowed_read_buffer_rect_rows, "allowed", struct call_row, call_rows.read_buffer_rect,
	     "R12-20:clEnqueueReadBufferRect Prior to version 1.1.0, CL_INVALID_OPERATION when an "
	     "imported memory object has been passed to one of the following API functions: "
	     "clEnqueueReadBufferRect")
{
	expect_allowed(row, HOST_MEMORY);
}

TEST_EACH_AS(allowed_write_buffer_rows, "allowed", struct call_row, call_rows.write_buffer,
	     "R12-20:clEnqueueWriteBuffer Prior to version 1.1.0, CL_INVALID_OPERATION when an "
	     "imported memory object has been passed to one of the following API functions: "
	     "clEnqueueWriteBuffer")
{
	expect_allowed(row, HOST_MEMORY);
}

TEST_EACH_AS(allowed_write_buffer_rect_rows, "allowed", struct call_row,
	     call_rows.write_buffer_rect,
	     "R12-20:clEnqueueWriteBufferRect Prior to version 1.1.0, CL_INVALID_OPERATION when an "
	     "imported memory object has been passed to one of the following API functions: "
	     "clEnqueueWriteBufferRect")
{
	expect_allowed(row, HOST_MEMORY);
}

TEST_EACH_AS(allowed_copy_buffer_rows, "allowed", struct call_row, call_rows.copy_buffer,
	     "R12-20:clEnqueueCopyBuffer Prior to version 1.1.0, CL_INVALID_OPERATION when an "
	     "imported memory object has been passed to one of the following API functions: "
	     "clEnqueueCopyBuffer")
{
	expect_allowed(row, HOST_MEMORY);
}

TEST_EACH_AS(allowed_copy_buffer_rect_rows, "allowed", struct call_row, call_rows.copy_buffer_rect,
	     "R12-20:clEnqueueCopyBufferRect Prior to version 1.1.0, CL_INVALID_OPERATION when an "
	     "imported memory object has been passed to one of the following API functions: "
	     "clEnqueueCopyBufferRect")
{
	expect_allowed(row, HOST_MEMORY);
}

TEST_EACH_AS(allowed_copy_buffer_to_image_rows, "allowed", struct call_row,
	     call_rows.copy_buffer_to_image,
	     "R12-20:clEnqueueCopyBufferToImage Prior to version 1.1.0, CL_INVALID_OPERATION when "
	     "an imported memory object has been passed to one of the following API functions: "
	     "clEnqueueCopyBufferToImage")
{
	expect_allowed(row, HOST_MEMORY);
}

TEST_EACH_AS(allowed_copy_image_to_buffer_rows, "allowed", struct call_row,
	     call_rows.copy_image_to_buffer,
	     "R12-20:clEnqueueCopyImageToBuffer Prior to version 1.1.0, CL_INVALID_OPERATION when "
	     "an imported memory object has been passed to one of the following API functions: "
	     "clEnqueueCopyImageToBuffer")
{
	expect_allowed(row, HOST_MEMORY);
}

TEST_EACH_AS(allowed_copy_image_rows, "allowed", struct call_row, call_rows.copy_image,
	     "R12-20:clEnqueueCopyImage Prior to version 1.1.0, CL_INVALID_OPERATION when an "
	     "imported memory object has been passed to one of the following API functions: "
	     "clEnqueueCopyImage")
{
	expect_allowed(row, HOST_MEMORY);
}

TEST_EACH_AS(allowed_fill_buffer_rows, "allowed", struct call_row, call_rows.fill_buffer,
	     "R12-20:clEnqueueFillBuffer Prior to version 1.1.0, CL_INVALID_OPERATION when an "
	     "imported memory object has been passed to one of the following API functions: "
	     "clEnqueueFillBuffer")
{
	expect_allowed(row, HOST_MEMORY);
}

TEST_EACH_AS(allowed_fill_image_rows, "allowed", struct call_row, call_rows.fill_image,
	     "R12-20:clEnqueueFillImage Prior to version 1.1.0, CL_INVALID_OPERATION when an "
	     "imported memory object has been passed to one of the following API functions: "
	     "clEnqueueFillImage")
{
	expect_allowed(row, HOST_MEMORY);
}

/* Bytes written by a call are visible to other calls, and in the host's memory. */
TEST(allowed_on_host_memory, "R12-35 Version 1.1.0 of cl_arm_import_memory adds support for host "
			     "access to imported memory for all memory types.")
{
	unsigned char *memory = spec_map_pages(2), *seen = spec_map_pages(2);
	size_t size = 2 * spec.page;
	cl_mem mem;

	need_1_1();
	mem = spec_import_host(CL_MEM_READ_WRITE, memory, size);
	spec_fill_memory(seen, size, 4);
	plain_write(mem, seen, size);
	EXPECT(spec_memory_is(memory, size, 4));
	spec_fill_memory(memory, size, 9);
	plain_read(mem, seen, size);
	EXPECT(spec_memory_is(seen, size, 9));
}

TEST_EACH(allowed_dma_buf, struct call_row, call_rows.all,
	  "R12-35 Version 1.1.0 of cl_arm_import_memory adds support for host access to imported "
	  "memory for all memory types.")
{
	expect_allowed(row, DMA_BUF_MEMORY);
}
