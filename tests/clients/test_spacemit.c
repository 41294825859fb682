/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SpacemiT's vision library: NV12 frames.  It gives up unless the platform has clImportMemoryARM and both functions of
 * cl_khr_external_memory.  A dma-buf is imported once, and found again by its inode.  The luma image lies on the import, the
 * chroma image on a sub-buffer.  A frame is read, and another dma-buf is written, between an acquire and a release of both.
 */
#include "client.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WIDTH = 64, HEIGHT = 32, STRIDE = 128, CHROMA = STRIDE * HEIGHT, SIZE = CHROMA * 3 / 2 };

static struct spacemit_frame {
	dev_t dev;
	ino_t ino;
	cl_mem root, part, luma, chroma;
} known;

static client_edge_fn acquire, release;
static int imports;

static cl_mem spacemit_import_arm(int fd, cl_int *err)
{
	const cl_import_properties_arm dma_buf[] = { CL_IMPORT_TYPE_ARM, CL_IMPORT_TYPE_DMA_BUF_ARM,
						     0 };

	return client.import(client.context, CL_MEM_READ_WRITE, dma_buf, &fd, SIZE, err);
}

static cl_mem spacemit_import_khr(int fd, cl_int *err)
{
	const cl_mem_properties dma_buf[] = { CL_EXTERNAL_MEMORY_HANDLE_DMA_BUF_KHR,
					      (cl_mem_properties)fd, 0 };

	return clCreateBufferWithProperties(client.context, dma_buf, CL_MEM_READ_WRITE, SIZE, NULL,
					    err);
}

/* Its own import is Arm's. */
static const struct spacemit_door {
	const char *name;
	cl_mem (*import)(int fd, cl_int *err);
} spacemit_doors[] = { { "arm", spacemit_import_arm }, { "khr", spacemit_import_khr } };

static cl_mem spacemit_import(const struct spacemit_door *door, int fd)
{
	cl_int err;
	cl_mem mem = door->import(fd, &err);

	EXPECT_EQ(err, CL_SUCCESS);
	return mem;
}

static void spacemit_open(void)
{
	client_open();
	client_find_edges(&acquire, &release);
}

static cl_mem spacemit_part(cl_mem root)
{
	const cl_buffer_region region = { CHROMA, STRIDE * HEIGHT / 2 };
	cl_int err;
	cl_mem part = clCreateSubBuffer(root, CL_MEM_READ_ONLY, CL_BUFFER_CREATE_TYPE_REGION,
					&region, &err);

	EXPECT_EQ(err, CL_SUCCESS);
	return part;
}

/* U and V in turns.  @part: NULL, an image of the driver's memory. */
static cl_mem spacemit_pairs(cl_mem part, cl_int *err)
{
	const cl_image_format format = { CL_RG, CL_UNORM_INT8 };
	const cl_image_desc desc = { .image_type = CL_MEM_OBJECT_IMAGE2D,
				     .image_width = WIDTH / 2,
				     .image_height = HEIGHT / 2,
				     .image_row_pitch = part ? STRIDE : 0,
				     .mem_object = part };

	return clCreateImage(client.context, CL_MEM_READ_ONLY, &format, &desc, NULL, err);
}

