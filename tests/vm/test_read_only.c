/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Imports of read-only descriptors: "Flags attached to a dma_buf file handle take precedence over
 * memory flags supplied to clImportMemoryARM".
 */
#include "guest_cl.h"
#include "harness.h"
#include "producer.h"

#include <fcntl.h>
#include <unistd.h>

enum { SIZE = 64 * 1024, WIDTH = 64, HEIGHT = 64, PITCH = 1024 };

static const struct producer_row {
	const char *name, *producer;
} producers[] = {
	{ "heap", "dma-heap" },
	{ "gdmabuf", "gdmabuf" },
	{ "vgem", "vgem" },
	{ "virtio_gpu", "virtio-gpu" },
};

static int read_only_need(const char *name)
{
	const struct producer *p = producer_find(name);
	char why[160];
	int fd;

	EXPECT(p);
	if (producer_check(p, O_RDONLY, why, sizeof(why)))
		test_skip("%s", why);
	fd = producer_create(p, SIZE, O_RDONLY);
	EXPECT(fd >= 0);
	EXPECT_EQ(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDONLY);
	return fd;
}

static cl_mem_flags access_flags(cl_mem mem)
{
	return guest_cl_flags(mem) & (CL_MEM_READ_WRITE | CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY);
}

static void read_only_flags(int fd)
{
	const cl_mem_flags asked[] = { 0, CL_MEM_READ_WRITE, CL_MEM_READ_ONLY };

	for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
		cl_mem mem = guest_cl_import(fd, SIZE, asked[i]);

		EXPECT_EQ(guest_cl_flags(mem), CL_MEM_READ_ONLY);
		clReleaseMemObject(mem);
	}
	close(fd);
}
TEST_EACH(read_only_flags, struct producer_row, producers,
	  "The import of a read-only descriptor is CL_MEM_READ_ONLY.")
{
	read_only_flags(read_only_need(row->producer));
}

static void read_only_derived(int fd)
{
	const cl_mem_flags asked[] = { 0, CL_MEM_READ_WRITE, CL_MEM_READ_ONLY };
	cl_mem buffer = guest_cl_import(fd, SIZE, CL_MEM_READ_WRITE);

	for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
		cl_mem part = guest_cl_sub_buffer(buffer, asked[i], SIZE / 2, SIZE / 2);
		cl_mem image = guest_cl_image(buffer, asked[i], WIDTH, HEIGHT, PITCH);

		EXPECT_EQ(access_flags(part), CL_MEM_READ_ONLY);
		EXPECT_EQ(access_flags(image), CL_MEM_READ_ONLY);
		clReleaseMemObject(part);
		clReleaseMemObject(image);
	}
	clReleaseMemObject(buffer);
	close(fd);
}
TEST_EACH(read_only_derived, struct producer_row, producers,
	  "Sub-buffers and images on a read-only import are read-only.")
{
	read_only_derived(read_only_need(row->producer));
}

/* The dma-buf is full of zeros, by the Linux kernel.  Frames are read in test_camera.c. */
static void read_only_reads(int fd)
{
	unsigned char got[SIZE], wrong = 0;
	cl_mem in = guest_cl_import(fd, SIZE, CL_MEM_READ_WRITE), out = guest_cl_native(SIZE, NULL);

	guest_cl_transform(in, out, SIZE);
	guest_cl_native_read(out, got, SIZE);
	for (size_t i = 0; i < SIZE; i++)
		wrong |= got[i] ^ GUEST_CL_KEY;
	EXPECT_EQ(wrong, 0);
	clReleaseMemObject(in);
	clReleaseMemObject(out);
	close(fd);
}
TEST_EACH(read_only_reads, struct producer_row, producers,
	  "A kernel reads through a read-only descriptor.")
{
	read_only_reads(read_only_need(row->producer));
}

static void read_only_for_writing_alone(int fd)
{
	EXPECT_EQ(guest_cl_import_error(fd, SIZE, CL_MEM_WRITE_ONLY), CL_INVALID_OPERATION);
	close(fd);
}
TEST_EACH(read_only_for_writing_alone, struct producer_row, producers,
	  "A read-only descriptor is refused if only writing is asked for.")
{
	read_only_for_writing_alone(read_only_need(row->producer));
}
