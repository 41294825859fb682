/* SPDX-License-Identifier: Apache-2.0 */
/* clImportMemoryARM() and climport_create_buffer() of libclimport. */
#include "process.h"
#include "program.h"

#include <errno.h>
#include <fake_dmabuf.h>
#include <stub.h>
#include <sys/mman.h>

#define SIZE 8192
#define ALIGN 128 /* CL_DEVICE_MEM_BASE_ADDR_ALIGN of the stub, in bytes */

/* The layer's threads close descriptors a moment later. */
static bool is_given_back(int fds)
{
	return process_settles(process_descriptors_at_most, &fds);
}

static void program_import_host(void)
{
	static unsigned char memory[SIZE] __attribute__((aligned(4096)));
	cl_context context = program_create_context();
	cl_int err = -1;
	cl_mem mem = clImportMemoryARM(context, CL_MEM_READ_WRITE, NULL, memory, SIZE, &err);

	CHECK(mem && !err);
	CHECK(program_query_size(mem, CL_MEM_SIZE) == SIZE);
	memory[0] = 4;
	program_increment(context, mem);
	CHECK(memory[0] == 5);
	CHECK(!CL(clReleaseMemObject)(mem));
	mem = clImportMemoryARM(context, 0, NULL, memory, SIZE, NULL);
	CHECK(mem);
	CL(clReleaseMemObject)(mem);
	CHECK(!clImportMemoryARM(context, 0, NULL, memory, 0, &err));
	CHECK(err == CL_INVALID_BUFFER_SIZE);
	CL(clReleaseContext)(context);
}

TEST(import,
     "clImportMemoryARM() behaves like the function of the context's platform, in errors too.")
{
	program_expect_works(program_import_host, true);
}

/* Driver calls that an import by @import takes. */
static unsigned long program_count_calls(__typeof__(&clImportMemoryARM) import, cl_context context)
{
	static unsigned char memory[SIZE] __attribute__((aligned(4096)));
	void *stub = dlopen(STUB_PATH, RTLD_NOW | RTLD_NOLOAD);
	__typeof__(&stub_calls) calls = (__typeof__(&stub_calls))dlsym(stub, "stub_calls");
	unsigned long before = calls(NULL);
	cl_mem mem = import(context, 0, NULL, memory, SIZE, NULL);

	CHECK(mem);
	before = calls(NULL) - before;
	CL(clReleaseMemObject)(mem);
	dlclose(stub);
	return before;
}

static void program_import_twice(void)
{
	cl_context context = program_create_context();
	__typeof__(&clImportMemoryARM) direct;
	cl_platform_id platform;

	CHECK(!CL(clGetPlatformIDs)(1, &platform, NULL));
	direct = (__typeof__(direct))CL(clGetExtensionFunctionAddressForPlatform)(
		platform, "clImportMemoryARM");
	CHECK(direct != clImportMemoryARM);
	program_count_calls(clImportMemoryARM, context);
	CHECK(program_count_calls(clImportMemoryARM, context) ==
	      program_count_calls(direct, context));
	CL(clReleaseContext)(context);
}

TEST(import_again,
     "With the layer, a second clImportMemoryARM() asks the driver nothing beyond what the "
     "platform's function asks.")
{
	program_expect_works(program_import_twice, true);
}

static void program_without_layer(void)
{
	static unsigned char memory[SIZE] __attribute__((aligned(4096)));
	const struct climport_dmabuf d = { .fd = 1, .size = SIZE };
	cl_context context = program_create_context();
	cl_int err = 1;

	CHECK(!clImportMemoryARM(context, 0, NULL, memory, SIZE, &err));
	CHECK(err == CL_INVALID_OPERATION);
	err = 1;
	CHECK(!climport_create_buffer(context, 0, NULL, &d, &err));
	CHECK(err == CL_INVALID_OPERATION);
	CHECK(!climport_create_buffer(context, 0, NULL, &d, NULL));
	CHECK(!clImportMemoryARM(context, 0, NULL, memory, SIZE, NULL));
	CL(clReleaseContext)(context);
}

TEST(no_layer,
     "If the context's platform has no clImportMemoryARM(), the error is CL_INVALID_OPERATION.")
{
	program_expect_works(program_without_layer, false);
}

static void program_without_context(void)
{
	const struct climport_dmabuf d = { .fd = 1, .size = SIZE };
	char memory;
	cl_int err = 1;

	CHECK(!clImportMemoryARM(NULL, 0, NULL, &memory, 1, &err));
	CHECK(err == CL_INVALID_CONTEXT);
	err = 1;
	CHECK(!climport_create_buffer(NULL, 0, NULL, &d, &err));
	CHECK(err == CL_INVALID_CONTEXT);
}

