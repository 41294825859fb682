/* SPDX-License-Identifier: Apache-2.0 */
#include "cache_entry.h"

#include <errno.h>
#include <pthread.h>

static struct lock caches_lock = LOCK_INIT; /* the list; taken first */
static struct cache *caches;

/* Between them all locks are held, across fork(). */
static void before_fork(void) TSA(no_thread_safety_analysis);
static void after_fork(bool child) TSA(no_thread_safety_analysis);
static void disinherit(struct cache *cache) TSA(no_thread_safety_analysis);

static void before_fork(void)
{
	lock_acquire(&caches_lock);
	for (struct cache *cache = caches; cache; cache = cache->next_cache)
		lock_acquire(&cache->lock);
	cells_before_fork();
}

/* Entries that another thread was about to unpin are dying too: its list went with it. */
static void disinherit(struct cache *cache)
{
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

static void after_fork(bool child)
{
	cells_after_fork(child);
	for (struct cache *cache = caches; cache; cache = cache->next_cache) {
		if (child)
			disinherit(cache);
		lock_release(&cache->lock);
	}
	lock_release(&caches_lock);
}

static void in_parent(void)
{
	after_fork(false);
}

static void in_child(void)
{
	after_fork(true);
}

static void register_fork(void)
{
	pthread_atfork(before_fork, in_parent, in_child);
}

/* The lowest id that is free, CACHE_MAX if none is. */
static uint32_t free_id(void) REQUIRES(caches_lock)
{
	uint32_t taken = 0, id = 0;

	for (struct cache *cache = caches; cache; cache = cache->next_cache)
		taken |= 1U << cache->id;
	while (id < CACHE_MAX && taken & 1U << id)
		id++;
	return id;
}

int cache_register(struct cache *cache)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, register_fork);
	lock_acquire(&caches_lock);
	cache->id = free_id();
	if (cache->id < CACHE_MAX) {
		cache->next_cache = caches;
		caches = cache;
	}
	lock_release(&caches_lock);
	return cache->id < CACHE_MAX ? 0 : -ENFILE;
}

void cache_unregister(struct cache *cache)
{
	struct cache **link = &caches;

	lock_acquire(&caches_lock);
	while (*link != cache)
		link = &(*link)->next_cache;
	*link = cache->next_cache;
	lock_release(&caches_lock);
}
