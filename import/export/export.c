/* SPDX-License-Identifier: Apache-2.0 */
#include "import/export/export.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "import/cache/cache.h"
#include "import/export/exports.h"
#include "import/export/gdmabuf.h"
#include "import/kinds/maps.h"
#include "import/nvidia/cuda/cuda.h"
#include "util/descriptor.h"
#include "util/log.h"

/* A descriptor costs nothing but what it keeps alive, and is one of the process's. */
#define KEPT_BYTES ((size_t)64 << 30)
#define KEPT_ENTRIES 512

/* The program's own descriptors come first: an eighth of what it may have. */
static uint32_t kept_entries(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur / 8 >= KEPT_ENTRIES)
		return KEPT_ENTRIES;
	return limit.rlim_cur < 8 ? 1 : limit.rlim_cur / 8;
}

static _Atomic(struct cache *) kept; /* made once, never destroyed */
static _Atomic size_t kept_bytes = KEPT_BYTES;

/* The source's part of a pin. */
struct made {
	uint64_t buffer_id;
	struct descriptor_id id;
};

static uint64_t buffer_id_of(const struct cache_pin *pin)
{
	return ((const struct made *)pin->data)->buffer_id;
}

/* A range of several allocations is not kept: nothing says that all of them are there still. */
static bool is_one_allocation(const struct cuda_range *range, uintptr_t address, size_t size)
{
	return address - range->base < range->size && size <= range->size - (address - range->base);
}

static bool can_keep(const struct cuda_range *range, uintptr_t address, size_t size)
{
	return range->kind == CUDA_DEVICE && range->buffer_id &&
	       is_one_allocation(range, address, size);
}

/*
 * The whole allocation serves its parts, and nothing beside it: its pages may be shared.  -ENOENT,
 * not logged: what is not kept, export_by_cuda() says why.
 */
static int export_pin_cuda(uintptr_t address, size_t size, struct cache_pin *pin, struct made *made)
{
	struct cuda_export export;
	struct cuda_range range;
	int ret = cuda_identify(address, &range);

	if (!ret && !can_keep(&range, address, size))
		ret = -ENOENT;
	if (!ret)
		ret = cuda_export_dmabuf(range.base, range.size, &export);
	if (ret)
		return ret;
	ret = descriptor_identify(export.fd, &made->id);
	if (ret) {
		close(export.fd);
		return ret;
	}
	made->buffer_id = range.buffer_id;
	pin->base = range.base;
	pin->size = range.size;
	pin->offset = export.offset;
	pin->fd = export.fd;
	return 0;
}

static int export_pin(void *context, uintptr_t address, size_t size, struct cache_pin *pin)
{
	struct made *made = malloc(sizeof(*made));
	int ret;

	(void)context;
	if (!made)
		return log_errno(ENOMEM, "no memory to keep an export");
	ret = export_pin_cuda(address, size, pin, made);
	if (ret)
		free(made);
	else
		pin->data = made;
	return ret;
}

static void export_unpin(void *context, const struct cache_pin *pin)
{
	struct made *made = pin->data;

	(void)context;
	descriptor_close(pin->fd, &made->id);
	free(made);
}

static bool export_is_current(void *context, const struct cache_pin *pin)
{
	(void)context;
	return buffer_id_of(pin) && cuda_buffer_id(pin->base) == buffer_id_of(pin);
}

static const struct cache_source source = {
	.pin = export_pin,
	.unpin = export_unpin,
	.is_current = export_is_current,
};

/* Two threads may make one at once: the first is for all. */
static int kept_get(struct cache **cache)
{
	const struct cache_config config = { .bytes = KEPT_BYTES, .entries = kept_entries() };
	struct cache *mine;
	int ret;

	*cache = atomic_load_explicit(&kept, memory_order_acquire);
	if (*cache)
		return 0;
	ret = cache_create(&source, NULL, &config, &mine);
	if (ret)
		return log_errno(ENOMEM, "no registration cache for exports: %s",
				 log_strerror(-ret));
	if (atomic_compare_exchange_strong(&kept, cache, mine))
		*cache = mine;
	else
		cache_destroy(mine);
	cache_set_bytes(*cache, atomic_load(&kept_bytes));
	return 0;
}

/* The descriptor is the caller's if it is remembered; else closed. */
static int hand_out(int fd, size_t offset, const struct exported *made_of,
		    const struct descriptor_id *expected, struct export_range *out)
{
	int ret = exports_add(fd, made_of, expected);

	if (ret) {
		close(fd);
		return ret;
	}
	*out = (struct export_range){ fd, offset };
	return 0;
}

static int cuda_once(uintptr_t address, size_t size, uint64_t buffer_id, struct export_range *out)
{
	struct exported made_of = { .buffer_id = buffer_id, .inside = address };
	struct cuda_export export;
	int ret = cuda_export_dmabuf(address, size, &export);

	if (ret)
		return ret;
	made_of.address = address - export.offset;
	return hand_out(export.fd, export.offset, &made_of, NULL, out);
}

