/* SPDX-License-Identifier: Apache-2.0 */
/* clEnqueue*: buffers, markers, and all other commands but those on images. */
#include "internal.h"

/* Reads or writes a single row. */
static cl_int enqueue_transfer(cl_int err, cl_command_queue handle, cl_mem mem_handle,
			       bool blocking, size_t offset, size_t size, void *memory, bool write,
			       WAIT)
{
	struct op op = { .kind = OP_COPY, .bytes = size, .rows = 1, .slices = 1 };
	struct mem *mem = (struct mem *)mem_handle;

	if (err || !queue_check(handle, mem_handle, mem_handle, &err))
		return err;
	if (mem_is_image(mem))
		return CL_INVALID_MEM_OBJECT;
	if (!memory || !size || offset > mem->size || size > mem->size - offset)
		return CL_INVALID_VALUE;
	op.type = write ? CL_COMMAND_WRITE_BUFFER : CL_COMMAND_READ_BUFFER;
	op.mem[0] = mem;
	op.src.at = write ? memory : mem->data + offset;
	op.dst.at = write ? mem->data + offset : memory;
	op_hold(&op);
	return queue_submit(handle, &op, num, list, event, blocking);
}

cl_int CL_API_CALL stub_clEnqueueReadBuffer(cl_command_queue queue, cl_mem mem, cl_bool blocking,
					    size_t offset, size_t size, void *out, WAIT)
{
	cl_int err = CALL(clEnqueueReadBuffer, U(queue), U(mem), U(blocking), U(offset), U(size),
			  U(out), UWAIT);

	return enqueue_transfer(err, queue, mem, blocking, offset, size, out, false, num, list,
				event);
}

cl_int CL_API_CALL stub_clEnqueueWriteBuffer(cl_command_queue queue, cl_mem mem, cl_bool blocking,
					     size_t offset, size_t size, const void *in, WAIT)
{
	cl_int err = CALL(clEnqueueWriteBuffer, U(queue), U(mem), U(blocking), U(offset), U(size),
			  U(in), UWAIT);

	return enqueue_transfer(err, queue, mem, blocking, offset, size, (void *)(uintptr_t)in,
				true, num, list, event);
}

/* @origin and @pitch have the buffer's values first, then the host's. */
static cl_int transfer_rect(cl_int err, cl_command_queue handle, cl_mem mem_handle, bool blocking,
			    const size_t *const origin[2], const size_t *region,
			    const size_t pitch[4], void *memory, bool write, WAIT)
{
	struct op op = { .kind = OP_COPY };
	struct mem *mem = (struct mem *)mem_handle;
	struct box *host = write ? &op.src : &op.dst;

	if (err || !queue_check(handle, mem_handle, mem_handle, &err))
		return err;
	err = box_of_buffer(write ? &op.dst : &op.src, mem->data, mem->size, origin[0], region,
			    pitch[0], pitch[1]);
	if (!err)
		err = box_of_buffer(host, memory, SIZE_MAX, origin[1], region, pitch[2], pitch[3]);
	if (err)
		return err;
	op.type = write ? CL_COMMAND_WRITE_BUFFER_RECT : CL_COMMAND_READ_BUFFER_RECT;
	op.mem[0] = mem;
	op.bytes = region[0];
	op.rows = region[1];
	op.slices = region[2];
	op_hold(&op);
	return queue_submit(handle, &op, num, list, event, blocking);
}

cl_int CL_API_CALL stub_clEnqueueReadBufferRect(cl_command_queue queue, cl_mem mem,
						cl_bool blocking, const size_t *buffer_origin,
						const size_t *host_origin, const size_t *region,
						size_t row_pitch, size_t slice_pitch,
						size_t host_row_pitch, size_t host_slice_pitch,
						void *out, WAIT)
{
	cl_int err = CALL(clEnqueueReadBufferRect, U(queue), U(mem), U(blocking), U(buffer_origin),
			  U(host_origin), U(region), U(out), UWAIT);

	return transfer_rect(
		err, queue, mem, blocking, (const size_t *const[2]){ buffer_origin, host_origin },
		region,
		(const size_t[4]){ row_pitch, slice_pitch, host_row_pitch, host_slice_pitch }, out,
		false, num, list, event);
}

cl_int CL_API_CALL stub_clEnqueueWriteBufferRect(cl_command_queue queue, cl_mem mem,
						 cl_bool blocking, const size_t *buffer_origin,
						 const size_t *host_origin, const size_t *region,
						 size_t row_pitch, size_t slice_pitch,
						 size_t host_row_pitch, size_t host_slice_pitch,
						 const void *in, WAIT)
{
	cl_int err = CALL(clEnqueueWriteBufferRect, U(queue), U(mem), U(blocking), U(buffer_origin),
			  U(host_origin), U(region), U(in), UWAIT);

	return transfer_rect(
		err, queue, mem, blocking, (const size_t *const[2]){ buffer_origin, host_origin },
		region,
		(const size_t[4]){ row_pitch, slice_pitch, host_row_pitch, host_slice_pitch },
		(void *)(uintptr_t)in, true, num, list, event);
}

