/* SPDX-License-Identifier: Apache-2.0 */
#include "import/export/registration.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "import/export/gdmabuf.h"
#include "import/export/origin.h"
#include "util/descriptor.h"
#include "util/fork.h"
#include "util/log.h"
#include "util/publish.h"
#include "util/shortage.h"
#include "util/thread.h"

/* A registration costs nothing but the memory that it keeps, and a descriptor of the process. */
#if SIZE_MAX > UINT32_MAX
#define REGISTRATION_BYTES ((size_t)64 << 30)
#else
#define REGISTRATION_BYTES SIZE_MAX
#endif
#define REGISTRATION_ENTRIES 512u

/* The program's own descriptors come first: registrations get an eighth of the limit. */
#define REGISTRATION_SHARE 8u

/* A pin of a private mapping of a file makes copies, once: the next attempt finds them. */
#define REGISTRATION_ATTEMPTS 4

/* The source's part of a pin. */
struct registered {
	struct registry *registry;
	struct descriptor_id id;
	size_t whole;		    /* size of the dma-buf */
	struct origin origin;	    /* of a GPU's memory */
	struct gdmabuf_watch watch; /* of host memory */
};

/* The registrations of a kind. */
struct registry {
	/* Sets @pin but for @data and @number, and @registered but for @id. */
	int (*make)(const struct export_request *request, struct cache_pin *pin,
		    struct registered *registered);
	bool is_host;
	void *_Atomic cache; /* struct cache, made once, never destroyed */
};

/* The program's limits: of host memory, of GPUs' memory. */
static struct {
	_Atomic size_t bytes;
	_Atomic uint32_t entries;
} registration_limits[2] = { { REGISTRATION_BYTES, UINT32_MAX },
			     { REGISTRATION_BYTES, UINT32_MAX } };

static _Atomic uint64_t registration_last; /* number that was given */

uint64_t registration_next_number(void)
{
	return atomic_fetch_add_explicit(&registration_last, 1, memory_order_relaxed) + 1;
}

/*
 * Registers the whole allocation for its parts, and no neighbour: other memory may share the pages.
 */
static void registration_fill_gpu(const struct cuda_range *memory, const struct export_range *made,
				  struct cache_pin *pin, struct registered *registered)
{
	pin->base = memory->base;
	pin->size = memory->size;
	pin->fd = made->fd;
	pin->offset = made->offset;
	registered->whole = made->whole;
	registered->origin = (struct origin){
		.address = memory->base - made->offset,
		.buffer_id = memory->buffer_id,
		.inside = memory->base,
	};
}

static int registration_by_cuda(const struct export_request *request, struct cache_pin *pin,
				struct registered *registered)
{
	const struct cuda_range *memory = &request->memory;
	struct cuda_export made;
	int ret = cuda_export_dmabuf(memory, memory->base, memory->size, &made);

	if (!ret)
		registration_fill_gpu(memory,
				      &(struct export_range){ made.fd, made.offset, made.size },
				      pin, registered);
	return ret;
}

/* CUDA may have given the address to other memory before the module pinned. */
int registration_export_by_module(const struct cuda_range *memory, uintptr_t address, size_t size,
				  struct export_range *made)
{
	int ret = gdmabuf_export(GDMABUF_MEMORY_GPU, address, size, false, made);

	if (ret || cuda_buffer_id(address) == memory->buffer_id)
		return ret;
	close(made->fd);
	return log_errno(ENODEV, "the CUDA memory at %#zx was freed meanwhile", (size_t)address);
}

static int registration_by_module(const struct export_request *request, struct cache_pin *pin,
				  struct registered *registered)
{
	const struct cuda_range *memory = &request->memory;
	struct export_range made;
	int ret = registration_export_by_module(memory, memory->base, memory->size, &made);

	if (!ret)
		registration_fill_gpu(memory, &made, pin, registered);
	return ret;
}

/* The watch comes first: what changes before the pin makes the watch stale.  -ESTALE: it is. */
static int registration_try_host(const struct export_request *request, struct export_range *made,
				 struct gdmabuf_watch *watch)
{
	int ret = gdmabuf_watch_begin(request->address, request->size, watch);

	if (ret)
		return ret;
	ret = gdmabuf_export(GDMABUF_MEMORY_HOST, request->address, request->size, false, made);
	if (!ret && gdmabuf_watch_is_current(watch))
		return 0;
	if (!ret)
		close(made->fd);
	gdmabuf_watch_end(watch);
	return ret ? ret : -ESTALE;
}

