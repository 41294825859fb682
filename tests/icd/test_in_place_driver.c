/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers with a host pointer that stay the driver's; and lifetimes, migrations and threads. */
#include "in_place.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct refused {
	const char *name;
	cl_mem_flags flags;
	size_t offset, size;
	cl_int err; /* the driver's */
} refused[] = {
	{ "unaligned", 0, 1, 100, CL_SUCCESS },
	{ "no_size", 0, 0, 0, CL_INVALID_BUFFER_SIZE },
	{ "two_accesses", CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY, 0, PAGE, CL_INVALID_VALUE },
	{ "two_host_accesses", CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_WRITE_ONLY, 0, PAGE,
	  CL_INVALID_VALUE },
	{ "no_host_access", CL_MEM_HOST_NO_ACCESS | CL_MEM_HOST_WRITE_ONLY, 0, PAGE,
	  CL_INVALID_VALUE },
	{ "copy", CL_MEM_COPY_HOST_PTR, 0, PAGE, CL_INVALID_VALUE },
	{ "allocate", CL_MEM_ALLOC_HOST_PTR, 0, PAGE, CL_INVALID_VALUE },
};

TEST_EACH(drivers_own, struct refused, refused,
	  "If a range or its flags do not qualify, the driver makes the buffer, or has the error.")
{
	unsigned char *p;
	cl_int err = 1;
	cl_mem mem;

	in_place_open();
	p = pages_map(2);
	mem = cl.clCreateBuffer(fix.context, row->flags | CL_MEM_USE_HOST_PTR, row->size,
				p + row->offset, &err);
	EXPECT_EQ(err, row->err);
	EXPECT_EQ(!mem, !!err);
	EXPECT_EQ(stub_arg("clCreateBuffer", 1), row->flags | CL_MEM_USE_HOST_PTR);
	EXPECT_EQ(stub_arg("clCreateBuffer", 2), row->size);
	EXPECT_EQ(fix.notices, 0);
	if (mem) {
		EXPECT(!test_in_place_is(mem, p + row->offset));
		EXPECT_EQ(opaque_query_size(mem, CL_MEM_HOST_PTR), (size_t)(p + row->offset));
		cl.clReleaseMemObject(mem);
	}
	in_place_close();
}

TEST(no_pointer, "A NULL pointer and a context that is none have the driver's errors.")
{
	cl_int err = 1;

	in_place_open();
	EXPECT(!cl.clCreateBuffer(fix.context, CL_MEM_USE_HOST_PTR, 1, NULL, &err));
	EXPECT_EQ(err, CL_INVALID_HOST_PTR);
	EXPECT(!cl.clCreateBuffer((cl_context)fix.queue, CL_MEM_USE_HOST_PTR, PAGE, pages_map(1),
				  &err));
	EXPECT_EQ(err, CL_INVALID_CONTEXT);
	EXPECT(!cl.clCreateBuffer(NULL, CL_MEM_USE_HOST_PTR, PAGE, pages_map(1), NULL));
	in_place_close();
}

TEST(read_only_pages, "A buffer on pages that are mapped read-only is the driver's.")
{
	unsigned char *p;
	cl_mem mem;

	in_place_open();
	cl.clReleaseMemObject(test_in_place_create(0, pages_map(1), PAGE));
	p = pages_map(1);
	EXPECT_EQ(mprotect(p, PAGE, PROT_READ), 0);
	mem = test_in_place_create_own(CL_MEM_READ_ONLY, p, PAGE);
	cl.clReleaseMemObject(mem);
	in_place_close();
}

TEST(with_property, "A buffer with a property of the program's is the driver's, with its error.")
{
	static const cl_mem_properties list[] = { 0x7777, 1, 0 };
	cl_int err = 1;

	in_place_open();
	EXPECT(!cl.clCreateBufferWithProperties(fix.context, list, CL_MEM_USE_HOST_PTR, PAGE,
						pages_map(1), &err));
	EXPECT_EQ(err, CL_INVALID_PROPERTY);
	EXPECT_EQ(stub_arg("clCreateBufferWithProperties", 1), (uintptr_t)list);
	in_place_close();
}

