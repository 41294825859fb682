/* SPDX-License-Identifier: Apache-2.0 */
/* What `climport info --json` prints for programs: docs/climport.1.md describes the members. */
#include "info.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "paths.h"

static const char *const info_json_names[INFO_TYPES] = { "host_memory", "dma_buf" };

static bool info_json_more_platforms, info_json_more_devices;
static char *info_json_how; /* the process of all drivers ended; NULL: well */

/* A member whose value is a string; null for NULL and "". */
static void info_json_member(const char *indent, const char *name, const char *value)
{
	printf("%s\"%s\": ", indent, name);
	if (value && *value)
		json_quote(stdout, value);
	else
		fputs("null", stdout);
}

/* Another member follows. */
static void info_json_text(const char *indent, const char *name, const char *value)
{
	info_json_member(indent, name, value);
	puts(",");
}

static void info_json_begin(void)
{
	puts("{");
	info_json_text("  ", "climport", CLIMPORT_RELEASE);
	info_json_text("  ", "layer", path_layer());
	fputs("  \"platforms\": [", stdout);
}

/* Before the first platform. */
static void info_json_alone(const char *how)
{
	info_json_how = strdup(how);
}

static void info_json_platform(const struct info_platform *p)
{
	printf("%s\n    {\n      \"number\": %u,\n", info_json_more_platforms ? "," : "",
	       p->number);
	info_json_text("      ", "name", p->name);
	info_json_text("      ", "version", p->version);
	info_json_text("      ", "cannot_compile", p->note);
	fputs("      \"devices\": [", stdout);
	info_json_more_platforms = true;
	info_json_more_devices = false;
}

static void info_json_type(const struct info_device *device, size_t i)
{
	const struct info_type *d = &device->types[i];
	const char *unknown = "the device's properties cannot be read";

	printf(",\n          \"%s\": {\n", info_json_names[i]);
	printf("            \"zero_copy\": %s,\n", *d->method ? "true" : "false");
	info_json_text("            ", "method", d->method);
	info_json_text("            ", "why", d->known ? d->why : unknown);
	info_json_text("            ", "kept", d->kept);
	printf("            \"address_alignment\": %zu,\n            \"size_alignment\": %zu\n"
	       "          }",
	       d->address_align, d->size_align);
}

static void info_json_device(const struct info_device *device)
{
	printf("%s\n        {\n          \"number\": %u,\n", info_json_more_devices ? "," : "",
	       device->number);
	info_json_text("          ", "name", device->name);
	info_json_text("          ", "driver", device->driver);
	info_json_text("          ", "extension_version", device->extension);
	printf("          \"reports_extension\": %s", device->reports ? "true" : "false");
	for (size_t i = 0; i < INFO_TYPES; i++)
		info_json_type(device, i);
	fputs("\n        }", stdout);
	info_json_more_devices = true;
}

static void info_json_platform_end(void)
{
	printf("%s]\n    }", info_json_more_devices ? "\n      " : "");
}

/* All drivers, with those that give platforms. */
static void info_json_drivers(const struct info_driver *drivers, size_t count)
{
	printf("%s],\n", info_json_more_platforms ? "\n  " : "");
	info_json_text("  ", "together", info_json_how);
	free(info_json_how);
	fputs("  \"drivers\": [", stdout);
	for (size_t i = 0; i < count; i++) {
		printf("%s\n    {\n", i ? "," : "");
		info_json_text("      ", "file", drivers[i].driver->file);
		info_json_text("      ", "library", drivers[i].driver->library);
		info_json_member("      ", "no_platform", drivers[i].why);
		fputs("\n    }", stdout);
	}
	puts(count ? "\n  ]" : "]");
}

static void info_json_end(void)
{
	puts("}");
}

const struct info_form info_json = {
	.begin = info_json_begin,
	.alone = info_json_alone,
	.platform = info_json_platform,
	.device = info_json_device,
	.platform_end = info_json_platform_end,
	.drivers = info_json_drivers,
	.end = info_json_end,
};
