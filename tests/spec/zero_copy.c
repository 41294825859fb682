/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "It will never fall back to copy operations": each test does something that fails with a copy.  A
 * driver might copy at import, at each command, or above some size; a test exists for every case.
 */
#include <pthread.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "kernels.h"

struct view {
	unsigned char *memory;
	size_t size;
};

static void unmap_view(void *arg)
{
	struct view *view = arg;

	munmap(view->memory, view->size);
	free(view);
}

static unsigned char *map_view(int fd, size_t size, int prot)
{
	struct view *view = malloc(sizeof(*view));

	view->size = size;
	view->memory = mmap(NULL, size, prot, MAP_SHARED, fd, 0);
	EXPECT(view->memory != MAP_FAILED);
	spec_undo_later(unmap_view, view);
	return view->memory;
}

static int shared_file(size_t size)
{
	int fd = memfd_create("climport-conform", MFD_CLOEXEC);

	EXPECT(fd >= 0);
	spec_undo_later(spec_close_descriptor, (void *)(intptr_t)fd);
	EXPECT_EQ(ftruncate(fd, size), 0);
	return fd;
}

TEST(host_and_kernel_in_turns, "R6-06 Memory imported through this interface will be mapped into "
			       "the device's page tables directly, providing zero copy access.")
{
	size_t size = 4 * spec.page;
	unsigned char *memory = spec_map_pages(4);
	cl_mem mem = spec_import_host(CL_MEM_READ_WRITE, memory, size);

	expect_shared(mem, memory, size);
}

/* If the driver copied or replaced pages, the two mappings would differ. */
TEST(two_mappings_of_the_same_memory,
     "R6-06 Memory imported through this interface will be mapped into the device's page tables "
     "directly, providing zero copy access.")
{
	size_t size = 2 * spec.page;
	int fd = shared_file(size);
	unsigned char *imported = map_view(fd, size, PROT_READ | PROT_WRITE);
	unsigned char *other = map_view(fd, size, PROT_READ | PROT_WRITE);
	cl_mem mem = spec_import_host(CL_MEM_READ_WRITE, imported, size);

	EXPECT(imported != other);
	expect_shared(mem, other, size);
}

TEST(two_mappings_at_odd_offsets,
     "R6-06 Memory imported through this interface will be mapped into the device's page tables "
     "directly, providing zero copy access.")
{
	size_t size = 2 * spec.page;
	int fd = shared_file(size);
	unsigned char *imported = map_view(fd, size, PROT_READ | PROT_WRITE);
	unsigned char *other = map_view(fd, size, PROT_READ | PROT_WRITE);
	size_t at = host_alignment();
	cl_mem mem = spec_import_host(CL_MEM_READ_WRITE, imported + at, size - 2 * at - 3);

	expect_shared(mem, other + at, size - 2 * at - 3);
}

TEST(suitable_pointer, "R6-10 Given a suitable pointer to an external memory allocation <memory> "
		       "this function will map the memory into the device page tables.")
{
	static unsigned char of_the_program[65536] __attribute__((aligned(65536)));
	cl_mem mem = spec_import_host(CL_MEM_READ_WRITE, of_the_program, sizeof(of_the_program));

	expect_shared(mem, of_the_program, sizeof(of_the_program));
}

/* A copy made at the enqueue would hold the old bytes. */
TEST(written_after_the_enqueue, "R6-07 It will never fall back to copy operations and aliased "
				"buffers, instead producing an error when mapping is not possible.")
{
	unsigned char *memory = spec_map_pages(1);
	cl_mem mem = spec_import_host(CL_MEM_READ_WRITE, memory, spec.page);
	cl_int error;
	cl_event gate = clCreateUserEvent(spec.context, &error), done;

	EXPECT_EQ(error, CL_SUCCESS);
	spec_fill_memory(memory, spec.page, 1);
	kernels_add_after(mem, spec.page, 10, gate, &done);
	EXPECT_EQ(clFlush(spec.queue), CL_SUCCESS);
	spec_fill_memory(memory, spec.page, 50);
	EXPECT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
	EXPECT_EQ(clWaitForEvents(1, &done), CL_SUCCESS);
	clReleaseEvent(done);
	clReleaseEvent(gate);
	EXPECT(spec_memory_is(memory, spec.page, 60));
}

/* Without clFinish: the kernel's bytes are visible when the event is complete. */
TEST(seen_when_the_event_completes,
     "R6-07 It will never fall back to copy operations and aliased buffers, instead producing an "
     "error when mapping is not possible.")
{
	unsigned char *memory = spec_map_pages(1);
	cl_mem mem = spec_import_host(CL_MEM_READ_WRITE, memory, spec.page);
	cl_int status = CL_QUEUED;
	cl_event done;

	spec_fill_memory(memory, spec.page, 1);
	kernels_add_after(mem, spec.page, 10, NULL, &done);
	EXPECT_EQ(clFlush(spec.queue), CL_SUCCESS);
	while (status > CL_COMPLETE)
		EXPECT_EQ(clGetEventInfo(done, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status),
					 &status, NULL),
			  CL_SUCCESS);
	EXPECT_EQ(status, CL_COMPLETE);
	EXPECT(spec_memory_is(memory, spec.page, 11));
	clReleaseEvent(done);
}

