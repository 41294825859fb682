/* SPDX-License-Identifier: Apache-2.0 */
/* dma-bufs whose descriptors have no write access. */
#include "dma_buf.h"
#include "kernels.h"
#include "object.h"

#define R6_36                                                                              \
	"R6-36 Flags attached to a dma_buf file handle take precedence over memory flags " \
	"supplied "                                                                        \
	"to clImportMemoryARM."

#define R6_37                                                                                     \
	"R6-37 For example, if a dma_buf allocation originally created with a read-only flag is " \
	"passed to clImportMemoryARM with the READ_WRITE flag, the more restrictive READ_ONLY "   \
	"will "                                                                                   \
	"take precedence."

TEST(read_only_descriptor, R6_36)
{
	struct dma_buf *buf = dma_buf_get_read_only(2 * spec.page);
	unsigned char *seen = spec_map_pages(2);
	cl_mem mem = spec_import(CL_MEM_READ_ONLY, coherent_dma_buf(), &buf->fd, 2 * spec.page);
	cl_mem out = plain_buffer(2 * spec.page);

	memset(seen, 0xee, 2 * spec.page);
	plain_write(out, seen, 2 * spec.page);
	kernels_copy(mem, out, 2 * spec.page);
	plain_read(out, seen, 2 * spec.page);
	EXPECT(!memcmp(seen, buf->memory, 2 * spec.page));
}

static const struct flags_row {
	const char *name;
	cl_mem_flags flags;
} writers[] = {
	{ "no_flags", 0 },
	{ "read_write", CL_MEM_READ_WRITE },
	{ "write_only", CL_MEM_WRITE_ONLY },
};

/* The import of a descriptor without write access, for writers; NULL: refused. */
static cl_mem dma_buf_import_for_writers(struct dma_buf *buf, cl_mem_flags flags)
{
	cl_int error = 1;
	cl_mem mem = released_later(spec.import(spec.context, flags, coherent_dma_buf(), &buf->fd,
						2 * spec.page, &error));

	EXPECT(mem ? error == CL_SUCCESS : error < 0);
	if (!(flags & CL_MEM_WRITE_ONLY))
		EXPECT_EQ(error, CL_SUCCESS);
	if (!mem)
		test_skip("CL_MEM_WRITE_ONLY for a read-only descriptor: refused with %d", error);
	return mem;
}

static void dma_buf_expect_zeros(const struct dma_buf *buf)
{
	for (size_t i = 0; i < 2 * spec.page; i++)
		EXPECT_BYTE(buf->memory[i], 0);
}

/* No call of the host changes the memory. */
TEST_EACH(read_only_descriptor_is_not_written_with, struct flags_row, writers, R6_36)
{
	struct dma_buf *buf = dma_buf_get_read_only(2 * spec.page);
	cl_mem mem = dma_buf_import_for_writers(buf, row->flags);
	const unsigned char ones[BYTES] = { 1, 1 };
	cl_mem plain = plain_buffer(BYTES);
	cl_int error[3];

	plain_write(plain, ones, BYTES);
	error[0] = clEnqueueWriteBuffer(spec.queue, mem, CL_TRUE, 0, BYTES, ones, 0, NULL, NULL);
	error[1] = clEnqueueFillBuffer(spec.queue, mem, ones, 1, 0, spec.page, 0, NULL, NULL);
	error[2] = clEnqueueCopyBuffer(spec.queue, plain, mem, 0, 0, BYTES, 0, NULL, NULL);
	clFinish(spec.queue);
	dma_buf_expect_zeros(buf);
	for (size_t i = 0; i < 3; i++)
		EXPECT_EXACT(error[i], CL_INVALID_OPERATION);
}

/* Neither does a kernel.  The program would end with a signal if the kernel ran on a CPU. */
TEST_EACH(read_only_descriptor_is_not_written_by_kernels_with, struct flags_row, writers, R6_37)
{
	struct dma_buf *buf = dma_buf_get_read_only(2 * spec.page);
	cl_mem mem = dma_buf_import_for_writers(buf, row->flags);

	if (device_number(CL_DEVICE_TYPE) & CL_DEVICE_TYPE_CPU)
		test_skip("a kernel on a CPU that writes read-only memory ends the program");
	kernels_try_add(mem, 2 * spec.page, 1);
	dma_buf_expect_zeros(buf);
}

/* The object's flags, and with them what OpenCL allows with the object, are those of the file. */
TEST(read_only_descriptor_beats_read_write, R6_37)
{
	struct dma_buf *buf = dma_buf_get_read_only(2 * spec.page);
	cl_mem mem = spec_import(CL_MEM_READ_WRITE, coherent_dma_buf(), &buf->fd, 2 * spec.page);
	cl_mem_flags flags = 0;
	cl_mem out = plain_buffer(2 * spec.page);

	EXPECT_EQ(clGetMemObjectInfo(mem, CL_MEM_FLAGS, sizeof(flags), &flags, NULL), CL_SUCCESS);
	EXPECT_EXACT(flags, CL_MEM_READ_ONLY);
	EXPECT_EQ(flags & (CL_MEM_READ_WRITE | CL_MEM_WRITE_ONLY | CL_MEM_READ_ONLY),
		  CL_MEM_READ_ONLY);
	kernels_copy(mem, out, 2 * spec.page);
}

/* The mapping for a writer is refused, or the bytes stay out of the dma-buf. */
TEST(read_only_descriptor_is_not_mapped_for_writing, R6_36)
{
	struct dma_buf *buf = dma_buf_get_read_only(2 * spec.page);
	cl_int error = 1;
	cl_mem mem;
	void *mapped;

	need_1_1();
	mem = spec_import(CL_MEM_READ_WRITE, coherent_dma_buf(), &buf->fd, 2 * spec.page);
	mapped = clEnqueueMapBuffer(spec.queue, mem, CL_TRUE, CL_MAP_WRITE, 0, spec.page, 0, NULL,
				    NULL, &error);
	EXPECT_EXACT(error, CL_INVALID_OPERATION);
	if (mapped)
		clEnqueueUnmapMemObject(spec.queue, mem, mapped, 0, NULL, NULL);
	clFinish(spec.queue);
	mapped = clEnqueueMapBuffer(spec.queue, mem, CL_TRUE, CL_MAP_READ, 0, spec.page, 0, NULL,
				    NULL, &error);
	EXPECT_EQ(error, CL_SUCCESS);
	EXPECT(!memcmp(mapped, buf->memory, spec.page));
	EXPECT_EQ(clEnqueueUnmapMemObject(spec.queue, mem, mapped, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(clFinish(spec.queue), CL_SUCCESS);
}

/* Clients ask for READ_WRITE in a sub-buffer of the import, too. */
TEST(sub_buffer_of_a_read_only_descriptor, R6_37)
{
	struct dma_buf *buf = dma_buf_get_read_only(2 * spec.page);
	cl_mem mem = spec_import(CL_MEM_READ_WRITE, coherent_dma_buf(), &buf->fd, 2 * spec.page);
	const cl_buffer_region region = { spec.page, spec.page };
	cl_int error = 1;

	released_later(clCreateSubBuffer(mem, CL_MEM_READ_ONLY, CL_BUFFER_CREATE_TYPE_REGION,
					 &region, &error));
	EXPECT_EQ(error, CL_SUCCESS);
	if (!spec.exact)
		return;
	released_later(clCreateSubBuffer(mem, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION,
					 &region, &error));
	EXPECT_EQ(error, CL_SUCCESS);
}