static const struct device_kind {
	const char *name;
	long opaque, devices;
} device_kinds[] = { { "no_extension", 0, 1 }, { "two_devices", 1, 2 } };

TEST_EACH(other_devices, struct device_kind, device_kinds,
	  "Without the driver's extension, and in a context of two devices, the driver makes the "
	  "buffer.")
{
	unsigned long before;
	unsigned char *p;
	cl_mem mem;

	in_place_reset();
	stub_set(STUB_OPAQUE, row->opaque);
	stub_set(STUB_NO_CONTEXT_CALLBACKS, row->opaque);
	stub_set(STUB_DEVICES, row->devices);
	fixture_open();
	p = pages_map(1);
	before = stub_calls("clCreateProgramWithSource");
	mem = test_in_place_create_own(0, p, PAGE);
	if (!row->opaque)
		EXPECT_EQ(stub_calls("clCreateProgramWithSource"), before); /* no self-test */
	EXPECT_EQ(fix.notices, 0);
	cl.clReleaseMemObject(mem);
	in_place_close();
}

TEST(device_copies, "If the self-test of imports fails on a device, the driver makes the buffer.")
{
	unsigned char *p;
	cl_mem mem;

	in_place_reset();
	stub_set(STUB_OPAQUE_COPIES, 1);
	fixture_open();
	p = pages_map(1);
	mem = test_in_place_create_own(0, p, PAGE);
	EXPECT(!test_in_place_is(mem, p));
	EXPECT_EQ(fix.notices, 0);
	cl.clReleaseMemObject(mem);
	in_place_close();
}

TEST(driver_refuses, "If the driver refuses the import, the driver makes the buffer.")
{
	unsigned char *p;
	cl_mem mem;

	in_place_open();
	cl.clReleaseMemObject(test_in_place_create(0, pages_map(1), PAGE));
	p = pages_map(1);
	stub_set(STUB_FAULT_STAYS, 1);
	stub_fail("clCreateBufferWithProperties", 1, CL_INVALID_VALUE);
	mem = test_in_place_create_own(0, p, PAGE);
	stub_fail(NULL, 0, 0);
	EXPECT(!test_in_place_is(mem, p));
	EXPECT_EQ(fix.notices, 0);
	cl.clReleaseMemObject(mem);
	in_place_close();
}

TEST(descriptors, "Buffers in place have at most a quarter of the process's descriptors; a buffer "
		  "that is released "
		  "makes room.")
{
	enum { LIMIT = 256, MOST = LIMIT / 4 };
	struct rlimit before;
	unsigned char *p;
	cl_mem mems[MOST], own;

	in_place_open();
	p = pages_map(MOST + 1);
	process_limit_descriptors(LIMIT, &before);
	for (int i = 0; i < MOST; i++)
		mems[i] = test_in_place_create(0, p + (size_t)i * PAGE, PAGE);
	own = test_in_place_create_own(0, p + (size_t)MOST * PAGE, PAGE);
	cl.clReleaseMemObject(mems[0]);
	mems[0] = test_in_place_create(0, p, PAGE);
	setrlimit(RLIMIT_NOFILE, &before);
	EXPECT(test_in_place_is(mems[MOST - 1], p + (size_t)(MOST - 1) * PAGE));
	for (int i = 0; i < MOST; i++)
		cl.clReleaseMemObject(mems[i]);
	cl.clReleaseMemObject(own);
	in_place_close();
}

/* A part of SVM, the whole, and the page before with the first page. */
static const struct svm_range {
	const char *name;
	long offset;
	size_t size;
} svm_ranges[] = { { "whole", 0, 2 * PAGE }, { "part", PAGE, PAGE } };

TEST_EACH(svm, struct svm_range, svm_ranges,
	  "A buffer on memory of clSVMAlloc() is the driver's, until the memory is freed.")
{
	unsigned char *p;
	cl_mem mem;

	in_place_open();
	p = cl.clSVMAlloc(fix.context, CL_MEM_READ_WRITE, 2 * PAGE, 0);
	mem = test_in_place_create_own(0, p + row->offset, row->size);
	cl.clReleaseMemObject(mem);
	cl.clSVMFree(fix.context, p);
	cl.clSVMFree(fix.context, NULL);
	p = pages_map(1);
	mem = test_in_place_create(0, p, PAGE);
	EXPECT(test_in_place_is(mem, p));
	cl.clReleaseMemObject(mem);
	in_place_close();
}

