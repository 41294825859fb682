/* SPDX-License-Identifier: Apache-2.0 */
#include "bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "arguments.h"

#define SMALLEST ((size_t)4096) /* sizes are a power of 4 times SMALLEST */
#define DEFAULT_SIZE ((size_t)256 << 20)
#define QUICK_SIZE ((size_t)64 << 20)

double bench_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Runs each case once, in turns, so that all meet the same disturbances. */
static void bench_race_round(struct bench *b, struct bench_case *cases, size_t count,
			     double samples[][BENCH_ROUNDS], unsigned int round)
{
	for (size_t i = 0; i < count; i++) {
		if (cases[i].why)
			continue;
		samples[i][round] = cases[i].run(b, cases[i].arg);
		if (isnan(samples[i][round]))
			cases[i].why = strdup(climport_last_error());
	}
}

void bench_race(struct bench *b, struct bench_case *cases, size_t count, double seconds)
{
	static double samples[BENCH_CASES][BENCH_ROUNDS];
	unsigned int rounds = 0;
	double start;

	bench_race_round(b, cases, count, samples, 0); /* to warm up */
	start = bench_now();
	do
		bench_race_round(b, cases, count, samples, rounds++);
	while (rounds < b->rounds &&
	       bench_now() - start < (rounds < BENCH_FEWEST ? 3 * seconds : seconds));
	for (size_t i = 0; i < count; i++)
		cases[i].figure = bench_figure_of(samples[i], cases[i].why ? 0 : rounds);
}

struct bench_use {
	enum bench_way way;
	struct bench_memory memory;
	cl_mem target; /* of clEnqueueWriteBuffer */
};

/*
 * New data comes after the run, and other cases run before it is used: as a camera's frame it lies in
 * memory, and not in the caches of the processor that wrote it a moment ago.
 */
static double bench_use_run(struct bench *b, void *arg)
{
	struct bench_use *u = arg;
	struct bench_memory *m = &u->memory;
	const bool imports = u->way != BENCH_WRITE && u->way != BENCH_KEPT;
	double start, seconds;

	bench_poison(b);
	start = bench_now();
	if (imports && bench_memory_import(b, m))
		return NAN;
	if (u->way == BENCH_WRITE)
		bench_check(clEnqueueWriteBuffer(b->queue, u->target, CL_FALSE, 0, m->size,
						 m->address, 0, NULL, NULL),
			    "clEnqueueWriteBuffer");
	bench_sum_start(b, u->way == BENCH_WRITE ? u->target : m->mem, m->size);
	bench_memory_expect(b, m);
	if (imports)
		bench_memory_release(m);
	seconds = bench_now() - start;
	bench_memory_fill(b, m);
	return seconds;
}

/* 0, or an error with libclimport's sentence. */
static int bench_use_open(struct bench *b, struct bench_use *u, enum bench_way way, size_t size)
{
	const bool allocates = way == BENCH_ALLOC || way == BENCH_DMA_BUF;
	cl_int err = CL_SUCCESS;
	int ret;

	*u = (struct bench_use){ .way = way };
	ret = allocates ? bench_memory_alloc(b, &u->memory, size)
			: bench_memory_map(&u->memory, size);
	if (!ret && way == BENCH_DMA_BUF)
		ret = bench_memory_export(&u->memory);
	if (!ret && way == BENCH_KEPT)
		ret = bench_memory_import(b, &u->memory);
	if (!ret && way == BENCH_WRITE)
		u->target = clCreateBuffer(b->context, CL_MEM_READ_ONLY, size, NULL, &err);
	bench_check(err, "clCreateBuffer");
	if (!ret)
		bench_memory_fill(b, &u->memory);
	return ret;
}

static void bench_use_close(struct bench_use *u)
{
	if (u->target)
		clReleaseMemObject(u->target);
	if (u->memory.mem)
		bench_memory_release(&u->memory);
	bench_memory_free(&u->memory);
}

