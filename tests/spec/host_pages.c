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

#define R6_47                                                                                     \
	"R6-47 When alignment is less than a page size then whole pages touched by addresses in " \
	"the range of <memory> to <memory>+<size> will be mapped into the device."

#define R6_48 \
	"R6-48 If the page is already mapped by another unaligned import, an error will occur."

#define R6_53                                                                                  \
	"R6-53 Importing two allocations that aren't page-aligned and that request different " \
	"memory flags is unsupported; an error will be returned."

/* Waits until drivers that destroy objects late have destroyed a released import. */
static void wait_until_taken(cl_mem_flags flags, unsigned char *memory, size_t size)
{
	for (int i = 0; i < 2000 && !takes_host(flags, memory, size); i++)
		nanosleep(&(struct timespec){ 0, 1000 * 1000 }, NULL);
}

struct two_parts {
	unsigned char *first, *second;
	size_t size; /* of each */
};

/* Two parts of a page. */
static struct two_parts host_pages_parts(void)
{
	unsigned char *memory = spec_map_own_pages();
	size_t size = part_of_a_page();

	return (struct two_parts){ memory + size, memory + 4 * size, size };
}

static cl_mem host_pages_import(cl_mem_flags flags, void *memory, size_t size, cl_int *error)
{
	return released_later(spec.import(spec.context, flags, NULL, memory, size, error));
}

/*
 * If the device uses the page tables of the process, every page is mapped before any import.  Such
 * a device may accept the second import; then both imports have to work, in turns.  climport takes
 * both on such devices.
 */
static void host_pages_expect_both(const struct two_parts *parts, cl_mem first, cl_mem second)
{
	spec_note("no error: the page is shared by two imports");
	for (int turn = 0; turn < 2; turn++) {
		expect_shared(first, parts->first, parts->size);
		expect_shared(second, parts->second, parts->size);
		EXPECT(spec_memory_is(parts->first, parts->size, 18));
	}
}

/* Other devices refuse as long as the first import lives, and the first import goes on. */
static void host_pages_expect_one(const struct two_parts *parts, cl_mem first)
{
	expect_shared(first, parts->first, parts->size);
	undo_all();
	wait_until_taken(CL_MEM_READ_WRITE, parts->second, parts->size);
	expect_shared(spec_import_host(CL_MEM_READ_WRITE, parts->second, parts->size),
		      parts->second, parts->size);
}

TEST(page_of_another_unaligned_import, R6_48)
{
	struct two_parts parts = host_pages_parts();
	cl_mem first = spec_import_host(CL_MEM_READ_WRITE, parts.first, parts.size), second;
	cl_int error = 1;

	second = host_pages_import(CL_MEM_READ_WRITE, parts.second, parts.size, &error);
	EXPECT(second ? error == CL_SUCCESS : error < 0);
	if (error && device_number(CL_DEVICE_TYPE) & CL_DEVICE_TYPE_CPU)
		EXPECT_EXACT(error, CL_SUCCESS);
	if (second)
		host_pages_expect_both(&parts, first, second);
	else
		host_pages_expect_one(&parts, first);
}

/* The rule is about the page: unaligned imports of other pages work. */
TEST(page_beside_another_unaligned_import, R6_48)
{
	unsigned char *memory = spec_map_own_pages();
	size_t size = part_of_a_page();
	cl_mem first = spec_import_host(CL_MEM_READ_WRITE, memory + size, size);
	cl_mem second = spec_import_host(CL_MEM_READ_WRITE, memory + spec.page + size, size);

	expect_shared(first, memory + size, size);
	expect_shared(second, memory + spec.page + size, size);
}

/* The rule is about unaligned imports: an import of whole pages is in nobody's way. */
TEST(page_of_an_aligned_import, R6_48)
{
	unsigned char *memory = spec_map_own_pages();
	size_t size = part_of_a_page();
	cl_mem whole = spec_import_host(CL_MEM_READ_WRITE, memory, 2 * spec.page);
	cl_mem part = spec_import_host(CL_MEM_READ_WRITE, memory + size, size);

	expect_shared(whole, memory, 2 * spec.page);
	expect_shared(part, memory + size, size);
}

