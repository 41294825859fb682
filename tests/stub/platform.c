/* SPDX-License-Identifier: Apache-2.0 */
/* Platforms, devices and sub-devices. */
#include "internal.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static struct platform *platforms[2];
static pthread_once_t once = PTHREAD_ONCE_INIT, added = PTHREAD_ONCE_INIT;

/* By the bits of STUB_NATIVE_TYPES. */
static const char *const arm_extensions[] = {
	" cl_arm_import_memory_host",
	" cl_arm_import_memory_dma_buf",
	" cl_arm_import_memory_android_hardware_buffer",
	" cl_arm_import_memory_protected",
};

static const char *arm_extension(bool is_native, unsigned bit)
{
	return is_native && stub_get(STUB_NATIVE_TYPES) >> bit & 1 ? arm_extensions[bit] : "";
}

static struct device *stub_device_create(struct platform *platform, struct device *parent,
					 unsigned index)
{
	struct device *device = object_create(STUB_DEVICE);

	device->platform = platform;
	device->parent = parent;
	device->index = index;
	return device;
}

static void platforms_create(void)
{
	for (unsigned i = 0; i < 2; i++) {
		platforms[i] = object_create(STUB_PLATFORM);
		platforms[i]->index = i;
		for (unsigned d = 0; d < MAX_DEVICES; d++)
			platforms[i]->device[d] = stub_device_create(platforms[i], NULL, d);
	}
}

/* NULL means the first platform; the specification leaves the choice to the driver. */
static struct platform *stub_platform_of(cl_platform_id handle)
{
	pthread_once(&once, platforms_create);
	return handle ? object_get(handle, STUB_PLATFORM) : platforms[0];
}

bool device_option(const struct device *device, enum stub_option option)
{
	while (device->parent)
		device = device->parent;
	return stub_get(option) >> device->index & 1;
}

static bool platform_is_native(const struct platform *platform)
{
	return stub_get(STUB_NATIVE) >> platform->index & 1;
}

static bool device_is_native(const struct device *device)
{
	return platform_is_native(device->platform) && !device_option(device, STUB_NATIVE_LACKING);
}

/* Drivers write into the environment of the program.  What is there already may stay. */
static void stub_add_variable(void)
{
	const char *value = getenv("HWLOC_PLUGINS_PATH");
	char longer[64];

	snprintf(longer, sizeof(longer), "%s+", value ? value : "");
	setenv("HWLOC_PLUGINS_PATH", longer, 1);
}

cl_int CL_API_CALL stub_clGetPlatformIDs(cl_uint num, cl_platform_id *out, cl_uint *num_ret)
{
	cl_uint have = (cl_uint)stub_get(STUB_PLATFORMS);
	cl_int err = CALL(clGetPlatformIDs, U(num), U(out), U(num_ret));

	if (err)
		return err;
	pthread_once(&once, platforms_create);
	if (stub_get(STUB_ADDS_VARIABLE) == 2)
		pthread_once(&added, stub_add_variable);
	if ((out && !num) || (!out && !num_ret))
		return CL_INVALID_VALUE;
	for (cl_uint i = 0; out && i < num && i < have; i++)
		out[i] = (cl_platform_id)platforms[i];
	if (num_ret)
		*num_ret = have;
	return CL_SUCCESS;
}

cl_int CL_API_CALL stub_clIcdGetPlatformIDsKHR(cl_uint num, cl_platform_id *out, cl_uint *num_ret)
{
	return stub_clGetPlatformIDs(num, out, num_ret);
}

cl_int info_put(const void *value, size_t size, size_t room, void *out, size_t *size_ret)
{
	if (out && room < size)
		return CL_INVALID_VALUE;
	if (out && size)
		memcpy(out, value, size);
	if (size_ret)
		*size_ret = size;
	return CL_SUCCESS;
}

static const char command_extensions[] =
	" cl_khr_command_buffer cl_khr_command_buffer_mutable_dispatch";

static const char opaque_extensions[] =
	" cl_khr_device_uuid cl_khr_external_memory cl_khr_external_memory_opaque_fd";

static const char *khr_extensions(void)
{
	switch (stub_get(STUB_KHR_DMABUF)) {
	case STUB_KHR_NONE:
	case STUB_KHR_ELSEWHERE:
		return "";
	case STUB_KHR_UNNAMED:
		return " cl_khr_external_memory";
	}
	return " cl_khr_external_memory cl_khr_external_memory_dma_buf";
}

/* The reporters of extensions: bits of STUB_COMMAND_NAMED. */
enum reporter { BY_DEVICE = 1, BY_PLATFORM = 2 };

