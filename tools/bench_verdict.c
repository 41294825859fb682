/* SPDX-License-Identifier: Apache-2.0 */
/* The end of the table: what the figures mean for this machine, in words. */
#include "bench.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "terminal.h"

static void bench_verdict_say(struct bench *b, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void bench_verdict_say(struct bench *b, const char *format, ...)
{
	struct terminal_text t;
	va_list args;
	char *text;

	va_start(args, format);
	text = terminal_format(format, args);
	va_end(args);
	if (!text)
		return;
	terminal_begin(&t, stdout, 9);
	terminal_add(&t, COLOUR_BOLD, "verdict");
	terminal_add(&t, COLOUR_NONE, ": %s.", text);
	terminal_end(&t);
	if (b->json) {
		fprintf(b->json, "%s\n\t\t", b->verdicts++ ? "," : "");
		json_quote(b->json, text);
	}
	free(text);
}

static void bench_verdict_once(struct bench *b)
{
	const struct bench_crossing *once = &b->once;
	char wins[32], largest[32];

	bench_size_text(wins, once->wins);
	bench_size_text(largest, once->largest);
	if (!once->largest)
		bench_verdict_say(b, "whether importing wins on this machine is not known, as the "
				     "group once was left out");
	else if (!once->wins)
		bench_verdict_say(b,
				  "on this machine importing wins at no size; at %s, an import and "
				  "a kernel take %.2g times the time of clEnqueueWriteBuffer and "
				  "the kernel",
				  largest, 1 / once->ratio);
	else
		bench_verdict_say(b,
				  "on this machine importing wins %s %s; at %s, an import and a "
				  "kernel are %.2g times as fast as clEnqueueWriteBuffer and the "
				  "kernel",
				  once->wins == BENCH_SMALLEST ? "at every size, from" : "from",
				  wins, largest, once->ratio);
}

/* Registrations are kept on NVIDIA's driver alone. */
static void bench_verdict_again(struct bench *b)
{
	char wins[32];

	if (!b->again.largest)
		return;
	bench_size_text(wins, b->again.wins);
	if (b->again.wins)
		bench_verdict_say(b,
				  "memory that was imported before, whose registration is kept, "
				  "wins from %s",
				  wins);
	else
		bench_verdict_say(b, "memory that was imported before does not win, either");
}

static void bench_verdict_frames(struct bench *b)
{
	char low[32], high[32];

	if (!(b->frames_low > 0))
		return;
	snprintf(low, sizeof(low), "%.2g", b->frames_low);
	snprintf(high, sizeof(high), " to %.2g", b->frames_high);
	bench_verdict_say(b,
			  "a kernel on a video frame in imported memory is %s%s times as fast as a "
			  "write and the kernel",
			  low, strcmp(low, high + strlen(" to ")) ? high : "");
}

void bench_verdict(struct bench *b)
{
	putchar('\n');
	bench_verdict_once(b);
	bench_verdict_again(b);
	bench_verdict_frames(b);
	if (b->goals)
		bench_verdict_say(b, "%u of %u goals for NVIDIA's driver are met", b->goals_met,
				  b->goals);
}
