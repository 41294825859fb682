/* SPDX-License-Identifier: Apache-2.0 */
/* Times in seconds, and the statistics of a series. */
#ifndef EXAMPLES_TIMING_H
#define EXAMPLES_TIMING_H

#include <stddef.h>

/* CLOCK_MONOTONIC. */
double timing_now(void);

/* Both functions sort @times, which has @count > 0 entries. */
double timing_median(double *times, size_t count);
double timing_min(double *times, size_t count);

#endif
