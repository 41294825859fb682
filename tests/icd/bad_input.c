/* SPDX-License-Identifier: Apache-2.0 */
#include "bad_input.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#define SIZE ((size_t)3 * PAGE)
#define CONSISTENCY CL_IMPORT_DMA_BUF_DATA_CONSISTENCY_WITH_HOST_ARM

/* Adds a property behind the type. */
static void bad_add_property(struct bad_call *call, cl_import_properties_arm name,
			     cl_import_properties_arm value)
{
	call->properties[2] = name;
	call->properties[3] = value;
}

static void bad_null_context(struct bad_call *call)
{
	call->context = NULL;
}

static void bad_wild_context(struct bad_call *call)
{
	call->context = (cl_context)(uintptr_t)0x1230;
}

static void bad_memory_as_context(struct bad_call *call)
{
	call->context = (cl_context)call->bytes;
}

static void bad_queue_as_context(struct bad_call *call)
{
	call->context = (cl_context)fix.queue;
}

static void bad_unknown_property(struct bad_call *call)
{
	bad_add_property(call, 0x40ff, 1);
}

static void bad_negative_property(struct bad_call *call)
{
	bad_add_property(call, -1, 1);
}

static void bad_type_twice(struct bad_call *call)
{
	bad_add_property(call, CL_IMPORT_TYPE_ARM, call->properties[1]);
}

static void bad_unknown_type(struct bad_call *call)
{
	call->properties[1] = 7;
}

static void bad_protected(struct bad_call *call)
{
	bad_add_property(call, CL_IMPORT_TYPE_PROTECTED_ARM, CL_TRUE);
}

static void bad_android(struct bad_call *call)
{
	call->properties[1] = CL_IMPORT_TYPE_ANDROID_HARDWARE_BUFFER_ARM;
}

static void bad_consistency_of_host(struct bad_call *call)
{
	bad_add_property(call, CONSISTENCY, CL_TRUE);
}

static void bad_consistency_two(struct bad_call *call)
{
	bad_add_property(call, CONSISTENCY, 2);
}

static void bad_consistency_twice(struct bad_call *call)
{
	bad_add_property(call, CONSISTENCY, CL_TRUE);
	call->properties[4] = CONSISTENCY;
	call->properties[5] = CL_TRUE;
}

static void bad_two_accesses(struct bad_call *call)
{
	call->flags = CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY;
}

static void bad_two_host_accesses(struct bad_call *call)
{
	call->flags = CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_NO_ACCESS;
}

static void bad_copy_host_ptr(struct bad_call *call)
{
	call->flags = CL_MEM_COPY_HOST_PTR;
}

static void bad_alloc_host_ptr(struct bad_call *call)
{
	call->flags = CL_MEM_ALLOC_HOST_PTR | CL_MEM_READ_WRITE;
}

static void bad_unknown_flag(struct bad_call *call)
{
	call->flags = (cl_mem_flags)1 << 40;
}

static void bad_all_flags(struct bad_call *call)
{
	call->flags = ~(cl_mem_flags)0;
}

static void bad_no_memory(struct bad_call *call)
{
	call->memory = NULL;
}

static void bad_no_size(struct bad_call *call)
{
	call->size = 0;
}

static void bad_size_max(struct bad_call *call)
{
	call->size = SIZE_MAX;
}

static void bad_size_of_half(struct bad_call *call)
{
	call->size = SIZE_MAX / 2 + 1;
}

static void bad_one_byte_behind(struct bad_call *call)
{
	call->size = SIZE + 1;
}

static void bad_no_access(struct bad_call *call)
{
	EXPECT_EQ(mprotect(call->bytes + PAGE, PAGE, PROT_NONE), 0);
}

static void bad_read_only(struct bad_call *call)
{
	EXPECT_EQ(mprotect(call->bytes + PAGE, PAGE, PROT_READ), 0);
}

static void bad_first_page(struct bad_call *call)
{
	call->memory = (void *)(uintptr_t)1;
}

static void bad_unmapped(struct bad_call *call)
{
	call->memory = pages_hole();
}

static void bad_of_kernel(struct bad_call *call)
{
	call->memory = (void *)(uintptr_t) - (intptr_t)(16 * PAGE);
}

static void bad_not_canonical(struct bad_call *call)
{
	call->memory = (void *)(uintptr_t)0x7fff000000000000;
}

static void bad_by_value(struct bad_call *call)
{
	call->memory = (void *)(uintptr_t)call->fd;
}

static void bad_use_descriptor(struct bad_call *call, int fd)
{
	call->other_fd = fd;
	call->memory = &call->other_fd;
}

static void bad_minus_one(struct bad_call *call)
{
	bad_use_descriptor(call, -1);
}

static void bad_minimum(struct bad_call *call)
{
	bad_use_descriptor(call, INT32_MIN);
}

