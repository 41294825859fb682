/* SPDX-License-Identifier: Apache-2.0 */
#include "calls.h"

/* Rows of a rectangle in a buffer have 16 bytes. */
enum { LINE = SIDE * PIXEL };

static cl_uint call_wait_count(const struct call *c)
{
	return c->gate ? 1 : 0;
}

static const cl_event *call_wait_list(const struct call *c)
{
	return c->gate ? &c->gate : NULL;
}

static cl_event *call_event(struct call *c)
{
	return c->form->quiet ? NULL : &c->event;
}

static cl_bool call_blocks(const struct call *c)
{
	return c->form->returns ? CL_FALSE : CL_TRUE;
}

/* The side that is the source, or the destination. */
static const struct call_side *call_side_of(const struct call *c, enum role role)
{
	return c->role == role ? &c->part.object : &c->part.other;
}

struct corner {
	size_t at[3];
};

/* The position of the first byte, in columns of @unit bytes and rows. */
static struct corner call_corner(const struct call_side *side, size_t unit)
{
	return (struct corner){ { side->start % side->pitch / unit, side->start / side->pitch } };
}

static struct corner call_object_pixel(const struct call *c)
{
	return call_corner(&c->part.object, PIXEL);
}

static struct corner call_extent(const struct call *c, size_t unit)
{
	return (struct corner){ { c->part.columns / unit, c->part.rows, 1 } };
}

static cl_map_flags call_map_flags(const struct call *c)
{
	return c->form->map ? c->form->map : CL_MAP_READ | CL_MAP_WRITE;
}

static cl_int call_take_mapped(struct call *c, void *mapped, cl_int error)
{
	c->mapped = mapped;
	if (c->form->quiet)
		return mapped ? CL_SUCCESS : CL_INVALID_OPERATION;
	return error;
}

cl_int call_clEnqueueMapBuffer(struct call *c)
{
	cl_int error = 1;
	void *mapped = clEnqueueMapBuffer(c->queue, c->object->mem, call_blocks(c),
					  call_map_flags(c), c->part.object.start, c->part.columns,
					  call_wait_count(c), call_wait_list(c), call_event(c),
					  c->form->quiet ? NULL : &error);

	return call_take_mapped(c, mapped, error);
}

cl_int call_clEnqueueMapImage(struct call *c)
{
	const struct corner origin = call_object_pixel(c), region = call_extent(c, PIXEL);
	cl_int error = 1;
	void *mapped = clEnqueueMapImage(c->queue, c->object->mem, call_blocks(c),
					 call_map_flags(c), origin.at, region.at, &c->row_pitch,
					 &c->slice_pitch, call_wait_count(c), call_wait_list(c),
					 call_event(c), c->form->quiet ? NULL : &error);

	return call_take_mapped(c, mapped, error);
}

/* climport maps the memory itself. */
static bool call_is_elsewhere(const struct call *c)
{
	const struct object *o = c->object;

	return spec.exact && o->type == HOST_MEMORY && !o->region[0] &&
	       c->mapped != o->memory + o->origin + c->part.object.start;
}

static cl_int call_write_mapped(struct call *c)
{
	const struct call_part *p = &c->part;
	size_t pitch = c->object->region[0] ? c->row_pitch : p->columns;

	for (size_t i = 0; i < p->columns * p->rows; i++) {
		size_t row = i / p->columns, column = i % p->columns;
		unsigned char *byte = (unsigned char *)c->mapped + row * pitch + column;

		if (call_map_flags(c) & CL_MAP_READ &&
		    *byte != spec_pattern_byte(p->object.start + row * p->object.pitch + column,
					       OBJECT_SEED))
			return 1;
		if (call_map_flags(c) != CL_MAP_READ)
			*byte = c->host[p->other.start + row * p->other.pitch + column];
	}
	return CL_SUCCESS;
}

cl_int call_use_mapped(struct call *c)
{
	cl_int error = call_is_elsewhere(c) ? 1 : call_write_mapped(c);

	if (!error)
		error = clEnqueueUnmapMemObject(c->queue, c->object->mem, c->mapped, 0, NULL, NULL);
	c->mapped = NULL;
	return error ? error : clFinish(c->queue);
}

