/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Devices that are zero copy for whole pages alone.  An import within pages is a part of a backing
 * buffer over the enclosing pages.
 */
#include "zero_copy.h"

#include <unistd.h>

#define ALIGN 128 /* bytes: the stub's CL_DEVICE_MEM_BASE_ADDR_ALIGN */

static const struct form {
	const char *name;
	enum stub_option option;
	long value; /* 0: a page */
	bool is_gpu;
} forms[] = {
	{ "copies", STUB_ZERO_COPY_ALIGN, 0, false },
	{ "copies_gpu", STUB_ZERO_COPY_ALIGN, 0, true },
	{ "refuses", STUB_UNALIGNED_FAIL, CL_INVALID_HOST_PTR, false },
	{ "refuses_gpu", STUB_UNALIGNED_FAIL, CL_INVALID_HOST_PTR, true },
	{ "is_short", STUB_UNALIGNED_FAIL, CL_MEM_OBJECT_ALLOCATION_FAILURE, true },
};

static void page_only_open(const struct form *form)
{
	fixture_reset();
	stub_set(form->option, form->value ? form->value : (long)PAGE);
	stub_set(STUB_GPU, form->is_gpu);
	stub_set(STUB_NO_NATIVE_KERNEL, form->is_gpu);
	fixture_open();
}

static size_t page_only_query(cl_mem mem, cl_mem_info name)
{
	size_t value = 0;

	EXPECT_EQ(cl.clGetMemObjectInfo(mem, name, sizeof(value), &value, NULL), CL_SUCCESS);
	return value;
}

/* Ranges of three pages. */
static const struct range {
	const char *name;
	struct pages offset, size;
} ranges[] = {
	{ "within_a_page", { 0, 3 * ALIGN }, { 0, 1001 } },
	{ "odd_size", { 0, 0 }, { 1, -1 } },
	{ "a_byte", { 0, ALIGN }, { 0, 1 } },
	{ "over_a_page", { 1, -ALIGN }, { 2, 0 } },
	{ "to_the_end", { 0, ALIGN }, { 3, -ALIGN } },
};

TEST(verify, "With CLIMPORT_VERIFY=1 an import within a page proves itself, too.")
{
	fixture_reset();
	setenv("CLIMPORT_VERIFY", "1", 1);
	stub_set(STUB_ZERO_COPY_ALIGN, PAGE);
	stub_set(STUB_GPU, 1);
	stub_set(STUB_NO_NATIVE_KERNEL, 1);
	fixture_open();
	cl.clReleaseMemObject(fixture_import_host(CL_MEM_READ_WRITE, pages_map(1) + ALIGN, 1001));
	fixture_close();
	unsetenv("CLIMPORT_VERIFY");
}

TEST_EACH_PAIR(takes, struct form, forms, struct range, ranges,
	       "A kernel works in place on an import within pages, and on no byte outside.")
{
	unsigned char *memory, *p;
	cl_mem mem;

	page_only_open(row);
	memory = pages_map(3);
	p = memory + pages_bytes(column->offset);
	mem = fixture_import_host(CL_MEM_READ_WRITE, p, pages_bytes(column->size));
	p[0] = 41;
	fixture_increment(mem);
	EXPECT_EQ(p[0], 42);
	p[0] = 0;
	for (size_t i = 0; i < 3 * PAGE; i++)
		EXPECT_EQ(memory[i], 0);
	cl.clReleaseMemObject(mem);
	fixture_close();
}

TEST_EACH(queries, struct form, forms,
	  "Queries of an import within pages show neither the enclosing pages nor their buffer.")
{
	cl_mem mem, part;
	unsigned char *p;

	page_only_open(row);
	p = pages_map(2) + 3 * ALIGN;
	mem = fixture_import_host(CL_MEM_READ_WRITE, p, 1001);
	EXPECT_EQ(page_only_query(mem, CL_MEM_OFFSET), 0);
	EXPECT_EQ(page_only_query(mem, CL_MEM_SIZE), 1001);
	EXPECT_EQ(page_only_query(mem, CL_MEM_ASSOCIATED_MEMOBJECT), 0);
	EXPECT_EQ(page_only_query(mem, CL_MEM_FLAGS), CL_MEM_READ_WRITE);
	EXPECT_EQ(page_only_query(mem, CL_MEM_HOST_PTR), 0);
	part = fixture_create_sub_buffer(mem, 2 * ALIGN, 100);
	EXPECT_EQ(page_only_query(part, CL_MEM_OFFSET), 2 * ALIGN);
	EXPECT_EQ(page_only_query(part, CL_MEM_ASSOCIATED_MEMOBJECT), (size_t)mem);
	EXPECT_EQ(page_only_query(part, CL_MEM_HOST_PTR), 0);
	EXPECT(fixture_is_import(mem) && fixture_is_import(part));
	cl.clReleaseMemObject(mem);
	p[2 * ALIGN] = 50;
	fixture_increment(part);
	EXPECT_EQ(p[2 * ALIGN], 51);
	cl.clReleaseMemObject(part);
	fixture_close();
}

TEST_EACH(unaligned, struct form, forms,
	  "If no sub-buffer can begin at an address, the import is refused, and the message names "
	  "the "
	  "alignment.")
{
	page_only_open(row);
	EXPECT_EQ(fixture_import_error(fix.context, 0, NULL, pages_map(1) + 64, 100),
		  CL_INVALID_OPERATION);
	EXPECT(strstr(fix.notice, "multiples of 128 bytes"));
	fixture_close();
}

