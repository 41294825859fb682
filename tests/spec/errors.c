/* SPDX-License-Identifier: Apache-2.0 */
/* The section Errors, but for flags, properties and the sixteen calls, which have their files. */
#include <sys/mman.h>

#include "kernels.h"

TEST(null_context, "R6-22 CL_INVALID_CONTEXT on invalid context.")
{
	EXPECT_EQ(
		spec_import_error_once(NULL, CL_MEM_READ_WRITE, NULL, spec_map_pages(1), spec.page),
		CL_INVALID_CONTEXT);
}

/* A driver may crash on a freed handle; climport does not. */
TEST(freed_context, "R6-22 CL_INVALID_CONTEXT on invalid context.")
{
	cl_context context;
	cl_int error;

	if (!spec.exact)
		test_skip("undefined but for CLIMPORT_CONFORM_EXACT");
	context = clCreateContext(NULL, 1, &spec.device, NULL, NULL, &error);
	EXPECT_EQ(error, CL_SUCCESS);
	EXPECT_EQ(clReleaseContext(context), CL_SUCCESS);
	EXPECT_EQ(spec_import_error_once(context, CL_MEM_READ_WRITE, NULL, spec_map_pages(1),
					 spec.page),
		  CL_INVALID_CONTEXT);
}

TEST(context_of_nobody, "R6-22 CL_INVALID_CONTEXT on invalid context.")
{
	static long nothing[64];

	if (!spec.exact)
		test_skip("undefined but for CLIMPORT_CONFORM_EXACT");
	EXPECT_EQ(spec_import_error_once((cl_context)nothing, CL_MEM_READ_WRITE, NULL,
					 spec_map_pages(1), spec.page),
		  CL_INVALID_CONTEXT);
}

TEST(null_memory, "R6-25 CL_INVALID_VALUE if memory is NULL.")
{
	EXPECT_EQ(spec_import_host_error(CL_MEM_READ_WRITE, NULL, spec.page), CL_INVALID_VALUE);
}

TEST(null_memory_of_dma_buf, "R6-25 CL_INVALID_VALUE if memory is NULL.")
{
	const cl_import_properties_arm list[] = { CL_IMPORT_TYPE_ARM, CL_IMPORT_TYPE_DMA_BUF_ARM,
						  0 };

	need_dma_buf();
	EXPECT_EQ(spec_import_error(CL_MEM_READ_WRITE, list, NULL, spec.page), CL_INVALID_VALUE);
}

TEST(hole_at_the_start,
     "R6-26 CL_INVALID_OPERATION when host virtual pages in the range of <memory> to "
     "<memory>+<size> are not mapped in the userspace address space.")
{
	EXPECT_EQ(spec_import_host_error(CL_MEM_READ_WRITE, spec_map_pages_with_hole(4, 0),
					 4 * spec.page),
		  CL_INVALID_OPERATION);
}

TEST(hole_in_the_middle,
     "R6-26 CL_INVALID_OPERATION when host virtual pages in the range of <memory> to "
     "<memory>+<size> are not mapped in the userspace address space.")
{
	EXPECT_EQ(spec_import_host_error(CL_MEM_READ_WRITE, spec_map_pages_with_hole(64, 40),
					 64 * spec.page),
		  CL_INVALID_OPERATION);
}

/* Only the last byte of the range is in the hole. */
TEST(hole_at_the_last_byte,
     "R6-26 CL_INVALID_OPERATION when host virtual pages in the range of <memory> to "
     "<memory>+<size> are not mapped in the userspace address space.")
{
	unsigned char *memory = spec_map_pages_with_hole(4, 3);

	EXPECT_EQ(spec_import_host_error(CL_MEM_READ_WRITE, memory + 100, 3 * spec.page - 99),
		  CL_INVALID_OPERATION);
}

