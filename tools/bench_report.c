/* SPDX-License-Identifier: Apache-2.0 */
#include "bench.h"

#include <stdlib.h>

#include "json.h"
#include "terminal.h"

/* The goals are for NVIDIA's driver. */
void bench_report(struct bench *b, const char *group, const char *name, size_t size,
		  struct bench_figure figure, const char *unit, const char *goal)
{
	if (!bench_figure_is_known(&figure))
		return;
	if (!b->is_cuda)
		goal = NULL;
	bench_table_row(b, group, name, size, &figure, unit, goal);
	if (!b->json)
		return;
	fprintf(b->json, "%s\n\t\t{ \"group\": \"%s\", \"name\": ", b->json_more ? "," : "", group);
	json_quote(b->json, name);
	fprintf(b->json, ", \"size\": %zu, \"value\": %.9g, \"unit\": \"%s\", ", size, figure.value,
		unit);
	if (figure.runs)
		fprintf(b->json, "\"low\": %.9g, \"high\": %.9g, \"runs\": %u, ", figure.low,
			figure.high, figure.runs);
	else
		fputs("\"low\": null, \"high\": null, \"runs\": null, ", b->json);
	fputs("\"goal\": ", b->json);
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

/* A sentence below the table, and in the JSON file's list.  Takes the text, which may be NULL. */
static void bench_say(struct bench *b, char *text)
{
	struct terminal_text t;

	if (!text)
		return;
	terminal_begin(&t, stdout, 9);
	terminal_add(&t, COLOUR_BOLD, "verdict");
	terminal_add(&t, COLOUR_NONE, ": %s.", text);
	terminal_end(&t);
	if (b->json) {
		fprintf(b->json, "%s\n\t\t", b->verdicts++ ? "," : "");
		json_quote(b->json, text);
	}
	free(text);
}

void bench_report_end(struct bench *b, const struct bench_options *options)
{
	if (b->json)
		fputs("\n\t],\n\t\"verdict\": [", b->json);
	putchar('\n');
	bench_say(b, bench_verdict_once(&b->once));
	bench_say(b, bench_verdict_again(&b->again));
	bench_say(b, bench_verdict_frames(&b->frames));
	bench_say(b, bench_verdict_goals(b->goals));
	if (b->json) {
		fputs("\n\t]\n}\n", b->json);
		close_file(b->json, options->json);
	}
	if (b->svg) {
		write_plots(b);
		close_file(b->svg, options->svg);
	}
}
