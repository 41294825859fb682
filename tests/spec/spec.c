/* SPDX-License-Identifier: Apache-2.0 */
/* Tools of a test: reasons to skip, memory, and imports that succeed or fail. */
#include "spec.h"

#include "process.h"

#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { UNDO_MAX = 16384 };

static struct {
	void (*undo)(void *);
	void *arg;
} undos[UNDO_MAX];
static size_t undo_count;

void spec_close_descriptor(void *fd)
{
	close((int)(intptr_t)fd);
}

void spec_release_context(void *context)
{
	clReleaseContext(context);
}

void spec_undo_later(void (*undo)(void *), void *arg)
{
	EXPECT(undo_count < UNDO_MAX);
	undos[undo_count].undo = undo;
	undos[undo_count++].arg = arg;
}

void undo_all(void)
{
	while (undo_count) {
		undo_count--;
		undos[undo_count].undo(undos[undo_count].arg);
	}
}

void need_extension_of(const char *sentence)
{
	if (*sentence == 'R' && !spec.has_arm)
		test_skip("device does not report cl_arm_import_memory");
	if (*sentence == 'K' && !spec.has_external)
		test_skip("device does not report cl_khr_external_memory_dma_buf");
}

void need_host(void)
{
	if (!spec.has_host)
		test_skip("device does not report cl_arm_import_memory_host");
}

void need_dma_buf(void)
{
	if (!spec.has_dma_buf)
		test_skip("device does not report cl_arm_import_memory_dma_buf");
}

void need_prior_to_1_1(void)
{
	if (spec.version >= VERSION_1_1_0)
		test_skip("only before version 1.1.0 of the extension");
}

void need_1_1(void)
{
	if (spec.version < VERSION_1_1_0)
		test_skip("only from version 1.1.0 of the extension");
}

void spec_need_imports(void)
{
	if (spec.is_plain)
		test_skip("clCreateBuffer() need not refuse what imports refuse");
}

void spec_need_own_heap(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	test_skip("a sanitizer takes memory of its own");
#endif
}

struct pages {
	void *memory;
	size_t size;
};

static void unmap_pages(void *arg)
{
	struct pages *p = arg;

	munmap(p->memory, p->size);
	free(p);
}

