/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The registration cache beside UCX's ucs_rcache: the same ranges and the same order, in one
 * program.  A figure is a thread's CPU time for a get and a put, with the loop around both: the
 * best of several rounds that alternate between the two caches.
 *
 * ucs_rcache is set for speed: no memory events, no check of page frames, no limits.  With these
 * settings ucs_rcache does not learn of freed memory; the registration cache reads a status word at
 * each hit.
 */
#include "import/cache/cache.h"

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <ucs/memory/rcache.h>

#define MAX_RANGES 1024
#define MAX_THREADS 8
#define RANGE ((size_t)4 << 20)
#define ASKED 4096
#define ORDER 2048
#define HITS 400000
#define MISSES 40000
#define ROUNDS 7

enum kind { CACHE, UCX };

struct worker {
	enum kind kind;
	long count;
	uintptr_t order[ORDER];
	double ns;
};

static struct cache *cache;
static ucs_rcache_t *rcache;
static uintptr_t memory;
static _Atomic uint32_t status[MAX_RANGES * 16]; /* a cache line each, as in the kernel module */
static pthread_barrier_t start;

static void cache_report(const char *name, double value, const char *unit, const char *goal)
{
	printf("%-10s %-48s %8.2f %-20s %s\n", "cache", name, value, unit, goal);
	fflush(stdout);
}

static _Noreturn void cache_die(const char *what)
{
	fprintf(stderr, "bench: %s\n", what);
	exit(1);
}

static int cache_pin_nothing(void *context, const void *wanted, uintptr_t address, size_t size,
			     struct cache_pin *out)
{
	size_t i = (address - memory) / RANGE;

	(void)context, (void)wanted, (void)size;
	*out = (struct cache_pin){
		.base = memory + i * RANGE,
		.size = RANGE,
		.fd = -1,
		.status = &status[i * 16],
	};
	return 0;
}

static void cache_unpin_nothing(void *context, const struct cache_pin *out)
{
	(void)context, (void)out;
}

static const struct cache_source source = { .pin = cache_pin_nothing,
					    .unpin = cache_unpin_nothing };

static ucs_status_t ucx_reg(void *context, ucs_rcache_t *c, void *arg, ucs_rcache_region_t *region,
			    uint16_t flags)
{
	(void)context, (void)c, (void)arg, (void)region, (void)flags;
	return UCS_OK;
}

static void ucx_dereg(void *context, ucs_rcache_t *c, ucs_rcache_region_t *region)
{
	(void)context, (void)c, (void)region;
}

static void ucx_dump(void *context, ucs_rcache_t *c, ucs_rcache_region_t *region, char *buf,
		     size_t max)
{
	(void)context, (void)c, (void)region, (void)max;
	*buf = '\0';
}

static ucs_rcache_t *ucx_create(void)
{
	static const ucs_rcache_ops_t ops = { ucx_reg, ucx_dereg, ucx_dump };
	ucs_rcache_params_t params = {
		.region_struct_size = sizeof(ucs_rcache_region_t),
		.alignment = 4096,
		.max_alignment = 4096,
		.ops = &ops,
		.flags = UCS_RCACHE_FLAG_NO_PFN_CHECK,
		.max_regions = ULONG_MAX,
		.max_size = SIZE_MAX,
		.max_unreleased = SIZE_MAX,
	};
	ucs_rcache_t *c;

	if (ucs_rcache_create(&params, "bench", NULL, &c) != UCS_OK)
		cache_die("ucs_rcache_create failed");
	return c;
}

static struct cache *cache_of_bench(size_t bytes)
{
	struct cache *c;

	if (cache_create(&source, NULL, &(struct cache_config){ .bytes = bytes }, &c))
		cache_die("cache_create failed");
	return c;
}

static void use_cache(uintptr_t address, size_t size)
{
	struct cache_ref ref;

	if (cache_get(cache, address, size, NULL, &ref))
		cache_die("cache_get failed");
	cache_put(cache, &ref);
}

