/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opaque descriptors of memory.  CUDA's are shared while somebody holds them, by a registration
 * cache for each device that keeps nothing idle: a descriptor keeps its memory alive, whatever
 * its owner frees.  Allocators of our own hold theirs (import/memory.c).
 */
#include "opaque.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cache.h"
#include "cuda.h"
#include "exports.h"
#include "lock.h"
#include "log.h"
#include "vulkan.h"

#define MAX_DEVICES 16

/* The memory that one device takes. */
struct device {
	unsigned char uuid[IMPORT_UUID_SIZE];
	struct cache *cache;
};

struct opaque {
	struct cache *cache; /* NULL: the dma-buf below */
	struct cache_ref ref;
	int fd;
	struct vulkan_memory *vulkan;
};

static struct lock devices_lock = LOCK_INIT; /* the two below; held while a cache is created */
static struct device devices[MAX_DEVICES] GUARDED_BY(devices_lock); /* never removed */
static unsigned int num_devices GUARDED_BY(devices_lock);

static uintptr_t page_mask(void)
{
	return (uintptr_t)sysconf(_SC_PAGESIZE) - 1;
}

/* The source's part of a pin. */
struct made {
	uint64_t buffer_id;
	atomic_bool kept; /* by opaque_hold(), until the memory is freed */
};

static int pin_cuda(const unsigned char *uuid, uintptr_t address, size_t size,
		    struct cache_pin *pin, struct made *made)
{
	struct cuda_range range;
	struct cuda_export export;
	int ret = cuda_identify(address, &range);

	if (!ret)
		ret = cuda_export_opaque(address, size, uuid, &export);
	if (ret)
		return ret;
	made->buffer_id = range.buffer_id;
	pin->base = address - export.offset;
	pin->size = export.size;
	pin->fd = export.fd;
	return 0;
}

static int pin(void *uuid, uintptr_t address, size_t size, struct cache_pin *pin)
{
	struct made *made = calloc(1, sizeof(*made));
	int ret;

	if (!made)
		return log_errno(ENOMEM, "no memory for an opaque descriptor");
	ret = pin_cuda(uuid, address, size, pin, made);
	if (ret)
		free(made);
	else
		pin->data = made;
	return ret;
}

static void unpin(void *uuid, const struct cache_pin *pin)
{
	(void)uuid;
	close(pin->fd);
	free(pin->data);
}

/* The memory may have been unmapped, and its address used again. */
static bool is_current(void *uuid, const struct cache_pin *pin)
{
	const struct made *made = pin->data;

	(void)uuid;
	return cuda_buffer_id(pin->base) == made->buffer_id;
}

static const struct cache_source source = {
	.pin = pin,
	.unpin = unpin,
	.is_current = is_current,
};

static int device_add(const unsigned char *uuid, struct cache **cache) REQUIRES(devices_lock)
{
	static const struct cache_config keep_nothing = { .bytes = 0 };
	struct device *device = &devices[num_devices];
	int ret;

	if (num_devices == MAX_DEVICES)
		return log_errno(EOPNOTSUPP, "more than %d devices take opaque descriptors",
				 MAX_DEVICES);
	memcpy(device->uuid, uuid, sizeof(device->uuid));
	ret = cache_create(&source, device->uuid, &keep_nothing, &device->cache);
	if (ret)
		return log_errno(-ret, "no registration cache for a device");
	*cache = device->cache;
	num_devices++;
	return 0;
}

static int cache_of(const unsigned char *uuid, struct cache **cache)
{
	int ret = 0;

	*cache = NULL;
	lock_acquire(&devices_lock);
	for (unsigned int i = 0; i < num_devices && !*cache; i++)
		if (!memcmp(devices[i].uuid, uuid, IMPORT_UUID_SIZE))
			*cache = devices[i].cache;
	if (!*cache)
		ret = device_add(uuid, cache);
	lock_release(&devices_lock);
	return ret;
}

static int by_cuda(const unsigned char *uuid, uintptr_t address, size_t size, struct opaque *opaque,
		   struct import_opaque *out)
{
	int ret = cache_of(uuid, &opaque->cache);
	struct made *made;

	if (!ret)
		ret = cache_get(opaque->cache, address, size, &opaque->ref);
	if (ret)
		return ret;
	made = opaque->ref.pin->data;
	*out = (struct import_opaque){
		.fd = opaque->ref.pin->fd,
		.offset = opaque->ref.offset,
		.size = opaque->ref.pin->size,
		.maker = IMPORT_BY_CUDA,
		.kept = atomic_load_explicit(&made->kept, memory_order_relaxed) ? made->buffer_id
										: 0,
	};
	return 0;
}

/*
 * Never shared: a program may unmap the memory when it has released its buffer, and map other
 * memory there, before the driver has destroyed the buffer.
 */
static int by_pages(const unsigned char *uuid, uintptr_t address, size_t size,
		    struct opaque *opaque, struct import_opaque *out)
{
	uintptr_t mask = page_mask(), base = address & ~mask;
	size_t whole = ((address + size + mask) & ~mask) - base;
	int ret = vulkan_import_host(uuid, (void *)base, whole, &opaque->vulkan, &opaque->fd);

