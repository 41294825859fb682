/* SPDX-License-Identifier: Apache-2.0 */
#include "bench.h"

#include <stdlib.h>

#include "arguments.h"
#include "json.h"
#include "terminal.h"

#define ROW "%-41s %8s %10s %-4s %6s %4s" /* 78 columns */

void bench_report(struct bench *b, const char *group, const char *name, size_t size,
		  struct bench_figure figure, const char *unit)
{
	const int places = figure.value < 1 ? 4 : figure.value < 100 ? 2 : 0;
	char bytes[32], value[32], spread[32], runs[16];

	if (!bench_figure_is_known(&figure))
		return;
	size_format(bytes, size);
	snprintf(value, sizeof(value), "%.*f", places, figure.value);
	snprintf(spread, sizeof(spread), "%.0f%%", (figure.high - figure.low) / figure.value * 100);
	snprintf(runs, sizeof(runs), "%u", figure.runs);
	terminal_line(stdout, 4, ROW, name, bytes, value, unit, spread, runs);
	fflush(stdout);
	if (!b->json)
		return;
	fprintf(b->json, "%s\n\t\t{ \"group\": \"%s\", \"name\": ", b->json_more ? "," : "", group);
	json_quote(b->json, name);
	fprintf(b->json,
		", \"size\": %zu, \"value\": %.9g, \"unit\": \"%s\", \"low\": %.9g, \"high\": "
		"%.9g, "
		"\"runs\": %u }",
		size, figure.value, unit, figure.low, figure.high, figure.runs);
	b->json_more = true;
}

void bench_leave_out(const char *what, const char *why)
{
	terminal_line(stdout, 4, "%s: left out, %s", what, why);
}

void bench_report_open(struct bench *b)
{
	if (!b->options.json)
		return;
	b->json = fopen(b->options.json, "w");
	if (!b->json)
		bench_fatal("%s: %m", b->options.json);
}

void bench_report_begin(struct bench *b)
{
	char platform[256] = "?", device[256] = "?", driver[256] = "?", most[32];
	const char *const fields[][2] = {
		{ "platform", platform },
		{ "device", device },
		{ "driver", driver },
		{ "host_memory", b->host.method },
		{ "dma_buf", b->dma_buf.method ? b->dma_buf.method : "refused" },
		{ "zero_copy", b->host.why },
	};

	clGetPlatformInfo(b->platform, CL_PLATFORM_NAME, sizeof(platform), platform, NULL);
	clGetDeviceInfo(b->device, CL_DEVICE_NAME, sizeof(device), device, NULL);
	clGetDeviceInfo(b->device, CL_DRIVER_VERSION, sizeof(driver), driver, NULL);
	if (b->json)
		fputs("{\n", b->json);
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		terminal_line(stdout, 12, "%-11s %s", fields[i][0], fields[i][1]);
		if (!b->json)
			continue;
		fprintf(b->json, "\t\"%s\": ", fields[i][0]);
		json_quote(b->json, fields[i][1]);
		fputs(",\n", b->json);
	}
	if (b->json)
		fputs("\t\"figures\": [", b->json);
	terminal_line(
		stdout, 0,
		"Medians of up to %u runs, up to %s, from the data to the kernel's result.  The "
		"spread is how far the middle half of the runs lies apart, in percent.",
		b->rounds, size_format(most, b->largest));
	putchar('\n');
	terminal_line(stdout, 4, ROW, "what", "size", "value", "unit", "spread", "runs");
}

static void bench_say(struct bench *b, const char *sentence, bool more)
{
	struct terminal_text t;

	terminal_begin(&t, stdout, 9);
	terminal_add(&t, COLOUR_BOLD, "verdict");
	terminal_add(&t, COLOUR_NONE, ": %s.", sentence);
	terminal_end(&t);
	if (!b->json)
		return;
	fprintf(b->json, "%s\n\t\t", more ? "," : "");
	json_quote(b->json, sentence);
}

void bench_report_end(struct bench *b, char **sentences, size_t count)
{
	bool more = false;

	putchar('\n');
	if (b->json)
		fputs("\n\t],\n\t\"verdict\": [", b->json);
	for (size_t i = 0; i < count; i++) {
		if (!sentences[i])
			continue;
		bench_say(b, sentences[i], more);
		more = true;
		free(sentences[i]);
	}
	if (!b->json)
		return;
	fputs("\n\t]\n}\n", b->json);
	if (ferror(b->json) | fclose(b->json))
		bench_fatal("%s cannot be written", b->options.json);
}
