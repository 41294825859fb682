/* SPDX-License-Identifier: Apache-2.0 */
#include "info.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <CL/cl.h>
#include <CL/cl_ext.h>

#include "icd/queries/describe.h"
#include "paths.h"

#define MAX_PLATFORMS 64
#define MAX_DEVICES 256

static const struct {
	cl_uint type;
	const char *name;
} types[] = {
	{ CL_IMPORT_TYPE_HOST_ARM, "host memory" },
	{ CL_IMPORT_TYPE_DMA_BUF_ARM, "dma-buf" },
};

static void print_type(describe_device_fn describe, cl_device_id device, size_t i)
{
	struct device_description d = { 0 };

	if (describe(device, types[i].type, &d))
		printf("    %-12s unknown: the device's properties cannot be read\n",
		       types[i].name);
	else if (!d.method)
		printf("    %-12s refused: %s\n", types[i].name, d.why);
	else
		printf("    %-12s zero copy by method %s: %s\n", types[i].name, d.method, d.why);
	if (d.kept)
		printf("    %-12s kept between imports: %s\n", "", d.kept);
}

/* The version that the device reports, or "" without the extension. */
static const char *version_of(cl_device_id device)
{
	static char text[32];
	cl_name_version list[512];
	size_t size;

	text[0] = '\0';
	if (clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS_WITH_VERSION, sizeof(list), list, &size))
		return text;
	for (size_t i = 0; i < size / sizeof(list[0]); i++)
		if (!strcmp(list[i].name, "cl_arm_import_memory"))
			snprintf(text, sizeof(text), " %u.%u.%u", CL_VERSION_MAJOR(list[i].version),
				 CL_VERSION_MINOR(list[i].version),
				 CL_VERSION_PATCH(list[i].version));
	return text;
}

static void info_print_device(describe_device_fn describe, cl_device_id device, cl_uint number)
{
	char name[256] = "?", version[256] = "?", extensions[16384] = "";

	clGetDeviceInfo(device, CL_DEVICE_NAME, sizeof(name), name, NULL);
	clGetDeviceInfo(device, CL_DRIVER_VERSION, sizeof(version), version, NULL);
	clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS, sizeof(extensions), extensions, NULL);
	printf("  device %u: %s, driver %s\n", number, name, version);
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		print_type(describe, device, i);
	if (strstr(extensions, "cl_arm_import_memory"))
		printf("    reports cl_arm_import_memory%s\n", version_of(device));
}

static int print_platform(cl_platform_id platform, cl_uint number)
{
	describe_device_fn describe;
	cl_device_id devices[MAX_DEVICES];
	char name[256] = "?", version[256] = "?";
	cl_uint count = 0;

	clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof(name), name, NULL);
	clGetPlatformInfo(platform, CL_PLATFORM_VERSION, sizeof(version), version, NULL);
	printf("platform %u: %s, %s\n", number, name, version);
	describe = (describe_device_fn)clGetExtensionFunctionAddressForPlatform(platform,
										DESCRIBE_FUNCTION);
	if (!describe) {
		fprintf(stderr, "climport: %s\n", why_no_layer());
		return 1;
	}
	if (clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, MAX_DEVICES, devices, &count) || !count)
		printf("  no devices\n");
	for (cl_uint i = 0; i < count && i < MAX_DEVICES; i++)
		info_print_device(describe, devices[i], i);
	return 0;
}

int info_command(void)
{
	cl_platform_id platforms[MAX_PLATFORMS];
	cl_uint count = 0;
	int status = 0;

	if (clGetPlatformIDs(MAX_PLATFORMS, platforms, &count) || !count) {
		fprintf(stderr, "climport: no OpenCL platform is installed; "
				"Debian's package pocl-opencl-icd is one for any CPU\n");
		return 1;
	}
	for (cl_uint i = 0; i < count && i < MAX_PLATFORMS && !status; i++)
		status = print_platform(platforms[i], i);
	return status;
}
