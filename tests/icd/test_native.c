/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Drivers that have the extension themselves, whole or in part.  ANGLE's OpenCL has dma-bufs alone,
 * and refuses none of the sixteen commands.
 */
#include "fixture.h"

#include <unistd.h>

#define DMA_BUF CL_IMPORT_TYPE_ARM, CL_IMPORT_TYPE_DMA_BUF_ARM
#define HOST CL_IMPORT_TYPE_ARM, CL_IMPORT_TYPE_HOST_ARM
#define ANDROID CL_IMPORT_TYPE_ARM, CL_IMPORT_TYPE_ANDROID_HARDWARE_BUFFER_ARM
#define PROTECTED CL_IMPORT_TYPE_PROTECTED_ARM
#define PLANE CL_IMPORT_ANDROID_HARDWARE_BUFFER_PLANE_INDEX_ARM
#define LAYER CL_IMPORT_ANDROID_HARDWARE_BUFFER_LAYER_INDEX_ARM

static const cl_import_properties_arm android[] = { ANDROID, 0 };
static const cl_import_properties_arm guarded_dma_buf[] = { DMA_BUF, PROTECTED, CL_TRUE, 0 };

static void native_open(long types)
{
	fixture_reset();
	stub_set(STUB_NATIVE, 1);
	stub_set(STUB_NATIVE_TYPES, types);
	fixture_open();
}

/* An import of a dma-buf by the driver, or of host memory. */
static cl_mem test_native_import(const cl_import_properties_arm *properties, void *memory)
{
	unsigned long before = stub_calls("clImportMemoryARM");
	cl_int err = 1;
	cl_mem mem = fix.import(fix.context, CL_MEM_READ_WRITE, properties, memory, PAGE, &err);

	EXPECT_EQ(err, CL_SUCCESS);
	EXPECT_EQ(stub_calls("clImportMemoryARM"), before + 1);
	return mem;
}

TEST(dma_buf_alone, "If a driver takes dma-bufs alone, dma-bufs go to the driver, and the layer "
		    "imports host memory.")
{
	unsigned char *memory;
	cl_mem mem;
	int fd;

	native_open(2);
	fd = fake_dmabuf_create("a", PAGE);
	cl.clReleaseMemObject(test_native_import(fixture_dma_buf, &fd));
	memory = pages_map(1);
	mem = fixture_import_host(CL_MEM_READ_WRITE, memory, PAGE);
	EXPECT_EQ(stub_calls("clImportMemoryARM"), 1);
	memory[0] = 41;
	fixture_increment(mem);
	EXPECT_EQ(memory[0], 42);
	EXPECT(fixture_is_import(mem));
	cl.clReleaseMemObject(mem);
	EXPECT(fixture_device_reports(fix.device[0], "cl_arm_import_memory_host"));
	close(fd);
	fixture_close();
}

TEST(host_alone, "If a driver takes host memory alone, the layer imports dma-bufs.")
{
	cl_mem mem;
	int fd;

	native_open(1);
	cl.clReleaseMemObject(test_native_import(NULL, pages_map(1)));
	fd = fake_dmabuf_create("a", PAGE);
	mem = fixture_import_dmabuf(fd, PAGE);
	EXPECT_EQ(stub_calls("clImportMemoryARM"), 1);
	fixture_increment(mem);
	cl.clReleaseMemObject(mem);
	close(fd);
	fixture_close();
}

static const struct unknown {
	const char *name;
	const cl_import_properties_arm *properties;
} unknowns[] = { { "android_buffer", android }, { "protected", guarded_dma_buf } };

TEST_EACH(unknown, struct unknown, unknowns,
	  "A type of memory that the layer does not know goes to the driver, as it is.")
{
	unsigned long before;
	cl_int err = 1;
	int fd = 77;

	native_open(2);
	before = stub_calls("clImportMemoryARM");
	cl.clReleaseMemObject(fix.import(fix.context, 0, row->properties, &fd, PAGE, &err));
	EXPECT_EQ(stub_calls("clImportMemoryARM"), before + 1);
	EXPECT_EQ(stub_arg("clImportMemoryARM", 2), (uintptr_t)row->properties);
	fixture_close();
}

