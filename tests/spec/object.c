/* SPDX-License-Identifier: Apache-2.0 */
#include "object.h"

#include "dma_buf.h"
#include "external.h"

const cl_image_format rgba = { CL_RGBA, CL_UNSIGNED_INT8 };

static size_t object_round_up(size_t value, size_t to)
{
	return (value + to - 1) / to * to;
}

/* A multiple of both alignments. */
size_t object_origin(void)
{
	size_t buffer = device_number(CL_DEVICE_MEM_BASE_ADDR_ALIGN) / 8;
	size_t image = device_number(CL_DEVICE_IMAGE_BASE_ADDRESS_ALIGNMENT) * PIXEL;
	size_t origin = buffer ? buffer : 128;

	while (image && origin % image)
		origin += buffer ? buffer : 128;
	return origin;
}

/* At least a pixel more than a row, in units of the device's pitch alignment. */
size_t object_row_pitch(void)
{
	size_t pixels = device_number(CL_DEVICE_IMAGE_PITCH_ALIGNMENT);

	return object_round_up(SIDE + 1, pixels ? pixels : 1) * PIXEL;
}

/* Inside of a page; 0 if the device takes whole pages alone. */
static size_t object_offset_in_page(void)
{
	size_t image = device_number(CL_DEVICE_IMAGE_BASE_ADDRESS_ALIGNMENT) * PIXEL;
	size_t step = host_alignment(), offset = step;

	while (image && offset % image)
		offset += step;
	return offset < spec.page ? offset : 0;
}

static cl_mem object_make_external(struct object *o, const struct object_form *form)
{
	struct external_request r;

	o->buf = dma_buf_make(o->memory_size);
	o->memory = o->buf->memory;
	r = external_request(o->buf, form->shape == IMAGE);
	r.flags = form->flags;
	return external_make_object(&r);
}

static void object_make_import(struct object *o, const struct object_form *form)
{
	size_t size = object_origin() + SIDE * object_row_pitch() + BYTES;
	struct dma_buf *buf;

	if (form->is_large)
		size += 256 << 10;
	o->offset = form->in_page ? object_offset_in_page() : 0;
	o->size = object_round_up(size, form->in_page ? host_alignment() : spec.page);
	o->memory_size = object_round_up(o->offset + o->size, spec.page);
	if (form->type == HOST_MEMORY) {
		o->memory = spec_map_pages(o->memory_size / spec.page);
		o->import = spec_import_host(form->flags, o->memory + o->offset, o->size);
	} else if (form->type == EXTERNAL_MEMORY) {
		o->import = object_make_external(o, form);
	} else {
		buf = dma_buf_get(o->memory_size);
		o->memory = buf->memory;
		o->import = spec_import(form->flags, coherent_dma_buf(), &buf->fd, o->size);
	}
	memset(o->memory, 0xee, o->memory_size);
	o->origin = o->offset;
}

static cl_mem make_sub_buffer(struct object *o, cl_mem_flags flags)
{
	const cl_buffer_region region = { object_origin(), o->size - object_origin() };
	cl_int error = 1;
	cl_mem mem = clCreateSubBuffer(o->import, flags & ~(cl_mem_flags)CL_MEM_USE_HOST_PTR,
				       CL_BUFFER_CREATE_TYPE_REGION, &region, &error);

	EXPECT_EQ(error, CL_SUCCESS);
	o->origin += region.origin;
	return released_later(mem);
}

static cl_mem object_create_image(const struct object_form *form, const cl_image_desc *desc)
{
	cl_mem_flags flags = form->flags & ~(cl_mem_flags)CL_MEM_USE_HOST_PTR;
	cl_int error = 1;
	cl_mem mem;

	if (form->with_properties)
		mem = clCreateImageWithProperties(spec.context, NULL, flags, &rgba, desc, NULL,
						  &error);
	else
		mem = clCreateImage(spec.context, flags, &rgba, desc, NULL, &error);
	EXPECT_EQ(error, CL_SUCCESS);
	return released_later(mem);
}

static cl_mem make_image(struct object *o, const struct object_form *form,
			 const cl_image_desc *desc)
{
	o->parent = desc->buffer;
	o->region[0] = desc->image_width;
	o->region[1] = desc->image_height ? desc->image_height : 1;
	o->region[2] = 1;
	return object_create_image(form, desc);
}

