/* SPDX-License-Identifier: Apache-2.0 */
#include "bench_verdict.h"

#include <stdio.h>
#include <stdlib.h>

#include "arguments.h"

static int bench_figure_compare(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

struct bench_figure bench_figure_of(double *samples, size_t count)
{
	const size_t quarter = count ? (count - 1) / 4 : 0;

	if (!count)
		return (struct bench_figure){ 0 };
	qsort(samples, count, sizeof(*samples), bench_figure_compare);
	return (struct bench_figure){ .value = (samples[(count - 1) / 2] + samples[count / 2]) / 2,
				      .low = samples[quarter],
				      .high = samples[count - 1 - quarter],
				      .runs = (unsigned int)count };
}

bool bench_figure_is_known(const struct bench_figure *f)
{
	return f->runs;
}

struct bench_figure bench_figure_times(struct bench_figure f, double factor)
{
	return (struct bench_figure){ f.value * factor, f.low * factor, f.high * factor, f.runs };
}

struct bench_figure bench_figure_ratio(struct bench_figure a, struct bench_figure b)
{
	return (struct bench_figure){ a.value / b.value, a.low / b.high, a.high / b.low,
				      a.runs < b.runs ? a.runs : b.runs };
}

bool bench_figure_is_less(const struct bench_figure *a, const struct bench_figure *b)
{
	return a->runs >= BENCH_FEWEST && b->runs >= BENCH_FEWEST && a->high < b->low;
}

/* From which size on the way takes less time than a write. */
struct bench_crossing {
	size_t wins;			   /* from here on, up to the largest; 0: not there */
	bool won;			   /* somewhere */
	size_t largest;			   /* 0: nothing was measured */
	struct bench_figure write, import; /* at the largest size */
};

static void bench_crossing_add(struct bench_crossing *c, enum bench_way way,
			       const struct bench_row *row)
{
	const struct bench_figure *write = &row->ways[BENCH_WRITE], *import = &row->ways[way];

	if (!bench_figure_is_known(write) || !bench_figure_is_known(import))
		return;
	c->largest = row->size;
	c->write = *write;
	c->import = *import;
	if (!bench_figure_is_less(import, write)) {
		c->wins = 0;
		return;
	}
	c->won = true;
	if (!c->wins)
		c->wins = row->size;
}

/* The machine was busy, or too few runs had time: what there is, and what to do. */
static int bench_verdict_open(char **text, const char *what, const struct bench_crossing *c,
			      const char *largest)
{
	const struct bench_figure ratio = bench_figure_ratio(c->write, c->import);

	if (ratio.runs < BENCH_FEWEST)
		return asprintf(text,
				"whether %s wins is not known: at %s there was time for %u of the "
				"%d runs that a comparison takes; measure while the machine does "
				"nothing else, or with a lesser --size",
				what, largest, ratio.runs, BENCH_FEWEST);
	return asprintf(text,
			"whether %s wins is not known: at %s the middle half of the runs took %.3g "
			"to %.3g ms with it, and %.3g to %.3g ms with a copy; measure while the "
			"machine does nothing else",
			what, largest, c->import.low * 1e3, c->import.high * 1e3,
			c->write.low * 1e3, c->write.high * 1e3);
}

static int bench_verdict_print(char **text, const char *what, const struct bench_crossing *c)
{
	const struct bench_figure faster = bench_figure_ratio(c->write, c->import),
				  slower = bench_figure_ratio(c->import, c->write);
	char wins[32], largest[32];

	size_format(wins, c->wins);
	size_format(largest, c->largest);
	if (c->wins)
		return asprintf(text,
				"%s wins from %s on; at %s it is %.2g (%.2g to %.2g) times as fast "
				"as a copy",
				what, wins, largest, faster.value, faster.low, faster.high);
	if (!bench_figure_is_less(&c->write, &c->import))
		return bench_verdict_open(text, what, c, largest);
	return asprintf(text,
			"%s wins at %s; at %s it takes %.2g (%.2g to %.2g) times as long as a copy",
			what, c->won ? "some sizes, and not at the largest" : "no size", largest,
			slower.value, slower.low, slower.high);
}

char *bench_verdict(const char *what, enum bench_way way, const struct bench_row *rows,
		    size_t count)
{
	struct bench_crossing c = { 0 };
	char *text;

	for (size_t i = 0; i < count; i++)
		bench_crossing_add(&c, way, &rows[i]);
	return c.largest && bench_verdict_print(&text, what, &c) >= 0 ? text : NULL;
}
