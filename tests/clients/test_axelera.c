/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Axelera's Voyager: the function comes without a platform.  Flags are passed on as the program has
 * them, so bits of host pointers stand with dma-bufs.  Host memory is imported if its address is a
 * multiple of 64.  After an error the program creates an ordinary buffer.
 */
#include "client.h"

#include <unistd.h>

enum { NV12 = 64 * 48 * 3 / 2, HOST_ALIGN = 64 };

static const cl_import_properties_arm dma_buf[] = { CL_IMPORT_TYPE_ARM, CL_IMPORT_TYPE_DMA_BUF_ARM,
						    0 };

/* The first versions asked without a platform. */
static void axelera_open(void)
{
	client_open();
	EXPECT(client_platform_has("cl_arm_import_memory"));
	client.import =
		(__typeof__(client.import))clGetExtensionFunctionAddress("clImportMemoryARM");
	EXPECT(client.import);
}

static cl_mem axelera_import(int *fd, cl_mem_flags flags, bool *imported)
{
	cl_int err;
	cl_mem mem = client.import(client.context, flags, dma_buf, fd, NV12, &err);

	*imported = mem;
	if (!mem)
		mem = clCreateBuffer(client.context, CL_MEM_READ_WRITE, NV12, NULL, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	return mem;
}

TEST(axelera_dmabuf, "Axelera imports a dma-buf with CL_MEM_USE_HOST_PTR among the flags.")
{
	struct dmabuf frame;
	bool imported;
	cl_mem mem;

	axelera_open();
	client_dmabuf_create(&frame, NV12);
	mem = axelera_import(&frame.fd, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, &imported);
	EXPECT(imported);
	client_increment(mem, NV12);
	client_dmabuf_begin(&frame);
	EXPECT_EQ(frame.at[NV12 - 1], 1);
	client_dmabuf_end(&frame);
	clReleaseMemObject(mem);
	client_dmabuf_destroy(&frame);
	client_close();
}

TEST(axelera_khr,
     "The platform reports Khronos' extension, and has its functions, where it has Arm's.")
{
	client_edge_fn acquire, release;
	struct dmabuf frame;

	axelera_open();
	client_dmabuf_create(&frame, NV12);
	EXPECT(client_platform_has("cl_khr_external_memory"));
	EXPECT(client_platform_has("cl_khr_external_memory_dma_buf"));
	client_find_edges(&acquire, &release);
	client_dmabuf_destroy(&frame);
	client_close();
}

TEST(axelera_falls_back,
     "With CL_MEM_ALLOC_HOST_PTR among the flags Axelera gets an error, and uses a buffer.")
{
	struct dmabuf frame;
	bool imported;
	cl_mem mem;

	axelera_open();
	client_dmabuf_create(&frame, NV12);
	mem = axelera_import(&frame.fd, CL_MEM_READ_ONLY | CL_MEM_ALLOC_HOST_PTR, &imported);
	EXPECT(!imported);
	client_increment(mem, NV12);
	clReleaseMemObject(mem);
	client_dmabuf_destroy(&frame);
	client_close();
}

TEST(axelera_host, "Axelera imports host memory at a multiple of 64 bytes, for reading.")
{
	const cl_import_properties_arm host[] = { CL_IMPORT_TYPE_ARM, CL_IMPORT_TYPE_HOST_ARM, 0 };
	unsigned char *at = aligned_alloc(HOST_ALIGN, NV12);
	cl_int err;
	cl_mem mem;

	axelera_open();
	mem = client.import(client.context, CL_MEM_READ_ONLY, host, at, NV12, &err);
	client_expect_import(err, at);
	EXPECT(mem);
	clReleaseMemObject(mem);
	free(at);
	client_close();
}