/* -ESTALE, not logged: the program has closed the kept one, and maybe opened another file. */
static int hand_out_kept(const struct cache_ref *ref, struct export_range *out)
{
	const struct cache_pin *pin = ref->pin;
	const struct made *made = pin->data;
	const struct exported made_of = {
		.buffer_id = made->buffer_id,
		.inside = pin->base,
		.address = pin->base - pin->offset,
	};
	int fd = descriptor_duplicate(pin->fd);

	if (fd < 0)
		return fd == -EBADF ? -ESTALE : fd;
	return hand_out(fd, ref->offset, &made_of, &made->id, out);
}

static int kept_once(struct cache *cache, uintptr_t address, size_t size, struct export_range *out)
{
	struct cache_ref ref;
	int ret = cache_get(cache, address, size, &ref);

	if (ret)
		return ret;
	ret = hand_out_kept(&ref, out);
	if (ret == -ESTALE)
		cache_invalidate(cache, ref.pin->base, ref.pin->size);
	cache_put(cache, &ref);
	return ret;
}

/* One dma-buf, and a descriptor for each caller: it is remembered by its inode. */
static int cuda_kept(uintptr_t address, size_t size, struct export_range *out)
{
	struct cache *cache;
	int ret = kept_get(&cache);

	if (!ret)
		ret = kept_once(cache, address, size, out);
	if (ret == -ESTALE)
		ret = kept_once(cache, address, size, out);
	return ret == -ESTALE ? log_errno(EBADF, "the program closes descriptors of climport")
			      : ret;
}

static unsigned int module_options(unsigned int options)
{
	return (options & EXPORT_READ_ONLY ? GDMABUF_OPTION_READ_ONLY : 0u) |
	       (options & EXPORT_KEEP ? GDMABUF_OPTION_KEEP : 0u) |
	       (options & EXPORT_REVOCABLE ? GDMABUF_OPTION_REVOCABLE : 0u);
}

/* @options: the module's.  @buffer_id: CUDA's, which tells of the free; or 0: the module does. */
static int by_module(enum gdmabuf_memory memory, uintptr_t address, size_t size,
		     unsigned int options, uint64_t buffer_id, struct export_range *out)
{
	struct exported made_of = { .buffer_id = buffer_id, .inside = address };
	struct gdmabuf_range range;
	int ret = gdmabuf_export(memory, address, size, options, &range);

	if (ret)
		return ret;
	made_of.address = address - range.offset;
	made_of.context = range.context;
	made_of.slot = range.slot;
	made_of.generation = range.generation;
	return hand_out(range.fd, range.offset, &made_of, NULL, out);
}

/* Without the module, what is not even mapped is the caller's mistake. */
static int without_module(uintptr_t address, size_t size)
{
	unsigned int have;

	return maps_check((void *)address, size, 0, &have, NULL) == -EFAULT ? -EFAULT : -ENXIO;
}

/* What CUDA does not know may be the module's all the same: it asks the GPU's driver. */
static int module_any(uintptr_t address, size_t size, unsigned int options,
		      struct export_range *out)
{
	unsigned int asked = module_options(options);
	int ret = -EFAULT;

	if (!(options & EXPORT_REVOCABLE))
		ret = by_module(GDMABUF_MEMORY_HOST, address, size, asked, 0, out);
	if (ret == -ENXIO)
		return without_module(address, size);
	if (ret != -EFAULT || options & EXPORT_READ_ONLY)
		return ret;
	ret = by_module(GDMABUF_MEMORY_GPU, address, size, asked, 0, out);
	return ret == -EOPNOTSUPP ? -EFAULT : ret;
}

/* What was kept of memory that was there before. */
static void export_drop_stale(const struct cuda_range *range)
{
	struct cache *cache = atomic_load_explicit(&kept, memory_order_acquire);

	if (cache)
		cache_drop_stale(cache, range->base, range->size);
}

/*
 * The module watches what may be taken away, and the first page of what it keeps: a second pin, for
 * which the driver takes as long as for the first.  Of several allocations that page does not speak
 * for the others, so the module neither keeps them nor has a later export share them, which might
 * be of other memory by then.
 */
static unsigned int cuda_module_options(const struct cuda_range *range, uintptr_t address,
					size_t size, unsigned int options)
{
	if (options & EXPORT_REVOCABLE)
		return module_options(options);
	if (!is_one_allocation(range, address, size))
		return module_options(options & ~EXPORT_KEEP) | GDMABUF_OPTION_UNWATCHED;
	if (options & EXPORT_KEEP || !range->buffer_id)
		return module_options(options);
	return module_options(options) | GDMABUF_OPTION_UNWATCHED;
}

