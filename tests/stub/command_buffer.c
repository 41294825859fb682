/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cl_khr_command_buffer 0.9.0: ops are recorded, and run in order.  command_forms.c has later
 * versions.
 */
#include "internal.h"

struct command_buffer {
	struct object base;
	struct context *context;
	struct queue *queue;
	bool final;
	unsigned count;
	struct op *op;
};

/* The end of every clCommand function's arguments. */
#define SYNC                                                                       \
	cl_uint num, const cl_sync_point_khr *list, cl_sync_point_khr *sync_point, \
		cl_mutable_command_khr *command
#define USYNC U(num), U(list), U(sync_point), U(command)

cl_command_buffer_khr CL_API_CALL stub_clCreateCommandBufferKHR(
	cl_uint num, const cl_command_queue *queues,
	const cl_command_buffer_properties_khr *properties, cl_int *errcode_ret)
{
	cl_int err = CALL(clCreateCommandBufferKHR, U(num), U(queues), U(properties));
	struct command_buffer *list;

	if (!err && (num != 1 || !queues))
		err = CL_INVALID_VALUE;
	if (!err && !object_get(*queues, STUB_QUEUE))
		err = CL_INVALID_COMMAND_QUEUE;
	if (err)
		return creation_failed(errcode_ret, err);
	list = object_create(STUB_COMMAND_BUFFER);
	list->queue = (struct queue *)*queues;
	list->context = list->queue->context;
	object_retain(list->queue);
	object_retain(list->context);
	if (errcode_ret)
		*errcode_ret = CL_SUCCESS;
	return (cl_command_buffer_khr)list;
}

void stub_command_buffer_put(struct command_buffer *list)
{
	if (!object_release(list))
		return;
	for (unsigned i = 0; i < list->count; i++)
		op_drop(&list->op[i]);
	free(list->op);
	queue_put(list->queue);
	stub_context_put(list->context);
	object_destroy(list);
}

cl_int CL_API_CALL stub_clFinalizeCommandBufferKHR(cl_command_buffer_khr handle)
{
	struct command_buffer *list = object_get(handle, STUB_COMMAND_BUFFER);
	cl_int err = CALL(clFinalizeCommandBufferKHR, U(handle));

	if (err)
		return err;
	if (!list)
		return CL_INVALID_COMMAND_BUFFER_KHR;
	if (list->final)
		return CL_INVALID_OPERATION;
	list->final = true;
	return CL_SUCCESS;
}

cl_int CL_API_CALL stub_clRetainCommandBufferKHR(cl_command_buffer_khr handle)
{
	cl_int err = CALL(clRetainCommandBufferKHR, U(handle));

	if (err)
		return err;
	if (!object_get(handle, STUB_COMMAND_BUFFER))
		return CL_INVALID_COMMAND_BUFFER_KHR;
	object_retain(handle);
	return CL_SUCCESS;
}

cl_int CL_API_CALL stub_clReleaseCommandBufferKHR(cl_command_buffer_khr handle)
{
	cl_int err = CALL(clReleaseCommandBufferKHR, U(handle));

	if (err)
		return err;
	if (!object_get(handle, STUB_COMMAND_BUFFER))
		return CL_INVALID_COMMAND_BUFFER_KHR;
	stub_command_buffer_put((struct command_buffer *)handle);
	return CL_SUCCESS;
}

