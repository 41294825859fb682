/* SPDX-License-Identifier: Apache-2.0 */
/* The process that opens OpenCL's drivers.  Each record is sent before the next call of a driver. */
#include "info.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include <CL/cl_ext.h>

#include "arguments.h"
#include "icd/queries/describe.h"
#include "kernel_cache.h"
#include "paths.h"
#include "terminal.h"

#define MAX_PLATFORMS 64
#define MAX_DEVICES 256

static const cl_uint import_types[INFO_TYPES] = { CL_IMPORT_TYPE_HOST_ARM,
						  CL_IMPORT_TYPE_DMA_BUF_ARM };

static FILE *info_part_to;

static void info_part_send(const struct info_record *record)
{
	fwrite(record, sizeof(*record), 1, info_part_to);
	fflush(info_part_to);
}

static void info_part_step(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void info_part_step(const char *format, ...)
{
	struct info_record record = { .kind = INFO_STEP };
	va_list args;

	va_start(args, format);
	vsnprintf(record.step, sizeof(record.step), format, args);
	va_end(args);
	info_part_send(&record);
}

static void info_part_check_drivers(char **libraries)
{
	for (size_t i = 0; libraries[i]; i++) {
		struct info_record record = { .kind = INFO_DRIVER, .driver.number = i };

		if (!driver_check(libraries[i], record.driver.why))
			info_part_send(&record);
	}
}

static void info_part_set(char *to, size_t size, const char *text)
{
	snprintf(to, size, "%s", text ? text : "");
}

static void info_part_read_extension(cl_device_id id, struct info_device *device)
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

static describe_device_fn info_part_describe(cl_platform_id platform)
{
	return (describe_device_fn)clGetExtensionFunctionAddressForPlatform(platform,
									    DESCRIBE_FUNCTION);
}

static void info_part_read_type(cl_platform_id platform, cl_device_id id, cl_uint import_type,
				struct info_type *type)
{
	struct device_description d = { 0 };

	type->known = !info_part_describe(platform)(id, import_type, &d);
	info_part_set(type->method, sizeof(type->method), d.method);
	info_part_set(type->why, sizeof(type->why), d.why);
	info_part_set(type->kept, sizeof(type->kept), d.kept);
	type->address_align = d.address_align;
	type->size_align = d.size_align;
}

/* The self-tests run here. */
static void info_part_send_device(cl_platform_id platform, cl_device_id id,
				  struct info_record *record)
{
	struct info_device *device = &record->device;

	info_part_step("in the self-tests of device %u, %.80s", device->number, device->name);
	info_part_set(device->driver, sizeof(device->driver), "?");
	clGetDeviceInfo(id, CL_DRIVER_VERSION, sizeof(device->driver), device->driver, NULL);
	for (size_t i = 0; i < INFO_TYPES; i++)
		info_part_read_type(platform, id, import_types[i], &device->types[i]);
	info_part_read_extension(id, device);
	info_part_send(record);
}

static bool info_part_selects(const char *name, cl_uint number, const char *text)
{
	return option_names(getenv(name), number, text);
}

/* Returns how many devices CLIMPORT_DEVICE selects, of a platform that CLIMPORT_PLATFORM does. */
static cl_uint info_part_send_devices(const struct info_options *options, cl_platform_id platform,
				      const cl_device_id *ids, cl_uint count)
{
	cl_uint selected = 0;

	for (cl_uint i = 0; i < count && i < MAX_DEVICES; i++) {
		struct info_record record = { .kind = INFO_DEVICE, .device = { i, .name = "?" } };
		char *name = record.device.name;

		clGetDeviceInfo(ids[i], CL_DEVICE_NAME, sizeof(record.device.name), name, NULL);
		selected += info_part_selects("CLIMPORT_DEVICE", i, name);
		if (option_names(options->device, i, name))
			info_part_send_device(platform, ids[i], &record);
	}
	return selected;
}

/* As info_part_send_devices(). */
static cl_uint info_part_send_platform(const struct info_options *options, cl_platform_id id,
				       struct info_record *record)
{
	struct info_platform *platform = &record->platform;
	cl_device_id ids[MAX_DEVICES];
	cl_uint count = 0;

	info_part_step("in clGetDeviceIDs of %.80s", platform->name);
	info_part_set(platform->version, sizeof(platform->version), "?");
	clGetPlatformInfo(id, CL_PLATFORM_VERSION, sizeof(platform->version), platform->version,
			  NULL);
	info_part_set(platform->note, sizeof(platform->note), kernel_cache_why(id));
	platform->err = clGetDeviceIDs(id, CL_DEVICE_TYPE_ALL, MAX_DEVICES, ids, &count);
	info_part_send(record);
	return info_part_send_devices(options, id, ids, platform->err ? 0 : count);
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

/* False, with a message, if the environment selects no device: no driver has the extension then. */
static bool info_part_check_selection(cl_uint platforms, cl_uint devices)
{
	const char *name = platforms ? "CLIMPORT_DEVICE" : "CLIMPORT_PLATFORM";
	const char *value = getenv(name);

	if ((platforms && devices) || !value || !*value)
		return true;
	terminal_line(stderr, 4,
		      "climport: %s=%s selects nothing, so no device has the extension: no %s has "
		      "this number, or this in its name",
		      name, value, platforms ? "device" : "platform");
	return false;
}

static bool info_part_send_platforms(const struct info_options *options, const cl_platform_id *ids,
				     cl_uint count)
{
	cl_uint platforms = 0, devices = 0;

	for (cl_uint i = 0; i < count; i++) {
		struct info_record record = { .kind = INFO_PLATFORM,
					      .platform = { i, .name = "?" } };
		char *name = record.platform.name;
		cl_uint selected = 0;
		bool counts;

		clGetPlatformInfo(ids[i], CL_PLATFORM_NAME, sizeof(record.platform.name), name,
				  NULL);
		counts = info_part_selects("CLIMPORT_PLATFORM", i, name);
		if (option_names(options->platform, i, name))
			selected = info_part_send_platform(options, ids[i], &record);
		else
			selected = 1; /* not looked at */
		platforms += counts;
		devices += counts ? selected : 0;
	}
	return info_part_check_selection(platforms, devices);
}

int info_part(const struct info_options *options, char **libraries)
{
	struct info_record end = { .kind = INFO_END };
	cl_platform_id ids[MAX_PLATFORMS];
	cl_uint count = 0;

	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	info_part_to = part_divert();
	if (!info_part_to)
		return 1;
	info_part_step("while the OpenCL loader opens the drivers");
	if (clGetPlatformIDs(MAX_PLATFORMS, ids, &count))
		count = 0;
	if (count > MAX_PLATFORMS)
		count = MAX_PLATFORMS;
	info_part_check_drivers(libraries);
	end.end.platforms = count;
	end.end.failed = !info_part_check_layer(ids, count) ||
			 !info_part_send_platforms(options, ids, count);
	info_part_step("at the end of the process");
	info_part_send(&end);
	return 0;
}
