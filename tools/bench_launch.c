/* SPDX-License-Identifier: Apache-2.0 */
/* An empty kernel with a buffer as its argument: what the layer adds to a launch. */
#include "bench.h"

#define GROUP "launch"
#define SHARE 0.03
#define TIMES 16

/* Phases: set the argument and enqueue; set the argument, enqueue and wait. */
static int bench_launch_one(struct bench *b, void *arg, double *seconds)
{
	const struct memory *m = arg;
	const size_t one = 1;

	for (int i = 0; i < TIMES; i++) {
		double start = bench_now();

		clSetKernelArg(b->nothing, 0, sizeof(m->mem), &m->mem);
		bench_check(clEnqueueNDRangeKernel(b->queue, b->nothing, 1, NULL, &one, NULL, 0,
						   NULL, NULL),
			    "an empty kernel");
		seconds[0] += (bench_now() - start) / TIMES;
		bench_check(clFinish(b->queue), "clFinish");
		seconds[1] += (bench_now() - start) / TIMES;
	}
	return 0;
}

static void bench_launch_report(struct bench *b, const struct racer *racer,
				const struct racer *native, size_t size)
{
	char name[96];

	snprintf(name, sizeof(name), "enqueue: %s", racer->name);
	bench_report(b, GROUP, name, size, racer->median[0] * 1e6, "us", NULL);
	snprintf(name, sizeof(name), "enqueue + finish: %s", racer->name);
	bench_report(b, GROUP, name, size, racer->median[1] * 1e6, "us", NULL);
	if (racer != native)
		bench_report(b, GROUP, "  more than a native buffer", size,
			     (racer->median[1] - native->median[1]) * 1e6, "us", NULL);
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