/* A map that blocks, on the first queue, without an event. */
static cl_int call_map_first(struct call *c)
{
	static const struct call_form plain = { .name = "map" };
	struct call first = *c;
	cl_int error;

	first.form = &plain;
	first.queue = spec.queue;
	first.gate = NULL;
	error = c->object->region[0] ? call_clEnqueueMapImage(&first)
				     : call_clEnqueueMapBuffer(&first);
	if (first.event)
		clReleaseEvent(first.event);
	c->mapped = first.mapped;
	c->row_pitch = first.row_pitch;
	return error ? error : call_write_mapped(c);
}

cl_int call_clEnqueueUnmapMemObject(struct call *c)
{
	const struct object *o = c->object;
	void *mapped = o->memory + o->origin;
	cl_int error = CL_SUCCESS;

	if (spec.version >= VERSION_1_1_0 || o->type == EXTERNAL_MEMORY) {
		error = call_map_first(c);
		mapped = c->mapped;
		c->mapped = NULL;
	}
	if (error)
		return error;
	return clEnqueueUnmapMemObject(c->queue, o->mem, mapped, call_wait_count(c),
				       call_wait_list(c), call_event(c));
}

cl_int call_clEnqueueReadImage(struct call *c)
{
	const struct corner origin = call_object_pixel(c), region = call_extent(c, PIXEL);

	return clEnqueueReadImage(c->queue, c->object->mem, call_blocks(c), origin.at, region.at,
				  c->part.other.pitch, 0, c->host + c->part.other.start,
				  call_wait_count(c), call_wait_list(c), call_event(c));
}

cl_int call_clEnqueueWriteImage(struct call *c)
{
	const struct corner origin = call_object_pixel(c), region = call_extent(c, PIXEL);

	return clEnqueueWriteImage(c->queue, c->object->mem, call_blocks(c), origin.at, region.at,
				   c->part.other.pitch, 0, c->host + c->part.other.start,
				   call_wait_count(c), call_wait_list(c), call_event(c));
}

cl_int call_clEnqueueReadBuffer(struct call *c)
{
	return clEnqueueReadBuffer(c->queue, c->object->mem, call_blocks(c), c->part.object.start,
				   c->part.columns, c->host + c->part.other.start,
				   call_wait_count(c), call_wait_list(c), call_event(c));
}

cl_int call_clEnqueueReadBufferRect(struct call *c)
{
	const struct corner object = call_corner(&c->part.object, 1),
			    host = call_corner(&c->part.other, 1), region = call_extent(c, 1);

	return clEnqueueReadBufferRect(c->queue, c->object->mem, call_blocks(c), object.at, host.at,
				       region.at, LINE, 0, LINE, 0, c->host, call_wait_count(c),
				       call_wait_list(c), call_event(c));
}

cl_int call_clEnqueueWriteBuffer(struct call *c)
{
	return clEnqueueWriteBuffer(c->queue, c->object->mem, call_blocks(c), c->part.object.start,
				    c->part.columns, c->host + c->part.other.start,
				    call_wait_count(c), call_wait_list(c), call_event(c));
}

cl_int call_clEnqueueWriteBufferRect(struct call *c)
{
	const struct corner object = call_corner(&c->part.object, 1),
			    host = call_corner(&c->part.other, 1), region = call_extent(c, 1);

	return clEnqueueWriteBufferRect(c->queue, c->object->mem, call_blocks(c), object.at,
					host.at, region.at, LINE, 0, LINE, 0, c->host,
					call_wait_count(c), call_wait_list(c), call_event(c));
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
	return clEnqueueCopyBuffer(c->queue, call_source(c), call_destination(c),
				   call_side_of(c, SOURCE)->start,
				   call_side_of(c, DESTINATION)->start, c->part.columns,
				   call_wait_count(c), call_wait_list(c), call_event(c));
}

cl_int call_clEnqueueCopyBufferRect(struct call *c)
{
	const struct corner from = call_corner(call_side_of(c, SOURCE), 1),
			    to = call_corner(call_side_of(c, DESTINATION), 1),
			    region = call_extent(c, 1);

	return clEnqueueCopyBufferRect(c->queue, call_source(c), call_destination(c), from.at,
				       to.at, region.at, LINE, 0, LINE, 0, call_wait_count(c),
				       call_wait_list(c), call_event(c));
}

cl_int call_clEnqueueCopyBufferToImage(struct call *c)
{
	const struct corner to = call_corner(call_side_of(c, DESTINATION), PIXEL),
			    region = call_extent(c, PIXEL);

	return clEnqueueCopyBufferToImage(c->queue, call_source(c), call_destination(c),
					  call_side_of(c, SOURCE)->start, to.at, region.at,
					  call_wait_count(c), call_wait_list(c), call_event(c));
}

