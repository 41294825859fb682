/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cells: where a thread says which entries it uses, so that a hit writes to no shared line.
 *
 * The user stores the entry in a cell of its own and then reads the entry's state.  Who takes an
 * entry away writes the state and then reads all cells:
 *
 *	user				taker
 *	cell = entry			state = dying
 *	state is live: use it		a cell has the entry: leave it
 *	...
 *	cell = NULL
 *	state is dying: look after it
 *
 * All these accesses are seq_cst, so one of the two comes first for both: if the user's read of
 * the state comes before the taker's write of it, the user's write of the cell comes before the
 * taker's read of the cell.  So a user that goes on is seen, and a taker that leaves an entry is
 * seen by the entry's last user.  What the user did with the entry happens before its reuse, for
 * the taker's read of the emptied cell acquires what the write of it releases.
 *
 * The cost of a get and a put is two exchanges on a line that stays in this processor's cache.
 * membarrier(2) would take both out of the hit.  Measured on x86-64 it took off a twentieth of a
 * hit and made a miss ten times as slow: it interrupts all processors at each eviction.
 *
 * A cell is emptied by any thread and filled by its owner only.  Blocks of cells live until the
 * process ends; a thread's goes to another thread when it exits, with the cells still in use.
 */
#ifndef IMPORT_CACHE_CACHE_CELLS_H
#define IMPORT_CACHE_CACHE_CELLS_H

#include "import/cache/cache.h"

#include <stdalign.h>

/* The first is for a moment only, see entry_hold(). */
#define CELLS 8

struct cells {
	alignas(64) void *_Atomic cell[CELLS];
	_Atomic uint64_t hits[CACHE_MAX]; /* written by the owner */
	struct cells *next;		  /* immutable */
	bool owned;
};

extern _Thread_local struct cells *cells_own;

/* Before the first use; again does nothing. */
void cells_init(void);

/* This thread's block, its first time; NULL if there is no memory, or no key of threads' data. */
struct cells *cells_claim(void);

/* All blocks, whoever owns them. */
struct cells *cells_first(void);

static inline struct cells *cells_get(void)
{
	return __builtin_expect(!!cells_own, 1) ? cells_own : cells_claim();
}

/* NULL if all are in use. */
static inline void *_Atomic *cells_free(struct cells *cells)
{
	for (int i = 1; i < CELLS; i++)
		if (!atomic_load_explicit(&cells->cell[i], memory_order_acquire))
			return &cells->cell[i];
	return NULL;
}

#endif /* IMPORT_CACHE_CACHE_CELLS_H */
