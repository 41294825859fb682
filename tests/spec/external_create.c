/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers and images of dma-bufs: what a request makes, and what it refuses. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "external.h"
#include "kernels.h"

#define DEVICES CL_MEM_DEVICE_HANDLE_LIST_KHR
#define DMA_BUF CL_EXTERNAL_MEMORY_HANDLE_DMA_BUF_KHR

static cl_mem_properties external_word(const void *handle)
{
	return (cl_mem_properties)(uintptr_t)handle;
}

TEST(external_each_exporter, "K-82 CL_EXTERNAL_MEMORY_HANDLE_DMA_BUF_KHR is a file descriptor for "
			     "a Linux dma_buf.")
{
	struct dma_buf *buf;

	for (size_t i = 0; (buf = dma_buf_next(&i, 4 * spec.page));) {
		spec_note("%s", buf->exporter);
		external_expect_shared(external_buffer(buf), buf, buf->size);
	}
}

/* Once more, with a descriptor of its own and without errcode_ret. */
static void external_expect_quiet(struct external_request *r, const struct dma_buf *buf)
{
	external_set_descriptor(r, buf);
	EXPECT(released_later(external_create_object(r, NULL)) != NULL);
}

TEST_EACH(external_made, struct external_kind, external_kinds,
	  "K-04 cl_khr_external_memory_dma_buf extends cl_external_memory_handle_type_khr to "
	  "support Linux dma_buf as an external memory handle type that may be specified when "
	  "creating a buffer or image memory object.")
{
	struct dma_buf *buf = dma_buf_make(2 * spec.page);
	const struct external_request r = external_request(buf, row->is_image);
	cl_mem mem = external_make_object(&r);

	QUERY(clGetMemObjectInfo, mem, CL_MEM_TYPE, cl_mem_object_type,
	      row->is_image ? CL_MEM_OBJECT_IMAGE2D : CL_MEM_OBJECT_BUFFER);
	QUERY(clGetMemObjectInfo, mem, CL_MEM_CONTEXT, cl_context, spec.context);
	QUERY(clGetMemObjectInfo, mem, CL_MEM_REFERENCE_COUNT, cl_uint, 1);
	QUERY(clGetMemObjectInfo, mem, CL_MEM_MAP_COUNT, cl_uint, 0);
	QUERY(clGetMemObjectInfo, mem, CL_MEM_HOST_PTR, void *, NULL);
	QUERY(clGetMemObjectInfo, mem, CL_MEM_ASSOCIATED_MEMOBJECT, cl_mem, NULL);
}

TEST(external_buffer_is_made,
     "K-23 clCreateBuffer and clCreateBufferWithProperties returns a valid non-zero buffer object "
     "and errcode_ret is set to CL_SUCCESS if the buffer object is created successfully.")
{
	struct dma_buf *buf = dma_buf_make(2 * spec.page);
	struct external_request r = external_request(buf, false);
	cl_mem mem;

	r.size = spec.page + 4;
	mem = external_make_object(&r);
	QUERY(clGetMemObjectInfo, mem, CL_MEM_SIZE, size_t, r.size);
	external_expect_shared(mem, buf, r.size);
	external_expect_quiet(&r, buf);
}

TEST(external_image_is_made,
     "K-24 clCreateImage and clCreateImageWithProperties returns a valid non-zero image object and "
     "errcode_ret is set to CL_SUCCESS if the image object is created successfully.")
{
	struct dma_buf *buf = dma_buf_make(spec.page);
	struct external_request r = external_request(buf, true);

	external_make_object(&r);
	external_expect_quiet(&r, buf);
}

TEST_EACH(external_properties_of, struct external_kind, external_kinds,
	  "K-40 CL_MEM_PROPERTIES: Return the properties argument specified in "
	  "clCreateBufferWithProperties or clCreateImageWithProperties.")
{
	struct dma_buf *buf = dma_buf_make(spec.page);
	struct external_request r = external_request(buf, row->is_image);
	cl_mem_properties answer[12] = { 0 };
	size_t size = 0;
	cl_mem mem;

	r.properties[2] = DEVICES;
	r.properties[3] = external_word(spec.device);
	mem = external_make_object(&r);
	EXPECT_EQ(clGetMemObjectInfo(mem, CL_MEM_PROPERTIES, sizeof(answer), answer, &size),
		  CL_SUCCESS);
	EXPECT_EQ(size, 6 * sizeof(answer[0]));
	EXPECT(!memcmp(answer, r.properties, size));
}

