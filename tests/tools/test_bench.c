/* SPDX-License-Identifier: Apache-2.0 */
/* The verdicts of climport bench, on samples that are made up: nothing is measured here. */
#include "harness.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tools/bench_verdict.h"

#define MIB ((size_t)1 << 20)
#define COUNT(samples) (sizeof(samples) / sizeof((samples)[0]))

static struct bench_figure bench_figure_made(const double *samples, size_t count)
{
	double copy[64];

	memcpy(copy, samples, count * sizeof(*samples));
	return bench_figure_of(copy, count);
}

/* Runs of equal length, but for one in eight, which takes a hundred times as long. */
static struct bench_figure bench_figure_quiet(double seconds)
{
	const double samples[] = { seconds,	  seconds, seconds * 1.01, seconds * 0.99,
				   seconds * 100, seconds, seconds * 1.01, seconds * 0.99 };

	return bench_figure_made(samples, COUNT(samples));
}

/* Runs of which each second one takes three times as long. */
static struct bench_figure bench_figure_noisy(double seconds)
{
	const double samples[] = { seconds,	seconds * 3, seconds,	  seconds * 3,
				   seconds * 3, seconds,     seconds * 3, seconds };

	return bench_figure_made(samples, COUNT(samples));
}

/* Whether the sentence, which is freed, has the words. */
static bool bench_says(char *sentence, const char *words)
{
	const bool has = sentence && strstr(sentence, words);

	if (!has)
		printf("# no \"%s\" in: %s\n", words, sentence ? sentence : "(nothing)");
	free(sentence);
	return has;
}

TEST(figure, "A figure is the median of its runs, with the ends of their middle half.")
{
	const double samples[] = { 9, 1, 3, 5, 7, 2, 4, 6, 8 };
	const struct bench_figure f = bench_figure_made(samples, COUNT(samples));

	EXPECT(f.value == 5 && f.low == 3 && f.high == 7);
	EXPECT_EQ(f.runs, 9);
}

TEST(figure_few, "The spread of four runs or fewer is that of all of them.")
{
	const double samples[] = { 4, 1, 3, 2 };
	struct bench_figure f = bench_figure_made(samples, 4);

	EXPECT(f.value == 2.5 && f.low == 1 && f.high == 4);
	f = bench_figure_made(samples, 1);
	EXPECT(f.value == 4 && f.low == 4 && f.high == 4);
	EXPECT_EQ(f.runs, 1);
	f = bench_figure_made(samples, 0);
	EXPECT(!bench_figure_is_known(&f));
}

TEST(ratio, "The spread of a ratio is where it lies if both sides are anywhere in theirs.")
{
	const struct bench_figure a = { 10, 8, 12, 5 }, b = { 5, 4, 6, 9 };
	const struct bench_figure ratio = bench_figure_ratio(a, b);

	EXPECT(ratio.value == 2 && ratio.low == 8.0 / 6 && ratio.high == 3);
	EXPECT_EQ(ratio.runs, 5);
}

struct bench_rows {
	struct bench_row list[16];
	size_t count;
};

static void bench_rows_add(struct bench_rows *rows, size_t size, struct bench_figure write,
			   struct bench_figure import)
{
	rows->list[rows->count++] =
		(struct bench_row){ size, { [BENCH_WRITE] = write, [BENCH_IMPORT] = import } };
}

static char *bench_rows_judge(const struct bench_rows *rows)
{
	return bench_verdict("an import", BENCH_IMPORT, rows->list, rows->count);
}

/* From 4 KiB to 16 MiB, each size four times the last; the import @ratio times as fast. */
static struct bench_rows bench_rows_of(struct bench_figure (*figure)(double), double ratio)
{
	struct bench_rows rows = { 0 };

	for (size_t size = 4096; size <= 16 * MIB; size *= 4)
		bench_rows_add(&rows, size, figure((double)size * 1e-9),
			       figure((double)size * 1e-9 / ratio));
	return rows;
}

TEST(wins, "Imports that are faster at every size win from the smallest on, with the ratio of the "
	   "largest.")
{
	const struct bench_rows rows = bench_rows_of(bench_figure_quiet, 2);

	EXPECT(bench_says(bench_rows_judge(&rows),
			  "an import wins from 4 KiB on; at 16 MiB it is 2 ("));
}

TEST(loses, "Imports that are slower at every size win at no size.")
{
	const struct bench_rows rows = bench_rows_of(bench_figure_quiet, 0.5);

	EXPECT(bench_says(bench_rows_judge(&rows),
			  "an import wins at no size; at 16 MiB it takes 2 ("));
}

TEST(noise, "If the spreads of both meet, there is no verdict, however far apart the medians are.")
{
	const struct bench_rows rows = bench_rows_of(bench_figure_noisy, 2);

	EXPECT(bench_says(
		bench_rows_judge(&rows),
		"whether an import wins is not known: at 16 MiB the middle half of the runs "
		"took"));
}

TEST(spikes, "One slow run of three spreads the figure, so that no verdict comes of two runs.")
{
	const double spikes[] = { 1, 9, 9 }, quiet[] = { 5, 5, 5 };
	struct bench_rows rows = { 0 };

	bench_rows_add(&rows, 16 * MIB, bench_figure_made(spikes, 3), bench_figure_made(quiet, 3));
	EXPECT(bench_says(bench_rows_judge(&rows), "is not known: at 16 MiB"));
}

TEST(few_runs, "Two runs are no comparison, however far apart the figures are.")
{
	const double slow[] = { 9, 9 }, fast[] = { 1, 1 };
	struct bench_rows rows = { 0 };

	bench_rows_add(&rows, MIB, bench_figure_made(slow, 2), bench_figure_made(fast, 2));
	EXPECT(bench_says(bench_rows_judge(&rows), "at 1 MiB there was time for 2 of the 3 runs"));
}

TEST(crossing, "Imports win from the size after the last size at which they do not.")
{
	const struct bench_figure slow = bench_figure_quiet(2), fast = bench_figure_quiet(1);
	struct bench_rows rows = { 0 };

	bench_rows_add(&rows, MIB, slow, fast);
	bench_rows_add(&rows, 2 * MIB, slow, bench_figure_noisy(1));
	EXPECT(bench_says(bench_rows_judge(&rows), "is not known: at 2 MiB"));
	bench_rows_add(&rows, 4 * MIB, slow, fast);
	bench_rows_add(&rows, 8 * MIB, slow, fast);
	EXPECT(bench_says(bench_rows_judge(&rows), "an import wins from 4 MiB on;"));
	bench_rows_add(&rows, 16 * MIB, fast, slow);
	EXPECT(bench_says(bench_rows_judge(&rows),
			  "wins at some sizes, and not at the largest; at 16 MiB"));
}

TEST(unmeasured, "A size that was not measured says nothing.")
{
	const struct bench_figure slow = bench_figure_quiet(2), fast = bench_figure_quiet(1);
	struct bench_rows rows = { 0 };

	EXPECT(!bench_rows_judge(&rows));
	bench_rows_add(&rows, MIB, slow, fast);
	bench_rows_add(&rows, 4 * MIB, slow, bench_figure_of(NULL, 0));
	EXPECT(bench_says(bench_rows_judge(&rows), "an import wins from 1 MiB on; at 1 MiB"));
}
