/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long imports live: as long as an object or a command uses the memory, and no longer.  The
 * destructor callback of an import tells when the import is gone.
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "dma_buf.h"
#include "kernels.h"
#include "object.h"
#include "process.h"
#include "queues.h"

enum { PAGE_MAX = 65536, ROOM = 8 * PAGE_MAX, ROUNDS = 64 };

/* Mapped for good: drivers may destroy an import some time after the release. */
static unsigned char room[ROOM] __attribute__((aligned(PAGE_MAX)));

static atomic_uint destroyed;

static void CL_CALLBACK lifetime_count_destroyed(cl_mem mem, void *count)
{
	(void)mem;
	atomic_fetch_add((atomic_uint *)count, 1);
}

/* An import of the room, which the caller releases; the callback adds 1 to @destroyed. */
static cl_mem lifetime_import(void)
{
	cl_int error = 1;
	cl_mem mem;

	need_host();
	mem = spec.import(spec.context, CL_MEM_READ_WRITE, NULL, room, ROOM, &error);
	EXPECT_EQ(error, CL_SUCCESS);
	EXPECT_EQ(clSetMemObjectDestructorCallback(mem, lifetime_count_destroyed, &destroyed),
		  CL_SUCCESS);
	return mem;
}

static cl_mem lifetime_derive(cl_mem import, enum shape shape)
{
	cl_int error = 1;
	cl_mem mem = object_derive(import, shape, CL_MEM_READ_WRITE, &error);

	EXPECT_EQ(error, CL_SUCCESS);
	return mem;
}

static bool lifetime_is_destroyed(void *count)
{
	return atomic_load(&destroyed) >= *(unsigned int *)count;
}

/* Some drivers call back a little later, on a thread, and keep the arguments of kernels. */
static void lifetime_expect_destroyed(unsigned int count)
{
	undo_all();
	process_settles(lifetime_is_destroyed, &count);
	EXPECT_EQ(atomic_load(&destroyed), count);
	atomic_store(&destroyed, 0);
}

static const struct lifetime_shape {
	const char *name;
	enum shape shape;
} lifetime_shapes[] = {
	{ "sub_buffer", SUB_BUFFER },
	{ "image", IMAGE },
	{ "image_of_a_sub_buffer", IMAGE_OF_SUB_BUFFER },
	{ "image_1d", IMAGE_1D },
};

TEST(destructor_callback, R6_55)
{
	cl_mem mem = lifetime_import();

	EXPECT_EQ(atomic_load(&destroyed), 0);
	EXPECT_EQ(clRetainMemObject(mem), CL_SUCCESS);
	EXPECT_EQ(clReleaseMemObject(mem), CL_SUCCESS);
	EXPECT_EQ(atomic_load(&destroyed), 0);
	EXPECT_EQ(clReleaseMemObject(mem), CL_SUCCESS);
	lifetime_expect_destroyed(1);
}

/* A kernel reads, through the object, what the host has just written. */
static void lifetime_expect_used(cl_mem mem, enum shape shape, unsigned int seed)
{
	unsigned char seen[BYTES] = { 0 }, *at = room + object_derived_origin(shape);
	cl_mem buffer = plain_buffer(BYTES);

	spec_fill_memory(at, BYTES, seed);
	if (shape == BUFFER || shape == SUB_BUFFER)
		kernels_copy(mem, buffer, BYTES);
	else if (shape == IMAGE_1D)
		kernels_image1d_to_buffer(mem, buffer, OBJECT_PIXELS);
	else
		kernels_image_to_buffer(mem, buffer, OBJECT_PIXELS, 1);
	plain_read(buffer, seen, BYTES);
	EXPECT(spec_memory_is(seen, BYTES, seed));
}

/* The application releases the import first. */
TEST_EACH(import_lives_as_long_as_its, struct lifetime_shape, lifetime_shapes, R6_55)
{
	cl_mem import, mem;

	need_shape(row->shape);
	undo_all();
	import = lifetime_import();
	mem = lifetime_derive(import, row->shape);
	EXPECT_EQ(clReleaseMemObject(import), CL_SUCCESS);
	lifetime_expect_used(mem, row->shape, 1);
	lifetime_expect_used(mem, row->shape, 2);
	EXPECT_EQ(atomic_load(&destroyed), 0);
	EXPECT_EQ(clReleaseMemObject(mem), CL_SUCCESS);
	lifetime_expect_destroyed(1);
}

