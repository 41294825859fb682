/* SPDX-License-Identifier: Apache-2.0 */
/* Picks the platform, device, context and queue, and finds the function. */
#include <dlfcn.h>
#include <unistd.h>

#include "spec.h"
#include "substitute.h"
#include "text.h"
#include "tools/arguments.h"

#define EXTENSION "cl_arm_import_memory"
#define EXTERNAL "cl_khr_external_memory"

struct spec spec;

/* A string may be longer than the driver says, which a test notices. */
enum { ROOM_BEHIND = 4096 };

static char *spec_device_string(cl_device_info what)
{
	size_t size = 0;
	char *text;

	if (clGetDeviceInfo(spec.device, what, 0, NULL, &size))
		return calloc(1, 1);
	text = calloc(1, size + ROOM_BEHIND);
	clGetDeviceInfo(spec.device, what, size + ROOM_BEHIND - 1, text, NULL);
	return text;
}

static char *spec_platform_string(cl_platform_info what)
{
	size_t size = 0;
	char *text;

	if (clGetPlatformInfo(spec.platform, what, 0, NULL, &size))
		return calloc(1, 1);
	text = calloc(1, size + 1);
	clGetPlatformInfo(spec.platform, what, size, text, NULL);
	return text;
}

char *device_extensions(void)
{
	return spec_device_string(CL_DEVICE_EXTENSIONS);
}

char *platform_extensions(void)
{
	return spec_platform_string(CL_PLATFORM_EXTENSIONS);
}

bool spec_device_reports(const char *extension)
{
	char *list = device_extensions();
	bool found = text_count_word(list, extension);

	free(list);
	return found;
}

cl_ulong device_number(cl_device_info what)
{
	cl_ulong value = 0; /* all machines with OpenCL are little-endian */
	size_t size = 0;

	if (clGetDeviceInfo(spec.device, what, 0, NULL, &size) || size > sizeof(value) ||
	    clGetDeviceInfo(spec.device, what, size, &value, NULL))
		return 0;
	return value;
}

/* Platforms before OpenCL 3.0 have no such query: their extension is 1.0.0. */
static cl_version spec_extension_version(const char *name)
{
	cl_version version = CL_MAKE_VERSION(1, 0, 0);
	cl_name_version *list;
	size_t size = 0;

	if (clGetDeviceInfo(spec.device, CL_DEVICE_EXTENSIONS_WITH_VERSION, 0, NULL, &size))
		return version;
	list = malloc(size + 1);
	if (clGetDeviceInfo(spec.device, CL_DEVICE_EXTENSIONS_WITH_VERSION, size, list, NULL))
		size = 0;
	for (size_t i = 0; i < size / sizeof(*list); i++)
		if (!strcmp(list[i].name, name))
			version = list[i].version;
	free(list);
	return version;
}

/* Any name that begins so: a driver of Arm's extension without the base name is tested, and fails. */
static bool spec_device_names(const char *beginning)
{
	char *list = device_extensions();
	bool found = strstr(list, beginning);

	free(list);
	return found;
}

/* Khronos' dma-bufs, by the name or, as Intel's NEO, by the type alone: that driver is tested, and fails. */
static bool spec_device_imports(void)
{
	cl_external_memory_handle_type_khr types[64];
	size_t size = 0;

	if (spec_device_reports(EXTERNAL "_dma_buf"))
		return true;
	if (!spec_device_reports(EXTERNAL) ||
	    clGetDeviceInfo(spec.device, CL_DEVICE_EXTERNAL_MEMORY_IMPORT_HANDLE_TYPES_KHR,
			    sizeof(types), types, &size))
		return false;
	for (size_t i = 0; i < size / sizeof(types[0]); i++)
		if (types[i] == CL_EXTERNAL_MEMORY_HANDLE_DMA_BUF_KHR)
			return true;
	return false;
}