/* The copy's commands have the handles of the original commands. */
cl_command_buffer_khr CL_API_CALL stub_clRemapCommandBufferKHR(
	cl_command_buffer_khr handle, cl_bool automatic, cl_uint num,
	const cl_command_queue *queues, cl_uint num_handles, const cl_mutable_command_khr *handles,
	cl_mutable_command_khr *handles_ret, cl_int *errcode_ret)
{
	struct command_buffer *from = object_get(handle, STUB_COMMAND_BUFFER), *list;
	cl_int err = CALL(clRemapCommandBufferKHR, U(handle), U(automatic), U(num), U(queues));
	cl_command_buffer_khr copy;

	if (!err && !from)
		err = CL_INVALID_COMMAND_BUFFER_KHR;
	if (err)
		return creation_failed(errcode_ret, err);
	copy = stub_clCreateCommandBufferKHR(num, queues, NULL, errcode_ret);
	list = (struct command_buffer *)copy;
	if (!list)
		return NULL;
	list->op = calloc(from->count + 1, sizeof(*list->op));
	list->final = from->final;
	for (list->count = 0; list->count < from->count; list->count++) {
		struct op *op = &list->op[list->count];

		*op = from->op[list->count];
		op_hold(op);
		if (op->launch)
			op->launch = launch_retain_copy(op->launch);
	}
	for (cl_uint i = 0; i < num_handles; i++)
		handles_ret[i] = handles[i];
	return copy;
}

cl_int command_buffer_run(struct command_buffer *list, struct device *device)
{
	cl_int status = CL_COMPLETE;

	for (unsigned i = 0; i < list->count && status == CL_COMPLETE; i++)
		status = op_run(&list->op[i], device);
	return status;
}

cl_int CL_API_CALL stub_clEnqueueCommandBufferKHR(cl_uint num_queues, cl_command_queue *queues,
						  cl_command_buffer_khr handle, WAIT)
{
	struct command_buffer *list_ = object_get(handle, STUB_COMMAND_BUFFER);
	cl_int err = CALL(clEnqueueCommandBufferKHR, U(num_queues), U(queues), U(handle), UWAIT);
	struct op op = { .kind = OP_LIST, .type = CL_COMMAND_COMMAND_BUFFER_KHR, .list = list_ };
	cl_command_queue queue;

	if (err)
		return err;
	if (!list_)
		return CL_INVALID_COMMAND_BUFFER_KHR;
	if (!list_->final)
		return CL_INVALID_OPERATION;
	queue = queues && num_queues ? queues[0] : (cl_command_queue)list_->queue;
	if (!object_get(queue, STUB_QUEUE))
		return CL_INVALID_COMMAND_QUEUE;
	op_hold(&op);
	return queue_submit(queue, &op, num, list, event, false);
}

/* Checks whether a command may be recorded.  @err is an error found earlier, or CL_SUCCESS. */
static cl_int record_check(cl_int err, cl_command_buffer_khr handle, cl_command_queue queue,
			   cl_mem a, cl_mem b)
{
	struct command_buffer *list = object_get(handle, STUB_COMMAND_BUFFER);

	if (err)
		return err;
	if (!list)
		return CL_INVALID_COMMAND_BUFFER_KHR;
	if (queue)
		return CL_INVALID_COMMAND_QUEUE;
	if (list->final)
		return CL_INVALID_OPERATION;
	if (a)
		queue_check((cl_command_queue)list->queue, a, b, &err);
	return err;
}

static cl_int command_buffer_record(cl_int err, cl_command_buffer_khr handle, struct op *op,
				    cl_sync_point_khr *sync_point)
{
	struct command_buffer *list = (struct command_buffer *)handle;

	if (err)
		return err;
	op_hold(op);
	list->op = realloc(list->op, (list->count + 1) * sizeof(*op));
	list->op[list->count++] = *op;
	if (sync_point)
		*sync_point = list->count;
	return CL_SUCCESS;
}

cl_int CL_API_CALL stub_clCommandBarrierWithWaitListKHR(cl_command_buffer_khr handle,
							cl_command_queue queue, SYNC)
{
	cl_int err = CALL(clCommandBarrierWithWaitListKHR, U(handle), U(queue), USYNC);
	struct op op = { .kind = OP_NOTHING };

	err = record_check(err, handle, queue, NULL, NULL);
	return command_buffer_record(err, handle, &op, sync_point);
}

