/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread that reads events and marks watches, and does nothing else: a thread of the program
 * that changes watched memory waits until the reader has read the event.
 */
#ifndef IMPORT_MONITOR_READER_H
#define IMPORT_MONITOR_READER_H

#include <stdint.h>

#include "util/descriptor.h"

/*
 * The program may enter a filter of system calls that ends the reader.  As long as the process has
 * the userfaultfd open, a thread that changes watched memory would wait for ever: @ended closes the
 * descriptor.  A third thread, the guard, waits for the end of the reader, and calls @ended.
 */
typedef void (*reader_ended_fn)(void);

/*
 * Creates the reader of a userfaultfd.  The reader has a table of descriptors of its own, with a
 * duplicate of the descriptor alone, which the program cannot close: a program that closes all
 * descriptors leaves no thread waiting for ever.  0: the reader waits for reader_run() or
 * reader_abandon().  -EMFILE, -ENFILE and -ENOMEM pass; -EBADF: the program has closed the
 * descriptor; or another errno.  No thread is left if the call fails.
 */
int reader_create(const struct descriptor_own *uffd, reader_ended_fn ended);

/* The reader reads, as long as the process lives. */
void reader_run(void);

/* Ends the reader, before reader_run(). */
void reader_abandon(void);

/* Odd while the reader is between read(2) and marking; another value after each reading. */
uint32_t reader_turn(void);

#endif
