/* SPDX-License-Identifier: Apache-2.0 */
/* Copies and fills as boxes of memory, for clEnqueue* and clCommand*KHR alike. */
#include "internal.h"

static bool copy_fits(size_t offset, size_t bytes, size_t size)
{
	return offset <= size && bytes <= size - offset;
}

cl_int box_of_buffer(struct box *box, unsigned char *memory, size_t size, const size_t *origin,
		     const size_t *region, size_t row_pitch, size_t slice_pitch)
{
	size_t last;

	if (!origin || !region || !region[0] || !region[1] || !region[2])
		return CL_INVALID_VALUE;
	box->row_pitch = row_pitch ? row_pitch : region[0];
	box->slice_pitch = slice_pitch ? slice_pitch : box->row_pitch * region[1];
	if (box->row_pitch < region[0] || box->slice_pitch < box->row_pitch * region[1])
		return CL_INVALID_VALUE;
	last = (origin[2] + region[2] - 1) * box->slice_pitch +
	       (origin[1] + region[1] - 1) * box->row_pitch + origin[0] + region[0];
	if (!memory || last > size)
		return CL_INVALID_VALUE;
	box->at = memory + origin[2] * box->slice_pitch + origin[1] * box->row_pitch + origin[0];
	return CL_SUCCESS;
}

cl_int box_of_image(struct box *box, const struct mem *mem, const size_t *origin,
		    const size_t *region)
{
	const size_t size[3] = { mem->width, mem->height ? mem->height : 1,
				 mem->depth ? mem->depth : 1 };

	if (!mem_is_image(mem))
		return CL_INVALID_MEM_OBJECT;
	if (!origin || !region)
		return CL_INVALID_VALUE;
	for (int i = 0; i < 3; i++)
		if (!region[i] || !copy_fits(origin[i], region[i], size[i]))
			return CL_INVALID_VALUE;
	box->row_pitch = mem->row_pitch;
	box->slice_pitch = mem->slice_pitch;
	box->at = mem->data + origin[2] * mem->slice_pitch + origin[1] * mem->row_pitch +
		  origin[0] * mem->element;
	return CL_SUCCESS;
}

static void op_set_extent(struct op *op, size_t bytes, size_t rows, size_t slices)
{
	op->bytes = bytes;
	op->rows = rows;
	op->slices = slices;
}

cl_int copy_buffer_op(struct op *op, cl_mem src_handle, cl_mem dst_handle, size_t src_offset,
		      size_t dst_offset, size_t size)
{
	struct mem *src = (struct mem *)src_handle, *dst = (struct mem *)dst_handle;

	op->kind = OP_COPY;
	op->type = CL_COMMAND_COPY_BUFFER;
	if (mem_is_image(src) || mem_is_image(dst))
		return CL_INVALID_MEM_OBJECT;
	if (!size || !copy_fits(src_offset, size, src->size) ||
	    !copy_fits(dst_offset, size, dst->size))
		return CL_INVALID_VALUE;
	if (src == dst && src_offset < dst_offset + size && dst_offset < src_offset + size)
		return CL_MEM_COPY_OVERLAP;
	op->mem[0] = src;
	op->mem[1] = dst;
	op->src.at = src->data + src_offset;
	op->dst.at = dst->data + dst_offset;
	op_set_extent(op, size, 1, 1);
	return CL_SUCCESS;
}

static cl_int rect_of(struct box *box, const struct mem *mem, const size_t *origin,
		      const size_t *region, const size_t *pitch)
{
	return box_of_buffer(box, mem->data, mem->size, origin, region, pitch[0], pitch[1]);
}

cl_int copy_rect_op(struct op *op, cl_mem src_handle, cl_mem dst_handle, const size_t *src_origin,
		    const size_t *dst_origin, const size_t *region, const size_t *pitch)
{
	struct mem *src = (struct mem *)src_handle, *dst = (struct mem *)dst_handle;
	cl_int err = rect_of(&op->src, src, src_origin, region, pitch);

	op->kind = OP_COPY;
	op->type = CL_COMMAND_COPY_BUFFER_RECT;
	if (!err)
		err = rect_of(&op->dst, dst, dst_origin, region, pitch + 2);
	if (err)
		return err;
	op->mem[0] = src;
	op->mem[1] = dst;
	op_set_extent(op, region[0], region[1], region[2]);
	return CL_SUCCESS;
}

