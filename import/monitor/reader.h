/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The monitor's threads.  The *reader* reads events and marks watches, and does nothing else: a
 * thread of the program that changes watched memory waits until the reader has read the event.
 * The *teller* tells the owners, whose drivers may sleep and may unmap memory.
 */
#ifndef IMPORT_MONITOR_READER_H
#define IMPORT_MONITOR_READER_H

#include <stdint.h>

#include "import/monitor/monitor.h"

/*
 * Starts both threads for the userfaultfd @fd.  The reader has a table of descriptors of its own,
 * with a duplicate of @fd alone, which the program cannot close: a program that closes all
 * descriptors leaves no thread waiting for ever.  0 or a negative errno.  Once a process.
 */
int reader_start(int fd);

/* Odd while the reader is between read(2) and marking; another value after each reading. */
uint32_t reader_turn(void);

/* Tells the owners of stale watches that nobody has been told of. */
void reader_tell(void);

void reader_on_stale(monitor_told_fn told);

#endif