static const struct layer_row {
	const char *name;
	bool layer;
} layers[] = { { "layer", true }, { "no_layer", false } };

TEST_EACH(no_context, struct layer_row, layers, "A NULL context is CL_INVALID_CONTEXT.")
{
	program_expect_works(program_without_context, row->layer);
}

static void program_with_lost_context(void)
{
	cl_context context = program_create_context();
	char memory;
	cl_int err = 1;

	CL(clReleaseContext)(context);
	CHECK(!clImportMemoryARM(context, 0, NULL, &memory, 1, &err));
	CHECK(err == CL_INVALID_CONTEXT);
	CHECK(!strcmp(climport_last_error(),
		      "the context was not created through this layer, or is gone"));
}

TEST(lost_context, "A released context is CL_INVALID_CONTEXT, with the layer's sentence.")
{
	program_expect_works(program_with_lost_context, true);
}

static void program_import_natively(void)
{
	static unsigned char memory[SIZE] __attribute__((aligned(4096)));
	cl_context context = program_create_context();

	for (int i = 0; i < 2; i++) {
		cl_mem mem = clImportMemoryARM(context, 0, NULL, memory, SIZE, NULL);

		CHECK(mem);
		CL(clReleaseMemObject)(mem);
	}
	CL(clReleaseContext)(context);
}

TEST_EACH(native, struct layer_row, layers,
	  "clImportMemoryARM() calls the function of a driver that has one, with and without the "
	  "layer.")
{
	program_expect_works_in("STUB_NATIVE=1", program_import_natively, row->layer);
}

static void program_create_buffers(void)
{
	cl_context context = program_create_context();
	int fd = fake_dmabuf_create("b", SIZE), fds;
	unsigned char *bytes = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	CHECK(fd >= 0 && bytes != MAP_FAILED);
	for (size_t offset = 0; offset <= 2 * ALIGN; offset += 2 * ALIGN) {
		struct climport_dmabuf d = { .fd = dup(fd), .offset = offset, .size = 1000 };
		cl_int err = 1;
		cl_mem mem = climport_create_buffer(context, CL_MEM_READ_WRITE, NULL, &d, &err);

		CHECK(mem && err == CL_SUCCESS);
		close(d.fd);
		CHECK(program_query_size(mem, CL_MEM_SIZE) == 1000);
		CHECK(program_query_size(mem, CL_MEM_OFFSET) == offset);
		CHECK(!program_query_size(mem, CL_MEM_ASSOCIATED_MEMOBJECT) == !offset);
		bytes[offset] = 70;
		program_increment(context, mem);
		CHECK(bytes[offset] == 71);
		CHECK(!CL(clReleaseMemObject)(mem));
	}
	fds = process_count_descriptors();
	for (int i = 0; i < 50; i++) {
		struct climport_dmabuf d = { .fd = fd,
					     .offset = (size_t)(i % 2 * ALIGN),
					     .size = 1000 };
		cl_mem mem = climport_create_buffer(context, 0, NULL, &d, NULL);

		CHECK(mem);
		CL(clReleaseMemObject)(mem);
	}
	CHECK(is_given_back(fds));
	CL(clReleaseContext)(context);
}

TEST(buffer, "The buffer is the range, at any aligned offset, and the descriptor may be closed.")
{
	program_expect_works(program_create_buffers, true);
}

/* A range of a dma-buf of SIZE bytes; @error 1 stands for any error. */
struct bad_buffer {
	const char *name;
	size_t offset, size;
	cl_int error;
};

static const struct bad_buffer bad_buffers[] = {
	{ "misaligned", ALIGN + 4, 1000, CL_MISALIGNED_SUB_BUFFER_OFFSET },
	{ "odd", 1, 1000, CL_MISALIGNED_SUB_BUFFER_OFFSET },
	{ "empty", 0, 0, CL_INVALID_BUFFER_SIZE },
	{ "empty_at_an_offset", ALIGN, 0, CL_INVALID_BUFFER_SIZE },
	{ "largest_size", ALIGN, SIZE_MAX, CL_INVALID_BUFFER_SIZE },
	{ "largest_offset", SIZE_MAX, ALIGN, CL_INVALID_BUFFER_SIZE },
	{ "beyond_the_end", ALIGN, SIZE, 1 },
};

static const struct bad_buffer *bad_buffer; /* for the child */

