/* SPDX-License-Identifier: Apache-2.0 */
/* 2D images of dma-bufs: where their pixels are, and which descriptions are refused. */
#include "external.h"
#include "kernels.h"

enum { ROW = SIDE * PIXEL };

static void rows_fill(struct dma_buf *buf, size_t pitch, unsigned int seed)
{
	dma_buf_begin(buf);
	memset(buf->memory, 0xee, buf->size);
	for (size_t i = 0; i < BYTES; i++)
		buf->memory[i / ROW * pitch + i % ROW] = spec_pattern_byte(i, seed);
	dma_buf_end(buf);
}

/* Whether the pixels are @seed's, and the bytes around them are as before. */
static bool rows_are(struct dma_buf *buf, size_t pitch, unsigned int seed)
{
	bool are = true;

	dma_buf_begin(buf);
	for (size_t at = 0; at < buf->size && are; at++) {
		const size_t row = at / pitch, column = at % pitch;
		const unsigned char byte = row < SIDE && column < ROW
						   ? spec_pattern_byte(row * ROW + column, seed)
						   : 0xee;

		are = buf->memory[at] == byte || spec_note_wrong_byte(at, buf->memory[at], byte);
	}
	dma_buf_end(buf);
	return are;
}

/* Kernels read the host's pixels and write pixels that the host sees. */
static void image_expect_shared(cl_mem image, struct dma_buf *buf, size_t pitch)
{
	cl_mem plain = plain_buffer(BYTES);
	unsigned char bytes[BYTES];

	for (unsigned int turn = 1; turn < 4; turn++) {
		rows_fill(buf, pitch, turn);
		external_run_edge(ACQUIRE, image);
		kernels_image_to_buffer(image, plain, SIDE, SIDE);
		plain_read(plain, bytes, BYTES);
		EXPECT(spec_memory_is(bytes, BYTES, turn));
		spec_fill_memory(bytes, BYTES, turn + 9);
		plain_write(plain, bytes, BYTES);
		kernels_buffer_to_image(plain, image, SIDE, SIDE);
		external_run_edge(RELEASE, image);
		EXPECT(rows_are(buf, pitch, turn + 9));
	}
}

/* Longer rows, and rows of other lengths. */
static const struct image_pitch {
	const char *name;
	size_t times;
} image_pitches[] = { { "longer_rows", 1 }, { "much_longer_rows", 3 } };

TEST_EACH(external_image_of, struct image_pitch, image_pitches,
	  "K-41 The image_row_pitch must be zero if host_ptr is NULL, the image is not an image "
	  "created from an external memory handle, and the image is not a 2D image created from a "
	  "buffer.")
{
	struct dma_buf *buf = dma_buf_make(spec.page);
	struct external_request r = external_request(buf, true);
	cl_mem image;

	external_need_linear();
	r.desc.image_row_pitch *= row->times;
	image = external_make_object(&r);
	QUERY(clGetImageInfo, image, CL_IMAGE_ROW_PITCH, size_t, r.desc.image_row_pitch);
	image_expect_shared(image, buf, r.desc.image_row_pitch);
}

TEST(external_image_is_linear,
     "K-09 CL_DEVICE_EXTERNAL_MEMORY_IMPORT_ASSUME_LINEAR_IMAGES_HANDLE_TYPES_KHR: Returns the "
     "list "
     "of importable external memory handle types supported by device, that are assumed to apply "
     "linear layout to imported images when no other tiling information is provided.")
{
	struct dma_buf *buf = dma_buf_make(spec.page);
	const struct external_request r = external_request(buf, true);

	external_need_linear();
	image_expect_shared(external_make_object(&r), buf, r.desc.image_row_pitch);
}

/* The pitch that the image then has is the one in memory. */
TEST(external_image_without_a_pitch, "K-42 If image_row_pitch is zero and the image is created "
				     "from an external memory handle, then "
				     "the image row pitch is implementation-defined.")
{
	struct dma_buf *buf = dma_buf_make(spec.page);
	struct external_request r = external_request(buf, true);
	cl_int error = 1;
	size_t pitch = 0;
	cl_mem image;

	r.desc.image_row_pitch = 0;
	image = released_later(external_create_object(&r, &error));
	EXPECT_EXACT(error, CL_SUCCESS);
	if (!image)
		return;
	EXPECT_EQ(clGetImageInfo(image, CL_IMAGE_ROW_PITCH, sizeof(pitch), &pitch, NULL),
		  CL_SUCCESS);
	EXPECT(pitch >= ROW && pitch % PIXEL == 0);
	external_need_linear();
	if (pitch * SIDE <= buf->size)
		image_expect_shared(image, buf, pitch);
}

