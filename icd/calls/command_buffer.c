/* SPDX-License-Identifier: Apache-2.0 */
#include "icd/calls/command_buffer.h"

#include <string.h>

#include "icd/access/access.h"
#include "icd/calls/command_copy.h"
#include "icd/calls/command_update.h"
#include "icd/layer.h"
#include "icd/objects/command_buffer.h"
#include "icd/objects/kernel_args.h"

static const struct command_functions *command_functions_of(cl_command_buffer_khr handle)
{
	return command_target_of(handle).functions;
}

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
	cl_int(CL_API_CALL * release)(cl_command_buffer_khr) = target->functions->release;

	if (is_created(handle, err) && !command_buffer_add(handle, target, queue)) {
		release(handle);
		return command_buffer_refuse(CL_OUT_OF_HOST_MEMORY, errcode_ret);
	}
	if (errcode_ret)
		*errcode_ret = err;
	return handle;
}

static cl_command_buffer_khr CL_API_CALL
layer_create_command_buffer(cl_uint num_queues, const cl_command_queue *queues,
			    const cl_command_buffer_properties_khr *properties, cl_int *errcode_ret)
{
	cl_command_buffer_khr(CL_API_CALL * driver)(cl_uint, const cl_command_queue *,
						    const cl_command_buffer_properties_khr *,
						    cl_int *);
	cl_command_buffer_khr handle;
	struct command_target target;
	cl_int err;

	if (!num_queues || !queues)
		return command_buffer_refuse(CL_INVALID_VALUE, errcode_ret);
	err = command_target_find(queues[0], &target);
	if (!err && !target.functions->create)
		err = CL_INVALID_OPERATION;
	if (err)
		return command_buffer_refuse(err, errcode_ret);
	driver = target.functions->create;
	handle = driver(num_queues, queues, properties, &err);
	return command_buffer_keep(handle, err, &target, queues[0], errcode_ret);
}

static cl_int CL_API_CALL layer_release_command_buffer(cl_command_buffer_khr handle);

static cl_command_buffer_khr CL_API_CALL layer_remap_command_buffer(
	cl_command_buffer_khr buffer, cl_bool automatic, cl_uint num_queues,
	const cl_command_queue *queues, cl_uint num_handles, const cl_mutable_command_khr *handles,
	cl_mutable_command_khr *handles_ret, cl_int *errcode_ret)
{
	struct command_target target = command_target_of(buffer);
	cl_command_queue first = num_queues && queues ? queues[0] : NULL;
	cl_command_buffer_khr(CL_API_CALL * driver)(
		cl_command_buffer_khr, cl_bool, cl_uint, const cl_command_queue *, cl_uint,
		const cl_mutable_command_khr *, cl_mutable_command_khr *, cl_int *);
	const struct command_renames renames = { handles && handles_ret ? num_handles : 0, handles,
						 handles_ret };
	cl_command_buffer_khr handle;
	cl_int err = CL_SUCCESS;

	if (!target.functions || !target.functions->remap)
		return command_buffer_refuse(CL_INVALID_COMMAND_BUFFER_KHR, errcode_ret);
	driver = target.functions->remap;
	handle = driver(buffer, automatic, num_queues, queues, num_handles, handles, handles_ret,
			&err);
	if (first && is_created(handle, err))
		command_target_find(first, &target); /* of the device of the copy */
	handle = command_buffer_keep(handle, err, &target, first, errcode_ret);
	if (!is_created(handle, err) || !command_buffer_copy_uses(buffer, handle, &renames))
		return handle;
	layer_release_command_buffer(handle);
	return command_buffer_refuse(CL_OUT_OF_HOST_MEMORY, errcode_ret);
}

static cl_int CL_API_CALL layer_retain_command_buffer(cl_command_buffer_khr handle)
{
	const struct command_functions *functions = command_functions_of(handle);
	__typeof__(&layer_retain_command_buffer) driver = functions ? functions->retain : NULL;
	cl_int err;

	if (!driver)
		return CL_INVALID_COMMAND_BUFFER_KHR;
	err = driver(handle);
	if (!err)
		command_buffer_retain(handle);
	return err;
}