TEST(rules_of_driver, "The sixteen commands on an import of the driver's are the driver's affair.")
{
	cl_mem mem, part;

	native_open(3);
	mem = test_native_import(NULL, pages_map(1));
	part = fixture_create_sub_buffer(mem, 128, 128);
	EXPECT_EQ(cl.clEnqueueFillBuffer(fix.queue, mem, "abcd", 4, 0, 8, 0, NULL, NULL),
		  CL_SUCCESS);
	EXPECT(!fixture_is_import(mem) && !fixture_is_import(part));
	EXPECT_EQ(cl.clFinish(fix.queue), CL_SUCCESS);
	cl.clReleaseMemObject(part);
	cl.clReleaseMemObject(mem);
	fixture_close();
}

/* Devices of a context that lack the extension, next to a device that has the extension. */
static const struct lacking {
	const char *name;
	long devices; /* bits */
	const cl_import_properties_arm *properties;
	bool is_copying; /* and the layer has no method for them */
} lackings[] = {
	{ "second", 1 << 1, NULL, false },
	{ "first", 1 << 0, NULL, false },
	{ "first_refused", 1 << 0, NULL, true },
	{ "of_unknown_type", 1 << 0, android, false },
};

TEST_EACH(one_device, struct lacking, lackings,
	  "If a driver has the extension for one of a context's devices, imports go to the driver.")
{
	fixture_reset();
	stub_set(STUB_DEVICES, 2);
	stub_set(STUB_NATIVE, 1);
	stub_set(STUB_NATIVE_TYPES, STUB_NATIVE_HOST | STUB_NATIVE_ANDROID);
	stub_set(STUB_NATIVE_LACKING, row->devices);
	stub_set(STUB_COPYING, row->is_copying ? row->devices : 0);
	fixture_open();
	cl.clReleaseMemObject(test_native_import(row->properties, pages_map(1)));
	fixture_close();
}

TEST(one_device_readable, "If the properties of one of the devices cannot be read, imports go to "
			  "the driver for another.")
{
	fixture_reset();
	stub_set(STUB_DEVICES, 2);
	stub_set(STUB_NATIVE, 1);
	fixture_open();
	stub_fail("clGetDeviceInfo", 2, CL_OUT_OF_HOST_MEMORY);
	cl.clReleaseMemObject(test_native_import(NULL, pages_map(1)));
	EXPECT(stub_failed());
	fixture_close();
}

static const struct version {
	const char *name;
	bool is_refused;
} versions[] = { { "1.0.0", true }, { "1.1.0", false } };

