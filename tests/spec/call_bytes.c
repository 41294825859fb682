/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes that a call moves: which ones, before the call and after. */
#include "calls.h"
#include "kernels.h"

static const size_t zero[3];

/* As large as either shape of region; on @buffer, or NULL. */
static cl_mem call_create_image(cl_mem buffer)
{
	const cl_image_desc desc = {
		.image_type = CL_MEM_OBJECT_IMAGE2D,
		.image_width = BYTES / PIXEL,
		.image_height = SIDE,
		.buffer = buffer,
	};
	cl_int error = 1;
	size_t pixels;
	cl_mem mem;

	need_images();
	pixels = device_number(CL_DEVICE_IMAGE_PITCH_ALIGNMENT);
	if (buffer && pixels && desc.image_width % pixels)
		test_skip("rows of an image of a buffer are multiples of %zu pixels", pixels);
	mem = clCreateImage(spec.context, CL_MEM_READ_WRITE, &rgba, &desc, NULL, &error);
	EXPECT_EQ(error, CL_SUCCESS);
	return released_later(mem);
}

/* Plain, or on an import of its own. */
static void call_create_partner(struct call *c, enum partner partner)
{
	cl_mem buffer = NULL;

	if (c->form->imported) {
		c->partner_memory = spec_map_pages(1);
		buffer = spec_import_host(CL_MEM_READ_WRITE, c->partner_memory, spec.page);
	}
	if (partner == PLAIN_IMAGE)
		c->partner = call_create_image(buffer);
	else
		c->partner = buffer ? buffer : plain_buffer(BYTES);
}

static unsigned char *call_find_partner_byte(const struct call *c, enum partner partner, size_t i)
{
	size_t width = partner == PLAIN_IMAGE ? c->region[0] * PIXEL : BYTES;

	return c->partner_memory + i / width * BYTES + i % width;
}

/* The first bytes of the partner from and to c->host. */
static void call_write_partner(struct call *c, enum partner partner)
{
	if (c->partner_memory)
		for (size_t i = 0; i < BYTES; i++)
			*call_find_partner_byte(c, partner, i) = c->host[i];
	else if (partner == PLAIN_BUFFER)
		plain_write(c->partner, c->host, BYTES);
	else
		EXPECT_EQ(clEnqueueWriteImage(spec.queue, c->partner, CL_TRUE, zero, c->region, 0,
					      0, c->host, 0, NULL, NULL),
			  CL_SUCCESS);
}

static void call_read_partner(struct call *c, enum partner partner)
{
	if (c->partner_memory)
		for (size_t i = 0; i < BYTES; i++)
			c->host[i] = *call_find_partner_byte(c, partner, i);
	else if (partner == PLAIN_BUFFER)
		plain_read(c->partner, c->host, BYTES);
	else if (partner == PLAIN_IMAGE)
		EXPECT_EQ(clEnqueueReadImage(spec.queue, c->partner, CL_TRUE, zero, c->region, 0, 0,
					     c->host, 0, NULL, NULL),
			  CL_SUCCESS);
}

static bool call_is_rect(const struct call_row *row)
{
	return row->run == call_clEnqueueReadBufferRect ||
	       row->run == call_clEnqueueWriteBufferRect ||
	       row->run == call_clEnqueueCopyBufferRect;
}

/* Not every shape has rows: a call between linear memory moves a single row. */
static bool call_has_rows(const struct call_row *row)
{
	return call_is_rect(row) || row->partner == PLAIN_IMAGE ||
	       (row->shape != BUFFER && row->shape != SUB_BUFFER);
}

static struct call_part call_part_in_a_line(bool part)
{
	if (part)
		return (struct call_part){ { 20, BYTES }, { 8, BYTES }, 36, 1 };
	return (struct call_part){ { 0, BYTES }, { 0, BYTES }, BYTES, 1 };
}

/* Of two pictures of @width x @height pixels: 6 pixels of a line, or 2 x 2 pixels of a square. */
static struct call_part call_part_in_rows(bool part, size_t width, size_t height)
{
	size_t pitch = width * PIXEL;

