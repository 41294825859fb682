/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies show in memory and time, if the import is large.  A driver may share small memory and copy
 * large memory.
 */
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>

#include "kernels.h"

#define MIB ((size_t)1 << 20)

/* A number of kilobytes in a file of /proc, as bytes; 0 without the line. */
static size_t copies_read(const char *path, const char *name)
{
	FILE *file = fopen(path, "r");
	char line[200];
	size_t value = 0;

	EXPECT(file != NULL);
	while (fgets(line, sizeof(line), file))
		if (!strncmp(line, name, strlen(name)))
			value = strtoul(line + strlen(name), NULL, 10) * 1024;
	fclose(file);
	return value;
}

/* The kernel would make huge pages of the process's small ones, and the memory would grow by itself. */
static void copies_keep_small_pages(void)
{
	EXPECT_EQ(prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0), 0);
}

/* The most memory that the process has had, also in the middle of a command. */
static size_t copies_peak(void)
{
	return copies_read("/proc/self/status", "VmHWM:");
}

static size_t copies_size(size_t size)
{
	cl_ulong max = device_number(CL_DEVICE_MAX_MEM_ALLOC_SIZE);

	if (max && max < size)
		test_skip("device takes no buffer of %zu MiB", size / MIB);
	if (copies_read("/proc/meminfo", "MemAvailable:") < 3 * size)
		test_skip("the machine has no %zu MiB to spare", 3 * size / MIB);
	return size;
}

static const struct copies_row {
	const char *name;
	size_t size;
} copies_sizes[] = {
	{ "64_mib", 64 * MIB },	  { "65_mib", 65 * MIB },   { "100_mib", 100 * MIB },
	{ "129_mib", 129 * MIB }, { "257_mib", 257 * MIB },
};

/* A first import and kernel: what driver and compiler need is in memory then. */
static void copies_warm_up(void)
{
	kernels_add(spec_import_host(CL_MEM_READ_WRITE, spec_map_pages(1), spec.page), spec.page,
		    spec.page, 1);
}

/* Every page is in memory before the import; a copy would need as much again. */
TEST_EACH(no_memory_for_a_copy_of, struct copies_row, copies_sizes,
	  "R6-07 It will never fall back to copy operations and aliased buffers, instead producing "
	  "an error when mapping is not possible.")
{
	size_t size = copies_size(row->size), before;
	unsigned char *memory;
	cl_mem mem;

	spec_need_own_heap();
	copies_keep_small_pages();
	memory = spec_map_pages(size / spec.page);
	copies_warm_up();
	for (size_t i = 0; i < size; i += spec.page)
		memory[i] = 1;
	before = copies_peak();
	mem = spec_import_host(CL_MEM_READ_WRITE, memory, size);
	kernels_add(mem, size, spec.page, 1);
	for (size_t i = 0; i < size; i += spec.page)
		memory[i]++;
	kernels_add(mem, size, spec.page, 1);
	for (size_t i = 0; i < size; i += spec.page)
		EXPECT_BYTE(memory[i], 4);
	EXPECT(copies_peak() < before + size / 2);
}

static const struct many_row {
	const char *name;
	size_t offset, size; /* of each import, in pages of its own */
	cl_mem_flags flags;
} many_rows[] = {
	{ "64_kib", 0, 65536, CL_MEM_READ_WRITE },
	{ "parts_of_a_page", 64, 3776, CL_MEM_READ_WRITE },
	{ "64_kib_inside_of_pages", 64, 65408, CL_MEM_READ_WRITE },
	{ "odd_addresses", 33, 65433, CL_MEM_READ_WRITE },
	{ "readers", 0, 65536, CL_MEM_READ_ONLY },
	{ "writers", 0, 65536, CL_MEM_WRITE_ONLY },
	{ "readers_inside_of_pages", 64, 65408, CL_MEM_READ_ONLY },
	{ "writers_inside_of_pages", 64, 65408, CL_MEM_WRITE_ONLY },
	{ "host_no_access", 0, 65536, CL_MEM_READ_WRITE | CL_MEM_HOST_NO_ACCESS },
	{ "use_host_ptr", 0, 65536, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR },
};

