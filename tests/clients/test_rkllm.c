/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RKLLM, and older versions of Compute Library: dlopen("libOpenCL.so"), and every function by
 * dlsym(), clImportMemoryARM too.
 */
#include "client.h"

#include <dlfcn.h>

enum { TENSOR = 4096 };

TEST(rkllm_symbols, "A program that knows libOpenCL.so alone finds clImportMemoryARM there.")
{
	const cl_import_properties_arm host[] = { CL_IMPORT_TYPE_ARM, CL_IMPORT_TYPE_HOST_ARM, 0 };
	void *library = dlopen(OPENCL_WITH_SYMBOL, RTLD_NOW | RTLD_LOCAL);
	unsigned char *at = aligned_alloc(PAGE, TENSOR);
	cl_int err;
	cl_mem mem;

	EXPECT(library);
	client_open();
	EXPECT(dlsym(library, "clGetPlatformIDs") == (void *)clGetPlatformIDs);
	client.import = (__typeof__(client.import))dlsym(library, "clImportMemoryARM");
	EXPECT(client.import);
	memset(at, 1, TENSOR);
	mem = client.import(client.context, CL_MEM_READ_WRITE, host, at, TENSOR, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	client_increment(mem, TENSOR);
	EXPECT_EQ(at[TENSOR - 1], 2);
	clReleaseMemObject(mem);
	free(at);
	client_close();
}
