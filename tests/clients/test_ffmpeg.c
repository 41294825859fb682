/* SPDX-License-Identifier: Apache-2.0 */
/*
 * FFmpeg, libavutil/hwcontext_opencl.c: a DRM frame is mapped as an image for each plane.
 * kmsgrab's descriptors are O_RDONLY, and hwmap still asks for reading and writing.
 */
#include "client.h"

#include <unistd.h>

enum { WIDTH = 128, HEIGHT = 64, PLANES = 3, FRAME = WIDTH * HEIGHT * 3 / 2 };

/* the format yuv420p */
static const struct {
	size_t offset, width, height;
} planes[PLANES] = {
	{ 0, WIDTH, HEIGHT },
	{ WIDTH * HEIGHT, WIDTH / 2, HEIGHT / 2 },
	{ WIDTH * HEIGHT * 5 / 4, WIDTH / 2, HEIGHT / 2 },
};

static const cl_import_properties_arm dma_buf[] = { CL_IMPORT_TYPE_ARM, CL_IMPORT_TYPE_DMA_BUF_ARM,
						    0 };

static void frame_fill(struct dmabuf *frame, unsigned int number)
{
	client_dmabuf_begin(frame);
	for (size_t i = 0; i < frame->size; i++)
		frame->at[i] = (unsigned char)(i * 7 + i / 251 + number);
	client_dmabuf_end(frame);
}

/* opencl_map_from_drm_arm(): the sub-buffer is released once the image exists. */
static cl_mem frame_map_plane(cl_mem frame, cl_mem_flags flags, int p)
{
	const cl_buffer_region region = { planes[p].offset, planes[p].width * planes[p].height };
	cl_int err;
	cl_mem part = clCreateSubBuffer(frame, flags, CL_BUFFER_CREATE_TYPE_REGION, &region, &err);
	cl_mem image;

	EXPECT_EQ(err, CL_SUCCESS);
	image = client_plane(part, flags, planes[p].width, planes[p].height, planes[p].width);
	EXPECT_EQ(clReleaseMemObject(part), CL_SUCCESS);
	return image;
}

static void frame_check_plane(cl_mem image, const struct dmabuf *frame, int p)
{
	static unsigned char seen[WIDTH * HEIGHT];
	size_t size = planes[p].width * planes[p].height;

	client_read_plane(image, seen, planes[p].width, planes[p].height);
	EXPECT(!memcmp(seen, frame->at + planes[p].offset, size));
}

static void frame_map(struct dmabuf *frame, int fd, cl_mem_flags flags)
{
	cl_mem images[PLANES], object;
	cl_int err;

	object = client.import(client.context, flags, dma_buf, &fd, FRAME, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	for (int p = 0; p < PLANES; p++)
		images[p] = frame_map_plane(object, flags, p);
	for (int p = 0; p < PLANES; p++)
		frame_check_plane(images[p], frame, p);
	for (int p = 0; p < PLANES; p++)
		EXPECT_EQ(clReleaseMemObject(images[p]), CL_SUCCESS);
	EXPECT_EQ(clReleaseMemObject(object), CL_SUCCESS);
}

TEST(ffmpeg_finds_the_device, "FFmpeg finds a device by the platform's extensions alone.")
{
	client_open();
	EXPECT(client_platform_has("cl_arm_import_memory"));
	EXPECT(client_platform_has("cl_khr_image2d_from_buffer") ||
	       client_device_has("cl_khr_image2d_from_buffer"));
	client_close();
}

TEST(ffmpeg_maps_frames, "FFmpeg maps many frames in a row, plane by plane.")
{
	struct dmabuf frame;

	client_open();
	client_dmabuf_create(&frame, FRAME);
	for (unsigned int i = 0; i < 20; i++) {
		frame_fill(&frame, i);
		frame_map(&frame, frame.fd, CL_MEM_READ_WRITE);
	}
	client_dmabuf_destroy(&frame);
	client_close();
}

TEST(ffmpeg_maps_read_only,
     "FFmpeg can map an O_RDONLY descriptor for reading and writing or for reading, and not for "
     "writing alone.")
{
	struct dmabuf frame;
	cl_int err = 1;
	int fd;

	client_open();
	client_dmabuf_create(&frame, FRAME);
	fd = client_dmabuf_read_only(&frame);
	frame_fill(&frame, 3);
	frame_map(&frame, fd, CL_MEM_READ_WRITE);
	frame_map(&frame, fd, CL_MEM_READ_ONLY);
	EXPECT(!client.import(client.context, CL_MEM_WRITE_ONLY, dma_buf, &fd, FRAME, &err));
	EXPECT_EQ(err, CL_INVALID_OPERATION);
	close(fd);
	client_dmabuf_destroy(&frame);
	client_close();
}
