/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host's data that a kernel reads: from the data in host memory to the sum in host memory.
 * Import of the data in place against a write to a buffer that exists already.
 */
#include "bench.h"

#include <math.h>

#define ONCE "once"
#define REUSE "reuse"
#define SHARE_ONCE 0.35
#define SHARE_REUSE 0.1
#define REUSE_SIZE (BENCH_SMALLEST << 14)
#define MOST_USES 64u

struct entry {
	struct memory *memory;
	cl_mem target;	   /* of writes; NULL: import */
	unsigned int uses; /* of the data */
	bool fresh;	   /* the host changes the data before each use */
};

static const char write_line[] = "clEnqueueWriteBuffer, kernel";
static const char import_line[] = "import, kernel, release";
static const char alloc_line[] = "the same of climport_alloc memory";

/* Changes the data, outside the timed part, and uses the data. */
static void bench_once_use(struct bench *b, const struct entry *e, bool write, double *seconds)
{
	struct memory *m = e->memory;
	double start;
	uint32_t sum;

	if (e->fresh)
		memory_change(m);
	bench_poison(b);
	start = bench_now();
	if (write)
		bench_check(clEnqueueWriteBuffer(b->queue, e->target, CL_FALSE, 0, m->size,
						 m->address, 0, NULL, NULL),
			    "clEnqueueWriteBuffer");
	bench_sum_start(b, e->target ? e->target : m->mem, m->size, b->queue, NULL);
	sum = bench_sum_result(b, m->size);
	*seconds += bench_now() - start;
	memory_expect(m, sum);
}

static int run_write(struct bench *b, void *arg, double *seconds)
{
	const struct entry *e = arg;

	for (unsigned int i = 0; i < e->uses; i++)
		bench_once_use(b, e, !i || e->fresh, seconds);
	return 0;
}

static int run_import(struct bench *b, void *arg, double *seconds)
{
	const struct entry *e = arg;
	double start;
	int err;

	memory_change(e->memory);
	start = bench_now();
	err = memory_create(b, e->memory);
	seconds[0] = bench_now() - start;
	if (err)
		return err;
	for (unsigned int i = 0; i < e->uses; i++)
		bench_once_use(b, e, false, seconds);
	start = bench_now();
	memory_release(e->memory);
	seconds[0] += bench_now() - start;
	return 0;
}

static void report_once(struct bench *b, const struct racer *racers, size_t count, size_t size)
{
	for (size_t i = 0; i < count; i++) {
		bench_report(b, ONCE, racers[i].name, size, racers[i].median[0] * 1e3, "ms", NULL);
		plot_add(&b->plots[PLOT_ONCE], racers[i].name, (double)size,
			 (double)size / racers[i].median[0] * 1e-9);
	}
	bench_report(b, ONCE, "  write / import", size, racers[0].median[0] / racers[1].median[0],
		     "x", NULL);
}

/* Measures one size.  Returns how many times faster importing is. */
static double measure_once(struct bench *b, size_t size, double share)
{
	struct memory plain, host;
	struct entry write = { &plain, NULL, 1, true }, import = write,
		     alloc = { &host, NULL, 1, true };
	struct racer racers[] = { { write_line, run_write, &write, { 0 } },
				  { import_line, run_import, &import, { 0 } },
				  { alloc_line, run_import, &alloc, { 0 } } };
	size_t count = 2;
	cl_int err;

	if (bench_memory_create(b, &plain, MEMORY_PLAIN, size))
		return NAN;
	memory_fill(b, &plain);
	write.target = clCreateBuffer(b->context, CL_MEM_READ_ONLY, size, NULL, &err);
	bench_check(err, "clCreateBuffer");
	if (!bench_memory_create(b, &host, MEMORY_HOST, size)) {
		memory_fill(b, &host);
		count++;
	}
	bench_race(b, racers, count, share);
	report_once(b, racers, count, size);
	clReleaseMemObject(write.target);
	bench_memory_destroy(&host);
	bench_memory_destroy(&plain);
	return racers[0].median[0] / racers[1].median[0];
}

/* @wins: the size from which importing wins, or 0. */
static void report_crossing(struct bench *b, size_t wins)
{
	struct plot *plot = &b->plots[PLOT_ONCE];
	char text[32];

	if (!wins) {
		bench_skip(ONCE, "importing wins from", "at the largest size it does not");
		return;
	}
	bench_report(b, ONCE, "importing wins from", wins, (double)wins / 1024, "KiB", NULL);
	bench_size_text(text, wins);
	plot->mark = (double)wins;
	snprintf(plot->mark_text, sizeof(plot->mark_text), "importing wins from %s", text);
}

void bench_once(struct bench *b)
{
	size_t wins = 0;
	char text[32];
	int steps = 0;

	b->plots[PLOT_ONCE] =
		(struct plot){ .title = "Host data that one kernel reads once",
			       .x_label = "size",
			       .y_label = "GB/s, from data to result (more is better)",
			       .bytes = true };
	for (size_t size = BENCH_SMALLEST; size <= b->largest; size *= 4)
		steps++;
	for (size_t size = BENCH_SMALLEST; size <= b->largest; size *= 4) {
		bench_size_text(text, size);
		bench_progress("end to end, %s", text);
		if (!(measure_once(b, size, SHARE_ONCE / steps) > 1))
			wins = 0;
		else if (!wins)
			wins = size;
	}
	report_crossing(b, wins);
}

static void measure_reuse(struct bench *b, struct memory *m, cl_mem target, unsigned int uses)
{
	struct entry import = { m, NULL, uses, true }, fresh = { m, target, uses, true },
		     same = { m, target, uses, false };
	struct racer racers[] = { { "import once, data changes", run_import, &import, { 0 } },
				  { "write each time, data changes", run_write, &fresh, { 0 } },
				  { "write once, data stays", run_write, &same, { 0 } } };
	char name[96];

	bench_progress("%u uses", uses);
	bench_race(b, racers, 3, SHARE_REUSE / 4);
	for (size_t i = 0; i < 3; i++) {
		const double each = racers[i].median[0] / uses * 1e3;

		snprintf(name, sizeof(name), "%s: each of %u", racers[i].name, uses);
		bench_report(b, REUSE, name, m->size, each, "ms", NULL);
		plot_add(&b->plots[PLOT_REUSE], racers[i].name, uses, each);
	}
}

void bench_reuse(struct bench *b)
{
	static char title[96];
	const size_t size = b->largest < REUSE_SIZE ? b->largest : REUSE_SIZE;
	const double end = bench_now() + SHARE_REUSE * b->seconds;
	struct memory m;
	char text[32];
	cl_mem target;
	cl_int err;

	bench_size_text(text, size);
	snprintf(title, sizeof(title), "%s of host data that n kernels read", text);
	b->plots[PLOT_REUSE] =
		(struct plot){ .title = title,
			       .x_label = "n",
			       .y_label = "ms for each kernel, all included (less is better)" };
	if (bench_memory_create(b, &m, MEMORY_PLAIN, size))
		return;
	memory_fill(b, &m);
	target = clCreateBuffer(b->context, CL_MEM_READ_ONLY, size, NULL, &err);
	bench_check(err, "clCreateBuffer");
	/* Four times the uses take four times as long: a slow device gets fewer. */
	for (unsigned int uses = 1; uses <= MOST_USES && bench_now() < end; uses *= 4)
		measure_reuse(b, &m, target, uses);
	clReleaseMemObject(target);
	bench_memory_destroy(&m);
}
