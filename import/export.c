/* SPDX-License-Identifier: Apache-2.0 */
#include "export.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cache.h"
#include "cuda.h"
#include "exports.h"
#include "gdmabuf.h"
#include "lock.h"
#include "log.h"

/* Descriptors of CUDA's memory cost nothing but what they keep alive. */
#define KEPT_BYTES ((size_t)64 << 30)

static struct lock kept_lock = LOCK_INIT; /* makes the cache; held while it is made */
static _Atomic(struct cache *) kept;

static uint64_t buffer_id_of(const struct cache_pin *pin)
{
	return (uint64_t)(uintptr_t)pin->data;
}

static int pin(void *context, uintptr_t address, size_t size, struct cache_pin *pin)
{
	struct cuda_export export;
	struct cuda_range range;
	int ret = cuda_identify(address, &range);

	(void)context;
	if (ret)
		return ret;
	/* The whole allocation serves its parts; a range of several has to be itself. */
	if (address + size <= range.base + range.size) {
		address = range.base;
		size = range.size;
	}
	ret = cuda_export_dmabuf(address, size, &export);
	if (ret)
		return ret;
	pin->base = address - export.offset;
	pin->size = export.size;
	pin->fd = export.fd;
	pin->data = (void *)(uintptr_t)range.buffer_id;
	return 0;
}

static void unpin(void *context, const struct cache_pin *pin)
{
	(void)context;
	close(pin->fd);
}

static bool is_current(void *context, const struct cache_pin *pin)
{
	(void)context;
	return cuda_buffer_id(pin->base) == buffer_id_of(pin);
}

static const struct cache_source source = {
	.pin = pin,
	.unpin = unpin,
	.is_current = is_current,
};

static int kept_get(struct cache **cache)
{
	static const struct cache_config config = { .bytes = KEPT_BYTES };
	int ret = 0;

	*cache = atomic_load_explicit(&kept, memory_order_acquire);
	if (*cache)
		return 0;
	lock_acquire(&kept_lock);
	*cache = atomic_load_explicit(&kept, memory_order_relaxed);
	if (!*cache)
		ret = cache_create(&source, NULL, &config, cache);
	if (!ret)
		atomic_store_explicit(&kept, *cache, memory_order_release);
	lock_release(&kept_lock);
	return ret ? log_errno(-ret, "no registration cache for exports") : 0;
}

static int remember(int fd, uintptr_t first, size_t size, const struct exports_origin *origin)
{
	const struct exported exported = { first, size };
	int ret = exports_add(fd, &exported, origin);

	return ret ? log_errno(-ret, "an export cannot be remembered") : 0;
}

static int cuda_once(uintptr_t address, size_t size, uint64_t buffer_id, struct export_range *out)
{
	const struct exports_origin origin = { .buffer_id = buffer_id };
	struct cuda_export export;
	int ret = cuda_export_dmabuf(address, size, &export);

	if (ret)
		return ret;
	ret = remember(export.fd, address - export.offset, export.size, &origin);
	if (ret) {
		close(export.fd);
		return ret;
	}
	*out = (struct export_range){ export.fd, export.offset };
	return 0;
}

/* One dma-buf, and a descriptor for each caller: it is remembered by its inode. */
static int cuda_kept(uintptr_t address, size_t size, struct export_range *out)
{
	struct exports_origin origin = { 0 };
	struct exported known;
	struct cache_ref ref;
	struct cache *cache;
	int ret = kept_get(&cache);

	if (!ret)
		ret = cache_get(cache, address, size, &ref);
	if (ret)
		return ret;
	origin.buffer_id = buffer_id_of(ref.pin);
	out->offset = ref.offset;
	out->fd = fcntl(ref.pin->fd, F_DUPFD_CLOEXEC, 3);
	if (out->fd < 0)
		ret = log_errno(errno, "duplicate of a dma-buf: %m");
	else if (exports_find(out->fd, &known))
		ret = remember(out->fd, ref.pin->base, ref.pin->size, &origin);
	if (ret && out->fd >= 0)
		close(out->fd);
	cache_put(cache, &ref);
	return ret;
}

static int by_module(enum gdmabuf_memory memory, uintptr_t address, size_t size,
		     unsigned int options, struct export_range *out)
{
	struct exports_origin origin = { 0 };
	struct gdmabuf_range range;
	int ret = gdmabuf_export(memory, address, size,
				 (options & EXPORT_READ_ONLY ? GDMABUF_OPTION_READ_ONLY : 0u) |
					 (options & EXPORT_KEEP ? GDMABUF_OPTION_KEEP : 0u),
				 &range);

	if (ret)
		return ret;
	origin.slot = range.slot;
	origin.generation = range.generation;
	ret = remember(range.fd, address - range.offset, range.offset + size, &origin);
	if (ret) {
		close(range.fd);
		return ret;
	}
	*out = (struct export_range){ range.fd, range.offset };
	return 0;
}

/* What CUDA does not know may be the module's all the same: it asks the GPU's driver. */
static int module_any(uintptr_t address, size_t size, unsigned int options,
		      struct export_range *out)
{
	int ret = by_module(GDMABUF_MEMORY_HOST, address, size, options, out);

	if (ret != -EFAULT || options & EXPORT_READ_ONLY)
		return ret;
	ret = by_module(GDMABUF_MEMORY_GPU, address, size, options, out);
	return ret == -EOPNOTSUPP ? -EFAULT : ret;
}

static int by_cuda(uintptr_t address, size_t size, unsigned int options, uint64_t buffer_id,
		   struct export_range *out)
{
	int ret;

	if (options & (EXPORT_READ_ONLY | EXPORT_MAPPABLE))
		return by_module(GDMABUF_MEMORY_GPU, address, size, options, out);
	if (options & EXPORT_KEEP)
		ret = cuda_kept(address, size, out);
	else
		ret = cuda_once(address, size, buffer_id, out);
	if (ret != -EOPNOTSUPP)
		return ret;
	return by_module(GDMABUF_MEMORY_GPU, address, size, options, out);
}

int export_dmabuf(uintptr_t address, size_t size, unsigned int options, struct export_range *out)
{
	struct cuda_range range;
	uintptr_t last;
	int ret;

	if (!size || __builtin_add_overflow(address, size - 1, &last))
		return log_errno(EINVAL, "%zu bytes at %#zx are no range", size, (size_t)address);
	ret = cuda_identify(address, &range);
	if (ret)
		return ret;
	if (range.kind == CUDA_MANAGED)
		return log_errno(EOPNOTSUPP, "%#zx is CUDA managed memory, which moves",
				 (size_t)address);
	if (range.kind == CUDA_DEVICE)
		return by_cuda(address, size, options, range.buffer_id, out);
	return module_any(address, size, options, out);
}

void export_invalidate(uintptr_t address, size_t size)
{
	struct cache *cache = atomic_load_explicit(&kept, memory_order_acquire);

	if (cache && size)
		cache_invalidate(cache, address, size);
}

void export_stats(struct cache_stats *stats)
{
	struct cache *cache = atomic_load_explicit(&kept, memory_order_acquire);

	memset(stats, 0, sizeof(*stats));
	if (cache)
		cache_stats(cache, stats);
}
