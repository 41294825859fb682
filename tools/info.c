/* SPDX-License-Identifier: Apache-2.0 */
#include "info.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <CL/cl_ext.h>

#include "arguments.h"
#include "kernel_cache.h"
#include "paths.h"
#include "terminal.h"

#define MAX_PLATFORMS 64
#define MAX_DEVICES 256

static const cl_uint import_types[INFO_TYPES] = { CL_IMPORT_TYPE_HOST_ARM,
						  CL_IMPORT_TYPE_DMA_BUF_ARM };

struct info_options {
	const char *platform, *device; /* a number, or a part of the name; NULL: all */
	const struct info_form *form;
};

static void info_read_extension(cl_device_id id, struct info_device *device)
{
	char extensions[16384] = "";
	cl_name_version list[512];
	size_t size = 0;

	clGetDeviceInfo(id, CL_DEVICE_EXTENSIONS, sizeof(extensions), extensions, NULL);
	device->reports = strstr(extensions, "cl_arm_import_memory");
	if (clGetDeviceInfo(id, CL_DEVICE_EXTENSIONS_WITH_VERSION, sizeof(list), list, &size))
		return;
	for (size_t i = 0; i < size / sizeof(list[0]); i++)
		if (!strcmp(list[i].name, "cl_arm_import_memory"))
			snprintf(device->extension, sizeof(device->extension), "%u.%u.%u",
				 CL_VERSION_MAJOR(list[i].version),
				 CL_VERSION_MINOR(list[i].version),
				 CL_VERSION_PATCH(list[i].version));
}

static describe_device_fn info_describe(cl_platform_id platform)
{
	return (describe_device_fn)clGetExtensionFunctionAddressForPlatform(platform,
									    DESCRIBE_FUNCTION);
}

/* The self-tests run here. */
static void info_read_device(cl_platform_id platform, cl_device_id id, struct info_device *device)
{
	for (size_t i = 0; i < INFO_TYPES; i++)
		device->known[i] = !info_describe(platform)(id, import_types[i], &device->types[i]);
	info_read_extension(id, device);
}

/* Returns how many devices were printed. */
static cl_uint info_print_platform(const struct info_options *options, cl_platform_id id,
				   struct info_platform *platform)
{
	cl_device_id devices[MAX_DEVICES];
	cl_uint count = 0, printed = 0;

	clGetPlatformInfo(id, CL_PLATFORM_VERSION, sizeof(platform->version), platform->version,
			  NULL);
	platform->note = kernel_cache_why(id);
	platform->err = clGetDeviceIDs(id, CL_DEVICE_TYPE_ALL, MAX_DEVICES, devices, &count);
	if (platform->err)
		count = 0;
	options->form->platform(platform);
	for (cl_uint i = 0; i < count && i < MAX_DEVICES; i++) {
		struct info_device device = { .number = i, .name = "?", .driver = "?" };

		clGetDeviceInfo(devices[i], CL_DEVICE_NAME, sizeof(device.name), device.name, NULL);
		clGetDeviceInfo(devices[i], CL_DRIVER_VERSION, sizeof(device.driver), device.driver,
				NULL);
		if (!option_names(options->device, i, device.name))
			continue;
		info_read_device(id, devices[i], &device);
		options->form->device(&device);
		printed++;
	}
	options->form->platform_end();
	return printed;
}

static bool info_check_layer(const cl_platform_id *platforms, cl_uint count)
{
	for (cl_uint i = 0; i < count; i++)
		if (!info_describe(platforms[i])) {
			terminal_line(stderr, 4, "climport: %s", why_no_layer());
			return false;
		}
	return true;
}

static cl_uint info_print(const struct info_options *options, const cl_platform_id *ids,
			  cl_uint count)
{
	cl_uint printed = 0;

	options->form->begin();
	for (cl_uint i = 0; i < count; i++) {
		struct info_platform platform = { .number = i, .name = "?", .version = "?" };

		clGetPlatformInfo(ids[i], CL_PLATFORM_NAME, sizeof(platform.name), platform.name,
				  NULL);
		if (option_names(options->platform, i, platform.name))
			printed += info_print_platform(options, ids[i], &platform);
	}
	options->form->end();
	return printed;
}

static int info_parse(int argc, char **argv, struct info_options *options)
{
	struct arguments a = { "info", argc, argv, 1, NULL };

	while (option_next(&a)) {
		const char **value = option_is(&a, "--platform") ? &options->platform
				     : option_is(&a, "--device") ? &options->device
								 : NULL;

		if (option_is(&a, "--json"))
			options->form = &info_json;
		else if (option_is(&a, "--env"))
			return fail_usage("info: --env stands alone");
		else if (!value)
			return fail_option(&a);
		else if (!(*value = option_value(&a)))
			return WRONG_USAGE;
	}
	return a.next == argc ? 0 : fail_usage("info takes no argument %s", argv[a.next]);
}

int info_command(int argc, char **argv)
{
	struct info_options options = { .form = &info_text };
	int status = info_parse(argc, argv, &options);
	cl_platform_id platforms[MAX_PLATFORMS];
	cl_uint count = 0;

	if (status)
		return status;
	if (clGetPlatformIDs(MAX_PLATFORMS, platforms, &count) || !count) {
		terminal_line(stderr, 4,
			      "climport: no OpenCL platform is installed; Debian's package "
			      "pocl-opencl-icd is one for any CPU");
		return 1;
	}
	if (count > MAX_PLATFORMS)
		count = MAX_PLATFORMS;
	if (!info_check_layer(platforms, count))
		return 1;
	if (info_print(&options, platforms, count))
		return 0;
	terminal_line(stderr, 4, "climport: info: %s",
		      options.platform || options.device
			      ? "no device is the one that --platform and --device name"
			      : "no platform has a device");
	return 1;
}