cl_int CL_API_CALL stub_clCommandCopyBufferKHR(cl_command_buffer_khr handle, cl_command_queue queue,
					       cl_mem src, cl_mem dst, size_t src_offset,
					       size_t dst_offset, size_t size, SYNC)
{
	cl_int err = CALL(clCommandCopyBufferKHR, U(handle), U(queue), U(src), U(dst), USYNC);
	struct op op = { .kind = OP_COPY };

	err = record_check(err, handle, queue, src, dst);
	if (!err)
		err = copy_buffer_op(&op, src, dst, src_offset, dst_offset, size);
	return command_buffer_record(err, handle, &op, sync_point);
}

cl_int CL_API_CALL stub_clCommandCopyBufferRectKHR(cl_command_buffer_khr handle,
						   cl_command_queue queue, cl_mem src, cl_mem dst,
						   const size_t *src_origin,
						   const size_t *dst_origin, const size_t *region,
						   size_t src_row, size_t src_slice, size_t dst_row,
						   size_t dst_slice, SYNC)
{
	cl_int err = CALL(clCommandCopyBufferRectKHR, U(handle), U(queue), U(src), U(dst), USYNC);
	const size_t pitch[4] = { src_row, src_slice, dst_row, dst_slice };
	struct op op = { .kind = OP_COPY };

	err = record_check(err, handle, queue, src, dst);
	if (!err)
		err = copy_rect_op(&op, src, dst, src_origin, dst_origin, region, pitch);
	return command_buffer_record(err, handle, &op, sync_point);
}

cl_int CL_API_CALL stub_clCommandCopyBufferToImageKHR(cl_command_buffer_khr handle,
						      cl_command_queue queue, cl_mem src,
						      cl_mem dst, size_t offset,
						      const size_t *origin, const size_t *region,
						      SYNC)
{
	cl_int err =
		CALL(clCommandCopyBufferToImageKHR, U(handle), U(queue), U(src), U(dst), USYNC);
	struct op op = { .kind = OP_COPY };

	err = record_check(err, handle, queue, src, dst);
	if (!err)
		err = copy_image_buffer_op(&op, dst, src, origin, region, offset, false);
	return command_buffer_record(err, handle, &op, sync_point);
}

cl_int CL_API_CALL stub_clCommandCopyImageKHR(cl_command_buffer_khr handle, cl_command_queue queue,
					      cl_mem src, cl_mem dst, const size_t *src_origin,
					      const size_t *dst_origin, const size_t *region, SYNC)
{
	cl_int err = CALL(clCommandCopyImageKHR, U(handle), U(queue), U(src), U(dst), USYNC);
	struct op op = { .kind = OP_COPY };

	err = record_check(err, handle, queue, src, dst);
	if (!err)
		err = copy_image_op(&op, src, dst, src_origin, dst_origin, region);
	return command_buffer_record(err, handle, &op, sync_point);
}

cl_int CL_API_CALL stub_clCommandCopyImageToBufferKHR(cl_command_buffer_khr handle,
						      cl_command_queue queue, cl_mem src,
						      cl_mem dst, const size_t *origin,
						      const size_t *region, size_t offset, SYNC)
{
	cl_int err =
		CALL(clCommandCopyImageToBufferKHR, U(handle), U(queue), U(src), U(dst), USYNC);
	struct op op = { .kind = OP_COPY };

	err = record_check(err, handle, queue, src, dst);
	if (!err)
		err = copy_image_buffer_op(&op, src, dst, origin, region, offset, true);
	return command_buffer_record(err, handle, &op, sync_point);
}

cl_int CL_API_CALL stub_clCommandFillBufferKHR(cl_command_buffer_khr handle, cl_command_queue queue,
					       cl_mem mem, const void *pattern, size_t pattern_size,
					       size_t offset, size_t size, SYNC)
{
	cl_int err = CALL(clCommandFillBufferKHR, U(handle), U(queue), U(mem), U(pattern), USYNC);
	struct op op = { .kind = OP_FILL };

	err = record_check(err, handle, queue, mem, mem);
	if (!err)
		err = fill_buffer_op(&op, mem, pattern, pattern_size, offset, size);
	return command_buffer_record(err, handle, &op, sync_point);
}

