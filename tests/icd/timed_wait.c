/* SPDX-License-Identifier: Apache-2.0 */
#include "timed_wait.h"

#include <dlfcn.h>

timed_wait_fn *timed_wait_hook, *timed_wait_real;

/* The thread sanitizer's, which has to know that the mutex is free meanwhile. */
timed_wait_fn __interceptor_pthread_cond_timedwait __attribute__((weak));

__attribute__((constructor)) static void timed_wait_find(void)
{
	timed_wait_real = __interceptor_pthread_cond_timedwait;
	if (!timed_wait_real)
		timed_wait_real = (timed_wait_fn *)dlsym(RTLD_NEXT, "pthread_cond_timedwait");
}

__attribute__((visibility("default"), no_sanitize("address", "thread", "undefined"))) int
pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *until)
{
	return (timed_wait_hook ? timed_wait_hook : timed_wait_real)(cond, mutex, until);
}
