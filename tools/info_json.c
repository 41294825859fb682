/* SPDX-License-Identifier: Apache-2.0 */
/* What `climport info --json` prints for programs: docs/climport.1.md describes the members. */
#include "info.h"

#include <stdio.h>

#include "json.h"
#include "paths.h"

static const char *const info_json_names[INFO_TYPES] = { "host_memory", "dma_buf" };

static bool info_json_more_platforms, info_json_more_devices;

/* A member whose value is a string, or null. */
static void info_json_text(const char *indent, const char *name, const char *value)
{
	printf("%s\"%s\": ", indent, name);
	if (value)
		json_quote(stdout, value);
	else
		fputs("null", stdout);
	puts(",");
}

static void info_json_begin(void)
{
	puts("{");
	info_json_text("  ", "climport", CLIMPORT_RELEASE);
	info_json_text("  ", "layer", path_layer());
	fputs("  \"platforms\": [", stdout);
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
	const struct device_description *d = &device->types[i];
	const char *unknown = "the device's properties cannot be read";

	printf(",\n          \"%s\": {\n", info_json_names[i]);
	printf("            \"zero_copy\": %s,\n", d->method ? "true" : "false");
	info_json_text("            ", "method", d->method);
	info_json_text("            ", "why", device->known[i] ? d->why : unknown);
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
	info_json_text("          ", "extension_version",
		       *device->extension ? device->extension : NULL);
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

static void info_json_end(void)
{
	printf("%s]\n}\n", info_json_more_platforms ? "\n  " : "");
}

const struct info_form info_json = {
	.begin = info_json_begin,
	.platform = info_json_platform,
	.device = info_json_device,
	.platform_end = info_json_platform_end,
	.end = info_json_end,
};