/* A kernel writes through the first import, and the next kernel reads through the second. */
TEST(two_imports_of_the_same_memory,
     "R6-07 It will never fall back to copy operations and aliased buffers, instead producing an "
     "error when mapping is not possible.")
{
	unsigned char *memory = spec_map_pages(2);
	cl_mem one = spec_import_host(CL_MEM_READ_WRITE, memory, 2 * spec.page);
	cl_mem two = spec_import_host(CL_MEM_READ_WRITE, memory, 2 * spec.page);

	for (unsigned int turn = 1; turn < 4; turn++) {
		spec_fill_memory(memory, 2 * spec.page, turn);
		kernels_add(one, 2 * spec.page, 1, 3);
		kernels_add(two, 2 * spec.page, 1, 4);
		kernels_add(one, 2 * spec.page, 1, 5);
		EXPECT(spec_memory_is(memory, 2 * spec.page, turn + 12));
	}
}

/* The race with the kernel is intended. */
__attribute__((no_sanitize("thread"))) static void *zero_copy_poke_later(void *byte)
{
	nanosleep(&(struct timespec){ 0, 20 * 1000 * 1000 }, NULL);
	*(volatile unsigned char *)byte = 1;
	return NULL;
}

/* Returns whether the kernel saw the byte.  On a busy machine the kernel may end before the write. */
static bool zero_copy_watch(cl_kernel k, unsigned char *memory)
{
	const size_t one = 1;
	pthread_t writer;

	memory[0] = memory[1] = 0;
	EXPECT_EQ(pthread_create(&writer, NULL, zero_copy_poke_later, memory), 0);
	EXPECT_EQ(clEnqueueNDRangeKernel(spec.queue, k, 1, NULL, &one, &one, 0, NULL, NULL),
		  CL_SUCCESS);
	EXPECT_EQ(clFinish(spec.queue), CL_SUCCESS);
	pthread_join(writer, NULL);
	return memory[1] == 1;
}

/*
 * The strongest proof: a kernel sees a byte that the host writes during the run.  The text forbids
 * simultaneous accesses, so the outcome is undefined for other implementations.
 */
TEST(kernel_sees_writes_while_it_runs,
     "R6-07 It will never fall back to copy operations and aliased buffers, instead producing an "
     "error when mapping is not possible.")
{
	const cl_uint tries = 400 * 1000 * 1000;
	unsigned char *memory;
	bool is_seen = false;
	cl_mem mem;
	cl_kernel k;

	if (!spec.exact)
		test_skip("only for CLIMPORT_CONFORM_EXACT");
	memory = spec_map_pages(1);
	mem = spec_import_host(CL_MEM_READ_WRITE, memory, spec.page);
	k = kernels_create("watch");
	EXPECT_EQ(clSetKernelArg(k, 0, sizeof(mem), &mem), CL_SUCCESS);
	EXPECT_EQ(clSetKernelArg(k, 1, sizeof(tries), &tries), CL_SUCCESS);
	for (int i = 0; i < 5 && !is_seen; i++)
		is_seen = zero_copy_watch(k, memory);
	EXPECT(is_seen);
}

TEST(read_only_mapping, "R6-06 Memory imported through this interface will be mapped into the "
			"device's page tables directly, providing zero copy access.")
{
	size_t size = 2 * spec.page;
	int fd = shared_file(size);
	unsigned char *imported = map_view(fd, size, PROT_READ);
	unsigned char *other = map_view(fd, size, PROT_READ | PROT_WRITE);
	cl_mem mem = import_host_kind("memory that is mapped without write access",
				      CL_MEM_READ_ONLY, imported, size);

	expect_read_by_device(mem, other, size);
}

static unsigned char *zero_copy_map_without(int prot)
{
	unsigned char *memory = spec_map_pages(2);

	EXPECT_EQ(mprotect(memory, 2 * spec.page, prot), 0);
	return memory;
}

TEST(read_only_mapping_for_writers,
     "R6-07 It will never fall back to copy operations and aliased buffers, instead producing an "
     "error when mapping is not possible.")
{
	unsigned char *memory = zero_copy_map_without(PROT_READ);

	EXPECT_EXACT(spec_import_host_error(CL_MEM_READ_WRITE, memory, 2 * spec.page),
		     CL_INVALID_OPERATION);
	EXPECT_EXACT(spec_import_host_error(CL_MEM_WRITE_ONLY, memory, 2 * spec.page),
		     CL_INVALID_OPERATION);
	EXPECT_EXACT(spec_import_host_error(0, memory, 2 * spec.page), CL_INVALID_OPERATION);
}

TEST(mapping_without_access, "R6-07 It will never fall back to copy operations and aliased "
			     "buffers, instead producing an error when mapping is not possible.")
{
	unsigned char *memory = zero_copy_map_without(PROT_NONE);

	EXPECT_EXACT(spec_import_host_error(CL_MEM_READ_WRITE, memory, 2 * spec.page),
		     CL_INVALID_OPERATION);
	EXPECT_EXACT(spec_import_host_error(CL_MEM_READ_ONLY, memory, 2 * spec.page),
		     CL_INVALID_OPERATION);
}

TEST(read_only_page_among_others,
     "R6-07 It will never fall back to copy operations and aliased buffers, instead producing an "
     "error when mapping is not possible.")
{
	unsigned char *memory = spec_map_pages(8);

	EXPECT_EQ(mprotect(memory + 5 * spec.page, spec.page, PROT_READ), 0);
	EXPECT_EXACT(spec_import_host_error(CL_MEM_READ_WRITE, memory, 8 * spec.page),
		     CL_INVALID_OPERATION);
}
