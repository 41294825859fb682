/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watchers: is a range of host memory still the memory that the range was?
 *
 * Nouns.  A *watcher* is a source of such knowledge, as the memory monitor: a row of the table in
 * watcher.c.  A *watch* is on a range.  The watch is *current* as long as every page of the range
 * is the page that the program had there when the watch began; afterwards the watch is *stale* for
 * ever.
 *
 * A new watcher is a file and a row.  Code that keeps registrations knows this header alone.
 * Functions return 0 or a negative errno, not logged, and may be called from any thread.
 */
#ifndef IMPORT_OPAQUE_FD_WATCHER_H
#define IMPORT_OPAQUE_FD_WATCHER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WATCHER_WORDS 6

/* A watch, to be copied freely; all zeros: no watch. */
struct watcher_watch {
	const struct watcher *by;
	const _Atomic uint32_t
		*status;  /* NULL: is_current(); else readable until put(), by loads alone */
	uint32_t valid;	  /* value of *@status while the watch is current */
	uint32_t process; /* fork_generation(): a child can read no parent's @status */
	uint64_t own[WATCHER_WORDS]; /* the watcher's */
};

/* @address, @size: a part of memory that may be stale now. */
typedef void (*watcher_told_fn)(uintptr_t address, size_t size);

struct watcher {
	const char *name;
	size_t min_size; /* of a range: a smaller range is not worth a watch */

	/*
	 * Whether the process can have watches.  0; -EOPNOTSUPP: never, for the life of the process;
	 * another error: not now.  May sleep.
	 */
	int (*probe)(void);

	/* What the watcher rests on, or why there are no watches: a clause for `climport info`. */
	const char *(*describe)(void);

	/*
	 * Watches all pages of the range.  Sets @own, and @status and @valid where there is a status
	 * word.  What changes before the return may be missed, what changes later makes the watch
	 * stale.  -EOPNOTSUPP: not this kind of memory.  Any error: the next row is asked.
	 */
	int (*watch)(uintptr_t address, size_t size, struct watcher_watch *watch);

	/* True only if no change came before the call.  NULL: each watch has a @status. */
	bool (*is_current)(const struct watcher_watch *watch);

	/* Ends the watch. */
	void (*put)(struct watcher_watch *watch);

	/* NULL, or has @told called soon after a watch has become stale, on a thread that may sleep. */
	void (*on_stale)(watcher_told_fn told);
};

/* The rows, each of which is a file watcher_NAME.c. */
extern const struct watcher watcher_gdmabuf, watcher_monitor;

/* True if CLIMPORT_KEEP_HOST is 0 or off: nothing of host memory is kept, on whatever grounds. */
bool watcher_is_forbidden(void);

/*
 * Whether a watcher may watch a range of @size bytes.  A few loads where the process has no
 * watcher.
 */
bool watcher_is_possible(size_t size);

/*
 * A watch by the first row that watches the range; @told is for each row with on_stale().  The error
 * is the last row's.
 */
int watcher_watch(uintptr_t address, size_t size, watcher_told_fn told,
		  struct watcher_watch *watch);

bool watcher_is_current(const struct watcher_watch *watch);

/* @watch becomes zeros. */
void watcher_put(struct watcher_watch *watch);

/* The rows' clauses: of those that can watch, or of all if none can.  Text of the process. */
const char *watcher_describe(void);

#endif
