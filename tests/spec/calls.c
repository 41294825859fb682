/* SPDX-License-Identifier: Apache-2.0 */
#include "calls.h"

#include "kernels.h"

static const size_t zero[3];
static const size_t rect[3] = { SIDE * PIXEL, SIDE, 1 }; /* 64 bytes as 4 rows of 16 */
static const size_t square[3] = { SIDE, SIDE, 1 };

/* Expects the bytes of call_prepare() in the object, and writes c->host over the bytes. */
static cl_int use_mapped(struct call *c, unsigned char *mapped, size_t pitch)
{
	const struct object *o = c->object;

	for (size_t i = 0; i < BYTES; i++) {
		unsigned char *byte = mapped + i / o->columns * pitch + i % o->columns;

		if (*byte != spec_pattern_byte(i, OBJECT_SEED))
			return 1;
		*byte = c->host[i];
	}
	return CL_SUCCESS;
}

static cl_int call_unmap_object(struct call *c, cl_event *event)
{
	return clEnqueueUnmapMemObject(spec.queue, c->object->mem, c->mapped, 0, NULL, event);
}

static cl_int call_map_by_buffer(struct call *c, cl_event *event)
{
	cl_int error = 1;

	c->mapped = clEnqueueMapBuffer(spec.queue, c->object->mem, CL_TRUE,
				       CL_MAP_READ | CL_MAP_WRITE, 0, BYTES, 0, NULL, event,
				       &error);
	return error ? error : use_mapped(c, c->mapped, c->object->pitch);
}

static cl_int call_map_by_image(struct call *c, cl_event *event)
{
	cl_int error = 1;

	c->mapped = clEnqueueMapImage(spec.queue, c->object->mem, CL_TRUE,
				      CL_MAP_READ | CL_MAP_WRITE, zero, c->region, &c->row_pitch,
				      &c->slice_pitch, 0, NULL, event, &error);
	return error ? error : use_mapped(c, c->mapped, c->row_pitch);
}

cl_int call_clEnqueueMapBuffer(struct call *c)
{
	cl_int error = call_map_by_buffer(c, &c->event);

	return error ? error : call_unmap_object(c, NULL);
}

cl_int call_clEnqueueMapImage(struct call *c)
{
	cl_int error = call_map_by_image(c, &c->event);

	return error ? error : call_unmap_object(c, NULL);
}

cl_int call_clEnqueueUnmapMemObject(struct call *c)
{
	const struct object *o = c->object;
	cl_int error;

	if (spec.version < VERSION_1_1_0)
		return clEnqueueUnmapMemObject(spec.queue, o->mem, o->memory + o->origin, 0, NULL,
					       &c->event);
	error = o->region[0] ? call_map_by_image(c, NULL) : call_map_by_buffer(c, NULL);
	return error ? error : call_unmap_object(c, &c->event);
}

cl_int call_clEnqueueReadImage(struct call *c)
{
	return clEnqueueReadImage(spec.queue, c->object->mem, CL_TRUE, zero, c->region, 0, 0,
				  c->host, 0, NULL, &c->event);
}

cl_int call_clEnqueueWriteImage(struct call *c)
{
	return clEnqueueWriteImage(spec.queue, c->object->mem, CL_TRUE, zero, c->region, 0, 0,
				   c->host, 0, NULL, &c->event);
}

cl_int call_clEnqueueReadBuffer(struct call *c)
{
	return clEnqueueReadBuffer(spec.queue, c->object->mem, CL_TRUE, 0, BYTES, c->host, 0, NULL,
				   &c->event);
}

cl_int call_clEnqueueReadBufferRect(struct call *c)
{
	return clEnqueueReadBufferRect(spec.queue, c->object->mem, CL_TRUE, zero, zero, rect,
				       rect[0], 0, rect[0], 0, c->host, 0, NULL, &c->event);
}

cl_int call_clEnqueueWriteBuffer(struct call *c)
{
	return clEnqueueWriteBuffer(spec.queue, c->object->mem, CL_TRUE, 0, BYTES, c->host, 0, NULL,
				    &c->event);
}

cl_int call_clEnqueueWriteBufferRect(struct call *c)
{
	return clEnqueueWriteBufferRect(spec.queue, c->object->mem, CL_TRUE, zero, zero, rect,
					rect[0], 0, rect[0], 0, c->host, 0, NULL, &c->event);
}

