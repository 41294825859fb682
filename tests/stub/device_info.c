/* SPDX-License-Identifier: Apache-2.0 */
/* A device's answers to queries: constants, and the few values that options change. */
#include "internal.h"

#include <stdio.h>

static const struct {
	cl_device_info name;
	size_t size;
	uint64_t value;
} numbers[] = {
	{ CL_DEVICE_VENDOR_ID, 4, 0x4711 },
	{ CL_DEVICE_MAX_COMPUTE_UNITS, 4, 2 },
	{ CL_DEVICE_MAX_WORK_ITEM_DIMENSIONS, 4, 3 },
	{ CL_DEVICE_MAX_WORK_GROUP_SIZE, 8, 1024 },
	{ CL_DEVICE_MAX_CLOCK_FREQUENCY, 4, 1000 },
	{ CL_DEVICE_ADDRESS_BITS, 4, 64 },
	{ CL_DEVICE_MAX_READ_IMAGE_ARGS, 4, 8 },
	{ CL_DEVICE_MAX_WRITE_IMAGE_ARGS, 4, 8 },
	{ CL_DEVICE_IMAGE2D_MAX_WIDTH, 8, 8192 },
	{ CL_DEVICE_IMAGE2D_MAX_HEIGHT, 8, 8192 },
	{ CL_DEVICE_IMAGE3D_MAX_WIDTH, 8, 2048 },
	{ CL_DEVICE_IMAGE3D_MAX_HEIGHT, 8, 2048 },
	{ CL_DEVICE_IMAGE3D_MAX_DEPTH, 8, 2048 },
	{ CL_DEVICE_IMAGE_MAX_BUFFER_SIZE, 8, 65536 },
	{ CL_DEVICE_IMAGE_MAX_ARRAY_SIZE, 8, 2048 },
	{ CL_DEVICE_MAX_SAMPLERS, 4, 16 },
	{ CL_DEVICE_MAX_PARAMETER_SIZE, 8, 1024 },
	{ CL_DEVICE_GLOBAL_MEM_CACHE_TYPE, 4, CL_READ_WRITE_CACHE },
	{ CL_DEVICE_GLOBAL_MEM_CACHELINE_SIZE, 4, 64 },
	{ CL_DEVICE_GLOBAL_MEM_CACHE_SIZE, 8, 1 << 20 },
	{ CL_DEVICE_GLOBAL_MEM_SIZE, 8, (uint64_t)1 << 34 },
	{ CL_DEVICE_MAX_CONSTANT_BUFFER_SIZE, 8, 65536 },
	{ CL_DEVICE_MAX_CONSTANT_ARGS, 4, 8 },
	{ CL_DEVICE_LOCAL_MEM_TYPE, 4, CL_GLOBAL },
	{ CL_DEVICE_LOCAL_MEM_SIZE, 8, 65536 },
	{ CL_DEVICE_ERROR_CORRECTION_SUPPORT, 4, CL_FALSE },
	{ CL_DEVICE_PROFILING_TIMER_RESOLUTION, 8, 1 },
	{ CL_DEVICE_ENDIAN_LITTLE, 4, CL_TRUE },
	{ CL_DEVICE_AVAILABLE, 4, CL_TRUE },
	{ CL_DEVICE_COMPILER_AVAILABLE, 4, CL_TRUE },
	{ CL_DEVICE_LINKER_AVAILABLE, 4, CL_FALSE },
	{ CL_DEVICE_QUEUE_ON_HOST_PROPERTIES, 8,
	  CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE | CL_QUEUE_PROFILING_ENABLE },
	{ CL_DEVICE_QUEUE_ON_DEVICE_PROPERTIES, 8, 0 },
	{ CL_DEVICE_SINGLE_FP_CONFIG, 8, CL_FP_ROUND_TO_NEAREST | CL_FP_INF_NAN },
	{ CL_DEVICE_DOUBLE_FP_CONFIG, 8, 0 },
	{ CL_DEVICE_PRINTF_BUFFER_SIZE, 8, 1 << 20 },
	{ CL_DEVICE_PREFERRED_INTEROP_USER_SYNC, 4, CL_TRUE },
	{ CL_DEVICE_PARTITION_MAX_SUB_DEVICES, 4, 2 },
	{ CL_DEVICE_PARTITION_AFFINITY_DOMAIN, 8, 0 },
	{ CL_DEVICE_SVM_CAPABILITIES, 8, 0 },
	{ CL_DEVICE_MAX_PIPE_ARGS, 4, 1 },
	{ CL_DEVICE_NUMERIC_VERSION, 4, CL_MAKE_VERSION(3, 0, 0) },
	{ CL_DEVICE_COMMAND_BUFFER_CAPABILITIES_KHR, 8, 0 },
	{ CL_DEVICE_COMMAND_BUFFER_REQUIRED_QUEUE_PROPERTIES_KHR, 8, 0 },
};

static const struct {
	cl_device_info name;
	const char *text;
} texts[] = {
	{ CL_DEVICE_VENDOR, "climport tests" },
	{ CL_DEVICE_PROFILE, "FULL_PROFILE" },
	{ CL_DEVICE_BUILT_IN_KERNELS, "" },
	{ CL_DEVICE_IL_VERSION, "" },
};

static cl_int constant_info(cl_device_info name, size_t room, void *out, size_t *size_ret)
{
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		if (numbers[i].name == name)
			return info_put(&numbers[i].value, numbers[i].size, room, out, size_ret);
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		if (texts[i].name == name)
			return info_put(texts[i].text, strlen(texts[i].text) + 1, room, out,
					size_ret);
	return CL_INVALID_VALUE;
}