static const struct external_flag {
	const char *name;
	cl_mem_flags flags;
} external_flags[] = {
	{ "none", 0 },
	{ "read_write", CL_MEM_READ_WRITE },
	{ "read_only", CL_MEM_READ_ONLY },
	{ "write_only", CL_MEM_WRITE_ONLY },
	{ "host_read_only", CL_MEM_HOST_READ_ONLY },
	{ "host_write_only", CL_MEM_READ_WRITE | CL_MEM_HOST_WRITE_ONLY },
	{ "host_no_access", CL_MEM_READ_ONLY | CL_MEM_HOST_NO_ACCESS },
};

/* What the host may do: as with the driver's own buffer, which the driver may not check at all. */
static void external_expect_host_access(cl_mem mem, cl_mem_flags flags)
{
	unsigned char bytes[16] = { 0 };
	cl_int error = 1, reads, writes;
	cl_mem plain =
		released_later(clCreateBuffer(spec.context, flags, sizeof(bytes), NULL, &error));

	EXPECT_EQ(error, CL_SUCCESS);
	reads = clEnqueueReadBuffer(spec.queue, plain, CL_TRUE, 0, 16, bytes, 0, NULL, NULL);
	writes = clEnqueueWriteBuffer(spec.queue, plain, CL_TRUE, 0, 16, bytes, 0, NULL, NULL);
	EXPECT_EQ(clEnqueueReadBuffer(spec.queue, mem, CL_TRUE, 0, 16, bytes, 0, NULL, NULL),
		  reads);
	EXPECT_EQ(clEnqueueWriteBuffer(spec.queue, mem, CL_TRUE, 0, 16, bytes, 0, NULL, NULL),
		  writes);
}

TEST_EACH(external_flags, struct external_flag, external_flags,
	  "K-14 flags is a bit-field that is used to specify allocation and usage information "
	  "about the [..] memory object being created")
{
	struct dma_buf *buf = dma_buf_make(spec.page);
	struct external_request r = external_request(buf, false);
	cl_mem_flags flags = 1;
	cl_mem mem;

	r.flags = row->flags;
	mem = external_make_object(&r);
	EXPECT_EQ(clGetMemObjectInfo(mem, CL_MEM_FLAGS, sizeof(flags), &flags, NULL), CL_SUCCESS);
	EXPECT((flags & ~(cl_mem_flags)CL_MEM_READ_WRITE) ==
	       (row->flags & ~(cl_mem_flags)CL_MEM_READ_WRITE));
	external_fill(buf, spec.page, 1);
	external_run_edge(ACQUIRE, mem);
	if (!(row->flags & CL_MEM_WRITE_ONLY))
		kernels_copy(mem, plain_buffer(spec.page), spec.page);
	if (!(row->flags & CL_MEM_READ_ONLY))
		kernels_copy(plain_buffer(spec.page), mem, spec.page);
	external_expect_host_access(mem, row->flags);
	external_run_edge(RELEASE, mem);
}

TEST_EACH(external_listed_device, struct external_kind, external_kinds,
	  "K-15 Specifies the list of OpenCL devices (terminated with "
	  "CL_MEM_DEVICE_HANDLE_LIST_END_KHR) to associate with the external memory handle.")
{
	struct dma_buf *buf = dma_buf_make(spec.page);
	struct external_request r = external_request(buf, row->is_image);
	const cl_mem_properties list[] = {
		DEVICES, external_word(spec.device), 0, DMA_BUF, r.properties[1], 0
	};
	cl_mem mem;

	memcpy(r.properties, list, sizeof(list));
	mem = external_make_object(&r);
	external_run_edge(ACQUIRE, mem);
	external_run_edge(RELEASE, mem);
}

TEST(external_for_a_set_of_devices,
     "K-02 Optional properties to import external memory exported by other APIs into OpenCL for a "
     "set of devices.")
{
	struct dma_buf *buf = dma_buf_make(spec.page);
	struct external_request r = external_request(buf, false);
	cl_int error = 1;

	r.properties[2] = DEVICES;
	r.properties[3] = external_word(spec.device);
	external_expect_shared(external_make_object(&r), buf, buf->size);
	external_set_descriptor(&r, buf);
	r.properties[3] = 0; /* the text does not say what an empty list is */
	EXPECT(!released_later(external_create_object(&r, &error)) == !!error);
	EXPECT_EXACT(error, CL_INVALID_PROPERTY);
}

/* Words of a list that stand for the request's descriptor, its device, no device, and a device of others. */
enum { FD = 0x70000001, DEVICE, NO_DEVICE, OTHER_DEVICE };

