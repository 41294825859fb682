/* SPDX-License-Identifier: Apache-2.0 */
/* What `climport info` prints for people. */
#include "info.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "terminal.h"
#include "util/cl_names.h"

#define UNDER_TYPES 17 /* the column of what is said about a type of memory */

static const char *const info_type_names[INFO_TYPES] = { "host memory", "dma-buf" };

static void info_text_nothing(void)
{
}

/* A line below the platform: what is wrong, in red, and why. */
static void info_text_wrong(const char *wrong, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void info_text_wrong(const char *wrong, const char *format, ...)
{
	struct terminal_text t;
	va_list args;

	terminal_begin(&t, stdout, 4);
	terminal_add(&t, COLOUR_NONE, "  ");
	terminal_add(&t, COLOUR_BAD, "%s", wrong);
	va_start(args, format);
	terminal_add_args(&t, COLOUR_NONE, format, args);
	va_end(args);
	terminal_end(&t);
}

static void info_text_platform(const struct info_platform *p)
{
	struct terminal_text t;

	terminal_begin(&t, stdout, 4);
	terminal_add(&t, COLOUR_BOLD, "platform %u: %s", p->number, p->name);
	terminal_add(&t, COLOUR_NONE, ", %s", p->version);
	terminal_end(&t);
	if (p->err)
		info_text_wrong("no devices", ": clGetDeviceIDs returns %s%s%s",
				cl_error_name(p->err), *p->note ? ": " : "", p->note);
	else if (*p->note)
		info_text_wrong("kernels cannot be compiled", " (CL_BUILD_PROGRAM_FAILURE): %s",
				p->note);
}

static void info_text_alone(const char *how)
{
	struct terminal_text t;

	terminal_begin(&t, stdout, 4);
	terminal_add(&t, COLOUR_BOLD, "all drivers in one process: ");
	terminal_add(&t, COLOUR_BAD, "%s", how);
	terminal_add(&t, COLOUR_NONE, "; each driver alone, with the numbers of platforms alone:");
	terminal_end(&t);
}

/* The drivers that give no platform. */
static void info_text_drivers(const struct info_driver *drivers, size_t count)
{
	struct terminal_text t;

	for (size_t i = 0; i < count; i++) {
		const struct driver *d = drivers[i].driver;

		if (!*drivers[i].why)
			continue;
		terminal_begin(&t, stdout, 4);
		terminal_add(&t, COLOUR_BOLD, "driver %s", d->file ? d->file : d->library);
		if (d->file && *d->library)
			terminal_add(&t, COLOUR_NONE, ", %s", d->library);
		terminal_add(&t, COLOUR_NONE, ": ");
		terminal_add(&t, COLOUR_BAD, "no platform");
		terminal_add(&t, COLOUR_NONE, ": %s", drivers[i].why);
		terminal_end(&t);
	}
}

/* The error of a driver that compiles no kernel is the one that users meet. */
static const char *info_text_meaning(const char *why)
{
	static const char error[] = "CL_BUILD_PROGRAM_FAILURE";
	const size_t length = strlen(why), end = strlen(error);

	if (length < end || strcmp(why + length - end, error))
		return "";
	return ": the driver compiled no kernel of the test, and would compile none of a program's";
}

static void info_text_type(const struct info_device *device, size_t i)
{
	const struct info_type *d = &device->types[i];
	struct terminal_text t;

	terminal_begin(&t, stdout, UNDER_TYPES);
	terminal_add(&t, COLOUR_NONE, "    %-12s ", info_type_names[i]);
	if (!d->known) {
		terminal_add(&t, COLOUR_DOUBT, "unknown");
		terminal_add(&t, COLOUR_NONE, ": the device's properties cannot be read");
	} else if (!*d->method) {
		terminal_add(&t, COLOUR_BAD, "refused");
		terminal_add(&t, COLOUR_NONE, ": %s%s", d->why, info_text_meaning(d->why));
	} else {
		terminal_add(&t, COLOUR_GOOD, "zero copy");
		terminal_add(&t, COLOUR_NONE, " by method %s: %s", d->method, d->why);
	}
	terminal_end(&t);
	if (*d->kept)
		terminal_line(stdout, UNDER_TYPES, "    %-12s kept between imports: %s", "",
			      d->kept);
}

static void info_text_device(const struct info_device *device)
{
	terminal_line(stdout, 4, "  device %u: %s, driver %s", device->number, device->name,
		      device->driver);
	for (size_t i = 0; i < INFO_TYPES; i++)
		info_text_type(device, i);
	if (device->reports)
		terminal_line(stdout, UNDER_TYPES, "    reports cl_arm_import_memory%s%s",
			      *device->extension ? " " : "", device->extension);
}

const struct info_form info_text = {
	.begin = info_text_nothing,
	.alone = info_text_alone,
	.platform = info_text_platform,
	.device = info_text_device,
	.platform_end = info_text_nothing,
	.drivers = info_text_drivers,
	.end = info_text_nothing,
};
