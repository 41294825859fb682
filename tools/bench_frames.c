/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Video frames in host memory: a ring of buffers that are imported once.  The host writes a buffer
 * while a kernel reads the buffer that was written longest ago.  Beside the imports, the same frames
 * written to a buffer of the device.
 */
#include "bench.h"

#define GROUP "frames"
#define SHARE 0.06

#define FRAMES 3
#define BUFFERS 4 /* as a camera's driver has */

static const struct frame {
	const char *name;
	size_t size;
	const char *goal;
} frames[FRAMES] = {
	{ "640x360 YUYV", (size_t)640 * 360 * 2, ">= 2.3" },
	{ "1080p YUYV", (size_t)1920 * 1080 * 2, ">= 3" },
	{ "4K YUYV", (size_t)3840 * 2160 * 2, ">= 4" },
};

struct ring {
	struct memory buffers[BUFFERS];
	size_t next;   /* to be read */
	cl_mem target; /* of clEnqueueWriteBuffer */
};

/* A frame for BUFFERS - 1 turns later.  No frame is like a frame before. */
static struct memory *bench_frames_turn(struct bench *b, struct ring *ring)
{
	struct memory *written = &ring->buffers[(ring->next + BUFFERS - 1) % BUFFERS],
		      *read = &ring->buffers[ring->next];

	memory_fill(b, written);
	memory_change(written);
	ring->next = (ring->next + 1) % BUFFERS;
	return read;
}

/* From the frame in host memory to the end of the kernel. */
static void bench_frames_use(struct bench *b, struct ring *ring, bool write, double *seconds)
{
	struct memory *m = bench_frames_turn(b, ring);
	double start;

	bench_poison(b);
	start = bench_now();
	if (write)
		bench_check(clEnqueueWriteBuffer(b->queue, ring->target, CL_FALSE, 0, m->size,
						 m->address, 0, NULL, NULL),
			    "clEnqueueWriteBuffer");
	bench_sum_start(b, write ? ring->target : m->mem, m->size, b->queue, NULL);
	bench_check(clFinish(b->queue), "clFinish");
	seconds[0] = bench_now() - start;
	memory_expect(m, bench_sum_result(b, m->size));
}

static const char *bench_frames_write(struct bench *b, void *arg, double *seconds)
{
	bench_frames_use(b, arg, true, seconds);
	return NULL;
}

static const char *bench_frames_import(struct bench *b, void *arg, double *seconds)
{
	bench_frames_use(b, arg, false, seconds);
	return NULL;
}

static void bench_frames_race(struct bench *b, const struct frame *frame, struct ring *ring)
{
	struct racer racers[] = {
		{ .name = "write, kernel", .run = bench_frames_write, .arg = ring },
		{ .name = "kernel on the import", .run = bench_frames_import, .arg = ring }
	};
	char name[96];

	bench_race(b, racers, 2, SHARE / FRAMES);
	bench_frames_add(&b->frames, racers[0].figure, racers[1].figure);
	for (size_t i = 0; i < 2; i++) {
		snprintf(name, sizeof(name), "%s: %s", frame->name, racers[i].name);
		bench_report(b, GROUP, name, frame->size,
			     bench_figure_times(racers[i].figure[0], 1e6), "us", NULL);
	}
	snprintf(name, sizeof(name), "  %s: write / kept import", frame->name);
	bench_report(b, GROUP, name, frame->size,
		     bench_figure_ratio(racers[0].figure[0], racers[1].figure[0]), "x",
		     frame->goal);
}

static bool bench_frames_open(struct bench *b, struct ring *ring, size_t size)
{
	cl_int err;

	*ring = (struct ring){ 0 };
	for (size_t i = 0; i < BUFFERS; i++) {
		if (bench_memory_create(b, &ring->buffers[i], MEMORY_PLAIN, size))
			return false;
		memory_fill(b, &ring->buffers[i]);
		bench_check(memory_create(b, &ring->buffers[i]), "clImportMemoryARM");
	}
	ring->target = clCreateBuffer(b->context, CL_MEM_READ_ONLY, size, NULL, &err);
	bench_check(err, "clCreateBuffer");
	return true;
}

static void bench_frames_close(struct ring *ring)
{
	if (ring->target)
		clReleaseMemObject(ring->target);
	for (size_t i = 0; i < BUFFERS; i++) {
		if (ring->buffers[i].mem)
			memory_release(&ring->buffers[i]);
		bench_memory_destroy(&ring->buffers[i]);
	}
}

void bench_frames(struct bench *b)
{
	struct ring ring;

	for (size_t i = 0; i < FRAMES; i++) {
		if (frames[i].size > b->largest) {
			bench_skip(GROUP, frames[i].name, "--size is less");
			continue;
		}
		bench_progress("frames of %s", frames[i].name);
		if (bench_frames_open(b, &ring, frames[i].size))
			bench_frames_race(b, &frames[i], &ring);
		bench_frames_close(&ring);
	}
}
