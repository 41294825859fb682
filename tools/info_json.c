/* SPDX-License-Identifier: Apache-2.0 */
/* What `climport info --json` prints for programs: docs/schema/info.json. */
#include <stdio.h>

#include "info.h"
#include "json.h"
#include "paths.h"

static const char *const info_json_names[INFO_TYPES] = { "host_memory", "dma_buf" };

static void info_json_type(struct json *j, const char *name, const struct info_type *type)
{
	json_open(j, name, '{');
	json_bool(j, "zero_copy", *type->method);
	json_string(j, "method", type->method);
	json_string(j, "why", type->why);
	json_string(j, "kept", type->kept);
	json_number(j, "address_alignment", (double)type->address_align);
	json_number(j, "size_alignment", (double)type->size_align);
	json_close(j, '}');
}

static void info_json_device(struct json *j, const struct info_device *device)
{
	json_open(j, NULL, '{');
	json_number(j, "number", device->number);
	json_string(j, "name", device->name);
	json_string(j, "driver", device->driver);
	json_string(j, "extension_version", device->extension);
	json_bool(j, "reports_extension", device->reports);
	json_bool(j, "reports_external_memory_dma_buf", device->reports_khr);
	for (size_t i = 0; i < INFO_TYPES; i++)
		info_json_type(j, info_json_names[i], &device->types[i]);
	json_close(j, '}');
}

static void info_json_platform(struct json *j, const struct info_shared *shared, size_t platform)
{
	const struct info_platform *p = &shared->platforms[platform];

	json_open(j, NULL, '{');
	json_number(j, "number", p->number);
	json_string(j, "name", p->name);
	json_string(j, "version", p->version);
	json_open(j, "devices", '[');
	for (size_t i = 0; i < shared->device_count; i++)
		if (shared->devices[i].platform == platform)
			info_json_device(j, &shared->devices[i]);
	json_close(j, ']');
	json_close(j, '}');
}

static void info_json_driver(struct json *j, const struct driver *driver, const char *why)
{
	json_open(j, NULL, '{');
	json_string(j, "file", driver->file);
	json_string(j, "library", driver->library);
	json_string(j, "no_platform", why);
	json_close(j, '}');
}

void info_json(const struct info_shared *shared, const struct drivers *drivers)
{
	struct json j = { .out = stdout };

	json_open(&j, NULL, '{');
	json_string(&j, "climport", CLIMPORT_RELEASE);
	json_string(&j, "layer", path_layer());
	json_open(&j, "platforms", '[');
	for (size_t i = 0; i < shared->platform_count; i++)
		info_json_platform(&j, shared, i);
	json_close(&j, ']');
	json_string(&j, "together", shared->alone);
	json_open(&j, "drivers", '[');
	for (size_t i = 0; i < drivers->count; i++)
		info_json_driver(&j, &drivers->list[i], shared->why[i]);
	json_close(&j, ']');
	json_close(&j, '}');
}
