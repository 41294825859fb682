/* SPDX-License-Identifier: Apache-2.0 */
#include "import/cache/cache_entry.h"
#include "util/log.h"

#include <errno.h>
#include <stdlib.h>

#define DEFAULT_ENTRIES 65536

static void cache_free(struct cache *cache)
{
	cache_table_destroy(&cache->table);
	free(cache->memory);
	free(cache);
}

/* Entries cost no memory before they are used: the kernel gives a large calloc() zero pages. */
static int entries_create(struct cache *cache)
{
	size_t align = alignof(struct cache_entry);

	cache->memory = calloc(cache->limit + (size_t)1, sizeof(struct cache_entry));
	cache->entries = (void *)(((uintptr_t)cache->memory + align - 1) & ~(align - 1));
	return cache->memory ? 0 : -ENOMEM;
}

int cache_create(const struct cache_source *source, void *context,
		 const struct cache_config *config, struct cache **out)
{
	struct cache *cache = aligned_alloc(alignof(struct cache), sizeof(*cache));
	int err;

	if (!cache)
		return -ENOMEM;
	*cache = (struct cache){
		.source = source,
		.context = context,
		.budget = config->bytes,
		.limit = config->entries ? config->entries : DEFAULT_ENTRIES,
	};
	cells_init();
	err = cache_table_create(&cache->table);
	if (!err)
		err = entries_create(cache);
	if (!err)
		err = cache_register(cache);
	if (err) {
		cache_free(cache);
		return err;
	}
	cache->hits_before = cells_hits(cache->id);
	*out = cache;
	return 0;
}

/* All entries, or NULL and @busy. */
static struct cache_entry *take_all(struct cache *cache, bool *busy) REQUIRES(cache->lock)
{
	struct cache_entry *entry;

	*busy = false;
	cache_sweep(cache);
	for (uint32_t i = 0; i < cache->used; i++) {
		entry = &cache->entries[i];
		if (atomic_load(&entry->state) != ENTRY_FREE && !entry->inherited &&
		    !entry_is_idle(cache, entry))
			*busy = true;
	}
	if (*busy)
		return NULL;
	for (uint32_t i = 0; i < cache->used; i++)
		if (atomic_load(&cache->entries[i].state) == ENTRY_LIVE)
			entry_retire(cache, &cache->entries[i]);
	return cache_collect(cache);
}

int cache_destroy(struct cache *cache)
{
	struct cache_entry *list;
	bool busy;

	lock_acquire(&cache->lock);
	list = take_all(cache, &busy);
	lock_release(&cache->lock);
	if (busy)
		return log_errno(EBUSY, "the cache is in use");
	cache_unpin(cache, list);
	cache_unregister(cache);
	cache_free(cache);
	return 0;
}
