/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was measured: the median of several runs, and their spread.  A comparison holds only if the
 * spreads of both sides do not meet: a machine that does something else makes numbers, not results.
 */
#ifndef TOOLS_BENCH_FIGURE_H
#define TOOLS_BENCH_FIGURE_H

#include <stdbool.h>
#include <stddef.h>

#define BENCH_FEWEST 3 /* runs for a comparison */

/*
 * The median, and where the middle half of the runs lies: all runs, if there are four or fewer.  Of a
 * value that was made of others: where it lies if they are anywhere in theirs.
 */
struct bench_figure {
	double value, low, high; /* value is NAN: not measured */
	unsigned int runs; /* the fewest of what the value was made of; 0: not measured in runs */
};

/* Of samples, which are sorted. */
struct bench_figure bench_figure_of(double *samples, size_t count);
struct bench_figure bench_figure_nothing(void);
/* Of a value without a spread. */
struct bench_figure bench_figure_known(double value);

bool bench_figure_is_known(const struct bench_figure *f);
/* All of @a's spread is below @b's, and both have BENCH_FEWEST runs. */
bool bench_figure_is_less(const struct bench_figure *a, const struct bench_figure *b);

struct bench_figure bench_figure_times(struct bench_figure f, double factor);
struct bench_figure bench_figure_ratio(struct bench_figure a, struct bench_figure b); /* a / b */
struct bench_figure bench_figure_minus(struct bench_figure a, struct bench_figure b);

/* "16 MiB"; "" for 0. */
void bench_size_text(char text[32], size_t size);

#endif /* TOOLS_BENCH_FIGURE_H */
