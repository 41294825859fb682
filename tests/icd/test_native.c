/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Drivers that have the extension themselves, whole or in part.  ANGLE's OpenCL has dma-bufs alone,
 * and refuses none of the sixteen commands.
 */
#include "fixture.h"

#include <unistd.h>

#define PAGE 4096

static const cl_import_properties_arm android[] = { CL_IMPORT_TYPE_ARM, 0x41E2, 0 };
static const cl_import_properties_arm protected[] = { CL_IMPORT_TYPE_ARM,
						      CL_IMPORT_TYPE_DMA_BUF_ARM,
						      CL_IMPORT_TYPE_PROTECTED_ARM, CL_TRUE, 0 };

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
} unknowns[] = { { "android_buffer", android }, { "protected", protected } };

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

TEST(no_tests, "A query of a platform whose driver has both types asks no device.")
{
	unsigned long before;
	char text[512];

	native_open(3);
	before = stub_calls("clGetDeviceInfo");
	EXPECT_EQ(cl.clGetPlatformInfo(fix.platform, CL_PLATFORM_EXTENSIONS, sizeof(text), text,
				       NULL),
		  CL_SUCCESS);
	EXPECT(strstr(text, "cl_arm_import_memory_dma_buf"));
	EXPECT_EQ(stub_calls("clGetDeviceInfo"), before);
	fixture_close();
}