cl_int CL_API_CALL stub_clEnqueueCopyBuffer(cl_command_queue queue, cl_mem src, cl_mem dst,
					    size_t src_offset, size_t dst_offset, size_t size, WAIT)
{
	cl_int err = CALL(clEnqueueCopyBuffer, U(queue), U(src), U(dst), U(src_offset),
			  U(dst_offset), U(size), UWAIT);
	struct op op = { .kind = OP_COPY };

	if (err || !queue_check(queue, src, dst, &err))
		return err;
	err = copy_buffer_op(&op, src, dst, src_offset, dst_offset, size);
	if (err)
		return err;
	op_hold(&op);
	return queue_submit(queue, &op, num, list, event, false);
}

cl_int CL_API_CALL stub_clEnqueueCopyBufferRect(cl_command_queue queue, cl_mem src, cl_mem dst,
						const size_t *src_origin, const size_t *dst_origin,
						const size_t *region, size_t src_row,
						size_t src_slice, size_t dst_row, size_t dst_slice,
						WAIT)
{
	cl_int err = CALL(clEnqueueCopyBufferRect, U(queue), U(src), U(dst), U(src_origin),
			  U(dst_origin), U(region), UWAIT);
	const size_t pitch[4] = { src_row, src_slice, dst_row, dst_slice };
	struct op op = { .kind = OP_COPY };

	if (err || !queue_check(queue, src, dst, &err))
		return err;
	err = copy_rect_op(&op, src, dst, src_origin, dst_origin, region, pitch);
	if (err)
		return err;
	op_hold(&op);
	return queue_submit(queue, &op, num, list, event, false);
}

cl_int CL_API_CALL stub_clEnqueueFillBuffer(cl_command_queue queue, cl_mem mem, const void *pattern,
					    size_t pattern_size, size_t offset, size_t size, WAIT)
{
	cl_int err = CALL(clEnqueueFillBuffer, U(queue), U(mem), U(pattern), U(pattern_size),
			  U(offset), U(size), UWAIT);
	struct op op = { .kind = OP_FILL };

	if (err || !queue_check(queue, mem, mem, &err))
		return err;
	err = fill_buffer_op(&op, mem, pattern, pattern_size, offset, size);
	if (err)
		return err;
	op_hold(&op);
	return queue_submit(queue, &op, num, list, event, false);
}

void *CL_API_CALL stub_clEnqueueMapBuffer(cl_command_queue queue, cl_mem handle, cl_bool blocking,
					  cl_map_flags flags, size_t offset, size_t size, WAIT,
					  cl_int *errcode_ret)
{
	cl_int err = CALL(clEnqueueMapBuffer, U(queue), U(handle), U(blocking), U(flags), U(offset),
			  U(size), UWAIT);
	struct op op = { .kind = OP_SYNC_OUT, .type = CL_COMMAND_MAP_BUFFER };
	struct mem *mem = (struct mem *)handle;

	if (err || !queue_check(queue, handle, handle, &err))
		return creation_failed(errcode_ret, err);
	if (mem_is_image(mem))
		return creation_failed(errcode_ret, CL_INVALID_MEM_OBJECT);
	if (!size || offset > mem->size || size > mem->size - offset)
		return creation_failed(errcode_ret, CL_INVALID_VALUE);
	op.mem[0] = mem;
	op_hold(&op);
	err = queue_submit(queue, &op, num, list, event, blocking);
	if (err)
		return creation_failed(errcode_ret, err);
	atomic_fetch_add(&mem->maps, 1);
	if (errcode_ret)
		*errcode_ret = CL_SUCCESS;
	return (mem->host_ptr ? mem->host_ptr : mem->data) + offset;
}

cl_int CL_API_CALL stub_clEnqueueUnmapMemObject(cl_command_queue queue, cl_mem handle, void *mapped,
						WAIT)
{
	cl_int err = CALL(clEnqueueUnmapMemObject, U(queue), U(handle), U(mapped), UWAIT);
	struct op op = { .kind = OP_SYNC_IN, .type = CL_COMMAND_UNMAP_MEM_OBJECT };
	struct mem *mem = (struct mem *)handle;
	unsigned char *from;

	if (err || !queue_check(queue, handle, handle, &err))
		return err;
	from = mem->host_ptr ? mem->host_ptr : mem->data;
	op.mem[0] = mem;
	if (!atomic_load(&mem->maps) || (uintptr_t)mapped - (uintptr_t)from >= mem->size)
		return CL_INVALID_VALUE;
	op_hold(&op);
	err = queue_submit(queue, &op, num, list, event, false);
	if (!err)
		atomic_fetch_sub(&mem->maps, 1);
	return err;
}

