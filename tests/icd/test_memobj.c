/* SPDX-License-Identifier: Apache-2.0 */
/* The layer's records of imports and of objects made from imports. */
#include "access.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

/* Query @name returns @value, and reports the size @size. */
static void expect_info(cl_mem mem, cl_mem_info name, const void *value, size_t size)
{
	unsigned char answer[64];
	size_t got = 77;

	EXPECT_EQ(cl.clGetMemObjectInfo(mem, name, 0, NULL, &got), CL_SUCCESS);
	EXPECT_EQ(got, size);
	memset(answer, 0xa5, sizeof(answer));
	EXPECT_EQ(cl.clGetMemObjectInfo(mem, name, sizeof(answer), answer, &got), CL_SUCCESS);
	EXPECT_EQ(got, size);
	EXPECT(!memcmp(answer, value, size));
	EXPECT_EQ(answer[size], 0xa5);
	if (size)
		EXPECT_EQ(cl.clGetMemObjectInfo(mem, name, size - 1, answer, NULL),
			  CL_INVALID_VALUE);
}

static void expect_flags(cl_mem mem, cl_mem_flags flags)
{
	expect_info(mem, CL_MEM_FLAGS, &flags, sizeof(flags));
}

/* Queries do not show how the layer made @mem. */
static void expect_hidden(cl_mem mem)
{
	void *const none = NULL;
	const cl_bool no = CL_FALSE;

	expect_info(mem, CL_MEM_HOST_PTR, &none, sizeof(none));
	expect_info(mem, CL_MEM_USES_SVM_POINTER, &no, sizeof(no));
	expect_info(mem, CL_MEM_PROPERTIES, "", 0);
}

/* The flags of an import, and the flags that a query shows. */
static const struct shown_flags {
	const char *name;
	cl_mem_flags asked, shown;
} shown_flags[] = {
	{ "default", 0, CL_MEM_READ_WRITE },
	{ "use_host_ptr", CL_MEM_USE_HOST_PTR, CL_MEM_READ_WRITE },
	{ "read_only_use_host_ptr", CL_MEM_READ_ONLY | CL_MEM_USE_HOST_PTR, CL_MEM_READ_ONLY },
	{ "write_only", CL_MEM_WRITE_ONLY, CL_MEM_WRITE_ONLY },
	{ "host_no_access", CL_MEM_READ_WRITE | CL_MEM_HOST_NO_ACCESS,
	  CL_MEM_READ_WRITE | CL_MEM_HOST_NO_ACCESS },
};

TEST_EACH(info, struct shown_flags, shown_flags,
	  "clGetMemObjectInfo shows an import as the application asked for, not as the layer made "
	  "the "
	  "object.")
{
	const cl_mem_object_type type = CL_MEM_OBJECT_BUFFER;
	const size_t size = SIZE, zero = 0;
	const cl_uint one = 1, none = 0;
	void *const no_parent = NULL;
	cl_mem mem;

	fixture_reset();
	fixture_open();
	mem = fixture_import_host(row->asked, pages_map(2), SIZE);
	expect_flags(mem, row->shown);
	expect_hidden(mem);
	expect_info(mem, CL_MEM_TYPE, &type, sizeof(type));
	expect_info(mem, CL_MEM_SIZE, &size, sizeof(size));
	expect_info(mem, CL_MEM_OFFSET, &zero, sizeof(zero));
	expect_info(mem, CL_MEM_CONTEXT, &fix.context, sizeof(fix.context));
	expect_info(mem, CL_MEM_REFERENCE_COUNT, &one, sizeof(one));
	expect_info(mem, CL_MEM_MAP_COUNT, &none, sizeof(none));
	expect_info(mem, CL_MEM_ASSOCIATED_MEMOBJECT, &no_parent, sizeof(no_parent));
	cl.clReleaseMemObject(mem);
	fixture_close();
}

#define CROWD 24