cl_int copy_image_op(struct op *op, cl_mem src_handle, cl_mem dst_handle, const size_t *src_origin,
		     const size_t *dst_origin, const size_t *region)
{
	struct mem *src = (struct mem *)src_handle, *dst = (struct mem *)dst_handle;
	cl_int err = box_of_image(&op->src, src, src_origin, region);

	op->kind = OP_COPY;
	op->type = CL_COMMAND_COPY_IMAGE;
	if (!err)
		err = box_of_image(&op->dst, dst, dst_origin, region);
	if (!err && memcmp(&src->format, &dst->format, sizeof(src->format)))
		err = CL_IMAGE_FORMAT_MISMATCH;
	if (err)
		return err;
	op->mem[0] = src;
	op->mem[1] = dst;
	op_set_extent(op, region[0] * src->element, region[1], region[2]);
	return CL_SUCCESS;
}

cl_int copy_image_buffer_op(struct op *op, cl_mem image_handle, cl_mem buffer_handle,
			    const size_t *origin, const size_t *region, size_t offset,
			    bool to_buffer)
{
	struct mem *image = (struct mem *)image_handle, *buffer = (struct mem *)buffer_handle;
	struct box *of_image = to_buffer ? &op->src : &op->dst;
	struct box *of_buffer = to_buffer ? &op->dst : &op->src;
	cl_int err = box_of_image(of_image, image, origin, region);
	size_t row;

	op->kind = OP_COPY;
	op->type = to_buffer ? CL_COMMAND_COPY_IMAGE_TO_BUFFER : CL_COMMAND_COPY_BUFFER_TO_IMAGE;
	if (err)
		return err;
	row = region[0] * image->element;
	if (mem_is_image(buffer))
		return CL_INVALID_MEM_OBJECT;
	if (!copy_fits(offset, row * region[1] * region[2], buffer->size))
		return CL_INVALID_VALUE;
	*of_buffer = (struct box){ buffer->data + offset, row, row * region[1] };
	op->mem[0] = image;
	op->mem[1] = buffer;
	op_set_extent(op, row, region[1], region[2]);
	return CL_SUCCESS;
}

cl_int fill_buffer_op(struct op *op, cl_mem handle, const void *pattern, size_t pattern_size,
		      size_t offset, size_t size)
{
	struct mem *buffer = (struct mem *)handle;

	op->kind = OP_FILL;
	op->type = CL_COMMAND_FILL_BUFFER;
	if (mem_is_image(buffer))
		return CL_INVALID_MEM_OBJECT;
	if (!pattern || !pattern_size || pattern_size > sizeof(op->pattern) ||
	    pattern_size & (pattern_size - 1))
		return CL_INVALID_VALUE;
	if (offset % pattern_size || size % pattern_size || !copy_fits(offset, size, buffer->size))
		return CL_INVALID_VALUE;
	op->mem[0] = buffer;
	op->dst.at = buffer->data + offset;
	op->pattern_size = pattern_size;
	memcpy(op->pattern, pattern, pattern_size);
	op_set_extent(op, size, 1, 1);
	return CL_SUCCESS;
}

/* The color as the format's bytes, for 8-bit and 32-bit channels. */
static void color_bytes(unsigned char *out, const struct mem *image, const void *color)
{
	const cl_float *real = color;
	const cl_uint *number = color;
	size_t channels = image->format.image_channel_data_type == CL_UNORM_INT8 ||
					  image->format.image_channel_data_type == CL_UNSIGNED_INT8
				  ? image->element
				  : 0;

	/* No channel of a colour is negative.  NOLINTBEGIN(bugprone-incorrect-roundings) */
	for (size_t i = 0; i < channels; i++)
		out[i] = image->format.image_channel_data_type == CL_UNORM_INT8
				 ? (unsigned char)(real[i] * 255.0f + 0.5f)
				 : (unsigned char)number[i];
	/* NOLINTEND(bugprone-incorrect-roundings) */
	if (!channels)
		memcpy(out, color, image->element);
}

cl_int fill_image_op(struct op *op, cl_mem handle, const void *color, const size_t *origin,
		     const size_t *region)
{
	struct mem *image = (struct mem *)handle;
	cl_int err = box_of_image(&op->dst, image, origin, region);

	op->kind = OP_FILL;
	op->type = CL_COMMAND_FILL_IMAGE;
	if (!err && !color)
		err = CL_INVALID_VALUE;
	if (err)
		return err;
	op->mem[0] = image;
	op->pattern_size = image->element;
	color_bytes(op->pattern, image, color);
	op_set_extent(op, region[0] * image->element, region[1], region[2]);
	return CL_SUCCESS;
}
