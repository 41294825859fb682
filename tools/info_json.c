/* SPDX-License-Identifier: Apache-2.0 */
/* What `climport info --json` prints for programs: docs/climport.1.md describes the members. */
#include "info.h"

#include "json.h"
#include "paths.h"

static const char *const info_json_names[INFO_TYPES] = { "host_memory", "dma_buf" };

static char info_json_how[320]; /* how the process of all drivers ended; "": well */

/* A member whose value is a string; null for NULL and "". */
static void info_json_member(FILE *out, const char *indent, const char *name, const char *value)
{
	fprintf(out, "%s\"%s\": ", indent, name);
	if (value && *value)
		json_quote(out, value);
	else
		fputs("null", out);
}

/* Another member follows. */
static void info_json_text(FILE *out, const char *indent, const char *name, const char *value)
{
	info_json_member(out, indent, name, value);
	fputs(",\n", out);
}

static void info_json_begin(void)
{
	puts("{");
	info_json_text(stdout, "  ", "climport", CLIMPORT_RELEASE);
	info_json_text(stdout, "  ", "layer", path_layer());
	fputs("  \"platforms\": [", stdout);
}

static void info_json_alone(const char *how)
{
	snprintf(info_json_how, sizeof(info_json_how), "%s", how);
}

static void info_json_platform(FILE *out, const struct info_platform *p)
{
	fprintf(out, "%s\n    {\n      \"number\": %u,\n", p->first ? "" : ",", p->number);
	info_json_text(out, "      ", "name", p->name);
	info_json_text(out, "      ", "version", p->version);
	fputs("      \"devices\": [", out);
}

static void info_json_type(FILE *out, const struct info_device *device, size_t i)
{
	const struct device_description *d = &device->types[i];
	const char *unknown = "the device's properties cannot be read";

	fprintf(out, ",\n          \"%s\": {\n", info_json_names[i]);
	fprintf(out, "            \"zero_copy\": %s,\n", d->method ? "true" : "false");
	info_json_text(out, "            ", "method", d->method);
	info_json_text(out, "            ", "why", device->known[i] ? d->why : unknown);
	info_json_text(out, "            ", "kept", d->kept);
	fprintf(out,
		"            \"address_alignment\": %zu,\n            \"size_alignment\": %zu\n"
		"          }",
		d->address_align, d->size_align);
}

static void info_json_device(FILE *out, const struct info_device *device)
{
	fprintf(out, "%s\n        {\n          \"number\": %u,\n", device->first ? "" : ",",
		device->number);
	info_json_text(out, "          ", "name", device->name);
	info_json_text(out, "          ", "driver", device->driver);
	info_json_text(out, "          ", "extension_version", device->extension);
	fprintf(out, "          \"reports_extension\": %s,\n", device->reports ? "true" : "false");
	fprintf(out, "          \"reports_external_memory_dma_buf\": %s",
		device->reports_khr ? "true" : "false");
	for (size_t i = 0; i < INFO_TYPES; i++)
		info_json_type(out, device, i);
	fputs("\n        }", out);
}

static void info_json_platform_end(FILE *out)
{
	fputs("]\n    }", out);
}

/* All drivers, with those that give platforms. */
static void info_json_end(const struct drivers *drivers, char (*why)[DRIVER_WHY_SIZE])
{
	puts("],");
	info_json_text(stdout, "  ", "together", info_json_how);
	fputs("  \"drivers\": [", stdout);
	for (size_t i = 0; i < drivers->count; i++) {
		printf("%s\n    {\n", i ? "," : "");
		info_json_text(stdout, "      ", "file", drivers->list[i].file);
		info_json_text(stdout, "      ", "library", drivers->list[i].library);
		info_json_member(stdout, "      ", "no_platform", why[i]);
		fputs("\n    }", stdout);
	}
	puts("]\n}");
}

const struct info_form info_json = {
	.begin = info_json_begin,
	.alone = info_json_alone,
	.platform = info_json_platform,
	.device = info_json_device,
	.platform_end = info_json_platform_end,
	.end = info_json_end,
};
