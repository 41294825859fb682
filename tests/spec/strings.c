/* SPDX-License-Identifier: Apache-2.0 */
/* Name strings, the extension's type, and how the function is found. */
#include "kernels.h"
#include "text.h"

static const char *const type_strings[] = {
	"cl_arm_import_memory_host",
	"cl_arm_import_memory_dma_buf",
	"cl_arm_import_memory_protected",
	"cl_arm_import_memory_android_hardware_buffer",
};

static bool names_a_type(const char *list)
{
	for (size_t i = 0; i < sizeof(type_strings) / sizeof(type_strings[0]); i++)
		if (text_count_word(list, type_strings[i]))
			return true;
	return false;
}

TEST(base_name_of_devices, "R6-01 cl_arm_import_memory will be reported if at least one of the "
			   "other extension strings is also reported.")
{
	cl_device_id devices[64], tested = spec.device;
	cl_uint count = 0;
	bool right = true;

	EXPECT_EQ(clGetDeviceIDs(spec.platform, CL_DEVICE_TYPE_ALL, 64, devices, &count),
		  CL_SUCCESS);
	for (cl_uint i = 0; i < count && i < 64; i++) {
		char *list;

		spec.device = devices[i];
		list = device_extensions();
		right &= !names_a_type(list) || text_count_word(list, "cl_arm_import_memory");
		free(list);
	}
	spec.device = tested;
	EXPECT(right);
}

TEST(base_name_of_platform, "R6-01 cl_arm_import_memory will be reported if at least one of the "
			    "other extension strings is also reported.")
{
	char *list = platform_extensions();

	spec_undo_later(free, list);
	EXPECT(!names_a_type(list) || text_count_word(list, "cl_arm_import_memory"));
}

TEST(device_string_has_its_size, "R6-02 OpenCL device extension")
{
	char *list = device_extensions();
	size_t size = 0;

	spec_undo_later(free, list);
	EXPECT(text_count_word(list, "cl_arm_import_memory"));
	EXPECT_EQ(clGetDeviceInfo(spec.device, CL_DEVICE_EXTENSIONS, 0, NULL, &size), CL_SUCCESS);
	EXPECT_EQ(size, strlen(list) + 1);
	EXPECT_EQ(clGetDeviceInfo(spec.device, CL_DEVICE_EXTENSIONS, size - 1, list, NULL),
		  CL_INVALID_VALUE);
}

static const struct extension {
	const char *name;
	const char *string;
} extensions[] = {
	{ "base", "cl_arm_import_memory" },
	{ "host", "cl_arm_import_memory_host" },
	{ "dma_buf", "cl_arm_import_memory_dma_buf" },
	{ "protected", "cl_arm_import_memory_protected" },
	{ "android_hardware_buffer", "cl_arm_import_memory_android_hardware_buffer" },
};

/* The list with versions contains a name once if the string contains the name, and else never. */
TEST_EACH(device_list_with_versions_agrees, struct extension, extensions,
	  "R6-02 OpenCL device extension")
{
	cl_name_version *list;
	size_t size = 0, found = 0;

	if (spec.device_version < CL_MAKE_VERSION(3, 0, 0) &&
	    clGetDeviceInfo(spec.device, CL_DEVICE_EXTENSIONS_WITH_VERSION, 0, NULL, &size))
		test_skip("device has no list of extensions with versions");
	EXPECT_EQ(clGetDeviceInfo(spec.device, CL_DEVICE_EXTENSIONS_WITH_VERSION, 0, NULL, &size),
		  CL_SUCCESS);
	list = calloc(1, size);
	spec_undo_later(free, list);
	EXPECT_EQ(clGetDeviceInfo(spec.device, CL_DEVICE_EXTENSIONS_WITH_VERSION, size, list, NULL),
		  CL_SUCCESS);
	for (size_t i = 0; i < size / sizeof(*list); i++)
		found += !strcmp(list[i].name, row->string);
	EXPECT_EQ(found, spec_device_reports(row->string));
}

TEST_EACH(device_string_names_once, struct extension, extensions, "R6-02 OpenCL device extension")
{
	char *list = device_extensions();

	spec_undo_later(free, list);
	EXPECT(text_count_word(list, row->string) <= 1);
}

/* The name means that the memory is taken: a type that is not taken is CL_INVALID_PROPERTY. */
TEST(android_is_no_idle_word,
     "R6-08 Types of memory supported for import are specified as additional extension strings.")
{
	const cl_import_properties_arm list[] = { CL_IMPORT_TYPE_ARM,
						  CL_IMPORT_TYPE_ANDROID_HARDWARE_BUFFER_ARM, 0 };

	if (!spec.has_android)
		test_skip("device does not report cl_arm_import_memory_android_hardware_buffer");
	EXPECT_EQ(spec_import_error(CL_MEM_READ_WRITE, list, NULL, spec.page), CL_INVALID_VALUE);
}

TEST(protected_is_no_idle_word,
     "R6-08 Types of memory supported for import are specified as additional extension strings.")
{
	const cl_import_properties_arm list[] = { CL_IMPORT_TYPE_ARM, CL_IMPORT_TYPE_DMA_BUF_ARM,
						  CL_IMPORT_TYPE_PROTECTED_ARM, CL_TRUE, 0 };

	if (!spec.has_protected)
		test_skip("device does not report cl_arm_import_memory_protected");
	EXPECT_EQ(spec_import_error(CL_MEM_HOST_NO_ACCESS, list, NULL, spec.page),
		  CL_INVALID_VALUE);
}