/* One channel where the driver has no CL_RG: see spacemit_names_format. */
static cl_mem spacemit_chroma(cl_mem part)
{
	cl_int err;
	cl_mem image;

	if (!client_has_pairs())
		return client_plane(part, CL_MEM_READ_ONLY, WIDTH, HEIGHT / 2, STRIDE);
	image = spacemit_pairs(part, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	return image;
}

static void spacemit_add(const struct spacemit_door *door, int fd, const struct stat *st)
{
	known.dev = st->st_dev;
	known.ino = st->st_ino;
	known.root = spacemit_import(door, fd);
	known.luma = client_plane(known.root, CL_MEM_READ_ONLY, WIDTH, HEIGHT, STRIDE);
	known.part = spacemit_part(known.root);
	known.chroma = spacemit_chroma(known.part);
	imports++;
}

static void spacemit_check(int frame, cl_mem output)
{
	static unsigned char luma[WIDTH * HEIGHT], chroma[WIDTH * HEIGHT / 2];
	const cl_mem both[] = { known.root, output };
	size_t width = 0;

	EXPECT_EQ(clGetImageInfo(known.chroma, CL_IMAGE_WIDTH, sizeof(width), &width, NULL),
		  CL_SUCCESS);
	EXPECT_EQ(acquire(client.queue, 2, both, 0, NULL, NULL), CL_SUCCESS);
	client_read_plane(known.luma, luma, WIDTH, HEIGHT);
	client_read_plane(known.chroma, chroma, width, HEIGHT / 2);
	client_increment(output, SIZE);
	EXPECT_EQ(release(client.queue, 2, both, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(clFinish(client.queue), CL_SUCCESS);
	for (int y = 0; y < HEIGHT; y++)
		EXPECT_EQ(luma[y * WIDTH + WIDTH - 1], (y + frame) % 251);
	for (int y = 0; y < HEIGHT / 2; y++)
		EXPECT_EQ(chroma[(size_t)y * width], (HEIGHT + y + frame) % 251);
}

static void spacemit_expose(struct dmabuf *buffer, int frame)
{
	client_dmabuf_begin(buffer);
	for (int y = 0; y < HEIGHT * 3 / 2; y++)
		memset(buffer->at + (size_t)y * STRIDE, (y + frame) % 251, WIDTH);
	client_dmabuf_end(buffer);
}

TEST_EACH(spacemit_frames, struct spacemit_door, spacemit_doors,
	  "SpacemiT's library imports a buffer once, and acquires it for each frame.")
{
	struct dmabuf buffer, written;
	cl_mem output;
	struct stat st;

	spacemit_open();
	known = (struct spacemit_frame){ 0 };
	imports = 0;
	client_dmabuf_create(&buffer, SIZE);
	client_dmabuf_create(&written, SIZE);
	output = spacemit_import(row, written.fd);
	for (int frame = 0; frame < 20; frame++) {
		int fd = fcntl(buffer.fd, F_DUPFD_CLOEXEC, 0);

		spacemit_expose(&buffer, frame);
		EXPECT_EQ(fstat(fd, &st), 0);
		if (known.dev != st.st_dev || known.ino != st.st_ino)
			spacemit_add(row, fd, &st);
		spacemit_check(frame, output);
		client_dmabuf_begin(&written);
		EXPECT_EQ(written.at[SIZE - 1], frame + 1);
		client_dmabuf_end(&written);
		close(fd);
	}
	EXPECT_EQ(imports, 1);
	clReleaseMemObject(known.luma);
	clReleaseMemObject(known.chroma);
	clReleaseMemObject(known.part);
	clReleaseMemObject(known.root);
	clReleaseMemObject(output);
	client_dmabuf_destroy(&buffer);
	client_dmabuf_destroy(&written);
	client_close();
}

TEST_EACH(spacemit_names_format, struct spacemit_door, spacemit_doors,
	  "Without images of two channels a chroma image has the driver's error, and a sentence "
	  "that names the format.")
{
	struct dmabuf buffer;
	cl_mem root, part;
	cl_int err, drivers;

	spacemit_open();
	client_dmabuf_create(&buffer, SIZE);
	if (client_has_pairs())
		test_skip("the driver has such images: spacemit_frames has one");
	root = spacemit_import(row, buffer.fd);
	part = spacemit_part(root);
	EXPECT(!spacemit_pairs(NULL, &drivers));
	EXPECT(!spacemit_pairs(part, &err));
	EXPECT_EQ(err, drivers);
	EXPECT(strstr(client.notice, "CL_RG"));
	clReleaseMemObject(part);
	clReleaseMemObject(root);
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