static int registration_of_host(const struct export_request *request, struct cache_pin *pin,
				struct registered *registered)
{
	struct gdmabuf_watch *watch = &registered->watch;
	struct export_range made;
	int ret = -ESTALE;

	for (int i = 0; ret == -ESTALE && i < REGISTRATION_ATTEMPTS; i++)
		ret = registration_try_host(request, &made, watch);
	if (ret == -ESTALE)
		return log_errno(EAGAIN, "the pages of %zu bytes at %#zx change all the time",
				 request->size, (size_t)request->address);
	if (ret)
		return ret;
	pin->base = request->address - made.offset;
	pin->size = made.whole;
	pin->fd = made.fd;
	pin->status = watch->status;
	pin->valid = watch->generation;
	registered->whole = made.whole;
	return 0;
}

static struct registry registries[REGISTRATION_KINDS] = {
	[REGISTRATION_BY_CUDA] = { .make = registration_by_cuda },
	[REGISTRATION_BY_MODULE] = { .make = registration_by_module },
	[REGISTRATION_OF_HOST] = { .make = registration_of_host, .is_host = true },
};

static void registration_unpin(void *context, const struct cache_pin *pin)
{
	struct registered *registered = pin->data;
	THREAD_NO_CANCEL();

	(void)context;
	descriptor_close(pin->fd, &registered->id);
	if (pin->status)
		gdmabuf_watch_end(&registered->watch);
	free(registered);
}

static int registration_pin(void *context, const void *request, uintptr_t address, size_t size,
			    struct cache_pin *pin)
{
	struct registry *registry = context;
	struct registered *registered = calloc(1, sizeof(*registered));
	int ret;

	(void)address, (void)size;
	if (!registered)
		return log_errno(ENOMEM, "no memory for a registration");
	ret = registry->make(request, pin, registered);
	if (ret) {
		free(registered);
		return ret;
	}
	registered->registry = registry;
	pin->number = registration_next_number();
	pin->data = registered;
	ret = descriptor_identify(pin->fd, &registered->id);
	if (ret)
		registration_unpin(context, pin);
	return ret;
}

/* Of a GPU's memory; host memory has a status word. */
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

static struct cache *registry_cache(struct registry *registry)
{
	return publish_get(&registry->cache);
}

static bool registration_give_up(uint32_t count)
{
	bool any = false;

	for (int kind = 0; kind < REGISTRATION_KINDS; kind++) {
		struct cache *cache = registry_cache(&registries[kind]);

		any |= cache && cache_make_room(cache, count);
	}
	return any;
}

/* fork() copies pinned pages for the child, so what nobody uses ends before. */
static void registration_before_fork(void)
{
	struct cache *cache = registry_cache(&registries[REGISTRATION_OF_HOST]);

	if (cache)
		cache_make_room(cache, UINT32_MAX);
}

static struct shortage_giver registration_giver = { .give_up = registration_give_up };

static uint32_t registration_entries(void)
{
	const uint32_t share = descriptor_share(REGISTRATION_SHARE, REGISTRATION_ENTRIES);

	return share ? share : 1;
}

static void registry_limit(const struct registry *registry, struct cache *cache)
{
	const uint32_t most = registration_entries(),
		       entries = atomic_load(&registration_limits[!registry->is_host].entries);

	cache_set_limits(cache, atomic_load(&registration_limits[!registry->is_host].bytes),
			 entries < most ? entries : most);
}

/* The program may hold any number of registrations of host memory. */
static int registry_prepare(struct registry *registry, struct cache **cache)
{
	const struct cache_config config = {
		.bytes = REGISTRATION_BYTES,
		.entries = registry->is_host ? 0 : registration_entries(),
	};
	struct cache *mine;
	int ret;

	*cache = registry_cache(registry);
	if (*cache)
		return 0;
	ret = cache_create(&registration_source, registry, &config, &mine);
	if (ret)
		return log_errno(ENOMEM, "registrations cannot be kept: %s", log_strerror(-ret));
	*cache = publish_first(&registry->cache, mine);
	if (*cache != mine)
		cache_destroy(mine);
	registry_limit(registry, *cache);
	shortage_add_giver(&registration_giver);
	if (registry->is_host)
		fork_on_before(registration_before_fork);
	return 0;
}

