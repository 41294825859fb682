/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels with their arguments, and launches, which copy the arguments. */
#include "internal.h"

#include <stdio.h>

struct kernel {
	struct object base;
	struct program *program;
	const struct signature *signature; /* in the program */
	struct arg *arg;
	bool is_launched;
};

static struct kernel *stub_kernel_create(struct program *program, const struct signature *signature)
{
	struct kernel *kernel = object_create(STUB_KERNEL);

	object_retain(program);
	kernel->program = program;
	kernel->signature = signature;
	kernel->arg = calloc(16, sizeof(*kernel->arg));
	return kernel;
}

cl_kernel CL_API_CALL stub_clCreateKernel(cl_program handle, const char *name, cl_int *errcode_ret)
{
	struct program *program = object_get(handle, STUB_PROGRAM);
	cl_int err = CALL(clCreateKernel, U(handle), U(name), U(errcode_ret));
	unsigned i = 0;

	if (!err && !program)
		err = CL_INVALID_PROGRAM;
	if (!err && !program->built)
		err = CL_INVALID_PROGRAM_EXECUTABLE;
	while (!err && i < program->num_kernels && strcmp(program->kernel[i].name, name))
		i++;
	if (!err && i == program->num_kernels)
		err = CL_INVALID_KERNEL_NAME;
	if (err)
		return creation_failed(errcode_ret, err);
	if (errcode_ret)
		*errcode_ret = CL_SUCCESS;
	return (cl_kernel)stub_kernel_create(program, &program->kernel[i]);
}

cl_int CL_API_CALL stub_clCreateKernelsInProgram(cl_program handle, cl_uint num, cl_kernel *out,
						 cl_uint *num_ret)
{
	struct program *program = object_get(handle, STUB_PROGRAM);
	cl_int err = CALL(clCreateKernelsInProgram, U(handle), U(num), U(out), U(num_ret));

	if (err)
		return err;
	if (!program)
		return CL_INVALID_PROGRAM;
	if (!program->built)
		return CL_INVALID_PROGRAM_EXECUTABLE;
	if (out && num < program->num_kernels)
		return CL_INVALID_VALUE;
	for (unsigned i = 0; out && i < program->num_kernels; i++)
		out[i] = (cl_kernel)stub_kernel_create(program, &program->kernel[i]);
	if (num_ret)
		*num_ret = program->num_kernels;
	return CL_SUCCESS;
}

cl_kernel CL_API_CALL stub_clCloneKernel(cl_kernel handle, cl_int *errcode_ret)
{
	struct kernel *from = object_get(handle, STUB_KERNEL), *kernel;
	cl_int err = CALL(clCloneKernel, U(handle), U(errcode_ret));

	if (!err && !from)
		err = CL_INVALID_KERNEL;
	if (err)
		return creation_failed(errcode_ret, err);
	kernel = stub_kernel_create(from->program, from->signature);
	memcpy(kernel->arg, from->arg, 16 * sizeof(*kernel->arg));
	if (errcode_ret)
		*errcode_ret = CL_SUCCESS;
	return (cl_kernel)kernel;
}

cl_int CL_API_CALL stub_clRetainKernel(cl_kernel handle)
{
	cl_int err = CALL(clRetainKernel, U(handle));

	if (err)
		return err;
	if (!object_get(handle, STUB_KERNEL))
		return CL_INVALID_KERNEL;
	object_retain(handle);
	return CL_SUCCESS;
}

cl_int CL_API_CALL stub_clReleaseKernel(cl_kernel handle)
{
	struct kernel *kernel = object_get(handle, STUB_KERNEL);

	cl_int err = CALL(clReleaseKernel, U(handle));

	if (err)
		return err;
	if (!kernel)
		return CL_INVALID_KERNEL;
	if (!object_release(kernel))
		return CL_SUCCESS;
	program_put(kernel->program);
	free(kernel->arg);
	object_destroy(kernel);
	return CL_SUCCESS;
}

static cl_int mem_arg(struct arg *arg, size_t size, const void *value)
{
	cl_mem handle = value ? *(const cl_mem *)value : NULL;

	if (size != sizeof(handle))
		return CL_INVALID_ARG_SIZE;
	if (handle && !object_get(handle, STUB_MEM))
		return CL_INVALID_MEM_OBJECT;
	arg->mem = (struct mem *)handle;
	arg->svm = NULL;
	arg->set = true;
	return CL_SUCCESS;
}