static cl_int CL_API_CALL layer_release_command_buffer(cl_command_buffer_khr handle)
{
	const struct command_functions *functions = command_functions_of(handle);
	__typeof__(&layer_release_command_buffer) driver = functions ? functions->release : NULL;
	struct command_buffer *gone;
	cl_int err;

	if (!driver)
		return CL_INVALID_COMMAND_BUFFER_KHR;
	gone = command_buffer_release(handle);
	err = driver(handle);
	command_buffer_released(handle, gone, err);
	return err;
}

static cl_int command_kernel_uses(cl_kernel kernel, struct command_use **uses)
{
	struct memobj_list imports;
	cl_int err = kernel_args_imports(kernel, &imports);

	for (size_t i = 0; i < imports.count && !err; i++)
		err = command_uses_add(uses, imports.objs[i], NULL, imports.indices[i]);
	memobj_list_put(&imports);
	return err;
}

/* Arguments are taken when the command is recorded. */
static cl_int CL_API_CALL layer_command_ndrange_kernel(
	cl_command_buffer_khr buffer, cl_command_queue queue, const cl_properties *properties,
	cl_kernel kernel, cl_uint work_dim, const size_t *offset, const size_t *global,
	const size_t *local, cl_uint num_sync_points, const cl_sync_point_khr *sync_points,
	cl_sync_point_khr *sync_point, cl_mutable_command_khr *mutable_handle)
{
	const struct command_functions *functions = command_functions_of(buffer);
	__typeof__(&layer_command_ndrange_kernel) driver = functions ? functions->ndrange_kernel
								     : NULL;
	struct command_use *uses = NULL;
	cl_int err;

	if (!driver)
		return CL_INVALID_COMMAND_BUFFER_KHR;
	err = command_kernel_uses(kernel, &uses);
	if (!err)
		err = driver(buffer, queue, properties, kernel, work_dim, offset, global, local,
			     num_sync_points, sync_points, sync_point, mutable_handle);
	for (struct command_use *u = uses; u && !err && mutable_handle; u = u->next)
		u->command = *mutable_handle;
	return command_buffer_recorded(buffer, uses, err);
}

static cl_int CL_API_CALL layer_enqueue_command_buffer(cl_uint num_queues, cl_command_queue *queues,
						       cl_command_buffer_khr buffer,
						       cl_uint num_wait, const cl_event *wait,
						       cl_event *event)
{
	cl_command_queue queue = num_queues && queues ? queues[0] : NULL;
	const struct command_functions *functions = command_functions_of(buffer);
	__typeof__(&layer_enqueue_command_buffer) driver = functions ? functions->enqueue : NULL;
	struct memobj_list imports;
	struct access a;
	cl_int err;

	if (!driver)
		return CL_INVALID_COMMAND_BUFFER_KHR;
	queue_bracket_close_all(); /* the command buffer may use several queues */
	access_none(&a, num_wait, wait, event);
	err = command_buffer_imports(buffer, &imports, &queue);
	if (!err)
		err = access_begin(&a, queue, imports.objs, imports.count, ACCESS_BOTH);
	memobj_list_put(&imports);
	if (err)
		return err;
	err = driver(num_queues, queues, buffer, a.num_wait, a.wait, a.event);
	return access_end(&a, err, CL_FALSE);
}

void *command_buffer_function(const char *name)
{
	static const struct {
		const char *name;
		void *function;
	} ours[] = {
		{ "clCreateCommandBufferKHR", (void *)layer_create_command_buffer },
		{ "clRetainCommandBufferKHR", (void *)layer_retain_command_buffer },
		{ "clReleaseCommandBufferKHR", (void *)layer_release_command_buffer },
		{ "clEnqueueCommandBufferKHR", (void *)layer_enqueue_command_buffer },
		{ "clRemapCommandBufferKHR", (void *)layer_remap_command_buffer },
		{ "clCommandNDRangeKernelKHR", (void *)layer_command_ndrange_kernel },
	};
	void *function;

	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
		if (!strcmp(ours[i].name, name))
			return ours[i].function;
	function = command_copy_function(name);
	return function ? function : command_update_function(name);
}
