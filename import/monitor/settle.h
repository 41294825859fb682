/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting until changes that have begun are marked. */
#ifndef IMPORT_MONITOR_SETTLE_H
#define IMPORT_MONITOR_SETTLE_H

#include <stdint.h>

/*
 * 0: every change of memory registered with the userfaultfd @fd that came before the call, in the
 * order of the program's threads, has been marked, and the range is registered.  -ENOENT: all have
 * been marked, and the range is not registered, or in several mappings.  -EBUSY: not within some
 * 10 ms.  -EBADF: @fd is no userfaultfd.  No cancellation point.
 */
int settle_changes(int fd, uintptr_t start, uintptr_t end);

#endif