unsigned char *spec_map_pages(size_t count)
{
	struct pages *p = malloc(sizeof(*p));

	p->size = count * spec.page;
	p->memory = mmap(NULL, p->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	EXPECT(p->memory != MAP_FAILED);
	spec_undo_later(unmap_pages, p);
	return p->memory;
}

/* Static memory: mmap() may return the address of an earlier test's pages. */
unsigned char *spec_map_own_pages(void)
{
	enum { TESTS = 32, PAGE = 65536 };
	static unsigned char room[TESTS][4 * PAGE] __attribute__((aligned(PAGE)));
	static size_t used;

	EXPECT(used < TESTS && spec.page <= PAGE);
	return room[used++];
}

unsigned char spec_pattern_byte(size_t i, unsigned int seed)
{
	return i * 7 + seed + (i >> 8) * 13;
}

void spec_fill_memory(unsigned char *memory, size_t size, unsigned int seed)
{
	for (size_t i = 0; i < size; i++)
		memory[i] = spec_pattern_byte(i, seed);
}

bool spec_memory_is(const unsigned char *memory, size_t size, unsigned int seed)
{
	for (size_t i = 0; i < size; i++)
		if (memory[i] != spec_pattern_byte(i, seed))
			return spec_note_wrong_byte(i, memory[i], spec_pattern_byte(i, seed));
	return true;
}

static void release_mem(void *mem)
{
	clReleaseMemObject(mem);
}

cl_mem released_later(cl_mem mem)
{
	if (mem)
		spec_undo_later(release_mem, mem);
	return mem;
}

static void undo_nothing(void *mem)
{
	(void)mem;
}

void spec_release_now(cl_mem mem)
{
	EXPECT_EQ(clReleaseMemObject(mem), CL_SUCCESS);
	for (size_t i = undo_count; i--;)
		if (undos[i].undo == release_mem && undos[i].arg == mem) {
			undos[i].undo = undo_nothing;
			return;
		}
}

cl_mem spec_import(cl_mem_flags flags, const cl_import_properties_arm *properties, void *memory,
		   size_t size)
{
	cl_int error = 1;
	cl_mem mem;

	EXPECT(spec.import != NULL);
	mem = released_later(spec.import(spec.context, flags, properties, memory, size, &error));
	EXPECT_EQ(error, CL_SUCCESS);
	EXPECT(mem != NULL);
	return mem;
}

cl_mem spec_import_host(cl_mem_flags flags, void *memory, size_t size)
{
	need_host();
	return spec_import(flags, NULL, memory, size);
}

cl_int spec_import_error_once(cl_context context, cl_mem_flags flags,
			      const cl_import_properties_arm *properties, void *memory, size_t size)
{
	unsigned int notices = atomic_load(&spec.notices);
	cl_int error = 1;
	cl_mem mem;

	spec_need_imports();
	EXPECT(spec.import != NULL);
	mem = released_later(spec.import(context, flags, properties, memory, size, &error));
	EXPECT(mem == NULL);
	EXPECT(error < 0);
	if (context == spec.context)
		EXPECT_EXACT(atomic_load(&spec.notices) - notices, 1);
	mem = released_later(spec.import(context, flags, properties, memory, size, NULL));
	EXPECT(mem == NULL);
	return error;
}

/* Drivers may destroy an object some time after its release: waits a second at most. */
static bool spec_is_back(long fds_before, long maps_before, long *fds, long *maps)
{
	const struct timespec pause = { 0, 10000000 };

	for (int i = 0; i < 100; i++) {
		*fds = process_count_descriptors() - fds_before;
		*maps = process_count_mappings("") - maps_before;
		if (*fds <= 0 && *maps <= 0)
			return true;
		nanosleep(&pause, NULL);
	}
	return false;
}

/* Threads and allocators of a driver map memory when they like; a leak grows in every round. */
void expect_no_leak(void (*attempt)(void *), void *arg)
{
	long fds = 0, maps = 0;

	attempt(arg);
	for (int round = 0; round < 4; round++) {
		long fds_before = process_count_descriptors(),
		     maps_before = process_count_mappings("");

		for (int i = 0; i < 8; i++)
			attempt(arg);
		if (spec_is_back(fds_before, maps_before, &fds, &maps))
			return;
	}
	spec_note("after 8 calls more: %ld descriptors, %ld mappings", fds, maps);
	EXPECT(!"a leak");
}

struct request {
	cl_mem_flags flags;
	const cl_import_properties_arm *properties;
	void *memory;
	size_t size;
	cl_int error;
};

static void request_run(void *arg)
{
	struct request *r = arg;

	r->error =
		spec_import_error_once(spec.context, r->flags, r->properties, r->memory, r->size);
}

cl_int spec_import_error(cl_mem_flags flags, const cl_import_properties_arm *properties,
			 void *memory, size_t size)
{
	struct request r = { flags, properties, memory, size, 0 };

	expect_no_leak(request_run, &r);
	return r.error;
}

cl_int spec_import_host_error(cl_mem_flags flags, void *memory, size_t size)
{
	need_host();
	return spec_import_error(flags, NULL, memory, size);
}

/* Mapped pages with an unmapped page between. */
struct holed {
	unsigned char *memory;
	size_t before, after; /* bytes */
};

/*
 * Pages at an address far from those that mmap() chooses, so that no thread of the driver maps memory in
 * the hole.  Of the places, one at least is free under every sanitizer.
 */
static unsigned char *spec_map_far(size_t size)
{
#if UINTPTR_MAX > UINT32_MAX
	static const uintptr_t places[] = { (uintptr_t)64 << 30, (uintptr_t)32 << 40 };
#else
	static const uintptr_t places[] = { 0x20000000, 0x30000000 };
#endif
	static size_t used;
	void *memory;

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		void *wanted = (void *)(places[i] + used);

		memory = mmap(wanted, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			      0);
		if (memory == wanted) {
			used += size + 16 * spec.page;
			return memory;
		}
		if (memory != MAP_FAILED)
			munmap(memory, size);
	}
	memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	EXPECT(memory != MAP_FAILED);
	return memory;
}

/* Leaves the hole alone: a thread of the driver may have mapped a stack in the hole. */
static void unmap_around_hole(void *arg)
{
	struct holed *h = arg;

	if (h->before)
		munmap(h->memory, h->before);
	if (h->after)
		munmap(h->memory + h->before + spec.page, h->after);
	free(h);
}

unsigned char *spec_map_pages_with_hole(size_t count, size_t hole)
{
	struct holed *h = malloc(sizeof(*h));

	h->before = hole * spec.page;
	h->after = (count - hole - 1) * spec.page;
	h->memory = spec_map_far(count * spec.page);
	spec_fill_memory(h->memory, count * spec.page, 1);
	EXPECT_EQ(munmap(h->memory + h->before, spec.page), 0);
	spec_undo_later(unmap_around_hole, h);
	return h->memory;
}

unsigned char *spec_map_pages_between_holes(size_t count)
{
	struct pages *p = malloc(sizeof(*p));
	unsigned char *memory;

	p->size = count * spec.page;
	memory = spec_map_far(p->size + 2 * spec.page);
	p->memory = memory + spec.page;
	EXPECT_EQ(munmap(memory, spec.page), 0);
	EXPECT_EQ(munmap(memory + spec.page + p->size, spec.page), 0);
	spec_undo_later(unmap_pages, p);
	return p->memory;
}