cl_int CL_API_CALL stub_clCommandFillImageKHR(cl_command_buffer_khr handle, cl_command_queue queue,
					      cl_mem image, const void *color, const size_t *origin,
					      const size_t *region, SYNC)
{
	cl_int err = CALL(clCommandFillImageKHR, U(handle), U(queue), U(image), U(color), USYNC);
	struct op op = { .kind = OP_FILL };

	err = record_check(err, handle, queue, image, image);
	if (!err)
		err = fill_image_op(&op, image, color, origin, region);
	return command_buffer_record(err, handle, &op, sync_point);
}

cl_int CL_API_CALL stub_clCommandNDRangeKernelKHR(cl_command_buffer_khr handle,
						  cl_command_queue queue,
						  const cl_properties *properties, cl_kernel kernel,
						  cl_uint dims, const size_t *offset,
						  const size_t *global, const size_t *local, SYNC)
{
	cl_int err = CALL(clCommandNDRangeKernelKHR, U(handle), U(queue), U(properties), U(kernel),
			  U(dims), U(offset), U(global), U(local), USYNC);
	struct op op = { .kind = OP_LAUNCH };

	err = record_check(err, handle, queue, NULL, NULL);
	if (!err)
		op.launch = launch_create(kernel, dims, offset, global, &err);
	err = command_buffer_record(err, handle, &op, sync_point);
	if (!err && command)
		*command = (cl_mutable_command_khr)(uintptr_t)((struct command_buffer *)handle)
				   ->count; /* handles count from 1 */
	return err;
}

/* Replaces arguments of a recorded kernel by arguments of equal kind. */
cl_int command_buffer_update(cl_command_buffer_khr handle, cl_mutable_command_khr command,
			     cl_uint num_args, const cl_mutable_dispatch_arg_khr *args)
{
	struct command_buffer *list = object_get(handle, STUB_COMMAND_BUFFER);
	size_t index = (uintptr_t)command;

	if (!list)
		return CL_INVALID_COMMAND_BUFFER_KHR;
	if (!index || index > list->count || !list->op[index - 1].launch)
		return CL_INVALID_MUTABLE_COMMAND_KHR;
	for (cl_uint i = 0; i < num_args; i++) {
		struct arg *arg = &list->op[index - 1].launch->arg[args[i].arg_index];
		struct mem *mem;

		memcpy(&mem, args[i].arg_value, sizeof(mem));
		if (!arg->mem || !object_get(mem, STUB_MEM))
			return CL_INVALID_MEM_OBJECT;
		object_retain(mem);
		mem_put(arg->mem);
		arg->mem = mem;
	}
	return CL_SUCCESS;
}

cl_int CL_API_CALL stub_clGetCommandBufferInfoKHR(cl_command_buffer_khr handle,
						  cl_command_buffer_info_khr name, size_t room,
						  void *out, size_t *size_ret)
{
	struct command_buffer *list = object_get(handle, STUB_COMMAND_BUFFER);
	cl_int err =
		CALL(clGetCommandBufferInfoKHR, U(handle), U(name), U(room), U(out), U(size_ret));
	cl_uint one = 1, refs;

	if (err)
		return err;
	if (!list)
		return CL_INVALID_COMMAND_BUFFER_KHR;
	refs = (cl_uint)list->base.refs;
	switch (name) {
	case CL_COMMAND_BUFFER_QUEUES_KHR:
		return info_put(&list->queue, sizeof(void *), room, out, size_ret);
	case CL_COMMAND_BUFFER_NUM_QUEUES_KHR:
		return info_put(&one, sizeof(one), room, out, size_ret);
	case CL_COMMAND_BUFFER_REFERENCE_COUNT_KHR:
		return info_put(&refs, sizeof(refs), room, out, size_ret);
	}
	return CL_INVALID_VALUE;
}
