/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread that tells owners of stale watches.  Owners call drivers, which may sleep and may unmap
 * memory: a thread that unmaps watched memory waits for the reader, so the reader tells nobody.
 */
#ifndef IMPORT_MONITOR_TELLER_H
#define IMPORT_MONITOR_TELLER_H

#include "import/monitor/monitor.h"

/*
 * 0, -ENOMEM or another errno.  Nobody is told any more once the process exits: drivers end in exit
 * handlers that are older than the first watch.
 */
int teller_start(void);

/* Stale watches may have owners to be told.  Takes no lock. */
void teller_wake(void);

/*
 * The calling thread is the program's.  After the end of such a thread the teller looks whether the
 * process has a thread of its own left, and calls exit(0) if not: the C library, which ends a process
 * with its last thread, takes the monitor's threads for the program's.
 */
void teller_note_thread(void);

void teller_on_stale(monitor_told_fn told);

#endif
