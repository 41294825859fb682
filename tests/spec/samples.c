/* SPDX-License-Identifier: Apache-2.0 */
/* The section Sample Code, word for word. */
#include "dma_buf.h"
#include "kernels.h"

enum { WIDTH = 1024, HEIGHT = 512 };

TEST(sample_for_host_memory, "R6-61 // Use <buffer> as you would any other cl_mem buffer")
{
	cl_int error = CL_SUCCESS;
	char *buffer = malloc(WIDTH * HEIGHT * 2);
	cl_mem mem;

	need_host();
	spec_undo_later(free, buffer);
	mem = released_later(spec.import(spec.context, CL_MEM_READ_WRITE, NULL, buffer,
					 WIDTH * HEIGHT * 2, &error));
	/* Where the system is not coherent, malloc has to give aligned memory. */
	if (error && (uintptr_t)buffer % host_alignment() && !spec.exact)
		test_skip("malloc gave no multiple of %zu bytes: refused with %d", host_alignment(),
			  error);
	EXPECT_EQ(error, CL_SUCCESS);
	expect_shared(mem, (unsigned char *)buffer, WIDTH * HEIGHT * 2);
}

TEST(sample_for_host_memory_with_the_type, "R6-60 // The type CL_IMPORT_TYPE_HOST_ARM can be "
					   "omitted as it is the default")
{
	const cl_import_properties_arm list[] = { CL_IMPORT_TYPE_ARM, CL_IMPORT_TYPE_HOST_ARM, 0 };
	unsigned char *memory = spec_map_pages(WIDTH * HEIGHT * 2 / spec.page);

	need_host();
	expect_shared(spec_import(CL_MEM_READ_WRITE, list, memory, WIDTH * HEIGHT * 2), memory,
		      WIDTH * HEIGHT * 2);
	expect_shared(spec_import(CL_MEM_READ_WRITE, NULL, memory, WIDTH * HEIGHT * 2), memory,
		      WIDTH * HEIGHT * 2);
}

TEST(sample_for_dma_buf, "R6-59 // Create buffer to be used as a hardware texture with graphics "
			 "APIs (can also include video/camera use flags here)")
{
	struct dma_buf *buf = dma_buf_get(WIDTH * HEIGHT * 2);

	expect_shared(
		spec_import(CL_MEM_READ_WRITE, coherent_dma_buf(), &buf->fd, WIDTH * HEIGHT * 2),
		buf->memory, WIDTH * HEIGHT * 2);
}
