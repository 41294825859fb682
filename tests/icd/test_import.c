/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver calls of clImportMemoryARM, and drivers with a clImportMemoryARM of the driver's own.
 */
#include "fixture.h"

#include <sys/mman.h>

#include <unistd.h>

static const cl_import_properties_arm host[] = { CL_IMPORT_TYPE_ARM, CL_IMPORT_TYPE_HOST_ARM, 0 };
TEST(host_buffer, "A host import is the driver's buffer over exactly the imported memory.")
{
	unsigned char *memory;
	cl_mem mem;

	fixture_reset();
	fixture_open();
	memory = pages_map(2);
	cl.clReleaseMemObject(fixture_import_host(0, memory, 4096)); /* the self-test runs here */
	mem = fixture_import_host(CL_MEM_READ_ONLY | CL_MEM_HOST_NO_ACCESS, memory + 64, 1000);
	EXPECT_EQ(stub_arg("clCreateBuffer", 0), (uintptr_t)fix.context);
	EXPECT_EQ(stub_arg("clCreateBuffer", 1),
		  CL_MEM_READ_ONLY | CL_MEM_HOST_NO_ACCESS | CL_MEM_USE_HOST_PTR);
	EXPECT_EQ(stub_arg("clCreateBuffer", 2), 1000);
	EXPECT_EQ(stub_arg("clCreateBuffer", 3), (uintptr_t)(memory + 64));
	cl.clReleaseMemObject(mem);
	fixture_close();
}

#ifdef __aarch64__
TEST(tagged, "The driver gets a pointer with a tag as it is.")
{
	uintptr_t tagged;

	fixture_reset();
	fixture_open();
	tagged = (uintptr_t)pages_map(1) | (uintptr_t)0x2a << 56;
	cl.clReleaseMemObject(fixture_import_host(0, (void *)tagged, 4096));
	EXPECT_EQ(stub_arg("clCreateBuffer", 3), tagged);
	fixture_close();
}
#endif

TEST(too_large_for_device, "A size above CL_DEVICE_MAX_MEM_ALLOC_SIZE is CL_INVALID_BUFFER_SIZE.")
{
	const size_t most = 2 * PAGE;
	unsigned char *memory;

	fixture_reset();
	stub_set(STUB_MAX_ALLOC, most);
	fixture_open();
	memory = pages_map(3);
	cl.clReleaseMemObject(fixture_import_host(0, memory, most));
	EXPECT_EQ(fixture_import_error(fix.context, 0, NULL, memory, most + 1),
		  CL_INVALID_BUFFER_SIZE);
	EXPECT_EQ(fix.notices, 1);
	fixture_close();
}

TEST(descriptor_stays,
     "The descriptor stays the application's, and the application may close the descriptor at "
     "once.")
{
	cl_mem mem;
	int fd, fds;

	fixture_reset();
	fixture_open();
	fd = fake_dmabuf_create("a", 4096);
	mem = fixture_import_dmabuf(fd, 4096);
	fixture_increment(mem); /* opens the layer's permanent descriptors */
	cl.clReleaseMemObject(mem);
	EXPECT(process_settles(fixture_is_unmapped, NULL));
	fds = process_count_descriptors();
	mem = fixture_import_dmabuf(fd, 4096);
	EXPECT_EQ(close(fd), 0);
	fixture_increment(mem);
	cl.clReleaseMemObject(mem);
	fds--;
	EXPECT(process_settles(fixture_is_unmapped, NULL));
	EXPECT(process_settles(process_descriptors_at_most, &fds));
	fixture_close();
}

TEST(descriptors_given_back, "A thousand imports and releases leave the descriptors as they were.")
{
	int fd, fds;

	fixture_reset();
	fixture_open();
	fd = fake_dmabuf_create("a", 4096);
	cl.clReleaseMemObject(fixture_import_dmabuf(fd, 4096));
	fds = process_count_descriptors();
	for (int i = 0; i < 1000; i++)
		cl.clReleaseMemObject(fixture_import_dmabuf(fd, 4096));
	EXPECT(process_settles(process_descriptors_at_most, &fds));
	close(fd);
	fixture_close();
}

