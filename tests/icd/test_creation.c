/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The layer judges a creating call by the error code.  A driver may return a handle together with
 * an error, and the handle then is no object.  A driver may also return success without a handle.
 */
#include "access.h"

#define UNTOUCHED 77

/* The arguments of the creating calls below. */
static struct {
	cl_mem import;
	cl_kernel kernel;
	unsigned char *memory;
} set;

static void *create_context(cl_int *err)
{
	return cl.clCreateContext(NULL, 1, fix.device, NULL, NULL, err);
}

static void *create_context_from_type(cl_int *err)
{
	return cl.clCreateContextFromType(NULL, CL_DEVICE_TYPE_ALL, NULL, NULL, err);
}

static void *creation_buffer(cl_int *err)
{
	return cl.clCreateBuffer(fix.context, 0, 64, NULL, err);
}

static void *create_sub_buffer(cl_int *err)
{
	const cl_buffer_region region = { 0, 256 };

	return cl.clCreateSubBuffer(set.import, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, err);
}

static void *create_image(cl_mem_object_type type, cl_mem buffer, bool properties, cl_int *err)
{
	static const cl_mem_properties none[] = { 0 };
	const cl_image_format format = { CL_RGBA, CL_UNSIGNED_INT8 };
	const cl_image_desc desc = {
		.image_type = type, .image_width = 16, .image_height = 4, .mem_object = buffer
	};

	if (properties)
		return cl.clCreateImageWithProperties(fix.context, none, 0, &format, &desc, NULL,
						      err);
	return cl.clCreateImage(fix.context, 0, &format, &desc, NULL, err);
}

static void *create_plain_image(cl_int *err)
{
	return create_image(CL_MEM_OBJECT_IMAGE2D, NULL, false, err);
}

static void *create_image_1d(cl_int *err)
{
	return create_image(CL_MEM_OBJECT_IMAGE1D_BUFFER, set.import, false, err);
}

static void *create_image_1d_properties(cl_int *err)
{
	return create_image(CL_MEM_OBJECT_IMAGE1D_BUFFER, set.import, true, err);
}

static void *create_image_2d(cl_int *err)
{
	return create_image(CL_MEM_OBJECT_IMAGE2D, set.import, false, err);
}

static void *create_kernel(cl_int *err)
{
	return cl.clCreateKernel(fix.program, "increment", err);
}

static void *clone_kernel(cl_int *err)
{
	return cl.clCloneKernel(set.kernel, err);
}

static void *create_user_event(cl_int *err)
{
	return cl.clCreateUserEvent(fix.context, err);
}

static void *create_command_buffer(cl_int *err)
{
	__typeof__(&clCreateCommandBufferKHR) create =
		(__typeof__(create))cl.clGetExtensionFunctionAddressForPlatform(
			fix.platform, "clCreateCommandBufferKHR");

	return create(1, &fix.queue, NULL, err);
}

static void *create_import(cl_int *err)
{
	return fix.import(fix.context, 0, NULL, set.memory, 4096, err);
}

/* A creating call, and the driver's failing function inside the call. */
static const struct row {
	const char *name, *function;
	void *(*create)(cl_int *err);
	/* The layer makes the object, and does not pass on a handle with an error. */
	bool layers_own;
} rows[] = {
	{ "context", "clCreateContext", create_context, false },
	{ "context_from_type", "clCreateContextFromType", create_context_from_type, false },
	{ "buffer", "clCreateBuffer", creation_buffer, false },
	{ "sub_buffer", "clCreateSubBuffer", create_sub_buffer, false },
	{ "image", "clCreateImage", create_plain_image, false },
	{ "image_1d", "clCreateImage", create_image_1d, false },
	{ "image_1d_properties", "clCreateImageWithProperties", create_image_1d_properties, false },
	{ "image_2d", "clCreateImage", create_image_2d, true },
	{ "kernel", "clCreateKernel", create_kernel, false },
	{ "clone", "clCloneKernel", clone_kernel, false },
	{ "user_event", "clCreateUserEvent", create_user_event, false },
	{ "command_buffer", "clCreateCommandBufferKHR", create_command_buffer, false },
	{ "import", "clCreateBuffer", create_import, true },
};

