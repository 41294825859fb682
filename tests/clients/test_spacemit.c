/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SpacemiT's vision library: NV12 frames.  A dma-buf is imported once, for reading, and found again by
 * its inode.  The luma image lies on the import, the chroma image on a sub-buffer.  Where the platform
 * has the functions, each use is between an acquire and a release of the import.
 */
#include "client.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WIDTH = 64, HEIGHT = 32, STRIDE = 128, CHROMA = STRIDE * HEIGHT, SIZE = CHROMA * 3 / 2 };

/* cl_khr_external_memory, which the headers of Debian 12 do not have. */
typedef cl_int(CL_API_CALL *external_fn)(cl_command_queue, cl_uint, const cl_mem *, cl_uint,
					 const cl_event *, cl_event *);

static struct spacemit_frame {
	dev_t dev;
	ino_t ino;
	cl_mem root, part, luma, chroma;
} known;

static external_fn acquire, release;
static int imports;

static void spacemit_open(void)
{
	client_open();
	acquire = (external_fn)clGetExtensionFunctionAddressForPlatform(
		client.platform, "clEnqueueAcquireExternalMemObjectsKHR");
	release = (external_fn)clGetExtensionFunctionAddressForPlatform(
		client.platform, "clEnqueueReleaseExternalMemObjectsKHR");
	EXPECT_EQ(!acquire, !release);
}

static bool spacemit_has_pairs(void)
{
	cl_image_format formats[256];
	cl_uint count = 0;

	EXPECT_EQ(clGetSupportedImageFormats(client.context, CL_MEM_READ_ONLY,
					     CL_MEM_OBJECT_IMAGE2D, 256, formats, &count),
		  CL_SUCCESS);
	for (cl_uint i = 0; i < count && i < 256; i++)
		if (formats[i].image_channel_order == CL_RG &&
		    formats[i].image_channel_data_type == CL_UNORM_INT8)
			return true;
	return false;
}