/* The pages before and behind the range are not mapped at all, and nobody needs them. */
TEST(no_page_beyond_the_touched_pages, R6_47)
{
	unsigned char *memory = spec_map_pages_between_holes(2);
	size_t part = host_alignment();
	cl_mem mem;

	need_alignment(spec.page / 2);
	mem = spec_import_host(CL_MEM_READ_WRITE, memory + part, 2 * spec.page - part);
	expect_shared(mem, memory + part, 2 * spec.page - part);
}

/*
 * A kernel may read the rest of the touched pages, below and above the import.  In OpenCL this is
 * undefined, so other implementations are not asked.
 */
TEST(whole_pages_are_mapped, R6_47)
{
	unsigned char *memory = spec_map_pages(1), *seen = spec_map_pages(1);
	size_t part = host_alignment(), below;
	cl_mem mem, out;

	if (!spec.exact)
		test_skip("only for CLIMPORT_CONFORM_EXACT");
	need_alignment(spec.page / 2);
	below = 2 * part;
	mem = spec_import_host(CL_MEM_READ_ONLY, memory + below, part);
	out = plain_buffer(spec.page);
	spec_fill_memory(memory, spec.page, 7);
	kernels_copy_around(mem, below, out, spec.page);
	plain_read(out, seen, spec.page);
	EXPECT(spec_memory_is(seen, spec.page, 7));
}

/* Two allocations on a page: the flags decide how the page is mapped. */
static const struct conflict {
	const char *name;
	cl_mem_flags first, second;
} conflicts[] = {
	{ "reader_on_a_writers_page", CL_MEM_READ_WRITE, CL_MEM_READ_ONLY },
	{ "writer_on_a_readers_page", CL_MEM_READ_ONLY, CL_MEM_READ_WRITE },
	{ "write_only_on_a_readers_page", CL_MEM_READ_ONLY, CL_MEM_WRITE_ONLY },
	{ "reader_on_a_write_only_page", CL_MEM_WRITE_ONLY, CL_MEM_READ_ONLY },
	{ "write_only_on_a_writers_page", CL_MEM_READ_WRITE, CL_MEM_WRITE_ONLY },
	{ "writer_on_a_write_only_page", CL_MEM_WRITE_ONLY, CL_MEM_READ_WRITE },
	{ "no_flags_on_a_readers_page", CL_MEM_READ_ONLY, 0 },
	{ "write_only_on_a_page_without_flags", 0, CL_MEM_WRITE_ONLY },
};

TEST_EACH_AS(conflicts, "", struct conflict, conflicts, R6_53)
{
	struct two_parts parts = host_pages_parts();

	spec_import_host(row->first, parts.first, parts.size);
	EXPECT_EXACT(spec_import_host_error(row->second, parts.second, parts.size),
		     CL_INVALID_OPERATION);
}

/* The import that was there first goes on. */
TEST(first_import_survives_the_conflict, R6_53)
{
	struct two_parts parts = host_pages_parts();
	cl_mem mem = spec_import_host(CL_MEM_READ_WRITE, parts.first, parts.size);

	spec_import_host_error(CL_MEM_READ_ONLY, parts.second, parts.size);
	expect_shared(mem, parts.first, parts.size);
}

/* Of two imports with equal flags one is released; the other still forbids other flags. */
TEST(conflict_with_the_second_of_two, R6_53)
{
	struct two_parts parts = host_pages_parts();
	cl_int error = 1;
	cl_mem first;

	need_host();
	first = spec.import(spec.context, CL_MEM_READ_WRITE, NULL, parts.first, parts.size, &error);
	EXPECT_EQ(error, CL_SUCCESS);
	host_pages_import(CL_MEM_READ_WRITE, parts.second, parts.size, &error);
	EXPECT_EQ(clReleaseMemObject(first), CL_SUCCESS);
	if (error)
		test_skip("a page has one unaligned import: refused with %d", error);
	spec_import_host_error(CL_MEM_READ_ONLY, parts.first, parts.size);
}

