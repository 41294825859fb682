/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The registration cache: memory that is expensive to pin stays pinned after its last use.
 *
 * Knows no CUDA, no OpenCL and no ioctl: a source pins and unpins, and says how to tell that a
 * pin still means the memory at its address.  Sizes are bytes.  Functions return 0 or a negative
 * errno, and are called from any thread.  A hit takes no lock and does not sleep; everything
 * else may sleep.  pin() and unpin() are called without locks; the source may not call the same
 * cache.
 *
 * Freed memory.  An address that was freed and handed out again must not find the old pin.
 * NVIDIA's GPUDirect document offers two ways to know.  This cache uses neither by default:
 *
 * - "Buffer ID tag check": a call into CUDA at each use, which the document itself does not
 *   recommend where latency matters.  Here the tag check is is_current(), asked only for pins
 *   that have nothing better.
 * - Interception of all functions that free: it misses statically linked runtimes, memory that
 *   other libraries free, and whatever function the next release adds, and it slows programs
 *   that import nothing.  Here nobody's functions are replaced.
 *
 * Instead the kernel module, which is told of every free, writes a word that this process maps
 * (gdmabuf's status page): a hit is checked by one load from it.  Allocators of our own call
 * cache_invalidate() before they free.
 *
 * No check helps a program that frees memory while it is being used.  Who holds a reference
 * holds the pin: the pages stay until cache_put(), whatever the address means by then.
 *
 * fork(): a child's lookups miss.  What the parent pinned is never unpinned by the child; its
 * descriptors stay open there until exec or exit.  References that the parent had are put as
 * usual, or never.  The child may pin anew in the same cache.  Threads that did not live on in
 * the child keep their share of entries there.
 */
#ifndef IMPORT_CACHE_CACHE_H
#define IMPORT_CACHE_CACHE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Caches that may live at once: one a device, and one of exports.  At most 32. */
#define CACHE_MAX 32

struct cache;

/* One pinned range, as its source fills it.  Immutable until unpin(). */
struct cache_pin {
	uintptr_t base; /* contains what was asked for: the whole allocation, if the source can */
	size_t size;
	int fd;				/* -1 if there is none */
	uint32_t valid;			/* what *@status reads while the pin is current */
	size_t offset;			/* of @base in @fd */
	void *data;			/* the source's */
	const _Atomic uint32_t *status; /* NULL if there is none; readable until unpin() */
};

struct cache_source {
	/*
	 * Pins a range that contains [@address, @address + @size).  Whole pages at least: the
	 * cache is slow with many entries in 4 KiB.  -ENOSPC, -ENOMEM, -EMFILE and -ENFILE make
	 * the cache unpin idle entries and ask again.  After an error nothing is held.  Tells
	 * what went wrong to the log itself.  Two threads may pin one range at once.
	 */
	int (*pin)(void *context, uintptr_t address, size_t size, struct cache_pin *pin);

	/* Gives back what pin() got; its memory may have been freed since. */
	void (*unpin)(void *context, const struct cache_pin *pin);

	/*
	 * Whether the address still means the memory that was pinned; asked at each hit of a
	 * pin without @status.  NULL: pins without @status are current until
	 * cache_invalidate().  Does not sleep.
	 */
	bool (*is_current)(void *context, const struct cache_pin *pin);
};

struct cache_config {
	/*
	 * Idle entries are unpinned while more than this is pinned.  0: nothing stays idle.
	 * While what is in use is more by itself, each put takes the lock.
	 */
	size_t bytes;
	/* Entries at once, in use or not; 0: 65536. */
	uint32_t entries;
};

struct cache_ref {
	const struct cache_pin *pin; /* valid until cache_put() */
	size_t offset;		     /* of the address asked for, in the pin's descriptor */
	void *cell;		     /* the cache's */
};

struct cache_stats {
	uint64_t hits;
	uint64_t misses; /* every pin that was tried */
	uint64_t evictions;
	uint64_t stale;		/* entries found to be of freed memory */
	uint64_t invalidations; /* entries that cache_invalidate() took out */
	size_t bytes_pinned;
	size_t bytes_idle; /* part of it: pinned, and used by nobody */
	uint32_t entries;
};

/*
 * @source and @context stay the caller's and live as long as the cache.  -ENOMEM; -ENFILE if
 * there are CACHE_MAX caches.
 */
int cache_create(const struct cache_source *source, void *context,
		 const struct cache_config *config, struct cache **cache);

/* Unpins everything.  -EBUSY, and nothing is done, while a reference is held. */
int cache_destroy(struct cache *cache);

/*
 * A current pin that contains [@address, @address + @size), found or made.  @ref is the
 * caller's until cache_put(), and may be put by another thread.
 *
 * -EINVAL: the range is empty or wraps, or the source pinned something else.  -ENOSPC: all
 * entries are in use.  -ENOMEM.  What pin() returned, after all idle entries were unpinned if
 * that was -ENOSPC, -ENOMEM, -EMFILE or -ENFILE.
 *
 * A new pin takes out all entries that touch it and are not current any more, unless the cache
 * keeps nothing idle.  That takes time by the number of entries.
 */
int cache_get(struct cache *cache, uintptr_t address, size_t size, struct cache_ref *ref);

/* As cache_get(), of what is cached alone.  Whether it is: nothing is pinned, nor counted as a miss. */
bool cache_get_cached(struct cache *cache, uintptr_t address, size_t size, struct cache_ref *ref);

/* The pin stays, idle, unless it is over the budget or was invalidated: then it is unpinned. */
void cache_put(struct cache *cache, struct cache_ref *ref);

/*
 * To be called before [@address, @address + @size) is freed: no later cache_get() finds a pin
 * that touches it.  Idle ones are unpinned now, those in use at their last cache_put().  Takes
 * time by the number of entries.
 */
void cache_invalidate(struct cache *cache, uintptr_t address, size_t size);

/* Takes out the entries that touch the range and are not current: their memory was freed. */
void cache_drop_stale(struct cache *cache, uintptr_t address, size_t size);

/* Instead of what the cache was created with: what is idle and too much is unpinned now. */
void cache_set_bytes(struct cache *cache, size_t bytes);

/* Unpins @count idle entries, for what they use up; false if there are none. */
bool cache_make_room(struct cache *cache, uint32_t count);

/* A snapshot.  Takes time by the number of entries. */
void cache_stats(struct cache *cache, struct cache_stats *stats);

#endif /* IMPORT_CACHE_CACHE_H */
