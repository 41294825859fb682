/* SPDX-License-Identifier: Apache-2.0 */
/* The fixture of the tests of the memory monitor. */
#ifndef TESTS_IMPORT_MONITOR_FIXTURE_H
#define TESTS_IMPORT_MONITOR_FIXTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "import/monitor/monitor.h"

#define PAGE 4096

/* Skips the test on a system without the monitor. */
void monitor_fixture_needed(void);

/* Written memory between two inaccessible pages, so the memory is a separate mapping. */
char *monitor_fixture_map(size_t size);
void monitor_fixture_unmap(char *p, size_t size);

/* Waits, a minute at most, until the memory can be watched: an earlier test may have emptied pages. */
void monitor_fixture_wait(const char *p, size_t size);

/* A current watch.  Waits if an earlier test emptied pages at the address a moment ago. */
struct watch monitor_fixture_watch(const char *p, size_t size);

/* Bytes of the range registered with a userfaultfd. */
size_t monitor_fixture_registered(const char *p, size_t size);

/* Descriptors of the thread's table whose files have @text in their names. */
int monitor_fixture_count(pid_t thread, const char *text);

/* For process_settles(): no thread of the monitor runs. */
bool monitor_fixture_has_ended(void *unused);

#endif
