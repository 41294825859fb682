/* SPDX-License-Identifier: Apache-2.0 */
#include "import/opaque_fd/opaque_cache.h"

#include <errno.h>
#include <stdlib.h>

#include "import/nvidia/rm/rm.h"
#include "util/fork.h"
#include "util/idle.h"
#include "util/log.h"
#include "util/publish.h"

#define OPAQUE_CACHE_PATIENCE_MS 100u
#define OPAQUE_CACHE_LONGEST_WAIT 256u
#define OPAQUE_CACHE_HOST_NAMES ((uint64_t)1 << 63)

/* The caches that exist, the newest first. */
static struct opaque_cache *_Atomic opaque_caches;

struct cache *opaque_cache_of(struct opaque_cache *of)
{
	return publish_get(&of->cache);
}

static void opaque_cache_list(struct opaque_cache *of)
{
	struct opaque_cache *head = atomic_load(&opaque_caches);

	do
		atomic_store(&of->next, head);
	while (!atomic_compare_exchange_weak(&opaque_caches, &head, of));
}

static int opaque_cache_make(struct opaque_cache *of, struct cache **cache)
{
	struct cache *mine;
	int ret;

	*cache = opaque_cache_of(of);
	if (*cache)
		return 0;
	ret = cache_create(&of->source->cache, NULL, &of->config, &mine);
	if (ret)
		return log_errno(-ret, "pinned memory cannot be kept: %s", log_strerror(-ret));
	*cache = publish_first(&of->cache, mine);
	if (*cache == mine)
		opaque_cache_list(of);
	else
		cache_destroy(mine);
	return 0;
}

bool opaque_cache_find(struct opaque_cache *of, uintptr_t address, size_t size,
		       struct opaque_hold *hold)
{
	struct cache *cache = opaque_cache_of(of);
	struct opaque_hold found = { .of = of };

	if (!cache || !cache_get_cached(cache, address, size, &found.ref))
		return false;
	*hold = found;
	return true;
}

static bool opaque_refusals_are_due(struct opaque_refusals *r)
{
	return atomic_fetch_add(&r->imports, 1) >= atomic_load(&r->wait);
}

static void opaque_refusals_count(struct opaque_refusals *r)
{
	unsigned int wait = atomic_load(&r->wait);

	if (wait < OPAQUE_CACHE_LONGEST_WAIT)
		atomic_store(&r->wait, wait ? 2 * wait : 1);
	atomic_store(&r->imports, 0);
}

int opaque_cache_prepare(void)
{
	static struct opaque_refusals refusals;
	int ret;

	if (!opaque_refusals_are_due(&refusals))
		return -EAGAIN;
	log_hold();
	ret = idle_prepare();
	log_resume(false);
	if (ret)
		opaque_refusals_count(&refusals);
	else
		atomic_store(&refusals.wait, 0);
	return ret;
}

int opaque_cache_get(struct opaque_cache *of, uintptr_t address, size_t size, const void *wanted,
		     struct opaque_hold *hold)
{
	struct opaque_hold got = { .of = of };
	struct cache *cache;
	int ret = idle_prepare(); /* for the end of the hold */

	if (!ret)
		ret = opaque_cache_make(of, &cache);
	if (!ret)
		ret = cache_get(cache, address, size, wanted, &got.ref);
	if (!ret)
		*hold = got;
	return ret;
}

static atomic_bool opaque_cache_ticks;

static bool opaque_cache_tick(void)
{
	struct opaque_cache *of = atomic_load(&opaque_caches);

	atomic_store(&opaque_cache_ticks, true);
	for (; of; of = atomic_load(&of->next))
		if (atomic_exchange(&of->is_untidy, false))
			cache_tidy(opaque_cache_of(of));
	atomic_store(&opaque_cache_ticks, false);
	return false;
}

static struct idle_task opaque_cache_task = { .tick = opaque_cache_tick };

/* A tick takes the mark of a cache first, and ends the registrations then. */
bool opaque_cache_is_ending(struct opaque_cache *of)
{
	return (atomic_load(&of->is_untidy) || atomic_load(&opaque_cache_ticks)) &&
	       idle_is_running();
}

static void opaque_cache_tidy_later(struct opaque_cache *of)
{
	atomic_store(&of->is_untidy, true);
	idle_request(&opaque_cache_task);
}

