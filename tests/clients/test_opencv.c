/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OpenCV's external allocator of UMats: OpenCV maps a dma-buf for the host, and imports the dma-buf
 * for the device.  If the import fails, OpenCV creates an ordinary buffer.
 */
#include "client.h"

#include <unistd.h>

enum { SIZE = 640 * 480 };

static const cl_import_properties_arm dma_buf[] = { CL_IMPORT_TYPE_ARM, CL_IMPORT_TYPE_DMA_BUF_ARM,
						    0 };

/* Imports, or creates a buffer of the driver. */
static cl_mem opencv_allocate(int fd, size_t size)
{
	cl_int err;
	cl_mem mem = client.import(client.context, CL_MEM_READ_WRITE, dma_buf, &fd, size, &err);

	if (!mem)
		mem = clCreateBuffer(client.context, CL_MEM_READ_WRITE, size, NULL, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	return mem;
}

TEST(opencv_host_and_device, "OpenCV uses a matrix on the host and on the device in turns.")
{
	struct dmabuf matrix;
	cl_mem mem;

	client_open();
	client_dmabuf_create(&matrix, SIZE);
	mem = opencv_allocate(matrix.fd, SIZE);
	for (unsigned char turn = 0; turn < 20; turn++) {
		client_dmabuf_begin(&matrix);
		memset(matrix.at, turn, SIZE);
		client_dmabuf_end(&matrix);
		client_increment(mem, SIZE);
		client_dmabuf_begin(&matrix);
		EXPECT_EQ(matrix.at[0], turn + 1);
		EXPECT_EQ(matrix.at[SIZE - 1], turn + 1);
		client_dmabuf_end(&matrix);
	}
	clReleaseMemObject(mem);
	client_dmabuf_destroy(&matrix);
	client_close();
}

TEST(opencv_falls_back, "If memory is no dma-buf, OpenCV creates a buffer of the driver.")
{
	int ends[2];
	cl_mem mem;

	client_open();
	EXPECT_EQ(pipe(ends), 0);
	mem = opencv_allocate(ends[0], SIZE);
	client_increment(mem, SIZE);
	clReleaseMemObject(mem);
	close(ends[0]);
	close(ends[1]);
	client_close();
}
