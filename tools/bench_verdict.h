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
	double value, low, high; /* value is NAN: not measured */
	unsigned int runs;	 /* of a ratio: of the side with fewer */
};

/* Of samples, which are sorted. */
struct bench_figure bench_figure_of(double *samples, size_t count);
bool bench_figure_is_known(const struct bench_figure *f);
struct bench_figure bench_figure_times(struct bench_figure f, double factor);
struct bench_figure bench_figure_ratio(struct bench_figure a, struct bench_figure b); /* a / b */

/* From which size on a use of imports takes less time than a write. */
struct bench_crossing {
	size_t wins;			   /* from here on, up to the largest; 0: not there */
	bool won;			   /* somewhere */
	size_t smallest, largest;	   /* 0: nothing was measured */
	struct bench_figure write, import; /* at the largest size, in seconds */
};

/* Sizes come in rising order.  A size that could not be measured says nothing. */
void bench_crossing_add(struct bench_crossing *crossing, size_t size,
			const struct bench_figure *write, const struct bench_figure *import);

/*
 * "@what wins from 4 MiB on; ...", without a stop.  The caller frees the sentence.  NULL: nothing was
 * measured, or no memory.
 */
char *bench_verdict(const char *what, const struct bench_crossing *crossing);

#endif /* TOOLS_BENCH_VERDICT_H */
