/* SPDX-License-Identifier: Apache-2.0 */
#include "program.h"

#include <sys/wait.h>

void *program_loader;
cl_device_id program_devices[PROGRAM_DEVICES];
cl_uint program_device_count;

void program_find_devices(void)
{
	cl_platform_id platform;

	program_loader = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
	CHECK(program_loader);
	CHECK(!CL(clGetPlatformIDs)(1, &platform, NULL));
	CHECK(!CL(clGetDeviceIDs)(platform, CL_DEVICE_TYPE_ALL, PROGRAM_DEVICES, program_devices,
				  &program_device_count));
}

cl_context program_create_context(void)
{
	cl_context context;

	program_find_devices();
	context =
		CL(clCreateContext)(NULL, program_device_count, program_devices, NULL, NULL, NULL);
	CHECK(context);
	return context;
}

size_t program_query_size(cl_mem mem, cl_mem_info name)
{
	size_t value = 0;

	CHECK(!CL(clGetMemObjectInfo)(mem, name, sizeof(value), &value, NULL));
	return value;
}

void program_increment(cl_context context, cl_mem mem)
{
	const char *source = "kernel void increment(global uchar *a) { a[0]++; }";
	const size_t one = 1;
	cl_int err;
	cl_command_queue queue =
		CL(clCreateCommandQueueWithProperties)(context, program_devices[0], NULL, &err);
	cl_program program = CL(clCreateProgramWithSource)(context, 1, &source, NULL, &err);
	cl_kernel kernel;

	CHECK(!CL(clBuildProgram)(program, 1, program_devices, NULL, NULL, NULL));
	kernel = CL(clCreateKernel)(program, "increment", &err);
	CHECK(!CL(clSetKernelArg)(kernel, 0, sizeof(mem), &mem));
	CHECK(!CL(clEnqueueNDRangeKernel)(queue, kernel, 1, NULL, &one, NULL, 0, NULL, NULL));
	CHECK(!CL(clFinish)(queue));
	CL(clReleaseKernel)(kernel);
	CL(clReleaseProgram)(program);
	CL(clReleaseCommandQueue)(queue);
}

void program_expect_works_in(const char *environment, void (*program)(void), bool layer)
{
	int status = -1;
	pid_t child;

	fflush(stdout);
	child = fork();
	if (!child) {
		if (environment)
			putenv((char *)environment);
		setenv("OCL_ICD_VENDORS", STUB_VENDORS, 1);
		setenv("CLIMPORT_PROBE", "here", 1); /* the fakes are in this process */
		unsetenv("OPENCL_LAYERS");
		if (layer)
			setenv("OPENCL_LAYERS", LAYER_PATH, 1);
		alarm(TEST_HANG_S);
		program();
		fflush(stdout);
		_exit(0);
	}
	EXPECT(waitpid(child, &status, 0) == child);
	EXPECT_EQ(status, 0);
}

void program_expect_works(void (*program)(void), bool layer)
{
	program_expect_works_in(NULL, program, layer);
}
