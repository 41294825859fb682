/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A camera stack on V4L2: four buffers in a ring, and a new descriptor for each frame.  The stack
 * imports each buffer once, and finds the import by the descriptor's inode.  The luma image lies on
 * the import, and the chroma image on a sub-buffer.
 */
#include "client.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	BUFFERS = 4,
	FRAMES = 1000,
	WIDTH = 64,
	HEIGHT = 48,
	STRIDE = 128,
	CHROMA = STRIDE * HEIGHT,
	SIZE = CHROMA * 3 / 2
};

/* A buffer of the ring. */
struct slot {
	dev_t dev;
	ino_t ino;
	cl_mem root, part, luma, chroma;
};

static struct slot slots[BUFFERS];
static int imports;

static struct slot *camera_find_slot(const struct stat *st)
{
	for (int i = 0; i < imports; i++)
		if (slots[i].dev == st->st_dev && slots[i].ino == st->st_ino)
			return &slots[i];
	return NULL;
}

static struct slot *camera_create_slot(int fd, const struct stat *st)
{
	static const cl_import_properties_arm dma_buf[] = { CL_IMPORT_TYPE_ARM,
							    CL_IMPORT_TYPE_DMA_BUF_ARM, 0 };
	const cl_buffer_region region = { CHROMA, STRIDE * HEIGHT / 2 };
	struct slot *slot = &slots[imports++];
	cl_int err;

	EXPECT(imports <= BUFFERS);
	slot->dev = st->st_dev;
	slot->ino = st->st_ino;
	slot->root = client.import(client.context, CL_MEM_READ_ONLY, dma_buf, &fd, SIZE, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	slot->luma = client_plane(slot->root, CL_MEM_READ_ONLY, WIDTH, HEIGHT, STRIDE);
	slot->part = clCreateSubBuffer(slot->root, CL_MEM_READ_ONLY, CL_BUFFER_CREATE_TYPE_REGION,
				       &region, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	slot->chroma = client_plane(slot->part, CL_MEM_READ_ONLY, WIDTH, HEIGHT / 2, STRIDE);
	return slot;
}

/* The camera writes a frame.  The padding differs from the picture. */
static void camera_expose(struct dmabuf *buffer, int frame)
{
	client_dmabuf_begin(buffer);
	memset(buffer->at, 255, buffer->size);
	for (int y = 0; y < HEIGHT * 3 / 2; y++)
		memset(buffer->at + y * STRIDE, (y * 3 + frame) % 251, WIDTH);
	client_dmabuf_end(buffer);
}

static void camera_check_rows(cl_mem image, int first_row, int rows, int frame)
{
	static unsigned char seen[WIDTH * HEIGHT];

	client_read_plane(image, seen, WIDTH, (size_t)rows);
	for (int y = 0; y < rows; y++) {
		EXPECT_EQ(seen[y * WIDTH], ((first_row + y) * 3 + frame) % 251);
		EXPECT_EQ(seen[y * WIDTH + WIDTH - 1], ((first_row + y) * 3 + frame) % 251);
	}
}

static void camera_process_frame(int fd, int frame)
{
	struct stat st;
	struct slot *slot;

	EXPECT_EQ(fstat(fd, &st), 0);
	slot = camera_find_slot(&st);
	if (!slot)
		slot = camera_create_slot(fd, &st);
	camera_check_rows(slot->luma, 0, HEIGHT, frame);
	camera_check_rows(slot->chroma, HEIGHT, HEIGHT / 2, frame);
}

TEST(camera_ring, "A camera stack imports each of four buffers once for a thousand frames.")
{
	struct dmabuf ring[BUFFERS];

	client_open();
	for (int i = 0; i < BUFFERS; i++)
		client_dmabuf_create(&ring[i], SIZE);
	for (int frame = 0; frame < FRAMES; frame++) {
		struct dmabuf *buffer = &ring[frame % BUFFERS];
		int fd = fcntl(buffer->fd, F_DUPFD_CLOEXEC, 0);

		camera_expose(buffer, frame);
		camera_process_frame(fd, frame);
		close(fd);
	}
	EXPECT_EQ(imports, BUFFERS);
	for (int i = 0; i < BUFFERS; i++) {
		clReleaseMemObject(slots[i].luma);
		clReleaseMemObject(slots[i].chroma);
		clReleaseMemObject(slots[i].part);
		clReleaseMemObject(slots[i].root);
		client_dmabuf_destroy(&ring[i]);
	}
	client_close();
}