static const struct image_bad_pitch {
	const char *name;
	size_t pitch;
} image_bad_pitches[] = { { "less_than_a_row", ROW - PIXEL }, { "no_whole_pixels", 16 * ROW + 2 } };

TEST_EACH(external_image_pitch, struct image_bad_pitch, image_bad_pitches,
	  "K-43 If image_row_pitch is non-zero, then it must be greater than or equal to the "
	  "image_width times the size of an image element in bytes, and must be a multiple of the "
	  "size of an image element in bytes.")
{
	struct external_request r = external_request(dma_buf_make(spec.page), true);

	r.desc.image_row_pitch = row->pitch;
	external_refuse(&r, 0);
}

TEST(external_image_format,
     "K-38 CL_INVALID_IMAGE_FORMAT_DESCRIPTOR if image_format is NULL, or if values specified in "
     "image_format are not valid")
{
	static const cl_image_format bad = { CL_RGBA, 0x7ead };
	struct external_request r = external_request(dma_buf_make(spec.page), true);
	cl_int error = 1;

	r.format = NULL;
	external_refuse(&r, CL_INVALID_IMAGE_FORMAT_DESCRIPTOR);
	r.format = &bad;
	external_refuse(&r, 0);
	EXPECT(!released_later(external_create_object(&r, &error)));
	EXPECT(error == CL_INVALID_IMAGE_FORMAT_DESCRIPTOR ||
	       error == CL_IMAGE_FORMAT_NOT_SUPPORTED);
}

TEST(external_image_size,
     "K-39 CL_INVALID_IMAGE_SIZE if the image dimensions specified in image_desc are not valid or "
     "exceed the maximum image dimensions")
{
	struct external_request r = external_request(dma_buf_make(spec.page), true);

	r.desc.image_width = 0;
	external_refuse(&r, CL_INVALID_IMAGE_SIZE);
	r.desc.image_width = SIDE;
	r.desc.image_height = 0;
	external_refuse(&r, CL_INVALID_IMAGE_SIZE);
	r.desc.image_height = SIDE;
	r.desc.image_row_pitch = 0;
	r.desc.image_width = device_number(CL_DEVICE_IMAGE2D_MAX_WIDTH) + 1;
	external_refuse(&r, CL_INVALID_IMAGE_SIZE);
}

TEST(external_image_keeps_its_attributes, "K-22 When such information is acquired at image "
					  "creation time, it is used for the lifetime of "
					  "the image object.")
{
	struct dma_buf *buf = dma_buf_make(spec.page);
	const struct external_request r = external_request(buf, true);
	cl_mem image = external_make_object(&r);
	cl_image_format format = { 0 };
	size_t pitch = 0;

	EXPECT_EQ(clGetImageInfo(image, CL_IMAGE_ROW_PITCH, sizeof(pitch), &pitch, NULL),
		  CL_SUCCESS);
	for (int turn = 0; turn < 2; turn++) {
		QUERY(clGetImageInfo, image, CL_IMAGE_WIDTH, size_t, SIDE);
		QUERY(clGetImageInfo, image, CL_IMAGE_HEIGHT, size_t, SIDE);
		QUERY(clGetImageInfo, image, CL_IMAGE_ELEMENT_SIZE, size_t, PIXEL);
		QUERY(clGetImageInfo, image, CL_IMAGE_ROW_PITCH, size_t, pitch);
		QUERY(clGetImageInfo, image, CL_IMAGE_BUFFER, cl_mem, NULL);
		EXPECT_EQ(clGetImageInfo(image, CL_IMAGE_FORMAT, sizeof(format), &format, NULL),
			  CL_SUCCESS);
		EXPECT(!memcmp(&format, &rgba, sizeof(format)));
		rows_fill(buf, r.desc.image_row_pitch, 1);
		external_run_edge(ACQUIRE, image);
		external_run_edge(RELEASE, image);
	}
}
