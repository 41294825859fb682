/* SPDX-License-Identifier: Apache-2.0 */
#include "bench.h"

#include <math.h>

#include "json.h"

/* The goals are for NVIDIA's driver. */
void bench_report(struct bench *b, const char *group, const char *name, size_t size, double value,
		  const char *unit, const char *goal)
{
	if (isnan(value))
		return;
	if (!b->is_cuda)
		goal = NULL;
	bench_table_row(b, group, name, size, value, unit, goal);
	if (!b->json)
		return;
	fprintf(b->json, "%s\n\t\t{ \"group\": \"%s\", \"name\": ", b->json_more ? "," : "", group);
	json_quote(b->json, name);
	fprintf(b->json, ", \"size\": %zu, \"value\": %.9g, \"unit\": \"%s\", \"goal\": ", size,
		value, unit);
	if (goal)
		fprintf(b->json, "\"%s\" }", goal);
	else
		fputs("null }", b->json);
	b->json_more = true;
}

static void begin_json(struct bench *b, const char *platform, const char *device,
		       const char *driver)
{
	const char *const fields[][2] = {
		{ "platform", platform },
		{ "device", device },
		{ "driver", driver },
		{ "way", b->way },
		{ "way_dma_buf", b->way_dmabuf },
		{ "memory", b->why },
		{ "kept", b->kept ? b->kept : "" },
	};

	fputs("{\n", b->json);
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		fprintf(b->json, "\t\"%s\": ", fields[i][0]);
		json_quote(b->json, fields[i][1]);
		fputs(",\n", b->json);
	}
	fputs("\t\"figures\": [", b->json);
}

static FILE *open_file(const char *path)
{
	FILE *file = path ? fopen(path, "w") : NULL;

	if (path && !file)
		bench_fatal("%s: %m", path);
	return file;
}

static void close_file(FILE *file, const char *path)
{
	if (ferror(file) | fclose(file))
		bench_fatal("%s cannot be written", path);
}

void bench_report_open(struct bench *b, const struct bench_options *options)
{
	b->svg = open_file(options->svg);
	b->json = open_file(options->json);
}

void bench_report_begin(struct bench *b)
{
	char platform[256] = "?", version[256] = "?", device[256] = "?", driver[256] = "?";

	clGetPlatformInfo(b->platform, CL_PLATFORM_NAME, sizeof(platform), platform, NULL);
	clGetPlatformInfo(b->platform, CL_PLATFORM_VERSION, sizeof(version), version, NULL);
	clGetDeviceInfo(b->device, CL_DEVICE_NAME, sizeof(device), device, NULL);
	clGetDeviceInfo(b->device, CL_DRIVER_VERSION, sizeof(driver), driver, NULL);
	bench_table_begin(b, platform, version, device, driver);
	if (b->json)
		begin_json(b, platform, device, driver);
}

static void write_plots(const struct bench *b)
{
	char device[256] = "?", driver[256] = "?", text[600];

	clGetDeviceInfo(b->device, CL_DEVICE_NAME, sizeof(device), device, NULL);
	clGetDeviceInfo(b->device, CL_DRIVER_VERSION, sizeof(driver), driver, NULL);
	snprintf(text, sizeof(text), "%s, driver %s, method %s, medians", device, driver, b->way);
	plot_write(b->svg, "climport bench: what importing is worth", text, b->plots, BENCH_PLOTS);
}

void bench_report_end(struct bench *b, const struct bench_options *options)
{
	if (b->json)
		fputs("\n\t],\n\t\"verdict\": [", b->json);
	bench_verdict(b);
	if (b->json) {
		fputs("\n\t]\n}\n", b->json);
		close_file(b->json, options->json);
	}
	if (b->svg) {
		write_plots(b);
		close_file(b->svg, options->svg);
	}
}