static cl_version spec_opencl_version(void)
{
	char *text = spec_device_string(CL_DEVICE_VERSION);
	unsigned int major = 1, minor = 0;

	sscanf(text, "OpenCL %u.%u", &major, &minor);
	free(text);
	return CL_MAKE_VERSION(major, minor, 0);
}

static void spec_set_name(char *to, size_t room, char *from)
{
	snprintf(to, room, "%s", from);
	free(from);
}

static void spec_describe_device(void)
{
	spec_set_name(spec.platform_name, sizeof(spec.platform_name),
		      spec_platform_string(CL_PLATFORM_NAME));
	spec_set_name(spec.device_name, sizeof(spec.device_name),
		      spec_device_string(CL_DEVICE_NAME));
	spec_set_name(spec.driver_version, sizeof(spec.driver_version),
		      spec_device_string(CL_DRIVER_VERSION));
	spec.device_version = spec_opencl_version();
	spec.version = spec_extension_version(EXTENSION);
	spec.external_version = spec_extension_version(EXTERNAL);
	spec.has_arm = spec_device_names(EXTENSION);
	spec.has_external = spec_device_imports();
	spec.has_host = spec_device_reports(EXTENSION "_host");
	spec.has_dma_buf = spec_device_reports(EXTENSION "_dma_buf");
	spec.has_protected = spec_device_reports(EXTENSION "_protected");
	spec.has_android = spec_device_reports(EXTENSION "_android_hardware_buffer");
	spec.cache_line = device_number(CL_DEVICE_GLOBAL_MEM_CACHELINE_SIZE);
	if (!spec.cache_line)
		spec.cache_line = 64;
}

/* Takes the first device of spec.platform that @wanted names; false: there is none. */
static bool spec_take_device(const char *wanted)
{
	cl_device_id devices[64];
	cl_uint count = 0;

	if (clGetDeviceIDs(spec.platform, CL_DEVICE_TYPE_ALL, 64, devices, &count))
		return false;
	for (cl_uint i = 0; i < count && i < 64; i++) {
		spec.device = devices[i];
		spec_set_name(spec.device_name, sizeof(spec.device_name),
			      spec_device_string(CL_DEVICE_NAME));
		if (!option_names(wanted, i, spec.device_name))
			continue;
		spec_describe_device();
		return true;
	}
	return false;
}

/* No device is the one that was asked for. */
static void spec_explain_choice(const struct run *run, char *why, size_t size)
{
	if (run->platform && run->device)
		snprintf(why, size,
			 "no OpenCL platform has the number or name '%s', and a device '%s'",
			 run->platform, run->device);
	else if (run->device)
		snprintf(why, size, "no OpenCL device has the number or name '%s'", run->device);
	else if (run->platform)
		snprintf(why, size, "no OpenCL platform with a device has the number or name '%s'",
			 run->platform);
	else
		snprintf(why, size, "no OpenCL platform has a device");
}

/* Takes the first of @platforms with the name, the device and an extension.  NULL, or why not. */
static const char *spec_take_platform(const cl_platform_id *platforms, cl_uint count,
				      const struct run *run, enum nothing *kind)
{
	static char why[200];

	*kind = run->platform || run->device ? NOTHING_NAMED : NOTHING_TO_TEST;
	spec_explain_choice(run, why, sizeof(why));
	for (cl_uint i = 0; i < count; i++) {
		spec.platform = platforms[i];
		spec_set_name(spec.platform_name, sizeof(spec.platform_name),
			      spec_platform_string(CL_PLATFORM_NAME));
		if (!option_names(run->platform, i, spec.platform_name) ||
		    !spec_take_device(run->device))
			continue;
		if (run->plain || spec.has_arm || spec.has_external)
			return NULL;
		*kind = NOTHING_TO_TEST;
		snprintf(why, sizeof(why), "platform does not report " EXTENSION);
	}
	return why;
}

