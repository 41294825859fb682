/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by kmod.c and kmod-gdrdrv.c. */
#ifndef BENCH_KMOD_H
#define BENCH_KMOD_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 51 };

static _Noreturn inline void kmod_die(const char *what)
{
	fprintf(stderr, "bench: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* Microseconds. */
static inline double kmod_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

/* The best, as in the other benchmarks: other programs slow the rest of the rounds. */
static inline double kmod_best(const double *v)
{
	double least = v[0];

	for (int i = 1; i < ROUNDS; i++)
		if (v[i] < least)
			least = v[i];
	return least;
}

/* A line for the JSON file of bench/run. */
static inline void kmod_figure(FILE *json, const char *group, const char *name, double value,
			       const char *unit)
{
	if (json && fprintf(json,
			    "\t{ \"group\": \"%s\", \"name\": \"%s\", \"value\": %.4f, \"unit\": "
			    "\"%s\" }\n",
			    group, name, value, unit) < 0)
		kmod_die("the file of figures");
}

/* @argv may name a file for the figures. */
static inline FILE *figures_open(int argc, char **argv)
{
	FILE *json = argc > 1 ? fopen(argv[1], "w") : NULL;

	if (argc > 1 && !json)
		kmod_die(argv[1]);
	return json;
}

static inline void figures_close(FILE *json)
{
	if (json && fclose(json))
		kmod_die("the file of figures");
}

#endif
