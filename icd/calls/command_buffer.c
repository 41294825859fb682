/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cl_khr_command_buffer: recording of forbidden calls, and the imports that recorded commands use.
 *
 * An application has a single address for a function whose parameters differ between versions:
 * objects/extensions.h.
 */
#include "icd/calls/command.h"
#include "icd/intercept.h"
#include "icd/objects/command_buffer.h"
#include "icd/objects/kernel_args.h"

static cl_command_buffer_khr command_buffer_refuse(cl_int err, cl_int *errcode_ret)
{
	if (errcode_ret)
		*errcode_ret = err;
	return NULL;
}

/* Records an object that the driver created, before the application gets the handle. */
static cl_command_buffer_khr command_buffer_keep(cl_command_buffer_khr handle, cl_int err,
						 const struct command_target *target,
						 cl_command_queue queue, cl_int *errcode_ret)
{
	if (is_created(handle, err) && !command_buffer_add(handle, target, queue)) {
		target->driver->clReleaseCommandBufferKHR(handle);
		return command_buffer_refuse(CL_OUT_OF_HOST_MEMORY, errcode_ret);
	}
	if (errcode_ret)
		*errcode_ret = err;
	return handle;
}

cl_command_buffer_khr CL_API_CALL layer_clCreateCommandBufferKHR(
	cl_uint num_queues, const cl_command_queue *queues,
	const cl_command_buffer_properties_khr *properties, cl_int *errcode_ret)
{
	cl_command_buffer_khr handle;
	struct command_target target;
	cl_int err = CL_SUCCESS;

	if (!num_queues || !queues)
		return command_buffer_refuse(CL_INVALID_VALUE, errcode_ret);
	target = command_target_of_queue(queues[0]);
	if (!target.driver->clCreateCommandBufferKHR)
		return command_buffer_refuse(CL_INVALID_COMMAND_QUEUE, errcode_ret);
	handle = target.driver->clCreateCommandBufferKHR(num_queues, queues, properties, &err);
	return command_buffer_keep(handle, err, &target, queues[0], errcode_ret);
}

/* The copy may use what the original may. */
static cl_int command_buffer_copy_uses(cl_command_buffer_khr from, cl_command_buffer_khr to)
{
	cl_command_queue queue = NULL;
	struct memobj_list imports;
	cl_int err = command_buffer_imports(from, &imports, &queue);

	for (size_t i = 0; i < imports.count && !err; i++)
		err = command_buffer_use(to, imports.objs[i]);
	memobj_list_put(&imports);
	return err;
}

cl_command_buffer_khr CL_API_CALL layer_clRemapCommandBufferKHR(
	cl_command_buffer_khr buffer, cl_bool automatic, cl_uint num_queues,
	const cl_command_queue *queues, cl_uint num_handles, const cl_mutable_command_khr *handles,
	cl_mutable_command_khr *handles_ret, cl_int *errcode_ret)
{
	struct command_target target = command_target_of(buffer), copy = target;
	cl_command_queue first = num_queues && queues ? queues[0] : NULL;
	cl_command_buffer_khr handle;
	cl_int err = CL_SUCCESS;

	if (!target.driver->clRemapCommandBufferKHR)
		return command_buffer_refuse(CL_INVALID_COMMAND_BUFFER_KHR, errcode_ret);
	handle = target.driver->clRemapCommandBufferKHR(buffer, automatic, num_queues, queues,
							num_handles, handles, handles_ret, &err);
	if (first && is_created(handle, err))
		copy = command_target_of_queue(first);
	if (copy.driver->clReleaseCommandBufferKHR)
		target = copy;
	handle = command_buffer_keep(handle, err, &target, first, errcode_ret);
	if (!is_created(handle, err) || !command_buffer_copy_uses(buffer, handle))
		return handle;
	layer_clReleaseCommandBufferKHR(handle);
	return command_buffer_refuse(CL_OUT_OF_HOST_MEMORY, errcode_ret);
}

cl_int CL_API_CALL layer_clRetainCommandBufferKHR(cl_command_buffer_khr buffer)
{
	const struct extensions *driver = command_target_of(buffer).driver;
	cl_int err;

	if (!driver->clRetainCommandBufferKHR)
		return CL_INVALID_COMMAND_BUFFER_KHR;
	err = driver->clRetainCommandBufferKHR(buffer);
	if (!err)
		command_buffer_retain(buffer);
	return err;
}

cl_int CL_API_CALL layer_clReleaseCommandBufferKHR(cl_command_buffer_khr buffer)
{
	const struct extensions *driver = command_target_of(buffer).driver;
	struct command_buffer *gone;
	cl_int err;

	if (!driver->clReleaseCommandBufferKHR)
		return CL_INVALID_COMMAND_BUFFER_KHR;
	gone = command_buffer_release(buffer);
	err = driver->clReleaseCommandBufferKHR(buffer);
	command_buffer_released(buffer, gone, err);
	return err;
}

static cl_int command_buffer_use_kernel(cl_command_buffer_khr buffer, cl_kernel kernel)
{
	struct memobj_list imports;
	cl_int err = kernel_args_imports(kernel, &imports);

	for (size_t i = 0; i < imports.count && !err; i++)
		err = command_buffer_use(buffer, imports.objs[i]);
	memobj_list_put(&imports);
	return err;
}

/* Arguments are taken when the command is recorded. */
cl_int CL_API_CALL layer_clCommandNDRangeKernelKHR(
	cl_command_buffer_khr buffer, cl_command_queue queue, const cl_properties *properties,
	cl_kernel kernel, cl_uint work_dim, const size_t *offset, const size_t *global,
	const size_t *local, cl_uint num_sync_points, const cl_sync_point_khr *sync_points,
	cl_sync_point_khr *sync_point, cl_mutable_command_khr *mutable_handle)
{
	const struct extensions *driver = command_target_of(buffer).driver;
	cl_int err;

	if (!driver->clCommandNDRangeKernelKHR)
		return CL_INVALID_COMMAND_BUFFER_KHR;
	err = command_buffer_use_kernel(buffer, kernel);
	if (err)
		return err;
	return driver->clCommandNDRangeKernelKHR(buffer, queue, properties, kernel, work_dim,
						 offset, global, local, num_sync_points,
						 sync_points, sync_point, mutable_handle);
}

cl_int CL_API_CALL layer_clEnqueueCommandBufferKHR(cl_uint num_queues, cl_command_queue *queues,
						   cl_command_buffer_khr buffer, cl_uint num_wait,
						   const cl_event *wait, cl_event *event)
{
	cl_command_queue queue = num_queues && queues ? queues[0] : NULL;
	const struct extensions *driver = command_target_of(buffer).driver;
	struct memobj_list imports;
	struct access a;
	cl_int err;

	if (!driver->clEnqueueCommandBufferKHR)
		return CL_INVALID_COMMAND_BUFFER_KHR;
	queue_bracket_close_all(); /* the command buffer may use several queues */
	access_none(&a, num_wait, wait, event);
	err = command_buffer_imports(buffer, &imports, &queue);
	if (!err)
		err = access_begin(&a, queue, imports.objs, imports.count, ACCESS_BOTH);
	memobj_list_put(&imports);
	if (err)
		return err;
	err = driver->clEnqueueCommandBufferKHR(num_queues, queues, buffer, a.num_wait, a.wait,
						a.event);
	return access_end(&a, err, CL_FALSE);
}
