/* SPDX-License-Identifier: Apache-2.0 */
/* The section Host process memory type. */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernels.h"

static void expect_import(unsigned char *memory, size_t size)
{
	cl_mem mem = spec_import_host(CL_MEM_READ_WRITE, memory, size);

	expect_shared(mem, memory, size);
}

static unsigned char *host_align(unsigned char *memory)
{
	size_t over = (uintptr_t)memory % host_alignment();

	return memory + (over ? host_alignment() - over : 0);
}

static const struct tensor {
	const char *name;
	size_t size;
} tensors[] = {
	{ "scalar", 4 },
	{ "row_of_an_image", 224 * 3 },
	{ "classes", 1000 * 4 },
	{ "features", 7 * 7 * 512 },
	{ "odd_shape", 3 * 33 * 35 * 4 },
};

/* As clients do: the pointer on a cache line, and the size of a tensor. */
TEST_EACH(malloced_tensors, struct tensor, tensors,
	  "R6-41 If the extension string cl_arm_import_memory_host is exposed then importing from "
	  "normal userspace allocations (such as those created via malloc) is supported.")
{
	unsigned char *memory = malloc(row->size + host_alignment());

	spec_undo_later(free, memory);
	expect_import(host_align(memory), row->size);
}

TEST(malloced_pages,
     "R6-41 If the extension string cl_arm_import_memory_host is exposed then importing from "
     "normal userspace allocations (such as those created via malloc) is supported.")
{
	void *memory = NULL;

	EXPECT_EQ(posix_memalign(&memory, spec.page, 8 * spec.page), 0);
	spec_undo_later(free, memory);
	expect_import(memory, 8 * spec.page);
}

TEST(array_on_the_stack,
     "R6-41 If the extension string cl_arm_import_memory_host is exposed then importing from "
     "normal userspace allocations (such as those created via malloc) is supported.")
{
	unsigned char memory[8192];

	need_alignment(4096);
	expect_import(host_align(memory), 4096);
	undo_all(); /* the array ends before the import would */
}

static void host_close_file(void *file)
{
	fclose(file);
}

static void unmap_two_pages(void *memory)
{
	munmap(memory, 2 * spec.page);
}

/* Pages of a file in memory between anonymous pages. */
TEST(two_mappings_in_one_range,
     "R6-41 If the extension string cl_arm_import_memory_host is exposed then importing from "
     "normal userspace allocations (such as those created via malloc) is supported.")
{
	unsigned char *memory = spec_map_pages(4);
	int fd = memfd_create("climport-conform", MFD_CLOEXEC);

	EXPECT(fd >= 0);
	spec_undo_later(spec_close_descriptor, (void *)(intptr_t)fd);
	EXPECT_EQ(ftruncate(fd, spec.page), 0);
	EXPECT(mmap(memory + spec.page, spec.page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
		    fd, 0) != MAP_FAILED);
	expect_shared(import_host_kind("a range of several mappings", CL_MEM_READ_WRITE, memory,
				       4 * spec.page),
		      memory, 4 * spec.page);
}

/* The size of the file is no whole number of pages, and the kernel writes the pages back. */
TEST(mapped_file,
     "R6-41 If the extension string cl_arm_import_memory_host is exposed then importing from "
     "normal userspace allocations (such as those created via malloc) is supported.")
{
	FILE *file = tmpfile();
	size_t size = spec.page + 1000;
	unsigned char *memory, byte;

	EXPECT(file != NULL);
	spec_undo_later(host_close_file, file);
	EXPECT_EQ(ftruncate(fileno(file), size), 0);
	memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0);
	EXPECT(memory != MAP_FAILED);
	spec_undo_later(unmap_two_pages, memory);
	expect_shared(import_host_kind("a mapped file", CL_MEM_READ_WRITE, memory, size), memory,
		      size);
	spec_fill_memory(memory, size, 1);
	EXPECT_EQ(pread(fileno(file), &byte, 1, spec.page + 999), 1);
	EXPECT_EQ(byte, spec_pattern_byte(spec.page + 999, 1));
}

