/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for a word in memory, for threads that may take no lock. */
#ifndef IMPORT_MONITOR_FUTEX_H
#define IMPORT_MONITOR_FUTEX_H

#include <limits.h>
#include <linux/futex.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static inline void futex_wake(const void *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

/* Returns at once if the word has another value, and may return early.  No cancellation point. */
static inline void futex_wait(const void *word, uint32_t value, const struct timespec *limit)
{
	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, limit, NULL, 0);
}

#endif