#define K_30 "K-30 CL_INVALID_PROPERTY if properties includes more than one external memory handle"
#define K_31                                                             \
	"K-31 CL_INVALID_DEVICE if a device identified by the property " \
	"CL_MEM_DEVICE_HANDLE_LIST_KHR is not a valid device or is not associated with context"
#define K_34                                                                                  \
	"K-34 CL_INVALID_VALUE if values specified in flags are not valid as defined in the " \
	"Memory "                                                                             \
	"Flags table"
#define K_35                                                                                   \
	"K-35 CL_INVALID_VALUE if properties includes a supported external memory handle and " \
	"flags "                                                                               \
	"includes CL_MEM_USE_HOST_PTR, CL_MEM_ALLOC_HOST_PTR, or CL_MEM_COPY_HOST_PTR"

static const struct refusal {
	const char *name, *says;
	cl_int error, other;	   /* either is right */
	cl_mem_properties more[8]; /* behind the dma-buf */
	cl_mem_flags flags;
	bool has_host_ptr, has_no_context;
} refusals[] = {
	{ "no_context", "K-25 CL_INVALID_CONTEXT if context is not a valid context",
	  CL_INVALID_CONTEXT, .has_no_context = true },
	{ "unknown_property",
	  "K-26 CL_INVALID_PROPERTY if a property name in properties is not a supported property "
	  "name",
	  CL_INVALID_PROPERTY, .more = { 0x7ead, 1 } },
	{ "property_twice",
	  "K-28 CL_INVALID_PROPERTY if the same property name is specified more than once",
	  CL_INVALID_PROPERTY, .more = { DEVICES, DEVICE, 0, DEVICES, DEVICE } },
	{ "two_handles", K_30, CL_INVALID_PROPERTY,
	  .more = { CL_EXTERNAL_MEMORY_HANDLE_OPAQUE_FD_KHR, FD } },
	{ "one_handle_twice", K_30, CL_INVALID_PROPERTY, .more = { DMA_BUF, FD } },
	{ "no_device", K_31, CL_INVALID_DEVICE, .more = { DEVICES, DEVICE, NO_DEVICE } },
	{ "device_of_others", K_31, CL_INVALID_DEVICE, .more = { DEVICES, DEVICE, OTHER_DEVICE } },
	{ "two_accesses", K_34, CL_INVALID_VALUE, .flags = CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY },
	{ "two_host_accesses", K_34, CL_INVALID_VALUE,
	  .flags = CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_NO_ACCESS },
	{ "unknown_flag", K_34, CL_INVALID_VALUE, .flags = (cl_mem_flags)1 << 62 },
	{ "use_host_ptr", K_35, CL_INVALID_VALUE, CL_INVALID_HOST_PTR, .has_host_ptr = true,
	  .flags = CL_MEM_USE_HOST_PTR },
	{ "alloc_host_ptr", K_35, CL_INVALID_VALUE, .flags = CL_MEM_ALLOC_HOST_PTR },
	{ "copy_host_ptr", K_35, CL_INVALID_VALUE, CL_INVALID_HOST_PTR, .has_host_ptr = true,
	  .flags = CL_MEM_COPY_HOST_PTR },
	{ "host_ptr",
	  "K-37 CL_INVALID_HOST_PTR if properties includes a supported external memory handle and "
	  "host_ptr is not NULL",
	  CL_INVALID_HOST_PTR, .has_host_ptr = true },
};

static void refusal_set_properties(struct external_request *r, const struct refusal *row)
{
	static const size_t nothing[64];

	for (int i = 0; i < 8; i++) {
		cl_mem_properties p = row->more[i];

		if (p == OTHER_DEVICE)
			p = external_word(external_second_device());
		p = p == FD ? r->properties[1] : p == DEVICE ? external_word(spec.device) : p;
		r->properties[2 + i] = p == NO_DEVICE ? external_word(nothing) : p;
	}
}

TEST_EACH_PAIR(external_refused, struct refusal, refusals, struct external_kind, external_kinds,
	       refusals[i / WIDTH_OF_external_refused].says)
{
	struct external_request r = external_request(dma_buf_make(spec.page), column->is_image);
	cl_int error = 1;

	if (!strcmp(row->says, K_30) && spec.external_version < CL_MAKE_VERSION(1, 0, 1))
		test_skip("only from version 1.0.1 of cl_khr_external_memory");
	refusal_set_properties(&r, row);
	r.flags = row->flags;
	r.host_ptr = row->has_host_ptr ? spec_map_pages(1) : NULL;
	r.context = row->has_no_context ? NULL : spec.context;
	external_refuse(&r, row->other ? 0 : row->error);
	EXPECT(!released_later(external_create_object(&r, &error)));
	EXPECT(error == row->error || error == row->other);
}