TEST(hole_behind_the_last_byte,
     "R6-26 CL_INVALID_OPERATION when host virtual pages in the range of <memory> to "
     "<memory>+<size> are not mapped in the userspace address space.")
{
	unsigned char *memory = spec_map_pages_with_hole(4, 3);
	cl_mem mem = spec_import_host(CL_MEM_READ_WRITE, memory, 3 * spec.page);

	expect_shared(mem, memory, 3 * spec.page);
}

TEST(hole_for_readers, "R6-26 CL_INVALID_OPERATION when host virtual pages in the range of "
		       "<memory> to <memory>+<size> are not mapped in the userspace address space.")
{
	EXPECT_EQ(spec_import_host_error(CL_MEM_READ_ONLY, spec_map_pages_with_hole(4, 1),
					 4 * spec.page),
		  CL_INVALID_OPERATION);
}

TEST(wild_pointer, "R6-26 CL_INVALID_OPERATION when host virtual pages in the range of <memory> to "
		   "<memory>+<size> are not mapped in the userspace address space.")
{
	unsigned char *memory = spec_map_pages_with_hole(1, 0);

	EXPECT_EQ(spec_import_host_error(CL_MEM_READ_WRITE, memory, spec.page),
		  CL_INVALID_OPERATION);
}

TEST(first_page_of_the_address_space,
     "R6-26 CL_INVALID_OPERATION when host virtual pages in the range of <memory> to "
     "<memory>+<size> are not mapped in the userspace address space.")
{
	EXPECT_EQ(spec_import_host_error(CL_MEM_READ_WRITE, (void *)(uintptr_t)16, 64),
		  CL_INVALID_OPERATION);
}

TEST(address_of_no_process,
     "R6-26 CL_INVALID_OPERATION when host virtual pages in the range of <memory> to "
     "<memory>+<size> are not mapped in the userspace address space.")
{
	EXPECT_EQ(spec_import_host_error(CL_MEM_READ_WRITE, (void *)(uintptr_t)0xdead00000000,
					 spec.page),
		  CL_INVALID_OPERATION);
}

TEST(address_of_the_kernel,
     "R6-26 CL_INVALID_OPERATION when host virtual pages in the range of <memory> to "
     "<memory>+<size> are not mapped in the userspace address space.")
{
	EXPECT_EQ(spec_import_host_error(CL_MEM_READ_WRITE,
					 (void *)(UINTPTR_MAX - 64 * spec.page + 1), spec.page),
		  CL_INVALID_OPERATION);
}

/* From revision 8 on, the size also exceeds the allocation: either error is right. */
static void expect_too_much(void *memory, size_t size)
{
	cl_int error = spec_import_host_error(CL_MEM_READ_WRITE, memory, size);

	EXPECT(error == CL_INVALID_OPERATION || error == CL_INVALID_BUFFER_SIZE);
}

TEST(size_beyond_the_mapping,
     "R6-26 CL_INVALID_OPERATION when host virtual pages in the range of <memory> to "
     "<memory>+<size> are not mapped in the userspace address space.")
{
	expect_too_much(spec_map_pages_with_hole(5, 4), 5 * spec.page);
}

TEST(size_beyond_the_address_space,
     "R6-26 CL_INVALID_OPERATION when host virtual pages in the range of <memory> to "
     "<memory>+<size> are not mapped in the userspace address space.")
{
	unsigned char *memory = spec_map_pages(1);

	expect_too_much(memory, SIZE_MAX - 64);
	expect_too_much(memory, SIZE_MAX - (uintptr_t)memory + 1);
	EXPECT_EXACT(spec_import_host_error(CL_MEM_READ_WRITE, memory, SIZE_MAX - 64),
		     CL_INVALID_BUFFER_SIZE);
}

TEST(size_max, "R6-26 CL_INVALID_OPERATION when host virtual pages in the range of <memory> to "
	       "<memory>+<size> are not mapped in the userspace address space.")
{
	unsigned char *memory = spec_map_pages(1);

	expect_too_much(memory, SIZE_MAX);
	EXPECT_EXACT(spec_import_host_error(CL_MEM_READ_WRITE, memory, SIZE_MAX),
		     CL_INVALID_BUFFER_SIZE);
}

