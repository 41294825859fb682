/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the memory monitor costs: an owner of watches, and a program that unmaps watched memory.
 * Each figure is a ratio of two cases that alternate, of the median time of each case.
 */
#include "import/monitor/monitor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "import/import.h"
#include "import/kinds/maps.h"

#define SIZE ((size_t)1 << 20)
#define CALLS 3000

enum monitor_case {
	UNMAP,	       /* mmap(), touch, munmap() */
	UNMAP_WATCHED, /* the same, with a watch */
	UNMAP_ONE_OF,  /* the same, with a watch among many */
	ASK_MAPS,      /* is the range mapped?  Every import asks */
	ASK_CURRENT,   /* watch_is_current() */
	BEGIN_AND_PUT, /* monitor_watch() and watch_put(), of memory that another watch has */
	BEGIN_FIRST,   /* monitor_watch() of other memory: what a first import pays */
	PUT_LAST,      /* watch_put() of that memory: the kernel goes through the pages */
	MONITOR_CASES,
};

static char *monitor_memory;
static struct watch monitor_long; /* on monitor_memory */
static double monitor_times[MONITOR_CASES][CALLS];

static _Noreturn void monitor_die(const char *what)
{
	fprintf(stderr, "bench: %s\n", what);
	exit(1);
}

static char *monitor_map(size_t size)
{
	char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		monitor_die("no memory");
	memset(p, 1, size);
	return p;
}

static struct watch monitor_begin_watch(char *p, size_t size)
{
	struct watch watch;

	if (monitor_watch((uintptr_t)p, size, &watch))
		monitor_die("no watch");
	return watch;
}

static double monitor_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

/* Nanoseconds of munmap() alone. */
static double monitor_unmap(bool is_watched)
{
	char *p = monitor_map(SIZE);
	struct watch watch = { 0 };
	double start;

	if (is_watched)
		watch = monitor_begin_watch(p, SIZE);
	start = monitor_now();
	munmap(p, SIZE);
	start = monitor_now() - start;
	watch_put(&watch);
	return start;
}

static double monitor_ask(enum monitor_case which)
{
	double start = monitor_now();
	struct watch watch;
	unsigned int have;

	switch (which) {
	case ASK_MAPS:
		maps_check(monitor_memory, SIZE, IMPORT_READ, &have, NULL);
		break;
	case ASK_CURRENT:
		if (!watch_is_current(&monitor_long))
			monitor_die("a watch is stale");
		break;
	default:
		watch = monitor_begin_watch(monitor_memory + SIZE / 4, SIZE / 2);
		watch_put(&watch);
	}
	return monitor_now() - start;
}

/* Nanoseconds of the first watch of a mapping, and of the watch's end. */
static void monitor_begin_first(double *begin, double *put)
{
	char *p = monitor_map(SIZE);
	double start = monitor_now();
	struct watch watch = monitor_begin_watch(p, SIZE);

	*begin = monitor_now() - start;
	start = monitor_now();
	watch_put(&watch);
	*put = monitor_now() - start;
	munmap(p, SIZE);
}

static void monitor_measure(enum monitor_case first, enum monitor_case last)
{
	for (int i = 0; i < CALLS; i++)
		for (enum monitor_case which = first; which <= last; which++)
			monitor_times[which][i] = which < ASK_MAPS ? monitor_unmap(which != UNMAP)
								   : monitor_ask(which);
}

static int monitor_compare(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static double monitor_median(enum monitor_case which)
{
	qsort(monitor_times[which], CALLS, sizeof(double), monitor_compare);
	return monitor_times[which][CALLS / 2];
}

static void monitor_report(const char *name, enum monitor_case which, enum monitor_case base,
			   const char *unit)
{
	printf("%-10s %-48s %8.2f %s\n", "monitor", name,
	       monitor_median(which) / monitor_median(base), unit);
}

/* @count watches that the reader of events looks at. */
static void monitor_fill(int count)
{
	while (count--)
		monitor_begin_watch(monitor_memory, SIZE);
}

int main(void)
{
	if (!monitor_is_available()) {
		printf("skipped: the memory monitor: %s\n", monitor_describe());
		return 0;
	}
	monitor_memory = monitor_map(SIZE);
	monitor_long = monitor_begin_watch(monitor_memory, SIZE);
	monitor_measure(UNMAP, UNMAP_WATCHED);
	monitor_measure(ASK_MAPS, BEGIN_AND_PUT);
	for (int i = 0; i < CALLS; i++)
		monitor_begin_first(&monitor_times[BEGIN_FIRST][i], &monitor_times[PUT_LAST][i]);
	monitor_report("munmap of 1 MiB, watched", UNMAP_WATCHED, UNMAP, "x unwatched");
	monitor_report("is the watch current", ASK_CURRENT, ASK_MAPS, "x is the range mapped");
	monitor_report("a watch, begun and put", BEGIN_AND_PUT, ASK_MAPS, "x is the range mapped");
	monitor_report("the first watch of 1 MiB, begun", BEGIN_FIRST, ASK_MAPS,
		       "x is the range mapped");
	monitor_report("the last watch of 1 MiB, put", PUT_LAST, ASK_MAPS, "x is the range mapped");
	monitor_fill(MONITOR_MAX_WATCHES - 2);
	monitor_measure(UNMAP, UNMAP_WATCHED);
	monitor_report("munmap of 1 MiB, among 1,024 watches", UNMAP_WATCHED, UNMAP, "x unwatched");
	printf("%-10s %-48s %8.2f ns\n", "monitor", "is the range mapped",
	       monitor_median(ASK_MAPS));
	printf("%-10s %-48s %8.2f ns\n", "monitor", "munmap of 1 MiB, unwatched",
	       monitor_median(UNMAP));
	return 0;
}
