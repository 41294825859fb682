/* SPDX-License-Identifier: Apache-2.0 */
#include "bench_verdict.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_figure.h"

#define SMALLEST 4096 /* of the group "once" */

static char *bench_verdict_text(const char *format, ...) __attribute__((format(printf, 1, 2)));

static char *bench_verdict_text(const char *format, ...)
{
	va_list args;
	char *text;
	int length;

	va_start(args, format);
	length = vasprintf(&text, format, args);
	va_end(args);
	return length < 0 ? NULL : text;
}

void bench_crossing_add(struct bench_crossing *crossing, size_t size,
			const struct bench_figure *write, const struct bench_figure *import)
{
	if (!bench_figure_is_known(write) || !bench_figure_is_known(import))
		return;
	crossing->largest = size;
	crossing->write = *write;
	crossing->import = *import;
	if (!bench_figure_is_less(import, write)) {
		crossing->wins = 0;
		return;
	}
	crossing->won = true;
	if (!crossing->wins)
		crossing->wins = size;
}

void bench_frames_add(struct bench_frames *frames, const struct bench_figure *write,
		      const struct bench_figure *import)
{
	const struct bench_figure ratio = bench_figure_ratio(*write, *import);

	if (!bench_figure_is_known(&ratio))
		return;
	if (!bench_figure_is_less(import, write) && !bench_figure_is_less(write, import)) {
		frames->open++;
		return;
	}
	if (!(frames->low > 0) || ratio.value < frames->low)
		frames->low = ratio.value;
	if (ratio.value > frames->high)
		frames->high = ratio.value;
}

enum bench_goal bench_goal_judge(const char *goal, const struct bench_figure *figure)
{
	const double bound = strtod(goal + 2, NULL);

	if (figure->low < bound && bound < figure->high)
		return GOAL_OPEN;
	if (goal[0] == '<')
		return figure->value <= bound ? GOAL_MET : GOAL_MISSED;
	return figure->value >= bound ? GOAL_MET : GOAL_MISSED;
}

/* "3.1 (2.9 to 3.4)" */
static void bench_verdict_ratio(char text[64], const struct bench_figure *a,
				const struct bench_figure *b)
{
	const struct bench_figure ratio = bench_figure_ratio(*a, *b);

	snprintf(text, 64, "%.2g (%.2g to %.2g)", ratio.value, ratio.low, ratio.high);
}

/* The machine was busy, or too few runs had time: what there is, and what to do. */
static char *bench_verdict_open(const struct bench_crossing *c, const char *what)
{
	const unsigned int fewest = c->write.runs < c->import.runs ? c->write.runs : c->import.runs;
	char largest[32];

	bench_size_text(largest, c->largest);
	if (fewest < BENCH_FEWEST)
		return bench_verdict_text(
			"whether %s wins on this machine is not known: at %s there was time for %u "
			"of the %d runs that a comparison takes; measure while the machine does "
			"nothing else, or with a lesser --size",
			what, largest, fewest, BENCH_FEWEST);
	return bench_verdict_text(
		"whether %s wins on this machine is not known: at %s the middle half of the runs "
		"took "
		"%.3g to %.3g ms with the import, and %.3g to %.3g ms with clEnqueueWriteBuffer; "
		"measure while the machine does nothing else",
		what, largest, c->import.low * 1e3, c->import.high * 1e3, c->write.low * 1e3,
		c->write.high * 1e3);
}

char *bench_verdict_once(const struct bench_crossing *once)
{
	char wins[32], largest[32], ratio[64];

	bench_size_text(wins, once->wins);
	bench_size_text(largest, once->largest);
	if (!once->largest)
		return bench_verdict_text("whether importing wins on this machine is not known, as "
					  "the group once was left out");
	if (once->wins) {
		bench_verdict_ratio(ratio, &once->write, &once->import);
		return bench_verdict_text("on this machine importing wins %s %s; at %s, an import "
					  "and a kernel are %s "
					  "times as fast as clEnqueueWriteBuffer and the kernel",
					  once->wins == SMALLEST ? "at every size, from" : "from",
					  wins, largest, ratio);
	}
	if (!bench_figure_is_less(&once->write, &once->import))
		return bench_verdict_open(once, "importing");
	bench_verdict_ratio(ratio, &once->import, &once->write);
	return bench_verdict_text(
		"on this machine importing wins at %s; at %s, an import and a kernel take %s times "
		"the time of clEnqueueWriteBuffer and the kernel",
		once->won ? "some sizes, and not at the largest" : "no size", largest, ratio);
}

/* NVIDIA's driver alone pins. */
char *bench_verdict_again(const struct bench_crossing *again)
{
	char wins[32];

	bench_size_text(wins, again->wins);
	if (!again->largest)
		return NULL;
	if (again->wins)
		return bench_verdict_text("memory that the program has registered wins from %s",
					  wins);
	if (!bench_figure_is_less(&again->write, &again->import))
		return bench_verdict_open(again, "memory that the program has registered");
	return bench_verdict_text("memory that the program has registered does not win, either");
}

char *bench_verdict_frames(const struct bench_frames *frames)
{
	char low[32], high[32], others[96] = "";

	if (!(frames->low > 0))
		return frames->open
			       ? bench_verdict_text("there is no verdict on video frames: the "
						    "runs differ by more than write and import")
			       : NULL;
	snprintf(low, sizeof(low), "%.2g", frames->low);
	snprintf(high, sizeof(high), " to %.2g", frames->high);
	if (frames->open)
		snprintf(others, sizeof(others),
			 "; for %u of the sizes, the runs differ by more than the two",
			 frames->open);
	return bench_verdict_text("a kernel on a video frame in imported memory is %s%s times as "
				  "fast as a write and the kernel%s",
				  low, strcmp(low, high + strlen(" to ")) ? high : "", others);
}

char *bench_verdict_goals(const unsigned int count[3])
{
	const unsigned int all = count[GOAL_MET] + count[GOAL_MISSED] + count[GOAL_OPEN];

	if (!all)
		return NULL;
	return bench_verdict_text(
		"%u of %u goals for NVIDIA's driver are met, %u are missed, and %u "
		"are within the spread of the runs",
		count[GOAL_MET], all, count[GOAL_MISSED], count[GOAL_OPEN]);
}
