/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread that reads events and marks watches, and does nothing else: a thread of the program
 * that changes watched memory waits until the reader has read the event.
 */
#ifndef IMPORT_MONITOR_READER_H
#define IMPORT_MONITOR_READER_H

#include <stdint.h>

/*
 * Starts the reader of the userfaultfd @fd.  The reader has a table of descriptors of its own,
 * with a duplicate of @fd alone, which the program cannot close: a program that closes all
 * descriptors leaves no thread waiting for ever.  0 or a negative errno.  Once a process.
 */
int reader_start(int fd);

/* Odd while the reader is between read(2) and marking; another value after each reading. */
uint32_t reader_turn(void);

#endif
