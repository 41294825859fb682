/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Imports of real dma-bufs, from each producer that the kernel has.  The tests compare the bytes of
 * a kernel with the bytes of the CPU's own mapping, and never ask OpenCL to map or read an import.
 */
#include "guest_cl.h"
#include "harness.h"
#include "producer.h"
#include "view.h"

#include <fcntl.h>
#include <unistd.h>

enum { SIZE = 256 * 1024 };

static const struct producer_row {
	const char *name, *producer;
} producers[] = {
	{ "udmabuf", "udmabuf" }, { "heap", "dma-heap" },	  { "gdmabuf", "gdmabuf" },
	{ "vgem", "vgem" },	  { "virtio_gpu", "virtio-gpu" },
};

static const struct producer *dmabuf_need_producer(const char *name)
{
	const struct producer *p = producer_find(name);
	char why[160];

	EXPECT(p);
	if (producer_check(p, O_RDWR, why, sizeof(why)))
		test_skip("%s", why);
	return p;
}

static int dmabuf_create_of(const struct producer *p)
{
	int fd = producer_create(p, SIZE, O_RDWR);

	if (fd < 0)
		printf("# %s: %s\n", p->name, strerror(-fd));
	EXPECT(fd >= 0);
	EXPECT(producer_size(fd) >= SIZE);
	return fd;
}

static void dmabuf_kernel_reads(const struct producer *p)
{
	unsigned char *want = bytes_random(SIZE), *got = bytes_zero(SIZE);
	int fd = dmabuf_create_of(p);
	struct view view = view_open(fd, SIZE, O_RDWR);
	cl_mem in = guest_cl_import(fd, SIZE, CL_MEM_READ_ONLY), out = guest_cl_native(SIZE, NULL);

	view_write(&view, want, SIZE);
	guest_cl_transform(in, out, SIZE);
	guest_cl_native_read(out, got, SIZE);
	EXPECT_EQ(bytes_not_transformed(want, got, SIZE), 0);
	clReleaseMemObject(in);
	clReleaseMemObject(out);
	view_close(&view);
	close(fd);
	free(want);
	free(got);
}
TEST_EACH(kernel_reads, struct producer_row, producers,
	  "A kernel reads every byte that the CPU wrote after the import.")
{
	dmabuf_kernel_reads(dmabuf_need_producer(row->producer));
}

static void dmabuf_kernel_writes(const struct producer *p)
{
	unsigned char *want = bytes_random(SIZE), *got = bytes_zero(SIZE);
	int fd = dmabuf_create_of(p);
	struct view view = view_open(fd, SIZE, O_RDWR);
	cl_mem in = guest_cl_native(SIZE, want), out = guest_cl_import(fd, SIZE, CL_MEM_WRITE_ONLY);

	guest_cl_transform(in, out, SIZE);
	view_read(&view, got, SIZE);
	EXPECT_EQ(bytes_not_transformed(want, got, SIZE), 0);
	clReleaseMemObject(in);
	clReleaseMemObject(out);
	view_close(&view);
	close(fd);
	free(want);
	free(got);
}
TEST_EACH(kernel_writes, struct producer_row, producers,
	  "The CPU reads every byte that a kernel wrote.")
{
	dmabuf_kernel_writes(dmabuf_need_producer(row->producer));
}

static void dmabuf_turns(const struct producer *p)
{
	unsigned char *got = bytes_zero(SIZE);
	int from = dmabuf_create_of(p), to = dmabuf_create_of(p);
	struct view from_view = view_open(from, SIZE, O_RDWR),
		    to_view = view_open(to, SIZE, O_RDWR);
	cl_mem in = guest_cl_import(from, SIZE, 0), out = guest_cl_import(to, SIZE, 0);

	for (int round = 0; round < 8; round++) {
		unsigned char *want = bytes_random(SIZE);

		view_write(&from_view, want, SIZE);
		guest_cl_transform(in, out, SIZE);
		view_read(&to_view, got, SIZE);
		EXPECT_EQ(bytes_not_transformed(want, got, SIZE), 0);
		free(want);
	}
	clReleaseMemObject(in);
	clReleaseMemObject(out);
	view_close(&from_view);
	view_close(&to_view);
	close(from);
	close(to);
	free(got);
}
TEST_EACH(turns, struct producer_row, producers,
	  "The CPU and kernels take turns on two imports, eight times.")
{
	dmabuf_turns(dmabuf_need_producer(row->producer));
}