/* A free that the driver refuses. */
static void svm_free_without_context(void *pointers[])
{
	cl.clSVMFree(NULL, pointers[0]);
}

static void svm_free_without_queue(void *pointers[])
{
	EXPECT_EQ(cl.clEnqueueSVMFree(NULL, 1, pointers, NULL, NULL, 0, NULL, NULL),
		  CL_INVALID_COMMAND_QUEUE);
}

static void svm_free_without_resources(void *pointers[])
{
	stub_fail("clEnqueueSVMFree", 1, CL_OUT_OF_RESOURCES);
	EXPECT_EQ(cl.clEnqueueSVMFree(fix.queue, 1, pointers, NULL, NULL, 0, NULL, NULL),
		  CL_OUT_OF_RESOURCES);
}

static const struct svm_refusal {
	const char *name;
	void (*free)(void *pointers[]);
} svm_refusals[] = {
	{ "no_context", svm_free_without_context },
	{ "no_queue", svm_free_without_queue },
	{ "no_resources", svm_free_without_resources },
};

TEST_EACH(
	svm_kept, struct svm_refusal, svm_refusals,
	"After a free that the driver refuses, a buffer on memory of clSVMAlloc() is the driver's.")
{
	void *pointers[1];
	cl_mem mem;

	in_place_open();
	pointers[0] = cl.clSVMAlloc(fix.context, CL_MEM_READ_WRITE, PAGE, 0);
	row->free(pointers);
	mem = test_in_place_create_own(0, pointers[0], PAGE);
	cl.clReleaseMemObject(mem);
	cl.clSVMFree(fix.context, pointers[0]);
	in_place_close();
}

