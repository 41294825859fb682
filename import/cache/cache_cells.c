/* SPDX-License-Identifier: Apache-2.0 */
#include "import/cache/cache_cells.h"
#include "util/lock.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

_Thread_local struct cells *cells_own;

static void cache_cells_disown(struct lock *lock);

LOCK_DEFINE_IN_CHILD(cells_lock, LOCK_LAST, cache_cells_disown); /* owners */

static struct cells *_Atomic all; /* grows only */
static pthread_key_t key;	  /* gives the block back at a thread's exit */
static bool has_key;		  /* written before there is a cache */

static void give_back(void *block)
{
	struct cells *cells = block;

	cells_own = NULL;
	lock_acquire(&cells_lock);
	cells->owned = false;
	lock_release(&cells_lock);
}

static void cache_cells_init(void)
{
	has_key = !pthread_key_create(&key, give_back);
}

void cells_init(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, cache_cells_init);
}

struct cells *cells_first(void)
{
	return atomic_load(&all);
}

static struct cells *find_unowned(void) REQUIRES(cells_lock)
{
	struct cells *cells = cells_first();

	while (cells && cells->owned)
		cells = cells->next;
	return cells;
}

/* seq_cst: a taker that does not see the block is seen by the block's owner. */
static struct cells *cache_cells_add(void) REQUIRES(cells_lock)
{
	struct cells *cells = aligned_alloc(alignof(struct cells), sizeof(*cells));

	if (!cells)
		return NULL;
	memset(cells, 0, sizeof(*cells));
	cells->next = cells_first();
	atomic_store(&all, cells);
	return cells;
}

static struct cells *cache_cells_claim(void)
{
	struct cells *cells;

	lock_acquire(&cells_lock);
	cells = find_unowned();
	if (!cells)
		cells = cache_cells_add();
	if (cells)
		cells->owned = true;
	lock_release(&cells_lock);
	return cells;
}

/* A block that nothing gives back would stay a dead thread's. */
struct cells *cells_claim(void)
{
	struct cells *cells = has_key ? cache_cells_claim() : NULL;

	cells_own = cells;
	if (cells && pthread_setspecific(key, cells)) {
		give_back(cells);
		return NULL;
	}
	return cells;
}

/* Of a child's threads there is one. */
static void cache_cells_disown(struct lock *lock)
{
	(void)lock;
	for (struct cells *cells = cells_first(); cells; cells = cells->next)
		cells->owned = cells == cells_own;
}
