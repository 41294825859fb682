/* SPDX-License-Identifier: Apache-2.0 */
/* The process that opens OpenCL's drivers. */
#include "info.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <CL/cl_ext.h>

#include "arguments.h"
#include "icd/probe/interface.h"
#include "paths.h"
#include "terminal.h"

static const cl_uint import_types[INFO_TYPES] = { CL_IMPORT_TYPE_HOST_ARM,
						  CL_IMPORT_TYPE_DMA_BUF_ARM };

static struct info_shared *info_part_shared;

static void info_part_step(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void info_part_step(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(info_part_shared->step, sizeof(info_part_shared->step), format, args);
	va_end(args);
}

static void info_part_read_extension(cl_device_id id, struct info_device *device)
{
	char extensions[16384] = "";
	cl_name_version list[512];
	size_t size = 0;

	clGetDeviceInfo(id, CL_DEVICE_EXTENSIONS, sizeof(extensions), extensions, NULL);
	device->reports = strstr(extensions, "cl_arm_import_memory");
	device->reports_khr = strstr(extensions, "cl_khr_external_memory_dma_buf");
	if (clGetDeviceInfo(id, CL_DEVICE_EXTENSIONS_WITH_VERSION, sizeof(list), list, &size))
		return;
	for (size_t i = 0; i < size / sizeof(list[0]); i++)
		if (!strcmp(list[i].name, "cl_arm_import_memory"))
			snprintf(device->extension, sizeof(device->extension), "%u.%u.%u",
				 CL_VERSION_MAJOR(list[i].version),
				 CL_VERSION_MINOR(list[i].version),
				 CL_VERSION_PATCH(list[i].version));
}

static describe_device_fn info_part_describe(cl_platform_id platform)
{
	return (describe_device_fn)clGetExtensionFunctionAddressForPlatform(platform,
									    DESCRIBE_FUNCTION);
}

static void info_part_copy(char *to, size_t size, const char *from)
{
	snprintf(to, size, "%s", from ? from : "");
}

static void info_part_read_type(cl_platform_id platform, cl_device_id id, cl_uint import_type,
				struct info_type *type)
{
	struct device_description d = { .why = "the device's properties cannot be read" };

	info_part_describe(platform)(id, import_type, &d);
	info_part_copy(type->method, sizeof(type->method), d.method);
	info_part_copy(type->why, sizeof(type->why), d.why);
	info_part_copy(type->kept, sizeof(type->kept), d.kept);
	type->address_align = d.address_align;
	type->size_align = d.size_align;
}

/* The self-tests run here. */
static void info_part_read_device(cl_platform_id platform, cl_device_id id,
				  struct info_device *device)
{
	info_part_step("in the self-tests of device %u, %.80s", device->number, device->name);
	info_part_copy(device->driver, sizeof(device->driver), "?");
	clGetDeviceInfo(id, CL_DRIVER_VERSION, sizeof(device->driver), device->driver, NULL);
	for (size_t i = 0; i < INFO_TYPES; i++)
		info_part_read_type(platform, id, import_types[i], &device->types[i]);
	info_part_read_extension(id, device);
}

static void info_part_read_devices(const struct info_options *options, cl_platform_id platform,
				   const cl_device_id *ids, cl_uint count)
{
	struct info_shared *shared = info_part_shared;

	for (cl_uint i = 0; i < count && shared->device_count < INFO_DEVICES; i++) {
		struct info_device *device = &shared->devices[shared->device_count];

		*device = (struct info_device){ .platform = shared->platform_count - 1,
						.number = i,
						.name = "?" };
		clGetDeviceInfo(ids[i], CL_DEVICE_NAME, sizeof(device->name), device->name, NULL);
		if (!option_names(options->device, i, device->name))
			continue;
		info_part_read_device(platform, ids[i], device);
		shared->device_count++;
	}
}

static void info_part_read_platform(const struct info_options *options, cl_platform_id id,
				    struct info_platform *platform)
{
	cl_device_id ids[INFO_DEVICES];
	cl_uint count = 0;

	info_part_step("in clGetDeviceIDs of %.80s", platform->name);
	info_part_copy(platform->version, sizeof(platform->version), "?");
	clGetPlatformInfo(id, CL_PLATFORM_VERSION, sizeof(platform->version), platform->version,
			  NULL);
	platform->err = clGetDeviceIDs(id, CL_DEVICE_TYPE_ALL, INFO_DEVICES, ids, &count);
	if (count > INFO_DEVICES)
		count = INFO_DEVICES;
	info_part_read_devices(options, id, ids, platform->err ? 0 : count);
}

static bool info_part_check_layer(const cl_platform_id *platforms, cl_uint count)
{
	for (cl_uint i = 0; i < count; i++)
		if (!info_part_describe(platforms[i])) {
			terminal_line(stderr, 4, "climport: %s", why_no_layer());
			return false;
		}
	return true;
}

static void info_part_read_platforms(const struct info_options *options, const cl_platform_id *ids,
				     cl_uint count)
{
	struct info_shared *shared = info_part_shared;

	for (cl_uint i = 0; i < count && shared->platform_count < INFO_PLATFORMS; i++) {
		struct info_platform *platform = &shared->platforms[shared->platform_count];

		*platform = (struct info_platform){ .number = i, .name = "?" };
		clGetPlatformInfo(ids[i], CL_PLATFORM_NAME, sizeof(platform->name), platform->name,
				  NULL);
		if (option_names(options->platform, i, platform->name)) {
			shared->platform_count++;
			info_part_read_platform(options, ids[i], platform);
		}
	}
}

void info_part(const struct info_options *options, const struct drivers *drivers, size_t first,
	       size_t count, struct info_shared *shared)
{
	cl_platform_id ids[INFO_PLATFORMS];
	cl_uint platforms = 0;

	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	dup2(STDERR_FILENO, STDOUT_FILENO); /* what drivers print is no answer */
	info_part_shared = shared;
	info_part_step("while the OpenCL loader opens the drivers");
	if (clGetPlatformIDs(INFO_PLATFORMS, ids, &platforms))
		platforms = 0;
	if (platforms > INFO_PLATFORMS)
		platforms = INFO_PLATFORMS;
	for (size_t i = first; i < first + count; i++)
		driver_check(drivers->list[i].library, shared->why[i]);
	shared->any |= platforms > 0;
	if (info_part_check_layer(ids, platforms))
		info_part_read_platforms(options, ids, platforms);
	else
		shared->failed = true;
	info_part_step("at the end of the process");
	shared->ended = true;
}