void opaque_cache_put(struct opaque_hold *hold)
{
	if (cache_put_only(opaque_cache_of(hold->of), &hold->ref))
		opaque_cache_tidy_later(hold->of);
	hold->of = NULL;
}

void opaque_cache_put_now(struct opaque_hold *hold)
{
	cache_put(opaque_cache_of(hold->of), &hold->ref);
	hold->of = NULL;
}

uint64_t opaque_cache_name_host(void)
{
	static _Atomic uint64_t last;

	return OPAQUE_CACHE_HOST_NAMES | (atomic_fetch_add(&last, 1) + 1);
}

void opaque_cache_describe(const struct opaque_hold *hold, struct import_opaque *out)
{
	const struct opaque_source *source = hold->of->source;

	*out = (struct import_opaque){
		.fd = -1,
		.offset = hold->ref.offset,
		.size = hold->ref.pin->size,
		.exporter = source->exporter,
		.is_on_device = source->is_on_device && source->is_on_device(hold->ref.pin),
		.kept = hold->ref.pin->number,
		.share = source->share,
	};
}

static struct opaque_refusals *opaque_cache_refusals(const struct opaque_hold *hold)
{
	return hold->of->source->counts_refusals ? hold->ref.pin->data : NULL;
}

bool opaque_cache_is_due(const struct opaque_hold *hold)
{
	struct opaque_refusals *r = opaque_cache_refusals(hold);

	return !r || opaque_refusals_are_due(r);
}

void opaque_cache_refuse(const struct opaque_hold *hold)
{
	struct opaque_refusals *r = opaque_cache_refusals(hold);

	if (r)
		opaque_refusals_count(r);
}

int opaque_cache_open(const struct opaque_hold *hold, const unsigned char *uuid, int *fd)
{
	const struct opaque_source *source = hold->of->source;
	const struct cache_pin *pin = hold->ref.pin;

	if (source->open)
		return source->open(pin, uuid, fd);
	return rm_import_host(uuid, (void *)pin->base, pin->size, fd);
}

static void opaque_cache_tidy_by_idle(struct opaque_cache *of)
{
	opaque_cache_tidy_later(of);
	idle_call(&opaque_cache_task, OPAQUE_CACHE_PATIENCE_MS);
}

void opaque_cache_drop_stale_by_idle(struct opaque_cache *of, uintptr_t address, size_t size)
{
	struct cache *cache = opaque_cache_of(of);

	if (cache && cache_drop_stale_only(cache, address, size))
		opaque_cache_tidy_by_idle(of);
}

void opaque_cache_invalidate_by_idle(struct opaque_cache *of, uintptr_t address, size_t size)
{
	struct cache *cache = opaque_cache_of(of);

	if (cache && size && cache_invalidate_only(cache, address, size))
		opaque_cache_tidy_by_idle(of);
}

bool opaque_cache_make_room(struct opaque_cache *of, uint32_t count)
{
	struct cache *cache = opaque_cache_of(of);

	return cache && cache_make_room(cache, count);
}

void opaque_cache_add_stats(struct opaque_cache *of, struct cache_stats *sum)
{
	struct cache *cache = opaque_cache_of(of);

	if (cache)
		cache_add_stats(cache, sum);
}

static void (*_Atomic opaque_forgetter)(uint64_t kept);
static atomic_bool opaque_exits;

static void opaque_begin_exit(void)
{
	atomic_store(&opaque_exits, true);
}

/*
 * Exit handlers run youngest first.  The caller's driver works already, so the driver's handlers are
 * older than this one.  A child's driver may be younger than the parent's handler.
 */
void import_on_forget(void (*forget)(uint64_t kept))
{
	static _Atomic uint32_t process; /* that has the handler */
	uint32_t now = fork_generation();

	atomic_store(&opaque_forgetter, forget);
	if (atomic_exchange(&process, now) != now)
		atexit(opaque_begin_exit);
}

void opaque_forget(uint64_t kept)
{
	void (*forget)(uint64_t kept) = atomic_load(&opaque_forgetter);

	if (forget && !atomic_load(&opaque_exits))
		forget(kept);
}

bool opaque_process_exits(void)
{
	return atomic_load(&opaque_exits);
}
