/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Video frames in host memory that is imported once: the host writes each frame, a kernel reads
 * it.  Beside the import, the same frames written to a buffer.
 */
#include "bench.h"

#define GROUP "frames"
#define SHARE 0.06

#define FRAMES 3

static const struct frame {
	const char *name;
	size_t size;
	const char *goal;
} frames[FRAMES] = {
	{ "640x360 YUYV", (size_t)640 * 360 * 2, ">= 2.3" },
	{ "1080p YUYV", (size_t)1920 * 1080 * 2, ">= 3" },
	{ "4K YUYV", (size_t)3840 * 2160 * 2, ">= 4" },
};

struct entry {
	struct memory *memory;
	cl_mem target; /* of writes; NULL: the import */
};

/* From the frame in host memory to the sum in host memory. */
static int bench_frames_use(struct bench *b, void *arg, double *seconds)
{
	const struct entry *e = arg;
	struct memory *m = e->memory;
	double start;
	uint32_t sum;

	memory_fill(b, m);
	memory_change(m); /* no frame is like the frame before */
	bench_poison(b);
	start = bench_now();
	if (e->target)
		bench_check(clEnqueueWriteBuffer(b->queue, e->target, CL_FALSE, 0, m->size,
						 m->address, 0, NULL, NULL),
			    "clEnqueueWriteBuffer");
	bench_sum_start(b, e->target ? e->target : m->mem, m->size, b->queue, NULL);
	sum = bench_sum_result(b, m->size);
	seconds[0] = bench_now() - start;
	memory_expect(m, sum);
	return 0;
}

static void bench_frames_race(struct bench *b, const struct frame *frame, struct memory *m,
			      cl_mem target)
{
	struct entry write = { m, target }, import = { m, NULL };
	struct racer racers[] = { { "write, kernel", bench_frames_use, &write, { 0 } },
				  { "kernel on the import", bench_frames_use, &import, { 0 } } };
	char name[96];

	bench_race(b, racers, 2, SHARE / FRAMES);
	for (size_t i = 0; i < 2; i++) {
		snprintf(name, sizeof(name), "%s: %s", frame->name, racers[i].name);
		bench_report(b, GROUP, name, m->size, racers[i].median[0] * 1e6, "us", NULL);
	}
	snprintf(name, sizeof(name), "  %s: write / kept import", frame->name);
	bench_report(b, GROUP, name, m->size, racers[0].median[0] / racers[1].median[0], "x",
		     frame->goal);
}

static void bench_frames_measure(struct bench *b, const struct frame *frame)
{
	struct memory m;
	cl_mem target;
	cl_int err;

	bench_progress("frames of %s", frame->name);
	if (bench_memory_create(b, &m, MEMORY_PLAIN, frame->size))
		return;
	memory_fill(b, &m);
	bench_check(memory_create(b, &m), "clImportMemoryARM");
	target = clCreateBuffer(b->context, CL_MEM_READ_ONLY, m.size, NULL, &err);
	bench_check(err, "clCreateBuffer");
	bench_frames_race(b, frame, &m, target);
	clReleaseMemObject(target);
	memory_release(&m);
	bench_memory_destroy(&m);
}

void bench_frames(struct bench *b)
{
	for (size_t i = 0; i < FRAMES; i++)
		if (frames[i].size <= b->largest)
			bench_frames_measure(b, &frames[i]);
		else
			bench_skip(GROUP, frames[i].name, "--size is less");
}
