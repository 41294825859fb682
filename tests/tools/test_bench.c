/* SPDX-License-Identifier: Apache-2.0 */
/* The verdicts of climport bench, on samples that are made up: nothing is measured here. */
#include "harness.h"

#include <math.h>
#include <stdbool.h>

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
	const double samples[] = { 4, 1, 2, 3 };
	struct bench_figure f = bench_figure_made(samples, 4);

	EXPECT(f.value == 2.5 && f.low == 1 && f.high == 4);
	f = bench_figure_made(samples, 1);
	EXPECT(f.value == 4 && f.low == 4 && f.high == 4);
	EXPECT_EQ(f.runs, 1);
	f = bench_figure_made(samples, 0);
	EXPECT(!bench_figure_is_known(&f));
}

TEST(figure_ratio, "A ratio's spread has every quotient of the two spreads, and the fewer runs.")
{
	const struct bench_figure a = { 10, 8, 12, 5 }, b = { 5, 4, 6, 9 };
	const struct bench_figure ratio = bench_figure_ratio(a, b);

	EXPECT(ratio.value == 2 && ratio.low == 8.0 / 6 && ratio.high == 3);
	EXPECT_EQ(ratio.runs, 5);
}

TEST(figure_difference, "A difference's spread has every difference of the two spreads.")
{
	const struct bench_figure a = { 10, 8, 12, 5 }, b = { 5, 4, 6, 9 };
	const struct bench_figure difference = bench_figure_minus(a, b);

	EXPECT(difference.value == 5 && difference.low == 2 && difference.high == 8);
}

TEST(figure_known, "A value without runs gives another figure's runs to what is made of both.")
{
	const struct bench_figure f =
		bench_figure_ratio(bench_figure_known(8), (struct bench_figure){ 2, 1, 4, 7 });

	EXPECT(f.value == 4 && f.low == 2 && f.high == 8);
	EXPECT_EQ(f.runs, 7);
}

/* Frames of a quiet machine: a write of a MiB takes a millisecond, an import half of that. */
static struct bench_crossing bench_crossing_of(struct bench_figure (*figure)(double), double ratio)
{
	struct bench_crossing crossing = { 0 };

	for (size_t size = MIB; size <= 16 * MIB; size *= 4) {
		const double seconds = 1e-3 * (double)size / (double)MIB;
		const struct bench_figure write = figure(seconds), import = figure(seconds / ratio);

		bench_crossing_add(&crossing, size, &write, &import);
	}
	return crossing;
}

TEST(wins, "A difference greater than the spreads is a verdict, with the spread of the ratio.")
{
	const struct bench_crossing crossing = bench_crossing_of(bench_figure_quiet, 2);

	EXPECT_EQ(crossing.wins, MIB);
	EXPECT(bench_says(bench_verdict_once(&crossing),
			  "on this machine importing wins from 1 MiB; at 16 MiB, an import and a "
			  "kernel are 2 (2 to 2) times as fast"));
}

TEST(loses, "An import that takes longer by more than the spreads wins at no size.")
{
	const struct bench_crossing crossing = bench_crossing_of(bench_figure_quiet, 0.5);

	EXPECT_EQ(crossing.wins, 0);
	EXPECT(bench_says(bench_verdict_once(&crossing), "importing wins at no size; at 16 MiB"));
}

TEST(noise, "Spreads that meet are no verdict, and both are said.")
{
	const struct bench_crossing crossing = bench_crossing_of(bench_figure_noisy, 2);

	EXPECT_EQ(crossing.wins, 0);
	EXPECT(bench_says(
		bench_verdict_once(&crossing),
		"whether importing wins on this machine is not known: at 16 MiB the middle "
		"half of the runs took 8 to 24 ms with the import, and 16 to 48 ms with "
		"clEnqueueWriteBuffer; measure while the machine does nothing else"));
}

TEST(spike, "Runs of 1,035 ms among runs of 2 ms are no verdict of 477 times.")
{
	const double spikes[] = { 1035e-3, 2.2e-3, 1040e-3 }, quiet[] = { 2.17e-3, 2.1e-3, 2.3e-3 };
	const struct bench_figure write = bench_figure_made(spikes, 3),
				  import = bench_figure_made(quiet, 3);
	struct bench_crossing crossing = { 0 };

	bench_crossing_add(&crossing, 16 * MIB, &write, &import);
	EXPECT(write.value / import.value > 470);
	EXPECT(bench_says(
		bench_verdict_once(&crossing),
		"not known: at 16 MiB the middle half of the runs took 2.1 to 2.3 ms with "
		"the import, and 2.2 to 1.04e+03 ms"));
}

TEST(few_runs, "Two runs are no verdict, however far they are apart.")
{
	const double slow[] = { 1, 1 }, fast[] = { 0.1, 0.1 };
	const struct bench_figure write = bench_figure_made(slow, 2),
				  import = bench_figure_made(fast, 2);
	struct bench_crossing crossing = { 0 };

	bench_crossing_add(&crossing, MIB, &write, &import);
	EXPECT_EQ(crossing.wins, 0);
	EXPECT(bench_says(bench_verdict_once(&crossing),
			  "not known: at 1 MiB there was time for 2 of the 3 runs"));
}