/* Without the module's watch CUDA tells of the free. */
static int cuda_by_module(uintptr_t address, size_t size, unsigned int options,
			  const struct cuda_range *range, struct export_range *out)
{
	unsigned int asked = cuda_module_options(range, address, size, options);
	bool watched = !(asked & GDMABUF_OPTION_UNWATCHED);
	struct export_range made;
	int ret = by_module(GDMABUF_MEMORY_GPU, address, size, asked,
			    watched ? 0 : range->buffer_id, &made);

	if (ret)
		return ret;
	if (!watched && cuda_buffer_id(address) != range->buffer_id) {
		close(made.fd);
		return log_errno(ENODEV, "the CUDA memory at %#zx was freed meanwhile",
				 (size_t)address);
	}
	*out = made;
	return 0;
}

static int export_by_cuda(uintptr_t address, size_t size, unsigned int options,
			  const struct cuda_range *range, struct export_range *out)
{
	int ret;

	if (options & EXPORT_READ_ONLY)
		return log_errno(EOPNOTSUPP, "%#zx is CUDA memory: no read-only dma-buf of that",
				 (size_t)address);
	export_drop_stale(range);
	if (options & (EXPORT_MAPPABLE | EXPORT_REVOCABLE))
		return cuda_by_module(address, size, options, range, out);
	ret = options & EXPORT_KEEP && can_keep(range, address, size)
		      ? cuda_kept(address, size, out)
		      : cuda_once(address, size, range->buffer_id, out);
	if (ret == -ENOENT)
		return log_errno(ENODEV, "the CUDA memory at %#zx was freed meanwhile",
				 (size_t)address);
	if (ret != -EOPNOTSUPP)
		return ret;
	return cuda_by_module(address, size, options, range, out);
}

static void invalidate_cuda(uintptr_t address, size_t size)
{
	struct cache *cache = atomic_load_explicit(&kept, memory_order_acquire);

	if (cache && size)
		cache_invalidate(cache, address, size);
}

static int by_kind(uintptr_t address, size_t size, unsigned int options, struct export_range *out)
{
	struct cuda_range range;
	int ret = cuda_identify(address, &range);

	if (ret)
		return ret;
	if (range.kind == CUDA_MANAGED)
		return log_errno(EOPNOTSUPP, "%#zx is CUDA managed memory, which moves",
				 (size_t)address);
	if (range.kind == CUDA_DEVICE)
		return export_by_cuda(address, size, options, &range, out);
	/* What was kept of CUDA's memory there is of memory that was freed. */
	invalidate_cuda(address, size);
	return module_any(address, size, options, out);
}

bool export_give_up(uint32_t count)
{
	struct cache *cache = atomic_load_explicit(&kept, memory_order_acquire);

	return cache && cache_make_room(cache, count);
}

/* What is kept already need not be identified.  -ESTALE as hand_out_kept(); -ENOENT: it is not. */
static int kept_already(uintptr_t address, size_t size, struct export_range *out)
{
	struct cache *cache = atomic_load_explicit(&kept, memory_order_acquire);
	struct cache_ref ref;
	int ret;

	if (!cache || !cache_get_cached(cache, address, size, &ref))
		return -ENOENT;
	ret = hand_out_kept(&ref, out);
	cache_put(cache, &ref);
	return ret;
}

static int export_once(uintptr_t address, size_t size, unsigned int options,
		       struct export_range *out)
{
	int ret = options == EXPORT_KEEP ? kept_already(address, size, out) : -ENOENT;

	return ret == -ENOENT || ret == -ESTALE ? by_kind(address, size, options, out) : ret;
}

int export_dmabuf(uintptr_t address, size_t size, unsigned int options, struct export_range *out)
{
	struct descriptor_retry retry = { 0 };
	uintptr_t last;
	int ret;

	if (!size || __builtin_add_overflow(address, size - 1, &last))
		return log_errno(EINVAL, "%zu bytes at %#zx are no range", size, (size_t)address);
	do
		ret = export_once(address, size, options, out);
	while (descriptor_retry(&retry, ret));
	return ret;
}

void export_invalidate(uintptr_t address, size_t size)
{
	invalidate_cuda(address, size);
	gdmabuf_drop(address, size);
}

void export_set_limit(bool gpu, uint64_t bytes)
{
	struct cache *cache;

	gdmabuf_set_limit(gpu ? GDMABUF_MEMORY_GPU : GDMABUF_MEMORY_HOST, bytes);
	if (!gpu)
		return;
	atomic_store(&kept_bytes, bytes < KEPT_BYTES ? bytes : KEPT_BYTES);
	cache = atomic_load(&kept);
	if (cache)
		cache_set_bytes(cache, atomic_load(&kept_bytes));
}

void export_stats(struct cache_stats *stats)
{
	struct cache *cache = atomic_load_explicit(&kept, memory_order_acquire);
	struct gdmabuf_counts module;

	memset(stats, 0, sizeof(*stats));
	if (cache)
		cache_stats(cache, stats);
	gdmabuf_counts(&module);
	stats->hits += module.hits;
	stats->misses += module.exports - module.hits;
	stats->evictions += module.evictions;
	stats->stale += module.stale;
	stats->bytes_pinned += module.bytes_pinned;
	stats->bytes_idle += module.bytes_idle;
}