TEST(native,
     "If the driver has the extension, the driver's own function gets the arguments unchanged.")
{
	unsigned char *memory;
	cl_int err = 1;
	cl_mem mem;
	int fd = 77;

	fixture_reset();
	stub_set(STUB_NATIVE, 1);
	fixture_open();
	memory = pages_map(1);
	mem = fix.import(fix.context, CL_MEM_READ_ONLY, host, memory, 100, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	EXPECT_EQ(stub_calls("clImportMemoryARM"), 1);
	EXPECT_EQ(stub_arg("clImportMemoryARM", 0), (uintptr_t)fix.context);
	EXPECT_EQ(stub_arg("clImportMemoryARM", 1), CL_MEM_READ_ONLY);
	EXPECT_EQ(stub_arg("clImportMemoryARM", 2), (uintptr_t)host);
	EXPECT_EQ(stub_arg("clImportMemoryARM", 3), (uintptr_t)memory);
	EXPECT_EQ(stub_arg("clImportMemoryARM", 4), 100);
	cl.clReleaseMemObject(mem);
	mem = fix.import(fix.context, 0, fixture_dma_buf, &fd, 4096, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	EXPECT_EQ(stub_calls("clImportMemoryARM"), 2);
	cl.clReleaseMemObject(mem);
	EXPECT_EQ(stub_calls("clBuildProgram"), 1); /* by the fixture alone: no self-test has run */
	EXPECT(!fix.import(fix.context, 0, NULL, NULL, 4096, &err));
	EXPECT_EQ(err, CL_INVALID_VALUE);
	fixture_close();
}

TEST(native_unnamed,
     "If a driver reports the extension and has no clImportMemoryARM, imports are refused.")
{
	cl_int err = 1;

	fixture_reset();
	stub_set(STUB_NATIVE, 1);
	fixture_open();
	stub_set(STUB_UNNAMED, 2);
	EXPECT(!fix.import(fix.context, 0, NULL, pages_map(1), 4096, &err));
	EXPECT_EQ(err, CL_INVALID_OPERATION);
	fixture_close();
}

TEST(two_platforms, "One clImportMemoryARM serves all platforms; the context selects the platform.")
{
	cl_platform_id platforms[2];
	cl_device_id device;
	cl_context context;
	cl_int err = 1;
	cl_mem mem;

	fixture_reset();
	stub_set(STUB_PLATFORMS, 2);
	stub_set(STUB_NATIVE, 2);
	fixture_open();
	EXPECT_EQ(cl.clGetPlatformIDs(2, platforms, NULL), CL_SUCCESS);
	EXPECT_EQ(cl.clGetDeviceIDs(platforms[1], CL_DEVICE_TYPE_ALL, 1, &device, NULL),
		  CL_SUCCESS);
	context = cl.clCreateContext(NULL, 1, &device, NULL, NULL, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	cl.clReleaseMemObject(fixture_import_host(0, pages_map(1), 4096));
	EXPECT_EQ(stub_calls("clImportMemoryARM"), 0);
	mem = fix.import(context, 0, NULL, pages_map(1), 4096, &err);
	EXPECT_EQ(err, CL_SUCCESS);
	EXPECT_EQ(stub_calls("clImportMemoryARM"), 1);
	cl.clReleaseMemObject(mem);
	cl.clReleaseContext(context);
	EXPECT(cl.clGetExtensionFunctionAddressForPlatform(platforms[1], "clImportMemoryARM"));
	fixture_close();
}

TEST(error_pointer, "errcode_ret may be NULL, on success and on failure.")
{
	cl_mem mem;

	fixture_reset();
	fixture_open();
	mem = fix.import(fix.context, 0, NULL, pages_map(1), 4096, NULL);
	EXPECT(mem);
	EXPECT(!fix.import(fix.context, 0, NULL, NULL, 4096, NULL));
	cl.clReleaseMemObject(mem);
	fixture_close();
}

static const struct named {
	const char *name;
	cl_int err;
	cl_mem_flags flags;
	cl_import_properties_arm properties[5];
	size_t size;
	const char *says;
} nameds[] = {
	{ "value_as_property",
	  CL_INVALID_PROPERTY,
	  0,
	  { CL_IMPORT_TYPE_HOST_ARM, 1 },
	  4096,
	  "CL_IMPORT_TYPE_HOST_ARM is no property, but a value of CL_IMPORT_TYPE_ARM" },
	{ "unknown_property",
	  CL_INVALID_PROPERTY,
	  0,
	  { 0x7ead, 1 },
	  4096,
	  "0x7ead is no property of clImportMemoryARM" },
	{ "property_twice",
	  CL_INVALID_PROPERTY,
	  0,
	  { CL_IMPORT_TYPE_ARM, CL_IMPORT_TYPE_HOST_ARM, CL_IMPORT_TYPE_ARM },
	  4096,
	  "CL_IMPORT_TYPE_ARM is given twice" },
	{ "property_as_value",
	  CL_INVALID_PROPERTY,
	  0,
	  { CL_IMPORT_TYPE_ARM, CL_IMPORT_TYPE_PROTECTED_ARM },
	  4096,
	  "CL_IMPORT_TYPE_ARM is CL_IMPORT_TYPE_PROTECTED_ARM, and has to be "
	  "CL_IMPORT_TYPE_HOST_ARM or CL_IMPORT_TYPE_DMA_BUF_ARM" },
	{ "consistency",
	  CL_INVALID_PROPERTY,
	  0,
	  { CL_IMPORT_DMA_BUF_DATA_CONSISTENCY_WITH_HOST_ARM, 5 },
	  4096,
	  "CL_IMPORT_DMA_BUF_DATA_CONSISTENCY_WITH_HOST_ARM is 0x5, and has to be CL_TRUE or "
	  "CL_FALSE" },
	{ "flag",
	  CL_INVALID_VALUE,
	  CL_MEM_READ_ONLY | CL_MEM_ALLOC_HOST_PTR,
	  { 0 },
	  4096,
	  "an import cannot have the flags CL_MEM_ALLOC_HOST_PTR" },
	{ "unknown_flag",
	  CL_INVALID_VALUE,
	  (cl_mem_flags)1 << 40,
	  { 0 },
	  4096,
	  "an import cannot have the flags 0x10000000000" },
	{ "two_flags",
	  CL_INVALID_VALUE,
	  CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY,
	  { 0 },
	  4096,
	  "the flags CL_MEM_WRITE_ONLY | CL_MEM_READ_ONLY exclude each other" },
	{ "whole_allocation",
	  CL_INVALID_BUFFER_SIZE,
	  0,
	  { 0 },
	  CL_IMPORT_MEMORY_WHOLE_ALLOCATION_ARM,
	  "size is CL_IMPORT_MEMORY_WHOLE_ALLOCATION_ARM, which is for Android's hardware "
	  "buffers: other memory needs its size in bytes" },
	{ "negative_size",
	  CL_INVALID_BUFFER_SIZE,
	  0,
	  { 0 },
	  (size_t)-4096,
	  "size 18446744073709547520 is larger than any memory: is it an overflow, or the negative "
	  "number -4096?" },
};

TEST_EACH(named, struct named, nameds, "The message about a wrong argument has names.")
{
	fixture_reset();
	fixture_open();
	EXPECT_EQ(fixture_import_error(fix.context, row->flags, row->properties, pages_map(1),
				       row->size),
		  row->err);
	if (strcmp(fix.notice + strlen("clImportMemoryARM: "), row->says))
		printf("# %s\n", fix.notice);
	EXPECT(!strcmp(fix.notice + strlen("clImportMemoryARM: "), row->says));
	fixture_close();
}

TEST(misaligned_sub_buffer,
     "If the origin of a sub-buffer is misaligned, the message has the origin and the alignment.")
{
	const cl_buffer_region region = { 72000, 320 };
	unsigned char *memory;
	cl_mem mem;
	cl_int err;

	fixture_reset();
	fixture_open();
	memory = pages_map(32);
	mem = fixture_import_host(CL_MEM_READ_ONLY, memory, 32 * PAGE);
	EXPECT(!cl.clCreateSubBuffer(mem, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &err));
	EXPECT_EQ(err, CL_MISALIGNED_SUB_BUFFER_OFFSET);
	EXPECT(!strcmp(fix.notice,
		       "clCreateSubBuffer: CL_MISALIGNED_SUB_BUFFER_OFFSET: the origin 72000 is no "
		       "multiple of 128 bytes, the device's CL_DEVICE_MEM_BASE_ADDR_ALIGN"));
	cl.clReleaseMemObject(mem);
	fixture_close();
}