cl_int CL_API_CALL stub_clEnqueueMigrateMemObjects(cl_command_queue queue, cl_uint count,
						   const cl_mem *mems, cl_mem_migration_flags flags,
						   WAIT)
{
	cl_int err = CALL(clEnqueueMigrateMemObjects, U(queue), U(count), U(mems), U(flags), UWAIT);
	struct op op = { .type = CL_COMMAND_MIGRATE_MEM_OBJECTS };

	if (!err && (!count || !mems))
		err = CL_INVALID_VALUE;
	for (cl_uint i = 0; !err && i < count; i++)
		queue_check(queue, mems[i], mems[i], &err);
	return err ? err : queue_submit(queue, &op, num, list, event, false);
}

static struct launch *native_create(void(CL_CALLBACK *run)(void *), const void *args, size_t size)
{
	struct launch *launch = calloc(1, sizeof(*launch));

	launch->native = run;
	launch->native_args = calloc(1, size + 1);
	memcpy(launch->native_args, args ? args : "", size);
	return launch;
}

cl_int CL_API_CALL stub_clEnqueueNativeKernel(cl_command_queue queue,
					      void(CL_CALLBACK *run)(void *), void *args,
					      size_t size, cl_uint count, const cl_mem *mems,
					      const void **locations, WAIT)
{
	cl_int err = CALL(clEnqueueNativeKernel, U(queue), U(run), U(args), U(size), U(count),
			  U(mems), U(locations), UWAIT);
	struct op op = { .kind = OP_LAUNCH, .type = CL_COMMAND_NATIVE_KERNEL };

	if (err)
		return err;
	if (!object_get(queue, STUB_QUEUE))
		return CL_INVALID_COMMAND_QUEUE;
	if (!run || !args != !size || !count != !mems || !count != !locations || count > 16)
		return CL_INVALID_VALUE;
	if (stub_get(STUB_NO_NATIVE_KERNEL))
		return CL_INVALID_OPERATION;
	for (cl_uint i = 0; i < count; i++)
		if (!queue_check(queue, mems[i], mems[i], &err))
			return err;
	op.launch = native_create(run, args, size);
	for (cl_uint i = 0; i < count; i++) {
		op.launch->native_at[i] = (size_t)((const char *)locations[i] - (const char *)args);
		op.launch->arg[i].mem = (struct mem *)mems[i];
		object_retain(mems[i]);
	}
	op.launch->num_args = count;
	return queue_submit(queue, &op, num, list, event, false);
}

static cl_int enqueue_sync(cl_int err, cl_command_queue queue, cl_command_type type, bool barrier,
			   WAIT)
{
	struct op op = { .type = type, .barrier = barrier, .waits_all = !num };

	if (!err && !object_get(queue, STUB_QUEUE))
		err = CL_INVALID_COMMAND_QUEUE;
	return err ? err : queue_submit(queue, &op, num, list, event, false);
}

cl_int CL_API_CALL stub_clEnqueueMarkerWithWaitList(cl_command_queue queue, WAIT)
{
	cl_int err = CALL(clEnqueueMarkerWithWaitList, U(queue), UWAIT);

	return enqueue_sync(err, queue, CL_COMMAND_MARKER, false, num, list, event);
}

cl_int CL_API_CALL stub_clEnqueueBarrierWithWaitList(cl_command_queue queue, WAIT)
{
	cl_int err = CALL(clEnqueueBarrierWithWaitList, U(queue), UWAIT);

	return enqueue_sync(err, queue, CL_COMMAND_BARRIER, true, num, list, event);
}

cl_int CL_API_CALL stub_clEnqueueMarker(cl_command_queue queue, cl_event *event)
{
	cl_int err = CALL(clEnqueueMarker, U(queue), U(event));

	if (!err && !event)
		err = CL_INVALID_VALUE;
	return enqueue_sync(err, queue, CL_COMMAND_MARKER, false, 0, NULL, event);
}

cl_int CL_API_CALL stub_clEnqueueBarrier(cl_command_queue queue)
{
	cl_int err = CALL(clEnqueueBarrier, U(queue));

	return enqueue_sync(err, queue, CL_COMMAND_BARRIER, true, 0, NULL, NULL);
}

cl_int CL_API_CALL stub_clEnqueueWaitForEvents(cl_command_queue queue, cl_uint num,
					       const cl_event *list)
{
	cl_int err = CALL(clEnqueueWaitForEvents, U(queue), U(num), U(list));

	if (!err && (!num || !list))
		err = CL_INVALID_VALUE;
	return enqueue_sync(err, queue, CL_COMMAND_BARRIER, true, num, list, NULL);
}
