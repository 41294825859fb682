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

void teller_on_stale(monitor_told_fn told);

#endif
