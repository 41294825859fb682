/* SPDX-License-Identifier: Apache-2.0 */
/* An empty kernel with a buffer as its argument: what the layer, and an import, add to a launch. */
#include "bench.h"

#define GROUP "launch"
#define SHARE 0.05
#define TIMES 16
#define ROW 64 /* kernels before a wait */

enum launch_phase { LAUNCH_ENQUEUE, LAUNCH_WAIT, LAUNCH_ROW }; /* of each kernel */

static void bench_launch_enqueue(struct bench *b, const struct memory *m)
{
	const size_t one = 1;

	clSetKernelArg(b->nothing, 0, sizeof(m->mem), &m->mem);
	bench_check(
		clEnqueueNDRangeKernel(b->queue, b->nothing, 1, NULL, &one, NULL, 0, NULL, NULL),
		"an empty kernel");
}

static const char *bench_launch_one(struct bench *b, void *arg, double *seconds)
{
	const struct memory *m = arg;
	double start;

	for (int i = 0; i < TIMES; i++) {
		start = bench_now();
		bench_launch_enqueue(b, m);
		seconds[LAUNCH_ENQUEUE] += (bench_now() - start) / TIMES;
		bench_check(clFinish(b->queue), "clFinish");
		seconds[LAUNCH_WAIT] += (bench_now() - start) / TIMES;
	}
	start = bench_now();
	for (int i = 0; i < ROW; i++)
		bench_launch_enqueue(b, m);
	bench_check(clFinish(b->queue), "clFinish");
	seconds[LAUNCH_ROW] = (bench_now() - start) / ROW;
	return NULL;
}

static void bench_launch_report(struct bench *b, const struct racer *racer,
				const struct racer *native, size_t size)
{
	char name[96];

	snprintf(name, sizeof(name), "enqueue: %s", racer->name);
	bench_report(b, GROUP, name, size, bench_figure_times(racer->figure[LAUNCH_ENQUEUE], 1e6),
		     "us", NULL);
	snprintf(name, sizeof(name), "enqueue + finish: %s", racer->name);
	bench_report(b, GROUP, name, size, bench_figure_times(racer->figure[LAUNCH_WAIT], 1e6),
		     "us", NULL);
	snprintf(name, sizeof(name), "one of a row: %s", racer->name);
	bench_report(b, GROUP, name, size, bench_figure_times(racer->figure[LAUNCH_ROW], 1e6), "us",
		     NULL);
	if (racer == native)
		return;
	snprintf(name, sizeof(name), "  waited for: %s / native", racer->name);
	bench_report(b, GROUP, name, size,
		     bench_figure_ratio(racer->figure[LAUNCH_WAIT], native->figure[LAUNCH_WAIT]),
		     "x", "<= 1.05");
	snprintf(name, sizeof(name), "  in a row: %s / native", racer->name);
	bench_report(b, GROUP, name, size,
		     bench_figure_ratio(racer->figure[LAUNCH_ROW], native->figure[LAUNCH_ROW]), "x",
		     "<= 1.05");
}

static size_t bench_launch_size(const struct bench *b)
{
	return BENCH_SMALLEST << 4 < b->largest ? BENCH_SMALLEST << 4 : b->largest;
}

/* A race of all kinds.  Returns how many there are. */
static size_t bench_launch_race(struct bench *b, struct memory *memory, struct racer *racers)
{
	size_t count = 0;

	for (int kind = 0; kind < MEMORY_KINDS; kind++) {
		memory[kind] = (struct memory){ 0 };
		if (!bench_memory_create(b, &memory[kind], kind, bench_launch_size(b)) &&
		    !memory_create(b, &memory[kind]))
			racers[count++] = (struct racer){ .name = memory_names[kind],
							  .run = bench_launch_one,
							  .arg = &memory[kind] };
	}
	bench_race(b, racers, count, SHARE);
	return count;
}

static void bench_launch_release(struct memory *memory)
{
	for (int kind = 0; kind < MEMORY_KINDS; kind++) {
		if (memory[kind].mem)
			memory_release(&memory[kind]);
		bench_memory_destroy(&memory[kind]);
	}
}

void bench_launch(struct bench *b)
{
	const size_t size = bench_launch_size(b);
	struct memory memory[MEMORY_KINDS];
	struct racer racers[MEMORY_KINDS];
	size_t count;

	bench_progress("empty kernels");
	count = bench_launch_race(b, memory, racers);
	for (size_t i = 0; i < count; i++)
		bench_launch_report(b, &racers[i], &racers[0], size);
	bench_launch_release(memory);
}
