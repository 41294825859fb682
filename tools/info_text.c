/* SPDX-License-Identifier: Apache-2.0 */
/* What `climport info` prints for people. */
#include "info.h"

#include <stdio.h>
#include <string.h>

#include "terminal.h"

#define UNDER_TYPES 17 /* the column of what is said about a type of memory */

static const char *const info_type_names[INFO_TYPES] = { "host memory", "dma-buf" };

static const char *info_colour(enum terminal_colour colour)
{
	return terminal_colour(stdout, colour);
}

static void info_text_nothing(void)
{
}

static void info_text_platform(const struct info_platform *p)
{
	terminal_line(stdout, 4, "%splatform %u: %s%s, %s", info_colour(COLOUR_BOLD), p->number,
		      p->name, info_colour(COLOUR_NONE), p->version);
	if (p->err)
		terminal_line(stdout, 4, "  %sno devices%s: clGetDeviceIDs returns %s%d%s%s",
			      info_colour(COLOUR_BAD), info_colour(COLOUR_NONE),
			      p->err == CL_DEVICE_NOT_FOUND ? "CL_DEVICE_NOT_FOUND, " : "", p->err,
			      p->note ? ": " : "", p->note ? p->note : "");
	else if (p->note)
		terminal_line(stdout, 4,
			      "  %skernels cannot be compiled%s (error %d, "
			      "CL_BUILD_PROGRAM_FAILURE): %s",
			      info_colour(COLOUR_BAD), info_colour(COLOUR_NONE),
			      CL_BUILD_PROGRAM_FAILURE, p->note);
}

/* The error of a driver that compiles no kernel is the one that users meet. */
static const char *info_text_meaning(const char *why)
{
	static const char error[] = "error -11";
	const size_t length = strlen(why), end = strlen(error);

	if (length < end || strcmp(why + length - end, error))
		return "";
	return " (CL_BUILD_PROGRAM_FAILURE): the driver compiled no kernel of the test, and would "
	       "compile none of a program's";
}

static void info_text_type(const struct info_device *device, size_t i)
{
	const struct device_description *d = &device->types[i];

	if (!device->known[i])
		terminal_line(stdout, UNDER_TYPES,
			      "    %-12s %sunknown%s: the device's properties cannot be read",
			      info_type_names[i], info_colour(COLOUR_DOUBT),
			      info_colour(COLOUR_NONE));
	else if (!d->method)
		terminal_line(stdout, UNDER_TYPES, "    %-12s %srefused%s: %s%s",
			      info_type_names[i], info_colour(COLOUR_BAD), info_colour(COLOUR_NONE),
			      d->why, info_text_meaning(d->why));
	else
		terminal_line(stdout, UNDER_TYPES, "    %-12s %szero copy%s by method %s: %s",
			      info_type_names[i], info_colour(COLOUR_GOOD),
			      info_colour(COLOUR_NONE), d->method, d->why);
	if (d->kept)
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
	.platform = info_text_platform,
	.device = info_text_device,
	.platform_end = info_text_nothing,
	.end = info_text_nothing,
};
