/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first import of a range, and the second, with which a kept registration begins: what kept
 * registrations add to an import that finds none.  Processes that keep registrations and processes
 * that keep none take turns, each kind as the first of every second pair: two processes differ by
 * more than what is measured.
 *
 * A batch's ranges are at addresses that were never imported: where a program imports at an address
 * again, as after free() and malloc(), the first import of the new memory is like a second one.  The
 * ranges all live until the last of them is imported, so that no range is given up while another is
 * imported.  A program that imports, releases and unmaps in turns pays for both, and is measured by
 * itself.
 */
#include "bench.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define GROUP "first"
#define SHARE 0.015
#define TURNS 5
#define PHASES ((size_t)3)
#define NO_MEMORY "there is no memory"

enum first_phase { FIRST_IMPORT, FIRST_SECOND, FIRST_WHOLE };

#define BATCH ((size_t)16)
#define BATCH_BYTES ((size_t)256 << 20)
#define SIZES 6
#define GOALS_UP_TO ((size_t)16 << 20) /* the time of a longer pin varies by more than the goal */

/* Less than 64 KiB is never kept. */
static const size_t first_sizes[SIZES] = { (size_t)4 << 10,  (size_t)64 << 10, (size_t)1 << 20,
					   (size_t)16 << 20, (size_t)64 << 20, (size_t)256 << 20 };

static int bench_first_create(struct bench *b, struct memory *m, size_t size)
{
	int err = bench_memory_create(b, m, MEMORY_PLAIN, size);

	if (!err)
		memset(m->address, 1, size);
	return err;
}

static void bench_first_destroy(struct memory *m)
{
	if (m->mem)
		memory_release(m);
	bench_memory_destroy(m);
}

/* Nothing gets the addresses again. */
static void bench_first_retire(struct memory *m)
{
	void *address = m->mapping;
	const size_t size = m->mapped;

	bench_first_destroy(m);
	/* A failure: another mapping has the addresses. */
	if (size)
		(void)mmap(address, size, PROT_NONE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1,
			   0);
}

/* The mean of a batch of imports, after the release of those before.  NULL, or why one failed. */
static const char *bench_first_import(struct bench *b, struct memory *batch, size_t count,
				      double *seconds)
{
	const char *why = NULL;
	double start;

	for (size_t i = 0; i < count; i++)
		if (batch[i].mem)
			memory_release(&batch[i]);
	start = bench_now();
	for (size_t i = 0; i < count && !why; i++)
		if (memory_create(b, &batch[i]))
			why = bench_memory_why(&batch[i]);
	*seconds = (bench_now() - start) / (double)count;
	return why;
}

/*
 * The first imports of a batch, and the second.  The third imports find the registrations:
 * registrations that no import ever uses are soon made no more.
 */
static const char *bench_first_batch(struct bench *b, void *arg, double *seconds)
{
	const size_t size = *(const size_t *)arg;
	const size_t count = size * BATCH > BATCH_BYTES ? BATCH_BYTES / size : BATCH;
	struct memory batch[BATCH] = { 0 };
	const char *why = NULL;

	for (size_t i = 0; i < count && !why; i++)
		if (bench_first_create(b, &batch[i], size))
			why = NO_MEMORY;
	for (size_t i = 0; i < 3 && !why; i++)
		why = bench_first_import(b, batch, count, &seconds[i]);
	for (size_t i = 0; i < count; i++)
		bench_first_retire(&batch[i]);
	return why;
}

static const char *bench_first_whole(struct bench *b, void *arg, double *seconds)
{
	const char *why = NULL;
	struct memory m;
	double start;

	if (bench_first_create(b, &m, *(const size_t *)arg))
		return NO_MEMORY;
	start = bench_now();
	if (memory_create(b, &m))
		why = bench_memory_why(&m);
	bench_first_destroy(&m);
	seconds[0] = bench_now() - start;
	return why;
}

void bench_first_part(struct bench *b)
{
	for (size_t i = 0; i < SIZES && first_sizes[i] <= b->largest; i++) {
		size_t size = first_sizes[i];
		struct racer batch = { .name = "imports of new memory",
				       .run = bench_first_batch,
				       .arg = &size },
			     whole = { .name = "import, release, munmap",
				       .run = bench_first_whole,
				       .arg = &size };

		bench_race(b, &batch, 1, SHARE / SIZES);
		bench_part_print(batch.figure[0].value);
		bench_part_print(batch.figure[1].value);
		bench_race(b, &whole, 1, SHARE / SIZES);
		bench_part_print(whole.figure[0].value);
	}
}

/* The runs are processes. */
static struct bench_figure bench_first_figure(double turns[TURNS][SIZES][PHASES], size_t i,
					      size_t phase)
{
	double values[TURNS];

	for (size_t turn = 0; turn < TURNS; turn++)
		values[turn] = turns[turn][i][phase];
	return bench_figure_of(values, TURNS);
}

/* A phase's times with registrations kept and without, and the difference. */
static void bench_first_row(struct bench *b, double kept[TURNS][SIZES][PHASES],
			    double fresh[TURNS][SIZES][PHASES], size_t i, size_t phase)
{
	static const char *const names[PHASES] = { "import", "second import",
						   "import, release, munmap" };
	static const char *const longer[PHASES] = { "  longer, as registrations are kept",
						    "  longer, as a registration begins", NULL };
	const size_t size = first_sizes[i];
	const struct bench_figure with = bench_first_figure(kept, i, phase),
				  without = bench_first_figure(fresh, i, phase);
	char name[64];

	snprintf(name, sizeof(name), "%s, CLIMPORT_KEEP_HOST=1", names[phase]);
	bench_report(b, GROUP, name, size, bench_figure_times(with, 1e6), "us", NULL);
	snprintf(name, sizeof(name), "%s, CLIMPORT_KEEP_HOST=0", names[phase]);
	bench_report(b, GROUP, name, size, bench_figure_times(without, 1e6), "us", NULL);
	if (longer[phase])
		bench_report(b, GROUP, longer[phase], size,
			     bench_figure_times(bench_figure_minus(with, without), 1e6), "us",
			     size <= GOALS_UP_TO ? "<= 10" : NULL);
}

static size_t bench_first_turn(struct bench *b, const char *set, double numbers[SIZES][PHASES],
			       size_t count)
{
	return count ? bench_part_run(b, "first", set, numbers[0], count) : 0;
}

void bench_first(struct bench *b)
{
	static double kept[TURNS][SIZES][PHASES], fresh[TURNS][SIZES][PHASES];
	size_t got = SIZES * PHASES;

	if (!b->is_cuda) {
		bench_skip(GROUP, "import", "this device's imports keep nothing");
		return;
	}
	for (size_t turn = 0; turn < TURNS; turn++) {
		if (turn % 2)
			got = bench_first_turn(b, "CLIMPORT_KEEP_HOST=0", fresh[turn], got);
		got = bench_first_turn(b, "CLIMPORT_KEEP_HOST=1", kept[turn], got);
		if (!(turn % 2))
			got = bench_first_turn(b, "CLIMPORT_KEEP_HOST=0", fresh[turn], got);
	}
	for (size_t i = 0; i < got / PHASES; i++)
		for (size_t phase = 0; phase < PHASES; phase++)
			bench_first_row(b, kept, fresh, i, phase);
}
