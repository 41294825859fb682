/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What figures mean for a machine, in words.  Pure: no measurement, no device.  Sentences are without
 * a stop; the caller frees them.  NULL: nothing to say, or no memory.
 */
#ifndef TOOLS_BENCH_VERDICT_H
#define TOOLS_BENCH_VERDICT_H

#include "bench_figure.h"

/* From which size on importing takes less time than a write. */
struct bench_crossing {
	size_t wins;			   /* from here on, up to the largest; 0: not there */
	bool won;			   /* somewhere */
	size_t largest;			   /* 0: nothing was measured */
	struct bench_figure write, import; /* at the largest size, in seconds */
};

/* Sizes come in rising order.  A size that could not be measured says nothing. */
void bench_crossing_add(struct bench_crossing *crossing, size_t size,
			const struct bench_figure *write, const struct bench_figure *import);

/* Frames of several sizes: a write and a kernel against a kernel on the import. */
struct bench_frames {
	double low, high;  /* of the ratios that hold */
	unsigned int open; /* sizes whose spreads meet */
};

void bench_frames_add(struct bench_frames *frames, const struct bench_figure *write,
		      const struct bench_figure *import);

/* A goal: "<= 1.5" or ">= 4".  The figure's spread decides. */
enum bench_goal { GOAL_MET, GOAL_MISSED, GOAL_OPEN };

enum bench_goal bench_goal_judge(const char *goal, const struct bench_figure *figure);

/* For memory that is imported for the first time, and for memory that was imported before. */
char *bench_verdict_once(const struct bench_crossing *once);
char *bench_verdict_again(const struct bench_crossing *again);
char *bench_verdict_frames(const struct bench_frames *frames);
/* @count: of goals, by enum bench_goal */
char *bench_verdict_goals(const unsigned int count[3]);

#endif /* TOOLS_BENCH_VERDICT_H */