static size_t extensions_of(enum reporter by, bool is_native, char *text, size_t room)
{
	return (size_t)snprintf(
		text, room, "cl_khr_icd%s%s%s%s%s%s%s%s%s%s",
		stub_get(STUB_COMMAND_NAMED) & by ? command_extensions : "",
		stub_get(STUB_IMAGE2D_FROM_BUFFER) ? " cl_khr_image2d_from_buffer" : "",
		is_native ? " cl_arm_import_memory" : "", arm_extension(is_native, 0),
		arm_extension(is_native, 1), arm_extension(is_native, 2),
		arm_extension(is_native, 3), stub_get(STUB_OPAQUE) ? opaque_extensions : "",
		khr_extensions(), stub_get(STUB_TRAILING_SPACE) ? " " : "");
}

static cl_int extensions_info(enum reporter by, bool is_native, size_t room, void *out,
			      size_t *size_ret)
{
	char text[512];

	if (by == BY_DEVICE && stub_get(STUB_NATIVE_NAMED))
		return info_put("\x7f\x03\x15", 4, room, out, size_ret);
	return info_put(text, extensions_of(by, is_native, text, sizeof(text)) + 1, room, out,
			size_ret);
}

static cl_version extension_version_of(const char *name)
{
	if (!strcmp(name, "cl_khr_command_buffer"))
		return CL_MAKE_VERSION(0, 9, stub_get(STUB_COMMAND_PROPERTIES) ? 5 : 0);
	if (!strcmp(name, "cl_khr_command_buffer_mutable_dispatch"))
		return CL_MAKE_VERSION(0, 9, stub_get(STUB_COMMAND_ARRAYS) ? 2 : 0);
	return CL_MAKE_VERSION(1, 0, 0);
}

/* The list of extensions with a version for each name. */
static cl_int versions_info(enum reporter by, bool is_native, size_t room, void *out,
			    size_t *size_ret)
{
	cl_name_version list[16];
	char text[512], *save, *name;
	size_t n = 0;

	memset(list, 0, sizeof(list));
	extensions_of(by, is_native, text, sizeof(text));
	for (name = strtok_r(text, " ", &save); name; name = strtok_r(NULL, " ", &save), n++) {
		list[n].version = extension_version_of(name);
		strncpy(list[n].name, name, sizeof(list[n].name) - 1);
	}
	return info_put(list, n * sizeof(*list), room, out, size_ret);
}

cl_int stub_put_name(const char *name, size_t room, void *out, size_t *size_ret)
{
	const char *more = getenv("STUB_TEXT");
	char text[256];

	snprintf(text, sizeof(text), "%s%s", name, more ? more : "");
	return info_put(text, strlen(text) + 1, room, out, size_ret);
}

static cl_int text_info(const char *text, size_t room, void *out, size_t *size_ret)
{
	return info_put(text, strlen(text) + 1, room, out, size_ret);
}

/* With the options: records of drivers with other options are for other platforms. */
static cl_int version_info(size_t room, void *out, size_t *size_ret)
{
	char text[64];

	snprintf(text, sizeof(text), "OpenCL %s stub %s", stub_get(STUB_CL12) ? "1.2" : "3.0",
		 stub_driver_version());
	return stub_put_name(text, room, out, size_ret);
}

cl_int CL_API_CALL stub_clGetPlatformInfo(cl_platform_id handle, cl_platform_info name, size_t room,
					  void *out, size_t *size_ret)
{
	struct platform *platform = stub_platform_of(handle);
	cl_int err = CALL(clGetPlatformInfo, U(handle), U(name), U(room), U(out), U(size_ret));
	cl_version version = stub_get(STUB_CL12) ? CL_MAKE_VERSION(1, 2, 0)
						 : CL_MAKE_VERSION(3, 0, 0);

	if (err)
		return err;
	if (!platform)
		return CL_INVALID_PLATFORM;
	switch (name) {
	case CL_PLATFORM_PROFILE:
		return text_info("FULL_PROFILE", room, out, size_ret);
	case CL_PLATFORM_VERSION:
		return version_info(room, out, size_ret);
	case CL_PLATFORM_NAME:
		return stub_put_name(platform->index ? "stub second" : "stub", room, out, size_ret);
	case CL_PLATFORM_VENDOR:
		return text_info("climport tests", room, out, size_ret);
	case CL_PLATFORM_EXTENSIONS:
		return extensions_info(BY_PLATFORM, platform_is_native(platform), room, out,
				       size_ret);
	case CL_PLATFORM_ICD_SUFFIX_KHR:
		return text_info("STUB", room, out, size_ret);
	}
	if (stub_get(STUB_CL12))
		return CL_INVALID_VALUE;
	if (name == CL_PLATFORM_EXTENSIONS_WITH_VERSION)
		return versions_info(BY_PLATFORM, platform_is_native(platform), room, out,
				     size_ret);
	if (name == CL_PLATFORM_NUMERIC_VERSION)
		return info_put(&version, sizeof(version), room, out, size_ret);
	return CL_INVALID_VALUE;
}

