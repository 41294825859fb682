/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranges that were imported lately: whether a registration of a range is worth keeping.
 *
 * To keep a registration costs a watch, and each later change of the memory waits for the watcher.
 * A program that imports a range once gains nothing.  So a range is *due* from the second import
 * on.  A registration that ends without a use was in vain, as for a program that imports, releases
 * and frees in a loop, and gets the same address each time: the range is then due after twice as
 * many imports as before.  Where most registrations are in vain, new ranges wait longer, too.
 *
 * A table of fixed size.  Any thread.
 */
#ifndef IMPORT_OPAQUE_FD_RECENT_H
#define IMPORT_OPAQUE_FD_RECENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Counts an import of the range, unless the range is due. */
bool recent_is_due(uintptr_t base, size_t size);

/* A registration of the range ends. */
void recent_end(uintptr_t base, size_t size, bool was_used);

#endif
