/* SPDX-License-Identifier: Apache-2.0 */
/* Times, in seconds, and what a series of them says. */
#ifndef EXAMPLES_TIMING_H
#define EXAMPLES_TIMING_H

#include <stddef.h>

/* CLOCK_MONOTONIC. */
double timing_now(void);

/* Both sort @times, which has @count > 0 entries. */
double timing_median(double *times, size_t count);
double timing_min(double *times, size_t count);

#endif