/* A sub-buffer keeps the import, and the import its page. */
TEST(conflict_while_a_sub_buffer_lives, R6_53)
{
	struct two_parts parts = host_pages_parts();
	const cl_buffer_region region = { 0, parts.size };
	cl_int error = 1;
	cl_mem mem, sub;

	need_host();
	mem = spec.import(spec.context, CL_MEM_READ_WRITE, NULL, parts.first, parts.size, &error);
	EXPECT_EQ(error, CL_SUCCESS);
	sub = clCreateSubBuffer(mem, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &error);
	EXPECT_EQ(clReleaseMemObject(mem), CL_SUCCESS);
	released_later(sub);
	EXPECT_EQ(error, CL_SUCCESS);
	spec_import_host_error(CL_MEM_READ_ONLY, parts.second, parts.size);
}

TEST(same_bytes_with_other_flags, R6_53)
{
	struct two_parts parts = host_pages_parts();

	spec_import_host(CL_MEM_READ_WRITE, parts.first, parts.size);
	EXPECT_EXACT(spec_import_host_error(CL_MEM_READ_ONLY, parts.first, parts.size),
		     CL_INVALID_OPERATION);
}

/* The last page of the first import is the first page of the second import. */
TEST(other_flags_on_the_last_page, R6_53)
{
	unsigned char *memory = spec_map_own_pages();
	size_t half = spec.page / 2, part = part_of_a_page();

	spec_import_host(CL_MEM_READ_WRITE, memory + half, 2 * spec.page);
	EXPECT_EXACT(spec_import_host_error(CL_MEM_READ_ONLY, memory + 2 * spec.page + half + part,
					    spec.page),
		     CL_INVALID_OPERATION);
}

/* The conflict ends with the first import, and page-aligned imports do not conflict. */
TEST(no_conflict_after_the_release, R6_53)
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

TEST(aligned_imports_with_different_flags, R6_53)
{
	unsigned char *memory = spec_map_pages(2);
	cl_mem writer = spec_import_host(CL_MEM_READ_WRITE, memory, 2 * spec.page);
	cl_mem reader = spec_import_host(CL_MEM_READ_ONLY, memory, 2 * spec.page);

	expect_shared(writer, memory, 2 * spec.page);
	expect_read_by_device(reader, memory, 2 * spec.page);
}

/* Bytes on the pages of an import, before and behind the import. */
struct beside {
	unsigned char *page;
	size_t first, end; /* of the import */
};

static void beside_fill(const struct beside *b, unsigned int seed)
{
	for (size_t i = 0; i < spec.page; i++)
		if (i < b->first || i >= b->end)
			b->page[i] = spec_pattern_byte(i, seed);
}

static bool beside_is(const struct beside *b, unsigned int seed)
{
	for (size_t i = 0; i < spec.page; i++)
		if ((i < b->first || i >= b->end) && b->page[i] != spec_pattern_byte(i, seed))
			return spec_note_wrong_byte(i, b->page[i], spec_pattern_byte(i, seed));
	return true;
}

/* The bytes are the program's: neither import nor kernel nor release changes the bytes. */
TEST(bytes_beside_an_import, R6_47)
{
	size_t part = part_of_a_page();
	struct beside b = { spec_map_own_pages(), part, 2 * part };
	cl_int error = 1;
	cl_mem mem;

	beside_fill(&b, 1);
	mem = spec.import(spec.context, CL_MEM_READ_WRITE, NULL, b.page + part, part, &error);
	EXPECT_EQ(error, CL_SUCCESS);
	EXPECT(beside_is(&b, 1));
	beside_fill(&b, 2);
	kernels_add(mem, part, 1, 1);
	EXPECT(beside_is(&b, 2));
	beside_fill(&b, 3);
	kernels_add(mem, part, 1, 1);
	EXPECT(beside_is(&b, 3));
	beside_fill(&b, 4);
	EXPECT_EQ(clReleaseMemObject(mem), CL_SUCCESS);
	undo_all();
	EXPECT(beside_is(&b, 4));
}
