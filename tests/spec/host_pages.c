/* SPDX-License-Identifier: Apache-2.0 */
/* The section Host process memory type: two imports on the same page. */
#include <time.h>

#include "kernels.h"

/* The size of a part: two parts fit on a page, at the first and at the fourth multiple. */
static size_t part_of_a_page(void)
{
	size_t size = 4 * spec.cache_line;

	need_alignment(spec.page / 8);
	return size < host_alignment() ? host_alignment() : size;
}

/*
 * If the device uses the page tables of the process, every page is mapped before any import.  Such
 * a device may accept the second import; then both imports have to work.
 */
TEST(page_of_another_unaligned_import, "R6-48 If the page is already mapped by another unaligned "
				       "import, an error will occur.")
{
	unsigned char *memory = spec_map_own_pages();
	size_t size = part_of_a_page();
	cl_mem first = spec_import_host(CL_MEM_READ_WRITE, memory + size, size), second;
	cl_int error = 1;

	second = released_later(spec.import(spec.context, CL_MEM_READ_WRITE, NULL,
					    memory + 4 * size, size, &error));
	if (error) {
		EXPECT(!second);
		EXPECT(error < 0);
		expect_shared(first, memory + size, size);
		return;
	}
	spec_note("no error: the page is shared by two imports");
	expect_shared(first, memory + size, size);
	expect_shared(second, memory + 4 * size, size);
	expect_shared(first, memory + size, size);
}

/* Two allocations on a page: the flags decide how the page is mapped. */
static void expect_conflict(cl_mem_flags first, cl_mem_flags second)
{
	unsigned char *memory = spec_map_own_pages();
	size_t size = part_of_a_page();

	spec_import_host(first, memory + size, size);
	EXPECT_EXACT(spec_import_host_error(second, memory + 4 * size, size), CL_INVALID_OPERATION);
}

TEST(reader_on_a_writers_page,
     "R6-53 Importing two allocations that aren't page-aligned and that request different memory "
     "flags is unsupported; an error will be returned.")
{
	expect_conflict(CL_MEM_READ_WRITE, CL_MEM_READ_ONLY);
}

TEST(writer_on_a_readers_page,
     "R6-53 Importing two allocations that aren't page-aligned and that request different memory "
     "flags is unsupported; an error will be returned.")
{
	expect_conflict(CL_MEM_READ_ONLY, CL_MEM_READ_WRITE);
}

TEST(write_only_on_a_readers_page,
     "R6-53 Importing two allocations that aren't page-aligned and that request different memory "
     "flags is unsupported; an error will be returned.")
{
	expect_conflict(CL_MEM_READ_ONLY, CL_MEM_WRITE_ONLY);
}

TEST(same_bytes_with_other_flags,
     "R6-53 Importing two allocations that aren't page-aligned and that request different memory "
     "flags is unsupported; an error will be returned.")
{
	unsigned char *memory = spec_map_own_pages();
	size_t size = part_of_a_page();

	spec_import_host(CL_MEM_READ_WRITE, memory + size, size);
	EXPECT_EXACT(spec_import_host_error(CL_MEM_READ_ONLY, memory + size, size),
		     CL_INVALID_OPERATION);
}

/* The last page of the first import is the first page of the second import. */
TEST(other_flags_on_the_last_page,
     "R6-53 Importing two allocations that aren't page-aligned and that request different memory "
     "flags is unsupported; an error will be returned.")
{
	unsigned char *memory = spec_map_own_pages();
	size_t half = spec.page / 2, part = part_of_a_page();

	spec_import_host(CL_MEM_READ_WRITE, memory + half, 2 * spec.page);
	EXPECT_EXACT(spec_import_host_error(CL_MEM_READ_ONLY, memory + 2 * spec.page + half + part,
					    spec.page),
		     CL_INVALID_OPERATION);
}

/* A driver may destroy a released object a little later, on a thread of the driver. */
static void wait_until_taken(cl_mem_flags flags, unsigned char *memory, size_t size)
{
	for (int i = 0; i < 2000 && !takes_host(flags, memory, size); i++)
		nanosleep(&(struct timespec){ 0, 1000 * 1000 }, NULL);
}

/* The conflict ends with the first import, and page-aligned imports do not conflict. */
TEST(no_conflict_after_the_release,
     "R6-53 Importing two allocations that aren't page-aligned and that request different memory "
     "flags is unsupported; an error will be returned.")
{
	unsigned char *memory = spec_map_own_pages();
	size_t size = part_of_a_page();
	cl_int error;
	cl_mem mem;

	mem = spec.import(spec.context, CL_MEM_READ_WRITE, NULL, memory + size, size, &error);
	EXPECT_EQ(error, CL_SUCCESS);
	EXPECT_EQ(clReleaseMemObject(mem), CL_SUCCESS);
	if (!spec.exact)
		wait_until_taken(CL_MEM_READ_ONLY, memory + size, size);
	mem = spec_import_host(CL_MEM_READ_ONLY, memory + size, size);
	expect_read_by_device(mem, memory + size, size);
}

TEST(aligned_imports_with_different_flags,
     "R6-53 Importing two allocations that aren't page-aligned and that request different memory "
     "flags is unsupported; an error will be returned.")
{
	unsigned char *memory = spec_map_pages(2);
	cl_mem writer = spec_import_host(CL_MEM_READ_WRITE, memory, 2 * spec.page);
	cl_mem reader = spec_import_host(CL_MEM_READ_ONLY, memory, 2 * spec.page);

	expect_shared(writer, memory, 2 * spec.page);
	expect_read_by_device(reader, memory, 2 * spec.page);
}
