/* SPDX-License-Identifier: Apache-2.0 */
/* What a test has at hand: reasons to skip, memory, and imports, good and bad. */
#include "spec.h"

#include <dirent.h>
#include <sys/mman.h>
#include <time.h>

enum { UNDO_MAX = 4096 };

static struct {
	void (*undo)(void *);
	void *arg;
} undos[UNDO_MAX];
static size_t undo_count;

void later(void (*undo)(void *), void *arg)
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

unsigned char *pages(size_t count)
{
	struct pages *p = malloc(sizeof(*p));

	p->size = count * spec.page;
	p->memory = mmap(NULL, p->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	EXPECT(p->memory != MAP_FAILED);
	later(unmap_pages, p);
	return p->memory;
}

/* Of the program: what mmap() gives may be where another test's pages were. */
unsigned char *pages_of_its_own(void)
{
	enum { TESTS = 8, PAGE = 65536 };
	static unsigned char room[TESTS][4 * PAGE] __attribute__((aligned(PAGE)));
	static size_t used;

	EXPECT(used < TESTS && spec.page <= PAGE);
	return room[used++];
}

unsigned char pattern(size_t i, unsigned int seed)
{
	return i * 7 + seed + (i >> 8) * 13;
}

void memory_fill(unsigned char *memory, size_t size, unsigned int seed)
{
	for (size_t i = 0; i < size; i++)
		memory[i] = pattern(i, seed);
}

bool memory_is(const unsigned char *memory, size_t size, unsigned int seed)
{
	for (size_t i = 0; i < size; i++)
		if (memory[i] != pattern(i, seed)) {
			printf("# byte %zu is %u, expected %u\n", i, memory[i], pattern(i, seed));
			return false;
		}
	return true;
}

static void release_mem(void *mem)
{
	clReleaseMemObject(mem);
}

cl_mem released_later(cl_mem mem)
{
	if (mem)
		later(release_mem, mem);
	return mem;
}

cl_mem import(cl_mem_flags flags, const cl_import_properties_arm *properties, void *memory,
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

cl_mem import_host(cl_mem_flags flags, void *memory, size_t size)
{
	need_host();
	return import(flags, NULL, memory, size);
}

cl_int refused_once(cl_context context, cl_mem_flags flags,
		    const cl_import_properties_arm *properties, void *memory, size_t size)
{
	unsigned int notices = atomic_load(&spec.notices);
	cl_int error = 1;
	cl_mem mem;

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

static long count_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	long count = 0;

	EXPECT(dir != NULL);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

static long count_mappings(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	long count = 0;
	int c;

	EXPECT(maps != NULL);
	while ((c = getc(maps)) != EOF)
		count += c == '\n';
	fclose(maps);
	return count;
}

/* Drivers destroy objects later than they are released: waits for that, a second at most. */
static bool is_back(long fds_before, long maps_before, long *fds, long *maps)
{
	const struct timespec pause = { 0, 10000000 };

	for (int i = 0; i < 100; i++) {
		*fds = count_descriptors() - fds_before;
		*maps = count_mappings() - maps_before;
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
		long fds_before = count_descriptors(), maps_before = count_mappings();

		for (int i = 0; i < 8; i++)
			attempt(arg);
		if (is_back(fds_before, maps_before, &fds, &maps))
			return;
	}
	printf("# after 8 calls more: %ld descriptors, %ld mappings\n", fds, maps);
	EXPECT(!"a leak");
}

struct request {
	cl_mem_flags flags;
	const cl_import_properties_arm *properties;
	void *memory;
	size_t size;
	cl_int error;
};

static void attempt(void *arg)
{
	struct request *r = arg;

	r->error = refused_once(spec.context, r->flags, r->properties, r->memory, r->size);
}

cl_int refused(cl_mem_flags flags, const cl_import_properties_arm *properties, void *memory,
	       size_t size)
{
	struct request r = { flags, properties, memory, size, 0 };

	expect_no_leak(attempt, &r);
	return r.error;
}

cl_int refused_host(cl_mem_flags flags, void *memory, size_t size)
{
	need_host();
	return refused(flags, NULL, memory, size);
}

/* Mapped pages, and one between them that is not. */
struct holed {
	unsigned char *memory;
	size_t before, after; /* bytes */
};

/* The hole is nobody's: a thread of the driver may have its stack there by now. */
static void unmap_around_hole(void *arg)
{
	struct holed *h = arg;

	if (h->before)
		munmap(h->memory, h->before);
	if (h->after)
		munmap(h->memory + h->before + spec.page, h->after);
	free(h);
}

unsigned char *pages_with_hole(size_t count, size_t hole)
{
	struct holed *h = malloc(sizeof(*h));

	h->before = hole * spec.page;
	h->after = (count - hole - 1) * spec.page;
	h->memory = mmap(NULL, count * spec.page, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	EXPECT(h->memory != MAP_FAILED);
	memory_fill(h->memory, count * spec.page, 1);
	EXPECT_EQ(munmap(h->memory + h->before, spec.page), 0);
	later(unmap_around_hole, h);
	return h->memory;
}
