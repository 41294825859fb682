/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/selftest/session.h"

#include "icd/layer.h"
#include "util/thread.h"

static const char session_source[] =
	"__kernel void climport_selftest(volatile __global uchar *a, volatile __global uchar *b,\n"
	"	ulong4 at)\n"
	"{\n"
	"	a[at.y] = b[at.x];\n"
	"	a[at.z] = b[at.y];\n"
	"}\n"
	"__kernel void climport_selftest_address(__global ulong *out, __global uchar *a)\n"
	"{\n"
	"	out[0] = (ulong)a;\n"
	"}\n";

bool selftest_is_transient(cl_int err)
{
	return err == CL_OUT_OF_HOST_MEMORY || err == CL_OUT_OF_RESOURCES ||
	       err == CL_MEM_OBJECT_ALLOCATION_FAILURE || err == CL_DEVICE_NOT_AVAILABLE;
}

/* Whether a device runs no native kernels. */
static bool session_needs_compiler(cl_device_id device)
{
	cl_device_exec_capabilities can = 0;

	next.clGetDeviceInfo(device, CL_DEVICE_EXECUTION_CAPABILITIES, sizeof(can), &can, NULL);
	return !(can & CL_EXEC_NATIVE_KERNEL) || !next.clEnqueueNativeKernel;
}

void session_end(struct session *s)
{
	THREAD_NO_CANCEL();

	if (s->program)
		next.clReleaseProgram(s->program);
	if (s->queue)
		next.clReleaseCommandQueue(s->queue);
	if (s->context)
		next.clReleaseContext(s->context);
}

cl_int session_use_device(struct session *s, cl_device_id device)
{
	cl_int err;

	if (s->queue)
		next.clReleaseCommandQueue(s->queue);
	s->queue = created_or_null(next.clCreateCommandQueue(s->context, device, 0, &err), &err);
	return err;
}

cl_int session_begin_queue(struct session *s, const cl_device_id *devices, cl_uint num_devices)
{
	cl_int err;

	*s = (struct session){ .devices = devices, .num_devices = num_devices };
	s->context = created_or_null(
		next.clCreateContext(NULL, num_devices, devices, NULL, NULL, &err), &err);
	return err ? err : session_use_device(s, devices[0]);
}

cl_int session_build(struct session *s, const char *source, const char *kernel)
{
	cl_int err;

	s->kernel = kernel;
	s->program = created_or_null(
		next.clCreateProgramWithSource(s->context, 1, &source, NULL, &err), &err);
	return err ? err
		   : next.clBuildProgram(s->program, s->num_devices, s->devices, "", NULL, NULL);
}

cl_int session_begin(struct session *s, const cl_device_id *devices, cl_uint num_devices)
{
	const cl_int err = session_begin_queue(s, devices, num_devices);

	for (cl_uint i = 0; i < num_devices && !err; i++)
		if (session_needs_compiler(devices[i]))
			return session_build(s, session_source, "climport_selftest");
	return err;
}

cl_int session_enqueue(struct session *s, cl_kernel kernel, const struct session_arg *args,
		       cl_uint count)
{
	const size_t one = 1;
	cl_int err = CL_SUCCESS;

	for (cl_uint i = 0; i < count && !err; i++)
		err = next.clSetKernelArg(kernel, i, args[i].size, args[i].value);
	if (!err)
		err = next.clEnqueueNDRangeKernel(s->queue, kernel, 1, NULL, &one, &one, 0, NULL,
						  NULL);
	return err;
}

enum tested session_judge(cl_int result)
{
	if (result == 1)
		return PASSED;
	if (!result)
		return FAILED;
	return selftest_is_transient(result) ? UNTESTED : BROKEN;
}