/* A way that cannot be had is left out from here on. */
static void bench_once_measure(struct bench *b, size_t size, double seconds)
{
	struct bench_row *row = &b->rows[b->row_count++];
	struct bench_case cases[BENCH_WAYS];
	struct bench_use uses[BENCH_WAYS];

	row->size = size;
	bench_begin_size(b, size);
	for (enum bench_way way = 0; way < BENCH_WAYS; way++) {
		uses[way] = (struct bench_use){ .memory.dmabuf.fd = -1 };
		cases[way] = (struct bench_case){ .run = bench_use_run,
						  .arg = &uses[way],
						  .why = b->lacks[way] };
		if (!cases[way].why && bench_use_open(b, &uses[way], way, size))
			cases[way].why = strdup(climport_last_error());
	}
	bench_race(b, cases, BENCH_WAYS, seconds);
	for (enum bench_way way = 0; way < BENCH_WAYS; way++) {
		row->ways[way] = cases[way].figure;
		b->lacks[way] = cases[way].why;
		bench_use_close(&uses[way]);
	}
	bench_report_row(b, row);
}

static void bench_once(struct bench *b)
{
	const double end = bench_now() + 2 * b->seconds;
	unsigned int steps = 0;

	for (size_t size = SMALLEST; size <= b->largest; size *= 4)
		steps++;
	for (size_t size = SMALLEST; size <= b->largest && bench_now() <= end; size *= 4)
		bench_once_measure(b, size, b->seconds / steps);
}

/* Five buffers of the largest size are in host memory at a time, and one in the device's. */
static size_t bench_affordable(const struct bench *b)
{
	cl_ulong one = 0, all = 0;
	size_t host = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE) / 16;

	clGetDeviceInfo(b->device, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof(one), &one, NULL);
	clGetDeviceInfo(b->device, CL_DEVICE_GLOBAL_MEM_SIZE, sizeof(all), &all, NULL);
	if (one && one < host)
		host = one;
	return all && all / 8 < host ? all / 8 : host;
}

static void bench_set_limits(struct bench *b)
{
	const size_t most = bench_affordable(b);
	size_t wanted = b->options.quick ? QUICK_SIZE : DEFAULT_SIZE;

	b->seconds = b->options.quick ? 8 : 30;
	b->rounds = b->options.quick ? 15 : BENCH_ROUNDS;
	if (b->options.size)
		wanted = parse_size(b->options.size);
	else if (wanted > most)
		wanted = most;
	for (b->largest = SMALLEST; b->largest <= wanted / 4;)
		b->largest *= 4;
}

static int bench_parse(int argc, char **argv, struct bench_options *o)
{
	struct arguments a = { "bench", argc, argv, 1, NULL };

	while (option_next(&a)) {
		const char **value = option_is(&a, "--platform") ? &o->platform
				     : option_is(&a, "--device") ? &o->device
				     : option_is(&a, "--size")	 ? &o->size
				     : option_is(&a, "--json")	 ? &o->json
								 : NULL;

		if (option_is(&a, "--quick"))
			o->quick = true;
		else if (!value)
			return fail_option(&a);
		else if (!(*value = option_value(&a)))
			return WRONG_USAGE;
	}
	if (o->size && parse_size(o->size) < SMALLEST)
		return fail_usage("bench: --size is %zuK or more, not %s: bytes, or with K, M or G",
				  SMALLEST >> 10, o->size);
	if (a.next < argc)
		return fail_usage("bench takes no argument %s", argv[a.next]);
	return 0;
}

int bench_command(int argc, char **argv, void (*more)(struct bench *b))
{
	struct bench b = { 0 };
	int status = bench_parse(argc, argv, &b.options);

	if (status)
		return status;
	/* Where the module gdmabuf is loaded, too, an import of ordinary memory pins its pages. */
	climport_set_limits(CLIMPORT_HOST, 0, 0);
	bench_report_open(&b); /* first, so that a wrong name costs no minute */
	bench_choose(&b);
	bench_set_limits(&b);
	bench_report_begin(&b);
	bench_open(&b);
	bench_once(&b);
	if (more)
		more(&b);
	bench_report_end(&b);
	bench_close(&b);
	return 0;
}
