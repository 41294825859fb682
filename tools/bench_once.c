/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host's data that a kernel reads: from the data in host memory to the sum in host memory.
 * Import of the data in place against a write to a buffer that exists already.
 *
 * In the group "once" each import pins the pages.  In the group "again" the program has registered the
 * memory (climport_register()), so that an import finds the pages pinned.
 */
#include "bench.h"

#define ONCE "once"
#define AGAIN "again"
#define REUSE "reuse"
#define ONCE_LINES 3u /* write, import, import of climport_alloc() memory */
#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define SHARE_ONCE 0.3
#define SHARE_AGAIN 0.15
#define SHARE_REUSE 0.08
#define REUSE_SIZE (BENCH_SMALLEST << 14)
#define MOST_USES 64u

struct entry {
	struct memory *memory;
	cl_mem target;	   /* of writes; NULL: import */
	unsigned int uses; /* of the data */
	bool fresh;	   /* the host changes the data before each use */
};

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

static const char *run_write(struct bench *b, void *arg, double *seconds)
{
	const struct entry *e = arg;

	for (unsigned int i = 0; i < e->uses; i++)
		bench_once_use(b, e, !i || e->fresh, seconds);
	return NULL;
}

static const char *run_import(struct bench *b, void *arg, double *seconds)
{
	const struct entry *e = arg;
	double start;
	int err;

	memory_change(e->memory);
	start = bench_now();
	err = memory_create(b, e->memory);
	seconds[0] = bench_now() - start;
	if (err)
		return bench_memory_why(e->memory);
	for (unsigned int i = 0; i < e->uses; i++)
		bench_once_use(b, e, false, seconds);
	start = bench_now();
	memory_release(e->memory);
	seconds[0] += bench_now() - start;
	return NULL;
}

/* Powers of 4 times the smallest, and the sizes that have goals. */
static size_t bench_once_next(size_t size)
{
	switch (size) {
	case 256 * KIB:
		return 512 * KIB;
	case 512 * KIB:
		return MIB;
	case 4 * MIB:
		return 12 * MIB;
	case 12 * MIB:
		return 16 * MIB;
	default:
		return size * 4;
	}
}

static unsigned int bench_once_sizes(const struct bench *b)
{
	unsigned int count = 0;

	for (size_t size = BENCH_SMALLEST; size <= b->largest; size = bench_once_next(size))
		count++;
	return count;
}

static cl_mem bench_once_target(struct bench *b, size_t size)
{
	cl_int err;
	cl_mem target = clCreateBuffer(b->context, CL_MEM_READ_ONLY, size, NULL, &err);

	bench_check(err, "clCreateBuffer");
	return target;
}

/* The times of ONCE_LINES for @size. */
static void bench_once_measure(struct bench *b, size_t size, double share, size_t lines,
			       bool registers, struct bench_figure *seconds)
{
	struct climport_registration registration = { 0 };
	struct memory plain, host;
	struct entry write = { &plain, NULL, 1, true }, import = write,
		     alloc = { &host, NULL, 1, true };
	struct racer racers[ONCE_LINES] = {
		{ .name = "write", .run = run_write, .arg = &write },
		{ .name = "import", .run = run_import, .arg = &import },
		{ .name = "climport_alloc", .run = run_import, .arg = &alloc }
	};

	for (size_t i = 0; i < lines; i++)
		seconds[i] = bench_figure_nothing();
	if (bench_memory_create(b, &plain, MEMORY_PLAIN, size))
		return;
	if (registers &&
	    climport_register(plain.address, size, 0, &registration, sizeof(registration)))
		bench_fatal("climport_register: %s", climport_last_error());
	memory_fill(b, &plain);
	write.target = bench_once_target(b, size);
	if (lines < ONCE_LINES || bench_memory_create(b, &host, MEMORY_HOST, size))
		lines = ONCE_LINES - 1;
	else
		memory_fill(b, &host);
	bench_race(b, racers, lines, share);
	for (size_t i = 0; i < lines; i++)
		seconds[i] = racers[i].figure[0];
	clReleaseMemObject(write.target);
	if (lines == ONCE_LINES)
		bench_memory_destroy(&host);
	climport_unregister(&registration);
	bench_memory_destroy(&plain);
}

static const char *bench_once_goal(size_t size)
{
	if (size >= 256 * MIB)
		return ">= 1.8";
	if (size >= 64 * MIB)
		return ">= 1.5";
	return size >= 12 * MIB ? ">= 1" : NULL;
}

static const char *bench_again_goal(size_t size)
{
	if (size >= 4 * MIB)
		return ">= 3";
	return size >= 512 * KIB ? ">= 2" : NULL;
}

static const struct once_group {
	const char *name;
	const char *lines[ONCE_LINES], *plot_lines[ONCE_LINES]; /* NULL: not drawn */
	enum bench_series series[ONCE_LINES];
	const char *(*goal)(size_t size);
	const char *title; /* of the crossing */
} once_groups[] = {
	{ ONCE,
	  { "clEnqueueWriteBuffer, kernel", "import, kernel, release",
	    "the same of climport_alloc memory" },
	  { "clEnqueueWriteBuffer, kernel", "import, kernel, release",
	    "the same of climport_alloc memory" },
	  { SERIES_WRITE, SERIES_PLAIN, SERIES_ALLOC },
	  bench_once_goal,
	  "importing wins from" },
	{ AGAIN,
	  { "clEnqueueWriteBuffer, kernel", "import again, kernel, release", NULL },
	  { NULL, "import again, kernel, release", NULL },
	  { SERIES_WRITE, SERIES_AGAIN, SERIES_ALLOC },
	  bench_again_goal,
	  "importing again wins from" },
};

