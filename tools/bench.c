/* SPDX-License-Identifier: Apache-2.0 */
#include "bench.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define DEFAULT_SIZE ((size_t)1 << 30)
#define QUICK_SIZE ((size_t)64 << 20)
#define SECONDS 90 /* as the help promises, on a machine that does nothing else */
#define QUICK_SECONDS 15

/* Host and device memory each hold at most six buffers of the largest size at a time. */
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
	const struct bench_options *options = b->options;
	size_t most = bench_affordable(b), wanted = options->quick ? QUICK_SIZE : DEFAULT_SIZE;

	b->seconds = options->quick ? 9 : 60;
	b->rounds = options->quick ? 15 : BENCH_ROUNDS;
	if (options->size)
		wanted = options->size;
	else if (wanted > most)
		wanted = most;
	for (b->largest = BENCH_SMALLEST; b->largest <= wanted / 4;)
		b->largest *= 4;
}

void bench_make_random(struct bench *b)
{
	b->random =
		mmap(NULL, b->largest, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (b->random == MAP_FAILED)
		bench_fatal("no memory for %zu bytes: %m", b->largest);
	for (size_t i = 0; i < b->largest / sizeof(*b->random); i++)
		b->random[i] = bench_random();
}

static void find_cuda(struct bench *b)
{
	b->no_cuda = "the device is not CUDA's";
	if (b->is_cuda)
		b->cuda = bench_cuda_open(b->uuid, &b->no_cuda);
	else
		bench_skip("", memory_names[MEMORY_DEVICE], b->no_cuda);
	b->lacks[MEMORY_DEVICE] = !b->is_cuda;
}

/* Where the module gdmabuf is loaded, too, an import of ordinary memory pins its pages. */
static void bench_keep_nothing(void)
{
	climport_set_limits(CLIMPORT_HOST, 0, 0);
}

static const struct bench_group {
	const char *name;
	void (*run)(struct bench *b);
} bench_groups[] = {
	{ "bandwidth", bench_bandwidth }, { "once", bench_once },	{ "frames", bench_frames },
	{ "reuse", bench_reuse },	  { "latency", bench_latency }, { "launch", bench_launch },
	{ "query", bench_query },	  { "export", bench_export },
};

/* A busy machine takes longer than promised, though at most twice as long before the last group. */
static void bench_run_groups(struct bench *b, double start)
{
	const double end = start + (b->options->quick ? 2 * QUICK_SECONDS : 2 * SECONDS);

	for (size_t i = 0; i < sizeof(bench_groups) / sizeof(bench_groups[0]); i++)
		if (bench_now() < end)
			bench_groups[i].run(b);
		else
			bench_skip(bench_groups[i].name, "all",
				   "the time is over, as this machine does something else");
}

int bench_command(const struct bench_options *options)
{
	const double start = bench_now();
	static struct bench all;
	struct bench *b = &all;

	b->options = options;
	bench_keep_nothing();
	if (options->part)
		return bench_part_command(b);
	bench_report_open(b, options); /* first, so that a wrong name costs no minute */
	bench_choose(b);
	bench_set_limits(b);
	bench_report_begin(b);
	bench_open(b);
	bench_make_random(b);
	find_cuda(b);
	bench_run_groups(b, start);
	bench_report_end(b, options);
	munmap(b->random, b->largest);
	bench_close(b);
	return 0;
}