/* Of the slots that removed records leave, one may be where the table looks for the number first. */
TEST(number_is_no_handle, "A number is not taken for an import that was released.")
{
	unsigned char *memory;
	cl_mem mems[CROWD], numbers[] = { (cl_mem)1, (cl_mem)2, (cl_mem)3 };
	char byte;

	fixture_reset();
	fixture_open();
	memory = pages_map(CROWD);
	for (int round = 0; round < 64; round++) {
		for (int i = 0; i < CROWD; i++)
			mems[i] = fixture_import_host(0, memory + 4096 * i, 4096);
		for (int i = 0; i < CROWD; i += 2)
			cl.clReleaseMemObject(mems[i]);
		for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
			EXPECT_EQ(cl.clEnqueueReadBuffer(fix.queue, numbers[i], CL_TRUE, 0, 1,
							 &byte, 0, NULL, NULL),
				  CL_INVALID_MEM_OBJECT);
		for (int i = 1; i < CROWD; i += 2)
			cl.clReleaseMemObject(mems[i]);
	}
	fixture_close();
}

TEST(info_of_sub_buffer,
     "A sub-buffer of an import shows its parent and offset, and no host pointer.")
{
	const size_t size = 256, offset = 1024;
	cl_mem mem, sub;

	fixture_reset();
	fixture_open();
	mem = fixture_import_host(0, pages_map(2), SIZE);
	sub = fixture_create_sub_buffer(mem, offset, size);
	expect_flags(sub, CL_MEM_READ_WRITE);
	expect_hidden(sub);
	expect_info(sub, CL_MEM_OFFSET, &offset, sizeof(offset));
	expect_info(sub, CL_MEM_SIZE, &size, sizeof(size));
	expect_info(sub, CL_MEM_ASSOCIATED_MEMOBJECT, &mem, sizeof(mem));
	cl.clReleaseMemObject(sub);
	cl.clReleaseMemObject(mem);
	fixture_close();
}

/* The layer makes 2D images, and the driver makes 1D images. */
static const struct image_shape {
	const char *name;
	cl_mem_object_type type;
	size_t width, height, pitch;
} image_shapes[] = {
	{ "2d", CL_MEM_OBJECT_IMAGE2D, 16, 16, 80 },
	{ "1d", CL_MEM_OBJECT_IMAGE1D_BUFFER, 64, 0, 0 },
};

TEST_EACH(info_of_image, struct image_shape, image_shapes,
	  "An image on an import shows the import as its buffer, whether the driver or the layer "
	  "made "
	  "the image.")
{
	cl_mem mem, made, from;

	fixture_reset();
	fixture_open();
	mem = fixture_import_host(0, pages_map(2), SIZE);
	made = fixture_create_image(row->type, mem, row->width, row->height, row->pitch);
	expect_hidden(made);
	expect_flags(made, CL_MEM_READ_WRITE);
	expect_info(made, CL_MEM_ASSOCIATED_MEMOBJECT, &mem, sizeof(mem));
	EXPECT_EQ(cl.clGetImageInfo(made, CL_IMAGE_BUFFER, sizeof(from), &from, NULL), CL_SUCCESS);
	EXPECT(from == mem);
	cl.clReleaseMemObject(made);
	cl.clReleaseMemObject(mem);
	fixture_close();
}

TEST(info_of_others, "While imports live, an ordinary buffer keeps its host pointer and flags.")
{
	void *memory;
	cl_mem mem, other;
	cl_int err;

	fixture_reset();
	fixture_open();
	memory = pages_map(1);
	mem = fixture_import_host(0, pages_map(2), SIZE);
	other = cl.clCreateBuffer(fix.context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, 4096,
				  memory, &err);
	expect_flags(other, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR);
	expect_info(other, CL_MEM_HOST_PTR, &memory, sizeof(memory));
	EXPECT(!fixture_is_import(other));
	cl.clReleaseMemObject(other);
	cl.clReleaseMemObject(mem);
	fixture_close();
}