/* Arguments hold no references: an argument's object must be alive when a launch is created. */
cl_int CL_API_CALL stub_clSetKernelArg(cl_kernel handle, cl_uint index, size_t size,
				       const void *value)
{
	struct kernel *kernel = object_get(handle, STUB_KERNEL);
	cl_int err = CALL(clSetKernelArg, U(handle), U(index), U(size), U(value));
	struct arg *arg;

	if (err)
		return err;
	if (!kernel)
		return CL_INVALID_KERNEL;
	if (index >= kernel->signature->num_args)
		return CL_INVALID_ARG_INDEX;
	arg = &kernel->arg[index];
	if (kernel->signature->arg[index].kind == ARG_MEM)
		return mem_arg(arg, size, value);
	if (kernel->signature->arg[index].kind == ARG_LOCAL) {
		arg->size = size;
		arg->set = true;
		return value || !size ? CL_INVALID_ARG_VALUE : CL_SUCCESS;
	}
	if (size != kernel->signature->arg[index].size)
		return CL_INVALID_ARG_SIZE;
	if (!value)
		return CL_INVALID_ARG_VALUE;
	memcpy(arg->value, value, size);
	arg->size = size;
	arg->set = true;
	return CL_SUCCESS;
}

cl_int CL_API_CALL stub_clSetKernelArgSVMPointer(cl_kernel handle, cl_uint index, const void *value)
{
	const cl_int err = CALL(clSetKernelArgSVMPointer, U(handle), U(index), U(value));
	struct kernel *kernel = object_get(handle, STUB_KERNEL);

	if (err)
		return err;
	if (!kernel)
		return CL_INVALID_KERNEL;
	if (index >= kernel->signature->num_args)
		return CL_INVALID_ARG_INDEX;
	if (kernel->signature->arg[index].kind != ARG_MEM)
		return CL_INVALID_ARG_VALUE;
	kernel->arg[index].mem = NULL;
	kernel->arg[index].svm = (unsigned char *)(uintptr_t)value;
	kernel->arg[index].set = true;
	return CL_SUCCESS;
}

cl_int CL_API_CALL stub_clGetKernelInfo(cl_kernel handle, cl_kernel_info name, size_t room,
					void *out, size_t *size_ret)
{
	struct kernel *kernel = object_get(handle, STUB_KERNEL);
	cl_int err = CALL(clGetKernelInfo, U(handle), U(name), U(room), U(out), U(size_ret));
	cl_uint number;

	if (err)
		return err;
	if (!kernel)
		return CL_INVALID_KERNEL;
	switch (name) {
	case CL_KERNEL_FUNCTION_NAME:
		return info_put(kernel->signature->name, strlen(kernel->signature->name) + 1, room,
				out, size_ret);
	case CL_KERNEL_NUM_ARGS:
		return info_put(&kernel->signature->num_args, sizeof(cl_uint), room, out, size_ret);
	case CL_KERNEL_REFERENCE_COUNT:
		number = (cl_uint)kernel->base.refs;
		return info_put(&number, sizeof(number), room, out, size_ret);
	case CL_KERNEL_CONTEXT:
		return info_put(&kernel->program->context, sizeof(void *), room, out, size_ret);
	case CL_KERNEL_PROGRAM:
		return info_put(&kernel->program, sizeof(void *), room, out, size_ret);
	}
	return CL_INVALID_VALUE;
}

cl_int CL_API_CALL stub_clGetKernelWorkGroupInfo(cl_kernel handle, cl_device_id device,
						 cl_kernel_work_group_info name, size_t room,
						 void *out, size_t *size_ret)
{
	static const size_t size = 1024, compiled[3];
	static const cl_ulong none;
	cl_int err = CALL(clGetKernelWorkGroupInfo, U(handle), U(device), U(name), U(room), U(out));

	if (err)
		return err;
	if (!object_get(handle, STUB_KERNEL))
		return CL_INVALID_KERNEL;
	switch (name) {
	case CL_KERNEL_WORK_GROUP_SIZE:
	case CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE:
		return info_put(&size, sizeof(size), room, out, size_ret);
	case CL_KERNEL_COMPILE_WORK_GROUP_SIZE:
		return info_put(compiled, sizeof(compiled), room, out, size_ret);
	case CL_KERNEL_LOCAL_MEM_SIZE:
	case CL_KERNEL_PRIVATE_MEM_SIZE:
		return info_put(&none, sizeof(none), room, out, size_ret);
	}
	return CL_INVALID_VALUE;
}

