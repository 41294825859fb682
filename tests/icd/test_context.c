/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts: handles known to the layer, and the contexts' callbacks. */
#include "fixture.h"

#include <pthread.h>

struct log {
	unsigned count;
	char text[256];
	size_t extra;
};

static void CL_CALLBACK context_log_notice(const char *message, const void *data, size_t size,
					   void *user_data)
{
	struct log *log = user_data;

	(void)data;
	log->count++;
	log->extra = size;
	snprintf(log->text, sizeof(log->text), "%s", message);
}

static cl_context context_create_with_log(struct log *log)
{
	cl_int err;
	cl_context context = cl.clCreateContext(NULL, fix.num_devices, fix.device,
						log ? context_log_notice : NULL, log, &err);

	EXPECT_EQ(err, CL_SUCCESS);
	return context;
}

/* The layer itself refuses @context: a driver need not survive a wrong handle. */
static void expect_unknown(cl_context context)
{
	unsigned long created = stub_calls("clCreateBuffer"),
		      asked = stub_calls("clGetContextInfo");

	EXPECT_EQ(fixture_import_error(context, 0, NULL, pages_map(1), 4096), CL_INVALID_CONTEXT);
	EXPECT_EQ(stub_calls("clCreateBuffer"), created);
	EXPECT_EQ(stub_calls("clGetContextInfo"), asked);
}

static void expect_imports(cl_context context)
{
	cl_int err = 1;
	cl_mem mem = fix.import(context, 0, NULL, pages_map(1), 4096, &err);

	EXPECT_EQ(err, CL_SUCCESS);
	EXPECT_EQ(cl.clReleaseMemObject(mem), CL_SUCCESS);
}

TEST(unknown_context, "NULL, wild pointers and handles of other objects are CL_INVALID_CONTEXT.")
{
	unsigned char *memory;

	fixture_reset();
	fixture_open();
	memory = pages_map(1);
	expect_unknown(NULL);
	expect_unknown((cl_context)(uintptr_t)0x10);
	expect_unknown((cl_context)fix.queue);
	EXPECT(!fix.import(NULL, 0, NULL, memory, 4096, NULL));
	fixture_close();
}

/* Drivers with and without context destructor callbacks. */
static const struct driver_version {
	const char *name;
	bool cl12;
} driver_versions[] = { { "3_0", false }, { "1_2", true } };

TEST_EACH(freed_context, struct driver_version, driver_versions,
	  "A freed context is CL_INVALID_CONTEXT, even without context destructor callbacks.")
{
	cl_context context;

	fixture_reset();
	stub_set(STUB_CL12, row->cl12);
	fixture_open();
	context = context_create_with_log(NULL);
	expect_imports(context);
	EXPECT_EQ(cl.clReleaseContext(context), CL_SUCCESS);
	expect_unknown(context);
	fixture_close();
}

TEST(refused_callback,
     "If the driver refuses a context destructor callback, a freed context is still "
     "CL_INVALID_CONTEXT.")
{
	cl_context context;

	fixture_reset();
	fixture_open();
	stub_fail("clSetContextDestructorCallback", 1, CL_INVALID_OPERATION);
	context = context_create_with_log(NULL);
	EXPECT(stub_failed());
	expect_imports(context);
	EXPECT_EQ(cl.clReleaseContext(context), CL_SUCCESS);
	expect_unknown(context);
	fixture_close();
}

TEST(retained_context, "A context that is retained and released once is still known.")
{
	cl_context context;

	fixture_reset();
	fixture_open();
	context = context_create_with_log(NULL);
	EXPECT_EQ(cl.clRetainContext(context), CL_SUCCESS);
	EXPECT_EQ(cl.clReleaseContext(context), CL_SUCCESS);
	expect_imports(context);
	EXPECT_EQ(cl.clReleaseContext(context), CL_SUCCESS);
	fixture_close();
}

TEST(kept_context,
     "A context that a queue keeps alive is known after the application's last release.")
{
	cl_command_queue queue;
	cl_context context, found = NULL;

	fixture_reset();
	stub_set(STUB_OWN_REFERENCES, 1);
	fixture_open();
	context = context_create_with_log(NULL);
	queue = cl.clCreateCommandQueue(context, fix.device[0], 0, NULL);
	EXPECT_EQ(cl.clReleaseContext(context), CL_SUCCESS);
	EXPECT_EQ(cl.clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof(found), &found, NULL),
		  CL_SUCCESS);
	expect_imports(found);
	EXPECT_EQ(cl.clReleaseCommandQueue(queue), CL_SUCCESS);
	EXPECT(!stub_is_live(context, STUB_CONTEXT));
	expect_unknown(context);
	fixture_close();
}

