/* SPDX-License-Identifier: Apache-2.0 */
/* Imports are used as any other memory object: queries, references, queues, commands. */
#include <time.h>

#include "kernels.h"
#include "object.h"

#define QUERY(mem, what, type, want)                                                    \
	do {                                                                            \
		type value_ = 0;                                                        \
		EXPECT_EQ(clGetMemObjectInfo(mem, what, sizeof(value_), &value_, NULL), \
			  CL_SUCCESS);                                                  \
		EXPECT(value_ == (want));                                               \
	} while (0)

TEST(queries, "R6-55 This extension produces cl_mem memory objects which are compatible with all "
	      "other uses of cl_mem in the standard API, including creating images from the "
	      "resulting cl_mem and subject to the restrictions listed in this document.")
{
	cl_mem mem = spec_import_host(CL_MEM_READ_WRITE, spec_map_pages(2), spec.page + 5);

	QUERY(mem, CL_MEM_TYPE, cl_mem_object_type, CL_MEM_OBJECT_BUFFER);
	QUERY(mem, CL_MEM_SIZE, size_t, spec.page + 5);
	QUERY(mem, CL_MEM_CONTEXT, cl_context, spec.context);
	QUERY(mem, CL_MEM_REFERENCE_COUNT, cl_uint, 1);
	QUERY(mem, CL_MEM_MAP_COUNT, cl_uint, 0);
	QUERY(mem, CL_MEM_OFFSET, size_t, 0);
	QUERY(mem, CL_MEM_ASSOCIATED_MEMOBJECT, cl_mem, NULL);
}

/* No query tells how the import was made. */
TEST(queries_hide_the_host_pointer,
     "R6-55 This extension produces cl_mem memory objects which are compatible with all other uses "
     "of cl_mem in the standard API, including creating images from the resulting cl_mem and "
     "subject to the restrictions listed in this document.")
{
	cl_mem mem = spec_import_host(CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, spec_map_pages(1),
				      spec.page);
	size_t size = 1;

	if (!spec.exact)
		test_skip("only for CLIMPORT_CONFORM_EXACT");
	QUERY(mem, CL_MEM_HOST_PTR, void *, NULL);
	if (spec.device_version >= CL_MAKE_VERSION(2, 0, 0))
		QUERY(mem, CL_MEM_USES_SVM_POINTER, cl_bool, CL_FALSE);
	if (spec.device_version < CL_MAKE_VERSION(3, 0, 0))
		return;
	EXPECT_EQ(clGetMemObjectInfo(mem, CL_MEM_PROPERTIES, 0, NULL, &size), CL_SUCCESS);
	EXPECT_EQ(size, 0);
}

TEST(references, "R6-55 This extension produces cl_mem memory objects which are compatible with "
		 "all other uses of cl_mem in the standard API, including creating images from the "
		 "resulting cl_mem and subject to the restrictions listed in this document.")
{
	unsigned char *memory = spec_map_pages(1);
	cl_mem mem = spec_import_host(CL_MEM_READ_WRITE, memory, spec.page);

	EXPECT_EQ(clRetainMemObject(mem), CL_SUCCESS);
	QUERY(mem, CL_MEM_REFERENCE_COUNT, cl_uint, 2);
	EXPECT_EQ(clReleaseMemObject(mem), CL_SUCCESS);
	QUERY(mem, CL_MEM_REFERENCE_COUNT, cl_uint, 1);
	expect_shared(mem, memory, spec.page);
}

static void CL_CALLBACK count_destroyed(cl_mem mem, void *count)
{
	(void)mem;
	atomic_fetch_add((atomic_uint *)count, 1);
}

/* Drivers may call the callback a little later, on a thread of the driver. */
static void interactions_wait_for(atomic_uint *count)
{
	for (int i = 0; i < 2000 && !atomic_load(count); i++)
		nanosleep(&(struct timespec){ 0, 1000 * 1000 }, NULL);
}

TEST(destructor_callback,
     "R6-55 This extension produces cl_mem memory objects which are compatible with all other uses "
     "of cl_mem in the standard API, including creating images from the resulting cl_mem and "
     "subject to the restrictions listed in this document.")
{
	static atomic_uint destroyed;
	unsigned char *memory = spec_map_pages(1);
	cl_int error;
	cl_mem mem;

	need_host();
	mem = spec.import(spec.context, CL_MEM_READ_WRITE, NULL, memory, spec.page, &error);
	EXPECT_EQ(error, CL_SUCCESS);
	EXPECT_EQ(clSetMemObjectDestructorCallback(mem, count_destroyed, &destroyed), CL_SUCCESS);
	EXPECT_EQ(atomic_load(&destroyed), 0);
	EXPECT_EQ(clReleaseMemObject(mem), CL_SUCCESS);
	interactions_wait_for(&destroyed);
	EXPECT_EQ(atomic_load(&destroyed), 1);
}

