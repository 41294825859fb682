/* SPDX-License-Identifier: Apache-2.0 */
/* Images made from imports and their sub-buffers. */
#include "dma_buf.h"
#include "kernels.h"
#include "object.h"

enum { IMAGE_FORMATS = 512 }; /* more than a driver has */

static void image_copy_to_buffer(const struct object *o, cl_mem buffer)
{
	if (o->shape == IMAGE_1D)
		kernels_image1d_to_buffer(o->mem, buffer, o->region[0]);
	else
		kernels_image_to_buffer(o->mem, buffer, o->region[0], o->region[1]);
}

static void image_fill_from_buffer(const struct object *o, cl_mem buffer)
{
	if (o->shape == IMAGE_1D)
		kernels_buffer_to_image1d(buffer, o->mem, o->region[0]);
	else
		kernels_buffer_to_image(buffer, o->mem, o->region[0], o->region[1]);
}

/* In turns, a kernel reads the host's bytes and the host reads the kernel's bytes. */
static void expect_shared_image(const struct object *o)
{
	unsigned char seen[BYTES], sent[BYTES];
	cl_mem buffer = plain_buffer(BYTES);

	for (unsigned int turn = 1; turn < 4; turn++) {
		object_fill(o, turn);
		image_copy_to_buffer(o, buffer);
		plain_read(buffer, seen, BYTES);
		EXPECT(spec_memory_is(seen, BYTES, turn));
		spec_fill_memory(sent, BYTES, turn + 100);
		plain_write(buffer, sent, BYTES);
		image_fill_from_buffer(o, buffer);
		EXPECT(object_is(o, turn + 100));
	}
	EXPECT(object_padding_is_intact(o));
}

static void expect_shared_shape(enum shape shape, enum memory_type type)
{
	struct object o;

	object_make(&o, shape, type, CL_MEM_READ_WRITE);
	expect_shared_image(&o);
}

TEST(image_with_padded_rows, R6_55)
{
	expect_shared_shape(IMAGE, HOST_MEMORY);
}

TEST(image_of_a_sub_buffer, R6_55)
{
	expect_shared_shape(IMAGE_OF_SUB_BUFFER, HOST_MEMORY);
}

TEST(image_1d_of_a_buffer, R6_55)
{
	expect_shared_shape(IMAGE_1D, HOST_MEMORY);
}

static const struct image_row {
	const char *name;
	enum shape shape;
} image_shapes[] = {
	{ "2d", IMAGE },
	{ "2d_of_a_sub_buffer", IMAGE_OF_SUB_BUFFER },
	{ "1d", IMAGE_1D },
};

TEST_EACH(images_of_dma_bufs, struct image_row, image_shapes, R6_55)
{
	dma_buf_get(spec.page);
	expect_shared_shape(row->shape, DMA_BUF_MEMORY);
}

TEST(image_and_buffer_see_each_other, R6_55)
{
	struct object o;
	unsigned char seen[BYTES];
	cl_mem buffer;

	object_make(&o, IMAGE, HOST_MEMORY, CL_MEM_READ_WRITE);
	buffer = plain_buffer(BYTES);
	object_fill(&o, 1);
	kernels_add(o.import, o.rows * o.pitch, 1, 4);
	image_copy_to_buffer(&o, buffer);
	plain_read(buffer, seen, BYTES);
	EXPECT(spec_memory_is(seen, BYTES, 5));
}

/* Clients release the sub-buffer, and the import, as soon as they have the image. */
TEST_EACH(image_outlives_what_it_is_made_of, struct image_row, image_shapes, R6_55)
{
	struct object o;

	object_make(&o, row->shape, HOST_MEMORY, CL_MEM_READ_WRITE);
	spec_release_now(o.import);
	if (o.parent != o.import)
		spec_release_now(o.parent);
	expect_shared_image(&o);
}