/* The application releases the import last. */
TEST_EACH(nothing_keeps_an_import_after_its, struct lifetime_shape, lifetime_shapes, R6_55)
{
	need_shape(row->shape);
	undo_all();
	for (int i = 0; i < ROUNDS; i++) {
		cl_mem import = lifetime_import(), mem = lifetime_derive(import, row->shape);

		EXPECT_EQ(clRetainMemObject(mem), CL_SUCCESS);
		EXPECT_EQ(clReleaseMemObject(mem), CL_SUCCESS);
		EXPECT_EQ(clReleaseMemObject(mem), CL_SUCCESS);
		EXPECT_EQ(clReleaseMemObject(import), CL_SUCCESS);
	}
	lifetime_expect_destroyed(ROUNDS);
}

/* Requests that fail leave no reference to the import. */
TEST(nothing_keeps_an_import_after_errors, R6_55)
{
	const cl_buffer_region outside = { 0, ROOM + 1 };

	for (int i = 0; i < ROUNDS; i++) {
		cl_mem import = lifetime_import();
		cl_int error = 1;
		cl_mem sub = clCreateSubBuffer(import, 0, CL_BUFFER_CREATE_TYPE_REGION, &outside,
					       &error);

		EXPECT(!sub);
		EXPECT(!object_derive(import, SUB_BUFFER, CL_MEM_ALLOC_HOST_PTR, &error));
		EXPECT(!object_derive(import, IMAGE_1D, CL_MEM_ALLOC_HOST_PTR, &error));
		EXPECT(!object_derive(import, IMAGE, CL_MEM_ALLOC_HOST_PTR, &error));
		EXPECT_EQ(clReleaseMemObject(import), CL_SUCCESS);
	}
	lifetime_expect_destroyed(ROUNDS);
}

/* The kernel waits while the test releases every object, and then uses the memory. */
static void lifetime_expect_late(cl_mem import, cl_mem mem, unsigned char *at)
{
	cl_event gate = queues_create_gate(), done;

	spec_fill_memory(at, BYTES, 1);
	kernels_add_after(mem, BYTES, 10, gate, &done);
	EXPECT_EQ(clFlush(spec.queue), CL_SUCCESS);
	if (mem != import)
		EXPECT_EQ(clReleaseMemObject(mem), CL_SUCCESS);
	EXPECT_EQ(clReleaseMemObject(import), CL_SUCCESS);
	EXPECT_EQ(atomic_load(&destroyed), 0);
	spec_fill_memory(at, BYTES, 2);
	queues_open_gate(gate);
	EXPECT_EQ(clWaitForEvents(1, &done), CL_SUCCESS);
	EXPECT(spec_memory_is(at, BYTES, 12));
	EXPECT_EQ(clReleaseEvent(done), CL_SUCCESS);
	EXPECT_EQ(clFinish(spec.queue), CL_SUCCESS);
}

TEST(import_released_before_its_kernel_runs, R6_55)
{
	cl_mem import = lifetime_import();

	lifetime_expect_late(import, import, room);
	lifetime_expect_destroyed(1);
}

TEST(sub_buffer_released_before_its_kernel_runs, R6_55)
{
	cl_mem import = lifetime_import();

	lifetime_expect_late(import, lifetime_derive(import, SUB_BUFFER), room + object_origin());
	lifetime_expect_destroyed(1);
}

/*
 * Likewise for images.  The test leaves 1D images out: PoCL 3.1 reads a 1D image after its release,
 * without any import too.
 */