/* An image on the import, or on a sub-buffer at @origin, which the function then releases. */
static cl_mem image_of_part(cl_mem import, size_t origin)
{
	const cl_buffer_region region = { origin, BYTES };
	cl_image_desc desc = { .image_type = CL_MEM_OBJECT_IMAGE2D,
			       .image_width = 1,
			       .image_height = 1 };
	cl_mem image;
	cl_int error;

	desc.buffer = import;
	if (origin)
		desc.buffer = clCreateSubBuffer(import, CL_MEM_READ_WRITE,
						CL_BUFFER_CREATE_TYPE_REGION, &region, &error);
	EXPECT(desc.buffer);
	image = clCreateImage(spec.context, CL_MEM_READ_WRITE, &rgba, &desc, NULL, &error);
	EXPECT_EQ(error, CL_SUCCESS);
	if (origin)
		clReleaseMemObject(desc.buffer);
	return image;
}

/*
 * A kernel that uses an image on the import waits while the test releases every object.  The test
 * leaves 1D images out: PoCL 3.1 reads a 1D image after its release, without any import too.
 */
static void expect_late_callback(size_t origin)
{
	static atomic_uint destroyed;
	const size_t size = 2 * spec.page;
	unsigned char *memory = spec_map_pages(2), pixel[PIXEL];
	cl_mem buffer = plain_buffer(PIXEL), mem, image;
	cl_event go;
	cl_int error;

	atomic_store(&destroyed, 0);
	memory[origin] = 42;
	mem = spec.import(spec.context, CL_MEM_READ_WRITE, NULL, memory, size, &error);
	EXPECT_EQ(error, CL_SUCCESS);
	EXPECT_EQ(clSetMemObjectDestructorCallback(mem, count_destroyed, &destroyed), CL_SUCCESS);
	image = image_of_part(mem, origin);
	go = clCreateUserEvent(spec.context, &error);
	EXPECT_EQ(error, CL_SUCCESS);
	kernels_pixel_after(image, buffer, go);
	clReleaseMemObject(image);
	clReleaseMemObject(mem);
	EXPECT_EQ(atomic_load(&destroyed), 0);
	clSetUserEventStatus(go, CL_COMPLETE);
	plain_read(buffer, pixel, PIXEL);
	EXPECT_EQ(pixel[0], 42);
	clReleaseEvent(go);
	undo_all(); /* in some drivers a kernel retains the arguments */
	interactions_wait_for(&destroyed);
	EXPECT_EQ(atomic_load(&destroyed), 1);
}

TEST(destructor_callback_after_image,
     "R6-55 This extension produces cl_mem memory objects which are compatible with all other uses "
     "of cl_mem in the standard API, including creating images from the resulting cl_mem and "
     "subject to the restrictions listed in this document.")
{
	need_shape(IMAGE);
	expect_late_callback(0);
	expect_late_callback(object_origin());
}

static void host_import_and_release(void *memory)
{
	cl_int error;
	cl_mem mem = spec.import(spec.context, CL_MEM_READ_WRITE, NULL, memory, spec.page, &error);

	EXPECT_EQ(error, CL_SUCCESS);
	EXPECT_EQ(clReleaseMemObject(mem), CL_SUCCESS);
}

TEST(released_import_leaves_nothing,
     "R6-55 This extension produces cl_mem memory objects which are compatible with all other uses "
     "of cl_mem in the standard API, including creating images from the resulting cl_mem and "
     "subject to the restrictions listed in this document.")
{
	need_host();
	expect_no_leak(host_import_and_release, spec_map_pages(1));
}

/* The application owns the memory; the release of the import changes no byte. */
TEST(memory_outlives_the_import,
     "R6-55 This extension produces cl_mem memory objects which are compatible with all other uses "
     "of cl_mem in the standard API, including creating images from the resulting cl_mem and "
     "subject to the restrictions listed in this document.")
{
	unsigned char *memory = spec_map_pages(1);
	cl_mem mem;
	cl_int error;

	need_host();
	mem = spec.import(spec.context, CL_MEM_READ_WRITE, NULL, memory, spec.page, &error);
	EXPECT_EQ(error, CL_SUCCESS);
	spec_fill_memory(memory, spec.page, 1);
	kernels_add(mem, spec.page, 1, 1);
	EXPECT_EQ(clReleaseMemObject(mem), CL_SUCCESS);
	EXPECT(spec_memory_is(memory, spec.page, 2));
	spec_fill_memory(memory, spec.page, 9);
	mem = spec_import_host(CL_MEM_READ_WRITE, memory, spec.page);
	kernels_add(mem, spec.page, 1, 1);
	EXPECT(spec_memory_is(memory, spec.page, 10));
}