/* A context with a device that imports no dma-bufs; the request is for it, too. */
static struct external_request external_request_incapable(bool is_image)
{
	struct external_request r = external_request(dma_buf_make(spec.page), is_image);
	const cl_device_id devices[2] = { spec.device, external_incapable_device() };

	r.context = external_context(devices, 2);
	r.properties[3] = external_word(devices[0]);
	r.properties[4] = external_word(devices[1]);
	return r;
}

TEST_EACH(external_incapable_listed, struct external_kind, external_kinds,
	  "K-32 CL_INVALID_DEVICE if a device identified by property CL_MEM_DEVICE_HANDLE_LIST_KHR "
	  "cannot import the requested external memory object type")
{
	struct external_request r = external_request_incapable(row->is_image);

	r.properties[2] = DEVICES;
	external_refuse(&r, CL_INVALID_DEVICE);
}

TEST_EACH(external_incapable_in_context, struct external_kind, external_kinds,
	  "K-33 CL_INVALID_DEVICE if CL_MEM_DEVICE_HANDLE_LIST_KHR is not specified as part of "
	  "properties and one or more devices in context cannot import the requested external "
	  "memory object type")
{
	struct external_request r = external_request_incapable(row->is_image);

	r.properties[3] = r.properties[4] = 0;
	external_refuse(&r, CL_INVALID_DEVICE);
}

/* A descriptor that is none, and three of other files. */
TEST_EACH(external_bad_descriptor, struct external_kind, external_kinds,
	  "K-27 CL_INVALID_PROPERTY if the value specified for a supported property name is not "
	  "valid")
{
	struct external_request r = external_request(dma_buf_make(spec.page), row->is_image);
	int ends[2] = { -1, -1 }, file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	int of_none = (int)r.properties[1]; /* its own, so it may be closed */
	int bad[5];

	EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
	for (int i = 0; i < 3; i++)
		spec_undo_later(spec_close_descriptor, (void *)(intptr_t)(i < 2 ? ends[i] : file));
	memcpy(bad, (int[]){ file, ends[0], ends[1], -1, of_none }, sizeof(bad));
	EXPECT_EQ(close(of_none), 0);
	for (int i = 0; i < 5; i++) {
		spec_note("descriptor %d", bad[i]);
		r.properties[1] = (cl_mem_properties)bad[i];
		external_refuse(&r, CL_INVALID_PROPERTY);
	}
}

TEST_EACH(external_devices_without_a_handle, struct external_kind, external_kinds,
	  "K-29 CL_INVALID_PROPERTY if properties does not include a supported external memory "
	  "handle and CL_MEM_DEVICE_HANDLE_LIST_KHR is specified as part of properties")
{
	struct external_request r = external_request(dma_buf_make(spec.page), row->is_image);

	memset(r.properties, 0, sizeof(r.properties));
	r.desc.image_row_pitch = 0;
	r.properties[0] = DEVICES;
	r.properties[1] = external_word(spec.device);
	external_refuse(&r, CL_INVALID_PROPERTY);
}

static void external_expect_no_host_memory(bool is_image)
{
	struct external_request r = external_request(dma_buf_make(spec.page), is_image);

	r.host_ptr = spec_map_pages(1);
	external_refuse(&r, 0);
	r.flags |= CL_MEM_USE_HOST_PTR;
	external_refuse(&r, 0);
	r.host_ptr = NULL;
	external_refuse(&r, 0);
}

TEST(external_buffer_with_host_memory,
     "K-18 When a buffer is created from an external memory handle, the flags used to specify "
     "usage "
     "information for the buffer must not include CL_MEM_USE_HOST_PTR, CL_MEM_ALLOC_HOST_PTR, or "
     "CL_MEM_COPY_HOST_PTR, and the host_ptr argument must be NULL.")
{
	external_expect_no_host_memory(false);
}

TEST(external_image_with_host_memory,
     "K-20 When an image is created from an external memory handle, the flags used to specify "
     "usage "
     "information for the image must not include CL_MEM_USE_HOST_PTR, CL_MEM_ALLOC_HOST_PTR, or "
     "CL_MEM_COPY_HOST_PTR, and the host_ptr argument must be NULL.")
{
	external_expect_no_host_memory(true);
}

TEST(external_size_zero, "K-36 CL_INVALID_BUFFER_SIZE if size is zero")
{
	struct external_request r = external_request(dma_buf_make(spec.page), false);

	r.size = 0;
	external_refuse(&r, CL_INVALID_BUFFER_SIZE);
}