static void set_open(void)
{
	fixture_reset();
	fixture_open();
	set.memory = pages_map(2);
	set.import = fixture_import_host(0, set.memory, SIZE);
	set.kernel = fixture_create_increment(set.import);
	/* The self-tests run here, before a test makes calls fail. */
	cl.clReleaseMemObject(create_image_2d(NULL));
	cl.clReleaseMemObject(fixture_import_host(0, set.memory, 4096));
}

static void set_close(void)
{
	stub_fail(NULL, 0, CL_SUCCESS);
	stub_set(STUB_FAILED_HANDLE, 0);
	cl.clReleaseKernel(set.kernel);
	cl.clReleaseMemObject(set.import);
	fixture_close();
}

/* Makes the call of @row with and without an error pointer; both calls return @handle and @code. */
static void expect_result(const struct row *row, cl_int fault, const void *handle, cl_int code)
{
	cl_int err = UNTOUCHED;

	stub_fail(row->function, 1, fault);
	EXPECT(row->create(&err) == handle);
	EXPECT(stub_failed());
	EXPECT_EQ(err, code);
	stub_fail(row->function, 1, fault);
	EXPECT(row->create(NULL) == handle);
	EXPECT(stub_failed());
	expect_count("dead handle", 0);
}

TEST_EACH(handle_and_error, struct row, rows,
	  "A handle that a driver returns with an error is passed on and never used.")
{
	set_open();
	stub_set(STUB_FAILED_HANDLE, 1);
	expect_result(row, CL_OUT_OF_RESOURCES, row->layers_own ? NULL : stub_dead_handle(),
		      CL_OUT_OF_RESOURCES);
	set_close();
}

TEST_EACH(success_without_handle, struct row, rows,
	  "Success without a handle is passed on; an import then fails.")
{
	set_open();
	expect_result(row, STUB_NO_HANDLE, NULL,
		      row->layers_own ? CL_OUT_OF_RESOURCES : CL_SUCCESS);
	set_close();
}

static const struct buffer_fault {
	const char *name;
	cl_int code;
} buffer_faults[] = { { "error", CL_OUT_OF_RESOURCES }, { "no_handle", STUB_NO_HANDLE } };

TEST_EACH(hidden_buffer, struct buffer_fault, buffer_faults,
	  "If the hidden buffer of an image on a sub-buffer fails, the image fails with the same "
	  "error.")
{
	cl_int err = UNTOUCHED;
	cl_mem sub;

	set_open();
	sub = fixture_create_sub_buffer(set.import, 4096, 256);
	cl.clReleaseMemObject(create_image(CL_MEM_OBJECT_IMAGE1D_BUFFER, sub, false, NULL));
	stub_set(STUB_FAILED_HANDLE, 1);
	stub_fail("clCreateBuffer", 1, row->code);
	EXPECT(!create_image(CL_MEM_OBJECT_IMAGE1D_BUFFER, sub, false, &err));
	EXPECT_EQ(err, CL_OUT_OF_RESOURCES);
	EXPECT(strstr(fix.notice, "clCreateBuffer"));
	expect_count("dead handle", 0);
	cl.clReleaseMemObject(sub);
	set_close();
}

TEST(context_without_devices, "A context without devices can be created, and imports nothing.")
{
	cl_context context;
	cl_int err = UNTOUCHED;

	fixture_reset();
	fixture_open();
	stub_set(STUB_NO_CONTEXT_DEVICES, 1);
	context = create_context_from_type(&err);
	EXPECT_EQ(err, CL_SUCCESS);
	EXPECT(fixture_import_error(context, 0, NULL, pages_map(1), 4096) < 0);
	EXPECT_EQ(cl.clReleaseContext(context), CL_SUCCESS);
	stub_set(STUB_NO_CONTEXT_DEVICES, 0);
	fixture_close();
}