struct launch *launch_create(cl_kernel handle, cl_uint dims, const size_t *offset,
			     const size_t *global, cl_int *err)
{
	struct kernel *kernel = object_get(handle, STUB_KERNEL);
	struct launch *launch, wanted = { .global = { 1, 1, 1 } };

	*err = CL_SUCCESS;
	if (!kernel)
		*err = CL_INVALID_KERNEL;
	else if (!dims || dims > 3)
		*err = CL_INVALID_WORK_DIMENSION;
	else if (!global)
		*err = CL_INVALID_GLOBAL_WORK_SIZE;
	for (unsigned i = 0; !*err && i < kernel->signature->num_args; i++) {
		const struct arg *arg = &kernel->arg[i];

		if (!arg->set)
			*err = CL_INVALID_KERNEL_ARGS;
		else if (arg->mem && !object_get(arg->mem, STUB_MEM))
			/* The object was freed after clSetKernelArg(). */
			*err = CL_INVALID_MEM_OBJECT;
	}
	if (*err)
		return NULL;
	for (cl_uint d = 0; d < dims; d++) {
		wanted.global[d] = global[d];
		wanted.offset[d] = offset ? offset[d] : 0;
	}
	strcpy(wanted.name, kernel->signature->name);
	wanted.is_first = !kernel->is_launched;
	kernel->is_launched = true;
	wanted.run = builtin_find(wanted.name);
	wanted.num_args = kernel->signature->num_args;
	memcpy(wanted.arg, kernel->arg, sizeof(wanted.arg));
	launch = launch_retain_copy(&wanted);
	return launch;
}

struct launch *launch_retain_copy(const struct launch *from)
{
	struct launch *launch = malloc(sizeof(*launch));

	*launch = *from;
	for (unsigned i = 0; i < launch->num_args; i++)
		if (launch->arg[i].mem)
			object_retain(launch->arg[i].mem);
	return launch;
}

void launch_destroy(struct launch *launch)
{
	for (unsigned i = 0; i < launch->num_args; i++)
		if (launch->arg[i].mem)
			mem_put(launch->arg[i].mem);
	free(launch->native_args);
	free(launch);
}

static cl_int kernel_enqueue(cl_int err, cl_command_queue queue, cl_kernel kernel,
			     cl_command_type type, cl_uint dims, const size_t *offset,
			     const size_t *global, WAIT)
{
	struct op op = { .kind = OP_LAUNCH, .type = type };

	if (err)
		return err;
	if (!object_get(queue, STUB_QUEUE))
		return CL_INVALID_COMMAND_QUEUE;
	op.launch = launch_create(kernel, dims, offset, global, &err);
	return err ? err : queue_submit(queue, &op, num, list, event, false);
}

cl_int CL_API_CALL stub_clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel,
					       cl_uint dims, const size_t *offset,
					       const size_t *global, const size_t *local, WAIT)
{
	cl_int err = CALL(clEnqueueNDRangeKernel, U(queue), U(kernel), U(dims), U(offset),
			  U(global), U(local), UWAIT);

	return kernel_enqueue(err, queue, kernel, CL_COMMAND_NDRANGE_KERNEL, dims, offset, global,
			      num, list, event);
}

/* @count counts work-groups instead of work-items. */
cl_int CL_API_CALL stub_clEnqueueNDCountKernelINTEL(cl_command_queue queue, cl_kernel kernel,
						    cl_uint dims, const size_t *offset,
						    const size_t *count, const size_t *local, WAIT)
{
	cl_int err = CALL(clEnqueueNDCountKernelINTEL, U(queue), U(kernel), U(dims), U(offset),
			  U(count), U(local), UWAIT);
	size_t global[3];

	for (cl_uint i = 0; count && i < dims && i < 3; i++)
		global[i] = count[i] * (local ? local[i] : 1);
	return kernel_enqueue(err, queue, kernel, CL_COMMAND_NDRANGE_KERNEL, dims, offset,
			      count ? global : NULL, num, list, event);
}

cl_int CL_API_CALL stub_clEnqueueTask(cl_command_queue queue, cl_kernel kernel, WAIT)
{
	cl_int err = CALL(clEnqueueTask, U(queue), U(kernel), UWAIT);
	const size_t one = 1;

	return kernel_enqueue(err, queue, kernel, CL_COMMAND_TASK, 1, NULL, &one, num, list, event);
}
