/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A registration cache: memory that is expensive to pin stays pinned after its last use.
 *
 * Nouns.  A *pin* is memory that a *source* keeps in place, with the descriptor of the memory.  An
 * *entry* is a pin in the cache.  A *user* holds a reference to an entry; an entry without users
 * is *idle*.  An entry is *stale* when the program has freed the memory: the address may then mean
 * other memory.
 *
 * The cache knows no CUDA, no OpenCL and no ioctl.  A source pins, unpins, and says whether a pin
 * is stale.  Sizes are bytes.  Functions return 0 or a negative errno, and are called from any
 * thread.  A hit takes no lock and does not sleep; everything else may sleep.  pin() and unpin()
 * are called without locks; a source may not call its own cache.
 *
 * Freed memory.  NVIDIA's GPUDirect RDMA document ("Registration Cache") knows two checks:
 *
 * - Tag check: a call into CUDA for the buffer id at each use.  The document does not recommend
 *   the tag check where latency matters.  Here is_current() is the tag check, for pins without a
 *   status word.
 * - Interception of all functions that free.  Interception misses statically linked runtimes, other
 *   libraries, and every function of the next release, and slows programs that import nothing.
 *   climport replaces nobody's functions.
 *
 * For host memory the kernel module is told when an address gets other pages, and writes a *status
 * word* that the process maps: a hit checks one load.  climport's allocators call cache_invalidate()
 * before they free.
 *
 * No check helps a program that frees memory during a use.  A reference keeps the pin: the pages
 * stay until cache_put(), whatever the address means by then.
 *
 * fork().  A child's look-ups miss, also where no fork handler ran (_Fork(), clone()).  The child
 * never unpins the parent's pins, whose descriptors stay open in the child until exec or exit.  The
 * child puts the parent's references as usual, or never, and may pin anew in the same cache.
 * Threads that the child does not have keep their share of entries.
 */
#ifndef IMPORT_CACHE_CACHE_H
#define IMPORT_CACHE_CACHE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cache;

/* A pinned range, filled by the source.  Immutable until unpin(). */
struct cache_pin {
	uintptr_t
		base; /* contains the requested range; of the whole allocation, if the source can */
	size_t size;
	int fd;				/* -1: no descriptor */
	uint32_t valid;			/* value of *@status while the pin is current */
	size_t offset;			/* of @base in @fd */
	void *data;			/* the source's */
	const _Atomic uint32_t *status; /* NULL: is_current() instead; readable until unpin() */
	uint64_t number;		/* the source's: a name for the pin */
};

struct cache_source {
	/*
	 * Pins a range that contains [@address, @address + @size).  Whole pages at least: with many
	 * entries in 4 KiB the cache is slow.  In a shortage (util/shortage.h) the cache unpins
	 * idle entries and calls again.  After an error nothing is held.  Logs the fault.
	 * Two threads may pin one range at once.  @wanted: from cache_get().
	 */
	int (*pin)(void *context, const void *wanted, uintptr_t address, size_t size,
		   struct cache_pin *pin);

	/* Gives back pin()'s resources; the program may have freed the memory since. */
	void (*unpin)(void *context, const struct cache_pin *pin);

	/*
	 * Whether the address still means the pinned memory: at each hit on a pin without @status.
	 * NULL: such pins are current until cache_invalidate().  Does not sleep.
	 */
	bool (*is_current)(void *context, const struct cache_pin *pin);

	/*
	 * NULL, or told of the first put after cache_age() or cache_drop_changed(): a pin may be
	 * idle now.  On the thread of the put, without locks.  Does not sleep.
	 */
	void (*idle)(void *context);
};

/*
 * While more is pinned than the limits of what is idle, idle or not, each put takes the lock and looks at every
 * entry: 22 us for 10,000.
 */
struct cache_config {
	size_t bytes;	  /* of idle entries; 0: nothing stays idle */
	uint32_t idle;	  /* idle entries; 0: any number */
	uint32_t entries; /* at once, in use or not; 0: 65536 */
};

