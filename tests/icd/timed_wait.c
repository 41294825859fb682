/* SPDX-License-Identifier: Apache-2.0 */
#include "timed_wait.h"

#include <dlfcn.h>

timed_wait_fn *timed_wait_hook;

typedef __typeof__(pthread_cond_clockwait) clockwait_fn;

static clockwait_fn *clockwait_real;

/* The thread sanitizer's, which has to know that the mutex is free meanwhile. */
clockwait_fn __interceptor_pthread_cond_clockwait __attribute__((weak));

__attribute__((constructor)) static void timed_wait_find(void)
{
	clockwait_real = __interceptor_pthread_cond_clockwait;
	if (!clockwait_real)
		clockwait_real = (clockwait_fn *)dlsym(RTLD_NEXT, "pthread_cond_clockwait");
}

int timed_wait_real(pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *until)
{
	return clockwait_real(cond, mutex, CLOCK_MONOTONIC, until);
}

__attribute__((visibility("default"), no_sanitize("address", "thread", "undefined"))) int
pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock,
		       const struct timespec *until)
{
	(void)clock; /* the layer waits on CLOCK_MONOTONIC */
	return (timed_wait_hook ? timed_wait_hook : timed_wait_real)(cond, mutex, until);
}