	if (!part)
		return (struct call_part){ { 0, pitch }, { 0, pitch }, pitch, height };
	if (height == 1)
		return (struct call_part){ { 12, pitch }, { 8, pitch }, 24, 1 };
	return (struct call_part){ { pitch + 4, pitch }, { 2 * pitch + 4, pitch }, 8, 2 };
}

/* A buffer beside an image has rows without padding. */
static void call_pack(struct call_side *side, size_t columns, bool part)
{
	side->start = part ? PIXEL : 0;
	side->pitch = columns;
}

static struct call_part call_part_of(const struct call_row *row, const struct object *o, bool part)
{
	bool line = row->shape == IMAGE_1D;
	struct call_part p;

	if (!call_has_rows(row))
		return call_part_in_a_line(part);
	p = call_part_in_rows(part, line ? BYTES / PIXEL : SIDE, line ? 1 : SIDE);
	if (row->partner == PLAIN_IMAGE && !o->region[0])
		call_pack(&p.object, p.columns, part);
	if (row->partner == PLAIN_BUFFER && o->region[0])
		call_pack(&p.other, p.columns, part);
	return p;
}

struct object_form call_object_form(const struct call_row *row, const struct call_form *form,
				    enum memory_type type)
{
	return (struct object_form){ .shape = row->shape,
				     .type = type,
				     .flags = CL_MEM_READ_WRITE,
				     .in_page = form->in_page,
				     .with_properties = form->with_properties };
}

bool call_takes_form(const struct call_row *row, const struct call_form *form,
		     enum memory_type type)
{
	const struct object_form object = call_object_form(row, form, type);

	if (form->with_properties && (row->shape == BUFFER || row->shape == SUB_BUFFER))
		return false;
	if (form->imported &&
	    (row->partner == NONE || (row->partner == PLAIN_IMAGE && !shape_works(IMAGE))))
		return false;
	if (form->waits && !form->returns && !call_can_block(row))
		return false;
	if (form->map && call_command_type(row) != CL_COMMAND_MAP_BUFFER &&
	    call_command_type(row) != CL_COMMAND_MAP_IMAGE)
		return false;
	return queues_get(form->queue) && !object_why_no_form(&object);
}

void call_set_part(struct call *c, const struct call_row *row, bool part)
{
	c->part = call_part_of(row, c->object, part);
}

void call_prepare(struct call *c, const struct call_row *row, const struct object *o,
		  const struct call_form *form)
{
	static const size_t square[3] = { SIDE, SIDE, 1 };

	memset(c, 0, sizeof(*c));
	c->object = o;
	c->form = form;
	c->role = row->role;
	c->part = call_part_of(row, o, form->part);
	memcpy(c->region, o->region[0] ? o->region : square, sizeof(c->region));
	spec_fill_memory(c->host, BYTES, OTHER_SEED);
	if (row->partner != NONE) {
		call_create_partner(c, row->partner);
		call_write_partner(c, row->partner);
	}
	object_fill(o, OBJECT_SEED);
	c->queue = queues_get(form->queue);
	c->gate = form->waits ? queues_create_gate() : NULL;
}

bool call_other_is(struct call *c, const struct call_row *row, unsigned int seed)
{
	call_read_partner(c, row->partner);
	return spec_memory_is(c->host, BYTES, seed);
}

/* Moves the bytes of the part from side to side, as the call does. */
static void call_move(const struct call_part *p, const struct call_side *from_side,
		      const unsigned char *from, const struct call_side *to_side, unsigned char *to)
{
	for (size_t i = 0; i < p->columns * p->rows; i++) {
		size_t row = i / p->columns, column = i % p->columns;

		to[to_side->start + row * to_side->pitch + column] =
			from[from_side->start + row * from_side->pitch + column];
	}
}

bool call_has_moved(struct call *c, const struct call_row *row)
{
	const struct call_part *p = &c->part;
	unsigned char object[BYTES], other[BYTES];

	spec_fill_memory(object, BYTES, OBJECT_SEED);
	spec_fill_memory(other, BYTES, OTHER_SEED);
	if (row->role == DESTINATION) {
		call_move(p, &p->other, c->host, &p->object, object);
		return object_holds(c->object, object);
	}
	call_move(p, &p->object, object, &p->other, other);
	call_read_partner(c, row->partner);
	return object_is(c->object, OBJECT_SEED) && !memcmp(c->host, other, BYTES);
}