TEST(mapped_file_for_readers,
     "R6-41 If the extension string cl_arm_import_memory_host is exposed then importing from "
     "normal userspace allocations (such as those created via malloc) is supported.")
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	unsigned char *memory, seen[256];
	cl_mem out, mem;

	need_host();
	EXPECT(fd >= 0);
	memory = mmap(NULL, 2 * spec.page, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	EXPECT(memory != MAP_FAILED);
	spec_undo_later(unmap_two_pages, memory);
	mem = import_host_kind("a file that is mapped without write access", CL_MEM_READ_ONLY,
			       memory, 2 * spec.page);
	out = plain_buffer(sizeof(seen));
	kernels_copy(mem, out, sizeof(seen));
	plain_read(out, seen, sizeof(seen));
	EXPECT(!memcmp(seen, "\177ELF", 4));
	EXPECT(!memcmp(seen, memory, sizeof(seen)));
}

#define R6_42                                                                                     \
	"R6-42 If the host OS is linux and overcommit of VA is allowed, then this function will " \
	"commit and pin physical pages for the VA range."

static size_t host_committed(unsigned char *memory, size_t count)
{
	unsigned char there[256];
	size_t committed = 0;

	EXPECT(count <= sizeof(there));
	EXPECT_EQ(mincore(memory, count * spec.page, there), 0);
	for (size_t i = 0; i < count; i++)
		committed += there[i] & 1;
	return committed;
}

/*
 * A CPU uses the page tables of the process: a page is there with the first access.  Any other
 * device needs the pages before.
 */
TEST(sparse_range, R6_42)
{
	size_t count = 256, committed;
	unsigned char *memory = spec_map_pages(count);
	cl_mem mem = spec_import_host(CL_MEM_READ_WRITE, memory, count * spec.page);

	committed = host_committed(memory, count);
	spec_note("%zu of %zu pages are committed after the import", committed, count);
	if (!(device_number(CL_DEVICE_TYPE) & CL_DEVICE_TYPE_CPU))
		EXPECT_EQ(committed, count);
	kernels_add(mem, count * spec.page, spec.page, 9);
	for (size_t i = 0; i < count; i++)
		EXPECT_BYTE(memory[i * spec.page], 9);
	EXPECT_EQ(host_committed(memory, count), count);
}

/* The kernel moves no pinned page: device and host use the same pages afterwards. */
static void expect_pinned(void (*disturb)(unsigned char *memory, size_t size))
{
	size_t size = 16 * spec.page;
	unsigned char *memory = spec_map_pages(16);
	cl_mem mem;

	spec_fill_memory(memory, size, 1);
	mem = spec_import_host(CL_MEM_READ_WRITE, memory, size);
	disturb(memory, size);
	kernels_add(mem, size, 1, 10);
	EXPECT(spec_memory_is(memory, size, 11));
	disturb(memory, size);
	expect_shared(mem, memory, size);
}

#ifndef MADV_PAGEOUT
#define MADV_PAGEOUT 21 /* Linux 5.4 */
#endif

static void host_page_out(unsigned char *memory, size_t size)
{
	(void)!madvise(memory, size, MADV_PAGEOUT);
}

TEST(pages_stay_when_memory_is_short, R6_42)
{
	expect_pinned(host_page_out);
}

struct host_child {
	pid_t pid;
	int gate; /* the child ends when the descriptor is closed */
};

/* The child exits with the status 0 if the child has the memory. */
static void host_end_child(void *arg)
{
	struct host_child *child = arg;
	int status = -1;

	close(child->gate);
	waitpid(child->pid, &status, 0);
	free(child);
	EXPECT_EQ(status, 0);
}

static int host_child_run(const unsigned char *memory, size_t size, int gate)
{
	char byte;

	for (size_t i = 0; i < size; i += spec.page)
		if (*(const volatile unsigned char *)(memory + i) != memory[i])
			return 1;
	return read(gate, &byte, 1) != 0;
}

/* The child shares the pages; the side that writes first gets copies of pages that are not pinned. */
static void host_fork_once(unsigned char *memory, size_t size)
{
	struct host_child *child = malloc(sizeof(*child));
	int ends[2];

	EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
	child->gate = ends[1];
	child->pid = fork();
	if (!child->pid) {
		close(ends[1]);
		_exit(host_child_run(memory, size, ends[0]));
	}
	close(ends[0]);
	EXPECT(child->pid > 0);
	spec_undo_later(host_end_child, child);
	for (size_t i = 0; i < size; i += spec.page)
		*(volatile unsigned char *)(memory + i) = memory[i];
}

TEST(pages_stay_after_a_fork, R6_42)
{
	expect_pinned(host_fork_once);
}

