/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The clock of the layer's patience (CLOCK_MONOTONIC_COARSE), which a test sets ahead.  The other clocks are the
 * system's.  For programs that export their symbols.
 */
#ifndef TESTS_ICD_CLOCK_AHEAD_H
#define TESTS_ICD_CLOCK_AHEAD_H

#include <time.h>

extern time_t clock_ahead; /* seconds */

#endif
