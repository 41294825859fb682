/* SPDX-License-Identifier: Apache-2.0 */
/* clEnqueue*Image. */
#include "internal.h"

static cl_int enqueue_image_transfer(cl_int err, cl_command_queue queue, cl_mem handle,
				     bool blocking, const size_t *origin, const size_t *region,
				     size_t row_pitch, size_t slice_pitch, void *memory, bool write,
				     WAIT)
{
	struct op op = { .kind = OP_COPY };
	struct mem *image = (struct mem *)handle;
	struct box *host = write ? &op.src : &op.dst;

	if (err || !queue_check(queue, handle, handle, &err))
		return err;
	err = box_of_image(write ? &op.dst : &op.src, image, origin, region);
	if (!err && !memory)
		err = CL_INVALID_VALUE;
	if (err)
		return err;
	op.type = write ? CL_COMMAND_WRITE_IMAGE : CL_COMMAND_READ_IMAGE;
	op.mem[0] = image;
	op.bytes = region[0] * image->element;
	op.rows = region[1];
	op.slices = region[2];
	host->at = memory;
	host->row_pitch = row_pitch ? row_pitch : op.bytes;
	host->slice_pitch = slice_pitch ? slice_pitch : host->row_pitch * op.rows;
	op_hold(&op);
	return queue_submit(queue, &op, num, list, event, blocking);
}

cl_int CL_API_CALL stub_clEnqueueReadImage(cl_command_queue queue, cl_mem image, cl_bool blocking,
					   const size_t *origin, const size_t *region,
					   size_t row_pitch, size_t slice_pitch, void *out, WAIT)
{
	cl_int err = CALL(clEnqueueReadImage, U(queue), U(image), U(blocking), U(origin), U(region),
			  U(row_pitch), U(slice_pitch), U(out), UWAIT);

	return enqueue_image_transfer(err, queue, image, blocking, origin, region, row_pitch,
				      slice_pitch, out, false, num, list, event);
}

cl_int CL_API_CALL stub_clEnqueueWriteImage(cl_command_queue queue, cl_mem image, cl_bool blocking,
					    const size_t *origin, const size_t *region,
					    size_t row_pitch, size_t slice_pitch, const void *in,
					    WAIT)
{
	cl_int err = CALL(clEnqueueWriteImage, U(queue), U(image), U(blocking), U(origin),
			  U(region), U(row_pitch), U(slice_pitch), U(in), UWAIT);

	return enqueue_image_transfer(err, queue, image, blocking, origin, region, row_pitch,
				      slice_pitch, (void *)(uintptr_t)in, true, num, list, event);
}

cl_int CL_API_CALL stub_clEnqueueCopyImage(cl_command_queue queue, cl_mem src, cl_mem dst,
					   const size_t *src_origin, const size_t *dst_origin,
					   const size_t *region, WAIT)
{
	cl_int err = CALL(clEnqueueCopyImage, U(queue), U(src), U(dst), U(src_origin),
			  U(dst_origin), U(region), UWAIT);
	struct op op = { .kind = OP_COPY };

	if (err || !queue_check(queue, src, dst, &err))
		return err;
	err = copy_image_op(&op, src, dst, src_origin, dst_origin, region);
	if (err)
		return err;
	op_hold(&op);
	return queue_submit(queue, &op, num, list, event, false);
}

cl_int CL_API_CALL stub_clEnqueueCopyImageToBuffer(cl_command_queue queue, cl_mem src, cl_mem dst,
						   const size_t *origin, const size_t *region,
						   size_t offset, WAIT)
{
	cl_int err = CALL(clEnqueueCopyImageToBuffer, U(queue), U(src), U(dst), U(origin),
			  U(region), U(offset), UWAIT);
	struct op op = { .kind = OP_COPY };

	if (err || !queue_check(queue, src, dst, &err))
		return err;
	err = copy_image_buffer_op(&op, src, dst, origin, region, offset, true);
	if (err)
		return err;
	op_hold(&op);
	return queue_submit(queue, &op, num, list, event, false);
}

cl_int CL_API_CALL stub_clEnqueueCopyBufferToImage(cl_command_queue queue, cl_mem src, cl_mem dst,
						   size_t offset, const size_t *origin,
						   const size_t *region, WAIT)
{
	cl_int err = CALL(clEnqueueCopyBufferToImage, U(queue), U(src), U(dst), U(offset),
			  U(origin), U(region), UWAIT);
	struct op op = { .kind = OP_COPY };

	if (err || !queue_check(queue, src, dst, &err))
		return err;
	err = copy_image_buffer_op(&op, dst, src, origin, region, offset, false);
	if (err)
		return err;
	op_hold(&op);
	return queue_submit(queue, &op, num, list, event, false);
}

cl_int CL_API_CALL stub_clEnqueueFillImage(cl_command_queue queue, cl_mem image, const void *color,
					   const size_t *origin, const size_t *region, WAIT)
{
	cl_int err =
		CALL(clEnqueueFillImage, U(queue), U(image), U(color), U(origin), U(region), UWAIT);
	struct op op = { .kind = OP_FILL };

	if (err || !queue_check(queue, image, image, &err))
		return err;
	err = fill_image_op(&op, image, color, origin, region);
	if (err)
		return err;
	op_hold(&op);
	return queue_submit(queue, &op, num, list, event, false);
}

void *CL_API_CALL stub_clEnqueueMapImage(cl_command_queue queue, cl_mem handle, cl_bool blocking,
					 cl_map_flags flags, const size_t *origin,
					 const size_t *region, size_t *row_pitch,
					 size_t *slice_pitch, WAIT, cl_int *errcode_ret)
{
	cl_int err = CALL(clEnqueueMapImage, U(queue), U(handle), U(blocking), U(flags), U(origin),
			  U(region), U(row_pitch), U(slice_pitch), UWAIT);
	struct op op = { .kind = OP_SYNC_OUT, .type = CL_COMMAND_MAP_IMAGE };
	struct mem *image = (struct mem *)handle;
	struct box box;

	if (err || !queue_check(queue, handle, handle, &err))
		return creation_failed(errcode_ret, err);
	err = box_of_image(&box, image, origin, region);
	if (!err && !row_pitch)
		err = CL_INVALID_VALUE;
	if (err)
		return creation_failed(errcode_ret, err);
	op.mem[0] = image;
	op_hold(&op);
	err = queue_submit(queue, &op, num, list, event, blocking);
	if (err)
		return creation_failed(errcode_ret, err);
	atomic_fetch_add(&image->maps, 1);
	*row_pitch = image->row_pitch;
	if (slice_pitch)
		*slice_pitch = image->depth ? image->slice_pitch : 0;
	if (errcode_ret)
		*errcode_ret = CL_SUCCESS;
	return (image->host_ptr ? image->host_ptr : image->data) + (box.at - image->data);
}
