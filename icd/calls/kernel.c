/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels: their dma-buf arguments, and the brackets of their commands. */
#include "icd/calls/command.h"
#include "icd/intercept.h"
#include "icd/objects/extensions.h"
#include "icd/objects/kernel_args.h"

/* A driver may give a kernel the address of a released kernel, whose record a queue has kept. */
cl_kernel CL_API_CALL layer_clCreateKernel(cl_program program, const char *name,
					   cl_int *errcode_ret)
{
	cl_int err = CL_SUCCESS;
	cl_kernel kernel = next.clCreateKernel(program, name, &err);

	if (is_created(kernel, err))
		kernel_args_forget(kernel);
	if (errcode_ret)
		*errcode_ret = err;
	return kernel;
}

cl_int CL_API_CALL layer_clCreateKernelsInProgram(cl_program program, cl_uint num_kernels,
						  cl_kernel *out, cl_uint *num_kernels_ret)
{
	cl_uint count = 0;
	cl_int err = next.clCreateKernelsInProgram(program, num_kernels, out, &count);

	for (cl_uint i = 0; !err && out && i < count; i++)
		kernel_args_forget(out[i]);
	if (!err && num_kernels_ret)
		*num_kernels_ret = count;
	return err;
}

/* "The arguments of the clone are those of the source." */
cl_kernel CL_API_CALL layer_clCloneKernel(cl_kernel source, cl_int *errcode_ret)
{
	cl_int err = CL_SUCCESS;
	cl_kernel kernel = next.clCloneKernel(source, &err);

	if (errcode_ret)
		*errcode_ret = err;
	if (!is_created(kernel, err))
		return kernel;
	kernel_args_forget(kernel);
	if (kernel_args_copy(source, kernel))
		return kernel;
	kernel_args_forget(kernel);
	next.clReleaseKernel(kernel);
	if (errcode_ret)
		*errcode_ret = CL_OUT_OF_HOST_MEMORY;
	return NULL;
}

cl_int CL_API_CALL layer_clReleaseKernel(cl_kernel kernel)
{
	kernel_args_release(kernel);
	return next.clReleaseKernel(kernel);
}

static APART cl_int kernel_set_arg(cl_kernel kernel, cl_uint index, size_t size, const void *value)
{
	cl_int err = next.clSetKernelArg(kernel, index, size, value);

	return err ? err : kernel_args_set(kernel, index, size, value);
}

cl_int CL_API_CALL layer_clSetKernelArg(cl_kernel kernel, cl_uint index, size_t size,
					const void *value)
{
	return memobj_live() || kernel_args_any() ? kernel_set_arg(kernel, index, size, value)
						  : next.clSetKernelArg(kernel, index, size, value);
}

/* Memory by address takes the place of a dma-buf. */
cl_int CL_API_CALL layer_clSetKernelArgSVMPointer(cl_kernel kernel, cl_uint index,
						  const void *value)
{
	cl_int err = next.clSetKernelArgSVMPointer(kernel, index, value);

	return err ? err : kernel_args_set(kernel, index, 0, NULL);
}

/* cl_intel_concurrent_dispatch: clEnqueueNDRangeKernel() with a number of work-groups. */
cl_int CL_API_CALL layer_clEnqueueNDCountKernelINTEL(cl_command_queue queue, cl_kernel kernel,
						     cl_uint work_dim, const size_t *offset,
						     const size_t *count, const size_t *local,
						     cl_uint num_wait, const cl_event *wait,
						     cl_event *event)
{
	const struct extensions *driver;
	struct access a;
	cl_int err = extensions_of_queue(queue, &driver);

	if (err)
		return err;
	if (!driver->clEnqueueNDCountKernelINTEL)
		return CL_INVALID_COMMAND_QUEUE;
	access_none(&a, num_wait, wait, event);
	err = command_begin_kernel(&a, queue, kernel);
	if (err)
		return err;
	err = driver->clEnqueueNDCountKernelINTEL(queue, kernel, work_dim, offset, count, local,
						  a.num_wait, a.wait, a.event);
	return access_end(&a, err, CL_FALSE);
}

cl_int CL_API_CALL layer_clEnqueueNativeKernel(cl_command_queue queue,
					       void(CL_CALLBACK *function)(void *), void *args,
					       size_t size, cl_uint num_mems, const cl_mem *mems,
					       const void **mem_locations, cl_uint num_wait,
					       const cl_event *wait, cl_event *event)
{
	struct access a;
	cl_int err;

	queue_bracket_close(queue); /* the host runs the kernel */
	access_none(&a, num_wait, wait, event);
	for (cl_uint i = 0; mems && memobj_live() && i < num_mems; i++)
		memobj_list_add(&a.imports, mems[i]);
	err = access_begin(&a, queue, ACCESS_BOTH);
	if (err)
		return err;
	err = next.clEnqueueNativeKernel(queue, function, args, size, num_mems, mems, mem_locations,
					 a.num_wait, a.wait, a.event);
	return access_end(&a, err, CL_FALSE);
}