/* A number that no other thread gets meanwhile. */
static void bad_closed(struct bad_call *call)
{
	const int fd = fcntl(call->fd, F_DUPFD_CLOEXEC, 500);

	EXPECT(fd >= 0);
	close(fd);
	bad_use_descriptor(call, fd);
}

static void bad_memfd(struct bad_call *call)
{
	const int fd = memfd_create("ordinary", MFD_CLOEXEC);

	EXPECT(fd >= 0 && !ftruncate(fd, SIZE));
	bad_use_descriptor(call, fd);
}

static void bad_device(struct bad_call *call)
{
	bad_use_descriptor(call, open("/dev/null", O_RDWR | O_CLOEXEC));
}

static void bad_directory(struct bad_call *call)
{
	bad_use_descriptor(call, open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

static void bad_pipe(struct bad_call *call)
{
	int ends[2];

	EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
	close(ends[1]);
	bad_use_descriptor(call, ends[0]);
}

static void bad_unreadable(struct bad_call *call)
{
	EXPECT_EQ(mprotect(call->bytes, PAGE, PROT_NONE), 0);
	call->memory = call->bytes;
}

const struct bad_input bad_inputs[] = {
	{ "null_context", BAD_BOTH, bad_null_context, CL_INVALID_CONTEXT },
	{ "wild_context", BAD_BOTH, bad_wild_context, CL_INVALID_CONTEXT },
	{ "memory_as_context", BAD_BOTH, bad_memory_as_context, CL_INVALID_CONTEXT },
	{ "queue_as_context", BAD_BOTH, bad_queue_as_context, CL_INVALID_CONTEXT },
	{ "unknown_property", BAD_BOTH, bad_unknown_property, CL_INVALID_PROPERTY },
	{ "negative_property", BAD_BOTH, bad_negative_property, CL_INVALID_PROPERTY },
	{ "type_twice", BAD_BOTH, bad_type_twice, CL_INVALID_PROPERTY },
	{ "unknown_type", BAD_BOTH, bad_unknown_type, CL_INVALID_PROPERTY },
	{ "protected", BAD_BOTH, bad_protected, CL_INVALID_PROPERTY },
	{ "android", BAD_BOTH, bad_android, CL_INVALID_PROPERTY },
	{ "consistency", BAD_HOST, bad_consistency_of_host, CL_INVALID_PROPERTY },
	{ "consistency_two", BAD_BOTH, bad_consistency_two, CL_INVALID_PROPERTY },
	{ "consistency_twice", BAD_BOTH, bad_consistency_twice, CL_INVALID_PROPERTY },
	{ "two_accesses", BAD_BOTH, bad_two_accesses, CL_INVALID_VALUE },
	{ "two_host_accesses", BAD_BOTH, bad_two_host_accesses, CL_INVALID_VALUE },
	{ "copy_host_ptr", BAD_BOTH, bad_copy_host_ptr, CL_INVALID_VALUE },
	{ "alloc_host_ptr", BAD_BOTH, bad_alloc_host_ptr, CL_INVALID_VALUE },
	{ "unknown_flag", BAD_BOTH, bad_unknown_flag, CL_INVALID_VALUE },
	{ "all_flags", BAD_BOTH, bad_all_flags, CL_INVALID_VALUE },
	{ "no_memory", BAD_BOTH, bad_no_memory, CL_INVALID_VALUE },
	{ "no_size", BAD_BOTH, bad_no_size, CL_INVALID_BUFFER_SIZE },
	{ "size_max", BAD_BOTH, bad_size_max, CL_INVALID_BUFFER_SIZE },
	{ "size_of_half", BAD_BOTH, bad_size_of_half, CL_INVALID_BUFFER_SIZE },
	{ "one_byte_behind", BAD_DMA_BUF, bad_one_byte_behind, CL_INVALID_BUFFER_SIZE },
	{ "one_byte_behind_host", BAD_HOST, bad_one_byte_behind, CL_INVALID_OPERATION },
	{ "no_access", BAD_HOST, bad_no_access, CL_INVALID_OPERATION },
	{ "read_only", BAD_HOST, bad_read_only, CL_INVALID_OPERATION },
	{ "first_page", BAD_HOST, bad_first_page, CL_INVALID_OPERATION },
	{ "unmapped", BAD_HOST, bad_unmapped, CL_INVALID_OPERATION },
	{ "of_kernel", BAD_HOST, bad_of_kernel, CL_INVALID_OPERATION },
	{ "not_canonical", BAD_HOST, bad_not_canonical, CL_INVALID_OPERATION },
	{ "first_page_dma_buf", BAD_DMA_BUF, bad_first_page, CL_INVALID_VALUE },
	{ "unmapped_dma_buf", BAD_DMA_BUF, bad_unmapped, CL_INVALID_VALUE },
	{ "of_kernel_dma_buf", BAD_DMA_BUF, bad_of_kernel, CL_INVALID_VALUE },
	{ "not_canonical_dma_buf", BAD_DMA_BUF, bad_not_canonical, CL_INVALID_VALUE },
	{ "by_value", BAD_DMA_BUF, bad_by_value, CL_INVALID_VALUE },
	{ "unreadable", BAD_DMA_BUF, bad_unreadable, CL_INVALID_VALUE },
	{ "minus_one", BAD_DMA_BUF, bad_minus_one, CL_INVALID_VALUE },
	{ "minimum", BAD_DMA_BUF, bad_minimum, CL_INVALID_VALUE },
	{ "closed", BAD_DMA_BUF, bad_closed, CL_INVALID_VALUE },
	{ "memfd", BAD_DMA_BUF, bad_memfd, CL_INVALID_VALUE },
	{ "device", BAD_DMA_BUF, bad_device, CL_INVALID_VALUE },
	{ "directory", BAD_DMA_BUF, bad_directory, CL_INVALID_VALUE },
	{ "pipe", BAD_DMA_BUF, bad_pipe, CL_INVALID_VALUE },
};

const size_t bad_input_count = sizeof(bad_inputs) / sizeof(bad_inputs[0]);

/* Three pages, with a page behind that is not mapped. */
static void bad_call_open(struct bad_call *call, enum bad_memory memory)
{
	unsigned char *room =
		mmap(NULL, SIZE + PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	EXPECT(room != MAP_FAILED);
	memset(call, 0, sizeof(*call));
	call->fd = memory == BAD_DMA_BUF ? fake_dmabuf_create("a", SIZE)
					 : memfd_create("sealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	EXPECT(call->fd >= 0);
	if (memory == BAD_HOST)
		EXPECT(!ftruncate(call->fd, SIZE) && !fcntl(call->fd, F_ADD_SEALS, F_SEAL_SHRINK));
	call->bytes = mmap(room, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, call->fd, 0);
	EXPECT(call->bytes == room);
	call->other_fd = -1;
	call->context = fix.context;
	call->properties[0] = CL_IMPORT_TYPE_ARM;
	call->properties[1] = memory == BAD_DMA_BUF ? CL_IMPORT_TYPE_DMA_BUF_ARM
						    : CL_IMPORT_TYPE_HOST_ARM;
	call->memory = memory == BAD_DMA_BUF ? (void *)&call->fd : call->bytes;
	call->size = SIZE;
}

static void bad_call_close(struct bad_call *call)
{
	munmap(call->bytes, SIZE + PAGE);
	close(call->fd);
	if (call->other_fd >= 0)
		close(call->other_fd); /* or is closed */
}

static cl_mem bad_call_make(const struct bad_call *call, cl_int *err)
{
	return fix.import(call->context, call->flags, call->properties, call->memory, call->size,
			  err);
}

/* A right import, which works in place. */
static void bad_input_expect_good(enum bad_memory memory)
{
	struct bad_call call;
	cl_int err = 1;
	cl_mem mem;

	bad_call_open(&call, memory);
	mem = bad_call_make(&call, &err);
	if (err)
		printf("# %s\n", fix.notice);
	EXPECT_EQ(err, CL_SUCCESS);
	call.bytes[0] = 41;
	fixture_increment(mem);
	EXPECT_EQ(call.bytes[0], 42);
	cl.clReleaseMemObject(mem);
	bad_call_close(&call);
}

/* A refused import leaves no memory object, descriptor, or mapping of a dma-buf. */
static void bad_input_expect_refused(const struct bad_input *bad, enum bad_memory memory)
{
	const long live = stub_live_all();
	struct bad_call call;
	cl_int err = 1;
	int fds, mapped;

	bad_call_open(&call, memory);
	bad->spoil(&call);
	fds = process_count_descriptors();
	mapped = process_count_mappings("fake-dmabuf");
	fix.notices = 0;
	EXPECT(!bad_call_make(&call, &err));
	if (err != bad->wanted)
		printf("# %s\n", fix.notice);
	EXPECT_EQ(err, bad->wanted);
	EXPECT_EQ(fix.notices, call.context == fix.context);
	EXPECT(!bad_call_make(&call, NULL));
	EXPECT(stub_live_settles(live));
	EXPECT(process_settles(process_descriptors_at_most, &fds));
	EXPECT(process_settles(fixture_mapped_at_most, &mapped));
	bad_call_close(&call);
}

void bad_input_expect(const struct bad_input *bad, enum bad_memory memory)
{
	bad_input_expect_refused(bad, memory);
	bad_input_expect_good(memory);
	bad_input_expect_refused(bad, memory);
	bad_input_expect_good(memory);
}
