/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The time to create a buffer.  A driver may put work off until the first kernel, as NVIDIA's
 * clCreateBuffer does, so creation with a first kernel is reported as well.
 */
#include "bench.h"

#define GROUP "latency"
#define SHARE 0.2

struct entry {
	struct memory memory;
	struct bench *bench;
	cl_mem result; /* of the kernel: a word */
	int times;     /* repetitions of a short call */
};

static const char *const plot_names[MEMORY_KINDS] = {
	"clCreateBuffer + first kernel",	"device import + first kernel",
	"climport_alloc import + first kernel", "plain host import + first kernel",
	"small pages import + first kernel",	"huge pages import + first kernel",
};

static void check_word(const struct entry *e)
{
	uint32_t word = 0;

	bench_check(clEnqueueReadBuffer(e->bench->queue, e->result, CL_TRUE, 0, sizeof(word), &word,
					0, NULL, NULL),
		    "clEnqueueReadBuffer");
	if (memory_is_host(&e->memory) && word != *(const uint32_t *)e->memory.address)
		bench_fatal("%s: the first kernel read wrong data", memory_names[e->memory.kind]);
}

/* Create, first kernel, release. */
static const char *latency_use(struct bench *b, void *arg, double *seconds)
{
	const size_t one = 1;
	struct entry *e = arg;
	struct memory *m = &e->memory;
	double start, created;
	int err;

	if (memory_is_host(m))
		*(uint32_t *)m->address = bench_random();
	start = bench_now();
	err = memory_create(b, m);
	created = bench_now();
	if (err)
		return bench_memory_why(m);
	clSetKernelArg(b->touch, 0, sizeof(m->mem), &m->mem);
	clSetKernelArg(b->touch, 1, sizeof(e->result), &e->result);
	bench_check(clEnqueueNDRangeKernel(b->queue, b->touch, 1, NULL, &one, NULL, 0, NULL, NULL),
		    "the first kernel");
	bench_check(clFinish(b->queue), "clFinish");
	seconds[0] = created - start;
	seconds[1] = bench_now() - start;
	check_word(e);
	start = bench_now();
	memory_release(m);
	seconds[2] = bench_now() - start;
	return NULL;
}

/* Create and release, without a kernel. */
static const char *latency_create(struct bench *b, void *arg, double *seconds)
{
	struct entry *e = arg;
	double start, created;

	for (int i = 0; i < e->times; i++) {
		int err;

		start = bench_now();
		err = memory_create(b, &e->memory);
		created = bench_now();
		if (err)
			return bench_memory_why(&e->memory);
		memory_release(&e->memory);
		seconds[0] += (created - start) / e->times;
		seconds[1] += (bench_now() - created) / e->times;
	}
	return NULL;
}

static void latency_report(struct bench *b, const char *what, enum memory_kind kind, size_t size,
			   struct bench_figure seconds)
{
	char name[96];

	snprintf(name, sizeof(name), "%s: %s", what, memory_names[kind]);
	bench_report(b, GROUP, name, size, bench_figure_times(seconds, 1e6), "us", NULL);
}

static void report_alone(struct bench *b, const struct bench_figure figures[][BENCH_PHASES],
			 size_t size)
{
	for (int kind = 0; kind < MEMORY_KINDS; kind++) {
		latency_report(b, "create", kind, size, figures[kind][0]);
		latency_report(b, "release", kind, size, figures[kind][1]);
	}
	bench_report(b, GROUP, "  create: cached import / clCreateBuffer", size,
		     bench_figure_ratio(figures[MEMORY_HOST][0], figures[MEMORY_NATIVE][0]), "x",
		     "<= 1.5");
	plot_add(&b->plots[PLOT_LATENCY], SERIES_NATIVE_ALONE, "clCreateBuffer", (double)size,
		 figures[MEMORY_NATIVE][0].value * 1e6);
	plot_add(&b->plots[PLOT_LATENCY], SERIES_ALLOC_ALONE, "climport_alloc import", (double)size,
		 figures[MEMORY_HOST][0].value * 1e6);
}

