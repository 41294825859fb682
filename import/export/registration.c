/* SPDX-License-Identifier: Apache-2.0 */
#include "import/export/registration.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "import/export/exporter.h"
#include "import/export/gdmabuf.h"
#include "util/descriptor.h"
#include "util/log.h"
#include "util/publish.h"
#include "util/shortage.h"
#include "util/thread.h"

/* A descriptor costs nothing but the memory that it keeps, and is one of the process's. */
#define REGISTRATION_BYTES ((size_t)64 << 30)
#define REGISTRATION_ENTRIES 512

static void *_Atomic registration_cache; /* struct cache, made once, never destroyed */
static _Atomic size_t registration_bytes = REGISTRATION_BYTES; /* the program's limits */
static _Atomic uint32_t registration_most = UINT32_MAX;
static _Atomic uint64_t registration_last; /* number that was given */

/* The source's part of a pin. */
struct registered {
	struct origin origin;
	struct descriptor_id id;
	size_t whole; /* size of the dma-buf */
};

/* What a miss knows of the range that the cache asks for. */
struct registration_wanted {
	const struct cuda_range *memory;
	enum registration_by by;
};

uint64_t registration_next_number(void)
{
	return atomic_fetch_add_explicit(&registration_last, 1, memory_order_relaxed) + 1;
}

/* The program's own descriptors come first: registrations get an eighth of the limit. */
static uint32_t registration_entries(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur / 8 >= REGISTRATION_ENTRIES)
		return REGISTRATION_ENTRIES;
	return limit.rlim_cur < 8 ? 1 : limit.rlim_cur / 8;
}

static int registration_by_cuda(const struct cuda_range *memory, struct cache_pin *pin,
				struct origin *origin)
{
	struct cuda_export made;
	int ret = cuda_export_dmabuf(memory, memory->base, memory->size, &made);

	if (ret)
		return ret;
	pin->fd = made.fd;
	pin->offset = made.offset;
	origin->buffer_id = memory->buffer_id;
	return 0;
}

/*
 * The module watches the allocation's first page, and tells of the free by the status word.  CUDA
 * may have given the address to other memory before the module pinned: the buffer id tells.
 */
static int registration_by_gdmabuf(const struct cuda_range *memory, struct cache_pin *pin,
				   struct origin *origin)
{
	struct gdmabuf_range made;
	int ret = gdmabuf_export(GDMABUF_MEMORY_GPU, memory->base, memory->size, 0, &made);

	if (ret)
		return ret;
	if (cuda_buffer_id(memory->base) != memory->buffer_id) {
		close(made.fd);
		return log_errno(ENODEV, "the CUDA memory at %#zx was freed meanwhile",
				 (size_t)memory->base);
	}
	pin->fd = made.fd;
	pin->offset = made.offset;
	pin->status = made.status;
	pin->valid = made.generation;
	origin->context = made.context;
	origin->slot = made.slot;
	origin->generation = made.generation;
	return 0;
}

static int registration_make(const struct registration_wanted *wanted, struct cache_pin *pin,
			     struct origin *origin)
{
	int ret = registration_by_cuda(wanted->memory, pin, origin);

	if (ret == -EOPNOTSUPP && wanted->by == REGISTRATION_BY_ANYONE)
		ret = registration_by_gdmabuf(wanted->memory, pin, origin);
	return ret;
}

/*
 * Registers the whole allocation for its parts, and no neighbour: other memory may share the pages.
 */
static int registration_fill(const struct registration_wanted *wanted, struct cache_pin *pin,
			     struct registered *registered)
{
	const struct cuda_range *memory = wanted->memory;
	int ret = registration_make(wanted, pin, &registered->origin);

	if (ret)
		return ret;
	pin->base = memory->base;
	pin->size = memory->size;
	pin->number = registration_next_number();
	registered->origin.inside = memory->base;
	registered->origin.address = memory->base - pin->offset;
	ret = descriptor_identify(pin->fd, &registered->id);
	if (!ret)
		ret = descriptor_measure(pin->fd, &registered->whole);
	if (ret)
		close(pin->fd);
	return ret;
}

static int registration_pin(void *context, const void *wanted, uintptr_t address, size_t size,
			    struct cache_pin *pin)
{
	struct registered *registered = calloc(1, sizeof(*registered));
	int ret;

	(void)context, (void)address, (void)size;
	if (!registered)
		return log_errno(ENOMEM, "no memory for a registration");
	ret = registration_fill(wanted, pin, registered);
	if (ret)
		free(registered);
	else
		pin->data = registered;
	return ret;
}