static void dmabuf_external(const struct producer *p)
{
	unsigned char *got = bytes_zero(SIZE);
	int from = dmabuf_create_of(p), to = dmabuf_create_of(p);
	struct view from_view = view_open(from, SIZE, O_RDWR),
		    to_view = view_open(to, SIZE, O_RDWR);
	cl_mem in = guest_cl_external(from, SIZE, CL_MEM_READ_ONLY),
	       out = guest_cl_external(to, SIZE, CL_MEM_READ_WRITE);

	for (int round = 0; round < 4; round++) {
		unsigned char *want = bytes_random(SIZE);

		view_write(&from_view, want, SIZE);
		guest_cl_acquire(in);
		guest_cl_acquire(out);
		guest_cl_transform(in, out, SIZE);
		guest_cl_release(out);
		guest_cl_release(in);
		view_read(&to_view, got, SIZE);
		EXPECT_EQ(bytes_not_transformed(want, got, SIZE), 0);
		free(want);
	}
	clReleaseMemObject(in);
	clReleaseMemObject(out);
	view_close(&from_view);
	view_close(&to_view);
	close(from);
	close(to);
	free(got);
}
TEST_EACH(external, struct producer_row, producers,
	  "The CPU and kernels take turns on two dma-bufs that are acquired and released.")
{
	dmabuf_external(dmabuf_need_producer(row->producer));
}

static void dmabuf_too_big(const struct producer *p)
{
	int fd = dmabuf_create_of(p);
	size_t size = (size_t)producer_size(fd);

	EXPECT_EQ(guest_cl_import_error(fd, size + 1, 0), CL_INVALID_BUFFER_SIZE);
	EXPECT_EQ(guest_cl_import_error(fd, 2 * size, 0), CL_INVALID_BUFFER_SIZE);
	EXPECT_EQ(clReleaseMemObject(guest_cl_import(fd, size, 0)), CL_SUCCESS);
	EXPECT_EQ(clReleaseMemObject(guest_cl_import(fd, 64, 0)), CL_SUCCESS);
	close(fd);
}
TEST_EACH(too_big, struct producer_row, producers,
	  "CL_INVALID_BUFFER_SIZE when size is larger than the dma-buf.")
{
	dmabuf_too_big(dmabuf_need_producer(row->producer));
}

static void dmabuf_outlives_descriptor(const struct producer *p)
{
	unsigned char *want = bytes_random(SIZE), *got = bytes_zero(SIZE);
	int fd = dmabuf_create_of(p), copy = dup(fd);
	struct view view = view_open(copy, SIZE, O_RDWR);
	cl_mem in = guest_cl_native(SIZE, want), out = guest_cl_import(fd, SIZE, 0);

	EXPECT_EQ(close(fd), 0);
	guest_cl_transform(in, out, SIZE);
	view_read(&view, got, SIZE);
	EXPECT_EQ(bytes_not_transformed(want, got, SIZE), 0);
	clReleaseMemObject(in);
	clReleaseMemObject(out);
	view_close(&view);
	close(copy);
	free(want);
	free(got);
}
TEST_EACH(outlives_descriptor, struct producer_row, producers,
	  "An import works after the descriptor is closed.")
{
	dmabuf_outlives_descriptor(dmabuf_need_producer(row->producer));
}

static void dmabuf_sub_buffer(const struct producer *p)
{
	enum { ORIGIN = SIZE / 4, PART = SIZE / 2 };
	unsigned char *want = bytes_random(PART), *got = bytes_zero(SIZE), *zero = bytes_zero(SIZE);
	int fd = dmabuf_create_of(p);
	struct view view = view_open(fd, SIZE, O_RDWR);
	cl_mem in = guest_cl_native(PART, want), whole = guest_cl_import(fd, SIZE, 0);
	cl_mem part = guest_cl_sub_buffer(whole, 0, ORIGIN, PART);

	guest_cl_transform(in, part, PART);
	view_read(&view, got, SIZE);
	EXPECT_EQ(bytes_not_transformed(want, got + ORIGIN, PART), 0);
	EXPECT(!memcmp(got, zero, ORIGIN));
	EXPECT(!memcmp(got + ORIGIN + PART, zero, SIZE - ORIGIN - PART));
	clReleaseMemObject(part);
	clReleaseMemObject(whole);
	clReleaseMemObject(in);
	view_close(&view);
	close(fd);
	free(want);
	free(got);
	free(zero);
}
TEST_EACH(sub_buffer, struct producer_row, producers,
	  "A kernel writes every byte of a sub-buffer, and no byte outside.")
{
	dmabuf_sub_buffer(dmabuf_need_producer(row->producer));
}

enum { WIDTH = 48, HEIGHT = 100, ROW = WIDTH * 4, PITCH = 1024, IMAGE = PITCH * HEIGHT };