TEST(input_and_output,
     "R6-55 This extension produces cl_mem memory objects which are compatible with all other uses "
     "of cl_mem in the standard API, including creating images from the resulting cl_mem and "
     "subject to the restrictions listed in this document.")
{
	unsigned char *from = spec_map_pages(2), *to = spec_map_pages(2);
	cl_mem in = spec_import_host(CL_MEM_READ_ONLY, from, 2 * spec.page);
	cl_mem out = spec_import_host(CL_MEM_WRITE_ONLY, to, 2 * spec.page);

	spec_fill_memory(from, 2 * spec.page, 7);
	kernels_copy(in, out, 2 * spec.page);
	EXPECT(spec_memory_is(to, 2 * spec.page, 7));
}

TEST(thousand_imports_at_once,
     "R6-55 This extension produces cl_mem memory objects which are compatible with all other uses "
     "of cl_mem in the standard API, including creating images from the resulting cl_mem and "
     "subject to the restrictions listed in this document.")
{
	enum { COUNT = 1000 };
	unsigned char *memory = spec_map_pages(COUNT);
	static cl_mem mems[COUNT];

	for (size_t i = 0; i < COUNT; i++)
		mems[i] = spec_import_host(CL_MEM_READ_WRITE, memory + i * spec.page, spec.page);
	for (size_t i = 0; i < COUNT; i += 37) {
		kernels_add(mems[i], spec.page, spec.page, 1 + i % 200);
		EXPECT_EQ(memory[i * spec.page], 1 + i % 200);
	}
	for (size_t i = 0; i < COUNT; i++)
		EXPECT_EQ(memory[i * spec.page], i % 37 ? 0 : 1 + i % 200);
}