TEST(crossing, "Importing wins from the size on above which it wins at every size.")
{
	const struct bench_figure slow = bench_figure_quiet(2), fast = bench_figure_quiet(1);
	const struct bench_figure noisy = bench_figure_noisy(1);
	struct bench_crossing crossing = { 0 };

	bench_crossing_add(&crossing, MIB, &slow, &fast);
	bench_crossing_add(&crossing, 2 * MIB, &slow, &noisy);
	EXPECT_EQ(crossing.wins, 0);
	bench_crossing_add(&crossing, 4 * MIB, &slow, &fast);
	bench_crossing_add(&crossing, 8 * MIB, &slow, &fast);
	EXPECT_EQ(crossing.wins, 4 * MIB);
	bench_crossing_add(&crossing, 16 * MIB, &fast, &slow);
	EXPECT(bench_says(bench_verdict_once(&crossing),
			  "importing wins at some sizes, and not at the largest; at 16 MiB"));
}

TEST(not_measured, "A size that could not be measured says nothing.")
{
	const struct bench_figure slow = bench_figure_quiet(2), fast = bench_figure_quiet(1);
	const struct bench_figure nothing = bench_figure_nothing();
	struct bench_crossing crossing = { 0 };

	EXPECT(bench_says(bench_verdict_once(&crossing), "the group once was left out"));
	EXPECT(!bench_verdict_again(&crossing));
	bench_crossing_add(&crossing, MIB, &slow, &fast);
	bench_crossing_add(&crossing, 4 * MIB, &slow, &nothing);
	EXPECT_EQ(crossing.wins, MIB);
	EXPECT_EQ(crossing.largest, MIB);
}

TEST(again, "Memory that the program has registered has a verdict of its own.")
{
	const struct bench_crossing wins = bench_crossing_of(bench_figure_quiet, 2),
				    loses = bench_crossing_of(bench_figure_quiet, 0.5),
				    open = bench_crossing_of(bench_figure_noisy, 2);

	EXPECT(bench_says(bench_verdict_again(&wins),
			  "memory that the program has registered wins from 1 MiB"));
	EXPECT(bench_says(bench_verdict_again(&loses), "does not win, either"));
	EXPECT(bench_says(bench_verdict_again(&open),
			  "whether memory that the program has registered wins on this machine is "
			  "not known"));
}

TEST(frames, "The verdict on frames has the ratios that hold, and counts the others.")
{
	const struct bench_figure one = bench_figure_quiet(1), two = bench_figure_quiet(2),
				  four = bench_figure_quiet(4), noisy = bench_figure_noisy(1);
	struct bench_frames frames = { 0 };

	EXPECT(!bench_verdict_frames(&frames));
	bench_frames_add(&frames, &noisy, &one);
	EXPECT(bench_says(bench_verdict_frames(&frames),
			  "there is no verdict on video frames: the runs"));
	bench_frames_add(&frames, &two, &one);
	EXPECT(bench_says(bench_verdict_frames(&frames),
			  "is 2 times as fast as a write and the kernel; for 1 of the sizes"));
	bench_frames_add(&frames, &four, &one);
	EXPECT(bench_says(bench_verdict_frames(&frames), "is 2 to 4 times as fast"));
}

static const struct goal_row {
	const char *name, *goal;
	struct bench_figure figure;
	enum bench_goal judged;
} goal_rows[] = {
	{ "met", "<= 1.05", { 1.0, 0.99, 1.01, 9 }, GOAL_MET },
	{ "missed", "<= 1.05", { 1.2, 1.1, 1.3, 9 }, GOAL_MISSED },
	{ "open", "<= 1.05", { 1.0, 0.9, 1.3, 9 }, GOAL_OPEN },
	{ "open_above", ">= 4", { 4.5, 3.9, 6, 9 }, GOAL_OPEN },
	{ "met_above", ">= 4", { 4.5, 4.1, 6, 9 }, GOAL_MET },
	{ "missed_above", ">= 4", { 3, 2.9, 3.1, 9 }, GOAL_MISSED },
	{ "met_at_the_bound", ">= 4", { 4, 4, 4, 0 }, GOAL_MET },
	{ "met_below_the_bound", "<= 4", { 4, 4, 4, 1 }, GOAL_MET },
};

TEST_EACH(goal, struct goal_row, goal_rows,
	  "A goal is met or missed if the whole spread is on one side of the bound.")
{
	EXPECT_EQ(bench_goal_judge(row->goal, &row->figure), row->judged);
}

TEST(goals, "The verdict counts the goals that the spread leaves open.")
{
	const unsigned int none[3] = { 0 }, some[3] = { 5, 2, 1 };

	EXPECT(!bench_verdict_goals(none));
	EXPECT(bench_says(bench_verdict_goals(some),
			  "5 of 8 goals for NVIDIA's driver are met, 2 are "
			  "missed, and 1 are within the spread"));
}
