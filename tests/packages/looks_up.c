/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that knows libOpenCL.so alone, and finds every function by dlsym(), clImportMemoryARM too.
 * Exit status 0 if the device imports memory, 1 without the symbol.
 */
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <CL/cl_ext.h>
#include <dlfcn.h>

#define LOOK_UP(function) __typeof__(&(function)) p_##function = dlsym(library, #function)

int main(void)
{
	static char memory[8192];
	void *library = dlopen("libOpenCL.so", RTLD_NOW | RTLD_LOCAL);
	LOOK_UP(clGetPlatformIDs);
	LOOK_UP(clGetDeviceIDs);
	LOOK_UP(clCreateContext);
	LOOK_UP(clReleaseMemObject);
	LOOK_UP(clImportMemoryARM);
	cl_platform_id platform;
	cl_device_id device;
	cl_context context;
	cl_int err;

	if (!library || !p_clGetPlatformIDs || !p_clImportMemoryARM)
		return 1;
	if (p_clGetPlatformIDs(1, &platform, NULL) ||
	    p_clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL))
		return 2;
	context = p_clCreateContext(NULL, 1, &device, NULL, NULL, &err);
	return !context ||
	       p_clReleaseMemObject(p_clImportMemoryARM(context, CL_MEM_READ_WRITE, NULL, memory,
							sizeof(memory), &err)) ||
	       err;
}