TEST(svm_in_queue, "Memory that clEnqueueSVMFree() frees is ordinary memory again.")
{
	void *pointers[1];
	unsigned char *p;
	cl_mem mem;

	in_place_open();
	pointers[0] = cl.clSVMAlloc(fix.context, CL_MEM_READ_WRITE, PAGE, 0);
	EXPECT_EQ(cl.clEnqueueSVMFree(fix.queue, 1, pointers, NULL, NULL, 0, NULL, NULL),
		  CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(fix.queue), CL_SUCCESS);
	p = mmap((void *)((uintptr_t)pointers[0]), PAGE, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (p == MAP_FAILED)
		p = pointers[0] = aligned_alloc(PAGE, PAGE); /* as a rule the block just freed */
	else
		pointers[0] = NULL;
	memset(p, 0, PAGE);
	mem = test_in_place_create(0, p, PAGE);
	EXPECT(test_in_place_is(mem, p));
	cl.clReleaseMemObject(mem);
	if (pointers[0])
		free(p);
	else
		munmap(p, PAGE);
	in_place_close();
}

static const struct migration {
	const char *name;
	bool is_mixed;
	cl_mem_migration_flags flags;
} migrations[] = {
	{ "alone", false, 0 },
	{ "to_host", false, CL_MIGRATE_MEM_OBJECT_HOST },
	{ "with_others", true, CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED },
};

TEST_EACH(migrated, struct migration, migrations,
	  "A migration leaves such buffers where they are, waits for its list, and has an event of "
	  "its "
	  "type.")
{
	cl_command_type type = 0;
	cl_mem mems[2];
	cl_event go, event;
	cl_uint references = 0;

	in_place_open();
	mems[0] = test_in_place_create(0, pages_map(1), PAGE);
	mems[1] = cl.clCreateBuffer(fix.context, 0, 64, NULL, NULL);
	go = cl.clCreateUserEvent(fix.context, NULL);
	EXPECT_EQ(cl.clEnqueueMigrateMemObjects(fix.queue, row->is_mixed ? 2 : 1, mems, row->flags,
						1, &go, &event),
		  CL_SUCCESS);
	EXPECT_EQ(cl.clGetEventInfo(event, CL_EVENT_COMMAND_TYPE, sizeof(type), &type, NULL),
		  CL_SUCCESS);
	EXPECT_EQ(type, CL_COMMAND_MIGRATE_MEM_OBJECTS);
	EXPECT_EQ(cl.clGetEventInfo(event, CL_EVENT_REFERENCE_COUNT, sizeof(references),
				    &references, NULL),
		  CL_SUCCESS);
	EXPECT(references >= 1);
	EXPECT(fixture_event_status(event) > CL_COMPLETE);
	EXPECT_EQ(cl.clSetUserEventStatus(go, CL_COMPLETE), CL_SUCCESS);
	EXPECT_EQ(cl.clWaitForEvents(1, &event), CL_SUCCESS);
	EXPECT_EQ(fixture_event_status(event), CL_COMPLETE);
	EXPECT_EQ(cl.clEnqueueMigrateMemObjects(fix.queue, 1, mems, row->flags, 0, NULL, NULL),
		  CL_SUCCESS);
	EXPECT_EQ(cl.clEnqueueMigrateMemObjects(fix.queue, 1, mems, 1 << 20, 0, NULL, NULL),
		  CL_INVALID_VALUE);
	cl.clReleaseEvent(go);
	cl.clReleaseEvent(event);
	cl.clReleaseMemObject(mems[0]);
	cl.clReleaseMemObject(mems[1]);
	in_place_close();
}

TEST(migrated_out_of_order, "On an out-of-order queue a migration without a list does not wait for "
			    "a command that waits for the "
			    "program.")
{
	cl_command_queue queue;
	cl_event go, event;
	cl_kernel kernel;
	cl_mem mem;

	in_place_open();
	queue = fixture_create_queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
	mem = test_in_place_create(0, pages_map(1), PAGE);
	kernel = fixture_create_increment(mem);
	go = cl.clCreateUserEvent(fix.context, NULL);
	EXPECT_EQ(fixture_enqueue(queue, kernel, 1, &go, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clEnqueueMigrateMemObjects(queue, 1, &mem, 0, 0, NULL, &event), CL_SUCCESS);
	EXPECT_EQ(cl.clWaitForEvents(1, &event), CL_SUCCESS);
	EXPECT_EQ(cl.clSetUserEventStatus(go, CL_COMPLETE), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(queue), CL_SUCCESS);
	cl.clReleaseEvent(go);
	cl.clReleaseEvent(event);
	cl.clReleaseKernel(kernel);
	cl.clReleaseMemObject(mem);
	cl.clReleaseCommandQueue(queue);
	in_place_close();
}

TEST(migrated_elsewhere, "A migration on a queue of another context is CL_INVALID_CONTEXT.")
{
	cl_context context;
	cl_command_queue queue;
	cl_int err = 1;
	cl_mem mem;

	in_place_open();
	mem = test_in_place_create(0, pages_map(1), PAGE);
	context = cl.clCreateContext(NULL, 1, fix.device, NULL, NULL, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	queue = cl.clCreateCommandQueue(context, fix.device[0], 0, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	EXPECT_EQ(cl.clEnqueueMigrateMemObjects(queue, 1, &mem, 0, 0, NULL, NULL),
		  CL_INVALID_CONTEXT);
	EXPECT_EQ(cl.clEnqueueMigrateMemObjects(NULL, 1, &mem, 0, 0, NULL, NULL),
		  CL_INVALID_COMMAND_QUEUE);
	cl.clReleaseMemObject(mem);
	cl.clReleaseCommandQueue(queue);
	cl.clReleaseContext(context);
	in_place_close();
}

TEST(image_with_pointer, "An image with a host pointer is the driver's.")
{
	const cl_image_format format = { CL_RGBA, CL_UNSIGNED_INT8 };
	const cl_image_desc desc = { .image_type = CL_MEM_OBJECT_IMAGE2D,
				     .image_width = 16,
				     .image_height = 4 };
	unsigned char *p;
	cl_int err = 1;
	cl_mem mem;

	in_place_open();
	p = pages_map(1);
	mem = cl.clCreateImage(fix.context, CL_MEM_USE_HOST_PTR, &format, &desc, p, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	EXPECT_EQ(opaque_query_size(mem, CL_MEM_HOST_PTR), (size_t)p);
	cl.clReleaseMemObject(mem);
	in_place_close();
}

static void CL_CALLBACK in_place_free_memory(cl_mem mem, void *memory)
{
	(void)mem;
	stub_trace("destroyed");
	munmap(memory, PAGE);
}

TEST(freed_in_callback,
     "A program releases a buffer while a kernel uses the memory, and frees the memory in the "
     "destructor callback, which comes behind the kernel.")
{
	cl_kernel kernel;
	cl_event go;
	cl_mem mem;
	void *p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	in_place_open();
	mem = test_in_place_create(0, p, PAGE);
	EXPECT_EQ(cl.clSetMemObjectDestructorCallback(mem, in_place_free_memory, p), CL_SUCCESS);
	kernel = fixture_create_increment(mem);
	go = cl.clCreateUserEvent(fix.context, NULL);
	EXPECT_EQ(fixture_enqueue(fix.queue, kernel, 1, &go, NULL), CL_SUCCESS);
	cl.clReleaseKernel(kernel);
	EXPECT_EQ(cl.clRetainMemObject(mem), CL_SUCCESS);
	EXPECT_EQ(cl.clReleaseMemObject(mem), CL_SUCCESS);
	EXPECT_EQ(cl.clReleaseMemObject(mem), CL_SUCCESS);
	EXPECT_EQ(stub_trace_count("destroyed"), 0);
	EXPECT_EQ(cl.clSetUserEventStatus(go, CL_COMPLETE), CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(fix.queue), CL_SUCCESS);
	cl.clReleaseEvent(go);
	in_place_close();
	EXPECT_EQ(stub_trace_count("destroyed"), 1);
}

TEST(same_address, "A buffer on new memory at an address that a released buffer had is new.")
{
	unsigned char *p = pages_map(1);
	cl_mem mem;

	in_place_open();
	p = pages_map(1);
	for (int i = 0; i < 3; i++) {
		mem = test_in_place_create(0, p, PAGE);
		EXPECT(test_in_place_is(mem, p));
		cl.clReleaseMemObject(mem);
		EXPECT_EQ((size_t)mmap(p, PAGE, PROT_READ | PROT_WRITE,
				       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
			  (size_t)p);
	}
	in_place_close();
}

TEST(beside_each_other, "Buffers of different flags share a page.")
{
	unsigned char *p;
	cl_mem a, b;

	in_place_open();
	p = pages_map(1);
	a = test_in_place_create(CL_MEM_READ_ONLY, p + ALIGN, ALIGN);
	b = test_in_place_create(CL_MEM_WRITE_ONLY, p + 2 * ALIGN, ALIGN);
	EXPECT(test_in_place_is(b, p + 2 * ALIGN));
	EXPECT_EQ(opaque_query_size(a, CL_MEM_HOST_PTR), (size_t)(p + ALIGN));
	cl.clReleaseMemObject(a);
	cl.clReleaseMemObject(b);
	in_place_close();
}

TEST(caching_device, "A device that caches sees what the host has written under a map.")
{
	unsigned char *p, *pointer;
	cl_mem mem;
	cl_int err;

	in_place_reset();
	stub_set(STUB_OPAQUE_CACHED, 1);
	fixture_open();
	p = pages_map(1);
	mem = test_in_place_create(0, p, PAGE);
	for (int i = 0; i < 3; i++) {
		fixture_increment(mem);
		pointer = cl.clEnqueueMapBuffer(fix.queue, mem, CL_TRUE, CL_MAP_WRITE, 0, PAGE, 0,
						NULL, NULL, &err);
		EXPECT_EQ((size_t)pointer, (size_t)p);
		EXPECT_EQ(p[0], i ? 20 * i - 20 + 1 : 1);
		p[0] = (unsigned char)(20 * i);
		EXPECT_EQ(cl.clEnqueueUnmapMemObject(fix.queue, mem, pointer, 0, NULL, NULL),
			  CL_SUCCESS);
	}
	cl.clReleaseMemObject(mem);
	in_place_close();
}

TEST(forked, "A child of fork() leaves its parent's buffers and memory alone.")
{
	unsigned char *p;
	int status = 1;
	pid_t child;
	cl_mem mem;

	in_place_open();
	p = pages_map(1);
	mem = test_in_place_create(0, p, PAGE);
	child = fork();
	if (!child) {
		p[0] = 99;
		_exit(0);
	}
	EXPECT_EQ(waitpid(child, &status, 0), child);
	EXPECT_EQ(status, 0);
	EXPECT_EQ(p[0], 0);
	EXPECT(test_in_place_is(mem, p));
	cl.clReleaseMemObject(mem);
	in_place_close();
}

static void *use_buffers(void *number)
{
	unsigned char *p =
		mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)number;
	for (int i = 0; i < 20; i++) {
		cl_mem mem = test_in_place_create(0, p, PAGE);
		void *a = cl.clEnqueueMapBuffer(fix.queue, mem, CL_TRUE, CL_MAP_WRITE, 0, PAGE, 0,
						NULL, NULL, NULL);
		void *svm = cl.clSVMAlloc(fix.context, 0, PAGE, 0);

		EXPECT_EQ((size_t)a, (size_t)p);
		p[0] = (unsigned char)i;
		EXPECT_EQ(cl.clEnqueueUnmapMemObject(fix.queue, mem, a, 0, NULL, NULL), CL_SUCCESS);
		EXPECT_EQ(cl.clFinish(fix.queue), CL_SUCCESS);
		EXPECT_EQ(p[0], i);
		cl.clSVMFree(fix.context, svm);
		cl.clReleaseMemObject(mem);
	}
	munmap(p, PAGE);
	return NULL;
}

TEST(threads, "Threads create, map and release buffers at the same time.")
{
	in_place_open();
	process_run_threads(4, use_buffers);
	in_place_close();
}

static const struct lack {
	const char *name, *function;
} lacks[] = { { "sub_buffer", "clCreateSubBuffer" },
	      { "callback", "clSetMemObjectDestructorCallback" } };

TEST_EACH(driver_fails, struct lack, lacks,
	  "If a later call of the driver fails for the import, the driver makes the buffer, and "
	  "nothing "
	  "is left of the import.")
{
	unsigned char *p;
	cl_mem mem;

	in_place_open();
	p = pages_map(2) + ALIGN;
	cl.clReleaseMemObject(test_in_place_create(0, p, PAGE));
	stub_set(STUB_FAULT_STAYS, 1);
	stub_fail(row->function, 1, CL_OUT_OF_HOST_MEMORY);
	mem = test_in_place_create_own(0, p, PAGE);
	stub_fail(NULL, 0, 0);
	EXPECT(!test_in_place_is(mem, p));
	cl.clReleaseMemObject(mem);
	in_place_close();
}

TEST(recorded, "A command buffer of version 1.0.0 records copies of such buffers.")
{
	__typeof__(&clCreateCommandBufferKHR) create;
	__typeof__(&clCommandCopyBufferKHR) copy;
	__typeof__(&clReleaseCommandBufferKHR) release;
	cl_command_buffer_khr list;
	cl_mem mem, import;
	cl_int err = 1;

	in_place_open();
	create = (__typeof__(create))cl.clGetExtensionFunctionAddress("clCreateCommandBufferKHR");
	copy = (__typeof__(copy))cl.clGetExtensionFunctionAddress("clCommandCopyBufferKHR");
	release =
		(__typeof__(release))cl.clGetExtensionFunctionAddress("clReleaseCommandBufferKHR");
	mem = test_in_place_create(0, pages_map(1), PAGE);
	import = fixture_import_host(0, pages_map(1), PAGE);
	list = create(1, &fix.queue, NULL, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	EXPECT_EQ(copy(list, NULL, mem, mem, 0, 64, 16, 0, NULL, NULL, NULL), CL_SUCCESS);
	EXPECT_EQ(copy(list, NULL, mem, import, 0, 64, 16, 0, NULL, NULL, NULL),
		  CL_INVALID_OPERATION);
	EXPECT_EQ(release(list), CL_SUCCESS);
	cl.clReleaseMemObject(mem);
	cl.clReleaseMemObject(import);
	in_place_close();
}