static void lifetime_expect_late_image(enum shape shape)
{
	unsigned char pixel[PIXEL];
	cl_mem buffer = plain_buffer(PIXEL), import = lifetime_import();
	cl_mem image = lifetime_derive(import, shape);
	cl_event gate = queues_create_gate();

	kernels_pixel_after(image, buffer, gate);
	EXPECT_EQ(clReleaseMemObject(image), CL_SUCCESS);
	EXPECT_EQ(clReleaseMemObject(import), CL_SUCCESS);
	EXPECT_EQ(atomic_load(&destroyed), 0);
	room[object_derived_origin(shape)] = 42;
	queues_open_gate(gate);
	plain_read(buffer, pixel, PIXEL);
	EXPECT_BYTE(pixel[0], 42);
	lifetime_expect_destroyed(1);
}

TEST(image_released_before_its_kernel_runs, R6_55)
{
	need_shape(IMAGE);
	undo_all();
	lifetime_expect_late_image(IMAGE);
	lifetime_expect_late_image(IMAGE_OF_SUB_BUFFER);
}

static void host_import_and_release(void *memory)
{
	cl_int error;
	cl_mem mem = spec.import(spec.context, CL_MEM_READ_WRITE, NULL, memory, spec.page, &error);

	EXPECT_EQ(error, CL_SUCCESS);
	EXPECT_EQ(clReleaseMemObject(mem), CL_SUCCESS);
}

struct lifetime_child {
	void *memory;
	enum shape shape;
};

static void lifetime_derive_and_release(void *arg)
{
	const struct lifetime_child *child = arg;
	size_t size = 2 * spec.page + object_origin();
	cl_int error = 1;
	cl_mem mem, import = spec.import(spec.context, CL_MEM_READ_WRITE, NULL, child->memory, size,
					 &error);

	EXPECT_EQ(error, CL_SUCCESS);
	mem = lifetime_derive(import, child->shape);
	EXPECT_EQ(clReleaseMemObject(mem), CL_SUCCESS);
	EXPECT_EQ(clReleaseMemObject(import), CL_SUCCESS);
}

TEST_EACH(nothing_is_left_by_a_released, struct lifetime_shape, lifetime_shapes, R6_55)
{
	struct lifetime_child child = { room, row->shape };

	need_host();
	need_shape(row->shape);
	expect_no_leak(lifetime_derive_and_release, &child);
}

TEST(released_import_leaves_nothing, R6_55)
{
	need_host();
	expect_no_leak(host_import_and_release, spec_map_pages(1));
}

/* A number of kilobytes in /proc/self/status, as bytes; 0 if the kernel does not count these. */
static size_t lifetime_status(const char *name)
{
	FILE *status = fopen("/proc/self/status", "r");
	char line[200];
	size_t value = 0;

	EXPECT(status != NULL);
	while (fgets(line, sizeof(line), status))
		if (!strncmp(line, name, strlen(name)))
			value = strtoul(line + strlen(name), NULL, 10) * 1024;
	fclose(status);
	return value;
}

/* Pinned pages, and locked pages. */
static size_t lifetime_pinned(void)
{
	return lifetime_status("VmPin:") + lifetime_status("VmLck:");
}

static bool lifetime_pins_at_most(void *bytes)
{
	return lifetime_pinned() <= *(size_t *)bytes;
}

static void lifetime_use_and_release(cl_kernel add)
{
	cl_mem import = lifetime_import();

	kernels_add_with(add, spec.queue, import, spec.page, 1);
	EXPECT_EQ(clReleaseMemObject(import), CL_SUCCESS);
}

TEST(released_imports_hold_no_pages, R6_55)
{
	cl_kernel add;
	size_t before;

	need_host();
	kernels_create("add"); /* compiles */
	add = kernels_create_plain("add");
	memset(room, 1, ROOM);
	munlock(room, ROOM); /* a test before, in the same process, may have left it locked */
	before = lifetime_pinned();
	for (int i = 0; i < ROUNDS; i++)
		lifetime_use_and_release(add);
	EXPECT_EQ(clReleaseKernel(add), CL_SUCCESS);
	lifetime_expect_destroyed(ROUNDS);
	EXPECT(process_settles(lifetime_pins_at_most, &before));
}

struct lifetime_room {
	size_t data;
	int threads;
};

static bool lifetime_fits(void *limit)
{
	const struct lifetime_room *most = limit;

	return lifetime_status("VmData:") <= most->data && process_count_threads() <= most->threads;
}