/* Loaders report an error, or no platform, if there is no driver. */
static const char *spec_find_platform(const struct run *run, enum nothing *kind)
{
	cl_platform_id platforms[64];
	cl_uint count = 0;

	if (clGetPlatformIDs(64, platforms, &count) || !count) {
		*kind = NOTHING_TO_TEST;
		return "there is no OpenCL platform";
	}
	return spec_take_platform(platforms, count < 64 ? count : 64, run, kind);
}

import_function as_import_function(void *address)
{
	import_function function; /* ISO C has no cast from void * to a function */

	memcpy(&function, &address, sizeof(function));
	return function;
}

static void CL_CALLBACK spec_count_notice(const char *text, const void *info, size_t size,
					  void *user)
{
	(void)info;
	(void)size;
	(void)user;
	if (text && *text)
		atomic_fetch_add(&spec.notices, 1);
}

static const char *spec_open_context(void)
{
	const cl_context_properties properties[] = { CL_CONTEXT_PLATFORM,
						     (cl_context_properties)spec.platform, 0 };
	cl_int error;

	spec.context =
		clCreateContext(properties, 1, &spec.device, spec_count_notice, NULL, &error);
	if (!spec.context)
		return "clCreateContext fails";
	spec.queue = clCreateCommandQueue(spec.context, spec.device, 0, &error);
	return spec.queue ? NULL : "clCreateCommandQueue fails";
}

/* The function of the driver or layer. */
static import_function found_import;

static cl_mem CL_API_CALL spec_import_noted(cl_context context, cl_mem_flags flags,
					    const cl_import_properties_arm *properties,
					    void *memory, size_t size, cl_int *error)
{
	cl_int unknown = 1;
	cl_mem mem;

	opencl_enter(OPENCL_clImportMemoryARM, true);
	mem = found_import(context, flags, properties, memory, size, error);
	opencl_leave(OPENCL_clImportMemoryARM, mem ? CL_SUCCESS : error ? *error : unknown);
	return mem;
}

/* Libraries before OpenCL 1.2 have one function for all platforms. */
static void find_function(bool plain)
{
	const char *name = "clImportMemoryARM";

	found_import = as_import_function(
		opencl.clGetExtensionFunctionAddressForPlatform
			? clGetExtensionFunctionAddressForPlatform(spec.platform, name)
			: clGetExtensionFunctionAddress(name));
	if (plain) {
		found_import = substitute_import;
		spec.version = VERSION_1_1_0;
		spec.has_arm = spec.has_host = spec.has_dma_buf = spec.has_external = true;
	}
	spec.import = found_import ? spec_import_noted : NULL;
}

static const char *spec_open_library(const char *library, enum nothing *kind)
{
	static char why[400], reason[300];

	if (opencl_open(library, reason, sizeof(reason)))
		return NULL;
	*kind = NOTHING_OPENED;
	snprintf(why, sizeof(why), "OpenCL cannot be used: %s", reason);
	return why;
}

const char *spec_open(const struct run *run, enum nothing *kind)
{
	const char *exact = getenv("CLIMPORT_CONFORM_EXACT");
	const char *why = spec_open_library(run->library, kind);

	spec.exact = exact && !strcmp(exact, "1");
	spec.is_plain = run->plain;
	spec.page = sysconf(_SC_PAGESIZE);
	spec.protected_heap = run->protected_heap;
	if (!why)
		why = spec_find_platform(run, kind);
	if (why)
		return why;
	find_function(run->plain);
	*kind = NOTHING_OPENED;
	return spec_open_context();
}

void spec_close(void)
{
	if (spec.queue)
		clReleaseCommandQueue(spec.queue);
	if (spec.context)
		clReleaseContext(spec.context);
}

const char *spec_implementation(void)
{
	Dl_info file;
	void *address;

	memcpy(&address, &found_import, sizeof(address));
	if (!address || !dladdr(address, &file) || !file.dli_fname)
		return "native";
	return strstr(file.dli_fname, "CLImportMemoryLayer") ? "layer" : "native";
}