TEST(migration, "R6-55 This extension produces cl_mem memory objects which are compatible with all "
		"other uses of cl_mem in the standard API, including creating images from the "
		"resulting cl_mem and subject to the restrictions listed in this document.")
{
	unsigned char *memory = spec_map_pages(1);
	cl_mem mem = spec_import_host(CL_MEM_READ_WRITE, memory, spec.page);

	if (spec.device_version < CL_MAKE_VERSION(1, 2, 0))
		test_skip("device is older than OpenCL 1.2");
	spec_fill_memory(memory, spec.page, 4);
	EXPECT_EQ(clEnqueueMigrateMemObjects(spec.queue, 1, &mem, 0, 0, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(clFinish(spec.queue), CL_SUCCESS);
	EXPECT(spec_memory_is(memory, spec.page, 4));
	EXPECT_EQ(clEnqueueMigrateMemObjects(spec.queue, 1, &mem, CL_MIGRATE_MEM_OBJECT_HOST, 0,
					     NULL, NULL),
		  CL_SUCCESS);
	EXPECT_EQ(clFinish(spec.queue), CL_SUCCESS);
	expect_shared(mem, memory, spec.page);
}

struct native_args {
	void *mem;
	size_t size;
};

static void CL_CALLBACK interactions_run_native(void *arg)
{
	struct native_args *args = arg;
	unsigned char *bytes = args->mem;

	for (size_t i = 0; i < args->size; i++)
		bytes[i] += 2;
}

TEST(native_kernel, "R6-55 This extension produces cl_mem memory objects which are compatible with "
		    "all other uses of cl_mem in the standard API, including creating images from "
		    "the resulting cl_mem and subject to the restrictions listed in this document.")
{
	unsigned char *memory = spec_map_pages(1);
	cl_mem mem = spec_import_host(CL_MEM_READ_WRITE, memory, spec.page);
	struct native_args args = { NULL, spec.page };
	const void *where = &args.mem;

	if (!(device_number(CL_DEVICE_EXECUTION_CAPABILITIES) & CL_EXEC_NATIVE_KERNEL))
		test_skip("device has no native kernels");
	spec_fill_memory(memory, spec.page, 1);
	EXPECT_EQ(clEnqueueNativeKernel(spec.queue, interactions_run_native, &args, sizeof(args), 1,
					&mem, &where, 0, NULL, NULL),
		  CL_SUCCESS);
	EXPECT_EQ(clFinish(spec.queue), CL_SUCCESS);
	EXPECT(spec_memory_is(memory, spec.page, 3));
}

static void release_queue(void *queue)
{
	clReleaseCommandQueue(queue);
}

static cl_command_queue new_queue(cl_context context, cl_command_queue_properties properties)
{
	cl_int error = 1;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
	cl_command_queue queue = clCreateCommandQueue(context, spec.device, properties, &error);
#pragma GCC diagnostic pop

	EXPECT_EQ(error, CL_SUCCESS);
	spec_undo_later(release_queue, queue);
	return queue;
}

/* Runs a part of the test on @queue. */
static void expect_shared_on(cl_command_queue queue, cl_mem mem, unsigned char *memory)
{
	cl_command_queue own = spec.queue;

	spec.queue = queue;
	kernels_add(mem, spec.page, 1, 1);
	spec.queue = own;
	EXPECT(spec_memory_is(memory, spec.page, 2));
}

static void expect_works_on(cl_command_queue_properties properties)
{
	unsigned char *memory = spec_map_pages(1);
	cl_mem mem = spec_import_host(CL_MEM_READ_WRITE, memory, spec.page);

	spec_fill_memory(memory, spec.page, 1);
	expect_shared_on(new_queue(spec.context, properties), mem, memory);
}

TEST(second_queue, "R6-55 This extension produces cl_mem memory objects which are compatible with "
		   "all other uses of cl_mem in the standard API, including creating images from "
		   "the resulting cl_mem and subject to the restrictions listed in this document.")
{
	expect_works_on(0);
}

TEST(queue_with_profiling,
     "R6-55 This extension produces cl_mem memory objects which are compatible with all other uses "
     "of cl_mem in the standard API, including creating images from the resulting cl_mem and "
     "subject to the restrictions listed in this document.")
{
	expect_works_on(CL_QUEUE_PROFILING_ENABLE);
}

TEST(queue_out_of_order,
     "R6-55 This extension produces cl_mem memory objects which are compatible with all other uses "
     "of cl_mem in the standard API, including creating images from the resulting cl_mem and "
     "subject to the restrictions listed in this document.")
{
	if (!(device_number(CL_DEVICE_QUEUE_PROPERTIES) & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE))
		test_skip("device has no such queues");
	expect_works_on(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
}

/* Two contexts, an import in each, of the same memory. */
TEST(two_contexts, "R6-55 This extension produces cl_mem memory objects which are compatible with "
		   "all other uses of cl_mem in the standard API, including creating images from "
		   "the resulting cl_mem and subject to the restrictions listed in this document.")
{
	unsigned char *memory = spec_map_pages(1);
	cl_mem mem = spec_import_host(CL_MEM_READ_WRITE, memory, spec.page), second;
	cl_int error = 1;
	cl_context context = clCreateContext(NULL, 1, &spec.device, NULL, NULL, &error);

	EXPECT_EQ(error, CL_SUCCESS);
	spec_undo_later(spec_release_context, context);
	second = released_later(
		spec.import(context, CL_MEM_READ_WRITE, NULL, memory, spec.page, &error));
	EXPECT_EQ(error, CL_SUCCESS);
	QUERY(second, CL_MEM_CONTEXT, cl_context, context);
	expect_shared(mem, memory, spec.page);
}

/* Each device of the context in turn adds 1 to the bytes of the device before. */
static void expect_shared_by(cl_context context, const cl_device_id *devices, cl_uint count,
			     cl_mem mem, unsigned char *memory)
{
	cl_device_id own = spec.device;
	cl_kernel add = kernels_create_in(context, "add");

	spec_fill_memory(memory, spec.page, 1);
	for (cl_uint i = 0; i < count; i++) {
		spec.device = devices[i];
		kernels_add_with(add, new_queue(context, 0), mem, spec.page, 1);
		spec.device = own;
		EXPECT(spec_memory_is(memory, spec.page, 2 + i));
	}
}

/* If a device of the context cannot import, the whole context refuses. */
TEST(context_of_all_devices,
     "R6-55 This extension produces cl_mem memory objects which are compatible with all other uses "
     "of cl_mem in the standard API, including creating images from the resulting cl_mem and "
     "subject to the restrictions listed in this document.")
{
	cl_device_id devices[64];
	unsigned char *memory = spec_map_pages(1);
	cl_uint count = 0;
	cl_int error = 1;
	cl_context context;
	cl_mem mem;

	need_host();
	EXPECT_EQ(clGetDeviceIDs(spec.platform, CL_DEVICE_TYPE_ALL, 64, devices, &count),
		  CL_SUCCESS);
	if (count < 2 || count > 64)
		test_skip("the platform has one device");
	context = clCreateContext(NULL, count, devices, NULL, NULL, &error);
	if (error)
		test_skip("no context has all devices of the platform");
	spec_undo_later(spec_release_context, context);
	mem = released_later(
		spec.import(context, CL_MEM_READ_WRITE, NULL, memory, spec.page, &error));
	EXPECT(mem ? error == CL_SUCCESS : error < 0);
	if (mem)
		expect_shared_by(context, devices, count, mem, memory);
}