cl_int CL_API_CALL stub_clGetDeviceIDs(cl_platform_id handle, cl_device_type type, cl_uint num,
				       cl_device_id *out, cl_uint *num_ret)
{
	struct platform *platform = stub_platform_of(handle);
	cl_uint have = (cl_uint)stub_get(STUB_DEVICES);
	cl_int err = CALL(clGetDeviceIDs, U(handle), U(type), U(num), U(out), U(num_ret));

	if (err)
		return err;
	if (!platform)
		return CL_INVALID_PLATFORM;
	if (stub_get(STUB_ADDS_VARIABLE) == 1)
		pthread_once(&added, stub_add_variable);
	if ((out && !num) || (!out && !num_ret))
		return CL_INVALID_VALUE;
	if (!(type & (CL_DEVICE_TYPE_CPU | CL_DEVICE_TYPE_DEFAULT)))
		have = 0;
	for (cl_uint i = 0; out && i < num && i < have; i++)
		out[i] = (cl_device_id)platform->device[i];
	if (num_ret)
		*num_ret = have;
	return have ? CL_SUCCESS : CL_DEVICE_NOT_FOUND;
}

cl_int device_call_preloaded(const struct device *device, const char *name)
{
	stub_preloaded_fn *preloaded;

	if (!stub_get(STUB_PRELOADED))
		return CL_SUCCESS;
	preloaded = (stub_preloaded_fn *)dlsym(RTLD_DEFAULT, name);
	if (!preloaded)
		abort();
	return preloaded(device->index);
}

cl_int CL_API_CALL stub_clGetDeviceInfo(cl_device_id handle, cl_device_info name, size_t room,
					void *out, size_t *size_ret)
{
	struct device *device = object_get(handle, STUB_DEVICE);
	cl_int err = CALL(clGetDeviceInfo, U(handle), U(name), U(room), U(out), U(size_ret));

	if (err)
		return err;
	if (!device)
		return CL_INVALID_DEVICE;
	if (name == CL_DEVICE_EXTENSIONS) {
		err = device_call_preloaded(device, "stub_preloaded_query");
		return err ? err
			   : extensions_info(BY_DEVICE, device_is_native(device), room, out,
					     size_ret);
	}
	if (name == CL_DEVICE_EXTENSIONS_WITH_VERSION && !stub_get(STUB_CL12))
		return versions_info(BY_DEVICE, device_is_native(device), room, out, size_ret);
	return device_info(device, name, room, out, size_ret);
}

/* Every partition has two halves. */
cl_int CL_API_CALL stub_clCreateSubDevices(cl_device_id handle,
					   const cl_device_partition_property *properties,
					   cl_uint num, cl_device_id *out, cl_uint *num_ret)
{
	struct device *device = object_get(handle, STUB_DEVICE);
	cl_int err = CALL(clCreateSubDevices, U(handle), U(properties), U(num), U(out), U(num_ret));

	if (err)
		return err;
	if (!device)
		return CL_INVALID_DEVICE;
	if (!properties || (out && num < 2))
		return CL_INVALID_VALUE;
	for (unsigned i = 0; out && i < 2; i++) {
		out[i] = (cl_device_id)stub_device_create(device->platform, device, i);
		stub_clRetainDevice(handle);
	}
	if (num_ret)
		*num_ret = 2;
	return CL_SUCCESS;
}

cl_int CL_API_CALL stub_clRetainDevice(cl_device_id handle)
{
	struct device *device = object_get(handle, STUB_DEVICE);

	CALL(clRetainDevice, U(handle));
	if (!device)
		return CL_INVALID_DEVICE;
	if (device->parent)
		object_retain(device);
	return CL_SUCCESS;
}

/* Root devices are not counted. */
cl_int CL_API_CALL stub_clReleaseDevice(cl_device_id handle)
{
	struct device *device = object_get(handle, STUB_DEVICE);
	struct device *parent = device ? device->parent : NULL;

	CALL(clReleaseDevice, U(handle));
	if (!device)
		return CL_INVALID_DEVICE;
	if (!parent || !object_release(device))
		return CL_SUCCESS;
	object_destroy(device);
	return stub_clReleaseDevice((cl_device_id)parent);
}
