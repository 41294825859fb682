/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The clock of the layer's patience (CLOCK_MONOTONIC_COARSE), which a test sets ahead, and the clock
 * of waits for self-tests (CLOCK_MONOTONIC), which a test sets back: a wait until a time by that
 * clock is then shorter.  The other clocks are the system's.  For programs that export their symbols.
 */
#ifndef TESTS_ICD_CLOCK_AHEAD_H
#define TESTS_ICD_CLOCK_AHEAD_H

#include <stdatomic.h>
#include <time.h>

extern time_t clock_ahead; /* seconds */
extern atomic_int clock_behind_ms;

#endif