/* 16 KiB of each import would be 16 MiB in all; a few stacks of the driver's threads are less. */
TEST(released_imports_hold_no_heap_and_no_threads, R6_55)
{
	enum { MANY = 1000 };
	struct lifetime_room most;
	cl_kernel add;

	need_host();
	spec_need_own_heap();
	kernels_create("add"); /* compiles */
	add = kernels_create_plain("add");
	lifetime_use_and_release(add);
	most.data = lifetime_status("VmData:") + ((size_t)16 << 20);
	most.threads = process_count_threads() + 2;
	for (int i = 1; i < MANY; i++)
		lifetime_use_and_release(add);
	EXPECT_EQ(clReleaseKernel(add), CL_SUCCESS);
	lifetime_expect_destroyed(MANY);
	EXPECT(process_settles(lifetime_fits, &most));
}

/* The application owns the memory; import and release of the import change no byte. */
TEST(memory_outlives_the_import, R6_55)
{
	unsigned char *memory = spec_map_pages(1);
	cl_mem mem;
	cl_int error;

	need_host();
	spec_fill_memory(memory, spec.page, 7);
	mem = spec.import(spec.context, CL_MEM_READ_WRITE, NULL, memory, spec.page, &error);
	EXPECT_EQ(error, CL_SUCCESS);
	EXPECT(spec_memory_is(memory, spec.page, 7));
	spec_fill_memory(memory, spec.page, 1);
	kernels_add(mem, spec.page, 1, 1);
	spec_fill_memory(memory, spec.page, 2); /* later than the kernel */
	EXPECT_EQ(clReleaseMemObject(mem), CL_SUCCESS);
	EXPECT(spec_memory_is(memory, spec.page, 2));
	spec_fill_memory(memory, spec.page, 9);
	mem = spec_import_host(CL_MEM_READ_WRITE, memory, spec.page);
	kernels_add(mem, spec.page, 1, 1);
	EXPECT(spec_memory_is(memory, spec.page, 10));
}

/* Each import holds the memory, and not only the first or the last. */
static void lifetime_expect_second(cl_mem first, cl_mem second, unsigned char *memory)
{
	kernels_add(first, spec.page, spec.page, 1);
	EXPECT_EQ(clReleaseMemObject(first), CL_SUCCESS);
	expect_shared(second, memory, spec.page);
	EXPECT_EQ(clReleaseMemObject(second), CL_SUCCESS);
}

static cl_mem lifetime_import_of(const cl_import_properties_arm *type, void *memory)
{
	cl_int error = 1;
	cl_mem mem = spec.import(spec.context, CL_MEM_READ_WRITE, type, memory, spec.page, &error);

	EXPECT_EQ(error, CL_SUCCESS);
	return mem;
}

TEST(one_of_two_imports_is_released, R6_55)
{
	unsigned char *memory = spec_map_pages(1);
	cl_mem first, second;

	need_host();
	first = lifetime_import_of(NULL, memory);
	second = lifetime_import_of(NULL, memory);
	lifetime_expect_second(first, second, memory);
	first = lifetime_import_of(NULL, memory);
	second = lifetime_import_of(NULL, memory);
	lifetime_expect_second(second, first, memory);
}

TEST(one_of_two_imports_of_a_dma_buf_is_released, R6_55)
{
	struct dma_buf *buf = dma_buf_get(spec.page);
	cl_mem first = lifetime_import_of(coherent_dma_buf(), &buf->fd);
	cl_mem second = lifetime_import_of(coherent_dma_buf(), &buf->fd);

	lifetime_expect_second(first, second, buf->memory);
	first = lifetime_import_of(coherent_dma_buf(), &buf->fd);
	second = lifetime_import_of(coherent_dma_buf(), &buf->fd);
	lifetime_expect_second(second, first, buf->memory);
}

static void lifetime_unmap_page(void *memory)
{
	munmap(memory, spec.page);
}

/* The page of @fd at @at, or anywhere if @at is NULL; unmapped after the test if anywhere. */
static unsigned char *lifetime_map_page(int fd, unsigned char *at)
{
	unsigned char *memory = mmap(at, spec.page, PROT_READ | PROT_WRITE,
				     MAP_SHARED | (at ? MAP_FIXED : 0), fd, 0);

	EXPECT(memory != MAP_FAILED);
	if (!at)
		spec_undo_later(lifetime_unmap_page, memory);
	return memory;
}