TEST_EACH(kept_and_retained, struct driver_version, driver_versions,
	  "A context that a queue keeps alive and that the application retains again is known.")
{
	cl_command_queue queue;
	cl_context context;

	fixture_reset();
	stub_set(STUB_CL12, row->cl12);
	fixture_open();
	context = context_create_with_log(NULL);
	queue = cl.clCreateCommandQueue(context, fix.device[0], 0, NULL);
	EXPECT_EQ(cl.clReleaseContext(context), CL_SUCCESS);
	EXPECT_EQ(cl.clRetainContext(context), CL_SUCCESS);
	expect_imports(context);
	EXPECT_EQ(cl.clReleaseCommandQueue(queue), CL_SUCCESS);
	expect_imports(context);
	EXPECT_EQ(cl.clReleaseContext(context), CL_SUCCESS);
	expect_unknown(context);
	fixture_close();
}

TEST_EACH(
	kept_by_queue, struct driver_version, driver_versions,
	"A context that a queue alone keeps alive takes imports, and its callback gets sentences.")
{
	struct log log = { 0 };
	cl_context context, found = NULL;
	cl_command_queue queue;

	fixture_reset();
	stub_set(STUB_CL12, row->cl12);
	fixture_open();
	context = context_create_with_log(&log);
	queue = cl.clCreateCommandQueue(context, fix.device[0], 0, NULL);
	EXPECT_EQ(cl.clReleaseContext(context), CL_SUCCESS);
	EXPECT_EQ(cl.clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof(found), &found, NULL),
		  CL_SUCCESS);
	expect_imports(found);
	EXPECT_EQ(fixture_import_error(found, 0, NULL, NULL, 4096), CL_INVALID_VALUE);
	EXPECT_EQ(log.count, 1);
	EXPECT_EQ(cl.clReleaseCommandQueue(queue), CL_SUCCESS);
	fixture_close();
}

TEST(from_type, "The layer knows contexts that clCreateContextFromType makes.")
{
	cl_context context;
	struct log log = { 0 };
	cl_int err;

	fixture_reset();
	fixture_open();
	context = cl.clCreateContextFromType(NULL, CL_DEVICE_TYPE_ALL, context_log_notice, &log,
					     &err);
	EXPECT_EQ(err, CL_SUCCESS);
	expect_imports(context);
	EXPECT_EQ(fixture_import_error(context, 0, NULL, NULL, 4096), CL_INVALID_VALUE);
	EXPECT_EQ(log.count, 1);
	cl.clReleaseContext(context);
	fixture_close();
}

TEST_EACH(reused_address, struct driver_version, driver_versions,
	  "A context at the address of a freed context has its own devices and callback.")
{
	struct log first = { 0 }, second = { 0 };
	cl_context freed, context;
	cl_int err;

	fixture_reset();
	stub_set(STUB_CL12, row->cl12);
	stub_set(STUB_DEVICES, 2);
	stub_set(STUB_COPYING, 2);
	fixture_open();
	freed = cl.clCreateContext(NULL, 1, &fix.device[1], context_log_notice, &first, &err);
	EXPECT_EQ(fixture_import_error(freed, 0, NULL, pages_map(1), 4096), CL_INVALID_PROPERTY);
	stub_set(STUB_ADDRESS_REUSE, 1);
	cl.clReleaseContext(freed);
	context = cl.clCreateContext(NULL, 1, &fix.device[0], context_log_notice, &second, &err);
	EXPECT(context == freed); /* the test's premise */
	first.count = second.count = 0;
	expect_imports(context);
	EXPECT_EQ(fixture_import_error(context, 0, NULL, NULL, 4096), CL_INVALID_VALUE);
	EXPECT_EQ(first.count, 0);
	EXPECT_EQ(second.count, 1);
	stub_set(STUB_ADDRESS_REUSE, 0);
	cl.clReleaseContext(context);
	fixture_close();
}