TEST(ranges_of_one_allocation, "R6-44 In this case sub-ranges of the host allocation should be "
			       "passed to the import function individually.")
{
	unsigned char *memory = spec_map_pages(8);
	cl_mem first = spec_import_host(CL_MEM_READ_WRITE, memory, 2 * spec.page);
	cl_mem last = spec_import_host(CL_MEM_READ_WRITE, memory + 6 * spec.page, 2 * spec.page);

	expect_shared(first, memory, 2 * spec.page);
	expect_shared(last, memory + 6 * spec.page, 2 * spec.page);
	for (size_t i = 2 * spec.page; i < 6 * spec.page; i++)
		EXPECT_BYTE(memory[i], 0);
}

TEST(aligned_to_a_cache_line,
     "R6-46 Though the application is free to provide allocations without any specific alignment "
     "on coherent systems, there is a requirement to provide pointers aligned to a cache line on "
     "systems where there is no HW-managed coherency between CPU and GPU.")
{
	unsigned char *memory = spec_map_pages(2);

	need_alignment(spec.cache_line);
	expect_import(memory + spec.cache_line, spec.page);
}

/* No query tells whether the system is coherent: a successful import has to work. */
static void expect_offset(size_t offset, size_t size)
{
	unsigned char *memory = spec_map_pages(3);
	cl_int error = 1;
	cl_mem mem;

	need_host();
	mem = released_later(
		spec.import(spec.context, CL_MEM_READ_WRITE, NULL, memory + offset, size, &error));
	EXPECT_EXACT(error, CL_SUCCESS);
	if (error)
		test_skip("not aligned to a cache line: refused with %d", error);
	memset(memory, 0xee, 3 * spec.page);
	expect_shared(mem, memory + offset, size);
	for (size_t i = 0; i < 3 * spec.page; i++)
		if (i < offset || i >= offset + size)
			EXPECT_BYTE(memory[i], 0xee);
}

TEST(at_byte_1,
     "R6-46 Though the application is free to provide allocations without any specific alignment "
     "on coherent systems, there is a requirement to provide pointers aligned to a cache line on "
     "systems where there is no HW-managed coherency between CPU and GPU.")
{
	expect_offset(1, 64);
}

TEST(at_byte_3_over_a_page,
     "R6-46 Though the application is free to provide allocations without any specific alignment "
     "on coherent systems, there is a requirement to provide pointers aligned to a cache line on "
     "systems where there is no HW-managed coherency between CPU and GPU.")
{
	expect_offset(3, 4096);
}

TEST(at_the_last_bytes_of_a_page,
     "R6-46 Though the application is free to provide allocations without any specific alignment "
     "on coherent systems, there is a requirement to provide pointers aligned to a cache line on "
     "systems where there is no HW-managed coherency between CPU and GPU.")
{
	expect_offset(spec.page - 5, 11);
}

TEST(at_byte_4,
     "R6-46 Though the application is free to provide allocations without any specific alignment "
     "on coherent systems, there is a requirement to provide pointers aligned to a cache line on "
     "systems where there is no HW-managed coherency between CPU and GPU.")
{
	expect_offset(4, 1000);
}

TEST(less_than_a_page,
     "R6-47 When alignment is less than a page size then whole pages touched by "
     "addresses in the range of <memory> to <memory>+<size> will be mapped into the device.")
{
	unsigned char *memory = spec_map_pages(3);
	size_t part = host_alignment();

	need_alignment(spec.page / 2);
	expect_import(memory + spec.page - part, spec.page + 2 * part);
}

/* The host has dirty lines in the cache while the device changes the neighbouring lines. */
static void expect_coherent(size_t stride)
{
	size_t size = 16 * spec.page;
	unsigned char *memory = spec_map_pages(16);
	cl_mem mem = spec_import_host(CL_MEM_READ_WRITE, memory, size);

	for (unsigned int turn = 1; turn < 8; turn++) {
		for (size_t i = 0; i < size; i += stride)
			memory[i]++;
		kernels_add(mem, size, stride, 1);
	}
	for (size_t i = 0; i < size; i++)
		EXPECT_BYTE(memory[i], i % stride ? 0 : 14);
}

TEST(coherent_by_the_byte,
     "R6-49 Cache coherency will be HW-managed on systems where it is supported.")
{
	expect_coherent(1);
}

TEST(coherent_by_the_cache_line,
     "R6-50 Otherwise, cache maintenance operations will be added by the CL runtime where needed.")
{
	expect_coherent(spec.cache_line);
}
