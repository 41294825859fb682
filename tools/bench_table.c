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
#define NARROW_COLUMNS 41 /* of a name, on 80 columns: a longer one has a line of its own */
#define ROW_COLUMNS 100	  /* of a row without a goal */
#define GOAL_COLUMNS 16	  /* "  <= 1.05: missed" */

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

/* The width of the spread, in percent of the value, and the number of runs. */
static void bench_spread_text(char spread[16], char runs[16], const struct bench_figure *f)
{
	const double percent = (f->high - f->low) / fabs(f->value) * 100;

	spread[0] = '\0';
	runs[0] = '\0';
	if (f->runs > 1 && percent < 9999)
		snprintf(spread, 16, "%.*f%%", percent < 9.95, percent);
	else if (f->runs > 1)
		snprintf(spread, 16, ">99x");
	if (f->runs)
		snprintf(runs, 16, "%u", f->runs);
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

/* The cells before the goal's, in the order of the columns. */
struct bench_cells {
	const char *group, *name, *size, *value, *unit, *spread, *runs;
};

/* Begins a line with the cells. */
static void bench_table_cells(struct bench *b, struct terminal_text *t, const struct bench_cells *c)
{
	const bool narrow = bench_table_is_narrow(b);
	const bool is_long = narrow && strlen(c->name) > NARROW_COLUMNS;

	clear_progress();
	bench_table_group(b, c->group);
	if (is_long)
		terminal_line(stdout, 6, "  %s", c->name);
	terminal_begin(t, stdout, 6);
	terminal_add(t, COLOUR_NONE, "%-*s %-*s %8s %10s %-4s %6s %4s", narrow ? 1 : GROUP_COLUMNS,
		     narrow ? "" : c->group, narrow ? NARROW_COLUMNS : NAME_COLUMNS,
		     is_long ? "" : c->name, c->size, c->value, c->unit, c->spread, c->runs);
}

static void bench_table_judge(struct bench *b, struct terminal_text *t,
			      const struct bench_figure *figure, const char *goal)
{
	static const char *const words[] = { "met", "missed", "open" };
	static const enum terminal_colour colours[] = { COLOUR_GOOD, COLOUR_BAD, COLOUR_DOUBT };
	const enum bench_goal judged = bench_goal_judge(goal, figure);

	b->goals[judged]++;
	terminal_add(t, COLOUR_NONE, " %s: ", goal);
	terminal_add(t, colours[judged], "%s", words[judged]);
}

void bench_table_row(struct bench *b, const char *group, const char *name, size_t size,
		     const struct bench_figure *figure, const char *unit, const char *goal)
{
	char size_text[32], value_text[32], spread[16], runs[16], *space;
	struct terminal_text t;

	bench_size_text(size_text, size);
	bench_value_text(value_text, figure->value);
	bench_spread_text(spread, runs, figure);
	if (!strcmp(unit, "KiB")) { /* a size is printed as the sizes are */
		bench_size_text(value_text, (size_t)(figure->value * 1024));
		space = strchr(value_text, ' ');
		*space = '\0';
		unit = space + 1;
	}
	bench_table_cells(
		b, &t,
		&(struct bench_cells){ group, name, size_text, value_text, unit, spread, runs });
	if (goal)
		bench_table_judge(b, &t, figure, goal);
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
	terminal_line(stdout, 10, "medians of up to %u runs, up to %s", b->rounds, most);
	terminal_line(stdout, 10,
		      "spread    how far the middle half of the runs lies apart, in percent of the "
		      "median");
	putchar('\n');
	bench_table_cells(b, &t,
			  &(struct bench_cells){ bench_table_is_narrow(b) ? "" : "group", "what",
						 "size", "value", "unit", "spread", "runs" });
	terminal_add(&t, COLOUR_NONE, "%s", b->is_cuda ? " goal" : "");
	terminal_end(&t);
}
