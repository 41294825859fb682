/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A driver may share one kind of memory and copy another: by the place, the size, the alignment or the
 * flags.  Each test takes every kind.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "kernels.h"
#include "object.h"
#include "queues.h"

#define R6_07                                                                                      \
	"R6-07 It will never fall back to copy operations and aliased buffers, instead producing " \
	"an error when mapping is not possible."

enum place { PAGES, SHARED_MEMORY, HEAP, PROGRAM };

static const struct kind {
	const char *name;
	enum place place;
	size_t offset, size;
	cl_mem_flags flags;
} kinds[] = {
	{ "pages", PAGES, 0, 16384, CL_MEM_READ_WRITE },
	{ "shared_memory", SHARED_MEMORY, 0, 16384, CL_MEM_READ_WRITE },
	{ "heap", HEAP, 64, 16384, CL_MEM_READ_WRITE },
	{ "program", PROGRAM, 0, 16384, CL_MEM_READ_WRITE },
	{ "inside_of_a_page", PAGES, 64, 3776, CL_MEM_READ_WRITE },
	{ "over_pages", PAGES, 128, 12288, CL_MEM_READ_WRITE },
	{ "odd_address", PAGES, 33, 12000, CL_MEM_READ_WRITE },
	{ "odd_size", PAGES, 0, 12289, CL_MEM_READ_WRITE },
	{ "odd_size_inside_of_a_page", PAGES, 64, 3333, CL_MEM_READ_WRITE },
	{ "large", PAGES, 0, 1 << 18, CL_MEM_READ_WRITE },
	{ "read_only", PAGES, 0, 16384, CL_MEM_READ_ONLY },
	{ "read_only_inside_of_a_page", PAGES, 64, 3776, CL_MEM_READ_ONLY },
	{ "write_only", PAGES, 0, 16384, CL_MEM_WRITE_ONLY },
	{ "write_only_inside_of_a_page", PAGES, 64, 3776, CL_MEM_WRITE_ONLY },
	{ "host_no_access", PAGES, 0, 16384, CL_MEM_READ_WRITE | CL_MEM_HOST_NO_ACCESS },
	{ "host_read_only", PAGES, 0, 16384, CL_MEM_READ_WRITE | CL_MEM_HOST_READ_ONLY },
	{ "host_write_only", PAGES, 0, 16384, CL_MEM_READ_WRITE | CL_MEM_HOST_WRITE_ONLY },
	{ "use_host_ptr", PAGES, 0, 16384, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR },
};

struct kind_mapping {
	void *memory;
	size_t size;
};

static void kind_unmap(void *arg)
{
	struct kind_mapping *mapping = arg;

	munmap(mapping->memory, mapping->size);
	free(mapping);
}

static unsigned char *kind_map_shared(size_t size)
{
	struct kind_mapping *mapping = malloc(sizeof(*mapping));

	mapping->size = size;
	mapping->memory =
		mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	EXPECT(mapping->memory != MAP_FAILED);
	spec_undo_later(kind_unmap, mapping);
	return mapping->memory;
}

static unsigned char *kind_allocate(size_t size)
{
	void *memory = NULL;

	EXPECT_EQ(posix_memalign(&memory, 4096, size), 0);
	spec_undo_later(free, memory);
	return memory;
}

/* The memory of @kind, for @count imports one behind the other. */
static unsigned char *kind_get(const struct kind *kind, size_t size)
{
	static unsigned char of_the_program[65536] __attribute__((aligned(65536)));

	switch (kind->place) {
	case PAGES:
		return spec_map_pages((size + spec.page - 1) / spec.page);
	case SHARED_MEMORY:
		return kind_map_shared(size);
	case HEAP:
		return kind_allocate(size);
	case PROGRAM:
		EXPECT(size <= sizeof(of_the_program));
		return of_the_program;
	}
	return NULL;
}

/* Devices that pin whole pages may refuse addresses and sizes inside of a page. */
static void kind_need(const struct kind *kind)
{
	need_host();
	if (kind->offset % host_alignment() && !spec.exact)
		test_skip("device takes multiples of %zu bytes", host_alignment());
	if (kind->flags &
		    (CL_MEM_HOST_NO_ACCESS | CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_WRITE_ONLY) &&
	    spec.device_version < CL_MAKE_VERSION(1, 2, 0))
		test_skip("device is older than OpenCL 1.2");
}

/* Enqueues the use of @mem behind the gate; @other is a plain buffer. */
static cl_event kind_use_late(const struct kind *kind, cl_mem mem, cl_mem other, cl_event gate)
{
	cl_event done = NULL;

	if (kind->flags & CL_MEM_READ_ONLY)
		kernels_copy_after(mem, other, kind->size, gate, &done);
	else if (kind->flags & CL_MEM_WRITE_ONLY)
		kernels_copy_after(other, mem, kind->size / 2, gate, &done);
	else
		kernels_add_after(mem, kind->size, 10, gate, &done);
	EXPECT_EQ(clFlush(spec.queue), CL_SUCCESS);
	return done;
}

static void kind_expect_used(const struct kind *kind, const unsigned char *at, cl_mem other)
{
	unsigned char *seen = malloc(kind->size);
	size_t half = kind->size / 2;

	spec_undo_later(free, seen);
	if (kind->flags & CL_MEM_READ_ONLY) {
		plain_read(other, seen, kind->size);
		EXPECT(spec_memory_is(seen, kind->size, 3));
	} else if (kind->flags & CL_MEM_WRITE_ONLY) {
		EXPECT(spec_memory_is(at, half, 7));
		for (size_t i = half; i < kind->size; i++)
			EXPECT_EQ(at[i], spec_pattern_byte(i, 3));
	} else {
		EXPECT(spec_memory_is(at, kind->size, 13));
	}
}

/* Two imports of the same bytes: a kernel on one sees the bytes of a kernel on the other at once. */
static void kind_expect_two(const struct kind *kind, cl_mem one, unsigned char *at)
{
	cl_mem two = import_host_kind(kind->name, kind->flags, at, kind->size);

	for (unsigned int turn = 1; turn < 4; turn++) {
		spec_fill_memory(at, kind->size, turn);
		kernels_add(one, kind->size, 1, 3);
		kernels_add(two, kind->size, 1, 4);
		kernels_add(one, kind->size, 1, 5);
		EXPECT(spec_memory_is(at, kind->size, turn + 12));
	}
}

/*
 * The host writes between the enqueue and the command: the command sees these bytes, and leaves the
 * bytes alone that the kernel does not write.
 */
TEST_EACH(late_bytes_of, struct kind, kinds, R6_07)
{
	unsigned char *memory, *at, *sent;
	cl_mem mem, other;
	cl_event gate, done;

	kind_need(row);
	memory = kind_get(row, row->offset + row->size);
	at = memory + row->offset;
	sent = kind_allocate(row->size);
	other = plain_buffer(row->size);
	spec_fill_memory(sent, row->size, 7);
	plain_write(other, sent, row->size);
	mem = import_host_kind(row->name, row->flags, at, row->size);
	spec_fill_memory(at, row->size, 100);
	gate = queues_create_gate();
	done = kind_use_late(row, mem, other, gate);
	spec_fill_memory(at, row->size, 3);
	queues_open_gate(gate);
	EXPECT_EQ(clWaitForEvents(1, &done), CL_SUCCESS);
	kind_expect_used(row, at, other);
	EXPECT_EQ(clReleaseEvent(done), CL_SUCCESS);
	if (!(row->flags & (CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY)))
		kind_expect_two(row, mem, at);
}
