/* SPDX-License-Identifier: Apache-2.0 */
/* What a test observes of its own process, and does to it. */
#ifndef TESTS_PROCESS_H
#define TESTS_PROCESS_H

#include <stdbool.h>
#include <sys/resource.h>

/* Open descriptors.  Each count includes the descriptor that does the counting. */
int process_count_descriptors(void);

/* Lines of /proc/self/maps that contain @text; "" counts all. */
int process_count_mappings(const char *text);

int process_count_threads(void);

/* Polls @condition, ten seconds at most; false means that the condition never held. */
bool process_settles(bool (*condition)(void *), void *arg);

/* For process_settles(): whether at most *@count descriptors are open, or threads run. */
bool process_descriptors_at_most(void *count);
bool process_threads_at_most(void *count);

/* The limit becomes @count descriptors, or the hard limit if that is less; @before is restored
 * with setrlimit(2). */
void process_limit_descriptors(rlim_t count, struct rlimit *before);

/* Runs @count threads, at most 64, each with its number as the argument, and joins them. */
void process_run_threads(int count, void *(*run)(void *number));

#endif
