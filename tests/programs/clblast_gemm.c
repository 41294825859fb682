/* SPDX-License-Identifier: Apache-2.0 */
/* CLBlast multiplies two matrices of small whole numbers; the result must be exact. */
#include <clblast_c.h>
#include <stdio.h>

enum { N = 96 };

static float a[N * N], b[N * N], c[N * N];

static float gemm_expected_cell(int row, int column)
{
	float sum = 0;

	for (int i = 0; i < N; i++)
		sum += a[row * N + i] * b[i * N + column];
	return sum;
}

static cl_mem gemm_create_buffer(cl_context context, float *from)
{
	return clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, sizeof(a), from, NULL);
}

int main(void)
{
	cl_platform_id platform;
	cl_device_id device;
	cl_context context;
	cl_command_queue queue;
	cl_mem on_device[3];
	int status, bad = 0;

	for (int i = 0; i < N * N; i++) {
		a[i] = (float)(i % 7);
		b[i] = (float)(i % 5);
	}
	if (clGetPlatformIDs(1, &platform, NULL) ||
	    clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL))
		return puts("no device"), 1;
	context = clCreateContext(NULL, 1, &device, NULL, NULL, NULL);
	queue = clCreateCommandQueueWithProperties(context, device, NULL, NULL);
	on_device[0] = gemm_create_buffer(context, a);
	on_device[1] = gemm_create_buffer(context, b);
	on_device[2] = gemm_create_buffer(context, c);
	status = (int)CLBlastSgemm(CLBlastLayoutRowMajor, CLBlastTransposeNo, CLBlastTransposeNo, N,
				   N, N, 1, on_device[0], 0, N, on_device[1], 0, N, 0, on_device[2],
				   0, N, &queue, NULL);
	clEnqueueReadBuffer(queue, on_device[2], CL_TRUE, 0, sizeof(c), c, 0, NULL, NULL);
	for (int i = 0; i < N * N; i++)
		bad += c[i] != gemm_expected_cell(i / N, i % N);
	printf("status %d, %d wrong of %d, %g\n", status, bad, N * N, (double)c[N * N - 1]);
	CLBlastClearCache();
	for (int i = 0; i < 3; i++)
		clReleaseMemObject(on_device[i]);
	clReleaseCommandQueue(queue);
	clReleaseContext(context);
	return status || bad;
}