bool registration_can_keep(const struct export_request *request)
{
	return request->memory.kind == CUDA_DEVICE && request->memory.buffer_id &&
	       cuda_range_contains(&request->memory, request->address, request->size);
}

bool registration_find(enum registration_kind first, enum registration_kind last, uintptr_t address,
		       size_t size, struct cache_ref *ref)
{
	for (enum registration_kind kind = first; kind <= last; kind++) {
		struct cache *cache = registry_cache(&registries[kind]);

		if (cache && cache_get_cached(cache, address, size, ref))
			return true;
	}
	return false;
}

/*
 * Nobody tells that host memory was unmapped: its pages go with the next registration, at any
 * address.
 */
int registration_get(enum registration_kind kind, const struct export_request *request,
		     struct cache_ref *ref)
{
	struct cache *cache;
	int ret = registry_prepare(&registries[kind], &cache);

	if (ret)
		return ret;
	cache_drop_changed(cache);
	ret = cache_get(cache, request->address, request->size, request, ref);
	/* Another thread may have got the last room, for the same range. */
	if (shortage_is(ret) && cache_get_cached(cache, request->address, request->size, ref))
		ret = 0;
	return ret;
}

void registration_put(struct cache_ref *ref)
{
	const struct registered *registered = ref->pin->data;

	cache_put(registry_cache(registered->registry), ref);
}

/*
 * A program may close all descriptors and open files of its own at their numbers.  To duplicate and
 * close such a file would drop its record locks, so look first.
 */
int registration_export(const struct cache_ref *ref, struct export_range *out)
{
	const struct registered *registered = ref->pin->data;
	int fd;

	if (!descriptor_is(ref->pin->fd, &registered->id))
		return -ESTALE;
	fd = descriptor_duplicate(ref->pin->fd);
	if (fd < 0)
		return fd == -EBADF ? -ESTALE : fd;
	origin_add(&registered->id, &registered->origin);
	*out = (struct export_range){ fd, ref->offset, registered->whole };
	return 0;
}

static int registration_export_once(enum registration_kind kind,
				    const struct export_request *request, struct export_range *out)
{
	struct cache_ref ref;
	int ret = registration_get(kind, request, &ref);

	if (ret)
		return ret;
	ret = registration_export(&ref, out);
	if (ret == -ESTALE)
		registration_invalidate(ref.pin->base, ref.pin->size);
	registration_put(&ref);
	return ret;
}

/* The program may close the descriptor of a registration.  The registration is then made anew. */
int registration_export_kept(enum registration_kind kind, const struct export_request *request,
			     struct export_range *out)
{
	int ret = registration_export_once(kind, request, out);

	if (ret == -ESTALE)
		ret = registration_export_once(kind, request, out);
	return ret == -ESTALE
		       ? log_errno(EBADF, "the program closed climport's descriptor of this memory")
		       : ret;
}

static void registration_end(void (*end)(struct cache *cache, uintptr_t address, size_t size),
			     uintptr_t address, size_t size)
{
	for (int kind = 0; kind < REGISTRATION_KINDS; kind++) {
		struct cache *cache = registry_cache(&registries[kind]);

		if (cache)
			end(cache, address, size);
	}
}

void registration_invalidate(uintptr_t address, size_t size)
{
	registration_end(cache_invalidate, address, size);
}

void registration_drop_stale(uintptr_t address, size_t size)
{
	registration_end(cache_drop_stale, address, size);
}

void registration_set_limits(bool gpu, uint64_t bytes, uint64_t entries)
{
	atomic_store(&registration_limits[gpu].bytes,
		     bytes < REGISTRATION_BYTES ? bytes : REGISTRATION_BYTES);
	atomic_store(&registration_limits[gpu].entries,
		     entries < UINT32_MAX ? entries : UINT32_MAX);
	for (int kind = 0; kind < REGISTRATION_KINDS; kind++) {
		struct cache *cache = registry_cache(&registries[kind]);

		if (cache)
			registry_limit(&registries[kind], cache);
	}
}

void registration_drop_idle(void)
{
	registration_give_up(UINT32_MAX);
}

void registration_add_stats(struct cache_stats *sum)
{
	for (int kind = 0; kind < REGISTRATION_KINDS; kind++) {
		struct cache *cache = registry_cache(&registries[kind]);

		if (cache)
			cache_add_stats(cache, sum);
	}
}