static int lifetime_open_page(void)
{
	int fd = memfd_create("climport-conform", MFD_CLOEXEC);

	EXPECT(fd >= 0);
	spec_undo_later(spec_close_descriptor, (void *)(intptr_t)fd);
	EXPECT_EQ(ftruncate(fd, spec.page), 0);
	return fd;
}

/*
 * Uses the page at @at by an import of its own, until the import is gone.  Some drivers keep the
 * arguments of kernels, so the kernel goes first.
 */
static void lifetime_expect_page(unsigned char *at, const unsigned char *page)
{
	cl_kernel add = kernels_create_plain("add");
	cl_mem mem = lifetime_import_of(NULL, at);
	unsigned int one = 1;

	EXPECT_EQ(clSetMemObjectDestructorCallback(mem, lifetime_count_destroyed, &destroyed),
		  CL_SUCCESS);
	spec_fill_memory(at, spec.page, 1);
	kernels_add_with(add, spec.queue, mem, spec.page, 10);
	EXPECT_EQ(clReleaseKernel(add), CL_SUCCESS);
	EXPECT(spec_memory_is(page, spec.page, 11));
	EXPECT_EQ(clReleaseMemObject(mem), CL_SUCCESS);
	process_settles(lifetime_is_destroyed, &one);
	atomic_store(&destroyed, 0);
}

/* The address of the first page means other pages, of which an earlier import knew nothing. */
TEST(other_memory_at_the_same_address,
     "R6-06 Memory imported through this interface will be mapped into the device's page tables "
     "directly, providing zero copy access.")
{
	unsigned char *at;

	need_host();
	kernels_create("add"); /* compiles */
	at = lifetime_map_page(lifetime_open_page(), NULL);
	for (int turn = 0; turn < 4; turn++) {
		int fd = lifetime_open_page();

		lifetime_map_page(fd, at);
		lifetime_expect_page(at, lifetime_map_page(fd, NULL));
	}
}

/* The number of the first dma-buf's descriptor means another dma-buf. */
TEST(other_dma_buf_at_the_same_descriptor,
     "R6-32 If the extension string cl_arm_import_memory_dma_buf is exposed then importing from "
     "dma_buf file handles is supported.")
{
	struct dma_buf *first = dma_buf_get(spec.page), *second = dma_buf_get(spec.page);
	int fd = fcntl(first->fd, F_DUPFD_CLOEXEC, 3);
	cl_mem one, two;

	EXPECT(fd >= 0);
	spec_undo_later(spec_close_descriptor, (void *)(intptr_t)fd);
	one = spec_import(CL_MEM_READ_WRITE, coherent_dma_buf(), &fd, spec.page);
	expect_shared(one, first->memory, spec.page);
	EXPECT_EQ(dup3(second->fd, fd, O_CLOEXEC), fd);
	two = spec_import(CL_MEM_READ_WRITE, coherent_dma_buf(), &fd, spec.page);
	expect_shared(two, second->memory, spec.page);
	expect_shared(one, first->memory, spec.page);
}

/* The import keeps the context, of which the application releases its handle. */
TEST(import_outlives_the_handle_of_its_context, R6_55)
{
	unsigned char *memory = spec_map_pages(1);
	cl_int error = 1;
	cl_context context;
	cl_mem mem;

	need_host();
	context = clCreateContext(NULL, 1, &spec.device, NULL, NULL, &error);
	EXPECT_EQ(error, CL_SUCCESS);
	mem = spec.import(context, CL_MEM_READ_WRITE, NULL, memory, spec.page, &error);
	EXPECT_EQ(clReleaseContext(context), CL_SUCCESS);
	EXPECT_EQ(error, CL_SUCCESS);
	QUERY(clGetMemObjectInfo, mem, CL_MEM_CONTEXT, cl_context, context);
	EXPECT_EQ(clReleaseMemObject(mem), CL_SUCCESS);
}
