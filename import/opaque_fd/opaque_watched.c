/* SPDX-License-Identifier: Apache-2.0 */
#include "import/opaque_fd/opaque_watched.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "import/export/gdmabuf.h"
#include "util/descriptor.h"
#include "util/fork.h"
#include "util/idle.h"
#include "util/lock.h"
#include "util/log.h"

/* The kernel cannot give idle pages to others. */
#define WATCHED_BYTES ((size_t)1 << 30)

/* Each driver's buffer of a registration has a descriptor of the process. */
#define WATCHED_ENTRIES 32u
#define WATCHED_LIMIT_SHARE 32u /* of the process's limit of descriptors */

/* To seal a memfd, the kernel waits 150 ms for the end of pins (memfd_wait_for_pins()). */
#define WATCHED_PERIOD_MS 50u
#define WATCHED_AGE_TICKS 20u /* an idle registration goes after one or two seconds */

#define WATCHED_PATIENCE_MS 100u /* of fork() and climport_drop_all(), as util/fork.c's */

#define WATCHED_RANGES 256u /* searched by imports that pin, which takes far longer */
#define WATCHED_LONGEST_WAIT 256u

/*
 * Ranges that were imported lately.  A program that imports a range once gains nothing by a
 * registration: so a range is *due* from the second import on.  A program that imports, releases and
 * unmaps in a loop gets the same address each time: after a registration that no import has found,
 * the range is due after twice as many imports as before.
 */
struct watched_range {
	uintptr_t base;
	size_t size;	  /* 0: no range */
	uint32_t imports; /* since the last registration */
	uint32_t wait;	  /* imports before the next registration */
};

LOCK_DEFINE(watched_ranges_lock, LOCK_LAST);
static struct watched_range watched_ranges[WATCHED_RANGES] GUARDED_BY(watched_ranges_lock);
static uint32_t watched_oldest GUARDED_BY(watched_ranges_lock);

/* The range's place, found or made. */
static struct watched_range *watched_range_get(uintptr_t base, size_t size)
	REQUIRES(watched_ranges_lock)
{
	struct watched_range *range;

	for (size_t i = 0; i < WATCHED_RANGES; i++)
		if (watched_ranges[i].base == base && watched_ranges[i].size == size)
			return &watched_ranges[i];
	range = &watched_ranges[watched_oldest++ % WATCHED_RANGES];
	*range = (struct watched_range){ .base = base, .size = size, .wait = 1 };
	return range;
}

/* Counts an import, unless the range is due. */
static bool watched_range_is_due(uintptr_t base, size_t size)
{
	struct watched_range *range;
	bool is_due;

	lock_acquire(&watched_ranges_lock);
	range = watched_range_get(base, size);
	is_due = range->imports >= range->wait;
	range->imports += !is_due;
	lock_release(&watched_ranges_lock);
	return is_due;
}

/* A registration of the range has ended.  After one that was used, the next import is due. */
static void watched_range_end(uintptr_t base, size_t size, bool was_used)
{
	struct watched_range *range;

	lock_acquire(&watched_ranges_lock);
	range = watched_range_get(base, size);
	if (was_used)
		range->wait = 1;
	else if (range->wait < WATCHED_LONGEST_WAIT)
		range->wait *= 2;
	range->imports = was_used;
	lock_release(&watched_ranges_lock);
}

struct watched_made {
	struct opaque_refusals refusals; /* first */
	struct gdmabuf_watch watch;
	atomic_bool was_used; /* by an import that found the registration */
};

static _Atomic size_t watched_bytes = WATCHED_BYTES; /* the program's limits */
static _Atomic uint32_t watched_entries = WATCHED_ENTRIES;

static bool watched_tick(void);

static struct idle_task watched_task = {
	.tick = watched_tick,
	.period_ms = WATCHED_PERIOD_MS,
};

static void watched_pages(uintptr_t address, size_t size, uintptr_t *base, size_t *whole)
{
	uintptr_t mask = (uintptr_t)sysconf(_SC_PAGESIZE) - 1;

	*base = address & ~mask;
	*whole = ((address + size + mask) & ~mask) - *base;
}

/*
 * The watch comes before the pin, which comes with the first buffer: what changes before the pin
 * makes the watch stale.
 */
static int watched_start(uintptr_t base, size_t size, struct watched_made *made)
{
	if (!idle_request(&watched_task))
		return -EAGAIN;
	return gdmabuf_watch_begin(base, size, &made->watch);
}

/* A reason that passes says nothing about the range: the next import tries again. */
static bool watched_passes(int error)
{
	return error == -EAGAIN || error == -EMFILE || error == -ENFILE;
}

static int watched_pin(void *unused, const void *also_unused, uintptr_t address, size_t size,
		       struct cache_pin *pin)
{
	struct watched_made *made = calloc(1, sizeof(*made));
	int ret;

	(void)unused, (void)also_unused;
	if (!made)
		return log_errno(ENOMEM, "no memory for a registration");
	watched_pages(address, size, &pin->base, &pin->size);
	ret = watched_start(pin->base, pin->size, made);
	if (ret) {
		if (!watched_passes(ret))
			watched_range_end(pin->base, pin->size, false);
		free(made);
		return ret;
	}
	pin->number = opaque_cache_name_host();
	pin->status = made->watch.status;
	pin->valid = made->watch.generation;
	pin->data = made;
	return 0;
}