TEST(unknown_handles, "NULL, wild pointers and freed handles get the driver's error.")
{
	cl_mem mem, wild = (cl_mem)(uintptr_t)0x1000;
	size_t size;

	fixture_reset();
	fixture_open();
	mem = fixture_import_host(0, pages_map(2), SIZE);
	EXPECT_EQ(cl.clGetMemObjectInfo(NULL, CL_MEM_FLAGS, 0, NULL, &size), CL_INVALID_MEM_OBJECT);
	EXPECT_EQ(cl.clGetMemObjectInfo(wild, CL_MEM_FLAGS, 0, NULL, &size), CL_INVALID_MEM_OBJECT);
	EXPECT_EQ(cl.clRetainMemObject(wild), CL_INVALID_MEM_OBJECT);
	EXPECT_EQ(cl.clReleaseMemObject(wild), CL_INVALID_MEM_OBJECT);
	EXPECT_EQ(cl.clReleaseMemObject(NULL), CL_INVALID_MEM_OBJECT);
	cl.clReleaseMemObject(mem);
	EXPECT_EQ(cl.clReleaseMemObject(mem), CL_INVALID_MEM_OBJECT);
	EXPECT_EQ(cl.clGetMemObjectInfo(mem, CL_MEM_FLAGS, 0, NULL, &size), CL_INVALID_MEM_OBJECT);
	EXPECT_EQ(cl.clGetMemObjectInfo(mem, 0x7fff, 0, NULL, &size), CL_INVALID_MEM_OBJECT);
	fixture_close();
}