static void bench_once_report(struct bench *b, const struct once_group *group,
			      const struct bench_figure *seconds, size_t size)
{
	for (size_t i = 0; i < ONCE_LINES && group->lines[i]; i++) {
		bench_report(b, group->name, group->lines[i], size,
			     bench_figure_times(seconds[i], 1e3), "ms", NULL);
		if (group->plot_lines[i])
			plot_add(&b->plots[PLOT_ONCE], group->series[i], group->plot_lines[i],
				 (double)size, (double)size / seconds[i].value * 1e-9);
	}
	bench_report(b, group->name, "  write / import", size,
		     bench_figure_ratio(seconds[0], seconds[1]), "x", group->goal(size));
}

static void bench_once_report_crossing(struct bench *b, const struct once_group *group,
				       const struct bench_crossing *crossing)
{
	struct plot *plot = &b->plots[PLOT_ONCE];
	const size_t wins = crossing->wins;
	char text[32];

	if (!crossing->largest)
		return;
	if (!wins) {
		bench_skip(group->name, group->title,
			   "it does not at the largest size, or not by more "
			   "than the runs differ");
		return;
	}
	bench_report(b, group->name, group->title, wins, bench_figure_known((double)wins / 1024),
		     "KiB", NULL);
	if (group != once_groups)
		return;
	bench_size_text(text, wins);
	plot->mark = (double)wins;
	snprintf(plot->mark_text, sizeof(plot->mark_text), "importing wins from %s", text);
}

static void bench_once_fresh(struct bench *b)
{
	const unsigned int steps = bench_once_sizes(b);
	struct bench_figure seconds[ONCE_LINES];
	char text[32];

	for (size_t size = BENCH_SMALLEST; size <= b->largest; size = bench_once_next(size)) {
		bench_size_text(text, size);
		bench_progress("end to end, %s", text);
		bench_once_measure(b, size, SHARE_ONCE / steps, ONCE_LINES, false, seconds);
		bench_once_report(b, &once_groups[0], seconds, size);
		bench_crossing_add(&b->once, size, &seconds[0], &seconds[1]);
	}
	bench_once_report_crossing(b, &once_groups[0], &b->once);
}

static void bench_once_again(struct bench *b)
{
	const unsigned int steps = bench_once_sizes(b);
	struct bench_figure seconds[ONCE_LINES];
	char text[32];

	if (!b->is_cuda) {
		bench_skip(AGAIN, once_groups[1].lines[1], "this device's imports pin nothing");
		return;
	}
	for (size_t size = BENCH_SMALLEST; size <= b->largest; size = bench_once_next(size)) {
		bench_size_text(text, size);
		bench_progress("end to end again, %s", text);
		bench_once_measure(b, size, SHARE_AGAIN / steps, ONCE_LINES - 1, true, seconds);
		bench_once_report(b, &once_groups[1], seconds, size);
		bench_crossing_add(&b->again, size, &seconds[0], &seconds[1]);
	}
	bench_once_report_crossing(b, &once_groups[1], &b->again);
}

void bench_once(struct bench *b)
{
	b->plots[PLOT_ONCE] =
		(struct plot){ .title = "Host data that one kernel reads once",
			       .x_label = "size",
			       .y_label = "GB/s, from data to result (more is better)",
			       .bytes = true };
	bench_once_fresh(b);
	bench_once_again(b);
}

static void measure_reuse(struct bench *b, struct memory *m, cl_mem target, unsigned int uses)
{
	struct entry import = { m, NULL, uses, true }, fresh = { m, target, uses, true },
		     same = { m, target, uses, false };
	struct racer racers[] = {
		{ .name = "import once, data changes", .run = run_import, .arg = &import },
		{ .name = "write each time, data changes", .run = run_write, .arg = &fresh },
		{ .name = "write once, data stays", .run = run_write, .arg = &same }
	};
	static const enum bench_series series[] = { SERIES_PLAIN, SERIES_WRITE, SERIES_WRITE_ONCE };
	char name[96];

	bench_progress("%u uses", uses);
	bench_race(b, racers, 3, SHARE_REUSE / 4);
	for (size_t i = 0; i < 3; i++) {
		const struct bench_figure each =
			bench_figure_times(racers[i].figure[0], 1e3 / uses);

		snprintf(name, sizeof(name), "%s: each of %u", racers[i].name, uses);
		bench_report(b, REUSE, name, m->size, each, "ms", NULL);
		plot_add(&b->plots[PLOT_REUSE], series[i], racers[i].name, uses, each.value);
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

	bench_size_text(text, size);
	snprintf(title, sizeof(title), "%s of host data that n kernels read", text);
	b->plots[PLOT_REUSE] =
		(struct plot){ .title = title,
			       .x_label = "n",
			       .y_label = "ms for each kernel, all included (less is better)" };
	if (bench_memory_create(b, &m, MEMORY_PLAIN, size))
		return;
	memory_fill(b, &m);
	target = bench_once_target(b, size);
	/* Four times the uses take four times as long: a slow device gets fewer. */
	for (unsigned int uses = 1; uses <= MOST_USES && bench_now() < end; uses *= 4)
		measure_reuse(b, &m, target, uses);
	clReleaseMemObject(target);
	bench_memory_destroy(&m);
}