static void dmabuf_image_reads(const struct producer *p)
{
	enum { ORIGIN = SIZE / 2 };
	unsigned char *want = bytes_random(SIZE), *got = bytes_zero(ROW * HEIGHT);
	int fd = dmabuf_create_of(p);
	struct view view = view_open(fd, SIZE, O_RDWR);
	cl_mem buffer = guest_cl_import(fd, SIZE, 0), out = guest_cl_native(ROW * HEIGHT, NULL);
	cl_mem part = guest_cl_sub_buffer(buffer, 0, ORIGIN, SIZE - ORIGIN);
	cl_mem image = guest_cl_image(part, CL_MEM_READ_ONLY, WIDTH, HEIGHT, PITCH);

	view_write(&view, want, SIZE);
	guest_cl_transform_from_image(image, out, WIDTH, HEIGHT);
	guest_cl_native_read(out, got, ROW * HEIGHT);
	for (size_t y = 0; y < HEIGHT; y++)
		EXPECT_EQ(bytes_not_transformed(want + ORIGIN + y * PITCH, got + y * ROW, ROW), 0);
	clReleaseMemObject(image);
	clReleaseMemObject(part);
	clReleaseMemObject(buffer);
	clReleaseMemObject(out);
	view_close(&view);
	close(fd);
	free(want);
	free(got);
}
TEST_EACH(image_reads, struct producer_row, producers,
	  "A kernel reads a part of the import as a 2D image with a row pitch.")
{
	dmabuf_image_reads(dmabuf_need_producer(row->producer));
}

static void dmabuf_image_writes(const struct producer *p)
{
	unsigned char *want = bytes_random(ROW * HEIGHT), *got = bytes_zero(SIZE),
		      *zero = bytes_zero(PITCH);
	int fd = dmabuf_create_of(p);
	struct view view = view_open(fd, SIZE, O_RDWR);
	cl_mem buffer = guest_cl_import(fd, SIZE, 0), in = guest_cl_native(ROW * HEIGHT, want);
	cl_mem image = guest_cl_image(buffer, CL_MEM_WRITE_ONLY, WIDTH, HEIGHT, PITCH);

	guest_cl_transform_to_image(in, image, WIDTH, HEIGHT);
	view_read(&view, got, SIZE);
	for (size_t y = 0; y < HEIGHT; y++) {
		EXPECT_EQ(bytes_not_transformed(want + y * ROW, got + y * PITCH, ROW), 0);
		EXPECT(!memcmp(got + y * PITCH + ROW, zero, PITCH - ROW));
	}
	clReleaseMemObject(image);
	clReleaseMemObject(buffer);
	clReleaseMemObject(in);
	view_close(&view);
	close(fd);
	free(want);
	free(got);
	free(zero);
}
TEST_EACH(image_writes, struct producer_row, producers,
	  "A kernel writes the import as a 2D image, and no byte between the rows.")
{
	dmabuf_image_writes(dmabuf_need_producer(row->producer));
}

static void dmabuf_import_all_kinds(const struct producer *p)
{
	int fd = dmabuf_create_of(p);
	cl_mem buffer = guest_cl_import(fd, SIZE, 0), out = guest_cl_native(SIZE, NULL);
	cl_mem part = guest_cl_sub_buffer(buffer, 0, SIZE / 2, SIZE / 2);
	cl_mem image = guest_cl_image(buffer, 0, WIDTH, HEIGHT, PITCH);

	close(fd);
	guest_cl_transform(buffer, out, SIZE);
	guest_cl_transform(part, out, SIZE / 2);
	guest_cl_transform_from_image(image, out, WIDTH, HEIGHT);
	clReleaseMemObject(buffer);
	clReleaseMemObject(image);
	clReleaseMemObject(part);
	clReleaseMemObject(out);
}

static void dmabuf_leaves_nothing(const struct producer *p)
{
	struct held before, after;

	for (int i = 0; i < 4; i++)
		dmabuf_import_all_kinds(p);
	before = held_settled();
	for (int i = 0; i < 16; i++)
		dmabuf_import_all_kinds(p);
	after = held_since(&before);
	EXPECT_EQ(after.descriptors, before.descriptors);
	EXPECT_EQ(after.mappings, before.mappings);
	EXPECT_EQ(after.dmabufs, before.dmabufs);
}
TEST_EACH(leaves_nothing, struct producer_row, producers,
	  "A released import leaves no descriptor, mapping or dma-buf behind.")
{
	dmabuf_leaves_nothing(dmabuf_need_producer(row->producer));
}