static void watched_unpin(void *unused, const struct cache_pin *pin)
{
	struct watched_made *made = pin->data;

	(void)unused;
	opaque_forget(pin->number);
	gdmabuf_watch_end(&made->watch);
	watched_range_end(pin->base, pin->size, atomic_load(&made->was_used));
	free(made);
}

/* An import that ends may leave a registration idle for the ticks. */
static void watched_idle(void *unused)
{
	(void)unused;
	idle_request(&watched_task);
}

static const struct opaque_source watched_source = {
	.cache = {
		.pin = watched_pin,
		.unpin = watched_unpin,
		.idle = watched_idle,
	},
	.exporter = OPAQUE_BY_RM,
	.share = IMPORT_SHARE_UNASKED,
	.counts_refusals = true,
};

static struct opaque_cache watched_cache = {
	.source = &watched_source,
	.config = { .bytes = WATCHED_BYTES, .idle = WATCHED_ENTRIES },
};

uint32_t opaque_watched_most_idle(void)
{
	return descriptor_share(WATCHED_LIMIT_SHARE, atomic_load(&watched_entries));
}

static void watched_limit(struct cache *cache)
{
	cache_set_limits(cache, atomic_load(&watched_bytes), opaque_watched_most_idle());
}

static atomic_bool watched_drops; /* the next tick ends idle registrations */

/* On the idle thread. */
static bool watched_tick(void)
{
	static unsigned int ticks;
	struct cache *cache = opaque_cache_of(&watched_cache);

	if (!cache)
		return false;
	if (atomic_exchange(&watched_drops, false)) {
		cache_make_room(cache, UINT32_MAX);
		cache_tidy(cache);
	}
	watched_limit(cache);
	if (++ticks % WATCHED_AGE_TICKS == 0)
		cache_age(cache);
	return cache_drop_changed(cache);
}

void opaque_watched_drop_idle(void)
{
	struct cache *cache = opaque_cache_of(&watched_cache);
	struct cache_stats stats;

	if (!cache)
		return;
	cache_stats(cache, &stats);
	if (!stats.bytes_idle && !opaque_cache_is_ending(&watched_cache))
		return;
	atomic_store(&watched_drops, true);
	idle_request(&watched_task);
	idle_call(&watched_task, WATCHED_PATIENCE_MS);
}

void opaque_watched_invalidate(uintptr_t address, size_t size)
{
	opaque_cache_invalidate_by_idle(&watched_cache, address, size);
}

void opaque_watched_set_limits(uint64_t bytes, uint64_t entries)
{
	atomic_store(&watched_bytes, bytes < WATCHED_BYTES ? bytes : WATCHED_BYTES);
	atomic_store(&watched_entries, entries < WATCHED_ENTRIES ? entries : WATCHED_ENTRIES);
	idle_call(&watched_task, WATCHED_PATIENCE_MS);
}

bool opaque_watched_make_room(uint32_t count)
{
	return opaque_cache_make_room(&watched_cache, count);
}

bool opaque_watched_find(uintptr_t address, size_t size, struct opaque_hold *hold)
{
	struct watched_made *made;

	if (!opaque_cache_find(&watched_cache, address, size, hold))
		return false;
	made = hold->ref.pin->data;
	atomic_store_explicit(&made->was_used, true, memory_order_relaxed);
	return true;
}

/* Asks no more in a process that may not use the module. */
static int watched_probe(void)
{
	static _Atomic uint32_t refused_in; /* fork_generation() */
	int ret = -ENXIO;

	if (atomic_load_explicit(&refused_in, memory_order_relaxed) == fork_generation())
		return ret;
	ret = gdmabuf_probe();
	if (ret == -ENXIO || ret == -EACCES)
		atomic_store(&refused_in, fork_generation());
	return ret;
}

static bool watched_is_due(uintptr_t address, size_t size)
{
	uintptr_t base;
	size_t whole;

	watched_pages(address, size, &base, &whole);
	return whole <= atomic_load(&watched_bytes) && watched_range_is_due(base, whole);
}

/*
 * A child of fork() would have the driver's descriptors, and with them the pages, as long as the child
 * lives; and fork() copies pinned pages.  So what no import uses ends before.
 */
static int watched_prepare(void)
{
	struct cache *cache = opaque_cache_of(&watched_cache);
	int ret = watched_probe();

	if (ret)
		return ret;
	if (cache)
		watched_limit(cache);
	if (!opaque_watched_most_idle())
		return -EMFILE;
	fork_on_before(opaque_watched_drop_idle);
	return opaque_cache_prepare();
}

int opaque_watched_get(uintptr_t address, size_t size, struct opaque_hold *hold)
{
	int ret = watched_is_due(address, size) ? watched_prepare() : -EOPNOTSUPP;

	if (!ret)
		ret = opaque_cache_get(&watched_cache, address, size, NULL, hold);
	if (!ret)
		idle_request(&watched_task); /* the last tick may have seen no entry */
	return ret;
}

void opaque_watched_add_stats(struct cache_stats *sum)
{
	opaque_cache_add_stats(&watched_cache, sum);
}
