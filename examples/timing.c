/* SPDX-License-Identifier: Apache-2.0 */
#include "timing.h"

#include <stdlib.h>
#include <time.h>

double timing_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

static int timing_compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double timing_median(double *times, size_t count)
{
	qsort(times, count, sizeof(*times), timing_compare);
	return (times[(count - 1) / 2] + times[count / 2]) / 2;
}

double timing_min(double *times, size_t count)
{
	qsort(times, count, sizeof(*times), timing_compare);
	return times[0];
}
