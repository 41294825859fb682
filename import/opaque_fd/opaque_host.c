/* SPDX-License-Identifier: Apache-2.0 */
#include "import/opaque_fd/opaque_host.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "import/nvidia/rm/rm.h"
#include "import/opaque_fd/exporter.h"
#include "import/opaque_fd/opaque.h"
#include "import/opaque_fd/opaque_registered.h"
#include "import/opaque_fd/recent.h"
#include "import/opaque_fd/watcher.h"
#include "util/descriptor.h"
#include "util/fork.h"
#include "util/idle.h"
#include "util/log.h"

/* Idle pages are pages that the kernel cannot give to others. */
#define OPAQUE_HOST_BYTES ((size_t)1 << 30)

/* Each driver's buffer of a registration has a descriptor of the process. */
#define OPAQUE_HOST_ENTRIES 32u
#define OPAQUE_HOST_LIMIT_SHARE 32u /* of the process's limit of descriptors */

#define OPAQUE_HOST_PERIOD_MS 1000u /* an idle registration goes after one or two */

/*
 * An idle registration of freed memory goes after one.  To seal a memfd, the kernel waits 150 ms for
 * the end of pins (memfd_wait_for_pins()).
 */
#define OPAQUE_HOST_FREED_MS 50u

#define OPAQUE_HOST_FORK_MS 100u /* the patience of a fork, as util/fork.c's */

/* The patience with ends of imports that the program has released. */
#define OPAQUE_HOST_PUT_US 50000
#define OPAQUE_HOST_COPIED_PER_US 2700u /* bytes of pinned pages that fork() copies */

#define OPAQUE_HOST_NAMES ((uint64_t)1 << 63)

struct opaque_host_made {
	struct watcher_watch watch;
	atomic_bool was_used; /* by an import that found the registration */
	struct opaque_refusals refusals;
};

static _Atomic size_t opaque_host_bytes = OPAQUE_HOST_BYTES; /* the program's limits */
static _Atomic uint32_t opaque_host_most = OPAQUE_HOST_ENTRIES;

static bool opaque_host_tick(void);

static struct idle_watcher opaque_host_watcher = {
	.tick = opaque_host_tick,
	.period_ms = OPAQUE_HOST_PERIOD_MS,
};

static bool opaque_host_freed_tick(void);

/* For watches whose watcher tells by a status word alone. */
static struct idle_watcher opaque_host_freed_watcher = {
	.tick = opaque_host_freed_tick,
	.period_ms = OPAQUE_HOST_FREED_MS,
};

uint64_t opaque_host_name(void)
{
	static _Atomic uint64_t last;

	return OPAQUE_HOST_NAMES | (atomic_fetch_add(&last, 1) + 1);
}

static void opaque_host_told(uintptr_t address, size_t size);

/*
 * The watch comes before the pin, which comes with the first buffer: what changes before the pin
 * makes the watch stale.
 */
static int opaque_host_watch(uintptr_t base, size_t size, struct opaque_host_made *made)
{
	if (!idle_watch(&opaque_host_watcher))
		return -EAGAIN;
	return watcher_watch(base, size, opaque_host_told, &made->watch);
}

/* A reason that passes says nothing about the range: the next import tries again. */
static bool opaque_host_passes(int error)
{
	return error == -EAGAIN || error == -EMFILE || error == -ENFILE;
}

/* The whole pages of a range. */
static void opaque_host_pages(uintptr_t address, size_t size, uintptr_t *base, size_t *whole)
{
	uintptr_t mask = (uintptr_t)sysconf(_SC_PAGESIZE) - 1;

	*base = address & ~mask;
	*whole = ((address + size + mask) & ~mask) - *base;
}

static int opaque_host_pin(void *unused, const void *also_unused, uintptr_t address, size_t size,
			   struct cache_pin *pin)
{
	struct opaque_host_made *made = calloc(1, sizeof(*made));
	int ret;

