/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of watches.  The reader's thread marks watches, and takes no lock: the program's thread
 * that changes memory waits for the reader, perhaps with a lock of climport's.
 *
 * A *slot* holds a watch.  The slot's word has the watch's number and state, so that one comparison
 * tells whether a watch is current.  Slots are never freed; a mark that comes late for a slot's new
 * watch makes that watch stale for no reason, which is safe.
 */
#ifndef IMPORT_MONITOR_WATCHES_H
#define IMPORT_MONITOR_WATCHES_H

#include <stdbool.h>
#include <stdint.h>

#include "import/monitor/monitor.h"
#include "import/monitor/uffd.h"

/* Whole pages: [@start, @end). */
struct watches_pages {
	uintptr_t start, end;
};

/* Callers of the first four hold the monitor's lock. */

/* A live watch on @watched; @registered, which contains @watched, is registered.  0 or -ENOSPC. */
int watches_add(struct watches_pages watched, struct watches_pages registered, struct watch *watch);

/*
 * Removes the watch.  Calls @unregister with @arg for each part that is registered for the watch,
 * for no other live watch, and has not been unmapped.
 */
void watches_remove(const struct watch *watch,
		    void (*unregister)(int arg, uintptr_t start, uintptr_t end), int arg);

/* Whether a live watch needs a part of the range registered. */
bool watches_has_live(uintptr_t start, uintptr_t end);

/* In a child. */
void watches_forget(void);

bool watches_is_live(const struct watch *watch);

/* The pages of a watch that is not put. */
struct watches_pages watches_pages_of(const struct watch *watch);

/*
 * The watch becomes stale: its memory is not registered any more, and no event told so.  The end of
 * the watch unregisters nothing, as the address may be another userfaultfd's.
 */
void watches_lose(const struct watch *watch);

/* The reader's: watches that the change touches become stale; true: there was such a watch. */
bool watches_mark(const struct uffd_change *change);

/* All watches become stale. */
void watches_mark_all(void);

/*
 * Whether madvise() emptied pages of the range in the last second.  The event comes before the
 * pages go: a new watch of the range, and its pin, might come in between.
 */
bool watches_removed_lately(uintptr_t start, uintptr_t end);

/* A stale watch whose owner has not been told: its range, once; false: no such watch. */
bool watches_next_untold(uintptr_t *start, uintptr_t *end);

#endif
