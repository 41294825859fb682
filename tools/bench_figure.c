/* SPDX-License-Identifier: Apache-2.0 */
#include "bench_figure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static int bench_figure_compare(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

struct bench_figure bench_figure_of(double *samples, size_t count)
{
	const size_t quarter = count ? (count - 1) / 4 : 0;

	if (!count)
		return bench_figure_nothing();
	qsort(samples, count, sizeof(*samples), bench_figure_compare);
	return (struct bench_figure){ .value = (samples[(count - 1) / 2] + samples[count / 2]) / 2,
				      .low = samples[quarter],
				      .high = samples[count - 1 - quarter],
				      .runs = (unsigned int)count };
}

struct bench_figure bench_figure_nothing(void)
{
	return bench_figure_known(NAN);
}

struct bench_figure bench_figure_known(double value)
{
	return (struct bench_figure){ value, value, value, 0 };
}

bool bench_figure_is_known(const struct bench_figure *f)
{
	return !isnan(f->value);
}

bool bench_figure_is_less(const struct bench_figure *a, const struct bench_figure *b)
{
	return a->runs >= BENCH_FEWEST && b->runs >= BENCH_FEWEST && a->high < b->low;
}

struct bench_figure bench_figure_times(struct bench_figure f, double factor)
{
	return (struct bench_figure){ f.value * factor, f.low * factor, f.high * factor, f.runs };
}

static unsigned int bench_figure_runs(const struct bench_figure *a, const struct bench_figure *b)
{
	if (!a->runs || !b->runs)
		return a->runs + b->runs;
	return a->runs < b->runs ? a->runs : b->runs;
}

struct bench_figure bench_figure_ratio(struct bench_figure a, struct bench_figure b)
{
	return (struct bench_figure){ a.value / b.value, a.low / b.high, a.high / b.low,
				      bench_figure_runs(&a, &b) };
}

struct bench_figure bench_figure_minus(struct bench_figure a, struct bench_figure b)
{
	return (struct bench_figure){ a.value - b.value, a.low - b.high, a.high - b.low,
				      bench_figure_runs(&a, &b) };
}

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