TEST(read_only_descriptor,
     "An import by a read-only descriptor is CL_MEM_READ_ONLY, and so are its sub-buffers and "
     "images.")
{
	const cl_buffer_region region = { 0, 256 };
	cl_mem mem, sub, made;
	int fd, read_only;
	cl_int err;

	fixture_reset();
	fixture_open();
	fd = fake_dmabuf_create("a", SIZE);
	read_only = fake_dmabuf_reopen(fd, O_RDONLY);
	mem = fix.import(fix.context, CL_MEM_READ_WRITE, fixture_dma_buf, &read_only, SIZE, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	expect_flags(mem, CL_MEM_READ_ONLY);
	sub = cl.clCreateSubBuffer(mem, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &region,
				   &err);
	EXPECT_EQ(err, CL_SUCCESS);
	expect_flags(sub, CL_MEM_READ_ONLY);
	made = fixture_create_image(CL_MEM_OBJECT_IMAGE2D, mem, 16, 16, 64);
	expect_flags(made, CL_MEM_READ_ONLY);
	cl.clReleaseMemObject(made);
	cl.clReleaseMemObject(sub);
	cl.clReleaseMemObject(mem);
	close(fd);
	close(read_only);
	fixture_close();
}

/* Imports the fake dma-buf @fd for @flags, by a descriptor opened with @mode. */
static cl_mem import_by_mode(int fd, int mode, cl_mem_flags flags, cl_int *err)
{
	int reopened = fake_dmabuf_reopen(fd, mode);
	cl_mem mem = fix.import(fix.context, flags, fixture_dma_buf, &reopened, SIZE, err);

	close(reopened);
	return mem;
}

struct access_flags {
	const char *name;
	cl_mem_flags flags;
};

#define READ_ONLY_WARNING                                                                         \
	"clImportMemoryARM: this dma-buf is imported CL_MEM_READ_ONLY, and a kernel that writes " \
	"to "                                                                                     \
	"it may end the program: "
#define DESCRIPTOR_WARNING \
	READ_ONLY_WARNING "its descriptor is O_RDONLY, and has to be O_RDWR for writers"

static const struct access_flags askings[] = { { "read_write", CL_MEM_READ_WRITE },
					       { "no_flags", 0 } };

TEST_EACH(read_only_warning, struct access_flags, askings,
	  "If the program asks to write, and the descriptor is read-only, the context's callback "
	  "says so at once, and once.")
{
	cl_int err = 1;
	int fd;

	fixture_reset();
	fixture_open();
	fd = fake_dmabuf_create("a", SIZE);
	cl.clReleaseMemObject(import_by_mode(fd, O_RDONLY, row->flags, &err));
	EXPECT_EQ(err, CL_SUCCESS);
	EXPECT(!strcmp(fix.notice, DESCRIPTOR_WARNING));
	EXPECT_EQ(fix.notices, 1);
	cl.clReleaseMemObject(import_by_mode(fd, O_RDONLY, row->flags, &err));
	EXPECT_EQ(err, CL_SUCCESS);
	EXPECT_EQ(fix.notices, 1);
	close(fd);
	fixture_close();
}

TEST(read_only_asked, "A program that asks to read alone gets no warning.")
{
	cl_int err = 1;
	int fd;

	fixture_reset();
	fixture_open();
	fd = fake_dmabuf_create("a", SIZE);
	cl.clReleaseMemObject(import_by_mode(fd, O_RDONLY, CL_MEM_READ_ONLY, &err));
	EXPECT_EQ(err, CL_SUCCESS);
	EXPECT_EQ(fix.notices, 0);
	close(fd);
	fixture_close();
}

TEST(read_only_exporter,
     "If the exporter lets nobody map a dma-buf for writing, the import is CL_MEM_READ_ONLY, and "
     "the callback says so.")
{
	cl_int err = 1;
	cl_mem mem;
	int fd;

	fixture_reset();
	fixture_open();
	fd = fake_dmabuf_create("a", SIZE);
	EXPECT_EQ(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), 0);
	mem = import_by_mode(fd, O_RDWR, CL_MEM_READ_WRITE, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	expect_flags(mem, CL_MEM_READ_ONLY);
	EXPECT(!strcmp(fix.notice,
		       READ_ONLY_WARNING "its exporter lets nobody map it for writing"));
	cl.clReleaseMemObject(mem);
	close(fd);
	fixture_close();
}

TEST(write_only_of_read_only,
     "CL_MEM_WRITE_ONLY by a read-only descriptor is refused: nothing is left of the request.")
{
	cl_int err = 1;
	int fd;

	fixture_reset();
	fixture_open();
	fd = fake_dmabuf_create("a", SIZE);
	EXPECT(!import_by_mode(fd, O_RDONLY, CL_MEM_WRITE_ONLY, &err));
	EXPECT_EQ(err, CL_INVALID_OPERATION);
	EXPECT(!strcmp(fix.notice, "clImportMemoryARM: the import is write-only, and the dma-buf "
				   "read-only: "
				   "its descriptor is O_RDONLY, and has to be O_RDWR for writers"));
	close(fd);
	fixture_close();
}

TEST(write_only_part_of_read_only,
     "A CL_MEM_WRITE_ONLY sub-buffer or image of a read-only import is CL_INVALID_VALUE.")
{
	const cl_buffer_region region = { 0, 256 };
	cl_int err = 1;
	cl_mem mem;
	int fd;

	fixture_reset();
	fixture_open();
	fd = fake_dmabuf_create("a", SIZE);
	mem = import_by_mode(fd, O_RDONLY, CL_MEM_READ_WRITE, &err);
	EXPECT(!cl.clCreateSubBuffer(mem, CL_MEM_WRITE_ONLY, CL_BUFFER_CREATE_TYPE_REGION, &region,
				     &err));
	EXPECT_EQ(err, CL_INVALID_VALUE);
	EXPECT(!strcmp(fix.notice, "clCreateSubBuffer: the sub-buffer's flags CL_MEM_WRITE_ONLY do "
				   "not fit its import's, CL_MEM_READ_ONLY"));
	EXPECT(!fixture_try_image(CL_MEM_WRITE_ONLY, mem, &err));
	EXPECT_EQ(err, CL_INVALID_VALUE);
	EXPECT(!strcmp(fix.notice, "clCreateImage: the image's flags CL_MEM_WRITE_ONLY do not fit "
				   "its memory object's, CL_MEM_READ_ONLY"));
	cl.clReleaseMemObject(mem);
	close(fd);
	fixture_close();
}

static const struct access_flags access_flags[] = { { "read_write", CL_MEM_READ_WRITE },
						    { "write_only", CL_MEM_WRITE_ONLY },
						    { "read_only", CL_MEM_READ_ONLY } };

TEST_EACH(write_only_descriptor, struct access_flags, access_flags,
	  "A write-only descriptor is refused, since the CPU cannot map the dma-buf.")
{
	cl_int err = 1;
	int fd;

	fixture_reset();
	fixture_open();
	fd = fake_dmabuf_create("a", SIZE);
	EXPECT(!import_by_mode(fd, O_WRONLY, row->flags, &err));
	EXPECT_EQ(err, CL_INVALID_OPERATION);
	EXPECT(strstr(fix.notice, "is O_WRONLY"));
	close(fd);
	fixture_close();
}