static void registration_unpin(void *context, const struct cache_pin *pin)
{
	struct registered *registered = pin->data;
	THREAD_NO_CANCEL();

	(void)context;
	descriptor_close(pin->fd, &registered->id);
	free(registered);
}

/* Of CUDA's dma-bufs; the module's have a status word. */
static bool registration_is_current(void *context, const struct cache_pin *pin)
{
	const struct registered *registered = pin->data;
	THREAD_NO_CANCEL();

	(void)context;
	return cuda_buffer_id(pin->base) == registered->origin.buffer_id;
}

static const struct cache_source registration_source = {
	.pin = registration_pin,
	.unpin = registration_unpin,
	.is_current = registration_is_current,
};

static struct cache *registration_cache_get(void)
{
	return atomic_load_explicit(&registration_cache, memory_order_acquire);
}

static bool registration_give_up(uint32_t count)
{
	struct cache *cache = registration_cache_get();

	return cache && cache_make_room(cache, count);
}

static struct shortage_giver registration_giver = { .give_up = registration_give_up };

static void registration_limit(struct cache *cache)
{
	cache_set_idle(cache, SIZE_MAX, atomic_load(&registration_most));
	cache_set_bytes(cache, atomic_load(&registration_bytes));
}

static int registration_cache_create(struct cache **cache)
{
	const struct cache_config config = {
		.bytes = REGISTRATION_BYTES,
		.entries = registration_entries(),
	};
	struct cache *mine;
	int ret;

	*cache = registration_cache_get();
	if (*cache)
		return 0;
	ret = cache_create(&registration_source, NULL, &config, &mine);
	if (ret)
		return log_errno(ENOMEM, "no registration cache: %s", log_strerror(-ret));
	*cache = publish_first(&registration_cache, mine);
	if (*cache != mine)
		cache_destroy(mine);
	registration_limit(*cache);
	shortage_add_giver(&registration_giver);
	return 0;
}

bool registration_can_keep(const struct export_request *request)
{
	return request->memory.kind == CUDA_DEVICE && request->memory.buffer_id &&
	       cuda_range_contains(&request->memory, request->address, request->size);
}

bool registration_find(uintptr_t address, size_t size, struct registration *registration)
{
	struct cache *cache = registration_cache_get();

	return cache && cache_get_cached(cache, address, size, &registration->ref);
}

int registration_get(const struct export_request *request, enum registration_by by,
		     struct registration *registration)
{
	const struct registration_wanted wanted = { &request->memory, by };
	struct cache *cache;
	int ret = registration_cache_create(&cache);

	return ret ? ret
		   : cache_get_wanted(cache, request->address, request->size, &wanted,
				      &registration->ref);
}

void registration_put(struct registration *registration)
{
	if (registration->ref.pin)
		cache_put(registration_cache_get(), &registration->ref);
	else
		host_registration_put(registration->host.slot, registration->host.number);
}

int registration_export(const struct registration *registration, struct export_range *out)
{
	const struct registered *registered = registration->ref.pin->data;
	const struct export_range made = {
		.fd = descriptor_duplicate(registration->ref.pin->fd),
		.offset = registration->ref.offset,
		.whole = registered->whole,
	};

	if (made.fd < 0)
		return made.fd == -EBADF ? -ESTALE : made.fd;
	return export_hand_out(&made, &registered->origin, &registered->id, out);
}

void registration_invalidate(uintptr_t address, size_t size)
{
	struct cache *cache = registration_cache_get();

	if (cache && size)
		cache_invalidate(cache, address, size);
}

void registration_drop_stale(uintptr_t address, size_t size)
{
	struct cache *cache = registration_cache_get();

	if (cache)
		cache_drop_stale(cache, address, size);
}

void registration_set_limits(uint64_t bytes, uint64_t entries)
{
	struct cache *cache;

	atomic_store(&registration_bytes, bytes < REGISTRATION_BYTES ? bytes : REGISTRATION_BYTES);
	atomic_store(&registration_most, entries < UINT32_MAX ? entries : UINT32_MAX);
	cache = atomic_load(&registration_cache);
	if (cache)
		registration_limit(cache);
}

void registration_drop_idle(void)
{
	registration_give_up(UINT32_MAX);
}

void registration_stats(struct cache_stats *stats)
{
	struct cache *cache = registration_cache_get();

	*stats = (struct cache_stats){ 0 };
	if (cache)
		cache_stats(cache, stats);
}