	(void)unused, (void)also_unused;
	if (!made)
		return log_errno(ENOMEM, "no memory for a registration");
	opaque_host_pages(address, size, &pin->base, &pin->size);
	ret = opaque_host_watch(pin->base, pin->size, made);
	if (ret) {
		if (!opaque_host_passes(ret))
			recent_end(pin->base, pin->size, false);
		free(made);
		return ret;
	}
	pin->number = opaque_host_name();
	pin->status = made->watch.status;
	pin->valid = made->watch.valid;
	pin->data = made;
	return 0;
}

static void opaque_host_unpin(void *unused, const struct cache_pin *pin)
{
	struct opaque_host_made *made = pin->data;

	(void)unused;
	opaque_forget(pin->number);
	watcher_put(&made->watch);
	recent_end(pin->base, pin->size, atomic_load(&made->was_used));
	free(made);
}

static bool opaque_host_is_current(void *unused, const struct cache_pin *pin)
{
	const struct opaque_host_made *made = pin->data;

	(void)unused;
	return watcher_is_current(&made->watch);
}

/* An import that ends may leave a registration idle for the ticks. */
static void opaque_host_idle(void *unused)
{
	(void)unused;
	idle_watch(&opaque_host_watcher);
	idle_watch(&opaque_host_freed_watcher);
}

static struct opaque_refusals *opaque_host_refusals(const struct cache_pin *pin)
{
	struct opaque_host_made *made = pin->data;

	return &made->refusals;
}

int opaque_host_open(const struct cache_pin *pin, const unsigned char *uuid, int *fd)
{
	return rm_import_host(uuid, (void *)pin->base, pin->size, fd);
}

static const struct opaque_source opaque_host_source = {
	.cache = {
		.pin = opaque_host_pin,
		.unpin = opaque_host_unpin,
		.is_current = opaque_host_is_current,
		.idle = opaque_host_idle,
	},
	.exporter = OPAQUE_BY_RM,
	.share = IMPORT_SHARE_UNASKED,
	.open = opaque_host_open,
	.refusals = opaque_host_refusals,
};

static struct opaque_cache opaque_host_cache = {
	.source = &opaque_host_source,
	.config = { .bytes = SIZE_MAX,
		    .idle_bytes = OPAQUE_HOST_BYTES,
		    .idle_entries = OPAQUE_HOST_ENTRIES,
		    .is_ordered = true },
};

/* On a watcher's thread. */
static void opaque_host_told(uintptr_t address, size_t size)
{
	opaque_cache_drop_stale(&opaque_host_cache, address, size);
}

uint32_t opaque_host_most_idle(void)
{
	return descriptor_share(OPAQUE_HOST_LIMIT_SHARE, atomic_load(&opaque_host_most));
}

/* Two threads may bring the limits at once; the next import brings the limits again. */
static void opaque_host_limit(struct cache *cache, uint32_t entries)
{
	static _Atomic uint32_t last_entries = OPAQUE_HOST_ENTRIES;
	static _Atomic size_t last_bytes = OPAQUE_HOST_BYTES;
	size_t bytes = atomic_load(&opaque_host_bytes);
	bool changed = atomic_exchange(&last_entries, entries) != entries;

	changed |= atomic_exchange(&last_bytes, bytes) != bytes;
	if (changed)
		cache_set_idle(cache, bytes, entries);
}

static atomic_bool opaque_host_drops; /* the next tick ends idle registrations */

/* On the idle thread. */
static bool opaque_host_tick(void)
{
	struct cache *cache = opaque_cache_of(&opaque_host_cache);

	if (!cache)
		return false;
	if (atomic_exchange(&opaque_host_drops, false)) {
		cache_make_room(cache, UINT32_MAX);
		cache_tidy(cache);
	}
	opaque_host_limit(cache, opaque_host_most_idle());
	return cache_age(cache);
}

/* On the idle thread. */
static bool opaque_host_freed_tick(void)
{
	struct cache *cache = opaque_cache_of(&opaque_host_cache);

	return cache && cache_drop_changed(cache);
}

