/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cl_khr_command_buffer.  A command on memory that needs a bracket, or an acquire, is not recorded: no known
 * program records one, and each run of the command buffer would need it.
 *
 * An application has a single address for a function whose parameters differ between versions:
 * objects/extensions.h.
 */
#include "icd/calls/command.h"
#include "icd/intercept.h"
#include "icd/objects/command_buffer.h"
#include "icd/objects/kernel_args.h"
#include "util/log.h"

static cl_command_buffer_khr command_buffer_refuse(cl_int err, cl_int *errcode_ret)
{
	if (errcode_ret)
		*errcode_ret = err;
	return NULL;
}

/* Records an object that the driver created, before the application gets the handle. */
static cl_command_buffer_khr command_buffer_keep(cl_command_buffer_khr handle, cl_int err,
						 const struct command_target *target,
						 cl_int *errcode_ret)
{
	if (is_created(handle, err) && !command_buffer_add(handle, target)) {
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
	return command_buffer_keep(handle, err, &target, errcode_ret);
}

cl_command_buffer_khr CL_API_CALL layer_clRemapCommandBufferKHR(
	cl_command_buffer_khr buffer, cl_bool automatic, cl_uint num_queues,
	const cl_command_queue *queues, cl_uint num_handles, const cl_mutable_command_khr *handles,
	cl_mutable_command_khr *handles_ret, cl_int *errcode_ret)
{
	struct command_target target = command_target_of(buffer), copy = target;
	cl_command_buffer_khr handle;
	cl_int err = CL_SUCCESS;

	if (!target.driver->clRemapCommandBufferKHR)
		return command_buffer_refuse(CL_INVALID_COMMAND_BUFFER_KHR, errcode_ret);
	handle = target.driver->clRemapCommandBufferKHR(buffer, automatic, num_queues, queues,
							num_handles, handles, handles_ret, &err);
	if (num_queues && queues && is_created(handle, err))
		copy = command_target_of_queue(queues[0]);
	if (copy.driver->clReleaseCommandBufferKHR)
		target = copy;
	return command_buffer_keep(handle, err, &target, errcode_ret);
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

	if (!driver->clReleaseCommandBufferKHR)
		return CL_INVALID_COMMAND_BUFFER_KHR;
	command_buffer_release(buffer);
	return driver->clReleaseCommandBufferKHR(buffer);
}

static cl_int command_buffer_check_kernel(cl_kernel kernel)
{
	struct memobj_list imports = { .count = 0 };
	cl_int err = CL_SUCCESS;

	kernel_args_imports(kernel, &imports);
	for (size_t i = 0; i < imports.count && !err; i++)
		if (!memobj_is_recordable(imports.objs[i]))
			err = command_refuse_recorded(imports.objs[i], "clCommandNDRangeKernelKHR");
	if (!err && imports.left_out) {
		log_error("a command uses more than %d dma-bufs", MEMOBJ_LIST_MAX);
		err = CL_OUT_OF_RESOURCES;
	}
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
	err = command_buffer_check_kernel(kernel);
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
	const struct extensions *driver = command_target_of(buffer).driver;

	if (!driver->clEnqueueCommandBufferKHR)
		return CL_INVALID_COMMAND_BUFFER_KHR;
	queue_bracket_close_all(NULL); /* the command buffer may use several queues */
	return driver->clEnqueueCommandBufferKHR(num_queues, queues, buffer, num_wait, wait, event);
}
