/* SPDX-License-Identifier: Apache-2.0 */
/* What `climport info` prints for people. */
#include "info.h"

#include <stdio.h>
#include <string.h>

#include "arguments.h"
#include "terminal.h"
#include "util/cl_names.h"

#define ROW "%-7s  %-11s  %-9s  %10s  %13s" /* 58 columns */
#define UNDER_TYPES 17			    /* the column of what is said about a type of memory */

static const char *const info_type_names[INFO_TYPES] = { "host memory", "dma-buf" };

/* PoCL has no device, or compiles no kernel, where it cannot keep compiled kernels. */
static const char info_text_pocl[] = "; PoCL needs a folder that it can write: POCL_CACHE_DIR, or "
				     "pocl/kcache in XDG_CACHE_HOME or HOME/.cache";

/* "imports host memory without a copy, and no dma-bufs" */
static void info_text_verdict(const struct info_shared *shared, const struct info_device *d)
{
	const bool host = *d->types[0].method, dma_buf = *d->types[1].method;
	struct terminal_text t;

	terminal_begin(&t, stdout, 9);
	terminal_add(&t, COLOUR_BOLD, "verdict");
	terminal_add(&t, COLOUR_NONE, ": device %u.%u, %s, ", shared->platforms[d->platform].number,
		     d->number, d->name);
	if (host && dma_buf)
		terminal_add(&t, COLOUR_GOOD, "imports host memory and dma-bufs without a copy");
	else if (host || dma_buf)
		terminal_add(&t, COLOUR_DOUBT, "imports %s without a copy, and no %s",
			     host ? "host memory" : "dma-bufs", host ? "dma-bufs" : "host memory");
	else
		terminal_add(&t, COLOUR_BAD, "imports nothing");
	terminal_add(&t, COLOUR_NONE, ".");
	terminal_end(&t);
}

/* PoCL lists its build options behind two spaces, 90 columns of them: they get a line of their own. */
static void info_text_platform(const struct info_platform *p)
{
	const char *options = strstr(p->version, "  ");
	const size_t length = options ? (size_t)(options - p->version) : strlen(p->version);
	struct terminal_text t;

	terminal_begin(&t, stdout, 4);
	terminal_add(&t, COLOUR_BOLD, "platform %u: %s", p->number, p->name);
	terminal_add(&t, COLOUR_NONE, ", %.*s", (int)length, p->version);
	terminal_end(&t);
	if (options)
		terminal_line(stdout, 4, "%s", options);
	if (!p->err)
		return;
	terminal_begin(&t, stdout, 4);
	terminal_add(&t, COLOUR_BAD, "  no devices");
	terminal_add(&t, COLOUR_NONE, ": clGetDeviceIDs returns %s%s", cl_error_name(p->err),
		     strcmp(p->name, "Portable Computing Language") ? "" : info_text_pocl);
	terminal_end(&t);
}

static void info_text_type(const struct info_device *device, size_t i)
{
	const struct info_type *d = &device->types[i];
	struct terminal_text t;

	terminal_begin(&t, stdout, UNDER_TYPES);
	terminal_add(&t, COLOUR_NONE, "    %-12s ", info_type_names[i]);
	if (!*d->method) {
		terminal_add(&t, COLOUR_BAD, "refused");
		terminal_add(&t, COLOUR_NONE, ": %s", d->why);
		/* The error of a driver that compiles no kernel is the one that users meet. */
		if (strstr(d->why, "CL_BUILD_PROGRAM_FAILURE"))
			terminal_add(&t, COLOUR_NONE,
				     ": the driver compiled no kernel of the test, and would "
				     "compile none of a program's%s",
				     info_text_pocl);
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
		terminal_line(stdout, UNDER_TYPES, "    reports cl_arm_import_memory%s%s%s",
			      *device->extension ? " " : "", device->extension,
			      device->reports_khr ? " and cl_khr_external_memory_dma_buf" : "");
}

static void info_text_devices(const struct info_shared *shared, size_t platform)
{
	info_text_platform(&shared->platforms[platform]);
	for (size_t i = 0; i < shared->device_count; i++)
		if (shared->devices[i].platform == platform)
			info_text_device(&shared->devices[i]);
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

/* A driver that gives no platform. */
static void info_text_driver(const struct driver *d, const char *why)
{
	struct terminal_text t;

	terminal_begin(&t, stdout, 4);
	terminal_add(&t, COLOUR_BOLD, "driver %s", d->file ? d->file : d->library);
	if (d->file && *d->library)
		terminal_add(&t, COLOUR_NONE, ", %s", d->library);
	terminal_add(&t, COLOUR_NONE, ": ");
	terminal_add(&t, COLOUR_BAD, "no platform");
	terminal_add(&t, COLOUR_NONE, ": %s", why);
	terminal_end(&t);
}

/* What a program has to keep to. */
static void info_text_row(const struct info_shared *shared, const struct info_device *d, size_t i)
{
	const struct info_type *type = &d->types[i];
	char device[32], address[32], size[32];

	snprintf(device, sizeof(device), "%u.%u", shared->platforms[d->platform].number, d->number);
	terminal_line(
		stdout, 4, ROW, device, info_type_names[i], *type->method ? type->method : "none",
		size_format(address, type->address_align), size_format(size, type->size_align));
}

void info_text(const struct info_shared *shared, const struct drivers *drivers)
{
	for (size_t i = 0; i < shared->device_count; i++)
		info_text_verdict(shared, &shared->devices[i]);
	if (shared->device_count)
		putchar('\n');
	if (*shared->alone)
		info_text_alone(shared->alone);
	for (size_t i = 0; i < shared->platform_count; i++)
		info_text_devices(shared, i);
	for (size_t i = 0; i < drivers->count; i++)
		if (*shared->why[i])
			info_text_driver(&drivers->list[i], shared->why[i]);
	if (!shared->device_count)
		return;
	putchar('\n');
	terminal_line(stdout, 4, ROW, "device", "memory", "method", "alignment", "size multiple");
	for (size_t i = 0; i < INFO_TYPES * shared->device_count; i++)
		info_text_row(shared, &shared->devices[i / INFO_TYPES], i % INFO_TYPES);
}
