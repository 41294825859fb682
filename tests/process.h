/* SPDX-License-Identifier: Apache-2.0 */
/* Observes and limits the process of a test. */
#ifndef TESTS_PROCESS_H
#define TESTS_PROCESS_H

#include <stdbool.h>
#include <sys/resource.h>
#include <sys/types.h>

/* Open descriptors.  Each count includes the descriptor that does the counting. */
int process_count_descriptors(void);

/* Lines of /proc/self/maps with @text; "" counts all lines. */
int process_count_mappings(const char *text);

/*
 * Whether the mapping at @addr has a flag of smaps: "pf" for VM_PFNMAP, "io" for VM_IO.  No
 * mapping has no flag.
 */
bool process_mapping_is(const void *addr, const char *flag);

int process_count_threads(void);

/* A thread whose name begins with @name; 0: no such thread. */
pid_t process_find_thread(const char *name);

/*
 * Waits until @condition is true.  False after 10,000 looks, of a millisecond or more each: a limit on a
 * hang, for what usually comes within milliseconds.
 */
bool process_settles(bool (*condition)(void *), void *arg);

/*
 * For process_settles(): every other thread sleeps, so nothing changes until the calling thread does
 * something or a sleep for a time ends.  Use it to show that something does not happen.
 */
bool process_is_quiet(void *unused);

/* For process_settles(): no thread has a name that begins with @name. */
bool process_has_no_thread(void *name);

/* For process_settles(): at most *@count descriptors are open, or threads run. */
bool process_descriptors_at_most(void *count);
bool process_threads_at_most(void *count);

/*
 * Sets the limit to @count descriptors, or to the hard limit if less.  @before is the old limit,
 * which setrlimit(2) can restore.
 */
void process_limit_descriptors(rlim_t count, struct rlimit *before);

/* Runs @run(number) in @count threads, at most 64, and joins the threads. */
void process_run_threads(int count, void *(*run)(void *number));

#endif
