/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hazard pointers: M. M. Michael, "Hazard Pointers: Safe Memory Reclamation for Lock-Free Objects",
 * IEEE Transactions on Parallel and Distributed Systems 15(6), 2004.
 *
 * A *user* is a thread that reads an entry of a cache without the cache's lock.  A *record* belongs
 * to a thread and has a few *slots*.  The user stores the entry in a slot, then checks that the
 * entry is still live.  A *taker*, which has the lock, marks the entry dying, then scans the slots
 * of all records:
 *
 *	user				taker
 *	U1 slot = entry			T1 state = dying
 *	U2 state is live: use entry	T2 a slot has the entry: leave the entry
 *	...
 *	U3 slot = NULL
 *	U4 state is dying: tidy up
 *
 * Proof obligations.  All these accesses are seq_cst, so they have one order for all threads.
 *
 * 1. No entry is taken from a user.  If U2 reads live, U2 comes before T1, so U1 comes before T2:
 *    the taker sees the slot.
 * 2. No entry is forgotten.  If T2 sees the slot, T2 comes before U3, so T1 comes before U4: the
 *    user sees dying, and collects the entry.
 * 3. A user's accesses happen before reuse.  T2, which reads the empty slot, acquires what U3
 *    releases.
 * 4. A user without a free slot counts itself in entry->refs before slot 0, which held the entry
 *    meanwhile, is emptied.  Takers scan slots first and read refs second, so takers see the user
 *    in the slot or in refs.
 * 5. A new record is published seq_cst (hazard.c) before the record's first U1: a taker that misses
 *    the record comes before U1, and U2 reads dying.
 *
 * Cost: a get and a put are two exchanges on a cache line of the user's processor.  membarrier(2)
 * would replace both exchanges.  Measured on x86-64, membarrier(2) saved a twentieth of a hit and
 * made a miss ten times as slow, as each eviction interrupts all processors.
 *
 * The owner alone fills a slot; any thread empties a slot.  Records live until the process ends.
 * At a thread's exit the record goes to a later thread, with the slots that are still in use.
 */
#ifndef IMPORT_CACHE_HAZARD_H
#define IMPORT_CACHE_HAZARD_H

#include "import/cache/cache.h"

#include <stdalign.h>

/* Slot 0 is for the moment before a user counts itself: obligation 4. */
#define HAZARD_SLOTS 8

struct hazard_record {
	alignas(64) void *_Atomic slot[HAZARD_SLOTS];
	_Atomic uint64_t hits[CACHE_MAX]; /* by cache->id; written by the owner */
	struct hazard_record *next;	  /* immutable */
	bool owned;
};

extern _Thread_local struct hazard_record *hazard_own;

/* Before the first use.  Later calls do nothing. */
void hazard_init(void);

/* A thread's first use: a record, or NULL without memory or a key of thread-specific data. */
struct hazard_record *hazard_claim(void);

/* The list of all records, owned or not. */
struct hazard_record *hazard_first(void);

static inline struct hazard_record *hazard_get(void)
{
	return __builtin_expect(!!hazard_own, 1) ? hazard_own : hazard_claim();
}

/* A free slot, or NULL. */
static inline void *_Atomic *hazard_free_slot(struct hazard_record *record)
{
	for (int i = 1; i < HAZARD_SLOTS; i++)
		if (!atomic_load_explicit(&record->slot[i], memory_order_acquire))
			return &record->slot[i];
	return NULL;
}

/* Hits of all threads on all caches that ever had the id. */
static inline uint64_t hazard_hits(uint32_t id)
{
	uint64_t hits = 0;

	for (struct hazard_record *r = hazard_first(); r; r = r->next)
		hits += atomic_load_explicit(&r->hits[id], memory_order_relaxed);
	return hits;
}

#endif /* IMPORT_CACHE_HAZARD_H */