static cl_int image_info(cl_device_info name, size_t room, void *out, size_t *size_ret)
{
	cl_bool supported = !stub_get(STUB_NO_IMAGES);
	cl_uint align = stub_get(STUB_IMAGE2D_FROM_BUFFER) ? 1 : 0;

	if (name == CL_DEVICE_IMAGE_SUPPORT)
		return info_put(&supported, sizeof(supported), room, out, size_ret);
	return info_put(&align, sizeof(align), room, out, size_ret);
}

static cl_int handle_types(size_t room, void *out, size_t *size_ret)
{
	const cl_external_memory_handle_type_khr types[] = {
		CL_EXTERNAL_MEMORY_HANDLE_OPAQUE_FD_KHR, CL_EXTERNAL_MEMORY_HANDLE_DMA_BUF_KHR
	};

	switch (stub_get(STUB_KHR_DMABUF)) {
	case STUB_KHR_WORKS:
	case STUB_KHR_UNNAMED:
		return info_put(types, sizeof(types), room, out, size_ret);
	case STUB_KHR_NO_HANDLE:
		return info_put(types, sizeof(types[0]), room, out, size_ret);
	}
	return CL_INVALID_VALUE;
}

static cl_int parent_info(const struct device *device, size_t room, void *out, size_t *size_ret)
{
	const struct device *parent = device->parent;

	if (!parent && stub_get(STUB_PARENTS) == STUB_PARENTS_SELF)
		parent = device;
	if (!parent && stub_get(STUB_PARENTS) == STUB_PARENTS_CYCLE)
		parent = device->platform->device[!device->index];
	if (!parent && stub_get(STUB_PARENTS) == STUB_PARENTS_NONE)
		return CL_SUCCESS;
	return info_put(&parent, sizeof(void *), room, out, size_ret);
}

cl_int device_info(const struct device *device, cl_device_info name, size_t room, void *out,
		   size_t *size_ret)
{
	static const size_t items[3] = { 1024, 1024, 1024 };
	static const cl_device_partition_property by[1] = { CL_DEVICE_PARTITION_EQUALLY };
	const char *version = stub_get(STUB_CL12) ? "OpenCL 1.2 stub" : "OpenCL 3.0 stub";
	char called[32];
	cl_ulong max_alloc = (cl_ulong)stub_get(STUB_MAX_ALLOC);
	cl_bool unified = !stub_get(STUB_OPAQUE);
	cl_device_type type = stub_get(STUB_GPU) ? CL_DEVICE_TYPE_GPU : CL_DEVICE_TYPE_CPU;
	cl_device_exec_capabilities runs = CL_EXEC_KERNEL;
	unsigned char uuid[16];
	cl_uint refs = device->parent ? (cl_uint)device->base.refs : 1;
	cl_uint part_bits =
		(device_option(device, STUB_PART_AT_PAGE) ? (cl_uint)STUB_PAGE : BASE_ALIGN) * 8;

	if (!stub_get(STUB_NO_NATIVE_KERNEL))
		runs |= CL_EXEC_NATIVE_KERNEL;
	switch (name) {
	case CL_DEVICE_TYPE:
		return info_put(&type, sizeof(type), room, out, size_ret);
	case CL_DEVICE_EXECUTION_CAPABILITIES:
		return info_put(&runs, sizeof(runs), room, out, size_ret);
	case CL_DEVICE_HOST_UNIFIED_MEMORY:
		return info_put(&unified, sizeof(unified), room, out, size_ret);
	case CL_DEVICE_UUID_KHR:
		if (unified)
			return CL_INVALID_VALUE;
		stub_uuid(device->index, uuid);
		return info_put(uuid, sizeof(uuid), room, out, size_ret);
	case CL_DEVICE_EXTERNAL_MEMORY_IMPORT_HANDLE_TYPES_KHR:
		return handle_types(room, out, size_ret);
	case CL_DEVICE_NAME:
		snprintf(called, sizeof(called), "stub device %u", device->index);
		return stub_put_name(called, room, out, size_ret);
	case CL_DRIVER_VERSION:
		return stub_put_name(stub_driver_version(), room, out, size_ret);
	case CL_DEVICE_VERSION:
		return info_put(version, strlen(version) + 1, room, out, size_ret);
	case CL_DEVICE_OPENCL_C_VERSION:
		return info_put("OpenCL C 1.2 stub", sizeof("OpenCL C 1.2 stub"), room, out,
				size_ret);
	case CL_DEVICE_PLATFORM:
		return info_put(&device->platform, sizeof(void *), room, out, size_ret);
	case CL_DEVICE_PARENT_DEVICE:
		return parent_info(device, room, out, size_ret);
	case CL_DEVICE_REFERENCE_COUNT:
		return info_put(&refs, sizeof(refs), room, out, size_ret);
	case CL_DEVICE_MEM_BASE_ADDR_ALIGN:
		return info_put(&part_bits, sizeof(part_bits), room, out, size_ret);
	case CL_DEVICE_MAX_MEM_ALLOC_SIZE:
		return info_put(&max_alloc, sizeof(max_alloc), room, out, size_ret);
	case CL_DEVICE_MAX_WORK_ITEM_SIZES:
		return info_put(items, sizeof(items), room, out, size_ret);
	case CL_DEVICE_PARTITION_PROPERTIES:
	case CL_DEVICE_PARTITION_TYPE:
		return info_put(by, sizeof(by), room, out, size_ret);
	case CL_DEVICE_IMAGE_SUPPORT:
	case CL_DEVICE_IMAGE_PITCH_ALIGNMENT:
	case CL_DEVICE_IMAGE_BASE_ADDRESS_ALIGNMENT:
		return image_info(name, room, out, size_ret);
	}
	return constant_info(name, room, out, size_ret);
}