TEST(imports_outlive_context, "An import works after the application has released its context.")
{
	struct log log = { 0 };
	cl_command_queue queue;
	cl_context context;
	unsigned char byte;
	cl_int err;
	cl_mem mem;

	fixture_reset();
	fixture_open();
	context = context_create_with_log(&log);
	queue = cl.clCreateCommandQueue(context, fix.device[0], 0, &err);
	mem = fix.import(context, 0, NULL, pages_map(1), 4096, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	EXPECT_EQ(cl.clReleaseContext(context), CL_SUCCESS);
	EXPECT_EQ(cl.clEnqueueReadBuffer(queue, mem, CL_TRUE, 0, 1, &byte, 0, NULL, NULL),
		  CL_INVALID_OPERATION);
	EXPECT_EQ(cl.clReleaseMemObject(mem), CL_SUCCESS);
	EXPECT_EQ(cl.clReleaseCommandQueue(queue), CL_SUCCESS);
	EXPECT(!stub_is_live(context, STUB_CONTEXT));
	fixture_close();
}

TEST(context_of_ended_command,
     "A context whose commands have ended is gone with its queue, however late the driver's thread "
     "drops the commands.")
{
	const cl_int zero = 0;
	cl_command_queue queue;
	cl_context context;
	cl_mem mem;
	long live;

	fixture_reset();
	fixture_open();
	live = stub_live(STUB_CONTEXT);
	context = cl.clCreateContext(NULL, 1, fix.device, NULL, NULL, NULL);
	queue = cl.clCreateCommandQueue(context, fix.device[0], 0, NULL);
	mem = cl.clCreateBuffer(context, 0, 64, NULL, NULL);
	stub_set(STUB_DROP_DELAY, 100);
	EXPECT_EQ(cl.clEnqueueFillBuffer(queue, mem, &zero, sizeof(zero), 0, 64, 0, NULL, NULL),
		  CL_SUCCESS);
	EXPECT_EQ(cl.clFinish(queue), CL_SUCCESS);
	EXPECT_EQ(cl.clReleaseMemObject(mem), CL_SUCCESS);
	EXPECT_EQ(cl.clReleaseCommandQueue(queue), CL_SUCCESS);
	EXPECT_EQ(cl.clReleaseContext(context), CL_SUCCESS);
	EXPECT_EQ(stub_live(STUB_CONTEXT), live);
	EXPECT(!stub_is_live(context, STUB_CONTEXT));
	fixture_close();
}

TEST(failed_creation, "A failed creation of a context is passed on, and leaves no object.")
{
	cl_int err = 1;

	fixture_reset();
	fixture_open();
	EXPECT(!cl.clCreateContext(NULL, 0, NULL, NULL, NULL, &err));
	EXPECT_EQ(err, CL_INVALID_VALUE);
	EXPECT(!cl.clCreateContextFromType(NULL, CL_DEVICE_TYPE_GPU, NULL, NULL, &err));
	EXPECT_EQ(err, CL_DEVICE_NOT_FOUND);
	fixture_close();
}

static const cl_import_properties_arm unknown_property[] = { 0x1234, 1, 0 };
static int no_descriptor = -1;

static void *page_of_memory(void)
{
	return pages_map(1);
}

static void *no_memory(void)
{
	return NULL;
}

static void *unmapped_memory(void)
{
	return pages_hole();
}

static void *bad_descriptor(void)
{
	return &no_descriptor;
}

/* Arguments of an import with a single mistake. */
static const struct mistake {
	const char *name;
	cl_int err;
	cl_mem_flags flags;
	const cl_import_properties_arm *properties;
	void *(*memory)(void);
	size_t size;
} mistakes[] = {
	{ "two_accesses", CL_INVALID_VALUE, CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY, NULL,
	  page_of_memory, 4096 },
	{ "copy_host_ptr", CL_INVALID_VALUE, CL_MEM_COPY_HOST_PTR, NULL, page_of_memory, 4096 },
	{ "unknown_property", CL_INVALID_PROPERTY, 0, unknown_property, page_of_memory, 4096 },
	{ "no_memory", CL_INVALID_VALUE, 0, NULL, no_memory, 4096 },
	{ "size_zero", CL_INVALID_BUFFER_SIZE, 0, NULL, page_of_memory, 0 },
	{ "size_max", CL_INVALID_BUFFER_SIZE, 0, NULL, page_of_memory, SIZE_MAX },
	{ "unmapped", CL_INVALID_OPERATION, 0, NULL, unmapped_memory, 16 },
	{ "bad_descriptor", CL_INVALID_VALUE, 0, fixture_dma_buf, bad_descriptor, 4096 },
	{ "unmapped_descriptor", CL_INVALID_VALUE, 0, fixture_dma_buf, unmapped_memory, 4096 },
};

TEST_EACH(message, struct mistake, mistakes,
	  "Every error of an import sends one sentence to the callback of its context.")
{
	struct log log = { 0 };
	cl_context context;

	fixture_reset();
	fixture_open();
	context = context_create_with_log(&log);
	EXPECT_EQ(fixture_import_error(context, row->flags, row->properties, row->memory(),
				       row->size),
		  row->err);
	EXPECT_EQ(log.count, 1);
	EXPECT(strstr(log.text, "clImportMemoryARM") && strlen(log.text) > 25);
	EXPECT_EQ(log.extra, 0);
	EXPECT_EQ(fix.notices, 0);
	cl.clReleaseContext(context);
	fixture_close();
}

static cl_mem sub_buffer_or_not(cl_mem parent, cl_mem_flags flags, size_t origin, size_t size)
{
	const cl_buffer_region region = { origin, size };

	return cl.clCreateSubBuffer(parent, flags, CL_BUFFER_CREATE_TYPE_REGION, &region, NULL);
}

static cl_mem image_or_not(cl_mem buffer, cl_mem_object_type type, size_t width)
{
	const cl_image_format format = { CL_RGBA, CL_UNSIGNED_INT8 };
	const cl_image_desc desc = {
		.image_type = type, .image_width = width, .image_height = 4, .mem_object = buffer
	};

	return cl.clCreateImage(fix.context, 0, &format, &desc, NULL, NULL);
}

/* Requests that fail on an 8192 byte import or its 256 byte sub-buffer.  Type 0: a sub-buffer. */
static const struct underivable {
	const char *name;
	bool of_sub_buffer;
	cl_mem_object_type type;
	cl_mem_flags flags;
	size_t origin, width;
} underivables[] = {
	{ "sub_buffer_of_sub_buffer", .of_sub_buffer = true },
	{ "sub_buffer_beyond", .origin = 8192 },
	{ "sub_buffer_flags", .flags = CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY },
	{ "image_2d_large", .type = CL_MEM_OBJECT_IMAGE2D, .width = 4096 },
	{ "image_3d", .type = CL_MEM_OBJECT_IMAGE3D, .width = 4 },
	{ "image_1d_of_sub_buffer", true, CL_MEM_OBJECT_IMAGE1D_BUFFER, .width = 4096 },
	{ "image_1d_large", .type = CL_MEM_OBJECT_IMAGE1D_BUFFER, .width = 4096 },
};

static cl_mem underivable_create(const struct underivable *u, cl_mem parent)
{
	return u->type ? image_or_not(parent, u->type, u->width)
		       : sub_buffer_or_not(parent, u->flags, u->origin, 128);
}

TEST_EACH(own_sentence, struct underivable, underivables,
	  "If an object cannot be made from an import, the callback gets a sentence about that "
	  "object.")
{
	const char *sentence;
	unsigned notices;
	cl_mem mem, sub;

	fixture_reset();
	fixture_open();
	mem = fixture_import_host(0, pages_map(2), 8192);
	sub = fixture_create_sub_buffer(mem, 0, 256);
	EXPECT_EQ(fixture_import_error(fix.context, 0, NULL, NULL, 4096), CL_INVALID_VALUE);
	EXPECT(strstr(fix.notice, "memory is NULL"));
	notices = fix.notices;
	EXPECT(!underivable_create(row, row->of_sub_buffer ? sub : mem));
	EXPECT_EQ(fix.notices, notices + 1);
	sentence = strstr(fix.notice, ": ");
	EXPECT(sentence && strlen(sentence) > 12);
	EXPECT(!strstr(fix.notice, "memory is NULL"));
	cl.clReleaseMemObject(sub);
	cl.clReleaseMemObject(mem);
	fixture_close();
}

static void CL_CALLBACK context_cancel_point(const char *message, const void *data, size_t size,
					     void *user_data)
{
	bool *is_over = user_data;

	(void)message;
	(void)data;
	(void)size;
	pthread_testcancel();
	*is_over = true;
}

static void *context_refused_and_cancelled(void *mem)
{
	char byte;

	pthread_cancel(pthread_self());
	cl.clEnqueueReadBuffer(fix.queue, mem, CL_TRUE, 0, 1, &byte, 0, NULL, NULL);
	return NULL;
}

TEST(callback_is_not_cancelled,
     "A thread that is cancelled comes back from the context's callback.")
{
	bool is_over = false;
	pthread_t thread;
	void *result = NULL;
	cl_mem mem;
	cl_int err;

	fixture_reset();
	fixture_open();
	cl.clReleaseContext(fix.context);
	cl.clReleaseCommandQueue(fix.queue);
	fix.context = cl.clCreateContext(NULL, fix.num_devices, fix.device, context_cancel_point,
					 &is_over, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	fix.queue = fixture_create_queue(0);
	mem = fixture_import_host(0, pages_map(1), 4096);
	EXPECT_EQ(pthread_create(&thread, NULL, context_refused_and_cancelled, mem), 0);
	EXPECT_EQ(pthread_join(thread, &result), 0);
	EXPECT(is_over);
	cl.clReleaseMemObject(mem);
	fixture_close();
}

TEST(sentence_each_time, "A remembered refusal sends its sentence each time.")
{
	cl_mem mem;

	fixture_reset();
	stub_set(STUB_COPYING_IMAGES, 1);
	fixture_open();
	mem = fixture_import_host(0, pages_map(2), 8192);
	for (int i = 0; i < 2; i++) {
		EXPECT_EQ(fixture_import_error(fix.context, 0, NULL, NULL, 4096), CL_INVALID_VALUE);
		EXPECT(!image_or_not(mem, CL_MEM_OBJECT_IMAGE2D, 4));
		EXPECT(strstr(fix.notice, "zero copy"));
	}
	cl.clReleaseMemObject(mem);
	fixture_close();
}
