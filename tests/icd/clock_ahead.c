/* SPDX-License-Identifier: Apache-2.0 */
#include "clock_ahead.h"

#include <sys/syscall.h>
#include <unistd.h>

time_t clock_ahead;
atomic_int clock_behind_ms;

static void clock_set_back(struct timespec *now)
{
	now->tv_nsec -= clock_behind_ms * 1000000L;
	if (now->tv_nsec < 0) {
		now->tv_nsec += 1000000000L;
		now->tv_sec--;
	}
	now->tv_sec += now->tv_nsec / 1000000000L;
	now->tv_nsec %= 1000000000L;
}

__attribute__((visibility("default"), no_sanitize("address", "thread", "undefined"))) int
clock_gettime(clockid_t clock, struct timespec *now)
{
	const int ret = (int)syscall(SYS_clock_gettime, clock, now);

	if (clock == CLOCK_MONOTONIC_COARSE)
		now->tv_sec += clock_ahead;
	if (clock == CLOCK_MONOTONIC)
		clock_set_back(now);
	return ret;
}
