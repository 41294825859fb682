/* SPDX-License-Identifier: Apache-2.0 */
#include "bench.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "json.h"

void bench_size_text(char text[32], size_t size)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB" };
	size_t unit = 0;

	for (; size >= 1024 && unit < 3; unit++)
		size /= 1024;
	if (size)
		snprintf(text, 32, "%zu %s", size, units[unit]);
	else
		text[0] = '\0';
}

static void clear_progress(void)
{
	if (isatty(STDERR_FILENO))
		fputs("\r\033[K", stderr);
}

void bench_progress(const char *format, ...)
{
	static double start;
	va_list args;

	if (!isatty(STDERR_FILENO))
		return;
	if (start <= 0)
		start = bench_now();
	va_start(args, format);
	fprintf(stderr, "\r\033[K%3.0f s: ", bench_now() - start);
	vfprintf(stderr, format, args);
	va_end(args);
	fflush(stderr);
}

static const char *bench_report_verdict(const char *goal, double value)
{
	double bound = atof(goal + 2);

	return (goal[0] == '<' ? value <= bound : value >= bound) ? "met" : "missed";
}

/* The goals are for NVIDIA's driver. */
void bench_report(struct bench *b, const char *group, const char *name, size_t size, double value,
		  const char *unit, const char *goal)
{
	char text[32];

	if (isnan(value))
		return;
	if (!b->is_cuda)
		goal = NULL;
	bench_size_text(text, size);
	clear_progress();
	printf("%-9s %-52s %8s %10.4g %-6s", group, name, text, value, unit);
	if (goal)
		printf(" %s: %s", goal, bench_report_verdict(goal, value));
	putchar('\n');
	fflush(stdout);
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

void bench_skip(const char *group, const char *what, const char *why)
{
	clear_progress();
	printf("%-9s %s: left out, %s\n", group, what, why);
	fflush(stdout);
}

static void print_header(const char *platform, const char *version, const char *device,
			 const char *driver, const struct bench *b)
{
	char most[32];

	bench_size_text(most, b->largest);
	printf("platform  %s, %s\n"
	       "device    %s\n"
	       "driver    %s\n"
	       "method    host memory: %s; dma-bufs: %s\n"
	       "memory    %s\n"
	       "kept      %s\n"
	       "medians of up to %u runs, up to %s\n\n"
	       "%-9s %-52s %8s %10s %-6s %s\n",
	       platform, version, device, driver, b->way, b->way_dmabuf, b->why,
	       b->kept ? b->kept : "nothing", b->rounds, most, "group", "what", "size", "", "",
	       b->is_cuda ? "goal" : "");
	fflush(stdout);
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

/* Before the first measurement, so that a wrong name costs no minute. */
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

void bench_report_begin(struct bench *b, const struct bench_options *options)
{
	char platform[256] = "?", version[256] = "?", device[256] = "?", driver[256] = "?";

	clGetPlatformInfo(b->platform, CL_PLATFORM_NAME, sizeof(platform), platform, NULL);
	clGetPlatformInfo(b->platform, CL_PLATFORM_VERSION, sizeof(version), version, NULL);
	clGetDeviceInfo(b->device, CL_DEVICE_NAME, sizeof(device), device, NULL);
	clGetDeviceInfo(b->device, CL_DRIVER_VERSION, sizeof(driver), driver, NULL);
	print_header(platform, version, device, driver, b);
	b->svg = open_file(options->svg);
	b->json = open_file(options->json);
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
	clear_progress();
	if (b->json) {
		fputs("\n\t]\n}\n", b->json);
		close_file(b->json, options->json);
	}
	if (b->svg) {
		write_plots(b);
		close_file(b->svg, options->svg);
	}
}
