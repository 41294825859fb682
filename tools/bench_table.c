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

/* Prints the cells behind the group's.  @goal: text with colours. */
static void bench_table_cells(struct bench *b, const char *group, const char *name,
			      const char *size, const char *value, const char *unit,
			      const char *goal)
{
	const bool narrow = bench_table_is_narrow(b);

	clear_progress();
	if (narrow && *group && (!b->table_group || strcmp(b->table_group, group)))
		terminal_line(stdout, 0, "%s%s%s", terminal_colour(stdout, COLOUR_BOLD), group,
			      terminal_colour(stdout, COLOUR_NONE));
	b->table_group = group;
	terminal_line(stdout, 6, "%-*s %-*s %8s %10s %-4s%s%s", narrow ? 1 : GROUP_COLUMNS,
		      narrow ? "" : group, NAME_COLUMNS, name, size, value, unit, *goal ? " " : "",
		      goal);
	fflush(stdout);
}

static void bench_table_judge(struct bench *b, double value, const char *goal, char text[64])
{
	const bool met = bench_is_met(goal, value);

	b->goals++;
	b->goals_met += met;
	snprintf(text, 64, "%s: %s%s%s", goal,
		 terminal_colour(stdout, met ? COLOUR_GOOD : COLOUR_BAD), met ? "met" : "missed",
		 terminal_colour(stdout, COLOUR_NONE));
}

void bench_table_row(struct bench *b, const char *group, const char *name, size_t size,
		     double value, const char *unit, const char *goal)
{
	char size_text[32], value_text[32], goal_text[64] = "", *space;

	bench_size_text(size_text, size);
	bench_value_text(value_text, value);
	if (!strcmp(unit, "KiB")) { /* a size is printed as the sizes are */
		bench_size_text(value_text, (size_t)(value * 1024));
		space = strchr(value_text, ' ');
		*space = '\0';
		unit = space + 1;
	}
	if (goal)
		bench_table_judge(b, value, goal, goal_text);
	bench_table_cells(b, group, name, size_text, value_text, unit, goal_text);
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
	char most[32];

	bench_size_text(most, b->largest);
	terminal_line(stdout, 10, "platform  %s, %s", platform, version);
	terminal_line(stdout, 10, "device    %s", device);
	terminal_line(stdout, 10, "driver    %s", driver);
	terminal_line(stdout, 10, "method    host memory: %s; dma-bufs: %s", b->way, b->way_dmabuf);
	terminal_line(stdout, 10, "memory    %s", b->why);
	terminal_line(stdout, 10, "kept      %s", b->kept ? b->kept : "nothing");
	terminal_line(stdout, 10, "medians of up to %u runs, up to %s\n", b->rounds, most);
	bench_table_cells(b, bench_table_is_narrow(b) ? "" : "group", "what", "size", "value",
			  "unit", b->is_cuda ? "goal" : "");
}