static void object_set_rows(struct object *o)
{
	o->columns = SIDE * PIXEL;
	o->rows = o->region[0] = o->region[1] = SIDE;
	o->region[2] = 1;
	o->pitch = object_row_pitch();
}

static cl_mem make_image_2d(struct object *o, const struct object_form *form, cl_mem buffer)
{
	const cl_image_desc desc = {
		.image_type = CL_MEM_OBJECT_IMAGE2D,
		.image_width = SIDE,
		.image_height = SIDE,
		.image_row_pitch = object_row_pitch(),
		.buffer = buffer,
	};

	object_set_rows(o);
	return make_image(o, form, &desc);
}

static cl_mem make_image_1d(struct object *o, const struct object_form *form)
{
	const cl_image_desc desc = {
		.image_type = CL_MEM_OBJECT_IMAGE1D_BUFFER,
		.image_width = BYTES / PIXEL,
		.buffer = o->import,
	};

	return make_image(o, form, &desc);
}

static cl_mem make_shape(struct object *o, const struct object_form *form)
{
	switch (o->shape) {
	case BUFFER:
		return o->import;
	case SUB_BUFFER:
		o->parent = o->import;
		return make_sub_buffer(o, form->flags);
	case IMAGE:
		if (form->type != EXTERNAL_MEMORY)
			return make_image_2d(o, form, o->import);
		object_set_rows(o);
		return o->import;
	case IMAGE_OF_SUB_BUFFER:
		return make_image_2d(o, form, make_sub_buffer(o, form->flags));
	case IMAGE_1D:
		return make_image_1d(o, form);
	}
	return NULL;
}

/*
 * A device with cl_khr_image2d_from_buffer, or with OpenCL 2.0 to 2.2, has 2D images on any buffer.
 * Other devices may have 2D images on imports.
 */
static bool has_image2d(void)
{
	cl_image_desc desc = {
		.image_type = CL_MEM_OBJECT_IMAGE2D,
		.image_width = SIDE,
		.image_height = SIDE,
		.image_row_pitch = object_row_pitch(),
	};
	cl_int error = 1;

	if (spec.exact || spec_device_reports("cl_khr_image2d_from_buffer") ||
	    (spec.device_version >= CL_MAKE_VERSION(2, 0, 0) &&
	     spec.device_version < CL_MAKE_VERSION(3, 0, 0)))
		return true;
	if (!spec.has_host)
		return false;
	desc.buffer = spec_import_host(0, spec_map_pages(1), spec.page);
	released_later(clCreateImage(spec.context, 0, &rgba, &desc, NULL, &error));
	return error == CL_SUCCESS;
}

/* A refusal with any other error fails the test later. */
static bool refuses_image1d(void)
{
	cl_image_desc desc = {
		.image_type = CL_MEM_OBJECT_IMAGE1D_BUFFER,
		.image_width = BYTES / PIXEL,
	};
	cl_int error = 1;

	desc.buffer = spec_import_host(CL_MEM_READ_WRITE, spec_map_pages(1), spec.page);
	released_later(clCreateImage(spec.context, CL_MEM_READ_WRITE, &rgba, &desc, NULL, &error));
	return error == CL_INVALID_OPERATION;
}

/* The text promises images on imports; a device may be without images. */
static bool has_image1d(void)
{
	static enum { UNKNOWN, WORKS, REFUSED } known;

	if (spec.exact || !spec.has_host)
		return true;
	if (known == UNKNOWN)
		known = refuses_image1d() ? REFUSED : WORKS;
	return known == WORKS;
}

/* NULL, or the reason why the device has no images of @shape. */
static const char *why_no_images(void)
{
	if (!device_number(CL_DEVICE_IMAGE_SUPPORT))
		return "device has no images";
	if (spec.device_version < CL_MAKE_VERSION(1, 2, 0))
		return "device is older than OpenCL 1.2";
	return NULL;
}

static const char *why_no_shape(enum shape shape)
{
	if (shape == BUFFER || shape == SUB_BUFFER)
		return NULL;
	if (why_no_images())
		return why_no_images();
	if (shape == IMAGE_1D)
		return has_image1d() ? NULL
				     : "device makes no 1D images of imports: refused with -59";
	return has_image2d() ? NULL : "device makes no 2D images from buffers";
}

static void object_need(const char *why)
{
	if (why)
		test_skip("%s", why);
}

void need_images(void)
{
	object_need(why_no_images());
}

bool shape_works(enum shape shape)
{
	return !why_no_shape(shape);
}

