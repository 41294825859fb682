/* SPDX-License-Identifier: Apache-2.0 */
/* What `climport info` prints for people. */
#include "info.h"

#include <string.h>

#include "terminal.h"
#include "util/cl_names.h"

#define UNDER_TYPES 17 /* the column of what is said about a type of memory */

static const char *const info_type_names[INFO_TYPES] = { "host memory", "dma-buf" };

/* PoCL has no device, or compiles no kernel, where it cannot keep compiled kernels. */
static const char info_text_pocl[] = "; PoCL needs a folder that it can write: POCL_CACHE_DIR, or "
				     "pocl/kcache in XDG_CACHE_HOME or "
				     "HOME/.cache";

static void info_text_platform(FILE *out, const struct info_platform *p)
{
	struct terminal_text t;

	terminal_begin(&t, out, 4);
	terminal_add(&t, COLOUR_BOLD, "platform %u: %s", p->number, p->name);
	terminal_add(&t, COLOUR_NONE, ", %s", p->version);
	terminal_end(&t);
	if (!p->err)
		return;
	terminal_begin(&t, out, 4);
	terminal_add(&t, COLOUR_BAD, "  no devices");
	terminal_add(&t, COLOUR_NONE, ": clGetDeviceIDs returns %s%s", cl_error_name(p->err),
		     strcmp(p->name, "Portable Computing Language") ? "" : info_text_pocl);
	terminal_end(&t);
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
static void info_text_end(const struct drivers *drivers, char (*why)[DRIVER_WHY_SIZE])
{
	struct terminal_text t;

	for (size_t i = 0; i < drivers->count; i++) {
		const struct driver *d = &drivers->list[i];

		if (!*why[i])
			continue;
		terminal_begin(&t, stdout, 4);
		terminal_add(&t, COLOUR_BOLD, "driver %s", d->file ? d->file : d->library);
		if (d->file && *d->library)
			terminal_add(&t, COLOUR_NONE, ", %s", d->library);
		terminal_add(&t, COLOUR_NONE, ": ");
		terminal_add(&t, COLOUR_BAD, "no platform");
		terminal_add(&t, COLOUR_NONE, ": %s", why[i]);
		terminal_end(&t);
	}
}

/* The error of a driver that compiles no kernel is the one that users meet. */
static bool info_text_compiles(const char *why)
{
	static const char error[] = "CL_BUILD_PROGRAM_FAILURE";
	const size_t length = strlen(why), end = strlen(error);

	return length < end || strcmp(why + length - end, error);
}

static void info_text_type(FILE *out, const struct info_device *device, size_t i)
{
	const struct device_description *d = &device->types[i];
	struct terminal_text t;

	terminal_begin(&t, out, UNDER_TYPES);
	terminal_add(&t, COLOUR_NONE, "    %-12s ", info_type_names[i]);
	if (!device->known[i]) {
		terminal_add(&t, COLOUR_DOUBT, "unknown");
		terminal_add(&t, COLOUR_NONE, ": the device's properties cannot be read");
	} else if (!d->method) {
		terminal_add(&t, COLOUR_BAD, "refused");
		terminal_add(&t, COLOUR_NONE, ": %s", d->why);
		if (!info_text_compiles(d->why))
			terminal_add(&t, COLOUR_NONE,
				     ": the driver compiled no kernel of the test, and would "
				     "compile none of a program's%s",
				     info_text_pocl);
	} else {
		terminal_add(&t, COLOUR_GOOD, "zero copy");
		terminal_add(&t, COLOUR_NONE, " by method %s: %s", d->method, d->why);
	}
	terminal_end(&t);
	if (d->kept)
		terminal_line(out, UNDER_TYPES, "    %-12s kept between imports: %s", "", d->kept);
}

static void info_text_device(FILE *out, const struct info_device *device)
{
	terminal_line(out, 4, "  device %u: %s, driver %s", device->number, device->name,
		      device->driver);
	for (size_t i = 0; i < INFO_TYPES; i++)
		info_text_type(out, device, i);
	if (device->reports)
		terminal_line(out, UNDER_TYPES, "    reports cl_arm_import_memory%s%s%s",
			      *device->extension ? " " : "", device->extension,
			      device->reports_khr ? " and cl_khr_external_memory_dma_buf" : "");
}

const struct info_form info_text = {
	.alone = info_text_alone,
	.platform = info_text_platform,
	.device = info_text_device,
	.end = info_text_end,
};
