/* SPDX-License-Identifier: Apache-2.0 */
#include "bench.h"

#include <time.h>

#define MAX_RACERS 8

static double samples[MAX_RACERS][BENCH_PHASES][BENCH_ROUNDS];

double bench_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void bench_race_drop(struct racer *racer, const char *why)
{
	bench_skip("", racer->name, why);
	for (size_t phase = 0; phase < BENCH_PHASES; phase++)
		racer->figure[phase] = bench_figure_nothing();
}

/* Runs each racer once, in turns, so that all racers meet the same disturbances. */
static void bench_race_run_round(struct bench *b, struct racer *racers, size_t count,
				 unsigned int round)
{
	for (size_t i = 0; i < count; i++) {
		double seconds[BENCH_PHASES] = { 0 };
		const char *why = bench_figure_is_known(racers[i].figure)
					  ? racers[i].run(b, racers[i].arg, seconds)
					  : NULL;

		if (why)
			bench_race_drop(&racers[i], why);
		for (size_t phase = 0; phase < BENCH_PHASES; phase++)
			samples[i][phase][round] = seconds[phase];
	}
}

void bench_race(struct bench *b, struct racer *racers, size_t count, double share)
{
	const double time = share * b->seconds, start = bench_now();
	unsigned int rounds = 0;

	if (count > MAX_RACERS)
		bench_fatal("a race of %zu", count);
	bench_race_run_round(b, racers, count, 0); /* to warm up */
	do
		bench_race_run_round(b, racers, count, rounds++);
	while (rounds < b->rounds && bench_now() - start < (rounds < 3 ? 3 * time : time));
	for (size_t i = 0; i < count; i++)
		for (size_t phase = 0; phase < BENCH_PHASES; phase++)
			if (bench_figure_is_known(&racers[i].figure[phase]))
				racers[i].figure[phase] =
					bench_figure_of(samples[i][phase], rounds);
}
