/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The layer's waits until a time (pthread_cond_clockwait()), which a test replaces to decide when the time
 * is over.  For programs that export their symbols.
 */
#ifndef TESTS_ICD_TIMED_WAIT_H
#define TESTS_ICD_TIMED_WAIT_H

#include <pthread.h>
#include <time.h>

typedef int timed_wait_fn(pthread_cond_t *cond, pthread_mutex_t *mutex,
			  const struct timespec *until);

/* Called by every wait; NULL: nobody.  Set before the layer is loaded. */
extern timed_wait_fn *timed_wait_hook;

/* The C library's. */
timed_wait_fn timed_wait_real;

#endif