/* Row pitch 0 stands for rows without padding. */
TEST(image_without_a_pitch, R6_55)
{
	unsigned char *memory = spec_map_pages(1);
	cl_image_desc desc = {
		.image_type = CL_MEM_OBJECT_IMAGE2D,
		.image_width = 64,
		.image_height = 2,
	};
	cl_int error = 1;
	cl_mem image, buffer;

	need_shape(IMAGE);
	desc.buffer = spec_import_host(CL_MEM_READ_WRITE, memory, spec.page);
	image = released_later(
		clCreateImage(spec.context, CL_MEM_READ_WRITE, &rgba, &desc, NULL, &error));
	EXPECT_EQ(error, CL_SUCCESS);
	buffer = plain_buffer(512);
	spec_fill_memory(memory, 512, 6);
	kernels_image_to_buffer(image, buffer, 64, 2);
	memset(memory, 0, 512);
	kernels_buffer_to_image(buffer, image, 64, 2);
	EXPECT(spec_memory_is(memory, 512, 6));
}

static cl_image_desc desc_1d(cl_mem buffer)
{
	return (cl_image_desc){
		.image_type = CL_MEM_OBJECT_IMAGE1D_BUFFER,
		.image_width = BYTES / PIXEL,
		.buffer = buffer,
	};
}

/* A kernel reads, through image_1d, the bytes that a kernel wrote through the object. */
static void expect_same_memory(const struct object *o, cl_mem image_1d)
{
	unsigned char seen[BYTES];
	cl_mem buffer = plain_buffer(BYTES);

	spec_fill_memory(seen, BYTES, 9);
	plain_write(buffer, seen, BYTES);
	image_fill_from_buffer(o, buffer);
	memset(seen, 0, BYTES);
	plain_write(buffer, seen, BYTES);
	kernels_image1d_to_buffer(image_1d, buffer, BYTES / PIXEL);
	plain_read(buffer, seen, BYTES);
	EXPECT(spec_memory_is(seen, BYTES, 9));
}

TEST(two_images_of_one_import, R6_55)
{
	struct object o;
	cl_image_desc desc;
	cl_int error = 1;
	cl_mem image;

	object_make(&o, IMAGE_1D, HOST_MEMORY, CL_MEM_READ_WRITE);
	desc = desc_1d(o.import);
	image = released_later(
		clCreateImage(spec.context, CL_MEM_READ_ONLY, &rgba, &desc, NULL, &error));
	EXPECT_EQ(error, CL_SUCCESS);
	expect_same_memory(&o, image);
}

TEST(image_1d_with_properties, R6_55)
{
	struct object o;
	cl_image_desc desc;
	cl_int error = 1;
	cl_mem image;

	object_make(&o, IMAGE_1D, HOST_MEMORY, CL_MEM_READ_WRITE);
	if (spec.device_version < CL_MAKE_VERSION(3, 0, 0))
		test_skip("device is older than OpenCL 3.0");
	desc = desc_1d(o.import);
	image = released_later(clCreateImageWithProperties(spec.context, NULL, CL_MEM_READ_ONLY,
							   &rgba, &desc, NULL, &error));
	EXPECT_EQ(error, CL_SUCCESS);
	expect_same_memory(&o, image);
}

/* Some drivers make no such image from any sub-buffer. */
TEST(image_1d_of_a_sub_buffer, R6_55)
{
	struct object sub;
	unsigned char seen[BYTES];
	cl_image_desc desc;
	cl_int error = 1;
	cl_mem image, buffer;

	need_shape(IMAGE_1D);
	object_make(&sub, SUB_BUFFER, HOST_MEMORY, CL_MEM_READ_WRITE);
	desc = desc_1d(sub.mem);
	image = released_later(
		clCreateImage(spec.context, CL_MEM_READ_WRITE, &rgba, &desc, NULL, &error));
	EXPECT_EQ(error, CL_SUCCESS);
	buffer = plain_buffer(BYTES);
	object_fill(&sub, 4);
	kernels_image1d_to_buffer(image, buffer, BYTES / PIXEL);
	plain_read(buffer, seen, BYTES);
	EXPECT(spec_memory_is(seen, BYTES, 4));
	spec_fill_memory(seen, BYTES, 8);
	plain_write(buffer, seen, BYTES);
	kernels_buffer_to_image1d(buffer, image, BYTES / PIXEL);
	EXPECT(object_is(&sub, 8));
	EXPECT(object_padding_is_intact(&sub));
}