static void program_fail_buffer(void)
{
	cl_context context = program_create_context();
	const struct climport_dmabuf good = { .fd = fake_dmabuf_create("b", SIZE), .size = 1 },
				     bad = { .fd = good.fd,
					     .offset = bad_buffer->offset,
					     .size = bad_buffer->size };
	cl_int err = 1;
	int fds;

	CHECK(CL(clReleaseMemObject)(climport_create_buffer(context, 0, NULL, &good, NULL)) ==
	      CL_SUCCESS);
	fds = process_count_descriptors();
	CHECK(!climport_create_buffer(context, 0, NULL, &bad, &err));
	CHECK(bad_buffer->error == 1 ? err < 0 : err == bad_buffer->error);
	CHECK(!climport_create_buffer(context, 0, NULL, &bad, NULL));
	CHECK(is_given_back(fds));
	CL(clReleaseContext)(context);
}

TEST_EACH(buffer_errors, struct bad_buffer, bad_buffers,
	  "A misaligned offset, a size of 0 and a range beyond the end are errors, and nothing is "
	  "held.")
{
	bad_buffer = row;
	program_expect_works(program_fail_buffer, true);
}

static const cl_import_properties_arm
	consistent[] = { CL_IMPORT_DMA_BUF_DATA_CONSISTENCY_WITH_HOST_ARM, CL_TRUE, 0 },
	typed[] = { CL_IMPORT_TYPE_ARM, CL_IMPORT_TYPE_DMA_BUF_ARM, 0 },
	both[] = { CL_IMPORT_DMA_BUF_DATA_CONSISTENCY_WITH_HOST_ARM, CL_FALSE, CL_IMPORT_TYPE_ARM,
		   CL_IMPORT_TYPE_DMA_BUF_ARM, 0 },
	empty[] = { 0 }, of_host[] = { CL_IMPORT_TYPE_ARM, CL_IMPORT_TYPE_HOST_ARM, 0 },
	unknown[] = { 0x7777, 1, 0 };

static const struct list_row {
	const char *name;
	const cl_import_properties_arm *list;
	cl_int error;
} lists[] = {
	{ "consistency", consistent, CL_SUCCESS },
	{ "type", typed, CL_SUCCESS },
	{ "consistency_and_type", both, CL_SUCCESS },
	{ "nothing", empty, CL_SUCCESS },
	{ "another_type", of_host, CL_INVALID_PROPERTY },
	{ "unknown", unknown, CL_INVALID_PROPERTY },
};

static const struct list_row *list; /* for the child */

static void program_create_with_list(void)
{
	cl_context context = program_create_context();
	const struct climport_dmabuf d = { .fd = fake_dmabuf_create("b", SIZE), .size = SIZE };
	cl_int err = 1;
	cl_mem mem = climport_create_buffer(context, CL_MEM_READ_WRITE, list->list, &d, &err);

	CHECK(err == list->error);
	CHECK(!mem == !!list->error);
	CHECK(!*climport_last_error() == !list->error);
	if (mem)
		CHECK(!CL(clReleaseMemObject)(mem));
	CL(clReleaseContext)(context);
}

TEST_EACH(buffer_properties, struct list_row, lists,
	  "A buffer takes the properties of clImportMemoryARM(), and no other type of memory.")
{
	list = row;
	program_expect_works(program_create_with_list, true);
}

static void program_fail_descriptor(void)
{
	const struct climport_dmabuf not_open = { .fd = -1, .size = 100 };
	cl_context context = program_create_context();
	cl_int err = CL_SUCCESS;

	CHECK(!climport_create_buffer(context, 0, NULL, &not_open, &err));
	CHECK(err < 0);
	CHECK(strstr(climport_last_error(), "descriptor -1"));
	CL(clReleaseContext)(context);
}

TEST(buffer_without_descriptor,
     "A buffer of descriptor -1 is an error, and climport_last_error() is the layer's sentence.")
{
	program_expect_works(program_fail_descriptor, true);
}

static void program_without_cuda(void)
{
	static const unsigned char uuid[CLIMPORT_UUID_SIZE];
	struct climport_dmabuf d;
	char memory[100];
	void *p;

	CHECK(climport_alloc(CLIMPORT_HOST, 1, 0, uuid, &p) == -ENODEV);
	CHECK(climport_alloc(CLIMPORT_DEVICE, 1, 0, uuid, &p) == -ENODEV);
	CHECK(!climport_alloc(CLIMPORT_HOST, 1, 0, NULL, &p));
	climport_free(p);
	if (access("/dev/gdmabuf", F_OK))
		CHECK(climport_export_dmabuf(memory, sizeof(memory), CLIMPORT_KEEP, &d,
					     sizeof(d)) == -ENXIO);
	CHECK(!dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD) ||
	      !dlsym(RTLD_DEFAULT, "cuMemCreate"));
}

TEST(no_cuda, "Without libcuda host memory can be allocated, and device memory is -ENODEV.")
{
	program_expect_works(program_without_cuda, false);
}