TEST_EACH(version, struct version, versions,
	  "If the environment asks for a version, the version's rules hold for imports of the "
	  "driver's.")
{
	cl_mem mem, part, image;
	cl_int err;

	fixture_reset();
	stub_set(STUB_NATIVE, 1);
	stub_set(STUB_IMAGE2D_FROM_BUFFER, 1);
	setenv("CLIMPORT_VERSION", row->name, 1);
	fixture_open();
	mem = test_native_import(NULL, pages_map(1));
	part = fixture_create_sub_buffer(mem, 128, 1024);
	image = fixture_try_image(0, part, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	EXPECT_EQ(cl.clEnqueueFillBuffer(fix.queue, mem, "abcd", 4, 0, 8, 0, NULL, NULL),
		  row->is_refused ? CL_INVALID_OPERATION : CL_SUCCESS);
	EXPECT_EQ(fixture_is_import(mem), row->is_refused);
	EXPECT_EQ(fixture_is_import(part), row->is_refused);
	fixture_increment(mem);
	cl.clReleaseMemObject(image);
	cl.clReleaseMemObject(part);
	cl.clReleaseMemObject(mem);
	fixture_close();
}

TEST(version_failed,
     "If the environment asks for a version, an import that the driver refuses has the driver's "
     "error.")
{
	cl_int err = 1;

	fixture_reset();
	stub_set(STUB_NATIVE, 1);
	setenv("CLIMPORT_VERSION", "1.0.0", 1);
	fixture_open();
	EXPECT(!fix.import(fix.context, 0, NULL, NULL, PAGE, &err));
	EXPECT_EQ(err, CL_INVALID_VALUE);
	stub_set(STUB_FAILED_HANDLE, 1);
	EXPECT(!fix.import(fix.context, 0, NULL, NULL, PAGE, NULL));
	fixture_close();
	EXPECT_EQ(stub_trace_count("dead handle"), 0);
}

TEST(device_names_garbage,
     "If a driver's answer for a device is garbage, the answer for the platform decides.")
{
	fixture_reset();
	stub_set(STUB_NATIVE, 1);
	stub_set(STUB_NATIVE_NAMED, 1);
	fixture_open();
	cl.clReleaseMemObject(test_native_import(NULL, pages_map(1)));
	fixture_close();
}

#define NO_PROTECTED                                                                               \
	"CL_IMPORT_TYPE_PROTECTED_ARM is CL_TRUE, and has to be CL_FALSE: protected memory needs " \
	"a "                                                                                       \
	"driver with cl_arm_import_memory_protected"

static const struct refused {
	const char *name;
	long types; /* of the driver */
	cl_import_properties_arm properties[9];
	const char *says;
} refuseds[] = {
	{ "android", 0, { ANDROID }, "CL_IMPORT_TYPE_ANDROID_HARDWARE_BUFFER_ARM" },
	{ "android_plane",
	  0,
	  { PLANE, 0, ANDROID },
	  "CL_IMPORT_ANDROID_HARDWARE_BUFFER_PLANE_INDEX_ARM" },
	{ "android_layer",
	  0,
	  { LAYER, 1, ANDROID },
	  "CL_IMPORT_ANDROID_HARDWARE_BUFFER_LAYER_INDEX_ARM" },
	{ "plane_of_host",
	  0,
	  { HOST, PLANE, 0 },
	  "CL_IMPORT_ANDROID_HARDWARE_BUFFER_PLANE_INDEX_ARM" },
	{ "layer_of_dma_buf",
	  0,
	  { DMA_BUF, LAYER, 0 },
	  "CL_IMPORT_ANDROID_HARDWARE_BUFFER_LAYER_INDEX_ARM" },
	{ "protected", 0, { DMA_BUF, PROTECTED, CL_TRUE }, NO_PROTECTED },
	{ "protected_host", 0, { PROTECTED, CL_TRUE }, NO_PROTECTED },
	{ "protected_by_layer", STUB_NATIVE_HOST, { DMA_BUF, PROTECTED, CL_TRUE }, NO_PROTECTED },
	{ "protected_host_by_layer",
	  STUB_NATIVE_DMA_BUF | STUB_NATIVE_PROTECTED,
	  { PROTECTED, CL_TRUE },
	  NO_PROTECTED },
};

TEST_EACH(refused_by_name, struct refused, refuseds,
	  "What only a driver can import is CL_INVALID_PROPERTY without such a driver, and the "
	  "message has its name.")
{
	unsigned char *memory;
	int fd;

	fixture_reset();
	stub_set(STUB_NATIVE, row->types != 0);
	stub_set(STUB_NATIVE_TYPES, row->types);
	fixture_open();
	fd = fake_dmabuf_create("a", PAGE);
	memory = pages_map(1);
	memcpy(memory, &fd, sizeof(fd));
	EXPECT_EQ(fixture_import_error(fix.context, 0, row->properties, memory, PAGE),
		  CL_INVALID_PROPERTY);
	if (!strstr(fix.notice, row->says))
		printf("# %s\n", fix.notice);
	EXPECT(strstr(fix.notice, row->says));
	EXPECT_EQ(stub_calls("clImportMemoryARM"), 0);
	close(fd);
	fixture_close();
}

static const struct unprotected {
	const char *name;
	cl_import_properties_arm properties[5];
} unprotecteds[] = {
	{ "host", { PROTECTED, CL_FALSE } },
	{ "dma_buf", { DMA_BUF, PROTECTED, CL_FALSE } },
	{ "before_the_type", { PROTECTED, CL_FALSE, DMA_BUF } },
};

TEST_EACH(unprotected, struct unprotected, unprotecteds,
	  "CL_IMPORT_TYPE_PROTECTED_ARM with CL_FALSE is an import as without the property.")
{
	unsigned char *memory;
	cl_int err = 1;
	cl_mem mem;
	int fd;

	fixture_reset();
	fixture_open();
	fd = fake_dmabuf_create("a", PAGE);
	memory = pages_map(1);
	memcpy(memory, &fd, sizeof(fd));
	mem = fix.import(fix.context, 0, row->properties, memory, PAGE, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	fixture_increment(mem);
	cl.clReleaseMemObject(mem);
	close(fd);
	fixture_close();
}

TEST(android_alone, "If a driver takes Android's hardware buffers alone, they go to the driver, "
		    "and the layer imports host memory and dma-bufs.")
{
	unsigned char *memory;
	cl_mem mem;
	int fd;

	native_open(STUB_NATIVE_ANDROID);
	cl.clReleaseMemObject(test_native_import(android, &fd));
	EXPECT_EQ(stub_arg("clImportMemoryARM", 2), (uintptr_t)android);
	memory = pages_map(1);
	mem = fixture_import_host(CL_MEM_READ_WRITE, memory, PAGE);
	fixture_increment(mem);
	EXPECT_EQ(memory[0], 1);
	cl.clReleaseMemObject(mem);
	fd = fake_dmabuf_create("a", PAGE);
	mem = fixture_import_dmabuf(fd, PAGE);
	fixture_increment(mem);
	cl.clReleaseMemObject(mem);
	EXPECT_EQ(stub_calls("clImportMemoryARM"), 1);
	close(fd);
	fixture_close();
}

static cl_context second_platform_context(void)
{
	cl_platform_id platforms[2];
	cl_device_id device;
	cl_context context;
	cl_int err = 1;

	EXPECT_EQ(cl.clGetPlatformIDs(2, platforms, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clGetDeviceIDs(platforms[1], CL_DEVICE_TYPE_ALL, 1, &device, NULL),
		  CL_SUCCESS);
	context = cl.clCreateContext(NULL, 1, &device, NULL, NULL, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	return context;
}

TEST(android_of_platform, "Android's hardware buffers go to the driver of the context's platform, "
			  "and are refused in contexts of other platforms.")
{
	cl_context others;
	cl_int err;

	fixture_reset();
	stub_set(STUB_PLATFORMS, 2);
	stub_set(STUB_NATIVE, 2);
	stub_set(STUB_NATIVE_TYPES, STUB_NATIVE_ANDROID);
	fixture_open();
	EXPECT_EQ(fixture_import_error(fix.context, 0, android, &err, PAGE), CL_INVALID_PROPERTY);
	others = second_platform_context();
	cl.clReleaseMemObject(fix.import(others, 0, android, &err, PAGE, &err));
	EXPECT_EQ(err, CL_SUCCESS);
	cl.clReleaseContext(others);
	fixture_close();
}

static const struct unasked {
	const char *name;
	long platforms;
	cl_int wanted;
} unaskeds[] = {
	{ "one_platform", 1, CL_SUCCESS },
	{ "two_platforms", 2, CL_INVALID_CONTEXT },
};

TEST_EACH(
	no_record, struct unasked, unaskeds,
	"In a context of which the layer could make no record, an import goes to the driver of the "
	"only platform.")
{
	cl_context context;
	cl_int err;
	cl_mem mem;

	fixture_reset();
	stub_set(STUB_PLATFORMS, row->platforms);
	stub_set(STUB_NATIVE, 1);
	stub_set(STUB_NATIVE_TYPES, STUB_NATIVE_HOST);
	fixture_open();
	stub_set(STUB_FAULT_STAYS, 1);
	stub_fail("clGetContextInfo", 1, CL_OUT_OF_RESOURCES);
	context = cl.clCreateContext(NULL, 1, fix.device, NULL, NULL, &err);
	mem = fix.import(context, CL_MEM_READ_WRITE, NULL, pages_map(1), PAGE, &err);
	EXPECT_EQ(err, row->wanted);
	stub_fail(NULL, 0, CL_SUCCESS);
	if (mem)
		cl.clReleaseMemObject(mem);
	cl.clReleaseContext(context);
	fixture_close();
}

TEST_EACH(
	no_context, struct unasked, unaskeds,
	"A handle that is no context is not read, and is CL_INVALID_CONTEXT as without the layer.")
{
	void *memory = pages_map(1);
	cl_int err = 0;

	fixture_reset();
	stub_set(STUB_PLATFORMS, row->platforms);
	stub_set(STUB_NATIVE, 1);
	stub_set(STUB_NATIVE_TYPES, STUB_NATIVE_HOST);
	fixture_open();
	EXPECT(!fix.import((cl_context)8, CL_MEM_READ_WRITE, NULL, memory, PAGE, &err));
	EXPECT_EQ(err, CL_INVALID_CONTEXT);
	EXPECT_EQ(stub_calls("clImportMemoryARM"), row->platforms == 1);
	fixture_close();
}

TEST(told_late,
     "A driver that fails to tell of the type once, and tells at the next query, gets the "
     "import.")
{
	cl_int err;
	cl_mem mem;

	for (unsigned long fault = 1; fault <= 12; fault++) {
		native_open(STUB_NATIVE_HOST);
		stub_fail("clGetDeviceInfo", fault, CL_OUT_OF_HOST_MEMORY);
		mem = fix.import(fix.context, CL_MEM_READ_WRITE, NULL, pages_map(1), PAGE, &err);
		EXPECT_EQ(err, CL_SUCCESS);
		stub_fail(NULL, 0, CL_SUCCESS);
		cl.clReleaseMemObject(mem);
		fixture_close();
	}
}

static const struct guarded {
	const char *name;
	long types;
	cl_mem_flags flags;
	cl_int wanted; /* of the driver */
} guardeds[] = {
	{ "taken", STUB_NATIVE_DMA_BUF | STUB_NATIVE_PROTECTED, CL_MEM_HOST_NO_ACCESS, CL_SUCCESS },
	{ "no_flags", STUB_NATIVE_DMA_BUF | STUB_NATIVE_PROTECTED, 0, CL_SUCCESS },
	{ "host_reads", STUB_NATIVE_DMA_BUF | STUB_NATIVE_PROTECTED, CL_MEM_HOST_READ_ONLY,
	  CL_INVALID_OPERATION },
	{ "no_string", STUB_NATIVE_DMA_BUF, CL_MEM_HOST_NO_ACCESS, CL_INVALID_PROPERTY },
};

/* A version that the environment asks for, or none. */
static const struct asked {
	const char *name, *version;
} askeds[] = { { "default", NULL }, { "1_0_0", "1.0.0" }, { "1_1_0", "1.1.0" } };

TEST_EACH_PAIR(guarded, struct guarded, guardeds, struct asked, askeds,
	       "The driver checks imports of protected memory, in any version.")
{
	cl_int err = 1;
	cl_mem mem;
	int fd;

	fixture_reset();
	stub_set(STUB_NATIVE, 1);
	stub_set(STUB_NATIVE_TYPES, row->types);
	if (column->version)
		setenv("CLIMPORT_VERSION", column->version, 1);
	fixture_open();
	fd = fake_dmabuf_create("a", PAGE);
	mem = fix.import(fix.context, row->flags, guarded_dma_buf, &fd, PAGE, &err);
	EXPECT_EQ(err, row->wanted);
	EXPECT_EQ(mem != NULL, !row->wanted);
	EXPECT_EQ(stub_arg("clImportMemoryARM", 1), row->flags);
	EXPECT_EQ(stub_arg("clImportMemoryARM", 2), (uintptr_t)guarded_dma_buf);
	if (mem) {
		fixture_increment(mem);
		cl.clReleaseMemObject(mem);
	}
	close(fd);
	fixture_close();
}