/* A native implementation might commit all pages. */
TEST(size_beyond_the_device,
     "R6-26 CL_INVALID_OPERATION when host virtual pages in the range of <memory> to "
     "<memory>+<size> are not mapped in the userspace address space.")
{
	size_t size = device_number(CL_DEVICE_MAX_MEM_ALLOC_SIZE) + spec.page;
	void *memory;

	if (!spec.exact)
		test_skip("only for CLIMPORT_CONFORM_EXACT");
	memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		test_skip("no address space for more than CL_DEVICE_MAX_MEM_ALLOC_SIZE");
	EXPECT_EQ(spec_import_host_error(CL_MEM_READ_WRITE, memory, size), CL_INVALID_BUFFER_SIZE);
	munmap(memory, size);
}

/* Untouched anonymous memory has no physical pages. */
TEST(untouched_memory,
     "R6-27 This does _not_ include cases where physical pages are not allocated.")
{
	unsigned char *memory = spec_map_pages(16);
	cl_mem mem = spec_import_host(CL_MEM_READ_WRITE, memory, 16 * spec.page);

	kernels_add(mem, 16 * spec.page, spec.page, 3);
	for (size_t i = 0; i < 16; i++)
		EXPECT_BYTE(memory[i * spec.page], 3);
}

TEST(size_zero, "R12-16 CL_INVALID_BUFFER_SIZE when size is 0.")
{
	cl_int error = spec_import_host_error(CL_MEM_READ_WRITE, spec_map_pages(1), 0);

	EXPECT_EXACT(error, CL_INVALID_BUFFER_SIZE);
	if (spec.version >= VERSION_1_1_0)
		EXPECT_EQ(error, CL_INVALID_BUFFER_SIZE);
}

static const struct size_row {
	const char *name;
	size_t size;
} object_sizes[] = {
	{ "1", 1 },	  { "3", 3 },	    { "64", 64 },     { "100", 100 },
	{ "4095", 4095 }, { "4096", 4096 }, { "4097", 4097 },
};

TEST_EACH(size_of_the_object, struct size_row, object_sizes,
	  "R12-15 <size> must be greater than 0 and represents the size of the memory object to be "
	  "created.")
{
	cl_mem mem = spec_import_host(CL_MEM_READ_WRITE, spec_map_pages(2), row->size);
	size_t size = 0;

	EXPECT_EQ(clGetMemObjectInfo(mem, CL_MEM_SIZE, sizeof(size), &size, NULL), CL_SUCCESS);
	EXPECT_EQ(size, row->size);
}

static atomic_uint notices_of_other;

static void CL_CALLBACK errors_count_notice(const char *text, const void *info, size_t size,
					    void *user)
{
	(void)info;
	(void)size;
	if (user == &notices_of_other && text && *text)
		atomic_fetch_add(&notices_of_other, 1);
}

/* "may": the test prints the number of callbacks, and only climport has to make exactly one. */
TEST(callback_of_the_context, "R6-31 Futher error information may be reported via the cl_context "
			      "callback function.")
{
	unsigned int others = atomic_load(&spec.notices);
	cl_context context;
	cl_int error;

	spec_need_imports();
	EXPECT(spec.import != NULL);
	context = clCreateContext(NULL, 1, &spec.device, errors_count_notice, &notices_of_other,
				  &error);
	EXPECT_EQ(error, CL_SUCCESS);
	spec_undo_later(spec_release_context, context);
	atomic_store(&notices_of_other, 0);
	spec.import(context, CL_MEM_READ_WRITE, NULL, NULL, spec.page, &error);
	spec_note("the callback was called %u times", atomic_load(&notices_of_other));
	EXPECT_EXACT(atomic_load(&notices_of_other), 1);
	EXPECT_EQ(atomic_load(&spec.notices), others);
}
