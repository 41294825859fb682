/* SPDX-License-Identifier: Apache-2.0 */
/* Starts of climport's threads by a program's thread that has a scheduling of its own. */
#ifndef TESTS_IMPORT_THREAD_FIXTURE_H
#define TESTS_IMPORT_THREAD_FIXTURE_H

#include <stdbool.h>

/* How a thread of the program differs from the first thread. */
struct thread_creator {
	const char *name;
	int (*become)(void); /* not 0: the system refuses */
};

extern const struct thread_creator thread_creators[5];

/*
 * Calls @start with @arg on such a thread.  Then the thread of climport's with the name @name has the
 * scheduling of the first thread.  In a child.
 */
void thread_fixture_check(const struct thread_creator *creator, void (*start)(void *arg), void *arg,
			  const char *name);

/* Fails unless the thread with the name has the scheduling of the first thread. */
void thread_fixture_expect_free(const char *name);

/*
 * Runs the test @name_@row again in a process whose program @become has prepared, and expects success.
 * True in that process.  Not 0 of @become: the system refuses.
 */
bool thread_fixture_is_started(const char *name, const char *row, int (*become)(void));

#endif