static const struct image_form {
	const char *name;
	struct object_form form;
} image_forms[] = {
	{ "2d_inside_of_a_page", { .shape = IMAGE, .in_page = true } },
	{ "2d_of_a_sub_buffer_inside_of_a_page",
	  { .shape = IMAGE_OF_SUB_BUFFER, .in_page = true } },
	{ "1d_inside_of_a_page", { .shape = IMAGE_1D, .in_page = true } },
	{ "2d_with_properties", { .shape = IMAGE, .with_properties = true } },
	{ "2d_of_a_sub_buffer_with_properties",
	  { .shape = IMAGE_OF_SUB_BUFFER, .with_properties = true } },
	{ "1d_with_properties", { .shape = IMAGE_1D, .with_properties = true } },
};

TEST_EACH(image, struct image_form, image_forms, R6_55)
{
	struct object o;

	object_make_form(&o, &row->form);
	expect_shared_image(&o);
}

/* The list is asked: drivers differ in the error for a format that is not in it. */
static void need_image_format(const cl_image_format *format)
{
	cl_image_format formats[IMAGE_FORMATS];
	cl_uint count = 0;
	cl_int err = clGetSupportedImageFormats(spec.context, CL_MEM_READ_WRITE,
						CL_MEM_OBJECT_IMAGE2D, IMAGE_FORMATS, formats,
						&count);

	EXPECT_EQ(err, CL_SUCCESS);
	for (cl_uint i = 0; i < count && i < IMAGE_FORMATS; i++)
		if (!memcmp(&formats[i], format, sizeof(*format)))
			return;
	test_skip("device has no images of the format %#x, %#x", format->image_channel_order,
		  format->image_channel_data_type);
}

/* A picture of one byte per pixel: the red bytes of the kernel's pixels. */
TEST(image_of_one_channel, R6_55)
{
	static const cl_image_format gray = { CL_R, CL_UNSIGNED_INT8 };
	unsigned char *memory = spec_map_pages(1), seen[4 * BYTES];
	cl_image_desc desc = { .image_type = CL_MEM_OBJECT_IMAGE2D,
			       .image_width = BYTES,
			       .image_height = 1 };
	cl_int error = 1;
	cl_mem image, buffer;

	need_shape(IMAGE);
	need_image_format(&gray);
	desc.buffer = spec_import_host(CL_MEM_READ_WRITE, memory, spec.page);
	image = released_later(
		clCreateImage(spec.context, CL_MEM_READ_WRITE, &gray, &desc, NULL, &error));
	EXPECT_EQ(error, CL_SUCCESS);
	buffer = plain_buffer(sizeof(seen));
	spec_fill_memory(memory, BYTES, 9);
	kernels_image_to_buffer(image, buffer, BYTES, 1);
	plain_read(buffer, seen, sizeof(seen));
	for (size_t i = 0; i < BYTES; i++)
		EXPECT_BYTE(seen[4 * i], spec_pattern_byte(i, 9));
}

/* A picture that kernels only read shows what the host has written since. */
TEST_EACH(read_only_image, struct image_row, image_shapes, R6_55)
{
	unsigned char seen[BYTES];
	struct object o;
	cl_mem buffer;

	object_make(&o, row->shape, HOST_MEMORY, CL_MEM_READ_ONLY);
	buffer = plain_buffer(BYTES);
	for (unsigned int turn = 1; turn < 4; turn++) {
		object_fill(&o, turn);
		image_copy_to_buffer(&o, buffer);
		plain_read(buffer, seen, BYTES);
		EXPECT(spec_memory_is(seen, BYTES, turn));
	}
}

TEST(two_2d_images_of_one_import, R6_55)
{
	struct object o;
	cl_int error = 1;
	cl_mem second, buffer;
	unsigned char seen[BYTES];

	object_make(&o, IMAGE, HOST_MEMORY, CL_MEM_READ_WRITE);
	second = released_later(object_derive(o.import, IMAGE, CL_MEM_READ_WRITE, &error));
	EXPECT_EQ(error, CL_SUCCESS);
	buffer = plain_buffer(BYTES);
	spec_fill_memory(o.memory, BYTES, 7);
	kernels_image_to_buffer(second, buffer, OBJECT_PIXELS, 1);
	plain_read(buffer, seen, BYTES);
	EXPECT(spec_memory_is(seen, BYTES, 7));
}