void need_shape(enum shape shape)
{
	object_need(why_no_shape(shape));
}

const char *object_why_no_form(const struct object_form *form)
{
	const bool is_of_handle = form->type == EXTERNAL_MEMORY && form->shape == IMAGE;
	const char *why = is_of_handle ? why_no_images() : why_no_shape(form->shape);

	if (why)
		return why;
	if (form->in_page && (form->type != HOST_MEMORY || !object_offset_in_page()))
		return "no import begins inside of a page";
	if (form->with_properties && spec.device_version < CL_MAKE_VERSION(3, 0, 0))
		return "device is older than OpenCL 3.0";
	return NULL;
}

void object_make_form(struct object *o, const struct object_form *form)
{
	object_need(object_why_no_form(form));
	*o = (struct object){ .shape = form->shape,
			      .type = form->type,
			      .columns = BYTES,
			      .rows = 1,
			      .pitch = BYTES };
	object_make_import(o, form);
	o->mem = make_shape(o, form);
	EXPECT(o->mem != NULL);
}

void object_make(struct object *o, enum shape shape, enum memory_type type, cl_mem_flags flags)
{
	const struct object_form form = { .shape = shape, .type = type, .flags = flags };

	object_make_form(o, &form);
}

static cl_mem object_derive_sub_buffer(cl_mem import, cl_mem_flags flags, cl_int *error)
{
	const cl_buffer_region region = { object_origin(), BYTES };

	return clCreateSubBuffer(import, flags, CL_BUFFER_CREATE_TYPE_REGION, &region, error);
}

static cl_mem object_derive_image(cl_mem buffer, cl_mem_object_type type, cl_mem_flags flags,
				  cl_int *error)
{
	const cl_image_desc desc = {
		.image_type = type,
		.image_width = OBJECT_PIXELS,
		.image_height = type == CL_MEM_OBJECT_IMAGE2D,
		.buffer = buffer,
	};

	return clCreateImage(spec.context, flags, &rgba, &desc, NULL, error);
}

size_t object_derived_origin(enum shape shape)
{
	return shape == SUB_BUFFER || shape == IMAGE_OF_SUB_BUFFER ? object_origin() : 0;
}

cl_mem object_derive(cl_mem import, enum shape shape, cl_mem_flags flags, cl_int *error)
{
	cl_mem buffer, image;

	if (shape == SUB_BUFFER)
		return object_derive_sub_buffer(import, flags, error);
	if (shape != IMAGE_OF_SUB_BUFFER)
		return object_derive_image(import,
					   shape == IMAGE ? CL_MEM_OBJECT_IMAGE2D
							  : CL_MEM_OBJECT_IMAGE1D_BUFFER,
					   flags, error);
	buffer = object_derive_sub_buffer(import, 0, error);
	if (!buffer)
		return NULL;
	image = object_derive_image(buffer, CL_MEM_OBJECT_IMAGE2D, flags, error);
	EXPECT_EQ(clReleaseMemObject(buffer), CL_SUCCESS);
	return image;
}

static unsigned char *object_find_byte(const struct object *o, size_t i)
{
	return o->memory + o->origin + i / o->columns * o->pitch + i % o->columns;
}

void object_fill(const struct object *o, unsigned int seed)
{
	for (size_t i = 0; i < BYTES; i++)
		*object_find_byte(o, i) = spec_pattern_byte(i, seed);
}

bool object_holds(const struct object *o, const unsigned char bytes[BYTES])
{
	for (size_t i = 0; i < BYTES; i++)
		if (*object_find_byte(o, i) != bytes[i])
			return spec_note_wrong_byte(i, *object_find_byte(o, i), bytes[i]);
	return true;
}

bool object_is(const struct object *o, unsigned int seed)
{
	unsigned char bytes[BYTES];

	spec_fill_memory(bytes, BYTES, seed);
	return object_holds(o, bytes);
}

static bool is_padding(const struct object *o, size_t at)
{
	if (at < o->origin || at >= o->origin + o->rows * o->pitch)
		return true;
	return (at - o->origin) % o->pitch >= o->columns;
}

bool object_padding_is_intact(const struct object *o)
{
	for (size_t at = 0; at < o->memory_size; at++)
		if (is_padding(o, at) && o->memory[at] != 0xee) {
			spec_note("outside of the object:");
			return spec_note_wrong_byte(at, o->memory[at], 0xee);
		}
	return true;
}