TEST(version_is_known, "R6-02 OpenCL device extension")
{
	EXPECT(spec.version == CL_MAKE_VERSION(1, 0, 0) || spec.version == VERSION_1_1_0);
}

static bool is_of_the_extension(const char *name)
{
	return !strncmp(name, "cl_arm_import_memory", strlen("cl_arm_import_memory"));
}

static void expect_one_version(const cl_name_version *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (is_of_the_extension(list[i].name))
			EXPECT_EQ(list[i].version, spec.version);
}

/* The names of the types have the version of the extension, on the device and on the platform. */
TEST(versions_agree, "R6-02 OpenCL device extension")
{
	cl_name_version *list;
	size_t size = 0;

	if (clGetDeviceInfo(spec.device, CL_DEVICE_EXTENSIONS_WITH_VERSION, 0, NULL, &size))
		test_skip("device has no list of extensions with versions");
	list = calloc(1, size);
	spec_undo_later(free, list);
	EXPECT_EQ(clGetDeviceInfo(spec.device, CL_DEVICE_EXTENSIONS_WITH_VERSION, size, list, NULL),
		  CL_SUCCESS);
	expect_one_version(list, size / sizeof(*list));
	if (clGetPlatformInfo(spec.platform, CL_PLATFORM_EXTENSIONS_WITH_VERSION, 0, NULL, &size))
		return;
	list = calloc(1, size);
	spec_undo_later(free, list);
	EXPECT_EQ(clGetPlatformInfo(spec.platform, CL_PLATFORM_EXTENSIONS_WITH_VERSION, size, list,
				    NULL),
		  CL_SUCCESS);
	expect_one_version(list, size / sizeof(*list));
}

static void strings_expect_works(import_function function)
{
	unsigned char *memory = spec_map_pages(1);
	cl_int error = 1;
	cl_mem mem;

	need_host();
	mem = released_later(
		function(spec.context, CL_MEM_READ_WRITE, NULL, memory, spec.page, &error));
	EXPECT_EQ(error, CL_SUCCESS);
	expect_shared(mem, memory, spec.page);
}

TEST(function_by_platform, "R6-05 This extension adds a new function that allows for direct memory "
			   "import into OpenCL via the clImportMemoryARM function.")
{
	void *address =
		clGetExtensionFunctionAddressForPlatform(spec.platform, "clImportMemoryARM");
	void *again = clGetExtensionFunctionAddressForPlatform(spec.platform, "clImportMemoryARM");

	EXPECT(address != NULL);
	EXPECT(again == address);
	strings_expect_works(as_import_function(address));
}

/* A loader finds the function of platforms with the extension suffix ARM. */
TEST(function_without_platform, "R6-05 This extension adds a new function that allows for direct "
				"memory import into OpenCL via the clImportMemoryARM function.")
{
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
	void *address = clGetExtensionFunctionAddress("clImportMemoryARM");
#pragma GCC diagnostic pop

	EXPECT_EXACT(address != NULL, 1);
	if (!address)
		test_skip("the loader does not find the function without the platform");
	strings_expect_works(as_import_function(address));
}

TEST(one_type_at_least,
     "R6-08 Types of memory supported for import are specified as additional extension strings.")
{
	char *list = device_extensions();

	spec_undo_later(free, list);
	EXPECT(names_a_type(list));
}

static void expect_no_type(cl_import_properties_arm type, void *memory)
{
	const cl_import_properties_arm properties[] = { CL_IMPORT_TYPE_ARM, type, 0 };

	EXPECT_EXACT(spec_import_error(CL_MEM_READ_WRITE, properties, memory, spec.page),
		     CL_INVALID_PROPERTY);
}

TEST(no_string_no_host_import,
     "R6-08 Types of memory supported for import are specified as additional extension strings.")
{
	if (spec.has_host)
		test_skip("device reports cl_arm_import_memory_host");
	expect_no_type(CL_IMPORT_TYPE_HOST_ARM, spec_map_pages(1));
}

TEST(no_string_no_dma_buf_import,
     "R6-08 Types of memory supported for import are specified as additional extension strings.")
{
	int fd = -1;

	if (spec.has_dma_buf)
		test_skip("device reports cl_arm_import_memory_dma_buf");
	expect_no_type(CL_IMPORT_TYPE_DMA_BUF_ARM, &fd);
}

TEST(no_string_no_android_import,
     "R6-08 Types of memory supported for import are specified as additional extension strings.")
{
	if (spec.has_android)
		test_skip("device reports cl_arm_import_memory_android_hardware_buffer");
	expect_no_type(CL_IMPORT_TYPE_ANDROID_HARDWARE_BUFFER_ARM, spec_map_pages(1));
}

/* The prototype is tested by a call with the arguments of the text. */
TEST(error_code_is_optional,
     "R6-09 cl_mem clImportMemoryARM( cl_context context, "
     "cl_mem_flags flags, const cl_import_properties_arm *properties, void *memory, size_t size, "
     "cl_int *errorcode_ret );")
{
	cl_mem mem;

	need_host();
	mem = released_later(spec.import(spec.context, CL_MEM_READ_WRITE, NULL, spec_map_pages(1),
					 spec.page, NULL));
	EXPECT(mem != NULL);
}