static void report_used(struct bench *b, const struct bench_figure figures[][BENCH_PHASES],
			size_t size)
{
	for (int kind = 0; kind < MEMORY_KINDS; kind++) {
		latency_report(b, "create + kernel", kind, size, figures[kind][1]);
		latency_report(b, "release after it", kind, size, figures[kind][2]);
		plot_add(&b->plots[PLOT_LATENCY], (enum bench_series)kind, plot_names[kind],
			 (double)size, figures[kind][1].value * 1e6);
	}
	bench_report(b, GROUP, "  create + kernel: cached import / native", size,
		     bench_figure_ratio(figures[MEMORY_HOST][1], figures[MEMORY_NATIVE][1]), "x",
		     "<= 1.5");
}

/* All memories side by side.  A missing memory is NAN. */
static void latency_race(struct bench *b, struct entry *entries,
			 const char *(*run)(struct bench *, void *, double *), double share,
			 struct bench_figure figures[][BENCH_PHASES])
{
	struct racer racers[MEMORY_KINDS];
	size_t count = 0;

	for (int kind = 0; kind < MEMORY_KINDS; kind++)
		if (entries[kind].memory.capacity >= entries[kind].memory.size)
			racers[count++] = (struct racer){ .name = memory_names[kind],
							  .run = run,
							  .arg = &entries[kind] };
	bench_race(b, racers, count, share);
	for (int kind = 0; kind < MEMORY_KINDS; kind++)
		for (size_t phase = 0; phase < BENCH_PHASES; phase++)
			figures[kind][phase] = bench_figure_nothing();
	for (size_t i = 0; i < count; i++) {
		struct entry *e = racers[i].arg;

		for (size_t phase = 0; phase < BENCH_PHASES; phase++)
			figures[e->memory.kind][phase] = racers[i].figure[phase];
		if (!bench_figure_is_known(racers[i].figure))
			bench_memory_destroy(&e->memory); /* not tried again */
	}
}

static void latency_measure(struct bench *b, struct entry *entries, size_t size, double share)
{
	struct bench_figure figures[MEMORY_KINDS][BENCH_PHASES];
	char text[32];

	bench_size_text(text, size);
	bench_progress("making buffers of %s", text);
	for (int kind = 0; kind < MEMORY_KINDS; kind++)
		entries[kind].memory.size = size;
	latency_race(b, entries, latency_create, share / 2, figures);
	report_alone(b, figures, size);
	latency_race(b, entries, latency_use, share / 2, figures);
	report_used(b, figures, size);
}

/* A device may refuse its own memory from some size on. */
static bool latency_is_imported(struct bench *b, struct memory *m)
{
	if (m->kind != MEMORY_DEVICE)
		return true;
	if (memory_create(b, m)) {
		bench_skip(GROUP, memory_names[m->kind], bench_memory_why(m));
		return false;
	}
	memory_release(m);
	return true;
}

/* The largest memory that is imported, for parts of all sizes. */
static void latency_open_memory(struct bench *b, struct memory *m, enum memory_kind kind)
{
	for (size_t size = b->largest; size >= BENCH_SMALLEST; size /= 4) {
		if (bench_memory_create(b, m, kind, size) || latency_is_imported(b, m))
			return;
		bench_memory_destroy(m);
	}
}

static void open_entry(struct bench *b, struct entry *e, enum memory_kind kind, cl_mem result)
{
	*e = (struct entry){ .bench = b, .result = result, .times = 16 };
	if (kind >= MEMORY_PLAIN)
		e->times = 1;
	latency_open_memory(b, &e->memory, kind);
	if (e->memory.capacity && memory_is_host(&e->memory))
		memory_fill(b, &e->memory);
}

void bench_latency(struct bench *b)
{
	struct entry entries[MEMORY_KINDS];
	cl_int err;
	cl_mem result = clCreateBuffer(b->context, CL_MEM_READ_WRITE, 64, NULL, &err);
	int steps = 0;

	bench_check(err, "clCreateBuffer");
	b->plots[PLOT_LATENCY] = (struct plot){ .title = "What a buffer costs",
						.x_label = "size",
						.y_label = "microseconds (less is better)",
						.bytes = true };
	for (int kind = 0; kind < MEMORY_KINDS; kind++)
		open_entry(b, &entries[kind], kind, result);
	for (size_t size = BENCH_SMALLEST; size <= b->largest; size *= 4)
		steps++;
	for (size_t size = BENCH_SMALLEST; size <= b->largest; size *= 4)
		latency_measure(b, entries, size, SHARE / steps);
	for (int kind = 0; kind < MEMORY_KINDS; kind++)
		bench_memory_destroy(&entries[kind].memory);
	clReleaseMemObject(result);
}