TEST_EACH(external_one_payload_twice, struct external_kind, external_kinds,
	  "K-81 In all cases, each import operation must create a distinct memory object.")
{
	struct dma_buf *buf = dma_buf_make(spec.page);
	struct external_request r = external_request(buf, row->is_image);
	cl_mem one = external_make_object(&r), two;

	external_set_descriptor(&r, buf);
	two = external_make_object(&r);
	EXPECT(one != two);
	spec_release_now(one);
	if (!row->is_image)
		external_expect_shared(two, buf, buf->size);
}

TEST(external_one_payload_in_two_contexts,
     "K-80 Applications can import the same payload into multiple OpenCL contexts and multiple "
     "times into a given OpenCL context.")
{
	struct dma_buf *buf = dma_buf_make(spec.page);
	struct external_request r = external_request(buf, false);
	cl_mem first = external_make_object(&r), second;
	cl_command_queue queue;

	r.context = external_context(&spec.device, 1);
	external_set_descriptor(&r, buf);
	queue = queues_create(r.context, 0);
	second = external_make_object(&r);
	EXPECT(first != second);
	external_fill(buf, buf->size, 1);
	external_run_edge(ACQUIRE, first);
	kernels_add(first, buf->size, 1, 10);
	external_run_edge(RELEASE, first);
	EXPECT_EQ(external_enqueue_edge(ACQUIRE, queue, 1, &second, 0, NULL, NULL), CL_SUCCESS);
	kernels_add_with(kernels_create_in(r.context, "add"), queue, second, buf->size, 20);
	EXPECT_EQ(external_enqueue_edge(RELEASE, queue, 1, &second, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(clFinish(queue), CL_SUCCESS);
	EXPECT(external_is(buf, buf->size, 31));
}

/* The test's other descriptors and its mapping are of no use to the object. */
TEST(external_payload_is_held, "K-88 The imported memory object holds a reference to its payload.")
{
	struct dma_buf *buf = dma_buf_make(spec.page);
	const struct external_request r = external_request(buf, false);
	unsigned char bytes[64];
	cl_int error = 1;
	cl_mem mem = external_create_object(&r, &error);

	EXPECT_EQ(error, CL_SUCCESS);
	external_fill(buf, spec.page, 5);
	undo_all(); /* the dma-buf's */
	external_run_edge(ACQUIRE, mem);
	EXPECT_EQ(clEnqueueReadBuffer(spec.queue, mem, CL_TRUE, 0, 64, bytes, 0, NULL, NULL),
		  CL_SUCCESS);
	external_run_edge(RELEASE, mem);
	EXPECT(spec_memory_is(bytes, 64, 5));
	EXPECT_EQ(clReleaseMemObject(mem), CL_SUCCESS);
}

/* "after a successful import": a descriptor that was refused is the program's. */
TEST_EACH(external_refused_descriptor, struct external_kind, external_kinds,
	  "K-86 For these extensions, importing memory from a file descriptor transfers ownership "
	  "of the file descriptor from the application to the OpenCL implementation.")
{
	struct dma_buf *buf = dma_buf_make(spec.page);
	struct external_request r = external_request(buf, row->is_image);
	struct stat own, other;

	r.flags = CL_MEM_USE_HOST_PTR;
	external_refuse(&r, 0);
	EXPECT_EQ(fstat((int)r.properties[1], &own), 0);
	EXPECT_EQ(fstat(buf->fd, &other), 0);
	EXPECT_EQ(own.st_ino, other.st_ino);
	r.flags = CL_MEM_READ_WRITE;
	external_make_object(&r);
}

static void external_create_and_release(void *arg)
{
	const struct external_request r = external_request(arg, false);
	cl_int error = 1;
	cl_mem mem = external_create_object(&r, &error);

	EXPECT_EQ(error, CL_SUCCESS);
	external_run_edge(ACQUIRE, mem);
	external_run_edge(RELEASE, mem);
	EXPECT_EQ(clReleaseMemObject(mem), CL_SUCCESS);
	EXPECT_EQ(close((int)r.properties[1]), 0); /* climport leaves it to the program */
}

TEST(external_released_object_leaves_nothing,
     "K-85 It owns a reference to the underlying memory resource represented by its memory object.")
{
	struct dma_buf *buf = dma_buf_make(spec.page);

	if (!spec.exact)
		test_skip("only climport is known to leave the descriptor to the program");
	expect_no_leak(external_create_and_release, buf);
}