/* The chroma image has two channels, U and V, or one channel where the driver has no CL_RG. */
static cl_mem spacemit_chroma(cl_mem part)
{
	const cl_image_format format = { CL_RG, CL_UNORM_INT8 };
	const cl_image_desc desc = { .image_type = CL_MEM_OBJECT_IMAGE2D,
				     .image_width = WIDTH / 2,
				     .image_height = HEIGHT / 2,
				     .image_row_pitch = STRIDE,
				     .mem_object = part };
	cl_int err;
	cl_mem image;

	if (!spacemit_has_pairs())
		return client_plane(part, CL_MEM_READ_ONLY, WIDTH, HEIGHT / 2, STRIDE);
	image = clCreateImage(client.context, CL_MEM_READ_ONLY, &format, &desc, NULL, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	return image;
}

static void spacemit_import(int fd, const struct stat *st)
{
	const cl_import_properties_arm dma_buf[] = { CL_IMPORT_TYPE_ARM, CL_IMPORT_TYPE_DMA_BUF_ARM,
						     0 };
	const cl_buffer_region region = { CHROMA, STRIDE * HEIGHT / 2 };
	cl_int err;

	known.dev = st->st_dev;
	known.ino = st->st_ino;
	known.root = client.import(client.context, CL_MEM_READ_ONLY, dma_buf, &fd, SIZE, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	known.luma = client_plane(known.root, CL_MEM_READ_ONLY, WIDTH, HEIGHT, STRIDE);
	known.part = clCreateSubBuffer(known.root, CL_MEM_READ_ONLY, CL_BUFFER_CREATE_TYPE_REGION,
				       &region, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	known.chroma = spacemit_chroma(known.part);
	imports++;
}

static void spacemit_edge(external_fn edge)
{
	if (edge)
		EXPECT_EQ(edge(client.queue, 1, &known.root, 0, NULL, NULL), CL_SUCCESS);
}

static void spacemit_check(int frame)
{
	static unsigned char luma[WIDTH * HEIGHT], chroma[WIDTH * HEIGHT / 2];
	size_t width = 0;

	EXPECT_EQ(clGetImageInfo(known.chroma, CL_IMAGE_WIDTH, sizeof(width), &width, NULL),
		  CL_SUCCESS);
	spacemit_edge(acquire);
	client_read_plane(known.luma, luma, WIDTH, HEIGHT);
	client_read_plane(known.chroma, chroma, width, HEIGHT / 2);
	spacemit_edge(release);
	for (int y = 0; y < HEIGHT; y++)
		EXPECT_EQ(luma[y * WIDTH + WIDTH - 1], (y + frame) % 251);
	for (int y = 0; y < HEIGHT / 2; y++)
		EXPECT_EQ(chroma[(size_t)y * width], (HEIGHT + y + frame) % 251);
}

TEST(spacemit_frames, "SpacemiT's library imports a buffer once, and acquires it for each frame.")
{
	struct dmabuf buffer;
	struct stat st;

	spacemit_open();
	client_dmabuf_create(&buffer, SIZE);
	for (int frame = 0; frame < 20; frame++) {
		int fd = fcntl(buffer.fd, F_DUPFD_CLOEXEC, 0);

		client_dmabuf_begin(&buffer);
		for (int y = 0; y < HEIGHT * 3 / 2; y++)
			memset(buffer.at + (size_t)y * STRIDE, (y + frame) % 251, WIDTH);
		client_dmabuf_end(&buffer);
		EXPECT_EQ(fstat(fd, &st), 0);
		if (known.dev != st.st_dev || known.ino != st.st_ino)
			spacemit_import(fd, &st);
		spacemit_check(frame);
		close(fd);
	}
	EXPECT_EQ(imports, 1);
	clReleaseMemObject(known.luma);
	clReleaseMemObject(known.chroma);
	clReleaseMemObject(known.part);
	clReleaseMemObject(known.root);
	client_dmabuf_destroy(&buffer);
	client_close();
}

TEST(vision_own_sync,
     "A program that syncs by itself asks for no consistency, and imports exact sizes.")
{
	const cl_import_properties_arm own[] = { CL_IMPORT_TYPE_ARM, CL_IMPORT_TYPE_DMA_BUF_ARM,
						 CL_IMPORT_DMA_BUF_DATA_CONSISTENCY_WITH_HOST_ARM,
						 CL_FALSE, 0 };
	struct dmabuf buffer;
	cl_int err;
	cl_mem mem;

	client_open();
	client_dmabuf_create(&buffer, SIZE - 1);
	memset(buffer.at, 4, buffer.size);
	mem = client.import(client.context, CL_MEM_READ_WRITE, own, &buffer.fd, SIZE - 1, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	client_dmabuf_begin(&buffer);
	client_increment(mem, SIZE - 1);
	client_dmabuf_end(&buffer);
	EXPECT_EQ(buffer.at[SIZE - 2], 5);
	EXPECT_EQ(buffer.at[SIZE - 1], 4);
	clReleaseMemObject(mem);
	client_dmabuf_destroy(&buffer);
	client_close();
}

TEST(vision_by_value, "A descriptor in place of its address, or a consistency of 2, is an error.")
{
	const cl_import_properties_arm dma_buf[] = { CL_IMPORT_TYPE_ARM, CL_IMPORT_TYPE_DMA_BUF_ARM,
						     0 };
	const cl_import_properties_arm twice[] = { CL_IMPORT_TYPE_ARM, CL_IMPORT_TYPE_DMA_BUF_ARM,
						   CL_IMPORT_DMA_BUF_DATA_CONSISTENCY_WITH_HOST_ARM,
						   2, 0 };
	struct dmabuf buffer;
	cl_int err = CL_SUCCESS;

	client_open();
	client_dmabuf_create(&buffer, SIZE);
	EXPECT(!client.import(client.context, CL_MEM_READ_WRITE, dma_buf,
			      (void *)(intptr_t)buffer.fd, SIZE, &err));
	EXPECT_EQ(err, CL_INVALID_VALUE);
	EXPECT(!client.import(client.context, CL_MEM_READ_WRITE, twice, &buffer.fd, SIZE, &err));
	EXPECT_EQ(err, CL_INVALID_PROPERTY);
	client_dmabuf_destroy(&buffer);
	client_close();
}