static void opaque_host_drop(const struct late_put_patience *patience)
{
	struct cache *cache = opaque_cache_of(&opaque_host_cache);
	struct cache_stats stats;

	if (!cache)
		return;
	opaque_cache_wait_for_puts(&opaque_host_cache, patience);
	cache_stats(cache, &stats);
	if (!stats.bytes_idle && !opaque_cache_is_ending(&opaque_host_cache))
		return;
	atomic_store(&opaque_host_drops, true);
	idle_watch(&opaque_host_watcher);
	idle_call(&opaque_host_watcher, OPAQUE_HOST_FORK_MS);
}

void opaque_host_drop_idle(void)
{
	opaque_host_drop(&(struct late_put_patience){ .most_us = OPAQUE_HOST_PUT_US });
}

/*
 * A child would have the driver's descriptors, and with them the pages, for as long as the child
 * lives; and fork() copies pinned pages.  Registrations in use are the parent's affair, unless the
 * program has released the import: the driver's callback may come soon.  A wait that is longer than
 * the copy of the pages would make the fork slower.
 */
static void opaque_host_before_fork(void)
{
	opaque_host_drop(&(struct late_put_patience){
		.most_us = OPAQUE_HOST_PUT_US,
		.bytes_per_us = OPAQUE_HOST_COPIED_PER_US,
	});
}

void opaque_host_invalidate(uintptr_t address, size_t size)
{
	opaque_cache_invalidate_by_idle(&opaque_host_cache, address, size);
}

void opaque_host_set_limits(uint64_t bytes, uint64_t entries)
{
	atomic_store(&opaque_host_bytes, bytes < OPAQUE_HOST_BYTES ? bytes : OPAQUE_HOST_BYTES);
	atomic_store(&opaque_host_most,
		     entries < OPAQUE_HOST_ENTRIES ? entries : OPAQUE_HOST_ENTRIES);
	idle_call(&opaque_host_watcher, OPAQUE_HOST_FORK_MS);
}

bool opaque_host_make_room(uint32_t count)
{
	return opaque_cache_make_room(&opaque_host_cache, count) ||
	       opaque_registered_make_room(count);
}

static bool opaque_host_find_watched(uintptr_t address, size_t size, struct opaque_hold *hold)
{
	struct opaque_host_made *made;

	if (!opaque_cache_find(&opaque_host_cache, address, size, hold))
		return false;
	made = hold->ref.pin->data;
	atomic_store_explicit(&made->was_used, true, memory_order_relaxed);
	return true;
}

bool opaque_host_find(uintptr_t address, size_t size, struct opaque_hold *hold)
{
	if (!opaque_host_find_watched(address, size, hold))
		return false;
	if (!opaque_registered_has(address, size))
		return true;
	opaque_cache_put(hold);
	return false;
}

static bool opaque_host_is_due(uintptr_t address, size_t size)
{
	uintptr_t base;
	size_t whole;

	opaque_host_pages(address, size, &base, &whole);
	return recent_is_due(base, whole);
}

static int opaque_host_keep(uintptr_t address, size_t size, struct opaque_hold *hold)
{
	struct cache *cache = opaque_cache_of(&opaque_host_cache);
	uint32_t most = opaque_host_most_idle();
	int ret;

	if (cache)
		opaque_host_limit(cache, most);
	if (!most)
		return -EMFILE;
	fork_on_before(opaque_host_before_fork);
	ret = opaque_cache_prepare();
	if (!ret)
		ret = opaque_cache_get(&opaque_host_cache, address, size, NULL, hold);
	if (ret)
		return ret;
	idle_watch(&opaque_host_watcher); /* the last tick may have seen no entry */
	if (hold->ref.pin->status)
		idle_watch(&opaque_host_freed_watcher);
	return 0;
}

int opaque_host_get(uintptr_t address, size_t size, struct opaque_hold *hold)
{
	if (!opaque_registered_get(address, size, hold))
		return 0;
	if (opaque_host_find_watched(address, size, hold))
		return 0;
	if (size > atomic_load(&opaque_host_bytes) || !opaque_host_is_due(address, size) ||
	    !watcher_is_possible(size))
		return -EOPNOTSUPP;
	return opaque_host_keep(address, size, hold);
}

void opaque_host_add_stats(struct cache_stats *sum)
{
	opaque_cache_add_stats(&opaque_host_cache, sum);
	opaque_registered_add_stats(sum);
}
