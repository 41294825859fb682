/* SPDX-License-Identifier: Apache-2.0 */
/* The process that opens OpenCL's drivers. */
#include "info.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <CL/cl_ext.h>

#include "arguments.h"
#include "paths.h"
#include "terminal.h"

#define MAX_PLATFORMS 64
#define MAX_DEVICES 256

static const cl_uint import_types[INFO_TYPES] = { CL_IMPORT_TYPE_HOST_ARM,
						  CL_IMPORT_TYPE_DMA_BUF_ARM };

static FILE *info_part_out; /* one buffer, written at the end */
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

/* The self-tests run here. */
static void info_part_print_device(const struct info_options *options, cl_platform_id platform,
				   cl_device_id id, struct info_device *device)
{
	info_part_step("in the self-tests of device %u, %.80s", device->number, device->name);
	snprintf(device->driver, sizeof(device->driver), "?");
	clGetDeviceInfo(id, CL_DRIVER_VERSION, sizeof(device->driver), device->driver, NULL);
	for (size_t i = 0; i < INFO_TYPES; i++)
		device->known[i] =
			!info_part_describe(platform)(id, import_types[i], &device->types[i]);
	info_part_read_extension(id, device);
	options->form->device(info_part_out, device);
	info_part_shared->devices++;
}

static bool info_part_selects(const char *name, cl_uint number, const char *text)
{
	return option_names(getenv(name), number, text);
}

/* Returns how many devices CLIMPORT_DEVICE selects, of a platform that CLIMPORT_PLATFORM does. */
static cl_uint info_part_print_devices(const struct info_options *options, cl_platform_id platform,
				       const cl_device_id *ids, cl_uint count)
{
	cl_uint selected = 0;
	bool first = true;

	for (cl_uint i = 0; i < count && i < MAX_DEVICES; i++) {
		struct info_device device = { .number = i, .name = "?", .first = first };

		clGetDeviceInfo(ids[i], CL_DEVICE_NAME, sizeof(device.name), device.name, NULL);
		selected += info_part_selects("CLIMPORT_DEVICE", i, device.name);
		if (!option_names(options->device, i, device.name))
			continue;
		info_part_print_device(options, platform, ids[i], &device);
		first = false;
	}
	return selected;
}

/* As info_part_print_devices(). */
static cl_uint info_part_print_platform(const struct info_options *options, cl_platform_id id,
					struct info_platform *platform)
{
	cl_device_id ids[MAX_DEVICES];
	cl_uint count = 0, selected;

	info_part_step("in clGetDeviceIDs of %.80s", platform->name);
	snprintf(platform->version, sizeof(platform->version), "?");
	clGetPlatformInfo(id, CL_PLATFORM_VERSION, sizeof(platform->version), platform->version,
			  NULL);
	platform->err = clGetDeviceIDs(id, CL_DEVICE_TYPE_ALL, MAX_DEVICES, ids, &count);
	platform->first = !info_part_shared->printed++;
	options->form->platform(info_part_out, platform);
	selected = info_part_print_devices(options, id, ids, platform->err ? 0 : count);
	if (options->form->platform_end)
		options->form->platform_end(info_part_out);
	return selected;
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

static bool info_part_print_platforms(const struct info_options *options, const cl_platform_id *ids,
				      cl_uint count)
{
	cl_uint platforms = 0, devices = 0;

	for (cl_uint i = 0; i < count; i++) {
		struct info_platform platform = { .number = i, .name = "?" };
		cl_uint selected = 1; /* of a platform that is not looked at */

		clGetPlatformInfo(ids[i], CL_PLATFORM_NAME, sizeof(platform.name), platform.name,
				  NULL);
		if (option_names(options->platform, i, platform.name))
			selected = info_part_print_platform(options, ids[i], &platform);
		if (!info_part_selects("CLIMPORT_PLATFORM", i, platform.name))
			continue;
		platforms++;
		devices += selected;
	}
	return info_part_check_selection(platforms, devices);
}

/* What drivers print goes to standard error.  False: no descriptor or no memory. */
static bool info_part_divert(void)
{
	static char buffer[1 << 20]; /* more than all devices have to say */
	const int fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);

	if (fd < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
		return false;
	info_part_out = fdopen(fd, "w");
	return info_part_out && !setvbuf(info_part_out, buffer, _IOFBF, sizeof(buffer));
}

int info_part(const struct info_options *options, const struct drivers *drivers, size_t first,
	      size_t count, struct info_shared *shared)
{
	cl_platform_id ids[MAX_PLATFORMS];
	cl_uint platforms = 0;

	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	info_part_shared = shared;
	info_part_step("while the OpenCL loader opens the drivers");
	if (!info_part_divert())
		return 1;
	if (clGetPlatformIDs(MAX_PLATFORMS, ids, &platforms))
		platforms = 0;
	if (platforms > MAX_PLATFORMS)
		platforms = MAX_PLATFORMS;
	for (size_t i = first; i < first + count; i++)
		driver_check(drivers->list[i].library, shared->why[i]);
	shared->platforms += platforms;
	if (!info_part_check_layer(ids, platforms) ||
	    !info_part_print_platforms(options, ids, platforms))
		shared->failed = true;
	if (fclose(info_part_out))
		shared->unwritten = errno;
	info_part_step("at the end of the process");
	shared->ended = true;
	return 0;
}
