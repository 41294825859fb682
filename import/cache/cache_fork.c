/* SPDX-License-Identifier: Apache-2.0 */
#include "import/cache/cache_entry.h"

#include <errno.h>

LOCK_DEFINE(ids_lock, LOCK_LAST);
static uint32_t ids GUARDED_BY(ids_lock); /* those of the caches that there are */

static void cache_fork_disinherit(struct lock *lock) TSA(no_thread_safety_analysis);

/* Entries that another thread was about to unpin are dying too: its list went with it. */
static void cache_fork_disinherit(struct lock *lock)
{
	struct cache *cache = (struct cache *)((char *)lock - offsetof(struct cache, lock));

	cache_table_clear(&cache->table);
	cache->dying = NULL;
	for (uint32_t i = 0; i < cache->used; i++) {
		struct cache_entry *entry = &cache->entries[i];

		if (atomic_load(&entry->state) == ENTRY_FREE)
			continue;
		atomic_store(&entry->state, ENTRY_DYING);
		entry->inherited = true;
		entry->next = cache->dying;
		cache->dying = entry;
	}
	cache->stats.bytes_pinned = 0;
	cache->stats.entries = 0;
	atomic_store(&cache->over, false);
}

int cache_register(struct cache *cache)
{
	lock_acquire(&ids_lock);
	for (cache->id = 0; cache->id < CACHE_MAX && ids & 1U << cache->id;)
		cache->id++;
	if (cache->id < CACHE_MAX)
		ids |= 1U << cache->id;
	lock_release(&ids_lock);
	if (cache->id == CACHE_MAX)
		return -ENFILE;
	lock_init(&cache->lock, LOCK_OUTER, cache_fork_disinherit);
	return 0;
}

void cache_unregister(struct cache *cache)
{
	lock_destroy(&cache->lock);
	lock_acquire(&ids_lock);
	ids &= ~(1U << cache->id);
	lock_release(&ids_lock);
}