struct cache_ref {
	const struct cache_pin *pin; /* valid until cache_put() */
	size_t offset;		     /* of the requested address in the pin's descriptor */
};

struct cache_stats {
	uint64_t hits;
	uint64_t misses; /* every call of pin() but repeated calls for room */
	uint64_t evictions;
	uint64_t stale; /* entries that were taken out as stale */
	size_t bytes_pinned;
	size_t bytes_idle; /* part of @bytes_pinned: without users */
	uint32_t entries;
};

/*
 * @source and @context stay the caller's and live as long as the cache.  Or -ENOMEM.
 */
int cache_create(const struct cache_source *source, void *context,
		 const struct cache_config *config, struct cache **cache);

/* Unpins everything.  -EBUSY, and nothing is done, while a reference is held. */
int cache_destroy(struct cache *cache);

/*
 * A current pin that contains [@address, @address + @size), found or made.  @ref is the
 * caller's until cache_put(); any thread may put @ref.  @wanted: the caller's knowledge of the range,
 * for pin().
 *
 * -EINVAL: the range is empty or wraps, or the source pinned another range.  -ENOSPC: all
 * entries are in use.  -ENOMEM.  Or the error of pin(), with all idle entries unpinned if the
 * error is a shortage.
 *
 * A new pin takes out all stale entries that touch the pin, unless the cache keeps nothing idle.
 * Takes time by the number of entries.
 */
int cache_get(struct cache *cache, uintptr_t address, size_t size, const void *wanted,
	      struct cache_ref *ref);

/* Whether the range is cached.  A look-up alone: nothing is pinned, nor counted as a miss. */
bool cache_get_cached(struct cache *cache, uintptr_t address, size_t size, struct cache_ref *ref);

/* The pin stays, idle.  A pin over the limits, or an invalidated pin, is unpinned. */
void cache_put(struct cache *cache, struct cache_ref *ref);

/*
 * cache_put() that unpins nothing.  True: something may be left to unpin, and the caller has
 * cache_tidy() called.
 */
bool cache_put_only(struct cache *cache, struct cache_ref *ref);

/* Unpins what is over the limits, invalidated or stale, and has no users. */
void cache_tidy(struct cache *cache);

/*
 * To be called before [@address, @address + @size) is freed: no later cache_get() finds a pin
 * that touches the range.  Idle pins are unpinned now, pins in use at their last cache_put().
 * Takes time by the number of entries.
 */
void cache_invalidate(struct cache *cache, uintptr_t address, size_t size);

/* The same, but unpins nothing; returns as cache_put_only(). */
bool cache_invalidate_only(struct cache *cache, uintptr_t address, size_t size);

/*
 * Takes out the stale entries that touch the range.  The second function unpins nothing, and returns
 * as cache_put_only().
 */
void cache_drop_stale(struct cache *cache, uintptr_t address, size_t size);
bool cache_drop_stale_only(struct cache *cache, uintptr_t address, size_t size);

/*
 * Takes out the entries whose status word has changed.  A load for each entry; the source is not
 * asked.  False: no idle entry has a status word, and the next put tells the source.
 */
bool cache_drop_changed(struct cache *cache);

/* New limits of what is idle, 0 for nothing: what is over is unpinned now, recently used entries last. */
void cache_set_limits(struct cache *cache, size_t bytes, uint32_t idle);

/*
 * Unpins the entries that have been idle since the call before.  For a caller with a clock: an entry
 * without use goes after one to two of the caller's periods.  False: no entry is idle, and the next
 * put tells the source.
 */
bool cache_age(struct cache *cache);

/* Unpins @count idle entries, for their resources; false: no entry is idle. */
bool cache_make_room(struct cache *cache, uint32_t count);

/* A snapshot.  Takes time by the number of entries. */
void cache_stats(struct cache *cache, struct cache_stats *stats);

/* Adds a snapshot to @sum. */
void cache_add_stats(struct cache *cache, struct cache_stats *sum);

#endif /* IMPORT_CACHE_CACHE_H */
