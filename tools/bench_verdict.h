/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was measured, and what it means in words.  Pure: no device, no clock.
 *
 * A comparison holds only if the spreads of both sides do not meet: a machine that does something
 * else makes numbers, not results.
 */
#ifndef TOOLS_BENCH_VERDICT_H
#define TOOLS_BENCH_VERDICT_H

#include <stdbool.h>
#include <stddef.h>

#define BENCH_FEWEST 3 /* runs for a comparison */

/*
 * The median, and where the middle half of the runs lies: all runs, if there are four or fewer.  Of a
 * ratio: where it lies if both sides are anywhere in theirs.
 */
struct bench_figure {
	double value, low, high;
	unsigned int runs; /* 0: not measured.  Of a ratio: of the side with fewer */
};

/* Of samples, which are sorted. */
struct bench_figure bench_figure_of(double *samples, size_t count);
bool bench_figure_is_known(const struct bench_figure *f);
struct bench_figure bench_figure_times(struct bench_figure f, double factor);
struct bench_figure bench_figure_ratio(struct bench_figure a, struct bench_figure b); /* a / b */

/* All of @a's spread is below @b's, of BENCH_FEWEST runs each. */
bool bench_figure_is_less(const struct bench_figure *a, const struct bench_figure *b);

/* Ways to have host data read by one kernel.  Each is timed from the data to the kernel's result. */
enum bench_way { BENCH_WRITE, BENCH_IMPORT, BENCH_ALLOC, BENCH_DMA_BUF, BENCH_KEPT, BENCH_WAYS };

/* The times of a size, in seconds. */
struct bench_row {
	size_t size;
	struct bench_figure ways[BENCH_WAYS];
};

/*
 * "@what wins from 4 MiB on; ...", without a stop: the way beside BENCH_WRITE, in rows of rising sizes.
 * The caller frees the sentence.  NULL: nothing was measured, or no memory.
 */
char *bench_verdict(const char *what, enum bench_way way, const struct bench_row *rows,
		    size_t count);

#endif /* TOOLS_BENCH_VERDICT_H */
