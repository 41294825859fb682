/* SPDX-License-Identifier: Apache-2.0 */
/* clFFT transforms and transforms back; the numbers must be equal but for rounding. */
#include <clFFT.h>
#include <math.h>
#include <stdio.h>

enum { N = 256 };

static float before[2 * N], after[2 * N];

int main(void)
{
	const size_t length = N;
	cl_platform_id platform;
	cl_device_id device;
	cl_context context;
	cl_command_queue queue;
	cl_mem data;
	clfftSetupData setup;
	clfftPlanHandle plan;
	int status, bad = 0;

	for (int i = 0; i < 2 * N; i++)
		before[i] = (float)(i % 11);
	if (clGetPlatformIDs(1, &platform, NULL) ||
	    clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL))
		return puts("no device"), 1;
	context = clCreateContext(NULL, 1, &device, NULL, NULL, NULL);
	queue = clCreateCommandQueue(context, device, 0, NULL);
	data = clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, sizeof(before), before, NULL);
	status = (int)clfftInitSetupData(&setup);
	status |= (int)clfftSetup(&setup);
	status |= (int)clfftCreateDefaultPlan(&plan, context, CLFFT_1D, &length);
	status |= (int)clfftBakePlan(plan, 1, &queue, NULL, NULL);
	status |= (int)clfftEnqueueTransform(plan, CLFFT_FORWARD, 1, &queue, 0, NULL, NULL, &data,
					     NULL, NULL);
	status |= (int)clfftEnqueueTransform(plan, CLFFT_BACKWARD, 1, &queue, 0, NULL, NULL, &data,
					     NULL, NULL);
	clEnqueueReadBuffer(queue, data, CL_TRUE, 0, sizeof(after), after, 0, NULL, NULL);
	for (int i = 0; i < 2 * N; i++)
		bad += fabsf(after[i] - before[i]) > 1e-3f;
	printf("status %d, %d wrong of %d\n", status, bad, 2 * N);
	clfftDestroyPlan(&plan);
	clfftTeardown();
	clReleaseMemObject(data);
	clReleaseCommandQueue(queue);
	clReleaseContext(context);
	return status || bad;
}