/* A kernel that touches the first byte. */
static void copies_use(cl_kernel copy, cl_mem mem, cl_mem other, cl_mem_flags flags)
{
	const bool writes = flags & CL_MEM_WRITE_ONLY;
	const cl_mem from = writes ? other : mem, to = writes ? mem : other;
	const cl_uint bytes = 1;
	const size_t one = 1;

	EXPECT_EQ(clSetKernelArg(copy, 0, sizeof(from), &from), CL_SUCCESS);
	EXPECT_EQ(clSetKernelArg(copy, 1, sizeof(to), &to), CL_SUCCESS);
	EXPECT_EQ(clSetKernelArg(copy, 2, sizeof(bytes), &bytes), CL_SUCCESS);
	EXPECT_EQ(clEnqueueNDRangeKernel(spec.queue, copy, 1, NULL, &one, &one, 0, NULL, NULL),
		  CL_SUCCESS);
	EXPECT_EQ(clFinish(spec.queue), CL_SUCCESS);
}

/* Inside of a page, an error is as good: a driver may copy what does not fill a cache line, or a page. */
static cl_mem copies_first_import(const struct many_row *row, unsigned char *memory)
{
	cl_int error = 1;
	cl_mem mem = released_later(spec.import(spec.context, row->flags, NULL,
						memory + row->offset, row->size, &error));

	if (error && row->offset && !spec.exact)
		test_skip("memory inside of pages, with these flags: refused with %d", error);
	EXPECT_EQ(error, CL_SUCCESS);
	return mem;
}

/* Copies of small memory show, if there are many. */
TEST_EACH(no_memory_for_copies_of_many, struct many_row, many_rows,
	  "R6-07 It will never fall back to copy operations and aliased buffers, instead producing "
	  "an error when mapping is not possible.")
{
	size_t room = (row->offset + row->size + spec.page - 1) / spec.page * spec.page;
	size_t count = 24 * MIB / room, before;
	unsigned char *memory;
	cl_kernel copy;
	cl_mem other;

	need_host();
	spec_need_own_heap();
	if (row->offset % host_alignment() && !spec.exact)
		test_skip("device takes multiples of %zu bytes", host_alignment());
	copies_keep_small_pages();
	memory = spec_map_pages(count * room / spec.page);
	copy = kernels_create("copy");
	other = plain_buffer(spec.page);
	for (size_t i = 0; i < count * room; i += spec.page)
		memory[i] = 1;
	copies_use(copy, copies_first_import(row, memory), other, row->flags);
	before = copies_peak();
	for (size_t i = 1; i < count; i++)
		copies_use(copy,
			   spec_import_host(row->flags, memory + i * room + row->offset, row->size),
			   other, row->flags);
	EXPECT(copies_peak() < before + count * row->size / 2);
}

static double copies_clock(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

/* The shortest of a few runs of import, a kernel that changes a byte, and release. */
static double time_of_import(unsigned char *memory, size_t size)
{
	double best = 1e9;

	for (int i = 0; i < 7; i++) {
		double start = copies_clock();
		cl_int error;
		cl_mem mem =
			spec.import(spec.context, CL_MEM_READ_WRITE, NULL, memory, size, &error);

		EXPECT_EQ(error, CL_SUCCESS);
		kernels_add(mem, 1, 1, 1);
		EXPECT_EQ(clReleaseMemObject(mem), CL_SUCCESS);
		if (copies_clock() - start < best)
			best = copies_clock() - start;
	}
	return best;
}

static double time_of_copy(unsigned char *to, const unsigned char *from, size_t size)
{
	double best = 1e9;

	for (int i = 0; i < 5; i++) {
		double start = copies_clock();

		memcpy(to, from, size);
		if (copies_clock() - start < best)
			best = copies_clock() - start;
	}
	return best;
}

/*
 * The time to pin pages and to clean caches grows with the size.  climport does neither, so only
 * climport has to pass.
 */
TEST(time_does_not_grow_with_size,
     "R6-07 It will never fall back to copy operations and aliased buffers, instead producing an "
     "error when mapping is not possible.")
{
	size_t size = copies_size(64 * MIB);
	unsigned char *memory = spec_map_pages(size / spec.page),
		      *copy = spec_map_pages(size / spec.page);
	double copying, small, large;

	need_host();
	memset(memory, 1, size);
	memset(copy, 1, size);
	copying = time_of_copy(copy, memory, size);
	time_of_import(memory, spec.page);
	small = time_of_import(memory, spec.page);
	large = time_of_import(memory, size);
	spec_note("import and use of %zu bytes: %.0f us, of %zu: %.0f us; copying those: %.0f us",
		  spec.page, small * 1e6, size, large * 1e6, copying * 1e6);
	EXPECT_EXACT(large - small < copying / 2, 1);
}
