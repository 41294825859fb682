/* SPDX-License-Identifier: Apache-2.0 */
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <CL/cl_ext.h>
#include <stdio.h>
#include <stdlib.h>

int main(void)
{
	const char *source = "kernel void add_one(global int *a) { a[get_global_id(0)]++; }";
	const size_t count = 1024, size = count * sizeof(int);
	int *numbers = (int *)aligned_alloc(4096, size); /* any memory of yours */
	__typeof__(&clImportMemoryARM) import_memory;
	cl_platform_id platform = NULL;
	cl_device_id device = NULL;
	cl_int err;

	clGetPlatformIDs(1, &platform, NULL);
	clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL);
	cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, &err);
	cl_command_queue queue = clCreateCommandQueueWithProperties(context, device, NULL, &err);
	cl_program program = clCreateProgramWithSource(context, 1, &source, NULL, &err);
	clBuildProgram(program, 1, &device, NULL, NULL, NULL);
	cl_kernel kernel = clCreateKernel(program, "add_one", &err);

	*(void **)&import_memory =
		clGetExtensionFunctionAddressForPlatform(platform, "clImportMemoryARM");
	if (!import_memory) {
		puts("no clImportMemoryARM: see climport info, and start this with climport run");
		return 1;
	}
	cl_mem mem = import_memory(context, CL_MEM_READ_WRITE, NULL, numbers, size, &err);
	for (size_t i = 0; i < count; i++)
		numbers[i] = (int)i;
	clSetKernelArg(kernel, 0, sizeof(mem), &mem);
	clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &count, NULL, 0, NULL, NULL);
	clFinish(queue);
	printf("error %d, numbers[41] is %d\n", err, numbers[41]); /* 0 and 42, without a copy */
	return err || numbers[41] != 42;
}
