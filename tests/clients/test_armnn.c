/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arm NN, ClImportTensorHandle: sizes are rounded up to the cache line, a trial import comes first,
 * and the host has no access.
 */
#include "client.h"

#include <fcntl.h>
#include <unistd.h>

enum { TENSOR = 1000 };

static const cl_import_properties_arm consistent[] = {
	CL_IMPORT_TYPE_ARM, CL_IMPORT_TYPE_DMA_BUF_ARM,
	CL_IMPORT_DMA_BUF_DATA_CONSISTENCY_WITH_HOST_ARM, CL_TRUE, 0
};

static size_t rounded_up(size_t size)
{
	const size_t line = client_cache_line();

	return size + (line - size % line);
}

/* ClImport(): imports, checks the error, and releases. */
static bool can_be_imported(const cl_import_properties_arm *properties, cl_mem_flags flags,
			    void *memory, size_t size)
{
	cl_int err = 1;
	cl_mem mem = client.import(client.context, flags, properties, memory, size, &err);

	EXPECT_EQ(mem != NULL, err == CL_SUCCESS);
	return mem && clReleaseMemObject(mem) == CL_SUCCESS;
}

static const cl_import_properties_arm host[] = { CL_IMPORT_TYPE_ARM, CL_IMPORT_TYPE_HOST_ARM, 0 };

/* A trial, and the import of TENSOR bytes at @at, with their size rounded up. */
static void armnn_expect_import(unsigned char *at, size_t size)
{
	cl_int err;
	cl_mem mem;

	memset(at, 8, size);
	mem = client.import(client.context, CL_MEM_READ_WRITE, host, at, size, &err);
	client_expect_import(err, at);
	clReleaseMemObject(mem);
	mem = client.import(client.context, CL_MEM_READ_WRITE, host, at, size, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	client_increment(mem, TENSOR);
	EXPECT_EQ(at[TENSOR - 1], 9);
	EXPECT_EQ(at[TENSOR], 8);
	clReleaseMemObject(mem);
}

TEST(armnn_malloc, "Arm NN imports a malloc'ed tensor with its size rounded up.")
{
	unsigned char *at;
	size_t size;

	client_open();
	size = rounded_up(TENSOR);
	at = malloc(size);
	armnn_expect_import(at, size);
	free(at);
	client_close();
}

TEST(armnn_aligned, "Arm NN imports a tensor that is aligned as the device's parts of buffers are.")
{
	unsigned char *block;
	size_t size;

	client_open();
	size = rounded_up(TENSOR);
	block = malloc(size + 2 * client_base_alignment());
	armnn_expect_import(
		block + client_base_alignment() - (uintptr_t)block % client_base_alignment(), size);
	free(block);
	client_close();
}

TEST(armnn_dmabuf, "Arm NN imports a dma-buf that the host does not access.")
{
	const cl_mem_flags flags = CL_MEM_READ_WRITE | CL_MEM_HOST_NO_ACCESS;
	struct dmabuf tensor;
	size_t size;
	cl_int err;
	cl_mem mem;

	client_open();
	size = rounded_up(TENSOR);
	client_dmabuf_create(&tensor, size);
	memset(tensor.at, 1, tensor.size);
	for (int i = 0; i < 50; i++) {
		EXPECT(can_be_imported(consistent, flags, &tensor.fd, size));
		mem = client.import(client.context, flags, consistent, &tensor.fd, size, &err);
		EXPECT_EQ(err, CL_SUCCESS);
		client_increment(mem, TENSOR);
		clReleaseMemObject(mem);
	}
	EXPECT_EQ(tensor.at[TENSOR - 1], 51);
	EXPECT_EQ(tensor.at[TENSOR], 1);
	client_dmabuf_destroy(&tensor);
	client_close();
}

/* Arm NN tries to import, and falls back after an error. */
TEST(armnn_protected, "If protected memory cannot be imported, Arm NN gets an error.")
{
	const cl_import_properties_arm protected[] = { CL_IMPORT_TYPE_ARM,
						       CL_IMPORT_TYPE_DMA_BUF_ARM,
						       CL_IMPORT_TYPE_PROTECTED_ARM, CL_TRUE, 0 };
	int no_dmabuf = open("/dev/null", O_RDWR | O_CLOEXEC), closed = 999;
	struct dmabuf tensor;

	client_open();
	client_dmabuf_create(&tensor, PAGE);
	EXPECT(!can_be_imported(protected, CL_MEM_READ_WRITE | CL_MEM_HOST_NO_ACCESS, &tensor.fd,
				PAGE));
	EXPECT(!can_be_imported(consistent, CL_MEM_READ_WRITE, &no_dmabuf, PAGE));
	EXPECT(!can_be_imported(consistent, CL_MEM_READ_WRITE, &closed, PAGE));
	EXPECT(!can_be_imported(consistent, CL_MEM_READ_WRITE, &tensor.fd, 2 * PAGE));
	EXPECT(can_be_imported(consistent, CL_MEM_READ_WRITE, &tensor.fd, PAGE));
	client_dmabuf_destroy(&tensor);
	close(no_dmabuf);
	client_close();
}