cl_int call_clEnqueueCopyImageToBuffer(struct call *c)
{
	const struct corner from = call_corner(call_side_of(c, SOURCE), PIXEL),
			    region = call_extent(c, PIXEL);

	return clEnqueueCopyImageToBuffer(c->queue, call_source(c), call_destination(c), from.at,
					  region.at, call_side_of(c, DESTINATION)->start,
					  call_wait_count(c), call_wait_list(c), call_event(c));
}

cl_int call_clEnqueueCopyImage(struct call *c)
{
	const struct corner from = call_corner(call_side_of(c, SOURCE), PIXEL),
			    to = call_corner(call_side_of(c, DESTINATION), PIXEL),
			    region = call_extent(c, PIXEL);

	return clEnqueueCopyImage(c->queue, call_source(c), call_destination(c), from.at, to.at,
				  region.at, call_wait_count(c), call_wait_list(c), call_event(c));
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
	return clEnqueueFillBuffer(c->queue, c->object->mem, pixel, PIXEL, c->part.object.start,
				   c->part.columns, call_wait_count(c), call_wait_list(c),
				   call_event(c));
}

cl_int call_clEnqueueFillImage(struct call *c)
{
	static const unsigned char pixel[PIXEL] = { 244, 133, 22, 1 };
	static const cl_uint color[4] = { 244, 133, 22, 1 };
	const struct corner origin = call_object_pixel(c), region = call_extent(c, PIXEL);

	repeat_in_host(c, pixel);
	return clEnqueueFillImage(c->queue, c->object->mem, color, origin.at, region.at,
				  call_wait_count(c), call_wait_list(c), call_event(c));
}

static const struct {
	cl_int (*run)(struct call *);
	cl_command_type type;
} command_types[] = {
	{ call_clEnqueueMapBuffer, CL_COMMAND_MAP_BUFFER },
	{ call_clEnqueueMapImage, CL_COMMAND_MAP_IMAGE },
	{ call_clEnqueueUnmapMemObject, CL_COMMAND_UNMAP_MEM_OBJECT },
	{ call_clEnqueueReadImage, CL_COMMAND_READ_IMAGE },
	{ call_clEnqueueWriteImage, CL_COMMAND_WRITE_IMAGE },
	{ call_clEnqueueReadBuffer, CL_COMMAND_READ_BUFFER },
	{ call_clEnqueueReadBufferRect, CL_COMMAND_READ_BUFFER_RECT },
	{ call_clEnqueueWriteBuffer, CL_COMMAND_WRITE_BUFFER },
	{ call_clEnqueueWriteBufferRect, CL_COMMAND_WRITE_BUFFER_RECT },
	{ call_clEnqueueCopyBuffer, CL_COMMAND_COPY_BUFFER },
	{ call_clEnqueueCopyBufferRect, CL_COMMAND_COPY_BUFFER_RECT },
	{ call_clEnqueueCopyBufferToImage, CL_COMMAND_COPY_BUFFER_TO_IMAGE },
	{ call_clEnqueueCopyImageToBuffer, CL_COMMAND_COPY_IMAGE_TO_BUFFER },
	{ call_clEnqueueCopyImage, CL_COMMAND_COPY_IMAGE },
	{ call_clEnqueueFillBuffer, CL_COMMAND_FILL_BUFFER },
	{ call_clEnqueueFillImage, CL_COMMAND_FILL_IMAGE },
};

cl_command_type call_command_type(const struct call_row *row)
{
	for (size_t i = 0; i < sizeof(command_types) / sizeof(command_types[0]); i++)
		if (command_types[i].run == row->run)
			return command_types[i].type;
	return 0;
}

bool call_can_block(const struct call_row *row)
{
	switch (call_command_type(row)) {
	case CL_COMMAND_MAP_BUFFER:
	case CL_COMMAND_MAP_IMAGE:
	case CL_COMMAND_READ_BUFFER:
	case CL_COMMAND_READ_BUFFER_RECT:
	case CL_COMMAND_READ_IMAGE:
	case CL_COMMAND_WRITE_BUFFER:
	case CL_COMMAND_WRITE_BUFFER_RECT:
	case CL_COMMAND_WRITE_IMAGE:
		return true;
	}
	return false;
}
