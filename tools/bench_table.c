/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table.  Every row has the same columns.  On a terminal that is too narrow for the rows, the
 * group is a line of its own above the group's rows.
 */
#include "bench.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "terminal.h"
#include "util/utf8.h"

#define GROUP_COLUMNS 9
#define NAME_COLUMNS 53
#define ROW_COLUMNS 88	/* of a row without a goal */
#define GOAL_COLUMNS 16 /* "  <= 1.05: missed" */

void bench_size_text(char text[32], size_t size)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB" };
	double value = (double)size;
	size_t unit = 0;

	for (; value >= 1024 && unit < 3; unit++)
		value /= 1024;
	if (size)
		snprintf(text, 32, value < 100 ? "%.3g %s" : "%.0f %s", value, units[unit]);
	else
		text[0] = '\0';
}

/* Four digits, or all digits before the point.  Never an exponent. */
static void bench_value_text(char text[32], double value)
{
	const double size = fabs(value);
	const int before = size > 0 ? (int)floor(log10(size)) + 1 : 1;

	snprintf(text, 32, "%.*f", before > 3 ? 0 : before < -4 ? 8 : 4 - before, value);
	if (!strchr(text, '.'))
		return;
	for (char *end = text + strlen(text) - 1; *end == '0'; end--)
		*end = '\0';
	if (text[strlen(text) - 1] == '.')
		text[strlen(text) - 1] = '\0';
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
	char *text;

	if (!isatty(STDERR_FILENO))
		return;
	if (start <= 0)
		start = bench_now();
	va_start(args, format);
	text = terminal_format(format, args);
	va_end(args);
	if (!text)
		return;
	utf8_make_printable(text);
	fprintf(stderr, "\r\033[K%3.0f s: %s", bench_now() - start, text);
	free(text);
	fflush(stderr);
}

static bool bench_is_met(const char *goal, double value)
{
	double bound = atof(goal + 2);

	return goal[0] == '<' ? value <= bound : value >= bound;
}

static bool bench_table_is_narrow(const struct bench *b)
{
	const int width = terminal_width(stdout);

	return width && width < ROW_COLUMNS + (b->is_cuda ? GOAL_COLUMNS : 0);
}

static void bench_table_group(struct bench *b, const char *group)
{
	struct terminal_text t;

	if (bench_table_is_narrow(b) && *group &&
	    (!b->table_group || strcmp(b->table_group, group))) {
		terminal_begin(&t, stdout, 0);
		terminal_add(&t, COLOUR_BOLD, "%s", group);
		terminal_end(&t);
	}
	b->table_group = group;
}

/* Begins a line with the cells before the goal's. */
static void bench_table_cells(struct bench *b, struct terminal_text *t, const char *group,
			      const char *name, const char *size, const char *value,
			      const char *unit)
{
	const bool narrow = bench_table_is_narrow(b);

	clear_progress();
	bench_table_group(b, group);
	terminal_begin(t, stdout, 6);
	terminal_add(t, COLOUR_NONE, "%-*s %-*s %8s %10s %-4s", narrow ? 1 : GROUP_COLUMNS,
		     narrow ? "" : group, NAME_COLUMNS, name, size, value, unit);
}

static void bench_table_judge(struct bench *b, struct terminal_text *t, double value,
			      const char *goal)
{
	const bool met = bench_is_met(goal, value);

	b->goals++;
	b->goals_met += met;
	terminal_add(t, COLOUR_NONE, " %s: ", goal);
	terminal_add(t, met ? COLOUR_GOOD : COLOUR_BAD, met ? "met" : "missed");
}

void bench_table_row(struct bench *b, const char *group, const char *name, size_t size,
		     double value, const char *unit, const char *goal)
{
	char size_text[32], value_text[32], *space;
	struct terminal_text t;

	bench_size_text(size_text, size);
	bench_value_text(value_text, value);
	if (!strcmp(unit, "KiB")) { /* a size is printed as the sizes are */
		bench_size_text(value_text, (size_t)(value * 1024));
		space = strchr(value_text, ' ');
		*space = '\0';
		unit = space + 1;
	}
	bench_table_cells(b, &t, group, name, size_text, value_text, unit);
	if (goal)
		bench_table_judge(b, &t, value, goal);
	terminal_end(&t);
	fflush(stdout);
}

void bench_skip(const char *group, const char *what, const char *why)
{
	clear_progress();
	terminal_line(stdout, GROUP_COLUMNS + 1, "%-*s %s: left out, %s", GROUP_COLUMNS, group,
		      what, why);
	fflush(stdout);
}

void bench_table_begin(struct bench *b, const char *platform, const char *version,
		       const char *device, const char *driver)
{
	struct terminal_text t;
	char most[32];

	bench_size_text(most, b->largest);
	terminal_line(stdout, 10, "platform  %s, %s", platform, version);
	terminal_line(stdout, 10, "device    %s", device);
	terminal_line(stdout, 10, "driver    %s", driver);
	terminal_line(stdout, 10, "method    host memory: %s; dma-bufs: %s", b->way, b->way_dmabuf);
	terminal_line(stdout, 10, "memory    %s", b->why);
	terminal_line(stdout, 10, "kept      %s", b->kept ? b->kept : "nothing");
	terminal_line(stdout, 10, "medians of up to %u runs, up to %s", b->rounds, most);
	putchar('\n');
	bench_table_cells(b, &t, bench_table_is_narrow(b) ? "" : "group", "what", "size", "value",
			  "unit");
	terminal_add(&t, COLOUR_NONE, "%s", b->is_cuda ? " goal" : "");
	terminal_end(&t);
}