	*out = (struct import_opaque){
		.fd = opaque->fd,
		.offset = address - base,
		.size = whole,
		.maker = IMPORT_BY_VULKAN,
	};
	return ret;
}

static int by_address(const unsigned char *uuid, uintptr_t address, size_t size,
		      struct opaque *opaque, struct import_opaque *out)
{
	struct cuda_range range;
	int ret = cuda_identify(address, &range);

	if (ret)
		return ret;
	if (range.kind == CUDA_MANAGED)
		return log_errno(EOPNOTSUPP,
				 "%zu bytes at %#zx are CUDA managed memory: it moves, so "
				 "nothing can hold it in place",
				 size, (size_t)address);
	if (range.kind == CUDA_DEVICE || (range.kind == CUDA_HOST && cuda_is_vmm(address)))
		return by_cuda(uuid, address, size, opaque, out);
	return by_pages(uuid, address, size, opaque, out);
}

/* A dma-buf that Vulkan takes itself, where the driver can. */
static int by_dmabuf(const struct import_region *region, const unsigned char *uuid,
		     struct opaque *opaque, struct import_opaque *out)
{
	int ret =
		vulkan_import_dmabuf(uuid, region->fd, region->size, &opaque->vulkan, &opaque->fd);

	*out = (struct import_opaque){
		.fd = opaque->fd,
		.size = region->size,
		.maker = IMPORT_BY_VULKAN,
	};
	return ret;
}

/* Memory of this process that a dma-buf was made of keeps its address; else the CPU's mapping. */
static int any_way(const struct import_region *region, const unsigned char *uuid,
		   struct opaque *opaque, struct import_opaque *out)
{
	struct exported from;
	int ret;

	if (region->fd < 0)
		return by_address(uuid, (uintptr_t)region->addr, region->size, opaque, out);
	ret = exports_find(region->fd, &from);
	if (!ret)
		return by_address(uuid, from.address, region->size, opaque, out);
	if (ret != -ENOENT)
		return ret;
	if (vulkan_takes_dmabufs(uuid))
		return by_dmabuf(region, uuid, opaque, out);
	if (region->addr)
		return by_address(uuid, (uintptr_t)region->addr, region->size, opaque, out);
	return log_errno(EOPNOTSUPP,
			 "the dma-buf has no CPU mapping, Vulkan takes none on this device, and "
			 "it was not made by climport_export_dmabuf() in this process");
}

int opaque_get(const struct import_region *region, const unsigned char uuid[IMPORT_UUID_SIZE],
	       struct opaque **opaque, struct import_opaque *out)
{
	struct opaque *o = calloc(1, sizeof(*o));
	int ret;

	if (!o)
		return log_errno(ENOMEM, "no memory for an opaque descriptor");
	o->fd = -1;
	ret = any_way(region, uuid, o, out);
	if (ret)
		free(o);
	else
		*opaque = o;
	return ret;
}

void opaque_put(struct opaque *opaque)
{
	if (!opaque)
		return;
	if (opaque->cache)
		cache_put(opaque->cache, &opaque->ref);
	if (opaque->fd >= 0)
		close(opaque->fd);
	vulkan_free(opaque->vulkan);
	free(opaque);
}

static _Atomic(opaque_forget_fn) on_forget;

void opaque_on_forget(opaque_forget_fn forget)
{
	atomic_store(&on_forget, forget);
}

int opaque_hold(const unsigned char uuid[IMPORT_UUID_SIZE], uintptr_t address, size_t size,
		struct opaque_hold *hold)
{
	int ret = cache_of(uuid, &hold->cache);

	if (!ret)
		ret = cache_get(hold->cache, address, size, &hold->ref);
	if (!ret)
		atomic_store(&((struct made *)hold->ref.pin->data)->kept, true);
	return ret;
}

void opaque_release(struct opaque_hold *hold)
{
	const struct cache_pin *pin = hold->ref.pin;
	struct made *made = pin->data;
	opaque_forget_fn forget = atomic_load(&on_forget);

	atomic_store(&made->kept, false);
	cache_invalidate(hold->cache, pin->base, pin->size);
	if (forget)
		forget(made->buffer_id);
	cache_put(hold->cache, &hold->ref);
}

void opaque_stats(struct cache_stats *sum)
{
	struct cache_stats one;

	memset(sum, 0, sizeof(*sum));
	lock_acquire(&devices_lock);
	for (unsigned int i = 0; i < num_devices; i++) {
		cache_stats(devices[i].cache, &one);
		sum->hits += one.hits;
		sum->misses += one.misses;
		sum->evictions += one.evictions;
		sum->stale += one.stale;
		sum->invalidations += one.invalidations;
		sum->bytes_pinned += one.bytes_pinned;
		sum->bytes_idle += one.bytes_idle;
		sum->entries += one.entries;
	}
	lock_release(&devices_lock);
}
