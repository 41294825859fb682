/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compiles the demonstration's kernel, for a picture of the demonstration's size.  PoCL keeps the
 * result for the guest, where the compiler would take many times as long.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "edge.h"
#include "session.h"

int main(int argc, char **argv)
{
	unsigned int width = 640, height = 360;
	const cl_uint pitch = 0;
	struct session cl;
	cl_kernel kernel;
	cl_mem mem;
	size_t global[2], local[2];

	session_program = "edge_compile";
	for (int i = 1; i + 1 < argc; i += 2)
		if (!strcmp(argv[i], "--size") &&
		    sscanf(argv[i + 1], "%ux%u", &width, &height) != 2)
			session_fail("--size WIDTHxHEIGHT, not \"%s\"", argv[i + 1]);
	session_open(&cl, NULL);
	kernel = session_kernel(&cl, edge_source, "edge");
	mem = session_buffer(&cl, CL_MEM_READ_WRITE, 4 * (size_t)width * height, NULL);
	clSetKernelArg(kernel, 0, sizeof(mem), &mem);
	clSetKernelArg(kernel, 1, sizeof(pitch), &pitch);
	clSetKernelArg(kernel, 2, sizeof(mem), &mem);
	global[0] = width;
	global[1] = height;
	edge_local_size(width, local);
	session_check(
		clEnqueueNDRangeKernel(cl.queue, kernel, 2, NULL, global, local, 0, NULL, NULL),
		"clEnqueueNDRangeKernel");
	session_check(clFinish(cl.queue), "clFinish");
	session_release(mem);
	clReleaseKernel(kernel);
	session_close(&cl);
	return 0;
}
