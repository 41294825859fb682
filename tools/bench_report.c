/* SPDX-License-Identifier: Apache-2.0 */
#include "bench.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "arguments.h"
#include "terminal.h"

static const struct {
	const char *column, *name, *verdict;
} bench_ways[BENCH_WAYS] = {
	[BENCH_WRITE] = { "copy", "clEnqueueWriteBuffer, kernel", NULL },
	[BENCH_IMPORT] = { "import", "import, kernel, release", "an import for one kernel" },
	[BENCH_ALLOC] = { "alloc", "the same of climport_alloc memory",
			  "an import of climport_alloc() memory for one kernel" },
	[BENCH_DMA_BUF] = { "dma-buf", "the same of a dma-buf",
			    "an import of a dma-buf for one kernel" },
	[BENCH_KEPT] = { "kept", "kernel on an import that is kept",
			 "a kernel on an import that is kept" },
};

void bench_report_open(struct bench *b)
{
	const char *file = b->options.json ? b->options.json : "/dev/null";

	b->json.out = fopen(file, "w");
	if (!b->json.out)
		bench_fatal("%s: %m", file);
}

/* "" where the kernel does not say: on Arm. */
static void bench_report_read_cpu(char cpu[256])
{
	FILE *file = fopen("/proc/cpuinfo", "r");
	char line[256];

	*cpu = '\0';
	while (file && !*cpu && fgets(line, sizeof(line), file))
		sscanf(line, "model name : %255[^\n]", cpu);
	if (file)
		fclose(file);
}

void bench_report_begin(struct bench *b)
{
	const time_t now = time(NULL);
	char date[32], cpu[256];

	if (isatty(STDERR_FILENO))
		terminal_line(stderr, 4, "measuring for about %.0f seconds ...", b->seconds);
	strftime(date, sizeof(date), "%FT%TZ", gmtime(&now));
	bench_report_read_cpu(cpu);
	json_open(&b->json, NULL, '{');
	json_string(&b->json, "climport", CLIMPORT_RELEASE);
	json_string(&b->json, "date", date);
	json_string(&b->json, "cpu", cpu);
	json_string(&b->json, "platform", b->platform_name);
	json_string(&b->json, "device", b->device_name);
	json_string(&b->json, "driver", b->driver);
	json_string(&b->json, "host_memory", b->host.method);
	json_string(&b->json, "dma_buf", b->dma_buf.method);
	json_string(&b->json, "why", b->host.why);
	json_open(&b->json, "figures", '[');
}

void bench_report_figure(struct bench *b, const char *group, const char *name, size_t size,
			 struct bench_figure figure, const char *unit)
{
	if (!bench_figure_is_known(&figure))
		return;
	json_open(&b->json, NULL, '{');
	json_string(&b->json, "group", group);
	json_string(&b->json, "name", name);
	json_number(&b->json, "size", (double)size);
	json_number(&b->json, "value", figure.value);
	json_string(&b->json, "unit", unit);
	json_number(&b->json, "low", figure.low);
	json_number(&b->json, "high", figure.high);
	json_number(&b->json, "runs", figure.runs);
	json_close(&b->json, '}');
}

void bench_report_row(struct bench *b, const struct bench_row *row)
{
	for (enum bench_way way = 0; way < BENCH_WAYS; way++)
		bench_report_figure(b, "once", bench_ways[way].name, row->size,
				    bench_figure_times(row->ways[way], 1e3), "ms");
}

static void bench_report_say(struct bench *b, enum bench_way way)
{
	char *sentence = bench_verdict(bench_ways[way].verdict, way, b->rows, b->row_count);
	struct terminal_text t;

	if (!sentence)
		return;
	terminal_begin(&t, stdout, 9);
	terminal_add(&t, COLOUR_BOLD, "verdict");
	terminal_add(&t, COLOUR_NONE, ": %s.", sentence);
	terminal_end(&t);
	json_string(&b->json, NULL, sentence);
	free(sentence);
}

/* Green: faster than the copy, red: slower, and that is sure. */
static void bench_report_cell(struct terminal_text *t, const struct bench_figure *f,
			      const struct bench_figure *write)
{
	const double ms = f->value * 1e3;

	if (!bench_figure_is_known(f))
		terminal_add(t, COLOUR_NONE, " %13s", "");
	else
		terminal_add(t,
			     bench_figure_is_less(f, write)   ? COLOUR_GOOD
			     : bench_figure_is_less(write, f) ? COLOUR_BAD
							      : COLOUR_NONE,
			     " %6.*f %5.0f%%",
			     ms < 1	? 4
			     : ms < 100 ? 2
					: 0,
			     ms, (f->high - f->low) / f->value * 100);
}

/* On what this was measured, and what the columns of the table are. */
static void bench_report_explain(const struct bench *b)
{
	putchar('\n');
	terminal_line(stdout, 4, "%s, %s, driver %s", b->platform_name, b->device_name, b->driver);
	terminal_line(stdout, 4, "host memory by method %s: %s", b->host.method, b->host.why);
	terminal_line(stdout, 4,
		      "climport %s; medians of up to %u runs, from the data to the kernel's "
		      "result, and how far the middle half of them lies apart",
		      CLIMPORT_RELEASE, b->rounds);
	putchar('\n');
	for (enum bench_way way = 0; way < BENCH_WAYS; way++) {
		terminal_line(stdout, 12, "%-9s %s%s%s", bench_ways[way].column,
			      bench_ways[way].name, b->lacks[way] ? ": left out, " : "",
			      b->lacks[way] ? b->lacks[way] : "");
		free(b->lacks[way]);
	}
	putchar('\n');
}

static void bench_report_table(const struct bench *b)
{
	struct terminal_text t;
	char size[32];

	terminal_begin(&t, stdout, 4);
	terminal_add(&t, COLOUR_BOLD, "%7s", "ms");
	for (enum bench_way way = 0; way < BENCH_WAYS; way++)
		terminal_add(&t, COLOUR_BOLD, " %13s", bench_ways[way].column);
	terminal_end(&t);
	for (const struct bench_row *row = b->rows; row < b->rows + b->row_count; row++) {
		terminal_begin(&t, stdout, 4);
		terminal_add(&t, COLOUR_NONE, "%7s", size_format(size, row->size));
		for (enum bench_way way = 0; way < BENCH_WAYS; way++)
			bench_report_cell(&t, &row->ways[way], &row->ways[BENCH_WRITE]);
		terminal_end(&t);
	}
	if (b->row_count && b->rows[b->row_count - 1].size < b->largest)
		terminal_line(stdout, 4, "larger sizes: left out, the time is over");
}

void bench_report_end(struct bench *b)
{
	struct json *j = &b->json;

	json_close(j, ']');
	json_open(j, "verdict", '[');
	for (enum bench_way way = BENCH_IMPORT; way < BENCH_WAYS; way++)
		bench_report_say(b, way);
	json_close(j, ']');
	json_close(j, '}');
	bench_report_explain(b);
	bench_report_table(b);
	if (ferror(j->out) | fclose(j->out))
		bench_fatal("%s cannot be written", b->options.json);
}
