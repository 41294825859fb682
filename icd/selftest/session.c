/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/selftest/session.h"

#include <stdlib.h>
#include <string.h>

#include "icd/layer.h"
#include "util/thread.h"

static const char session_source[] =
	"__kernel void climport_selftest(volatile __global uchar *a, volatile __global uchar *b,\n"
	"	ulong at0, ulong at1, ulong at2, uint value)\n"
	"{\n"
	"	ulong at[3] = { at0, at1, at2 };\n"
	"	for (int i = 0; i < 3; i++) {\n"
	"		a[at[i]] = value;\n"
	"		a[at[i] + 1] = b[at[i]];\n"
	"		a[at[i] + 2] = b[at[i] + 3];\n"
	"	}\n"
	"}\n"
	"__kernel void climport_selftest_both(volatile __global uchar *a, volatile __global uchar "
	"*b,\n"
	"	ulong at0, ulong at1, ulong at2, uint value)\n"
	"{\n"
	"	ulong at[3] = { at0, at1, at2 };\n"
	"	for (int i = 0; i < 3; i++) {\n"
	"		a[at[i]] = value;\n"
	"		b[at[i] + 1] = value;\n"
	"	}\n"
	"}\n"
	"__kernel void climport_selftest_write(volatile __global uchar *a, uint value)\n"
	"{\n"
	"	a[0] = value;\n"
	"}\n"
	"__kernel void climport_selftest_read(volatile __global uchar *b)\n"
	"{\n"
	"	b[1] = b[0];\n"
	"	b[2] = b[3];\n"
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

bool selftest_needs_compiler(cl_device_id device)
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

void session_free(struct session *s)
{
	if (s)
		session_end(s);
	free(s);
}

cl_int session_build_source(struct session *s, const char *text, const char *options)
{
	cl_int err;

	s->program = created_or_null(
		next.clCreateProgramWithSource(s->context, 1, &text, NULL, &err), &err);
	if (!err)
		err = next.clBuildProgram(s->program, s->num_devices, s->devices, options, NULL,
					  NULL);
	return err;
}

cl_int session_use_device(struct session *s, cl_device_id device)
{
	cl_int err;

	if (s->queue)
		next.clReleaseCommandQueue(s->queue);
	s->queue = created_or_null(next.clCreateCommandQueue(s->context, device, 0, &err), &err);
	return err;
}

static cl_int session_create_context(struct session *s, const cl_device_id *devices,
				     cl_uint num_devices)
{
	cl_int err;

	memset(s, 0, sizeof(*s));
	s->devices = devices;
	s->num_devices = num_devices;
	s->context = created_or_null(
		next.clCreateContext(NULL, num_devices, devices, NULL, NULL, &err), &err);
	return err;
}

cl_int session_begin(struct session *s, const cl_device_id *devices, cl_uint num_devices,
		     bool native)
{
	cl_int err = session_create_context(s, devices, num_devices);

	s->native = native;
	if (!err)
		err = session_use_device(s, devices[0]);
	if (!err && !native)
		err = session_build_source(s, session_source, "");
	return err;
}

cl_int session_enqueue(struct session *s, const char *name, const struct session_arg *args,
		       cl_uint count)
{
	const size_t one = 1;
	cl_int err;
	cl_kernel kernel = created_or_null(next.clCreateKernel(s->program, name, &err), &err);

	if (err)
		return err;
	for (cl_uint i = 0; i < count && !err; i++)
		err = next.clSetKernelArg(kernel, i, args[i].size, args[i].value);
	if (!err)
		err = next.clEnqueueNDRangeKernel(s->queue, kernel, 1, NULL, &one, &one, 0, NULL,
						  NULL);
	next.clReleaseKernel(kernel);
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