static void use_ucx(uintptr_t address, size_t size)
{
	ucs_rcache_region_t *region;

	if (ucs_rcache_get(rcache, (void *)address, size, PROT_READ | PROT_WRITE, NULL, &region) !=
	    UCS_OK)
		cache_die("ucs_rcache_get failed");
	ucs_rcache_region_put(rcache, region);
}

static double cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void *cache_work(void *arg)
{
	struct worker *w = arg;
	double begin;

	pthread_barrier_wait(&start);
	begin = cpu_ns();
	if (w->kind == CACHE)
		for (long i = 0; i < w->count; i++)
			use_cache(w->order[i % ORDER], ASKED);
	else
		for (long i = 0; i < w->count; i++)
			use_ucx(w->order[i % ORDER], ASKED);
	w->ns = (cpu_ns() - begin) / (double)w->count;
	return NULL;
}

/* The mean of all threads, which run at the same time. */
static double cache_run(enum kind kind, int threads, size_t ranges, long count)
{
	static struct worker workers[MAX_THREADS];
	pthread_t thread[MAX_THREADS];
	double ns = 0;

	pthread_barrier_init(&start, NULL, (unsigned int)threads);
	for (int i = 0; i < threads; i++) {
		unsigned int seed = (unsigned int)i + 1;

		workers[i].kind = kind;
		workers[i].count = count;
		for (int k = 0; k < ORDER; k++)
			workers[i].order[k] = memory + (size_t)rand_r(&seed) % ranges * RANGE +
					      (size_t)rand_r(&seed) % (RANGE - ASKED);
		if (pthread_create(&thread[i], NULL, cache_work, &workers[i]))
			cache_die("no threads");
	}
	for (int i = 0; i < threads; i++) {
		pthread_join(thread[i], NULL);
		ns += workers[i].ns;
	}
	pthread_barrier_destroy(&start);
	return ns / threads;
}

static double cache_best(double a, double b)
{
	return a < b ? a : b;
}

/* All gets are hits: every range is registered. */
static void cache_fill(size_t ranges)
{
	for (size_t i = 0; i < ranges; i++) {
		use_cache(memory + i * RANGE, RANGE);
		use_ucx(memory + i * RANGE, RANGE);
	}
}

static void measure_hits(int threads, size_t ranges, const char *goal)
{
	double ours = 1e18, ucx = 1e18;
	char name[64];

	for (int round = 0; round < ROUNDS; round++) {
		ours = cache_best(ours, cache_run(CACHE, threads, ranges, HITS));
		ucx = cache_best(ucx, cache_run(UCX, threads, ranges, HITS));
	}
	snprintf(name, sizeof(name), "hit, %d threads, %zu ranges", threads, ranges);
	cache_report(name, ours, "ns", goal);
	cache_report("  ucs_rcache", ucx, "ns", "");
	cache_report("  ratio", ucx / ours, "x as fast", "at least 2");
}

/* All gets are misses: the source's pins are free, and each put unpins. */
static void measure_miss(void)
{
	struct cache *filled = cache;
	double ours = 1e18;

	cache = cache_of_bench(0);
	for (int round = 0; round < ROUNDS; round++)
		ours = cache_best(ours, cache_run(CACHE, 1, 64, MISSES));
	cache_report("miss: pin, publish, evict, unpin", ours, "ns", "");
	cache_destroy(cache);
	cache = filled;
}

int main(void)
{
	void *p = mmap(NULL, MAX_RANGES * RANGE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		cache_die("no addresses");
	memory = (uintptr_t)p;
	cache = cache_of_bench(SIZE_MAX);
	rcache = ucx_create();
	cache_fill(MAX_RANGES);
	measure_hits(1, 64, "at most 15");
	measure_hits(2, 64, "");
	measure_hits(8, 64, "at most 30");
	measure_hits(8, 1, "at most 30");
	measure_hits(1, MAX_RANGES, "");
	measure_miss();
	ucs_rcache_destroy(rcache);
	return cache_destroy(cache) ? 1 : 0;
}