TEST(lack_of_the_moment,
     "If a self-test within pages fails once for want of memory, the device takes any address.")
{
	fixture_reset();
	fixture_open();
	stub_fail("clCreateBuffer", 3,
		  CL_MEM_OBJECT_ALLOCATION_FAILURE); /* pages have two buffers */
	EXPECT(zero_copy_takes(CL_MEM_READ_WRITE, pages_map(1) + 1, 100));
	EXPECT(stub_failed());
	fixture_close();
}

static const struct part_fault {
	const char *name, *function;
	cl_int code;
} part_faults[] = {
	{ "buffer", "clCreateBuffer", CL_MEM_OBJECT_ALLOCATION_FAILURE },
	{ "sub_buffer", "clCreateSubBuffer", CL_OUT_OF_HOST_MEMORY },
	{ "callback", "clSetMemObjectDestructorCallback", CL_OUT_OF_HOST_MEMORY },
	{ "no_buffer", "clCreateBuffer", STUB_NO_HANDLE },
	{ "no_sub_buffer", "clCreateSubBuffer", STUB_NO_HANDLE },
};

TEST_EACH(
	faults, struct part_fault, part_faults,
	"If the driver fails to make an import within pages, the import fails and leaves nothing.")
{
	unsigned char *p;

	page_only_open(&forms[1]);
	p = pages_map(1) + ALIGN;
	cl.clReleaseMemObject(fixture_import_host(0, p, 100)); /* proves the class */
	for (unsigned long nth = 1; nth <= 2; nth++) {
		cl_int err = 1;
		cl_mem mem;

		stub_fail(row->function, nth, row->code);
		mem = fix.import(fix.context, 0, NULL, p, 100, &err);
		EXPECT_EQ(mem == NULL, stub_failed());
		EXPECT_EQ(err, !stub_failed()		     ? CL_SUCCESS
			       : row->code == STUB_NO_HANDLE ? CL_OUT_OF_RESOURCES
							     : row->code);
		if (mem)
			cl.clReleaseMemObject(mem);
		stub_fail(NULL, 0, 0);
	}
	fixture_close();
}

TEST(dma_buf,
     "A dma-buf whose size is no whole number of pages stays mapped until the driver has destroyed "
     "every buffer over the mapping.")
{
	int fd = fake_dmabuf_create("a", 2 * PAGE), none = 0;
	cl_mem mem;

	page_only_open(&forms[0]);
	mem = fixture_import_dmabuf(fd, PAGE + 100);
	close(fd);
	fixture_increment(mem);
	stub_set(STUB_ASYNC_DESTRUCTOR, STUB_HELD);
	cl.clReleaseMemObject(mem);
	EXPECT_EQ(process_count_mappings("fake-dmabuf"), 1);
	stub_set(STUB_ASYNC_DESTRUCTOR, 1);
	EXPECT(process_settles(fixture_mapped_at_most, &none));
	stub_set(STUB_ASYNC_DESTRUCTOR, 0);
	fixture_close();
}

static const struct image_driver {
	const char *name;
	long at_root;
} image_drivers[] = { { "good", 0 }, { "at_root", 1 } };

TEST_EACH(images, struct image_driver, image_drivers,
	  "An image on an import within pages shows the import, or is refused.")
{
	unsigned char *p;
	cl_mem mem, image;
	cl_int err;

	fixture_reset();
	stub_set(STUB_UNALIGNED_FAIL, CL_INVALID_HOST_PTR);
	stub_set(STUB_IMAGE2D_FROM_BUFFER, 1);
	stub_set(STUB_IMAGES_AT_ROOT, row->at_root);
	fixture_open();
	p = pages_map(1) + ALIGN;
	mem = fixture_import_host(CL_MEM_READ_WRITE, p, 256);
	image = fixture_try_image(0, mem, &err);
	EXPECT_EQ(err, row->at_root ? CL_INVALID_OPERATION : CL_SUCCESS);
	EXPECT_EQ(image == NULL, row->at_root);
	if (image)
		cl.clReleaseMemObject(image);
	cl.clReleaseMemObject(mem);
	fixture_close();
}

TEST(image_offset, "CL_MEM_OFFSET of an image on a sub-buffer is 0, also if the import is a part.")
{
	cl_mem mem, part, image;
	cl_int err;

	fixture_reset();
	stub_set(STUB_UNALIGNED_FAIL, CL_INVALID_HOST_PTR);
	stub_set(STUB_IMAGE2D_FROM_BUFFER, 1);
	fixture_open();
	mem = fixture_import_host(CL_MEM_READ_WRITE, pages_map(1) + ALIGN, 1024);
	part = fixture_create_sub_buffer(mem, 2 * ALIGN, 256);
	image = fixture_try_image(0, part, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	EXPECT_EQ(page_only_query(image, CL_MEM_OFFSET), 0);
	EXPECT_EQ(page_only_query(image, CL_MEM_ASSOCIATED_MEMOBJECT), (size_t)part);
	cl.clReleaseMemObject(image);
	cl.clReleaseMemObject(part);
	cl.clReleaseMemObject(mem);
	fixture_close();
}