static cl_mem call_source(const struct call *c)
{
	return c->role == SOURCE ? c->object->mem : c->partner;
}

static cl_mem call_destination(const struct call *c)
{
	return c->role == SOURCE ? c->partner : c->object->mem;
}

cl_int call_clEnqueueCopyBuffer(struct call *c)
{
	return clEnqueueCopyBuffer(spec.queue, call_source(c), call_destination(c), 0, 0, BYTES, 0,
				   NULL, &c->event);
}

cl_int call_clEnqueueCopyBufferRect(struct call *c)
{
	return clEnqueueCopyBufferRect(spec.queue, call_source(c), call_destination(c), zero, zero,
				       rect, rect[0], 0, rect[0], 0, 0, NULL, &c->event);
}

cl_int call_clEnqueueCopyBufferToImage(struct call *c)
{
	return clEnqueueCopyBufferToImage(spec.queue, call_source(c), call_destination(c), 0, zero,
					  c->region, 0, NULL, &c->event);
}

cl_int call_clEnqueueCopyImageToBuffer(struct call *c)
{
	return clEnqueueCopyImageToBuffer(spec.queue, call_source(c), call_destination(c), zero,
					  c->region, 0, 0, NULL, &c->event);
}

cl_int call_clEnqueueCopyImage(struct call *c)
{
	return clEnqueueCopyImage(spec.queue, call_source(c), call_destination(c), zero, zero,
				  c->region, 0, NULL, &c->event);
}

/* c->host becomes the bytes that a fill with @pixel leaves in the destination. */
static void repeat_in_host(struct call *c, const unsigned char pixel[PIXEL])
{
	for (size_t i = 0; i < BYTES; i++)
		c->host[i] = pixel[i % PIXEL];
}

cl_int call_clEnqueueFillBuffer(struct call *c)
{
	static const unsigned char pixel[PIXEL] = { 1, 22, 133, 244 };

	repeat_in_host(c, pixel);
	return clEnqueueFillBuffer(spec.queue, c->object->mem, pixel, PIXEL, 0, BYTES, 0, NULL,
				   &c->event);
}

cl_int call_clEnqueueFillImage(struct call *c)
{
	static const unsigned char pixel[PIXEL] = { 244, 133, 22, 1 };
	static const cl_uint color[4] = { 244, 133, 22, 1 };

	repeat_in_host(c, pixel);
	return clEnqueueFillImage(spec.queue, c->object->mem, color, zero, c->region, 0, NULL,
				  &c->event);
}

/* As large as either shape of region. */
static cl_mem plain_image(void)
{
	const cl_image_desc desc = {
		.image_type = CL_MEM_OBJECT_IMAGE2D,
		.image_width = BYTES / PIXEL,
		.image_height = SIDE,
	};
	cl_int error = 1;
	cl_mem mem;

	need_images();
	mem = clCreateImage(spec.context, CL_MEM_READ_WRITE, &rgba, &desc, NULL, &error);
	EXPECT_EQ(error, CL_SUCCESS);
	return released_later(mem);
}

static void write_partner(struct call *c, enum partner partner)
{
	if (partner == PLAIN_BUFFER)
		plain_write(c->partner, c->host, BYTES);
	if (partner == PLAIN_IMAGE)
		EXPECT_EQ(clEnqueueWriteImage(spec.queue, c->partner, CL_TRUE, zero, c->region, 0,
					      0, c->host, 0, NULL, NULL),
			  CL_SUCCESS);
}

void call_prepare(struct call *c, const struct call_row *row, const struct object *o)
{
	memset(c, 0, sizeof(*c));
	c->object = o;
	c->role = row->role;
	memcpy(c->region, o->region[0] ? o->region : square, sizeof(c->region));
	if (row->partner == PLAIN_BUFFER)
		c->partner = plain_buffer(BYTES);
	if (row->partner == PLAIN_IMAGE)
		c->partner = plain_image();
	spec_fill_memory(c->host, BYTES, OTHER_SEED);
	write_partner(c, row->partner);
	object_fill(o, OBJECT_SEED);
}

