/* SPDX-License-Identifier: Apache-2.0 */
/* What a device and a platform report of cl_khr_external_memory. */
#include "external.h"
#include "text.h"

enum { TYPES = 64 };

/* A list of handle types. */
struct types {
	cl_external_memory_handle_type_khr type[TYPES];
	size_t count;
};

static bool types_have(const struct types *types, cl_external_memory_handle_type_khr type)
{
	for (size_t i = 0; i < types->count; i++)
		if (types->type[i] == type)
			return true;
	return false;
}

static bool types_are_in(const struct types *some, const struct types *all)
{
	for (size_t i = 0; i < some->count; i++)
		if (!types_have(all, some->type[i]))
			return false;
	return true;
}

/* The answer to a query of a device, with the size that the query tells before. */
static struct types types_of_device(cl_device_id device, cl_device_info what)
{
	struct types types = { .count = 0 };
	size_t size = 0, again = 0;

	EXPECT_EQ(clGetDeviceInfo(device, what, 0, NULL, &size), CL_SUCCESS);
	EXPECT(size % sizeof(types.type[0]) == 0 && size <= sizeof(types.type));
	if (!size)
		return types;
	EXPECT_EQ(clGetDeviceInfo(device, what, size, types.type, &again), CL_SUCCESS);
	EXPECT_EQ(again, size);
	EXPECT_EQ(clGetDeviceInfo(device, what, size - 1, types.type, NULL), CL_INVALID_VALUE);
	types.count = size / sizeof(types.type[0]);
	return types;
}

static struct types types_linear(void)
{
	if (spec.external_version < CL_MAKE_VERSION(0, 9, 3))
		test_skip("only from version 0.9.3 of cl_khr_external_memory");
	return types_of_device(
		spec.device,
		CL_DEVICE_EXTERNAL_MEMORY_IMPORT_ASSUME_LINEAR_IMAGES_HANDLE_TYPES_KHR);
}

void external_need_linear(void)
{
	const struct types linear = types_linear();

	if (!types_have(&linear, CL_EXTERNAL_MEMORY_HANDLE_DMA_BUF_KHR))
		test_skip("the device does not assume that images of dma-bufs are linear");
}

static struct types types_of_platform(void)
{
	const cl_platform_info what = CL_PLATFORM_EXTERNAL_MEMORY_IMPORT_HANDLE_TYPES_KHR;
	struct types types = { .count = 0 };
	size_t size = 0;

	EXPECT_EQ(clGetPlatformInfo(spec.platform, what, 0, NULL, &size), CL_SUCCESS);
	EXPECT(size % sizeof(types.type[0]) == 0 && size <= sizeof(types.type));
	if (size)
		EXPECT_EQ(clGetPlatformInfo(spec.platform, what, size, types.type, NULL),
			  CL_SUCCESS);
	types.count = size / sizeof(types.type[0]);
	return types;
}

static cl_uint types_list_devices(cl_device_id devices[TYPES])
{
	cl_uint count = 0;

	EXPECT_EQ(clGetDeviceIDs(spec.platform, CL_DEVICE_TYPE_ALL, TYPES, devices, &count),
		  CL_SUCCESS);
	return count < TYPES ? count : TYPES;
}

/* NULL, or the list of a device of the platform, if the device reports the extension. */
static const struct types *types_next(cl_device_id device)
{
	const cl_device_id tested = spec.device;
	static struct types types;
	bool reports;

	spec.device = device;
	reports = spec_device_reports("cl_khr_external_memory");
	spec.device = tested;
	if (!reports)
		return NULL;
	types = types_of_device(device, CL_DEVICE_EXTERNAL_MEMORY_IMPORT_HANDLE_TYPES_KHR);
	return &types;
}

TEST(external_names, "K-01 cl_khr_external_memory defines a generic mechanism to share buffer and "
		     "image objects between OpenCL and many other APIs")
{
	EXPECT(spec_device_reports("cl_khr_external_memory"));
	EXPECT(spec_device_reports("cl_khr_external_memory_dma_buf"));
}

TEST_EACH(external_function_to, struct edge, external_edges,
	  "K-03 Routines to explicitly hand off memory ownership between OpenCL and other APIs.")
{
	EXPECT(external_function(row) != NULL);
}

static const struct external_name {
	const char *name, *string;
} external_names[] = { { "memory", "cl_khr_external_memory" },
		       { "dma_buf", "cl_khr_external_memory_dma_buf" } };

/* 0.9.0 is the first version of the text. */
TEST_EACH(external_version_of, struct external_name, external_names,
	  "K-05 Revision 1.0.0, 2024-03-15: First non-experimental version.")
{
	cl_name_version list[512];
	size_t size = 0;
	unsigned int found = 0;

	if (clGetDeviceInfo(spec.device, CL_DEVICE_EXTENSIONS_WITH_VERSION, sizeof(list), list,
			    &size))
		test_skip("device has no list of extensions with versions");
	for (size_t i = 0; i < size / sizeof(list[0]); i++) {
		if (strcmp(list[i].name, row->string))
			continue;
		found++;
		EXPECT(list[i].version >= CL_MAKE_VERSION(0, 9, 0));
		EXPECT(list[i].version < CL_MAKE_VERSION(2, 0, 0));
	}
	EXPECT_EQ(found, 1);
}

TEST(external_types_of_the_device,
     "K-07 CL_DEVICE_EXTERNAL_MEMORY_IMPORT_HANDLE_TYPES_KHR: Returns the list of importable "
     "external memory handle types supported by device.")
{
	const struct types *types = types_next(spec.device);

	EXPECT(types && types_have(types, CL_EXTERNAL_MEMORY_HANDLE_DMA_BUF_KHR));
}

TEST(external_types_of_a_device,
     "K-08 Must return a non-empty list of external memory handle types for at least one of the "
     "devices in the platform.")
{
	cl_device_id devices[TYPES];
	const cl_uint count = types_list_devices(devices);
	size_t most = 0;

	for (cl_uint i = 0; i < count; i++) {
		const struct types *types = types_next(devices[i]);

		if (types && types->count > most)
			most = types->count;
	}
	EXPECT(most > 0);
}

/* A type is in the platform's list if, and only if, it is in the list of each device. */
TEST(external_types_of_the_platform,
     "K-06 CL_PLATFORM_EXTERNAL_MEMORY_IMPORT_HANDLE_TYPES_KHR: Returns the list of importable "
     "external memory handle types supported by all devices in platform.")
{
	struct types platform = types_of_platform(), common;
	cl_device_id devices[TYPES];
	const cl_uint count = types_list_devices(devices);

	common = *types_next(spec.device);
	for (cl_uint i = 0; i < count; i++) {
		const struct types *types = types_next(devices[i]);

		EXPECT(types ? types_are_in(&platform, types) : !platform.count);
		for (size_t t = 0; t < common.count; t++)
			if (!types || !types_have(types, common.type[t]))
				common.type[t--] = common.type[--common.count];
	}
	EXPECT(types_are_in(&common, &platform));
}

TEST(external_types_linear,
     "K-10 This list contains a subset of CL_DEVICE_EXTERNAL_MEMORY_IMPORT_HANDLE_TYPES_KHR.")
{
	const struct types linear = types_linear();
	const struct types *all = types_next(spec.device);

	EXPECT(all && types_are_in(&linear, all));
}
