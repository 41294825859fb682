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

static int bench_launch_one(struct bench *b, void *arg, double *seconds)
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
	return 0;
}

static void bench_launch_report(struct bench *b, const struct racer *racer,
				const struct racer *native, size_t size)
{
	char name[96];

	snprintf(name, sizeof(name), "enqueue: %s", racer->name);
	bench_report(b, GROUP, name, size, racer->median[LAUNCH_ENQUEUE] * 1e6, "us", NULL);
	snprintf(name, sizeof(name), "enqueue + finish: %s", racer->name);
	bench_report(b, GROUP, name, size, racer->median[LAUNCH_WAIT] * 1e6, "us", NULL);
	snprintf(name, sizeof(name), "one of a row: %s", racer->name);
	bench_report(b, GROUP, name, size, racer->median[LAUNCH_ROW] * 1e6, "us", NULL);
	if (racer == native)
		return;
	snprintf(name, sizeof(name), "  waited for: %s / native", racer->name);
	bench_report(b, GROUP, name, size, racer->median[LAUNCH_WAIT] / native->median[LAUNCH_WAIT],
		     "x", "<= 1.05");
	snprintf(name, sizeof(name), "  in a row: %s / native", racer->name);
	bench_report(b, GROUP, name, size, racer->median[LAUNCH_ROW] / native->median[LAUNCH_ROW],
		     "x", "<= 1.05");
}

void bench_launch(struct bench *b)
{
	const size_t size = BENCH_SMALLEST << 4 < b->largest ? BENCH_SMALLEST << 4 : b->largest;
	struct memory memory[MEMORY_KINDS];
	struct racer racers[MEMORY_KINDS];
	size_t count = 0;

	bench_progress("empty kernels");
	for (int kind = 0; kind < MEMORY_KINDS; kind++)
		if (!bench_memory_create(b, &memory[kind], kind, size) &&
		    !memory_create(b, &memory[kind]))
			racers[count++] = (struct racer){
				memory_names[kind], bench_launch_one, &memory[kind], { 0 }
			};
	bench_race(b, racers, count, SHARE);
	for (size_t i = 0; i < count; i++)
		bench_launch_report(b, &racers[i], &racers[0], size);
	for (int kind = 0; kind < MEMORY_KINDS; kind++) {
		if (memory[kind].mem)
			memory_release(&memory[kind]);
		bench_memory_destroy(&memory[kind]);
	}
}