bool call_other_is(struct call *c, const struct call_row *row, unsigned int seed)
{
	if (row->partner == PLAIN_BUFFER)
		plain_read(c->partner, c->host, BYTES);
	if (row->partner == PLAIN_IMAGE)
		EXPECT_EQ(clEnqueueReadImage(spec.queue, c->partner, CL_TRUE, zero, c->region, 0, 0,
					     c->host, 0, NULL, NULL),
			  CL_SUCCESS);
	return spec_memory_is(c->host, BYTES, seed);
}

_Static_assert(sizeof(union call_rows) == sizeof(((union call_rows *)NULL)->all),
	       "call_rows.all contains each row");

const union call_rows call_rows = {
	.map_buffer = {
		{ "map_buffer", call_clEnqueueMapBuffer, BUFFER, DESTINATION, NONE },
		{ "map_sub_buffer", call_clEnqueueMapBuffer, SUB_BUFFER, DESTINATION, NONE },
	},
	.map_image = {
		{ "map_image", call_clEnqueueMapImage, IMAGE, DESTINATION, NONE },
		{ "map_image_of_sub", call_clEnqueueMapImage,
		  IMAGE_OF_SUB_BUFFER, DESTINATION, NONE },
		{ "map_image_1d", call_clEnqueueMapImage, IMAGE_1D, DESTINATION, NONE },
	},
	.unmap_mem_object = {
		{ "unmap_buffer", call_clEnqueueUnmapMemObject, BUFFER, DESTINATION, NONE },
		{ "unmap_sub_buffer", call_clEnqueueUnmapMemObject, SUB_BUFFER, DESTINATION, NONE },
		{ "unmap_image", call_clEnqueueUnmapMemObject, IMAGE, DESTINATION, NONE },
		{ "unmap_image_of_sub", call_clEnqueueUnmapMemObject,
		  IMAGE_OF_SUB_BUFFER, DESTINATION, NONE },
		{ "unmap_image_1d", call_clEnqueueUnmapMemObject, IMAGE_1D, DESTINATION, NONE },
	},
	.read_image = {
		{ "read_image", call_clEnqueueReadImage, IMAGE, SOURCE, NONE },
		{ "read_image_of_sub", call_clEnqueueReadImage, IMAGE_OF_SUB_BUFFER, SOURCE, NONE },
		{ "read_image_1d", call_clEnqueueReadImage, IMAGE_1D, SOURCE, NONE },
	},
	.write_image = {
		{ "write_image", call_clEnqueueWriteImage, IMAGE, DESTINATION, NONE },
		{ "write_image_of_sub", call_clEnqueueWriteImage,
		  IMAGE_OF_SUB_BUFFER, DESTINATION, NONE },
		{ "write_image_1d", call_clEnqueueWriteImage, IMAGE_1D, DESTINATION, NONE },
	},
	.read_buffer = {
		{ "read_buffer", call_clEnqueueReadBuffer, BUFFER, SOURCE, NONE },
		{ "read_sub_buffer", call_clEnqueueReadBuffer, SUB_BUFFER, SOURCE, NONE },
	},
	.read_buffer_rect = {
		{ "read_buffer_rect", call_clEnqueueReadBufferRect, BUFFER, SOURCE, NONE },
		{ "read_sub_buffer_rect", call_clEnqueueReadBufferRect, SUB_BUFFER, SOURCE, NONE },
	},
	.write_buffer = {
		{ "write_buffer", call_clEnqueueWriteBuffer, BUFFER, DESTINATION, NONE },
		{ "write_sub_buffer", call_clEnqueueWriteBuffer, SUB_BUFFER, DESTINATION, NONE },
	},
	.write_buffer_rect = {
		{ "write_buffer_rect", call_clEnqueueWriteBufferRect, BUFFER, DESTINATION, NONE },
		{ "write_sub_buffer_rect", call_clEnqueueWriteBufferRect,
		  SUB_BUFFER, DESTINATION, NONE },
	},
	.copy_buffer = {
		{ "copy_from_buffer", call_clEnqueueCopyBuffer, BUFFER, SOURCE, PLAIN_BUFFER },
		{ "copy_from_sub_buffer", call_clEnqueueCopyBuffer,
		  SUB_BUFFER, SOURCE, PLAIN_BUFFER },
		{ "copy_to_buffer", call_clEnqueueCopyBuffer, BUFFER, DESTINATION, PLAIN_BUFFER },
		{ "copy_to_sub_buffer", call_clEnqueueCopyBuffer,
		  SUB_BUFFER, DESTINATION, PLAIN_BUFFER },
	},
	.copy_buffer_rect = {
		{ "copy_rect_from_buffer", call_clEnqueueCopyBufferRect,
		  BUFFER, SOURCE, PLAIN_BUFFER },
		{ "copy_rect_from_sub_buffer", call_clEnqueueCopyBufferRect,
		  SUB_BUFFER, SOURCE, PLAIN_BUFFER },
		{ "copy_rect_to_buffer", call_clEnqueueCopyBufferRect,
		  BUFFER, DESTINATION, PLAIN_BUFFER },
		{ "copy_rect_to_sub_buffer", call_clEnqueueCopyBufferRect,
		  SUB_BUFFER, DESTINATION, PLAIN_BUFFER },
	},
	.copy_buffer_to_image = {
		{ "copy_buffer_to_plain_image", call_clEnqueueCopyBufferToImage,
		  BUFFER, SOURCE, PLAIN_IMAGE },
		{ "copy_sub_buffer_to_plain_image", call_clEnqueueCopyBufferToImage,
		  SUB_BUFFER, SOURCE, PLAIN_IMAGE },
		{ "copy_plain_buffer_to_image", call_clEnqueueCopyBufferToImage,
		  IMAGE, DESTINATION, PLAIN_BUFFER },
		{ "copy_plain_buffer_to_image_of_sub", call_clEnqueueCopyBufferToImage,
		  IMAGE_OF_SUB_BUFFER, DESTINATION, PLAIN_BUFFER },
		{ "copy_plain_buffer_to_image_1d", call_clEnqueueCopyBufferToImage,
		  IMAGE_1D, DESTINATION, PLAIN_BUFFER },
	},
	.copy_image_to_buffer = {
		{ "copy_image_to_plain_buffer", call_clEnqueueCopyImageToBuffer,
		  IMAGE, SOURCE, PLAIN_BUFFER },
		{ "copy_image_of_sub_to_plain_buffer", call_clEnqueueCopyImageToBuffer,
		  IMAGE_OF_SUB_BUFFER, SOURCE, PLAIN_BUFFER },
		{ "copy_image_1d_to_plain_buffer", call_clEnqueueCopyImageToBuffer,
		  IMAGE_1D, SOURCE, PLAIN_BUFFER },
		{ "copy_plain_image_to_buffer", call_clEnqueueCopyImageToBuffer,
		  BUFFER, DESTINATION, PLAIN_IMAGE },
		{ "copy_plain_image_to_sub_buffer", call_clEnqueueCopyImageToBuffer,
		  SUB_BUFFER, DESTINATION, PLAIN_IMAGE },
	},
	.copy_image = {
		{ "copy_from_image", call_clEnqueueCopyImage, IMAGE, SOURCE, PLAIN_IMAGE },
		{ "copy_from_image_of_sub", call_clEnqueueCopyImage,
		  IMAGE_OF_SUB_BUFFER, SOURCE, PLAIN_IMAGE },
		{ "copy_from_image_1d", call_clEnqueueCopyImage, IMAGE_1D, SOURCE, PLAIN_IMAGE },
		{ "copy_to_image", call_clEnqueueCopyImage, IMAGE, DESTINATION, PLAIN_IMAGE },
		{ "copy_to_image_of_sub", call_clEnqueueCopyImage,
		  IMAGE_OF_SUB_BUFFER, DESTINATION, PLAIN_IMAGE },
		{ "copy_to_image_1d", call_clEnqueueCopyImage, IMAGE_1D, DESTINATION, PLAIN_IMAGE },
	},
	.fill_buffer = {
		{ "fill_buffer", call_clEnqueueFillBuffer, BUFFER, DESTINATION, NONE },
		{ "fill_sub_buffer", call_clEnqueueFillBuffer, SUB_BUFFER, DESTINATION, NONE },
	},
	.fill_image = {
		{ "fill_image", call_clEnqueueFillImage, IMAGE, DESTINATION, NONE },
		{ "fill_image_of_sub", call_clEnqueueFillImage,
		  IMAGE_OF_SUB_BUFFER, DESTINATION, NONE },
		{ "fill_image_1d", call_clEnqueueFillImage, IMAGE_1D, DESTINATION, NONE },
	},
};
